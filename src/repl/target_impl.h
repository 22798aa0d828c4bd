/*
 * Inside of the target: target.c has links, messages and the turn; target_elect.c elections; target_io.c clients'
 * writes and acknowledgements, target_read.c their reads; target_view.c views and what changes them; target_snap.c snapshots;
 * target_rebuild.c, target_piece.c, target_scrub.c copying, target_pace.c how fast; target_status.c what is shown.
 */
#pragma once

#include "base/list.h"
#include "repl/busy.h"
#include "repl/target.h"

enum { PIECE_BLOCKS = REPL_PIECE / REPL_SECTOR };

/* A piece on its way from the source to the replica that is rebuilt. */
struct piece {
    enum {
        PIECE_NONE,
        PIECE_BEGUN, /* not asked for yet */
        PIECE_SUMS,  /* waits for sums of both */
        PIECE_READ,  /* waits for the source's data */
        PIECE_KEPT,  /* waits for the replica to have written it */
    } state;
    bool have_source, have_own, own_failed;
    bool zeros; /* the replica never had anything there */
    uint64_t tag, offset, length;
    uint64_t from, at;           /* in it: the run that is being read; what comes next */
    uint64_t sums[PIECE_BLOCKS]; /* that came first */
    bool differ[PIECE_BLOCKS];
};

/* The rebuild of a replica, or the mending of one piece of it. */
struct job {
    enum {
        JOB_NONE,
        JOB_READY, /* for the next step, when pace and rate allow */
        JOB_MAP,   /* waits for entries of both */
        JOB_SNAP,  /* waits for SNAP_OK */
        JOB_DONE,  /* waits for DONE_OK */
    } state;
    uint64_t snap;      /* the snapshot that is being rebuilt; 0: the volume as it is */
    uint64_t snap_pos;  /* its position */
    bool repair, begun; /* one piece only */
    bool have_source, have_own;
    int source;
    uint16_t avoid;    /* sources that failed */
    uint32_t failures; /* how often all of them had */
    uint64_t tag;
    int64_t retry_at;
    uint32_t region;       /* looked at next */
    uint32_t first, count; /* regions whose entries are here */
    uint64_t theirs[REPL_PAGE_ENTRIES], own[REPL_PAGE_ENTRIES];
    uint64_t piece, piece_length; /* begun last; 0: none */
    uint32_t begins, asks; /* pieces begun, asked for: numbers of the next, and their places */
    int flying;            /* pieces asked for and not over */
    uint64_t bytes, copied, marked;
    int64_t since;
};

struct peer {
    bool open, hello;
    struct repl_super sb; /* as it last told */
    uint64_t pos;
    bool blank, intact;
    bool says_lost;  /* its data or metadata was damaged */
    bool unreadable; /* as the only one in sync it could not read what others needed */
    enum { ASK_NO, ASK_SENT, ASK_YES } ask; /* for the promise of our epoch */
    bool joined;                            /* gets every write */
    bool insync;                            /* has everything */
    bool lost;                              /* does not have what it once had: counts in nothing */
    bool purged;                            /* and so are its snapshots */
    uint64_t join;                          /* number of the JOIN */
    uint64_t applied, durable;              /* counts */
    uint64_t view_ok, view_sent;
    int64_t pong; /* when the last ping that it answered was sent */
    int64_t heard, opened;
    uint64_t owed;           /* bytes */
    uint32_t reads, reading; /* reads under way; and with large ones counted as several */
    struct repl_held held;
    uint64_t fork, mark; /* for its rebuild */
    uint64_t scrub_errors;
    struct job job;
};

/* A write under way. */
struct entry {
    struct repl_io *io; /* NULL once the client was told */
    uint64_t offset, length;
    uint64_t cost; /* bytes that are owed */
    int64_t since;
    uint16_t owed, acks; /* links */
    bool stable;         /* on cf replicas */
};

struct read_slot {
    struct repl_io *io;
    uint32_t life;
};

/* How fast rebuilds may go. */
struct pace {
    int64_t client_at;    /* when a client's request last came or was complete */
    int64_t calm, loaded; /* means of clients' latencies without and with a piece in the way */
    bool fresh;           /* loaded has news since the last piece */
    int flying;           /* pieces, of all jobs */
    int64_t began, ended; /* when the last one did */
    int64_t pause, next_at;
};

/* What is known of an initiator beside what the view says. */
struct client {
    uint64_t id;
    uint64_t wrote, flushed; /* positions: of its last write, and of those before its last flush */
    bool told;               /* a flush has failed since something was lost */
    bool gone;               /* it is not logged in */
};

struct quorum {
    uint16_t links;
    uint8_t cf, meet;
};

struct repl_target {
    struct repl_target_config cfg;
    const struct repl_target_ops *ops;
    void *ctx;
    int64_t now;

    enum { COLLECT, PROMISE, ACTIVE, FENCED } phase;
    uint32_t epoch;
    uint64_t owner;
    uint32_t attempts;
    bool was_active;
    bool has_served; /* what others acknowledged before is durable on cf voters */
    bool changed;    /* something that views depend on */
    int64_t elect_at;
    int truth;
    struct repl_lineage lineage;
    struct peer peer[REPL_LINKS];

    /* target_view.c */
    struct repl_view view, next; /* next.version 0: no change is under way */
    struct quorum q[4];          /* voters and old voters of both */
    enum repl_admin admin;
    struct uuid admin_id, admin_out;
    struct uuid out[REPL_MEMBERS]; /* by force, with the next view */
    int out_n;
    bool admin_has_out;
    uint64_t admin_arg;
    bool prepared;
    uint16_t admin_wait, admin_ok;
    bool admin_failed;
    struct repl_snap admin_snap; /* to be made, deleted, or gone back to */
    uint32_t snap_ids;
    struct repl_io revert;
    int revert_status; /* > 0: under way */

    /* target_io.c */
    struct entry *window;
    uint64_t mask;       /* of the window */
    uint64_t base, last; /* counts: the oldest entry, the newest */
    uint64_t acked;      /* highest position that a client was told */
    struct repl_busy busy;
    struct list_link queue, syncs, parked;
    struct read_slot *reads;
    uint32_t *read_free;
    uint32_t read_free_n;
    uint16_t insync; /* links */
    bool serving;
    bool flush_fails; /* something that was acknowledged is gone; for requests of no client */
    struct client client[REPL_CLIENTS]; /* as in the view, if their ids are the same */
    uint64_t new_client;                /* wants to write and is not in the view; 0: none */
    int64_t frozen_since;
    int64_t ping_at, watch_at;
    uint32_t syncs_n;

    struct pace pace;

    /* target_rebuild.c, target_scrub.c */
    uint64_t tags, joins;
    struct piece pieces[REPL_LINKS][REPL_PIECES]; /* of each link's job */
    int64_t rate_tokens, rate_at;
    struct {
        bool active;
        bool slow; /* not asked for: a piece now and then */
        uint64_t slow_at;
        int64_t slow_next;
        uint64_t at, length, tag;
        uint16_t asked, answered, failed, vouched;
        uint64_t sums[REPL_LINKS][PIECE_BLOCKS];
    } scrub;
};

#define each_peer(t, i)                                                                            \
    for (int i = 0; i < REPL_LINKS; i++)                                                           \
        if ((t)->peer[i].open)

static inline uint16_t bit(int link)
{
    return (uint16_t)(1u << link);
}

/* target.c */
void target_send(struct repl_target *t, int link, struct repl_msg *m, const struct iovec *iov,
                 int n, struct repl_buf *owner);
void target_drop(struct repl_target *t, int link, const char *why);
void target_became_insync(struct repl_target *t, int link);

void target_restart(struct repl_target *t); /* to another epoch */
void target_fenced(struct repl_target *t, uint32_t by);

/* target_elect.c */
void collect(struct repl_target *t);
void elect(struct repl_target *t);
void ask_promise(struct repl_target *t, int link);
bool elect_without(struct repl_target *t, int link); /* the only one in sync; false: not now */
/* A voter that is blank, or behind what it once had. */
bool has_lost(const struct peer *p, const struct repl_member *m, const struct repl_view *v);

/* target_view.c */
void view_sets(struct repl_target *t);
bool quorum_met(const struct repl_target *t, uint16_t links);
uint16_t counted(const struct repl_target *t); /* in sync and not lost */
int view_link(const struct repl_target *t, const struct uuid *id);
void view_tell(struct repl_target *t, int link);
void view_step(struct repl_target *t);
void view_ok(struct repl_target *t, int link, uint64_t version);
void view_restamp(struct repl_target *t);
void view_strike(struct repl_target *t); /* those that are to be taken out by force */
bool admin_begin(struct repl_target *t, enum repl_admin op, uint64_t arg);
void admin_start(struct repl_target *t, uint8_t type); /* asks all in sync */
void admin_end(struct repl_target *t, int status);
void admin_answer(struct repl_target *t, int link, const struct repl_msg *m);
void admin_peer_down(struct repl_target *t, int link);

/* target_snap.c */
void snap_progress(struct repl_target *t);                    /* of what was asked for */
void snap_change(struct repl_target *t, struct repl_view *v); /* the view as it should be */
void snap_turn(struct repl_target *t); /* what replicas have and should not is taken away */
bool snap_taking(const struct repl_target *t);
int snap_missing(struct repl_target *t,
                 int link); /* the next that it lacks: index in the view, or -1 */
void snap_drop(struct repl_target *t, int link, uint64_t id);

/* target_io.c */
void io_update(struct repl_target *t); /* something about quorums changed */
void io_ack(struct repl_target *t, int link, uint64_t applied, uint64_t durable);
void io_joined(struct repl_target *t, int link);
void io_peer_down(struct repl_target *t, int link);
void io_restart(struct repl_target *t);
void io_turn(struct repl_target *t);
void io_watch(struct repl_target *t);
void io_flush_peer(struct repl_target *t, int link);
void io_complete(struct repl_target *t, struct repl_io *io, int status);
bool io_in_range(const struct repl_target *t, const struct repl_io *io);

/* target_client.c */
/* Whether a client may write: the view has it. Else it will. */
bool client_known(struct repl_target *t, uint64_t id);
void client_wrote(struct repl_target *t, uint64_t id, uint64_t pos);
/* The status of a flush that is done up to a position. */
int client_flushed(struct repl_target *t, uint64_t id, uint64_t pos);
/* A new reign from this position on; doubt: replicas have lost memory, so nobody knows what was acknowledged. */
void client_elected(struct repl_target *t, uint64_t pos, bool doubt);
void client_change(struct repl_target *t, struct repl_view *v); /* the view as it should be */

/* target_read.c */
bool read_issue(struct repl_target *t, struct repl_io *io); /* false: it must wait */
void read_turn(struct repl_target *t);                      /* what waits, if it can be issued */
/* Whether it was an answer to a client's read. */
bool read_answer(struct repl_target *t, int link, const struct repl_msg *m, const struct iovec *iov,
                 int n);
/* Reads that a link (-1: any) does not answer are tried elsewhere; all: also if there is no elsewhere. */
void read_retry(struct repl_target *t, int link, int64_t older, bool all);
bool lease_held(const struct repl_target *t);

/* target_pace.c */
void pace_came(struct repl_target *t);
void pace_complete(struct repl_target *t, const struct repl_io *io);
int pace_room(const struct repl_target *t); /* pieces that may be begun now */
void pace_turn(struct repl_target *t);      /* after pieces have begun or ended */

/* target_rebuild.c */
void rebuild_start(struct repl_target *t, int link);
/* The sources write anew what was written after a position. */
void rebuild_reverted(struct repl_target *t, uint64_t above, uint64_t pos);
void rebuild_repair(struct repl_target *t, int link, int source, uint64_t offset);
void rebuild_turn(struct repl_target *t);
void rebuild_peer_down(struct repl_target *t, int link);
void rebuild_source_failed(struct repl_target *t, int link);
uint64_t rebuild_tag(struct repl_target *t);
void rebuild_ask(struct repl_target *t, int link, uint8_t type, uint64_t tag, uint64_t offset,
                 uint64_t count);
/* Of the source: of the snapshot that is rebuilt, if one is. */
void rebuild_ask_source(struct repl_target *t, const struct job *j, uint8_t type, uint64_t tag,
                        uint64_t offset, uint64_t count);
void rebuild_stop(struct repl_target *t,
                  int link); /* it gets no writes any more, and begins anew */
void rebuild_snapped(struct repl_target *t, int link, const struct repl_msg *m);
void rebuild_answer(struct repl_target *t, int link, const struct repl_msg *m, const void *payload,
                    struct repl_buf *owner);

/* target_piece.c */
/* The job's piece; stamp 0: the region's entry stays. zeros: the replica never had anything there. */
void piece_begin(struct repl_target *t, int link, uint64_t stamp, bool zeros);
void piece_ask(struct repl_target *t, int link);
void piece_answer(struct repl_target *t, int link, struct piece *c, bool own,
                  const struct repl_msg *m, const void *payload, struct repl_buf *owner);

/* target_scrub.c */
void scrub_turn(struct repl_target *t);
bool scrub_flying(const struct repl_target *t);
void scrub_answer(struct repl_target *t, int link, const struct repl_msg *m, const void *payload);
void scrub_peer_down(struct repl_target *t, int link);
