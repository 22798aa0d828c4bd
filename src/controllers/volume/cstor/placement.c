/*
 * Which pools get the replicas of a volume. Pools are of the volume's cluster.
 *
 * A pool can be chosen when it is ONLINE or DEGRADED, takes writes, stays, has room, has no replica
 * of the volume, none that must be apart from it, and when no replica of the volume is on its node.
 *
 * Of those that can, one is taken after the other, each time the best: first, what it should be
 * apart from is not there; then its zone has the fewest replicas of the volume; then it is on the
 * node that is preferred; then it is ONLINE; then it has the most room left; then the fewest
 * replicas; then by name. Taking the best each time leaves nobody without a place who could have
 * one: all that a choice forbids to the next is its own node.
 *
 * Room: where promises must be kept (thick), what is free less what was promised and is not made
 * yet, and no more than the pool's size less all promises. Elsewhere anything that is free.
 */
#include "base/quantity.h"
#include "controllers/volume/cstor/cstor.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What can still be promised. */
static uint64_t room_of(const struct cstor_pool *p)
{
    uint64_t now = less(p->free, p->unmade), ever = less(p->total, p->promised);
    if (!p->thick)
        return p->free;
    return now < ever ? now : ever;
}

static const char *size_text(uint64_t bytes, char text[QUANTITY_TEXT_MAX])
{
    struct quantity q = quantity_from_int((int64_t)bytes, QUANTITY_BINARY_SI);
    return quantity_format(&q, text);
}

bool cstor_pool_holds(const struct cstor_pool *p, uint64_t more, bool already, struct str *why)
{
    char text[QUANTITY_TEXT_MAX];
    if (p->thick ? room_of(p) >= more : p->free > 0 || (already && !more))
        return true;
    str_appendf(
        why, p->thick ? "pool %s has %s that are neither used nor promised" : "pool %s has %s free",
        p->name, size_text(room_of(p), text));
    return false;
}

static bool is_named(const struct cstor_wish *w, const char *pool)
{
    for (size_t i = 0; i < w->named_n; i++) {
        if (str_eq(w->named[i], pool))
            return true;
    }
    return !w->named;
}

/* Why the pool cannot be chosen, whatever else is; false: it can. */
static bool is_out(const struct cstor_wish *w, const struct cstor_pool *p, struct str *why)
{
    const char *phase = *p->phase ? p->phase : "not there yet";
    if (!str_eq(p->phase, "ONLINE") && !str_eq(p->phase, "DEGRADED"))
        str_appendf(why, "pool %s is %s", p->name, phase);
    else if (p->gone)
        str_appendf(why, "pool %s is on its way out", p->name);
    else if (p->read_only)
        str_appendf(why, "pool %s is read-only", p->name);
    else if (p->apart)
        str_appendf(why, "pool %s has a replica of a volume with the same " API_CSTOR_APART,
                    p->name);
    else if (!cstor_pool_holds(p, w->size, false, why))
        return true;
    return why->len > 0;
}

bool cstor_pool_is_fit(const struct cstor_wish *wish, const struct cstor_pool *pool)
{
    _cleanup_(str_done) struct str why = {0};
    return !pool->used && is_named(wish, pool->name) && !is_out(wish, pool, &why);
}

struct choice {
    const struct cstor_wish *wish;
    const struct cstor_pool *pools;
    size_t n;
    bool *taken;
};

static unsigned in_zone(const struct choice *c, const char *zone)
{
    unsigned count = 0;
    for (size_t i = 0; i < c->n; i++)
        count += (c->taken[i] || c->pools[i].mine) && str_eq(c->pools[i].zone, zone);
    return count;
}

static bool node_is_used(const struct choice *c, const char *node)
{
    for (size_t i = 0; i < c->n; i++) {
        if ((c->taken[i] || c->pools[i].mine) && str_eq(c->pools[i].node, node))
            return true;
    }
    return false;
}

/* Less than 0: a is better. */
static int compare_pools(const struct choice *c, const struct cstor_pool *a,
                         const struct cstor_pool *b)
{
    if (a->rather_apart != b->rather_apart)
        return a->rather_apart - b->rather_apart;
    unsigned za = in_zone(c, a->zone), zb = in_zone(c, b->zone);
    if (za != zb)
        return za < zb ? -1 : 1;
    bool na = str_eq(a->node, c->wish->near), nb = str_eq(b->node, c->wish->near);
    if (na != nb)
        return nb - na;
    if (a->online != b->online)
        return b->online - a->online;
    if (room_of(a) != room_of(b))
        return room_of(a) > room_of(b) ? -1 : 1;
    if (a->replicas != b->replicas)
        return a->replicas < b->replicas ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The best that is left; -1: none is. */
static ssize_t choose_one(const struct choice *c)
{
    ssize_t best = -1;
    for (size_t i = 0; i < c->n; i++) {
        _cleanup_(str_done) struct str why = {0};
        const struct cstor_pool *p = &c->pools[i];
        if (c->taken[i] || p->used || !is_named(c->wish, p->name) || node_is_used(c, p->node) ||
            is_out(c->wish, p, &why))
            continue;
        if (best < 0 || compare_pools(c, p, &c->pools[best]) < 0)
            best = (ssize_t)i;
    }
    return best;
}

static int explain(const struct choice *c, unsigned wanted, unsigned found, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    for (size_t i = 0; i < c->n && text.len < 300; i++) {
        const struct cstor_pool *p = &c->pools[i];
        _cleanup_(str_done) struct str why = {0};
        if (c->taken[i] || p->mine || !is_named(c->wish, p->name))
            continue;
        if (p->used)
            str_appendf(&why, "pool %s has a replica that is leaving", p->name);
        else if (!is_out(c->wish, p, &why))
            str_appendf(&why, "pool %s is on node %s, which has a replica", p->name, p->node);
        str_appendf(&text, "; %s", str_get(&why));
    }
    return err_set(e, ERR_RESOURCE_EXHAUSTED, VOLUME_NO_ROOM,
                   "not enough pools are available of provided CSPC \"%s\": %u more %s of %s %s "
                   "wanted, and %u can be placed%s",
                   c->wish->cluster, wanted, wanted == 1 ? "replica" : "replicas",
                   c->wish->capacity, wanted == 1 ? "is" : "are", found,
                   text.len ? str_get(&text) : "; it has no other pools");
}

int cstor_place(const struct cstor_wish *wish, const struct cstor_pool *pools, size_t n,
                unsigned wanted, size_t *ret_chosen, struct err *e)
{
    _cleanup_free_ bool *taken = mem_zalloc((n + 1) * sizeof(bool));
    const struct choice c = {.wish = wish, .pools = pools, .n = n, .taken = taken};
    for (unsigned found = 0; found < wanted; found++) {
        ssize_t best = choose_one(&c);
        if (best < 0)
            return explain(&c, wanted, found, e);
        taken[best] = true;
        ret_chosen[found] = (size_t)best;
    }
    return 0;
}
