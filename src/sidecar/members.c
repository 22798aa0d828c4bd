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

static bool is_offline(const struct sidecar_replica *r)
{
    return r->state == SIDECAR_OFFLINE;
}

static bool is_ill(const struct sidecar_replica *r)
{
    return r->state != SIDECAR_HEALTHY;
}

static bool is_learner(const struct sidecar_replica *r)
{
    return !r->voter;
}

/* The first that is so; NULL. */
static const struct sidecar_replica *find_replica(const struct sidecar_volume *v,
                                                  bool (*is)(const struct sidecar_replica *))
{
    for (size_t i = 0; i < v->replicas.len; i++) {
        if (is(&v->replicas.p[i]))
            return &v->replicas.p[i];
    }
    return NULL;
}

static json_t *make_request(const char *command, const char *replica,
                            const struct sidecar_replica *instead)
{
    json_t *o = json_pack("{s:s,s:s}", "command", command, "replica", replica);
    if (instead)
        json_object_set_new(o, "instead", json_string(instead->id));
    return o;
}

/* Of more than enough: who is of least use. All others have to be well. */
static const struct sidecar_replica *find_superfluous(const struct sidecar_volume *v)
{
    const struct sidecar_replica *worst = find_replica(v, is_ill);
    size_t ill = 0;
    for (size_t i = 0; i < v->replicas.len; i++)
        ill += is_ill(&v->replicas.p[i]);
    if (ill > 1)
        return NULL;
    return worst ? worst : &v->replicas.p[v->replicas.len - 1];
}

json_t *sidecar_next_request(const struct sidecar_shown *shown, const struct sidecar_wanted *wanted)
{
    const struct sidecar_volume *v = sidecar_shown_volume(shown);
    if (!v || sidecar_is_busy(shown))
        return NULL;
    size_t n = v->replicas.len;
    if (!n)
        return wanted->create
                   ? json_pack("{s:s,s:I,s:i}", "command", "create", "size",
                               (json_int_t)wanted->size, "replicas", (int)wanted->replicas)
                   : NULL;
    if (!v->serving)
        return NULL;
    const struct sidecar_replica *learner = find_replica(v, is_learner),
                                 *lost = find_replica(v, is_offline);
    const char *guest = v->guests.len ? v->guests.p[0].id : NULL;
    if (learner)
        return make_request("add", learner->id,
                            n > wanted->replicas && lost != learner ? lost : NULL);
    if (guest && n < wanted->replicas)
        return make_request("add", guest, NULL);
    if (guest && lost && n == wanted->replicas)
        return make_request("add", guest, lost);
    const struct sidecar_replica *leaver = n > wanted->replicas ? find_superfluous(v) : NULL;
    return leaver ? make_request("remove", leaver->id, NULL) : NULL;
}
