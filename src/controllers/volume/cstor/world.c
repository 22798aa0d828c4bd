/*
 * What there is: the pools of a volume's cluster, the volume's replicas, and what is promised.
 *
 * A cache does not have at once what was just written, and several volumes are placed side by side.
 * So what is about to be made is noted here, and counts until the cache has it, or for half a
 * minute.
 */
#include <inttypes.h>

#include "api/normalize.h"
#include "api/report.h"
#include "base/be.h"
#include "base/rfc3339.h"
#include "base/uuid.h"
#include "controllers/volume/cstor/cstor.h"
#include "kinds/pool.h"
#include "kinds/pool_names.h"

static const int64_t RECENT = 30 * CLOCK_SECOND;

char *cstor_replica_id(const char *volume_uid, const char *pool_uid)
{
    _cleanup_free_ char *name = mem_printf("%s/%s", volume_uid, pool_uid);
    const struct uuid hash = uuid_of_name(name);
    uint64_t id = be_get64(hash.bytes);
    return mem_printf("%" PRIu64, id ? id : 1);
}

/* Collections. */

static void index_label(const json_t *object, const char *label, struct kube_index_values *out)
{
    const char *value = kube_label(object, label);
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(object), value ? value : "");
    kube_index_add(out, key);
}

static void by_cluster(const json_t *pool, struct kube_index_values *out)
{
    index_label(pool, API_POOL_CLUSTER, out);
}

static void by_volume(const json_t *replica, struct kube_index_values *out)
{
    index_label(replica, API_CSTOR_OF_VOLUME, out);
}

static void by_pool(const json_t *replica, struct kube_index_values *out)
{
    index_label(replica, API_POOL_OF_REPLICA, out);
}

void cstor_follow(struct volume_controller *v, struct kube_manager *m)
{
    static const struct kube_index pools = {"volumes cluster", by_cluster},
                                   of_volume = {"volumes volume", by_volume},
                                   of_pool = {"volumes pool", by_pool};
    kube_groups_init(&v->pools, m, "openebs.io/v1alpha1", "cstor.openebs.io/v1",
                     "CStorPoolInstance");
    kube_groups_add_index(&v->pools, &pools);
    v->replicas.r = kube_resource("cstor.openebs.io/v1", "CStorVolumeReplica");
    v->replicas.informer = kube_manager_informer(m, v->replicas.r, NULL, NULL, NULL);
    kube_informer_add_index(v->replicas.informer, &of_volume);
    kube_informer_add_index(v->replicas.informer, &of_pool);
}

static bool text_changed(const json_t *a, const json_t *b, const char *part, const char *key)
{
    return !str_eq(volume_text(a, part, key), volume_text(b, part, key));
}

static bool pool_matters(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before || !after || kube_deleting(before) != kube_deleting(after) ||
           text_changed(before, after, "status", "phase") ||
           !json_equal(json_at(before, "metadata", "annotations"),
                       json_at(after, "metadata", "annotations")) ||
           json_is_true(json_at(before, "status", "readOnly")) !=
               json_is_true(json_at(after, "status", "readOnly"));
}

static bool replica_matters(const struct kube_object *old, const struct kube_object *now)
{
    json_auto_t *before = old ? kube_object_json(old) : NULL,
                *after = now ? kube_object_json(now) : NULL;
    return !before || !after || kube_deleting(before) != kube_deleting(after) ||
           text_changed(before, after, "status", "phase") ||
           !json_equal(json_object_get(before, "spec"), json_object_get(after, "spec")) ||
           !json_equal(json_at(before, "metadata", "labels"), json_at(after, "metadata", "labels"));
}

/* A volume that waits for room has no replica there yet, so all of the namespace are asked. */
static void map_pool(struct kube_controller *c, const struct kube_object *pool, void *context)
{
    struct volume_controller *v = context;
    _cleanup_(kube_objects_done) struct kube_objects all = {0};
    kube_informer_list(v->volumes, pool->ns, &all);
    for (size_t i = 0; i < all.len; i++)
        kube_controller_add(c, all.p[i]->ns, all.p[i]->name);
}

static void map_replica(struct kube_controller *c, const struct kube_object *replica, void *context)
{
    (void)context;
    json_auto_t *o = kube_object_json(replica);
    const char *name = kube_label(o, API_CSTOR_OF_VOLUME);
    if (name)
        kube_controller_add(c, replica->ns, name);
}

void cstor_watch(struct volume_controller *v, struct kube_controller *c)
{
    kube_groups_watch(
        &v->pools, c,
        (struct kube_source){.predicate = pool_matters, .map = map_pool, .context = v});
    kube_controller_watch(c, (struct kube_source){.informer = v->replicas.informer,
                                                  .predicate = replica_matters,
                                                  .map = map_replica});
}

/* Pools. */

static bool serves(const struct pool_instance *p)
{
    return str_eq(p->status.phase, "ONLINE") || str_eq(p->status.phase, "DEGRADED");
}

/* Since when the pool's process, or the operator for it, does not say that it is available. */
static int64_t lost_for(struct volume_controller *v, const json_t *object,
                        const struct pool_instance *p)
{
    const json_t *available = kube_condition_get(object, "Available");
    const char *since = json_str(available, "lastTransitionTime");
    struct timespec at;
    if (kube_annotation(object, API_POOL_FORGOTTEN))
        return INT64_MAX;
    if (serves(p) || !*p->status.phase)
        return 0;
    if (!since || kube_condition_is_true(object, "Available") ||
        rfc3339_parse(since, &at, NULL) < 0)
        return 1;
    _cleanup_free_ char *key = mem_printf("lost pool %s", kube_uid(object));
    int64_t ns = kube_ages_now(v->ages, key, rfc3339_to_ns(at)) - rfc3339_to_ns(at);
    return ns > 0 ? ns : 1;
}

static const char *zone_of(struct cstor_world *world, struct volume_controller *v, const char *node)
{
    json_t *object = kube_informer_json(v->nodes, NULL, node, NULL);
    const char *zone = object ? kube_label(object, "topology.kubernetes.io/zone") : NULL;
    if (object)
        json_array_append_new(world->held, object);
    return zone ? zone : "";
}

static void read_pool(struct volume_work *w, struct cstor_world *world, json_t *object)
{
    struct api_report ignored = {0};
    json_array_append(world->held, object);
    api_normalize(&api_cstor_pool_instance, object, &ignored);
    api_report_done(&ignored);
    const struct pool_instance p = pool_instance_of(object, NULL);
    const char *host = *p.spec.host_name ? p.spec.host_name : kube_label(object, API_POOL_HOSTNAME);
    struct cstor_pool *it = &world->pools[world->pools_n++];
    uint64_t total = (uint64_t)api_quantity_int(p.status.capacity.total),
             used = (uint64_t)api_quantity_int(p.status.capacity.used);
    *it = (struct cstor_pool){
        .name = kube_name(object),
        .uid = kube_uid(object),
        .node = host ? host : "",
        .zone = zone_of(world, w->c, host ? host : ""),
        .phase = p.status.phase,
        .thick = !p.spec.config.over_provisioning,
        .read_only = p.status.read_only,
        .online = str_eq(p.status.phase, "ONLINE"),
        .total = total,
        .free = total > used ? total - used : 0,
        .lost_ns = lost_for(w->c, object, &p),
        .evacuated = str_eq(volume_annotation(object, API_CSTOR_EVACUATE), "true"),
    };
    it->gone = kube_deleting(object) || it->evacuated || it->lost_ns == INT64_MAX;
}

static void read_pools(struct volume_work *w, struct cstor_world *world)
{
    const char *cluster = kube_label(w->volume, API_POOL_CLUSTER);
    _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, cluster ? cluster : "");
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_groups_find(&w->c->pools, "volumes cluster", key, &found);
    world->pools = mem_zalloc((found.len + 1) * sizeof(*world->pools));
    for (size_t i = 0; cluster && i < found.len; i++) {
        json_auto_t *object = kube_object_json(found.p[i]);
        read_pool(w, world, object);
    }
}

/* Replicas. */

static bool has_text(const json_t *list, const char *text)
{
    const json_t *it;
    for (size_t i = 0; (it = json_array_get(list, i)); i++) {
        if (str_eq(json_string_value(it), text))
            return true;
    }
    return false;
}

static void read_replica(struct volume_work *w, struct cstor_world *world, json_t *object)
{
    const json_t *status = json_object_get(w->volume, "status");
    const char *id = volume_text(object, "spec", "replicaid"),
               *pool = kube_label(object, API_POOL_OF_REPLICA),
               *uid = kube_label(object, API_CSTOR_POOL_UID);
    const struct volume_view view = volume_look(w);
    struct cstor_replica *r = &world->replicas[world->replicas_n++];
    *r = (struct cstor_replica){
        .object = json_incref(object),
        .id = id,
        .pool = pool ? pool : "",
        .at = -1,
        .deleting = kube_deleting(object),
        .leaving = has_text(json_at(w->volume, "spec", "leavingReplicas"), id),
        .removed = has_text(json_object_get(status, "removedReplicas"), id),
        .known = json_at(status, "replicaDetails", "knownReplicas", id),
    };
    for (unsigned i = 0; i < view.members; i++)
        r->healthy |= str_eq(view.member[i].id, id) && view.member[i].healthy;
    for (size_t i = 0; i < world->pools_n; i++) {
        struct cstor_pool *p = &world->pools[i];
        if (str_eq(p->name, r->pool) && uid && str_eq(p->uid, uid)) {
            r->at = (int)i;
            p->used = true;
            p->mine |= !r->deleting && !r->leaving;
        } else if (str_eq(p->name, r->pool)) {
            p->used = true; /* by name: the object of a pool that was there before */
        }
    }
}

/* Of the volume itself, not of one of its name that is gone. */
static bool is_of(const json_t *replica, const json_t *volume)
{
    const char *owner = kube_controller_uid(replica);
    return !*owner || str_eq(owner, kube_uid(volume));
}

static json_t *list_replicas(struct volume_work *w, bool fresh, struct err *e)
{
    if (fresh) {
        _cleanup_free_ char *labels = mem_printf(API_CSTOR_OF_VOLUME "=%s", w->name);
        const struct kube_query q = {.labels = labels};
        return kube_list(w->c->client, &w->c->replicas.r, w->ns, &q, e);
    }
    _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, w->name);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(w->c->replicas.informer, "volumes volume", key, &found);
    json_t *list = json_array();
    for (size_t i = 0; i < found.len; i++)
        json_array_append_new(list, kube_object_json(found.p[i]));
    return list;
}

int cstor_world_read(struct volume_work *w, bool fresh, struct cstor_world *ret, struct err *e)
{
    *ret = (struct cstor_world){.held = json_array()};
    json_auto_t *list = list_replicas(w, fresh, e);
    if (!list)
        return -1;
    read_pools(w, ret);
    ret->replicas = mem_zalloc((json_array_size(list) + 1) * sizeof(*ret->replicas));
    size_t i;
    json_t *it;
    json_array_foreach(list, i, it) {
        if (is_of(it, w->volume) && ret->replicas_n < 2 * CSTOR_MEMBERS)
            read_replica(w, ret, it);
    }
    return 0;
}

void cstor_world_done(struct cstor_world *world)
{
    for (size_t i = 0; i < world->replicas_n; i++)
        json_decref(world->replicas[i].object);
    free(world->replicas);
    free(world->pools);
    json_decref(world->held);
    *world = (struct cstor_world){0};
}

/* Promises. */

void cstor_world_note(struct volume_controller *v, const json_t *replica)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(replica), kube_name(replica));
    json_object_set_new(v->recent, key,
                        json_pack("[I,O]", (json_int_t)clock_mono_ns(v->clock), replica));
}

static bool says_same(const json_t *replica, const json_t *volume, const char *label)
{
    const char *is = kube_label(replica, label), *wanted = kube_label(volume, label);
    return is && wanted && *is && str_eq(is, wanted);
}

static void count_replica(struct volume_work *w, struct cstor_pool *p, const json_t *replica)
{
    const char *of = kube_label(replica, API_CSTOR_OF_VOLUME);
    uint64_t size = volume_bytes(json_at(replica, "spec", "capacity"));
    p->replicas++;
    p->promised += size;
    if (!json_at(replica, "status", "capacity", "total"))
        p->unmade += size;
    if (of && str_eq(of, w->name))
        return;
    p->apart |= says_same(replica, w->volume, API_CSTOR_APART);
    p->rather_apart |= says_same(replica, w->volume, API_CSTOR_RATHER_APART);
}

/* Those that the cache has not yet; what it has, or should have by now, is forgotten. */
static void count_recent(struct volume_work *w, struct cstor_world *world)
{
    int64_t now = clock_mono_ns(w->c->clock);
    const char *key;
    void *next;
    json_t *entry;
    json_object_foreach_safe(w->c->recent, next, key, entry) {
        const json_t *replica = json_array_get(entry, 1);
        const char *pool = kube_label(replica, API_POOL_OF_REPLICA);
        _cleanup_(kube_object_unrefp) struct kube_object *cached =
            kube_informer_get_key(w->c->replicas.informer, key);
        for (size_t i = 0; !cached && pool && i < world->pools_n; i++) {
            if (str_eq(world->pools[i].name, pool) && str_eq(kube_namespace(replica), w->ns))
                count_replica(w, &world->pools[i], replica);
        }
        if (cached || now - json_integer_value(json_array_get(entry, 0)) > RECENT)
            json_object_del(w->c->recent, key);
    }
}

void cstor_world_count(struct volume_work *w, struct cstor_world *world)
{
    for (size_t i = 0; i < world->pools_n; i++) {
        struct cstor_pool *p = &world->pools[i];
        _cleanup_free_ char *key = mem_printf("%s/%s", w->ns, p->name);
        _cleanup_(kube_objects_done) struct kube_objects found = {0};
        p->replicas = 0;
        p->promised = p->unmade = 0;
        kube_informer_find(w->c->replicas.informer, "volumes pool", key, &found);
        for (size_t k = 0; k < found.len; k++) {
            json_auto_t *replica = kube_object_json(found.p[k]);
            count_replica(w, p, replica);
        }
    }
    count_recent(w, world);
}
