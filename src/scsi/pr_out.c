/*
 * PERSISTENT RESERVE OUT. Each service action is a function that changes a copy of the state, or
 * refuses; commit() makes the copy the state, durably where it has to be, and then tells those who
 * lost something.
 */
#include <unistd.h>

#include "scsi/impl.h"

enum { LIST = 24, APTPL = 0x01, ALL_TG_PT = 0x04, SPEC_I_PT = 0x08, UNREG = 0x02 };

struct change {
    struct scsi_task *t;
    const uint8_t *list;
    const struct scsi_pr *old;
    struct scsi_pr *pr; /* the copy */
    int mine;           /* the nexus's registration, -1: none */
    uint64_t key, action_key;
    enum scsi_pr_type type;
    const struct scsi_port *me;
};

/* ---- refusals: the answer is set, and false returned ---- */

static bool conflict(struct change *c)
{
    c->t->status = SCSI_RESERVATION_CONFLICT;
    return false;
}

static bool bad_list(struct change *c, unsigned byte)
{
    scsi_sense_set(c->t, SENSE_BAD_LIST,
                   &(struct scsi_sense_more){.has_field = true, .field = (uint16_t)byte});
    return false;
}

/* ---- the copy ---- */

static void release(struct scsi_pr *pr)
{
    pr->type = PR_NONE;
    pr->holder = -1;
}

static void reserve(struct scsi_pr *pr, enum scsi_pr_type type, int holder)
{
    pr->type = type;
    pr->holder = scsi_pr_is_all(type) ? -1 : holder;
}

/* Takes a registration away, and the reservation with it where that hung on it. */
static void remove_at(struct scsi_pr *pr, unsigned i)
{
    if (pr->type != PR_NONE && (scsi_pr_is_all(pr->type) ? pr->count == 1 : pr->holder == (int)i))
        release(pr);
    memmove(&pr->registrations[i], &pr->registrations[i + 1],
            (pr->count - i - 1) * sizeof(pr->registrations[0]));
    pr->count--;
    if (pr->holder > (int)i)
        pr->holder--;
}

static bool add(struct change *c, const struct scsi_port *port, uint64_t key)
{
    if (c->pr->count == SCSI_REGISTRATIONS)
        return scsi_refuse(c->t, SENSE_NO_ROOM_FOR_KEYS);
    c->pr->registrations[c->pr->count++] = (struct scsi_registration){key, *port};
    return true;
}

static bool take_aptpl(struct change *c, uint8_t flags, unsigned byte)
{
    if (flags & APTPL && !c->t->unit->reserve.path)
        return bad_list(c, byte);
    c->pr->survives = flags & APTPL;
    return true;
}

/* ---- the actions ---- */

static bool set_key(struct change *c)
{
    if (c->list[20] & (SPEC_I_PT | ALL_TG_PT))
        return bad_list(c, 20);
    if (!take_aptpl(c, c->list[20], 20))
        return false;
    if (c->mine < 0)
        return !c->action_key || add(c, c->me, c->action_key);
    if (c->action_key)
        c->pr->registrations[c->mine].key = c->action_key;
    else
        remove_at(c->pr, (unsigned)c->mine);
    return true;
}

static bool act_register(struct change *c)
{
    if (c->key != (c->mine < 0 ? 0 : c->old->registrations[c->mine].key))
        return conflict(c);
    return set_key(c);
}

static bool act_reserve(struct change *c)
{
    if (c->old->type == PR_NONE)
        reserve(c->pr, c->type, c->mine);
    else if (!scsi_pr_holds(c->old, c->mine) || c->old->type != c->type)
        return conflict(c);
    return true;
}

static bool act_release(struct change *c)
{
    if (!scsi_pr_holds(c->old, c->mine))
        return true;
    if (c->old->type != c->type)
        return scsi_refuse(c->t, SENSE_BAD_RELEASE);
    release(c->pr);
    return true;
}

static bool act_clear(struct change *c)
{
    release(c->pr);
    c->pr->count = 0;
    return true;
}

/* Removes who has the key, but not the nexus that asks; how many there were. */
static unsigned remove_key(struct change *c, bool any, uint64_t key)
{
    unsigned found = 0;
    for (unsigned i = c->pr->count; i-- > 0;) {
        const struct scsi_registration *r = &c->pr->registrations[i];
        if (!any && r->key != key)
            continue;
        found++;
        if (scsi_pr_find(c->pr, c->me) != (int)i)
            remove_at(c->pr, i);
    }
    return found;
}

static bool act_preempt(struct change *c)
{
    const struct scsi_pr *old = c->old;
    bool all = scsi_pr_is_all(old->type);
    bool takes = old->type != PR_NONE &&
                 (all ? !c->action_key : old->registrations[old->holder].key == c->action_key);
    if (!takes && !c->action_key)
        return bad_list(c, 8);
    if (!remove_key(c, takes && all, c->action_key))
        return conflict(c);
    if (takes)
        reserve(c->pr, c->type, scsi_pr_find(c->pr, c->me));
    return true;
}

/* The port of a TransportID of iSCSI, with ISID; false: it is none. */
static bool take_transport(const uint8_t *p, size_t size, uint16_t target, struct scsi_port *ret)
{
    if (size < 24 || p[0] != 0x45 || be_get16(p + 2) + 4U != size)
        return false;
    size_t n = strnlen((const char *)p + 4, size - 4);
    if (!n || n == size - 4 || n >= sizeof(ret->initiator))
        return false;
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->initiator, p + 4, n);
    ret->target = target;
    return true;
}

/* The reservation goes to another nexus, which need not be there now. */
static bool act_move(struct change *c)
{
    struct scsi_port to;
    uint32_t size = be_get32(c->list + 20);
    if (!scsi_pr_holds(c->old, c->mine) || scsi_pr_is_all(c->old->type))
        return conflict(c);
    if (!c->action_key)
        return bad_list(c, 8);
    if (size != c->t->size - LIST)
        return scsi_refuse(c->t, SENSE_LIST_LENGTH);
    if (!take_transport(c->list + LIST, size, be_get16(c->list + 18), &to))
        return bad_list(c, LIST);
    if (scsi_pr_find(c->old, &to) == c->mine)
        return bad_list(c, LIST);
    if (!take_aptpl(c, c->list[17], 17))
        return false;
    int there = scsi_pr_find(c->pr, &to);
    if (there >= 0)
        c->pr->registrations[there].key = c->action_key;
    else if (!add(c, &to, c->action_key))
        return false;
    c->pr->holder = scsi_pr_find(c->pr, &to);
    if (c->list[17] & UNREG)
        remove_at(c->pr, (unsigned)c->mine);
    return true;
}

/* ---- what follows ---- */

static struct scsi_nexus *nexus_of(struct scsi_unit *u, const struct scsi_port *port)
{
    list_for_each(&u->nexuses, it, struct scsi_nexus, link) {
        if (it->port.target == port->target && strcmp(it->port.initiator, port->initiator) == 0)
            return it;
    }
    return NULL;
}

/*
 * Those who lost their registration are told, and where a reservation that registrants shared ended or
 * changed, those who are still registered.
 */
static void tell(struct change *c, const struct scsi_pr *old, const struct scsi_pr *now,
                 enum scsi_attention removed, bool abort_too)
{
    struct scsi_unit *u = c->t->unit;
    bool shared = old->type >= PR_WRITE_EXCLUSIVE_REGISTRANTS && old->type != now->type;
    for (unsigned i = 0; i < old->count; i++) {
        struct scsi_nexus *n = nexus_of(u, &old->registrations[i].port);
        if (!n || n == c->t->nexus)
            continue;
        if (scsi_pr_find(now, &n->port) >= 0) {
            n->attentions |= shared ? 1U << ATTENTION_RELEASED : 0;
            continue;
        }
        n->attentions |= 1U << removed;
        if (abort_too)
            scsi_nexus_abort(n);
    }
}

static bool commit(struct change *c)
{
    struct scsi_reserve *r = &c->t->unit->reserve;
    struct err e;
    if (c->pr->survives && scsi_pr_save(r, c->pr, &e) < 0)
        return scsi_refuse(c->t, SENSE_INTERNAL);
    if (!c->pr->survives && c->old->survives && unlink(r->path) < 0)
        return scsi_refuse(c->t, SENSE_INTERNAL);
    struct scsi_pr *old = r->pr;
    r->pr = c->pr;
    r->next = old;
    return true;
}

static const struct action {
    bool (*act)(struct change *c);
    bool registered; /* only with the key that the nexus has registered */
    bool typed;      /* the type in the CDB counts */
    bool counted;    /* makes a new generation */
    bool aborts;
    enum scsi_attention removed; /* what those are told whose registration it removes */
} actions[] = {
    {act_register, .counted = true},
    {act_reserve, .registered = true, .typed = true},
    {act_release, .registered = true, .typed = true},
    {act_clear, .registered = true, .counted = true, .removed = ATTENTION_PREEMPTED},
    {act_preempt, .registered = true, .typed = true, .counted = true,
     .removed = ATTENTION_REGISTRATIONS},
    {act_preempt, .registered = true, .typed = true, .counted = true, .aborts = true,
     .removed = ATTENTION_REGISTRATIONS},
    {set_key, .counted = true},
    {act_move, .registered = true, .counted = true},
};

static bool is_type(uint8_t type)
{
    return type == PR_WRITE_EXCLUSIVE || type == PR_EXCLUSIVE ||
           (type >= PR_WRITE_EXCLUSIVE_REGISTRANTS && type <= PR_EXCLUSIVE_ALL);
}

static bool change(struct change *c, const struct action *a)
{
    struct scsi_reserve *r = &c->t->unit->reserve;
    if (a->typed && (c->t->cdb[2] >> 4 || !is_type(c->t->cdb[2] & 0x0f)))
        return scsi_refuse_field(c->t, 2);
    if (a->registered && (c->mine < 0 || c->old->registrations[c->mine].key != c->key))
        return conflict(c);
    *c->pr = *c->old;
    if (!a->act(c) || !commit(c))
        return false;
    r->generation += a->counted;
    tell(c, r->next, r->pr, a->removed, a->aborts);
    scsi_unit_review(c->t->unit);
    return true;
}

void scsi_run_pr_out(struct scsi_task *t)
{
    struct scsi_reserve *r = &t->unit->reserve;
    bool moves = actions[t->command->action].act == act_move;
    if (r->holder) { /* by RESERVE(6): SPC-2 and persistent reservations exclude each other */
        t->status = SCSI_RESERVATION_CONFLICT;
        scsi_finish(t);
        return;
    }
    const uint8_t *list = scsi_list(t, LIST);
    if (!list)
        return;
    if (!moves && t->size != LIST) {
        scsi_fail(t, SENSE_LIST_LENGTH);
        return;
    }
    struct change c = {
        .t = t,
        .list = list,
        .old = r->pr,
        .pr = r->next,
        .mine = scsi_pr_find(r->pr, &t->nexus->port),
        .key = be_get64(list),
        .action_key = be_get64(list + 8),
        .type = (enum scsi_pr_type)(t->cdb[2] & 0x0f),
        .me = &t->nexus->port,
    };
    if (change(&c, &actions[t->command->action]))
        t->status = SCSI_GOOD;
    scsi_finish(t);
}
