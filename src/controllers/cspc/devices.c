/*
 * Nodes, their devices, and claims for these.
 *
 * A claim is called after its device's uid, so that making it twice is refused by the server. A claim
 * that somebody else made for the device and labelled with the cluster is taken as it is, and gets our
 * finalizer; one without that label, or with another, is in the way, and that is said.
 */
#include "controllers/cspc/cspc.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

/* Nodes */

static bool has_labels(const json_t *node, const json_t *selector)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value) {
        const char *has = kube_label(node, key);
        if (!has || !str_eq(has, json_string_value(value)))
            return false;
    }
    return true;
}

static void selector_text(const json_t *selector, struct str *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value)
        str_appendf(out, "%s%s=%s", out->len ? "," : "", key, json_string_value(value));
}

json_t *cspc_node(struct cspc_run *r, enum cspc_part part, const json_t *selector)
{
    void *first = json_object_iter((json_t *)selector);
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_(str_done) struct str text = {0}, names = {0};
    _cleanup_free_ char *key = first ? mem_printf("%s=%s", json_object_iter_key(first),
                                                  json_string_value(json_object_iter_value(first)))
                                     : NULL;
    json_t *node = NULL;
    size_t matches = 0;
    if (key)
        kube_informer_find(r->c->nodes, CSPC_BY_LABEL, key, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *tree = kube_object_json(found.p[i]);
        if (!has_labels(tree, selector))
            continue;
        str_appendf(&names, "%s%s", matches++ ? ", " : "", found.p[i]->name);
        json_decref(node);
        node = json_incref(tree);
    }
    selector_text(selector, &text);
    if (matches == 1)
        return node;
    json_decref(node);
    if (!matches)
        cspc_trouble(r, part, false, "NodeNotFound", "no node has the labels %s", str_get(&text));
    else
        cspc_trouble(r, part, false, "SeveralNodes",
                     "%s is %zu nodes (%s), and a pool is on one; use kubernetes.io/hostname",
                     str_get(&text), matches, str_get(&names));
    return NULL;
}

/* Devices */

json_t *cspc_device(struct cspc *c, const char *ns, const char *name)
{
    return kube_informer_json(c->devices, ns, name, NULL);
}

/* The path that stays the same, where there is one. */
static const char *link_of(const struct block_device *device)
{
    const struct device_links links = device_links_of(json_array_get(device->spec.devlinks, 0));
    const char *first = json_string_value(json_array_get(links.links, 0));
    return first ? first : device->spec.path;
}

static void describe(struct cspc_run *r, const char *name, json_t *entry)
{
    json_auto_t *device = cspc_device(r->c, kube_namespace(r->cluster), name);
    const json_t *capacity = json_at(device, "spec", "capacity", "storage");
    const struct block_device its = block_device_of(device);
    const char *link = link_of(&its);
    if (capacity)
        json_object_set(entry, "capacity", (json_t *)capacity);
    if (*link)
        json_object_set_new(entry, "devLink", json_string(link));
}

void cspc_describe(struct cspc_run *r, json_t *spec)
{
    pool_each_device(spec, it)
        describe(r, it.name, (json_t *)it.json);
}

/* Whether it can be used on that node; what is wrong is noted. */
static bool is_usable(struct cspc_run *r, enum cspc_part part, const char *name,
                      const json_t *device, const char *node)
{
    const struct block_device its = block_device_of(device);
    const char *its_node = its.spec.node_name, *state = its.status.state;
    if (!device)
        cspc_trouble(r, part, false, "DeviceNotFound",
                     "there is no BlockDevice \"%s\" in namespace %s", name,
                     kube_namespace(r->cluster));
    else if (!str_eq(its_node, node))
        cspc_trouble(r, part, false, "DeviceOnOtherNode", "device %s is on node %s, not on %s",
                     name, *its_node ? its_node : "(none)", node);
    else if (!str_eq(state, "Active"))
        cspc_trouble(r, part, false, "DeviceInactive", "device %s is %s, not Active", name,
                     *state ? state : "in no state");
    else
        return true;
    return false;
}

/* Claims */

const char *cspc_predecessor(const json_t *claim)
{
    const char *old = kube_annotation(claim, API_POOL_PREDECESSOR);
    return old && *old ? old : NULL;
}

/* One of this cluster rather than another, a bound one rather than one that waits. */
static int rank(const json_t *claim, const json_t *cluster)
{
    return 2 * cspc_is_of(claim, cluster) + block_device_claim_is_bound(claim);
}

static json_t *find_claim(struct cspc_run *r, const char *device)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    _cleanup_free_ char *key = mem_printf("%s/%s", kube_namespace(r->cluster), device);
    kube_informer_find(r->c->claims, CSPC_BY_DEVICE, key, &found);
    json_t *best = NULL;
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *claim = kube_object_json(found.p[i]);
        if (best && rank(claim, r->cluster) <= rank(best, r->cluster))
            continue;
        json_decref(best);
        best = json_incref(claim);
    }
    return best;
}

json_t *cspc_claim_of(struct cspc_run *r, const char *device)
{
    json_t *claim = find_claim(r, device);
    if (claim && cspc_is_of(claim, r->cluster))
        return claim;
    json_decref(claim);
    return NULL;
}

static json_t *claim_new(struct cspc_run *r, const json_t *device, const char *predecessor)
{
    json_t *claim = json_pack(
        "{s:s,s:s,s:{s:o,s:s,s:{s:s},s:[s],s:[o]},s:{s:s,s:s,s:{s:{s:O}}}}", "apiVersion",
        r->c->claims_r.api_version, "kind", r->c->claims_r.kind, "metadata", "name",
        json_sprintf("bdc-cstor-%s", kube_uid(device)), "namespace", kube_namespace(r->cluster),
        "labels", API_POOL_CLUSTER, kube_name(r->cluster), "finalizers", API_POOL_CLUSTER_FINALIZER,
        "ownerReferences", kube_owner_reference(r->cluster), "spec", "blockDeviceName",
        kube_name(device), "deviceType", "blockdevice", "resources", "requests", "storage",
        json_at(device, "spec", "capacity", "storage"));
    if (predecessor)
        json_object_set_new(json_object_get(claim, "metadata"), "annotations",
                            json_pack("{s:s}", API_POOL_PREDECESSOR, predecessor));
    return claim;
}

/* Who has it, for people. */
static void note_taken(struct cspc_run *r, enum cspc_part part, const char *device,
                       const char *claim, const char *cluster)
{
    cspc_trouble(r, part, false, "DeviceClaimed",
                 "device %s is claimed by %s%s%s%s; use another device, or release that claim",
                 device, claim, cluster ? " (of CStorPoolCluster " : "", cluster ? cluster : "",
                 cluster ? ")" : "");
}

/* Our finalizer and, of a replacement, what it replaces. */
static int mark(struct cspc_run *r, json_t *claim, const char *predecessor, struct err *e)
{
    const char *was = cspc_predecessor(claim);
    bool held = kube_finalizer_has(claim, API_POOL_CLUSTER_FINALIZER);
    if (held && (!predecessor || (was && str_eq(was, predecessor))))
        return 0;
    json_t *metadata = json_object();
    if (!held) {
        const json_t *has = json_at(claim, "metadata", "finalizers");
        json_t *all = json_is_array(has) ? json_copy((json_t *)has) : json_array();
        json_array_append_new(all, json_string(API_POOL_CLUSTER_FINALIZER));
        json_object_set_new(metadata, "finalizers", all);
    }
    if (predecessor)
        json_object_set_new(metadata, "annotations",
                            json_pack("{s:s}", API_POOL_PREDECESSOR, predecessor));
    return cspc_patch(r->c, &r->c->claims_r, claim, json_pack("{s:o}", "metadata", metadata),
                      "claim marked", e);
}

static int make_claim(struct cspc_run *r, enum cspc_part part, const json_t *device,
                      const char *predecessor, struct err *e)
{
    json_t *made;
    if (cspc_create(r->c, &r->c->claims_r, claim_new(r, device, predecessor), &made, e) < 0)
        return -1;
    json_decref(made);
    cspc_trouble(r, part, true, "ClaimsPending", "device %s was just claimed", kube_name(device));
    return 0;
}

int cspc_claim(struct cspc_run *r, enum cspc_part part, const char *device, const char *node,
               const char *predecessor, struct err *e)
{
    json_auto_t *tree = cspc_device(r->c, kube_namespace(r->cluster), device);
    if (!is_usable(r, part, device, tree, node))
        return 0;
    json_auto_t *claim = find_claim(r, device);
    const char *holder = block_device_of(tree).spec.claim.name;
    if (!claim && *holder) {
        note_taken(r, part, device, holder, NULL);
        return 0;
    }
    if (!claim)
        return make_claim(r, part, tree, predecessor, e);
    if (!cspc_is_of(claim, r->cluster)) {
        note_taken(r, part, device, kube_name(claim), kube_label(claim, API_POOL_CLUSTER));
        return 0;
    }
    if (kube_deleting(claim)) {
        cspc_trouble(r, part, true, "ClaimGoing", "the last claim of device %s is not gone yet",
                     device);
        return 0;
    }
    if (mark(r, claim, predecessor, e) < 0)
        return -1;
    if (block_device_claim_is_bound(claim))
        return 1;
    const char *why = json_str(kube_condition_get(claim, "Bound"), "message");
    cspc_trouble(r, part, !why, "ClaimsPending", "claim %s of device %s waits%s%s",
                 kube_name(claim), device, why ? ": " : "", why ? why : "");
    return 0;
}
