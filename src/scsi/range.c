/*
 * COMPARE AND WRITE, ORWRITE and WRITE ATOMIC are exclusive: from their first I/O to their last
 * nothing else touches their range. They wait until what overlaps has ended, and what overlaps with
 * them waits until they have. Those that wait do so in order: nobody passes somebody who waits for
 * the same blocks, so nobody waits for ever.
 */
#include "scsi/range.h"

static bool overlap(const struct scsi_task *a, const struct scsi_task *b)
{
    return a->lba < b->lba + b->blocks && b->lba < a->lba + a->blocks;
}

static bool in_the_way(const struct scsi_task *t, const struct scsi_task *other)
{
    return (t->exclusive || other->exclusive) && overlap(t, other);
}

/* Whether a task that runs, or one that waits and came before, is in its way. */
static bool is_blocked(struct scsi_task *t)
{
    list_for_each(&t->unit->running, it, struct scsi_task, link) {
        if (in_the_way(t, it))
            return true;
    }
    list_for_each(&t->unit->waiting, it, struct scsi_task, link) {
        if (it == t)
            break;
        if (in_the_way(t, it))
            return true;
    }
    return false;
}

bool scsi_range_claim_slowly(struct scsi_task *t)
{
    t->waiting = is_blocked(t);
    t->unit->exclusives += t->exclusive;
    list_push(t->waiting ? &t->unit->waiting : &t->unit->running, &t->link);
    return !t->waiting;
}

static struct scsi_task *first_free(struct scsi_unit *u)
{
    list_for_each(&u->waiting, it, struct scsi_task, link) {
        if (!is_blocked(it))
            return it;
    }
    return NULL;
}

void scsi_range_wake(struct scsi_unit *u)
{
    if (u->waking)
        return; /* the loop below sees it */
    u->waking = true;
    for (struct scsi_task *t; (t = first_free(u));) {
        list_unlink(&t->link);
        t->waiting = false;
        list_push(&u->running, &t->link);
        t->command->run(t);
    }
    u->waking = false;
}
