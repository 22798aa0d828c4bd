/*
 * Which replicas a volume should have, decided from what its target shows.
 *
 *     no volume yet, and there never was one        create
 *     a member without a vote                       add it again: its addition was interrupted
 *     fewer than wanted, and somebody is waiting    add
 *     one is offline, and somebody is waiting       add in its place
 *     more than wanted, and the others are well     remove: who is offline, or the last
 *
 * Replicas that are known by name are as many as there are to be members, and those that are to leave
 * beside them, who are said:
 *
 *     a member without a vote                       add it again; remove it if it leaves
 *     one waits whose name an offline member has    add in its place: its data was lost
 *     one waits, and a leaver is offline            add in its place
 *     fewer than wanted stay, and one waits         add
 *     one leaves, all that are wanted are well      remove it
 *
 * Elsewhere somebody who waits is a pod of this volume on a node that has no member: pods are as many as
 * there are to be members, each on its own node, and a pod that is merely started again is the
 * member it was.
 */
#include "base/be.h"
#include "base/uuid.h"
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

static json_t *make_creation(const struct sidecar_wanted *w)
{
    json_t *o = json_pack("{s:s,s:I,s:i}", "command", "create", "size", (json_int_t)w->size,
                          "replicas", (int)w->replicas);
    if (w->consistency)
        json_object_set_new(o, "consistency", json_integer(w->consistency));
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

/* By name. */

bool sidecar_split_id(const char *id, uint64_t *ret_name, uint64_t *ret_data)
{
    struct uuid u;
    struct err why = {0};
    if (uuid_from_text(id, &u, &why) < 0)
        return false;
    *ret_name = be_get64(u.bytes);
    *ret_data = be_get64(u.bytes + 8);
    return true;
}

bool sidecar_is_leaving(const struct sidecar_wanted *wanted, uint64_t name)
{
    for (unsigned i = 0; i < wanted->leaving_n; i++) {
        if (wanted->leaving[i] == name)
            return true;
    }
    return false;
}

static uint64_t name_of(const char *id)
{
    uint64_t name = 0, data;
    return sidecar_split_id(id, &name, &data) ? name : 0;
}

/* How the members are, by who stays. */
struct staying {
    size_t count, well;
    const struct sidecar_replica *leaver, *lost_leaver;
};

static struct staying count_staying(const struct sidecar_volume *v, const struct sidecar_wanted *w)
{
    struct staying s = {0};
    for (size_t i = 0; i < v->replicas.len; i++) {
        const struct sidecar_replica *r = &v->replicas.p[i];
        if (!sidecar_is_leaving(w, name_of(r->id))) {
            s.count++;
            s.well += !is_ill(r) && r->voter;
            continue;
        }
        s.leaver = s.leaver ? s.leaver : r;
        if (is_offline(r))
            s.lost_leaver = r;
    }
    return s;
}

/* The member of this name; NULL. */
static const struct sidecar_replica *find_named(const struct sidecar_volume *v, uint64_t name)
{
    for (size_t i = 0; i < v->replicas.len; i++) {
        if (name_of(v->replicas.p[i].id) == name)
            return &v->replicas.p[i];
    }
    return NULL;
}

/* Somebody who waits and may become a member; *ret_twin is the member of the same name, or NULL. */
static const char *find_guest(const struct sidecar_volume *v, const struct sidecar_wanted *w,
                              const struct sidecar_replica **ret_twin)
{
    for (size_t i = 0; i < v->guests.len; i++) {
        uint64_t name = name_of(v->guests.p[i].id);
        *ret_twin = find_named(v, name);
        if (name && !sidecar_is_leaving(w, name) && (!*ret_twin || is_offline(*ret_twin)))
            return v->guests.p[i].id;
    }
    return NULL;
}

static json_t *next_named(const struct sidecar_volume *v, const struct sidecar_wanted *wanted)
{
    const struct staying s = count_staying(v, wanted);
    const struct sidecar_replica *learner = find_replica(v, is_learner), *twin = NULL;
    if (learner && sidecar_is_leaving(wanted, name_of(learner->id)))
        return make_request("remove", learner->id, NULL);
    if (learner) {
        const struct sidecar_replica *other = NULL; /* whose place it takes */
        for (size_t i = 0; i < v->replicas.len && !other; i++) {
            const struct sidecar_replica *r = &v->replicas.p[i];
            if (r != learner && is_offline(r) && name_of(r->id) == name_of(learner->id))
                other = r;
        }
        return make_request("add", learner->id, other ? other : s.lost_leaver);
    }
    const char *guest = find_guest(v, wanted, &twin);
    if (guest && twin)
        return make_request("add", guest, twin);
    if (guest && s.count < wanted->replicas && s.lost_leaver)
        return make_request("add", guest, s.lost_leaver);
    if (guest && s.count < wanted->replicas)
        return make_request("add", guest, NULL);
    bool all_well = s.count >= wanted->replicas && s.well == s.count;
    return s.leaver && all_well ? make_request("remove", s.leaver->id, NULL) : NULL;
}

json_t *sidecar_next_request(const struct sidecar_shown *shown, const struct sidecar_wanted *wanted)
{
    const struct sidecar_volume *v = sidecar_shown_volume(shown);
    if (!v || sidecar_is_busy(shown))
        return NULL;
    size_t n = v->replicas.len;
    if (!n)
        return wanted->create ? make_creation(wanted) : NULL;
    if (!v->serving)
        return NULL;
    if (wanted->named)
        return next_named(v, wanted);
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
