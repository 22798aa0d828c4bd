/*
 * A device that a pool gets. The rules are asked in the order of the table until one objects: who has
 * chosen a device that is not there need not read that it is on no node.
 */
#include "kinds/blockdevice.h"
#include "kinds/cspc.h"

struct device {
    const struct api_cspc_view *v;
    const char *name;
    const json_t *bd, *claim; /* NULL: there is none */
    const json_t *node;       /* where it must be; NULL: not known, which was reported */
    const struct api_path *at;
    const json_t *value;
};

/* Each says what is wrong, and returns false then. */
typedef bool rule(const struct device *d);

#define REFUSE(d, ...)                                                                             \
    (api_problem((d)->v->a->report, (d)->at, API_INVALID, (d)->value, __VA_ARGS__), false)

static const char *node_name(const json_t *bd)
{
    const char *name = block_device_of(bd).spec.node_name;
    return *name ? name : api_cspc_label(bd, API_POOL_HOSTNAME);
}

/* Whether the BlockDevice is on that node. */
static bool is_on(const json_t *bd, const json_t *node)
{
    const char *name = block_device_of(bd).spec.node_name;
    if (*name)
        return str_eq(name, api_cspc_object_name(node));
    const char *host = api_cspc_label(bd, API_POOL_HOSTNAME);
    return *host && str_eq(host, api_cspc_label(node, API_POOL_HOSTNAME));
}

static bool is_ours(const struct device *d)
{
    return d->claim && str_eq(api_cspc_label(d->claim, API_POOL_CLUSTER), d->v->name);
}

static bool exists(const struct device *d)
{
    return d->bd || REFUSE(d,
                           "there is no such BlockDevice in namespace \"%s\"; `orlop disk list` "
                           "shows those there are [device-exists]",
                           d->v->ns);
}

static bool is_in_no_other_cluster(const struct device *d)
{
    const char *other = map_get(&d->v->cluster_of, d->name);
    return !other || REFUSE(d,
                            "CStorPoolCluster \"%s\" has this device already; use a free one "
                            "[device-one-cluster]",
                            other);
}

/* Replacement validation 4, and the same for devices that are added. */
static bool is_not_claimed_by_others(const struct device *d)
{
    const char *owner = api_cspc_label(d->claim, API_POOL_CLUSTER);
    if (is_ours(d) && json_at(d->claim, "metadata", "deletionTimestamp"))
        return REFUSE(d,
                      "its claim \"%s\" is being deleted; wait until the device is Unclaimed "
                      "again [device-unclaimed]",
                      api_cspc_object_name(d->claim));
    if (is_ours(d))
        return true;
    if (d->claim)
        return REFUSE(d,
                      "BlockDeviceClaim \"%s\" of %s%s%s has this device; use a free one, or "
                      "delete that claim if nobody needs it [device-unclaimed]",
                      api_cspc_object_name(d->claim),
                      *owner ? "CStorPoolCluster \"" : "somebody else", owner, *owner ? "\"" : "");
    const struct block_device bd = block_device_of(d->bd);
    const char *state = bd.status.claim_state, *holder = bd.spec.claim.name;
    if (str_eq(state, "Released"))
        return REFUSE(d, "was released and is not clean yet; wait until it is Unclaimed "
                         "[device-unclaimed]");
    return (!str_eq(state, "Claimed") && !*holder) ||
           REFUSE(d, "is claimed by \"%s\"; use a free one [device-unclaimed]",
                  *holder ? holder : "somebody");
}

static bool is_active(const struct device *d)
{
    const char *state = block_device_of(d->bd).status.state;
    return str_eq(state, "Active") ||
           REFUSE(d,
                  "is %s on node \"%s\", not Active; attach it, or use another device "
                  "[device-active]",
                  *state ? state : "in an unknown state", node_name(d->bd));
}

static bool is_on_node(const struct device *d)
{
    return !d->node || is_on(d->bd, d->node) ||
           REFUSE(d,
                  "is on node \"%s\", and this pool is on node \"%s\"; use a device of that "
                  "node [device-on-node]",
                  node_name(d->bd), api_cspc_object_name(d->node));
}

/* The condition Claimable; NULL where nobody keeps it. */
static const json_t *claimable_of(const json_t *bd)
{
    size_t i;
    json_t *condition;
    json_array_foreach(json_at(bd, "status", "conditions"), i, condition) {
        if (str_eq(json_text(condition, "type"), "Claimable"))
            return condition;
    }
    return NULL;
}

/* What is on a device that this cluster has claimed already is the cluster's own. */
static bool is_empty(const struct device *d)
{
    if (is_ours(d))
        return true;
    const json_t *condition = claimable_of(d->bd);
    const char *status = json_str(condition, "status"), *reason = json_str(condition, "reason");
    const char *message = json_str(condition, "message");
    if (status && str_eq(status, "False"))
        return REFUSE(d, "is not free (%s): %s [device-free]", reason ? reason : "in use",
                      message && *message ? message : "use another device");
    const struct block_device bd = block_device_of(d->bd);
    if (*bd.spec.mount_point)
        return REFUSE(d, "is mounted on %s; use another device [device-free]", bd.spec.mount_point);
    if (*bd.spec.fs_type)
        return REFUSE(d,
                      "has %s on it; if nobody needs that, remove it with `wipefs -a`, or use "
                      "another device [device-free]",
                      bd.spec.fs_type);
    return !str_eq(bd.spec.partitioned, "Yes") ||
           REFUSE(d, "has partitions; use one of them, or another device [device-free]");
}

/* Whether a word is in a list with commas. */
static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " ");
        if (strncmp(at, word, n) == 0 && strchr(", ", at[n]))
            return true; /* a NUL is found too */
    }
    return false;
}

/* Devices with a tag are for those who ask for it. */
static bool has_allowed_tag(const struct device *d)
{
    const char *tag = api_cspc_label(d->bd, "openebs.io/block-device-tag");
    const char *allowed = api_cspc_annotation(d->v->a->object, "openebs.io/allowed-bd-tags");
    return !*tag || lists(allowed, tag) ||
           REFUSE(d,
                  "has the tag \"%s\"; name it in the annotation openebs.io/allowed-bd-tags of "
                  "the cluster, or use a device without a tag [device-tag]",
                  tag);
}

static rule *const rules[] = {
    exists,   is_in_no_other_cluster, is_not_claimed_by_others, is_active, is_on_node,
    is_empty, has_allowed_tag,
};

int api_cspc_block_device(const struct api_cspc_view *v, const char *name, json_t **ret_bd,
                          struct err *e)
{
    const struct api_lookup *l = v->a->lookup;
    struct err why = {0};
    *ret_bd = l->get(l->context, &api_block_device, v->ns, name, &why);
    return !*ret_bd && why.code ? err_set(e, why.code, why.reason, "%s", why.msg) : 0;
}

int api_cspc_check_device(const struct api_cspc_view *v, const json_t *device, const json_t *node,
                          const struct api_path *at, struct err *e)
{
    json_auto_t *bd = NULL;
    struct device d = {.v = v, .node = node, .at = API_KEY(at, "blockDeviceName")};
    d.name = api_raid_device(device);
    d.value = json_object_get(device, "blockDeviceName");
    if (api_cspc_block_device(v, d.name, &bd, e) < 0)
        return -1;
    d.bd = bd;
    d.claim = map_get(&v->claim_of, d.name);
    for (size_t i = 0; i < ARRAY_SIZE(rules) && rules[i](&d); i++)
        ;
    return 0;
}

int api_cspc_check_moved(const struct api_cspc_view *v, const char *name, const json_t *node,
                         const struct api_path *at, bool *ret_fine, struct err *e)
{
    json_auto_t *bd = NULL;
    if (api_cspc_block_device(v, name, &bd, e) < 0)
        return -1;
    const char *state = block_device_of(bd).status.state;
    bool active = str_eq(state, "Active");
    *ret_fine = active && is_on(bd, node);
    if (!*ret_fine)
        api_problem(v->a->report, at, API_FORBIDDEN, NULL,
                    "the pool cannot move to node \"%s\" yet: its device \"%s\" is %s%s; attach "
                    "all devices of the pool to the new node first [migration-devices]",
                    api_cspc_object_name(node), name,
                    active ? "on node "
                    : bd   ? ""
                           : "not known",
                    active ? node_name(bd) : state);
    return 0;
}
