/*
 * What a cluster says of itself: counted, read back from its instances, and why it is not as it should be.
 *
 * An instance counts as healthy when its orlop-pool says ONLINE, is there to say so, and the node that it
 * says so from is heard of. status.instances is the one part that is read again: it has the names and identities of pools
 * for the case that somebody deletes their instances (create.c).
 */
#include "base/quantity.h"
#include "controllers/cspc/cspc.h"
#include "kube/condition.h"

int cspc_is_managed(struct cspc_run *r, const json_t *instance)
{
    json_auto_t *deployment =
        kube_informer_json(r->c->deployments, kube_namespace(instance), kube_name(instance), NULL);
    const json_t *status = json_object_get(deployment, "status");
    if (!json_object_get(status, "observedGeneration"))
        return -1;
    return json_integer_value(json_object_get(status, "availableReplicas")) > 0;
}

static bool is_healthy(struct cspc_run *r, const json_t *instance)
{
    const struct pool_instance its = pool_instance_of(instance, NULL);
    if (!str_eq(its.status.phase, "ONLINE") || kube_deleting(instance) ||
        !cspc_is_managed(r, instance))
        return false;
    json_auto_t *node = kube_informer_json(r->c->nodes, NULL, its.spec.host_name, NULL);
    const json_t *ready = node ? kube_condition_get(node, "Ready") : NULL;
    return node && (!ready || kube_condition_is_true(node, "Ready"));
}

/* Records */

/* Its groups, without what the system filled in. */
static json_t *groups_of(const json_t *instance)
{
    json_auto_t *spec = json_deep_copy(json_object_get(instance, "spec"));
    json_t *groups = json_object_get(spec, "raidGroups");
    pool_each_device(spec, it) {
        json_object_del((json_t *)it.json, "capacity");
        json_object_del((json_t *)it.json, "devLink");
    }
    return groups ? json_incref(groups) : json_array();
}

static json_t *record_new(const struct cspc_pool *p)
{
    const struct pool_instance its = pool_instance_of(p->instance, NULL);
    const struct pool_record before = pool_record_of(p->record);
    const char *guid = its.status.guid;
    if (!*guid && str_eq(before.name, kube_name(p->instance)))
        guid = before.guid;
    json_t *record = json_pack("{s:s,s:s,s:o}", "name", kube_name(p->instance), "phase",
                               its.status.phase, "raidGroups", groups_of(p->instance));
    if (*its.spec.host_name)
        json_object_set_new(record, "hostName", json_string(its.spec.host_name));
    if (*guid)
        json_object_set_new(record, "guid", json_string(guid));
    return record;
}

/* Of every pool that is or was there and is not to be destroyed. */
static json_t *records_of(const struct cspc_run *r)
{
    json_t *records = json_array();
    vec_for_each(&r->plan.pools, p) {
        bool doomed = p->instance && kube_annotation(p->instance, API_POOL_DESTROY);
        if (p->instance && !doomed)
            json_array_append_new(records, record_new(p));
        else if (!p->instance && p->record)
            json_array_append(records, (json_t *)p->record);
    }
    return records;
}

static int write(struct cspc_run *r, const json_t *status, struct err *e)
{
    int written = cspc_say(r->c, &r->c->clusters_r, r->cluster, status, "status", e);
    cspc_plan_again(r); /* it points into the cluster */
    return written;
}

static json_t *status_of(const struct cspc_run *r)
{
    const json_t *was = json_object_get(r->cluster, "status");
    return was ? json_deep_copy(was) : json_object();
}

int cspc_write_records(struct cspc_run *r, struct err *e)
{
    if (kube_deleting(r->cluster))
        return 0;
    json_auto_t *status = status_of(r);
    json_object_set_new(status, "instances", records_of(r));
    return write(r, status, e);
}

/* Sums */

struct counts {
    int64_t desired, provisioned, healthy, managers;
};

static struct counts count(struct cspc_run *r)
{
    struct counts n = {.desired = (int64_t)r->plan.pools.len};
    vec_for_each(&r->plan.pools, p) {
        if (!p->instance || kube_deleting(p->instance))
            continue;
        n.provisioned++;
        n.healthy += is_healthy(r, p->instance);
        n.managers += cspc_is_managed(r, p->instance) > 0;
    }
    return n;
}

/* A size, which may be a number; false for what is no quantity, such as ZFS's own words. */
static bool read_size(const json_t *value, struct quantity *ret)
{
    if (json_is_integer(value)) {
        *ret = quantity_from_int(json_integer_value(value), QUANTITY_BINARY_SI);
        return true;
    }
    return json_is_string(value) && quantity_parse(json_string_value(value), ret, NULL) == 0;
}

static json_t *capacity_of(const struct cspc_run *r)
{
    static const char *const keys[] = {"total", "free", "used"};
    json_t *capacity = json_object();
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
        struct quantity sum = quantity_from_int(0, QUANTITY_BINARY_SI), one;
        char text[QUANTITY_TEXT_MAX];
        bool any = false;
        size_t i;
        json_t *instance;
        json_array_foreach(r->instances, i, instance) {
            if (read_size(json_at(instance, "status", "capacity", keys[k]), &one))
                any |= quantity_add(&sum, &one, &sum, NULL) == 0;
        }
        if (any)
            json_object_set_new(capacity, keys[k], json_string(quantity_format(&sum, text)));
    }
    return capacity;
}

static const char *phase_word(const struct cspc_run *r, const struct counts *n)
{
    if (kube_deleting(r->cluster))
        return "Deleting";
    if (n->healthy == n->desired && n->provisioned == n->desired)
        return "ONLINE";
    size_t i, made = 0;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        const struct pool_instance its = pool_instance_of(instance, NULL);
        made += *its.status.guid || kube_annotation(instance, API_POOL_GUID) ||
                str_eq(its.status.phase, "ONLINE");
    }
    return n->healthy ? "DEGRADED" : made ? "OFFLINE" : "Pending";
}

/* Conditions */

static const struct {
    const char *type, *fine, *text;
    bool always;
} parts[CSPC_PARTS] = {
    [CSPC_PROVISION] = {"PoolsProvisioned", "Provisioned", "every pool has an instance", true},
    [CSPC_OPERATION] = {"PoolsUpToDate", "UpToDate", "every pool is as its spec says", true},
    [CSPC_DELETION] = {"PoolsDeleted", "Deleted", "no pool is left that is not wanted", false},
};

static void set_part(struct cspc_run *r, json_t *conditions, enum cspc_part part)
{
    const struct cspc_trouble *t = &r->trouble[part];
    const struct kube_condition c = {
        .type = parts[part].type,
        .status = t->reason ? "False" : "True",
        .reason = t->reason ? t->reason : parts[part].fine,
        .message = t->reason ? str_get(&t->text) : parts[part].text,
        .generation = kube_generation(r->cluster),
    };
    if (!t->reason && !parts[part].always) {
        kube_condition_remove(conditions, parts[part].type);
        return;
    }
    bool news = kube_condition_set(conditions, &c, r->c->clock);
    if (news && t->reason && !t->progress)
        kube_event_warning(r->c->recorder, r->cluster, t->reason, "%s", str_get(&t->text));
}

/* A cluster is ready when all of it is there, healthy, and as it was asked for. */
static void set_ready(struct cspc_run *r, json_t *conditions, const struct counts *n)
{
    const struct cspc_trouble *first = NULL;
    for (size_t i = CSPC_PARTS; i-- > 0;) {
        if (r->trouble[i].reason)
            first = &r->trouble[i];
    }
    bool ready = !first && n->healthy == n->desired;
    _cleanup_free_ char *counted =
        mem_printf("%lld of %lld pools are healthy", (long long)n->healthy, (long long)n->desired);
    const struct kube_condition c = {
        .type = "Ready",
        .status = ready ? "True" : "False",
        .reason = ready   ? "Ready"
                  : first ? first->reason
                          : "PoolsNotHealthy",
        .message = first ? str_get(&first->text) : counted,
        .generation = kube_generation(r->cluster),
    };
    kube_condition_set(conditions, &c, r->c->clock);
}

static void set_managers(struct cspc_run *r, json_t *conditions, const struct counts *n)
{
    _cleanup_free_ char *text = mem_printf("%lld of %lld pool managers are available",
                                           (long long)n->managers, (long long)n->desired);
    bool all = n->managers == n->desired;
    const struct kube_condition c = {
        .type = "PoolManagerAvailable",
        .status = all ? "True" : "False",
        .reason = all ? "AllAvailable" : "NotAllAvailable",
        .message = text,
    };
    kube_condition_set(conditions, &c, r->c->clock);
}

int cspc_write_status(struct cspc_run *r, struct err *e)
{
    struct counts n = count(r);
    json_auto_t *status = status_of(r);
    json_t *conditions = json_array_at(status, "conditions");
    if (!kube_deleting(r->cluster))
        json_object_set_new(status, "instances", records_of(r));
    json_object_set_new(status, "phase", json_string(phase_word(r, &n)));
    json_object_set_new(status, "capacity", capacity_of(r));
    json_object_set_new(status, "desiredInstances", json_integer(n.desired));
    json_object_set_new(status, "provisionedInstances", json_integer(n.provisioned));
    json_object_set_new(status, "healthyInstances", json_integer(n.healthy));
    set_ready(r, conditions, &n);
    for (int part = 0; part < CSPC_PARTS; part++)
        set_part(r, conditions, (enum cspc_part)part);
    set_managers(r, conditions, &n);
    return write(r, status, e);
}
