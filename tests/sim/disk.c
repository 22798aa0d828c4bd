/*
 * Disks that forget: what was written and not synced is in a log; a crash keeps all of it, none, or parts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

void disk_log_write(struct unsynced ***end, uint64_t offset, const void *data, uint64_t length,
                    bool done)
{
    struct unsynced *u = mem_alloc(sizeof(*u) + length);
    *u = (struct unsynced){.offset = offset, .length = length, .done = done};
    if (data)
        memcpy(u->data, data, length);
    else
        memset(u->data, 0, length);
    **end = u;
    *end = &u->next;
}

/* What was done when the sync began is sure now. */
void disk_log_sync(struct unsynced **log, struct unsynced ***end, uint8_t *sure)
{
    struct unsynced **p = log;
    while (*p) {
        struct unsynced *u = *p;
        if (!u->flushing) {
            p = &u->next;
            continue;
        }
        memcpy(sure + u->offset, u->data, u->length);
        *p = u->next;
        free(u);
    }
    *end = p;
}

/* A crash: of each grain that was not synced, the new content or the old. */
void disk_log_crash(struct sim *s, struct unsynced **log, struct unsynced ***end, uint8_t *sure,
                    uint8_t *now, size_t size, uint64_t grain)
{
    int mode = (int)sim_below(s, 4);
    while (*log) {
        struct unsynced *u = *log;
        /* All writes, none, or of each: all, nothing, or parts. */
        int keep = mode < 2 ? mode * 100 : (int)sim_below(s, 3) * 50;
        for (uint64_t i = 0; i < u->length; i += grain)
            if (sim_chance(s, keep))
                memcpy(sure + u->offset + i, u->data + i, grain);
        *log = u->next;
        free(u);
    }
    *end = log;
    memcpy(now, sure, size);
}

void disk_mark_flushing(struct unsynced *u)
{
    for (; u; u = u->next)
        u->flushing |= u->done;
}

void disk_snapshot(struct disk *d, uint64_t id, bool drop)
{
    for (int i = 0; i < d->snaps; i++) {
        if (d->snap[i].id != id)
            continue;
        d->snap[i] = d->snap[--d->snaps];
        break;
    }
    if (drop)
        return;
    int i = d->snaps < 3 ? d->snaps++ : 0;
    d->snap[i].id = id;
    memcpy(d->snap[i].data, d->data, sizeof(d->data));
}
