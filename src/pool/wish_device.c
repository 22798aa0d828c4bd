/*
 * A device of a wish: where it is, and whether it may be added to the pool. It may when its BlockDevice is
 * active on the pool's node, and a claim of the pool's cluster has it. One that is in the pool already needs
 * none of that: its label says so.
 */
#include <unistd.h>

#include "base/str.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"
#include "pool/impl.h"

/* The GUID that the object remembers for a device; 0. */
static uint64_t remembered(const struct pool_maker *m, const char *name)
{
    vec_for_each(&m->its.status.devices, it) {
        if (str_eq(it->name, name))
            return pool_number(it->guid);
    }
    return 0;
}

/* A link that stays when the machine starts anew, if there is one; else the path of the moment. */
static const char *path_of(const struct block_device *device)
{
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)device->spec.devlinks, i, it) {
        const struct device_links links = device_links_of(it);
        const char *link = json_string_value(json_array_get(links.links, 0));
        if (str_eq(links.kind, "by-id") && link && access(link, F_OK) == 0)
            return link;
    }
    return device->spec.path;
}

static json_t *claim_of(const struct pool_maker *m, const struct api_reference *ref)
{
    json_t *claim = *ref->name ? m->lookup->claim(m->lookup->context, ref->name) : NULL;
    if (claim && *ref->uid && !str_eq(kube_uid(claim), ref->uid)) {
        json_decref(claim);
        return NULL;
    }
    return claim;
}

/* Why the device may not be added to the pool; NULL: it may. */
static const char *check(const struct pool_maker *m, const char *name,
                         const struct block_device *device, const json_t *claim)
{
    struct arena *a = &m->w->arena;
    const char *host = m->its.spec.host_name; /* of the pool */
    const char *state = device->status.state, *node = device->spec.node_name;
    if (!device->json)
        return arena_printf(a, "there is no BlockDevice %s", name);
    if (!str_eq(state, "Active"))
        return arena_printf(a, "the BlockDevice %s is %s", name, *state ? state : "not active yet");
    if (*host && *node && !str_eq(node, host))
        return arena_printf(a, "the BlockDevice %s is on node %s, and the pool on %s", name, node,
                            host);
    if (!claim || kube_deleting(claim) || !str_eq(device->status.claim_state, "Claimed"))
        return arena_printf(a, "no claim has the BlockDevice %s", name);
    const char *ours = kube_label(m->its.json, API_POOL_CLUSTER);
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
    const struct block_device its = block_device_of(device);
    json_auto_t *claim = claim_of(m, &its.spec.claim);
    const char *predecessor = claim ? kube_annotation(claim, API_POOL_PREDECESSOR) : NULL;
    struct pool_device d = {
        .name = arena_strdup(a, name),
        .path = arena_strdup(a, path_of(&its)),
        .not_ready = check(m, name, &its, claim),
        .predecessor = arena_strdup(a, predecessor ? predecessor : ""),
        .guid = remembered(m, name),
    };
    str_appendf(&m->w->text, " %s %s %s %s %llu", d.name, d.path, d.not_ready ? d.not_ready : "",
                d.predecessor, (unsigned long long)d.guid);
    return d;
}
