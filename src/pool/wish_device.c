/*
 * A device of a wish: where it is, and whether it may be added to the pool. It may when its BlockDevice is
 * active on the pool's node, and a claim of the pool's cluster has it. One that is in the pool already needs
 * none of that: its label says so.
 */
#include <unistd.h>

#include "base/str.h"
#include "kube/condition.h"
#include "pool/impl.h"

/* The GUID that the object remembers for a device; 0. */
static uint64_t remembered(const json_t *object, const char *name)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_at(object, "status", "devices"), i, it) {
        const char *other = json_str(it, "blockDeviceName");
        if (other && str_eq(other, name))
            return pool_number(json_str(it, "guid"));
    }
    return 0;
}

/* A link that stays when the machine starts anew, if there is one; else the path of the moment. */
static const char *path_of(const json_t *device)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_at(device, "spec", "devlinks"), i, it) {
        const char *kind = json_str(it, "kind");
        const char *link = json_string_value(json_array_get(json_object_get(it, "links"), 0));
        if (kind && str_eq(kind, "by-id") && link && access(link, F_OK) == 0)
            return link;
    }
    return pool_text(device, "spec", "path");
}

static json_t *claim_of(const struct pool_maker *m, const json_t *device)
{
    const json_t *ref = json_at(device, "spec", "claimRef");
    const char *name = json_str(ref, "name"), *uid = json_str(ref, "uid");
    json_t *claim = name ? m->lookup->claim(m->lookup->context, name) : NULL;
    if (claim && uid && *uid && !str_eq(kube_uid(claim), uid)) {
        json_decref(claim);
        return NULL;
    }
    return claim;
}

/* Why the device may not be added to the pool; NULL: it may. */
static const char *check(const struct pool_maker *m, const char *name, const json_t *device,
                         const json_t *claim)
{
    struct arena *a = &m->w->arena;
    if (!device)
        return arena_printf(a, "there is no BlockDevice %s", name);
    const char *state = pool_text(device, "status", "state");
    const char *node = json_str(json_at(device, "spec", "nodeAttributes"), "nodeName");
    if (!str_eq(state, "Active"))
        return arena_printf(a, "the BlockDevice %s is %s", name, *state ? state : "not active yet");
    if (*m->node && node && *node && !str_eq(node, m->node))
        return arena_printf(a, "the BlockDevice %s is on node %s, and the pool on %s", name, node,
                            m->node);
    if (!claim || kube_deleting(claim) ||
        !str_eq(pool_text(device, "status", "claimState"), "Claimed"))
        return arena_printf(a, "no claim has the BlockDevice %s", name);
    const char *ours = kube_label(m->object, API_POOL_CLUSTER);
    const char *theirs = kube_label(claim, API_POOL_CLUSTER);
    if (ours && (!theirs || !str_eq(ours, theirs)))
        return arena_printf(a, "the BlockDevice %s is claimed by %s, which is not of cluster %s",
                            name, kube_name(claim), ours);
    return *path_of(device) ? NULL
                            : arena_printf(a, "the BlockDevice %s does not say its path", name);
}

struct pool_device pool_make_device(const struct pool_maker *m, const char *name)
{
    struct arena *a = &m->w->arena;
    json_auto_t *device = m->lookup->device(m->lookup->context, name);
    json_auto_t *claim = device ? claim_of(m, device) : NULL;
    const char *predecessor = claim ? kube_annotation(claim, API_POOL_PREDECESSOR) : NULL;
    struct pool_device d = {
        .name = arena_strdup(a, name),
        .path = arena_strdup(a, device ? path_of(device) : ""),
        .not_ready = check(m, name, device, claim),
        .predecessor = arena_strdup(a, predecessor ? predecessor : ""),
        .guid = remembered(m->object, name),
    };
    str_appendf(&m->w->text, " %s %s %s %s %llu", d.name, d.path, d.not_ready ? d.not_ready : "",
                d.predecessor, (unsigned long long)d.guid);
    return d;
}
