/*
 * Pools: OpenZFS in user space, without a kernel module.
 *
 *     devices ──> groups (stripe, mirror, raidz...) ──> pool ──> volumes (zpool/volume.h)
 *
 * Real ZFS: libzpool, the library that OpenZFS is tested with, is ZFS's own code as a library. Nothing
 * of it shows here. It is started once in a process and has no end but the process's: exit() with
 * pools imported is safe, everything that was flushed is on the devices.
 *
 * Invariants:
 *   - Import is never create. A pool is known by its GUID, a device by the label that is on it, and
 *     create and add refuse a device that has a label of a pool, or anything else that libblkid
 *     knows, unless `overwrite` is set for exactly that device; a label of a pool that was not
 *     destroyed is refused even so, unless no pool was ever complete on the device, or it is this
 *     pool's and the pool does not know it: a process died when it was about to be added. (A spare or
 *     cache does not say its pool: there the caller's word counts.)
 *   - Only the devices that are named are opened, and only what is one: see open.c. Nothing is searched
 *     for, no cache file is kept.
 *   - A device is held with an exclusive lock while it is in a pool: a second process is refused. So is
 *     one on another machine that has the same devices: a pool that is in use says so on them.
 *   - What fails returns an error where libzpool has a way to do so. Where it has none (memory,
 *     threads, an assertion on damage that it did not foresee) it ends the process, so a process has
 *     one pool, and whoever started it starts it again: import takes it up where it was.
 *   - Calls block, some for seconds, and for as long as devices do: they are not for an event loop's
 *     thread. Calls on one pool are made by one thread at a time; zpool_status_read(), what volumes do
 *     and zpool_clear(), for which a call that is under way may be waiting, may go on beside them.
 *   - A sync that fails on a device fails no flush while the others have everything, and every flush
 *     from then on when they have not: see doubt.c.
 *   - A pool that lost too many devices is suspended: reads and new writes fail with EIO, writes that
 *     were under way and flushes wait, nothing is lost when zpool_clear() finds the devices again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct zpool;

struct zpool_options {
    uint64_t
        cache_bytes; /* of the read cache in memory (ARC) at most; 0, or less than that: 64 MiB */
    uint64_t dirty_bytes; /* of data written and not yet on the devices at most; 0: 64 MiB */
    uint32_t host_id;     /* of this node, not 0: it is written into the labels */
    const char *files;    /* folder whose files may be devices; NULL: only block devices may */
    bool direct;          /* devices past the page cache (O_DIRECT) */
    unsigned sign_ms;     /* how often a pool says that it is in use, 100 or more; 0: 1000 */
};

/* Once in a process. FAILED_PRECONDITION when libzpool is another version than the one built for. */
int zpool_start(const struct zpool_options *o, struct err *e);

/* What is on a device. */
enum zpool_label {
    ZPOOL_LABEL_NONE,    /* nothing that anybody knows */
    ZPOOL_LABEL_FOREIGN, /* something else: `what` says it */
    ZPOOL_LABEL_FORMER,  /* a device that was detached from a pool, or whose pool was destroyed */
    ZPOOL_LABEL_MEMBER,
    ZPOOL_LABEL_SPARE,
    ZPOOL_LABEL_CACHE,
};

struct zpool_found {
    const char *path; /* the caller's */
    enum zpool_label label;
    int error;                       /* errno: it cannot be opened or read, or is in use (EBUSY) */
    uint64_t size;                   /* in bytes */
    uint64_t device_guid, pool_guid; /* a spare or cache does not say its pool: 0 */
    uint64_t txg;                    /* when its label was written, in the pool's count */
    uint32_t host_id;                /* who had the pool last */
    bool exported;                   /* cleanly; else that host may still have it */
    bool signs;    /* while it is in use it says so here: one can see whether it is */
    bool complete; /* it has an uberblock; a label without one is left of a pool or device that was
                      being made when the process died */
    char pool_name[256], host_name[65]; /* "" where not known */
    char what[64];                      /* FOREIGN: "ext4", "gpt" */
};

/* Looks at exactly these; what cannot be read is said in `error` of its row. */
void zpool_scan(const char *const *paths, size_t n, struct zpool_found *ret_found);
/* What such an error means, for people. */
const char *zpool_device_problem(int error);

/*
 * Removes the labels of a pool that is destroyed, or of a spare or cache, by its own GUID. What has
 * something else on it is refused; what has nothing is success.
 */
int zpool_label_clear(const char *path, uint64_t pool_guid, uint64_t device_guid, struct err *e);

enum zpool_group_type { ZPOOL_STRIPE, ZPOOL_MIRROR, ZPOOL_RAIDZ, ZPOOL_RAIDZ2, ZPOOL_RAIDZ3 };
enum zpool_role { ZPOOL_ROLE_DATA, ZPOOL_ROLE_LOG, ZPOOL_ROLE_CACHE, ZPOOL_ROLE_SPARE };

struct zpool_device {
    const char *path;
    bool overwrite; /* what is on it, if it is no pool's, may go */
};

struct zpool_group {
    enum zpool_group_type type; /* cache and spare: STRIPE; log: STRIPE or MIRROR */
    enum zpool_role role;
    const struct zpool_device *devices;
    size_t n_devices;
};

struct zpool_layout {
    const struct zpool_group *groups;
    size_t n_groups;
    unsigned ashift;         /* sectors of 2^ashift bytes, 12 to 16; 0: 12 */
    const char *compression; /* of volumes that do not say; NULL: "off" */
};

struct zpool *zpool_create(const char *name, const struct zpool_layout *layout, struct err *e);

/*
 * The pool with this GUID from these devices; others among them are left alone. With devices missing
 * the pool comes degraded, or, when too many are, not at all (UNAVAILABLE). A pool that another host
 * had last and did not export is refused unless `take_over`: the caller believes that host to be gone. Then
 * the devices are watched for some twenty times `sign_ms`, and the pool is refused when somebody is using it.
 * `without_log`: also when its log device is lost, and with it what was flushed last.
 */
struct zpool_import {
    uint64_t guid;
    const char *const *paths;
    size_t n_paths;
    bool take_over, without_log;
};
struct zpool *zpool_import(const struct zpool_import *how, struct err *e);

/* Both end the handle, unless they fail; no volume may be open. */
int zpool_export(struct zpool *p, struct err *e);
int zpool_destroy(struct zpool *p, struct err *e);

const char *zpool_name(const struct zpool *p);
/* At once, from any thread, also while another waits for the pool. */
bool zpool_is_suspended(const struct zpool *p);
/* What a suspended pool suffers from, for people. */
const char *zpool_suspended_why(void);
uint64_t zpool_guid(const struct zpool *p);

/*
 * Devices. One that is in the pool is named by its path, or by its GUID in decimal when the path says
 * nothing any more. Those that begin work (attach, replace, remove, scrub) return at once:
 * zpool_status_read() shows how far it is. It goes on after a restart.
 */
int zpool_add(struct zpool *p, const struct zpool_layout *groups, struct err *e);
int zpool_attach(struct zpool *p, const char *beside, const struct zpool_device *device,
                 struct err *e);
int zpool_detach(struct zpool *p, const char *device, struct err *e);
/*
 * When the new one has everything the old one leaves the pool by itself. A spare of the pool that
 * takes over stays beside the old one until either is detached: the old one, and the spare is a
 * member for good; the spare, or the old one replaced, and it is a spare again.
 */
int zpool_replace(struct zpool *p, const char *old, const struct zpool_device *by, struct err *e);
/* A log, cache or spare; or a data device of stripes and mirrors, whose data moves to the others. */
int zpool_remove(struct zpool *p, const char *device, struct err *e);
int zpool_offline(struct zpool *p, const char *device, struct err *e);
/* What it missed is copied to it. expand: use all of a device that has grown. */
int zpool_online(struct zpool *p, const char *device, bool expand, struct err *e);
/* The device is at this path now; zpool_online() then opens it there. */
int zpool_move(struct zpool *p, const char *device, const char *path, struct err *e);
int zpool_scrub(struct zpool *p, bool start, struct err *e);
/*
 * Forgets the errors counted, tries the devices again and lets a suspended pool go on; what a device
 * lost in a failed sync is copied to it. DATA_LOSS when only that device had it: import the pool anew.
 */
int zpool_clear(struct zpool *p, struct err *e);
/* Of volumes that do not say: from now on, for what is written. */
int zpool_set_compression(struct zpool *p, const char *word, struct err *e);
/* Everything that was written until now is on the devices. */
int zpool_sync(struct zpool *p, struct err *e);

enum zpool_state {
    ZPOOL_ONLINE,
    ZPOOL_DEGRADED,
    ZPOOL_FAULTED,
    ZPOOL_OFFLINE,
    ZPOOL_REMOVED,
    ZPOOL_UNAVAILABLE,
};
const char *zpool_state_name(enum zpool_state state); /* "ONLINE", as zpool(8) says it */

struct zpool_vdev {
    char type[16];   /* "root", "mirror", "raidz", "replacing", "spare", "disk", "file", ... */
    char path[256];  /* of a device; "" of others */
    const char *why; /* it is not online, in words; NULL: nothing to say */
    int parent;      /* its row; -1: the root, and spares and caches that are not in use */
    unsigned depth;
    enum zpool_role role;
    enum zpool_state state;
    uint64_t guid, size, allocated;
    uint64_t read_errors, write_errors, checksum_errors, repaired_bytes;
    uint64_t expandable; /* bytes that zpool_online() with expand would add */
    bool spare_in_use;   /* of a spare */
    bool behind; /* of a device: it lacks data that it should have; it is being copied or will be */
    uint64_t stuck_ms; /* the age of the oldest request that the device has not answered */
};

enum zpool_scan_kind { ZPOOL_SCAN_NONE, ZPOOL_SCAN_SCRUB, ZPOOL_SCAN_RESILVER };
enum zpool_scan_state { ZPOOL_SCAN_IDLE, ZPOOL_SCAN_RUNNING, ZPOOL_SCAN_DONE, ZPOOL_SCAN_STOPPED };

/* A scrub or resilver: the one that runs, or the last. */
struct zpool_progress {
    enum zpool_scan_kind kind;
    enum zpool_scan_state state;
    double percent;
    uint64_t total, done, repaired, errors; /* bytes, bytes, bytes, count */
    int64_t eta_s;                          /* -1: cannot be said */
    int64_t started, ended;                 /* Unix time; ended: 0 while it runs */
};

struct zpool_status {
    enum zpool_state state;
    bool suspended;
    uint64_t errors;                /* blocks known to be damaged for good */
    uint64_t size, allocated, free; /* raw: with parity and copies */
    uint64_t used, available; /* as volumes see it: what they take, what they can still take */
    uint64_t logical;         /* what volumes take, before compression */
    unsigned fragmentation;   /* per cent of the free space; 0 where not known */
    struct zpool_progress scan;
    struct zpool_progress removal; /* of a data device; kind NONE: there was none */
    struct zpool_vdev *vdevs;      /* owned; a parent stands before its children */
    size_t n_vdevs;
};

int zpool_status_read(struct zpool *p, struct zpool_status *ret_status, struct err *e);
void zpool_status_done(struct zpool_status *s);
