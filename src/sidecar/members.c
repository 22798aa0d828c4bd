/*
 * Which replicas a volume should have, decided from what its target shows.
 *
 *     no volume yet, and there never was one        create
 *     a member without a vote                       add it again: its addition was interrupted
 *     fewer than wanted, and somebody is waiting    add
 *     one is offline, and somebody is waiting       add in its place
 *     more than wanted, and the others are well     remove: who is offline, or the last
 *
 * Somebody who waits is a pod of this volume on a node that has no member: pods are as many as there are
 * to be members, each on its own node, and a pod that is merely started again is the member it was.
 */
#include "sidecar/sidecar.h"

static bool is_offline(const json_t *replica)
{
    return str_eq(json_str(replica, "mode"), "Offline");
}

static bool is_healthy(const json_t *replica)
{
    return str_eq(json_str(replica, "mode"), "Healthy");
}

static bool votes(const json_t *replica)
{
    return json_is_true(json_object_get(replica, "voter"));
}

/* The first that is so; NULL. */
static const json_t *find(const json_t *replicas, bool (*is)(const json_t *), bool wanted)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)replicas, i, it) {
        if (is(it) == wanted)
            return it;
    }
    return NULL;
}

static json_t *request(const char *command, const json_t *replica, const json_t *instead)
{
    json_t *o =
        json_pack("{s:s,s:s}", "command", command, "replica", json_str(replica, "replicaId"));
    if (instead)
        json_object_set_new(o, "instead", json_string(json_str(instead, "replicaId")));
    return o;
}

/* Of more than enough: who is of least use. All others have to be well. */
static const json_t *superfluous(const json_t *replicas)
{
    const json_t *worst = find(replicas, is_healthy, false);
    size_t i, ill = 0;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)replicas, i, it)
        ill += !is_healthy(it);
    if (ill > 1)
        return NULL;
    return worst ? worst : json_array_get(replicas, json_array_size(replicas) - 1);
}

json_t *sidecar_next_request(const json_t *shown, const struct sidecar_wanted *wanted)
{
    const json_t *v = sidecar_volume(shown), *replicas = json_object_get(v, "replicaStatus");
    const json_t *guest = json_array_get(json_object_get(v, "guests"), 0);
    const char *doing = json_str(shown, "doing");
    size_t n = json_array_size(replicas);
    if (!v || (doing && *doing))
        return NULL;
    if (!n)
        return wanted->create
                   ? json_pack("{s:s,s:I,s:i}", "command", "create", "size",
                               (json_int_t)wanted->size, "replicas", (int)wanted->replicas)
                   : NULL;
    if (!json_is_true(json_object_get(v, "serving")))
        return NULL;
    const json_t *learner = find(replicas, votes, false), *lost = find(replicas, is_offline, true);
    if (learner)
        return request("add", learner, n > wanted->replicas && lost != learner ? lost : NULL);
    if (guest && n < wanted->replicas)
        return request("add", guest, NULL);
    if (guest && lost && n == wanted->replicas)
        return request("add", guest, lost);
    const json_t *leaver = n > wanted->replicas ? superfluous(replicas) : NULL;
    return leaver ? request("remove", leaver, NULL) : NULL;
}
