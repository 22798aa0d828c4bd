/*
 * Initiators, and what they must be told.
 *
 * A write that was acknowledged and not flushed may be lost when a quorum of replicas loses its memory at once. That is
 * allowed; silence is not: the next flush of every initiator that had such a write fails, once. The view remembers who
 * has to be told, so it outlives the target:
 *
 *     first write ──> in the view, committed ──> writes ──memory lost──> owed ──a flush fails──> told: not owed
 *                            ^                                                                      │
 *                            └── logged out with nothing to flush: leaves the view                  v
 *
 * Invariants:
 *   - A write of an initiator is sent only while a committed view has that initiator.
 *   - Who is owed becomes so in the first view of a new reign, and no replica counts as intact in that reign before it has
 *     that view. So a later target that finds a quorum with its memory whole finds that view, too.
 *   - An initiator that was told is noted as such afterwards; a crash in between tells it twice.
 *
 * A target that lived through the loss knows the last position that each initiator was told; one that has not served yet knows
 * nothing of what others have told, and takes everybody whom the view remembers.
 */
#include <errno.h>

#include "repl/target_impl.h"

static int find_client(const struct repl_clients *k, uint64_t id)
{
    for (int i = 0; i < k->n; i++)
        if (k->at[i].id == id)
            return i;
    return -1;
}

/* What is remembered of it beside the view; a new one takes the place of one that the view does not have. */
static struct client *client_of(struct repl_target *t, uint64_t id)
{
    struct client *spare = NULL;
    for (int i = 0; i < REPL_CLIENTS; i++) {
        struct client *c = &t->client[i];
        if (c->id == id)
            return c;
        if (!c->id || find_client(&t->view.clients, c->id) < 0)
            spare = c;
    }
    if (!spare)
        return NULL;
    *spare = (struct client){.id = id};
    return spare;
}

bool client_known(struct repl_target *t, uint64_t id)
{
    if (!id || GUARD(67, find_client(&t->view.clients, id) >= 0))
        return true;
    t->new_client = id;
    t->changed = true;
    return false;
}

void client_wrote(struct repl_target *t, uint64_t id, uint64_t pos)
{
    struct client *c = id ? client_of(t, id) : NULL;
    if (c)
        c->wrote = pos;
}

int client_flushed(struct repl_target *t, uint64_t id, uint64_t pos)
{
    int i = id ? find_client(&t->view.clients, id) : -1;
    struct client *c = id ? client_of(t, id) : NULL;
    if (!id) {
        bool fails = t->flush_fails;
        t->flush_fails = false;
        return fails ? -EIO : 0;
    }
    if (c && c->flushed < pos)
        c->flushed = pos;
    if (i < 0 || !t->view.clients.at[i].owed || (c && c->told))
        return 0;
    if (c)
        c->told = true;
    t->changed = true;
    return GUARD(68, false) ? 0 : -EIO;
}

void client_elected(struct repl_target *t, uint64_t pos, bool doubt)
{
    bool known = t->has_served, lost = known && t->acked > pos;
    t->flush_fails |= lost;
    for (int i = 0; i < t->view.clients.n; i++) {
        struct client *c = client_of(t, t->view.clients.at[i].id);
        bool had = !c || (c->wrote > pos && c->wrote > c->flushed);
        if (known ? lost && had : doubt)
            t->view.clients.at[i].owed = true;
        if (c && !known)
            c->wrote = repl_pos(t->epoch, 0); /* what it wrote to another target */
    }
    for (int i = 0; i < REPL_CLIENTS; i++)
        t->client[i].told = false;
}

/* Room for one more: of those that need not be told, the one that was there longest. */
static void make_room(struct repl_clients *k)
{
    int out = 0;
    while (out < k->n && k->at[out].owed)
        out++;
    out = out < k->n ? out : 0;
    k->n--;
    memmove(&k->at[out], &k->at[out + 1], sizeof(k->at[0]) * (size_t)(k->n - out));
    k->at[k->n].id = 0;
    k->at[k->n].owed = false;
}

static bool may_leave(struct repl_target *t, int i)
{
    const struct client *c = client_of(t, t->view.clients.at[i].id);
    return c && c->gone && !t->view.clients.at[i].owed && c->wrote <= c->flushed;
}

void client_change(struct repl_target *t, struct repl_view *v)
{
    struct repl_clients *k = &v->clients, old = v->clients;
    *k = (struct repl_clients){0};
    for (int i = 0; i < old.n; i++) {
        const struct client *c = client_of(t, old.at[i].id);
        if (may_leave(t, i))
            continue;
        k->at[k->n] = old.at[i];
        k->at[k->n++].owed &= !(c && c->told);
    }
    if (!t->new_client || find_client(k, t->new_client) >= 0)
        return;
    if (k->n == REPL_CLIENTS)
        make_room(k);
    k->at[k->n++].id = t->new_client;
    t->new_client = 0;
}

void repl_target_client(struct repl_target *t, uint64_t id, bool gone)
{
    struct client *c = client_of(t, id);
    if (!c || c->gone == gone)
        return;
    c->gone = gone;
    t->changed = true;
}
