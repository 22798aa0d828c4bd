/*
 * Ranges that tasks hold while they run.
 */
#pragma once

#include "scsi/impl.h"

bool scsi_range_claim_slowly(struct scsi_task *t);
/* Runs those that waited for what was released. */
void scsi_range_wake(struct scsi_unit *u);

/* False: it waits, and is run once nothing is in its way. */
static inline bool scsi_range_claim(struct scsi_task *t)
{
    if (__builtin_expect(t->exclusive || t->unit->exclusives, 0))
        return scsi_range_claim_slowly(t);
    list_push(&t->unit->running, &t->link);
    return true;
}

static inline void scsi_range_release(struct scsi_task *t)
{
    if (__builtin_expect(t->exclusive && list_is_linked(&t->link), 0))
        t->unit->exclusives--;
    list_unlink(&t->link);
    t->waiting = false;
}
