/*
 * That the process lives: a Lease with the object's name, renewed while the engine answers. Whoever
 * finds it old knows that the status may not be so any more.
 */
#include "base/rfc3339.h"
#include "base/str.h"
#include "pool/impl.h"

enum { LEASE_SECONDS = 40 };

static json_t *lease_new(const struct pool_kinds *k, const json_t *object, const char *identity,
                         const struct clock *clock)
{
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock)), RFC3339_MICRO, now);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:[o]}, s:{s:s, s:i, s:s}}", "apiVersion",
                     k->lease.api_version, "kind", k->lease.kind, "metadata", "name",
                     kube_name(object), "namespace", kube_namespace(object), "ownerReferences",
                     kube_owner_reference(object), "spec", "holderIdentity", identity,
                     "leaseDurationSeconds", LEASE_SECONDS, "renewTime", now);
}

int pool_heartbeat(const struct pool_kinds *k, const json_t *object, const char *identity,
                   json_t **lease, const struct clock *clock, struct err *e)
{
    struct err why = {0};
    if (!*lease) {
        *lease = kube_get(k->client, &k->lease, kube_namespace(object), kube_name(object), &why);
        if (!*lease && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
    }
    json_auto_t *wanted = lease_new(k, object, identity, clock);
    if (*lease)
        json_object_set_new(json_object_get(wanted, "metadata"), "resourceVersion",
                            json_string(kube_version(*lease)));
    json_t *now = *lease ? kube_update(k->client, &k->lease, wanted, NULL, e)
                         : kube_create(k->client, &k->lease, wanted, NULL, e);
    json_decref(*lease);
    *lease = now; /* what failed is read again */
    return now ? 0 : -1;
}
