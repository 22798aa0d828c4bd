/*
 * What is known of a pool whose process is silent, which is nothing. An instance says ONLINE or DEGRADED
 * only while its orlop-pool renews its Lease; afterwards it is OFFLINE here, and its condition Available
 * Unknown, until the process says otherwise, as it does as soon as it is back.
 *
 * The Lease is asked for only when there is a reason to: the node is not heard of, or no pod is ready.
 */
#include "base/rfc3339.h"
#include "controllers/cspc/cspc.h"
#include "kube/condition.h"

/* Why the process may not be there; NULL: nothing speaks for that. */
static const char *suspicion(struct cspc_run *r, const json_t *instance)
{
    const char *host = pool_instance_of(instance, NULL).spec.host_name;
    if (!*host)
        return NULL;
    json_auto_t *node = kube_informer_json(r->c->nodes, NULL, host, NULL);
    if (!node)
        return "its node is gone";
    if (kube_condition_get(node, "Ready") && !kube_condition_is_true(node, "Ready"))
        return "its node is not ready";
    return cspc_is_managed(r, instance) == 0 ? "its pod is not ready" : NULL;
}

/* Nanoseconds until its time is over, by the Lease; INT64_MAX: there is none to tell. */
static int time_left(struct cspc_run *r, const json_t *instance, int64_t *ret_ns, char *ret_since,
                     struct err *e)
{
    const struct kube_resource leases = kube_resource("coordination.k8s.io/v1", "Lease");
    struct err why = {0};
    json_auto_t *lease =
        kube_get(r->c->client, &leases, kube_namespace(instance), kube_name(instance), &why);
    const json_t *spec = json_object_get(lease, "spec");
    const char *renewed = json_str(spec, "renewTime");
    struct timespec at;
    *ret_ns = INT64_MAX;
    if (!lease && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    if (!renewed || rfc3339_parse(renewed, &at, NULL) < 0)
        return 0;
    rfc3339_format(at, RFC3339_SECONDS, ret_since);
    _cleanup_free_ char *key = mem_printf("lease %s", kube_uid(instance));
    *ret_ns = rfc3339_to_ns(at) +
              json_integer_value(json_object_get(spec, "leaseDurationSeconds")) * CLOCK_SECOND -
              kube_ages_now(r->c->ages, key, rfc3339_to_ns(at));
    return 0;
}

int cspc_say_unknown(struct cspc_run *r, json_t *instance, const char *phase, const char *reason,
                     const char *message, struct err *e)
{
    const struct kube_condition c = {.type = "Available",
                                     .status = "Unknown",
                                     .reason = reason,
                                     .message = message,
                                     .generation = kube_generation(instance)};
    json_auto_t *status = kube_status_copy(instance);
    json_t *conditions = json_array_at(status, "conditions");
    kube_condition_set(conditions, &c, r->c->clock);
    json_object_set_new(status, "phase", json_string(phase));
    return cspc_say(r->c, &r->c->instances_r, instance, status, reason, e);
}

static int say(struct cspc_run *r, json_t *instance, const char *why, const char *since,
               struct err *e)
{
    _cleanup_free_ char *message = mem_printf("nothing was heard of the pool's process since %s, "
                                              "and %s: the rest of this status is as it was "
                                              "then",
                                              since, why);
    struct err failed = {0};
    if (cspc_say_unknown(r, instance, "OFFLINE", "ProcessSilent", message, &failed) < 0) {
        if (failed.code == ERR_NOT_FOUND) /* it went meanwhile */
            return 0;
        *e = failed;
        return -1;
    }
    kube_event_warning(r->c->recorder, instance, "ProcessSilent", "%s", message);
    return 0;
}

int cspc_note_silent(struct cspc_run *r, struct err *e)
{
    static const char *const alive[] = {"ONLINE", "DEGRADED", NULL};
    size_t i;
    json_t *instance;
    json_array_foreach(r->instances, i, instance) {
        const char *phase = pool_instance_of(instance, NULL).status.phase;
        const char *why = str_in(phase, alive) ? suspicion(r, instance) : NULL;
        char since[RFC3339_MAX];
        int64_t left;
        if (!why)
            continue;
        if (time_left(r, instance, &left, since, e) < 0)
            return -1;
        if (left <= 0 && say(r, instance, why, since, e) < 0)
            return -1;
        if (left > 0 && left != INT64_MAX && (!r->result->again_ns || left < r->result->again_ns))
            r->result->again_ns = left;
    }
    return 0;
}
