/*
 * Who may do what (reserve.h), and RESERVE(6) and RELEASE(6).
 */
#include "scsi/impl.h"

int scsi_reserve_init(struct scsi_reserve *r, const char *state_dir, const char *volume,
                      struct err *e)
{
    *r = (struct scsi_reserve){
        .pr = NEW(struct scsi_pr),
        .next = NEW(struct scsi_pr),
        .path = state_dir ? mem_printf("%s/reservations", state_dir) : NULL,
        .volume = mem_strdup(volume),
    };
    if (!r->path || scsi_pr_load(r, r->pr, e) == 0)
        return 0;
    scsi_reserve_done(r);
    return -1;
}

void scsi_reserve_done(struct scsi_reserve *r)
{
    free(r->pr);
    free(r->next);
    free(r->path);
    free(r->volume);
}

bool scsi_reserve_any(const struct scsi_reserve *r)
{
    return r->holder || r->pr->type != PR_NONE;
}

/* ---- persistent reservations: questions ---- */

static bool is_port(const struct scsi_port *a, const struct scsi_port *b)
{
    return a->target == b->target && strcmp(a->initiator, b->initiator) == 0;
}

int scsi_pr_find(const struct scsi_pr *pr, const struct scsi_port *port)
{
    for (unsigned i = 0; i < pr->count; i++) {
        if (is_port(&pr->registrations[i].port, port))
            return (int)i;
    }
    return -1;
}

bool scsi_pr_is_all(enum scsi_pr_type type)
{
    return type == PR_WRITE_EXCLUSIVE_ALL || type == PR_EXCLUSIVE_ALL;
}

bool scsi_pr_holds(const struct scsi_pr *pr, int registration)
{
    return pr->type != PR_NONE && registration >= 0 &&
           (scsi_pr_is_all(pr->type) || pr->holder == registration);
}

static bool pr_allows(const struct scsi_pr *pr, const struct scsi_nexus *n, enum scsi_guard guard)
{
    if (pr->type == PR_NONE || guard == GUARD_FREE || guard == GUARD_PUBLIC || guard == GUARD_SELF)
        return true;
    int mine = scsi_pr_find(pr, &n->port);
    switch (pr->type) {
    case PR_WRITE_EXCLUSIVE:
        return guard == GUARD_READ || scsi_pr_holds(pr, mine);
    case PR_EXCLUSIVE:
        return scsi_pr_holds(pr, mine);
    case PR_WRITE_EXCLUSIVE_REGISTRANTS:
    case PR_WRITE_EXCLUSIVE_ALL:
        return guard == GUARD_READ || mine >= 0;
    default:
        return mine >= 0;
    }
}

bool scsi_reserve_allows(struct scsi_task *t, enum scsi_guard guard)
{
    const struct scsi_reserve *r = &t->unit->reserve;
    if (r->holder && r->holder != t->nexus && guard != GUARD_FREE)
        return false;
    return pr_allows(r->pr, t->nexus, guard);
}

void scsi_reserve_nexus_lost(struct scsi_unit *u, struct scsi_nexus *n)
{
    if (u->reserve.holder == n)
        u->reserve.holder = NULL;
    scsi_unit_review(u);
}

void scsi_reserve_reset(struct scsi_unit *u)
{
    u->reserve.holder = NULL;
}

/* ---- SPC-2 ---- */

/*
 * Beside persistent reservations (CRH in REPORT CAPABILITIES): from a registered nexus, or the holder,
 * these do nothing and are GOOD; from others they conflict while there is any registration.
 */
static bool conflicts(struct scsi_task *t)
{
    const struct scsi_pr *pr = t->unit->reserve.pr;
    if (pr->count == 0 || scsi_pr_find(pr, &t->nexus->port) >= 0)
        return false;
    t->status = SCSI_RESERVATION_CONFLICT;
    scsi_finish(t);
    return true;
}

void scsi_run_reserve(struct scsi_task *t)
{
    struct scsi_reserve *r = &t->unit->reserve;
    if (conflicts(t))
        return;
    if (r->holder && r->holder != t->nexus) {
        t->status = SCSI_RESERVATION_CONFLICT;
        scsi_finish(t);
        return;
    }
    if (r->pr->count == 0)
        r->holder = t->nexus;
    scsi_unit_review(t->unit);
    scsi_good(t);
}

/* One who does not hold it releases nothing, and that is no error. */
void scsi_run_release(struct scsi_task *t)
{
    if (conflicts(t))
        return;
    scsi_reserve_nexus_lost(t->unit, t->nexus);
    scsi_good(t);
}
