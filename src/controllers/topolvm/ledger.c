#include "controllers/topolvm/ledger.h"

#include "base/rfc3339.h"

/* A write that never shows in the cache: the volume came and went in between. */
#define RECENT (30 * CLOCK_SECOND)
#define RETRY  (30 * CLOCK_SECOND)

static void pending_values(const json_t *lv, struct kube_index_values *out)
{
    struct logical_volume v = logical_volume_of(lv);
    if (topolvm_pending(&v) > 0)
        kube_index_add(out, v.spec.node_name);
}

static void node_values(const json_t *lv, struct kube_index_values *out)
{
    kube_index_add(out, logical_volume_of(lv).spec.node_name);
}

static void name_values(const json_t *lv, struct kube_index_values *out)
{
    kube_index_add(out, logical_volume_of(lv).spec.name);
}

static void id_values(const json_t *lv, struct kube_index_values *out)
{
    const char *id = logical_volume_of(lv).status.volume_id;
    if (*id)
        kube_index_add(out, id);
}

static void ledger_free(void *context)
{
    struct topolvm_ledger *l = context;
    json_decref(l->recent);
    json_decref(l->refused);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct topolvm_ledger *topolvm_ledger_new(struct kube_manager *m)
{
    static const struct kube_index indexes[] = {{"node", node_values},
                                                {"pending", pending_values},
                                                {"name", name_values},
                                                {"id", id_values}};
    struct topolvm_ledger *l = NEW(struct topolvm_ledger);
    kube_manager_on_stop(m, ledger_free, l);
    pthread_mutex_init(&l->lock, NULL);
    l->recent = json_object();
    l->refused = json_object();
    l->clock = kube_manager_clock(m);
    l->client = kube_manager_client(m);
    l->nodes_r = kube_resource("v1", "Node");
    l->nodes = kube_manager_informer(m, l->nodes_r, NULL, NULL, NULL);
    kube_groups_init(&l->lvs, m, TOPOLVM_LEGACY "/v1", TOPOLVM_GROUP "/v1", "LogicalVolume");
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++)
        kube_groups_add_index(&l->lvs, &indexes[i]);
    return l;
}

void topolvm_ledger_lock(struct topolvm_ledger *l)
{
    pthread_mutex_lock(&l->lock);
}

void topolvm_ledger_unlock(struct topolvm_ledger *l)
{
    pthread_mutex_unlock(&l->lock);
}

/* Volumes of a node ("node": all; "pending": that will take room), as the cache has them. */
static json_t *cached_of(struct topolvm_ledger *l, const char *index, const char *node)
{
    json_t *volumes = json_object();
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_groups_find(&l->lvs, index, node, &found);
    for (size_t i = 0; i < found.len; i++)
        json_object_set_new(volumes, found.p[i]->name, kube_object_json(found.p[i]));
    return volumes;
}

/* The same as it will be when the cache has caught up. */
static json_t *volumes_of(struct topolvm_ledger *l, const char *index, const char *node)
{
    json_t *volumes = cached_of(l, index, node);
    int64_t now = clock_mono_ns(l->clock);
    const char *name;
    json_t *recent;
    void *next;
    json_object_foreach_safe(l->recent, next, name, recent) {
        _cleanup_(kube_object_unrefp) struct kube_object *cached =
            kube_groups_get(&l->lvs, NULL, name);
        const char *before = json_str(recent, "before");
        if ((cached && !str_eq(cached->resource_version, before)) ||
            now > json_integer_value(json_object_get(recent, "until"))) {
            json_object_del(l->recent, name); /* the next version after `before` is ours */
            continue;
        }
        const json_t *lv = json_object_get(recent, "lv");
        if (str_eq(logical_volume_of(lv).spec.node_name, node))
            json_object_set(volumes, name, (json_t *)(uintptr_t)lv);
    }
    return volumes;
}

/* What the volumes of a class take, all in all or that `of` says. */
static int64_t sum_of(const json_t *volumes, const json_t *node, const char *class,
                      int64_t (*of)(const struct logical_volume *lv))
{
    json_auto_t *classes = topolvm_classes(node);
    const char *wanted = topolvm_class_at(node, classes, class);
    int64_t sum = 0;
    const char *name;
    json_t *lv;
    json_object_foreach((json_t *)volumes, name, lv) {
        struct logical_volume v = logical_volume_of(lv);
        if (str_eq(topolvm_class_at(node, classes, v.spec.class_name), wanted) &&
            __builtin_add_overflow(sum, of(&v), &sum))
            return INT64_MAX;
    }
    return sum;
}

static char *refusal_key(const json_t *node, const char *class)
{
    json_auto_t *classes = topolvm_classes(node);
    return mem_printf("%s/%s", kube_name(node), topolvm_class_at(node, classes, class));
}

/*
 * The most that the node can be asked for: less than what it refused, until it says other figures. What
 * the cache has of the node may be from before the refusal.
 */
static int64_t most_of(struct topolvm_ledger *l, const json_t *node, const char *class,
                       int64_t free_bytes)
{
    _cleanup_free_ char *key = refusal_key(node, class);
    const json_t *refused = json_object_get(l->refused, key);
    int64_t most = json_integer_value(json_object_get(refused, "size")) - 1;
    if (!refused)
        return INT64_MAX;
    if (json_integer_value(json_object_get(refused, "free")) == free_bytes ||
        strtoll(kube_version(node), NULL, 10) <=
            json_integer_value(json_object_get(refused, "version")))
        return most;
    json_object_del(l->refused, key);
    return INT64_MAX;
}

/* What a volume has or will have; of one that is gone from its node, nothing. */
static int64_t whole(const struct logical_volume *lv)
{
    return lv->status.code == ERR_NOT_FOUND ? 0 : lv->status.current_size + topolvm_pending(lv);
}

/* What a class has in all; INT64_MAX where that says nothing of what can be promised. */
static int64_t size_of(const json_t *node, const char *class)
{
    json_auto_t *classes = topolvm_classes(node);
    const char *wanted = topolvm_class_at(node, classes, class);
    size_t i;
    json_t *it;
    json_array_foreach(classes, i, it) {
        const char *name = json_str(it, "name"), *type = json_str(it, "type");
        if (name && str_eq(name, wanted) && type && str_eq(type, "thick"))
            return json_integer_value(json_object_get(it, "sizeBytes"));
    }
    return INT64_MAX;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the node says is free, less what these volumes will take; false: no such class. */
static bool left_of(struct topolvm_ledger *l, const json_t *volumes, const json_t *node,
                    const char *class, int64_t *ret_bytes)
{
    int64_t free_bytes;
    if (!topolvm_free(node, class, &free_bytes))
        return false;
    *ret_bytes = least(free_bytes - sum_of(volumes, node, class, topolvm_pending),
                       most_of(l, node, class, free_bytes));
    return true;
}

bool topolvm_ledger_estimate(struct topolvm_ledger *l, const json_t *node, const char *class,
                             int64_t *ret_bytes)
{
    json_auto_t *volumes = volumes_of(l, "pending", kube_name(node));
    return left_of(l, volumes, node, class, ret_bytes);
}

bool topolvm_ledger_room(struct topolvm_ledger *l, const char *name, const json_t *node,
                         const char *class, int64_t *ret_bytes)
{
    json_auto_t *volumes = volumes_of(l, "node", name); /* before the node is asked */
    json_auto_t *live = node ? NULL : kube_get(l->client, &l->nodes_r, NULL, name, NULL);
    const json_t *it = node ? node : live;
    if (!it || !left_of(l, volumes, it, class, ret_bytes))
        return false;
    int64_t size = size_of(it, class);
    if (size < INT64_MAX)
        *ret_bytes = least(*ret_bytes, size - sum_of(volumes, it, class, whole));
    if (*ret_bytes < 0)
        *ret_bytes = 0;
    return true;
}

void topolvm_ledger_refused(struct topolvm_ledger *l, const struct logical_volume *lv)
{
    const char *class = lv->spec.class_name;
    json_auto_t *node = kube_get(l->client, &l->nodes_r, NULL, lv->spec.node_name, NULL);
    int64_t free_bytes = 0, size = lv->spec.size - lv->status.current_size;
    if (!node || !topolvm_free(node, class, &free_bytes))
        return;
    _cleanup_free_ char *key = refusal_key(node, class);
    topolvm_ledger_lock(l);
    json_object_set_new(l->refused, key,
                        json_pack("{s:I,s:I,s:I}", "free", (json_int_t)free_bytes, "size",
                                  (json_int_t)size, "version",
                                  (json_int_t)strtoll(kube_version(node), NULL, 10)));
    topolvm_ledger_unlock(l);
}

int64_t topolvm_ledger_pending(struct topolvm_ledger *l, const json_t *node, const char *class)
{
    json_auto_t *volumes = cached_of(l, "pending", kube_name(node));
    return sum_of(volumes, node, class, topolvm_pending);
}

void topolvm_ledger_wrote(struct topolvm_ledger *l, const json_t *lv, const char *before)
{
    json_int_t until = clock_mono_ns(l->clock);
    until += RECENT;
    json_object_set_new(l->recent, kube_name(lv),
                        json_pack("{s:o,s:s,s:I}", "lv", json_deep_copy(lv), "before", before,
                                  "until", until)); /* a copy: other threads will hold it */
}

static json_t *first_of(struct topolvm_ledger *l, const char *index, const char *value)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    if (value && *value)
        kube_groups_find(&l->lvs, index, value, &found);
    return found.len ? kube_object_json(found.p[0]) : NULL;
}

json_t *topolvm_ledger_volume(struct topolvm_ledger *l, const json_t *pv)
{
    json_t *lv = first_of(l, "id", json_str(json_at(pv, "spec", "csi"), "volumeHandle"));
    return lv ? lv : first_of(l, "name", kube_name(pv));
}

void topolvm_ledger_stamp(struct topolvm_ledger *l, const json_t *lv, json_t *metadata)
{
    char text[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(l->clock)), RFC3339_MICRO, text);
    json_object_set_new(metadata, "annotations", json_pack("{s:s}", topolvm_retry_key(lv), text));
}

int topolvm_ledger_retry(struct topolvm_ledger *l, const json_t *lv, int64_t *ret_again_ns,
                         struct err *e)
{
    const char *last = topolvm_value(json_at(lv, "metadata", "annotations"), "resize-requested-at");
    int64_t now = clock_real_ns(l->clock);
    struct timespec at;
    if (last && rfc3339_parse(last, &at, NULL) == 0) {
        int64_t age = now - rfc3339_to_ns(at);
        if (age >= 0 && age < RETRY) {
            *ret_again_ns = RETRY - age;
            return 0;
        }
    }
    json_auto_t *patch = json_pack("{s:{s:s}}", "metadata", "resourceVersion", kube_version(lv));
    topolvm_ledger_stamp(l, lv, json_object_get(patch, "metadata"));
    json_auto_t *done = kube_patch(l->client, kube_groups_of(&l->lvs, lv), NULL, kube_name(lv),
                                   KUBE_MERGE_PATCH, patch, NULL, e);
    *ret_again_ns = RETRY;
    return done ? 0 : -1;
}
