/*
 * A replicated volume as a store: the target's side of replication on an event loop.
 *
 *     scsi ──store_submit()──> volume ──> repl_target ── frames ──> connections <──dial── replicas
 *          <──done()────────────────────────┘
 *
 * The volume listens; replicas dial. A client's write is sent to all of them from the buffers it was
 * received into. I/O waits while the volume has no quorum, from the very start: a volume can be opened
 * before any replica is there, and its size is known once it first serves.
 */
#pragma once

#include "io/loop.h"
#include "repl/target.h"
#include "replio/tls.h"
#include "store/store.h"

struct replio_volume;

struct replio_volume_options {
    struct io_loop *loop;
    const char *listen; /* numeric address */
    uint16_t port;      /* 0: any */
    struct repl_target_config core;
    uint32_t block_size;          /* 512 or 4096 */
    const struct replio_key *key; /* replicas must know it. Outlives the volume */
    /* Something that people should know: a sentence. Or NULL. */
    void (*event)(void *context, enum repl_event what, const char *sentence);
    void *context;
};

struct replio_volume *replio_volume_open(const struct replio_volume_options *o, struct err *e);
struct store *replio_volume_store(struct replio_volume *v);
uint16_t replio_volume_port(const struct replio_volume *v);
/* Called once, from the loop, when it first serves; store->size is set then. */
void replio_volume_on_ready(struct replio_volume *v, void (*ready)(void *context), void *context);
/* Ends it in order; then done() from the loop, and it is free. With no I/O under way. */
void replio_volume_close(struct replio_volume *v, void (*done)(void *context), void *context);

void replio_volume_status(const struct replio_volume *v, struct repl_status *ret_status);
/* Where the replica on a link is; "" when there is none. */
const char *replio_volume_address(const struct replio_volume *v, int link);
/* Of a volume that was never served and opened without `create`: make it of blank replicas after all. */
void replio_volume_create(struct replio_volume *v, uint64_t size, uint8_t replicas,
                          uint8_t consistency);
/* One thing at a time: false when something else is under way. done() gets 0 or an errno. */
bool replio_volume_add(struct replio_volume *v, const struct uuid *id, const struct uuid *instead,
                       void (*done)(void *, int), void *);
bool replio_volume_remove(struct replio_volume *v, const struct uuid *id, void (*done)(void *, int),
                          void *);
/* repl_target_force_out(), at once; 0 or an errno. What else is under way ends with an error. */
int replio_volume_force_out(struct replio_volume *v, const struct uuid *id);
bool replio_volume_scrub(struct replio_volume *v, void (*done)(void *, int), void *);
/* Snapshots: 0 when it has begun, else an errno, as repl_target_snapshot() and the others say; done() as above. */
int replio_volume_snapshot(struct replio_volume *v, const char *name, void (*done)(void *, int),
                           void *);
int replio_volume_snap_delete(struct replio_volume *v, const char *name, void (*done)(void *, int),
                              void *);
int replio_volume_revert(struct replio_volume *v, const char *name, void (*done)(void *, int),
                         void *);
const struct repl_snaps *replio_volume_snaps(const struct replio_volume *v);
void replio_volume_set_rate(struct replio_volume *v, uint64_t bytes_per_second);
