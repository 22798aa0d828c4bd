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
        if (!u->flushing || u->alone) {
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

int disk_find(const struct disk *d, uint64_t id)
{
    for (int i = 0; i < d->snaps; i++)
        if (d->snap[i].id == id)
            return i;
    return -1;
}

/* Durable at once, with everything that was done before. */
bool disk_snapshot(struct disk *d, uint64_t id)
{
    if (d->snaps == DISK_SNAPS || disk_find(d, id) >= 0)
        return false;
    d->snap[d->snaps].id = id;
    memset(d->snap[d->snaps].rotten, 0, sizeof(d->snap[0].rotten));
    d->snap[d->snaps].data = mem_alloc(sizeof(d->data));
    memcpy(d->snap[d->snaps++].data, d->data, sizeof(d->data));
    return true;
}

void disk_drop(struct disk *d, uint64_t id)
{
    int i = disk_find(d, id);
    if (i < 0)
        return;
    free(d->snap[i].data);
    d->snaps--;
    memmove(&d->snap[i], &d->snap[i + 1], (size_t)(d->snaps - i) * sizeof(d->snap[0]));
}

void disk_free_snaps(struct disk *d, int from)
{
    while (d->snaps > from)
        free(d->snap[--d->snaps].data);
}

/* Later ones are gone, and so is what was not synced. */
void disk_revert(struct disk *d, uint64_t id)
{
    int i = disk_find(d, id);
    memcpy(d->data, d->snap[i].data, sizeof(d->data));
    memcpy(d->data_sure, d->snap[i].data, sizeof(d->data));
    disk_free_snaps(d, i + 1);
    while (d->data_log) {
        struct unsynced *u = d->data_log;
        d->data_log = u->next;
        free(u);
    }
    d->data_end = &d->data_log;
}
