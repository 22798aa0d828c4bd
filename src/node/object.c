#include "node/object.h"

#include "base/str.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"
#include "node/claim_match.h"

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(object, key, json_string(text));
    else
        json_object_del(object, key);
}

static json_t *links_of(const struct node_device *d)
{
    json_t *list = json_array();
    for (int kind = 0; kind < NODE_LINKS; kind++) {
        if (!d->links[kind].len)
            continue;
        json_t *paths = json_array();
        vec_for_each(&d->links[kind], link)
            json_array_append_new(paths, json_string(*link));
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "kind", node_link_names[kind], "links", paths));
    }
    return list;
}

static void set_details(json_t *spec, const struct node_device *d)
{
    json_t *details = json_object();
    json_object_set_new(details, "deviceType", json_string(node_device_type_name(d->type)));
    if (d->rotation_known)
        json_object_set_new(details, "driveType", json_string(d->rotational ? "HDD" : "SSD"));
    json_object_set_new(details, "logicalBlockSize", json_integer(d->logical_sector));
    json_object_set_new(details, "physicalBlockSize", json_integer(d->physical_sector));
    json_object_set_new(details, "hardwareSectorSize", json_integer(d->hardware_sector));
    set_text(details, "model", d->model);
    set_text(details, "vendor", d->vendor);
    set_text(details, "serial", d->type == NODE_SPARSE ? "" : d->serial);
    set_text(details, "firmwareRevision", d->firmware);
    json_object_set_new(spec, "details", details);
}

static void set_spec(json_t *spec, const struct node_device *d, const struct node_name *n)
{
    json_object_set_new(spec, "nodeAttributes", json_pack("{s:s}", "nodeName", n->node));
    set_text(spec, "path", d->path);
    json_object_set_new(spec, "capacity",
                        json_pack("{s:I, s:I, s:I}", "storage", (json_int_t)d->size,
                                  "physicalSectorSize", (json_int_t)d->physical_sector,
                                  "logicalSectorSize", (json_int_t)d->logical_sector));
    set_details(spec, d);
    json_object_set_new(spec, "devlinks", links_of(d));
    json_object_set_new(spec, "partitioned",
                        json_string(d->partitions || d->probe.n_partitions ? "Yes" : "No"));
    const char *slash = strrchr(d->path, '/');
    _cleanup_free_ char *disk =
        d->parent ? mem_printf("%.*s/%s", (int)(slash - d->path), d->path, d->parent) : NULL;
    set_text(spec, "parentDevice", disk);
    json_object_del(spec, "filesystem");
    if (d->probe.type[0] || d->mounted) {
        json_t *filesystem = json_object_at(spec, "filesystem");
        set_text(filesystem, "fsType", d->probe.type);
        set_text(filesystem, "mountPoint", d->mounted);
    }
}

static void set_metadata(json_t *metadata, const struct node_device *d, const struct node_name *n)
{
    json_t *labels = json_object_at(metadata, "labels");
    json_object_set_new(labels, "kubernetes.io/hostname", json_string(n->host));
    json_object_set_new(labels, "ndm.io/blockdevice-type", json_string("blockdevice"));
    if (!json_object_get(labels, "ndm.io/managed")) /* "false" is somebody's wish */
        json_object_set_new(labels, "ndm.io/managed", json_string("true"));
    json_t *annotations = json_object_at(metadata, "annotations");
    json_object_set_new(annotations, NODE_SCHEME_ANNOTATION,
                        json_string(node_scheme_name(d->scheme)));
    set_text(annotations, NODE_FSUUID_ANNOTATION, d->probe.uuid);
    set_text(annotations, "internal.openebs.io/partition-uuid",
             d->scheme == NODE_BY_PARTITION ? d->identity : "");
}

static void set_condition(json_t *status, bool claimable, const char *reason, const char *message,
                          const struct clock *clock)
{
    json_t *conditions = json_array_at(status, "conditions");
    struct kube_condition c = {.type = NODE_CLAIMABLE,
                               .status = claimable ? "True" : "False",
                               .reason = reason,
                               .message = message};
    kube_condition_set(conditions, &c, clock);
}

/* A device that refers to a claim is not free, even when whoever wrote that did not get to say so. */
static const char *set_claim_state(json_t *object, json_t *status)
{
    const char *is = block_device_of(object).status.claim_state;
    bool given = json_is_object(json_at(object, "spec", "claimRef"));
    if (str_eq(is, "Released") || str_eq(is, "Claimed"))
        return is;
    json_object_set_new(status, "claimState", json_string(given ? "Claimed" : "Unclaimed"));
    return given ? "Claimed" : "Unclaimed";
}

static void set_status(json_t *object, const struct node_device *d, const struct clock *clock)
{
    json_t *status = json_object_at(object, "status");
    const char *claim = set_claim_state(object, status),
               *name = block_device_of(object).spec.claim.name;
    _cleanup_free_ char *why = NULL;
    json_object_set_new(status, "state", json_string("Active"));
    if (!str_eq(claim, "Unclaimed")) {
        bool released = str_eq(claim, "Released");
        why = mem_printf(released ? "it was released by the claim %s and is not yet clean"
                                  : "the claim %s has it",
                         *name ? name : "that is gone");
        set_condition(status, false, released ? "Released" : "Claimed", why, clock);
    } else {
        set_condition(status, !d->obstacle, d->obstacle ? d->obstacle : "Free", d->why, clock);
    }
}

json_t *node_object_update(const json_t *object, const struct node_device *d,
                           const struct node_name *n, const struct clock *clock)
{
    json_t *wanted = json_deep_copy(object);
    set_metadata(json_object_at(wanted, "metadata"), d, n);
    set_spec(json_object_at(wanted, "spec"), d, n);
    set_status(wanted, d, clock);
    return wanted;
}

json_t *node_object_new(const struct node_device *d, const struct node_name *n,
                        const struct clock *clock)
{
    json_auto_t *bare =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "openebs.io/v1alpha1", "kind",
                  "BlockDevice", "metadata", "name", d->object, "namespace", n->ns);
    return node_object_update(bare, d, n, clock);
}

json_t *node_object_gone(const json_t *object, const struct clock *clock)
{
    json_t *wanted = json_deep_copy(object);
    json_t *status = json_object_at(wanted, "status");
    set_claim_state(wanted, status);
    json_object_set_new(status, "state", json_string("Inactive"));
    set_condition(status, false, "Inactive",
                  "the device is not there any more; if it comes back, at whatever path, it is "
                  "known again",
                  clock);
    return wanted;
}

json_t *node_object_manual(const json_t *object)
{
    json_t *wanted = json_deep_copy(object), *status = json_object_at(wanted, "status");
    const char *state = block_device_of(object).status.state;
    set_claim_state(wanted, status);
    if (!*state || str_eq(state, "Unknown"))
        json_object_set_new(status, "state", json_string("Active"));
    return wanted;
}

bool node_object_is_labelled(const json_t *object)
{
    const char *scheme = kube_annotation(object, NODE_SCHEME_ANNOTATION);
    return scheme && str_eq(scheme, node_scheme_name(NODE_BY_LABEL));
}
