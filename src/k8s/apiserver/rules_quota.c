/*
 * ResourceQuotas at admission: what a namespace uses never exceeds a limit, however many write at
 * the same time.
 *
 * From the moment a write is found to fit until it is visible in the store (or has failed) it has a
 * reservation. Whoever checks adds up, under one lock, for each key the larger of what is stored
 * and what is reserved: so a write counts from its check on, and counts once while it is both
 * reserved and stored already.
 */
#include "base/map.h"
#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/quota.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"

struct rules_reservation {
    struct list_link link;
    const struct api_kind *kind;
    char *key;
    json_t *object; /* as it will be */
};

/* One limit that the write would exceed. */
struct excess {
    const char *name; /* in the quota */
    char requested[QUANTITY_TEXT_MAX], used[QUANTITY_TEXT_MAX], limited[QUANTITY_TEXT_MAX];
};

struct check {
    struct apiserver_registry *g;
    const struct apiserver_admission *a;
    char *prefix;               /* "namespace/" */
    struct apiserver_list list; /* objects of the kind */
    bool listed;
    VEC(struct excess) excesses;
};

/* The most that is reserved for a key; *ret_any: something is. */
static __int128 reserved(const struct check *c, const struct quota_term *t, const char *key,
                         bool *ret_any)
{
    __int128 most = 0;
    *ret_any = false;
    list_for_each(&c->g->rules->reservations, r, struct rules_reservation, link) {
        if (r->kind != c->a->request->kind || !str_eq(r->key, key))
            continue;
        __int128 amount = quota_term_amount(t, r->object);
        most = amount > most ? amount : most;
        *ret_any = true;
    }
    return most;
}

static __int128 stored_amount(const struct quota_term *t, const struct apiserver_object *o)
{
    json_auto_t *object =
        quota_term_needs_object(t) ? json_parse(o->bytes, o->size, NULL, NULL) : json_object();
    return quota_term_amount(t, object);
}

/* What the namespace uses of a term, with what is about to be written. */
static __int128 used(struct check *c, const struct quota_term *t)
{
    __int128 sum = 0;
    if (!c->listed) {
        _cleanup_(str_done) struct str collection = {0};
        struct apiserver_list_options here = {.prefix = c->prefix};
        apiserver_collection(c->a->request->kind, &collection);
        apiserver_store_list(c->g->store, str_get(&collection), &here, &c->list, NULL);
        c->listed = true;
    }
    struct map stored = {0};
    vec_for_each(&c->list.objects, o) {
        bool any;
        __int128 amount = stored_amount(t, *o), later = reserved(c, t, (*o)->key, &any);
        sum += later > amount ? later : amount;
        if (any)
            map_set(&stored, (*o)->key, *o);
    }
    list_for_each(&c->g->rules->reservations, r, struct rules_reservation, link) {
        if (r->kind == c->a->request->kind && str_starts_with(r->key, c->prefix) &&
            !map_has(&stored, r->key))
            sum += quota_term_amount(t, r->object);
    }
    map_done(&stored);
    return sum;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct excess *)a)->name, ((const struct excess *)b)->name);
}

static void append_amounts(struct str *out, const struct check *c, const char *word, size_t offset)
{
    str_appendf(out, ", %s: ", word);
    for (size_t i = 0; i < c->excesses.len; i++)
        str_appendf(out, "%s%s=%s", i ? "," : "", c->excesses.p[i].name,
                    (const char *)&c->excesses.p[i] + offset);
}

static int refuse(struct check *c, const json_t *quota, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    qsort(c->excesses.p, c->excesses.len, sizeof(*c->excesses.p), by_name);
    append_amounts(&text, c, "requested", offsetof(struct excess, requested));
    append_amounts(&text, c, "used", offsetof(struct excess, used));
    append_amounts(&text, c, "limited", offsetof(struct excess, limited));
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "exceeded quota: %s%s",
                   json_text(quota, "metadata", "name"), str_get(&text));
}

/* Of whatever version. */
static bool is_same(const struct api_kind *a, const struct api_kind *b)
{
    return a == b || (str_eq(a->plural, b->plural) &&
                      str_eq(api_kind_canonical(a)->group, api_kind_canonical(b)->group));
}

static int check_quota(struct check *c, const json_t *quota, struct err *e)
{
    const char *name;
    json_t *limit;
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set = apiserver_kinds_get(c->g);
    json_object_foreach((json_t *)json_at(quota, "spec", "hard"), name, limit) {
        struct quota_term term;
        if (!quota_term_of(set->all, quota, name, &term) ||
            !is_same(term.kind, c->a->request->kind))
            continue;
        __int128 more =
            quota_term_amount(&term, c->a->object) - quota_term_amount(&term, c->a->old);
        if (more <= 0)
            continue;
        __int128 before = used(c, &term);
        if (before + more <= quota_limit(limit))
            continue;
        struct excess x = {.name = name};
        quota_amount_text(more, limit, x.requested);
        quota_amount_text(before, limit, x.used);
        quota_amount_text(quota_limit(limit), limit, x.limited);
        vec_push(&c->excesses, x);
    }
    return c->excesses.len ? refuse(c, quota, e) : 0;
}

static void reserve(struct apiserver_admission *a)
{
    struct rules_reservation *r = NEW(struct rules_reservation);
    r->kind = a->request->kind;
    r->key = mem_printf("%s/%s", a->request->namespace, rules_name(a));
    r->object = json_deep_copy(a->object); /* the writer's own changes on */
    list_push(&a->registry->rules->reservations, &r->link);
    a->reservation = r;
}

/* New objects of every kind, and claims that grow. */
static bool is_counted(const struct apiserver_admission *a)
{
    return a->registry->rules && a->request->namespace &&
           !(a->request->kind->flags & API_CLUSTER_SCOPED) &&
           (a->operation == APISERVER_OP_CREATE ||
            (a->operation == APISERVER_OP_UPDATE &&
             rules_concern(a, &api_persistent_volume_claim)));
}

int rules_quota_hold(struct apiserver_admission *a, struct err *e)
{
    if (!is_counted(a))
        return 0;
    struct apiserver_list quotas;
    int status = 0;
    if (quota_list(a->registry, a->request->namespace, &quotas)) {
        struct check c = {
            .g = a->registry, .a = a, .prefix = mem_printf("%s/", a->request->namespace)};
        pthread_mutex_lock(&a->registry->rules->lock);
        vec_for_each(&quotas.objects, o) {
            json_auto_t *quota = json_parse((*o)->bytes, (*o)->size, NULL, NULL);
            if (status == 0)
                status = check_quota(&c, quota, e);
        }
        if (status == 0 && !a->request->dry_run)
            reserve(a);
        pthread_mutex_unlock(&a->registry->rules->lock);
        if (c.listed)
            apiserver_list_done(&c.list);
        vec_done(&c.excesses);
        free(c.prefix);
    }
    apiserver_list_done(&quotas);
    return status;
}

void rules_quota_release(struct apiserver_admission *a)
{
    struct rules_reservation *r = a->reservation;
    if (!r)
        return;
    pthread_mutex_lock(&a->registry->rules->lock);
    list_unlink(&r->link);
    pthread_mutex_unlock(&a->registry->rules->lock);
    json_decref(r->object);
    free(r->key);
    free(r);
    a->reservation = NULL;
}
