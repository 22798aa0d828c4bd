/*
 * What is wanted of the pool: from the CStorPoolInstance, its BlockDevices and their claims, to one
 * structure that the engine can use without looking at anything else. A function of what it is given.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/rfc3339.h"
#include "base/str.h"
#include "kube/condition.h"
#include "pool/impl.h"

static bool is_announced(const struct pool_maker *m, const char *name)
{
    vec_for_each(&m->its.status.adding, it) {
        if (str_eq(*it, name))
            return true;
    }
    return false;
}

static int make_group(struct pool_maker *m, const struct raid_group *group, struct pool_group *g,
                      struct pool_device **next, struct err *e)
{
    static const char *const types[] = {"stripe", "mirror", "raidz", "raidz2", "raidz3"};
    static const enum zpool_role roles[] = {
        [API_RAID_DATA] = ZPOOL_ROLE_DATA,
        [API_RAID_WRITE_CACHE] = ZPOOL_ROLE_LOG,
        [API_RAID_READ_CACHE] = ZPOOL_ROLE_CACHE,
        [API_RAID_SPARE] = ZPOOL_ROLE_SPARE,
    };
    const char *type = raid_group_type(group, &m->its.spec.config);
    unsigned t = 0;
    while (type && t < ARRAY_SIZE(types) && !str_eq(type, types[t]))
        t++;
    if (!type || t == ARRAY_SIZE(types))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSpec",
                       "a group has the type \"%s\": write stripe, mirror, raidz or raidz2",
                       type ? type : "");
    g->type = (enum zpool_group_type)t;
    g->role = roles[raid_group_role(group)];
    g->devices = *next;
    str_appendf(&m->w->text, "; %u %u", (unsigned)g->type, (unsigned)g->role);
    vec_for_each(&group->devices, it) {
        if (!*it->name)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSpec", "a device has no name");
        struct pool_device *d = (*next)++;
        *d = pool_make_device(m, it->name);
        d->role = g->role;
        d->announced = pool_is_aux(d) && is_announced(m, it->name);
        str_append(&m->w->text, d->announced ? " announced" : "");
        g->n_devices++;
    }
    return 0;
}

static int make_groups(struct pool_maker *m, struct err *e)
{
    struct pool_wish *w = m->w;
    size_t n = 0;
    vec_for_each(&m->its.spec.groups, group)
        n += group->devices.len;
    w->groups = arena_alloc(&w->arena, (m->its.spec.groups.len + 1) * sizeof(*w->groups));
    w->devices = arena_alloc(&w->arena, (n + 1) * sizeof(*w->devices));
    w->n_devices = n;
    struct pool_device *next = w->devices;
    vec_for_each(&m->its.spec.groups, group) {
        if (make_group(m, group, &w->groups[w->n_groups++], &next, e) < 0)
            return -1;
    }
    return n ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "InvalidSpec", "the pool has no devices");
}

static void add_other(struct pool_maker *m, const char *name)
{
    struct pool_wish *w = m->w;
    if (*name && !pool_wish_named(w, name))
        w->others[w->n_others++] = pool_make_device(m, name);
}

/* Devices that are replaced, and those that the object remembers: they may still be in the pool. */
static void make_others(struct pool_maker *m)
{
    struct pool_wish *w = m->w;
    w->others =
        arena_alloc(&w->arena, (w->n_devices + m->its.status.devices.len + 1) * sizeof(*w->others));
    str_append(&w->text, "; others");
    for (size_t i = 0; i < w->n_devices; i++)
        add_other(m, w->devices[i].predecessor);
    vec_for_each(&m->its.status.devices, it)
        add_other(m, it->name);
}

static int64_t time_of(const char *stamp)
{
    struct timespec t;
    return stamp && rfc3339_parse(stamp, &t, NULL) == 0 ? t.tv_sec : 0;
}

static void make_requests(struct pool_maker *m)
{
    const struct {
        const char *annotation, *answered;
    } kinds[POOL_REQUESTS] = {[POOL_SCRUB] = {API_POOL_SCRUB, m->its.status.scrub.request},
                              [POOL_CLEAR] = {API_POOL_CLEAR, m->its.status.clear.request}};
    for (size_t i = 0; i < POOL_REQUESTS; i++) {
        const char *request = kube_annotation(m->its.json, kinds[i].annotation);
        m->w->request[i] =
            arena_printf(&m->w->arena, "%.*s", POOL_REQUEST_MAX - 1, request ? request : "");
        m->w->answered[i] = arena_strdup(&m->w->arena, kinds[i].answered);
        str_appendf(&m->w->text, "; %s %s", m->w->request[i], m->w->answered[i]);
    }
}

static void make_scrubs(struct pool_maker *m, const struct pool_options *o)
{
    struct pool_wish *w = m->w;
    w->scrub_started = time_of(m->its.status.scrub.start_time);
    w->cleared = time_of(m->its.status.clear.time);
    int64_t since = w->scrub_started;
    if (!since)
        since = time_of(json_str(json_object_get(m->its.json, "metadata"), "creationTimestamp"));
    w->scrub_due = o->scrub_ns ? since + o->scrub_ns / CLOCK_SECOND : 0;
}

/* The UID of its cluster; NULL: it has none. */
static const char *cluster_uid(const json_t *object)
{
    size_t i;
    json_t *owner;
    json_array_foreach((json_t *)json_at(object, "metadata", "ownerReferences"), i, owner) {
        const char *kind = json_str(owner, "kind"), *uid = json_str(owner, "uid");
        if (kind && str_eq(kind, "CStorPoolCluster"))
            return uid ? uid : "";
    }
    return NULL;
}

bool pool_is_doomed(const json_t *object)
{
    if (kube_annotation(object, API_POOL_FORGOTTEN))
        return false;
    return kube_annotation(object, API_POOL_DESTROY) || !cluster_uid(object);
}

static void make_settings(struct pool_maker *m)
{
    struct pool_wish *w = m->w;
    const json_t *object = m->its.json;
    const struct pool_config *config = &m->its.spec.config;
    const char *existing = kube_annotation(object, API_POOL_EXISTING);
    const char *paused = kube_annotation(object, API_POOL_PAUSED);
    if (!paused)
        paused = kube_label(object, API_POOL_PAUSED);
    w->about = json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", json_str(object, "apiVersion"),
                         "kind", json_str(object, "kind"), "namespace", kube_namespace(object),
                         "name", kube_name(object), "uid", kube_uid(object));
    w->name = existing && *existing ? arena_strdup(&w->arena, existing)
                                    : arena_printf(&w->arena, "cstor-%s", kube_uid(object));
    const char *cluster = cluster_uid(object);
    w->cluster_name = cluster && *cluster ? arena_printf(&w->arena, "cstor-%s", cluster) : "";
    w->existing = existing && *existing;
    const char *noted = kube_annotation(object, API_POOL_GUID);
    w->guid = pool_number(*m->its.status.guid || !noted ? m->its.status.guid : noted);
    w->compression = *config->compression ? arena_strdup(&w->arena, config->compression) : "off";
    int64_t percent = config->read_only_percent;
    w->read_only_percent = percent > 0 && percent < 100 ? (unsigned)percent : 0;
    int64_t used = api_quantity_int(m->its.status.capacity.used);
    int64_t total = api_quantity_int(m->its.status.capacity.total);
    w->used_percent =
        pool_used_percent((uint64_t)used, total > used ? (uint64_t)(total - used) : 0);
    w->was_read_only = m->its.status.read_only;
    w->guarded = kube_finalizer_has(object, API_POOL_FINALIZER);
    w->destroy = kube_deleting(object) && pool_is_doomed(object);
    w->paused = paused && str_eq(paused, "true");
}

struct pool_wish *pool_wish_new(const json_t *object, const struct pool_options *o,
                                const struct pool_lookup *lookup, struct err *e)
{
    struct pool_wish *w = NEW(struct pool_wish);
    atomic_init(&w->refs, 1);
    struct pool_maker m = {w, pool_instance_of(object, &w->arena), lookup};
    make_settings(&m);
    make_requests(&m);
    make_scrubs(&m, o);
    if (make_groups(&m, e) < 0) {
        pool_wish_unref(w);
        return NULL;
    }
    make_others(&m);
    str_appendf(&w->text, "; %s %s %llu %s %u %lld %d%d%d", w->name, w->cluster_name,
                (unsigned long long)w->guid, w->compression, w->read_only_percent,
                (long long)w->scrub_due, w->guarded, w->destroy, w->paused);
    return w;
}

struct pool_wish *pool_wish_ref(struct pool_wish *w)
{
    atomic_fetch_add(&w->refs, 1);
    return w;
}

void pool_wish_unref(struct pool_wish *w)
{
    if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    json_decref(w->about);
    str_done(&w->text);
    arena_done(&w->arena);
    free(w);
}

const struct pool_device *pool_wish_named(const struct pool_wish *w, const char *name)
{
    for (size_t i = 0; i < w->n_devices; i++)
        if (w->devices[i].name && str_eq(w->devices[i].name, name))
            return &w->devices[i];
    for (size_t i = 0; i < w->n_others; i++)
        if (str_eq(w->others[i].name, name))
            return &w->others[i];
    return NULL;
}
