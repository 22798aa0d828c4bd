#include "node/claim_match.h"

#include <stdio.h>
#include <string.h>

#include "api/selector.h"
#include "base/quantity.h"
#include "base/str.h"
#include "kinds/blockdevice.h"
#include "kube/condition.h"

/* Why devices were passed over: those that came closest first. */
enum { TOO_SMALL, TAKEN, NOT_CLAIMABLE, INACTIVE, WRONG_TYPE, WRONG_LABELS, WRONG_NODE, REASONS };

static const struct {
    const char *reason, *text;
} words[REASONS] = {
    [TOO_SMALL] = {"TooSmall", "too small"},
    [TAKEN] = {"Claimed", "claimed or not yet cleaned"},
    [NOT_CLAIMABLE] = {"NotClaimable", "in use or with data on them"},
    [INACTIVE] = {"Inactive", "not there"},
    [WRONG_TYPE] = {"OtherType", "of another type"},
    [WRONG_LABELS] = {"OtherLabels", "with other labels or a tag that was not asked for"},
    [WRONG_NODE] = {"OtherNode", "on other nodes"},
};

bool node_device_has_claim(const json_t *device)
{
    const struct api_reference claim = block_device_of(device).spec.claim;
    return *claim.name || *claim.uid;
}

bool node_device_is_claimed_by(const json_t *device, const char *claim_uid)
{
    const char *uid = block_device_of(device).spec.claim.uid;
    return *uid && str_eq(uid, claim_uid);
}

/* A whole number of bytes as JSON has it: a number, or a quantity. */
static bool size_of(const json_t *value, uint64_t *ret)
{
    if (json_is_integer(value)) {
        *ret = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    return json_is_string(value) && quantity_parse_bytes(json_string_value(value), ret, NULL) == 0;
}

/* What is asked for; false when that is no size ("Invalid Capacity Request"). */
static bool claim_size(const struct block_device_claim *claim, uint64_t *ret_bytes,
                       struct node_match *ret)
{
    const json_t *size = json_object_get(claim->spec.requests, "storage");
    *ret_bytes = 0;
    if (!size && *claim->spec.device)
        return true;
    if (size && size_of(size, ret_bytes) && *ret_bytes > 0)
        return true;
    *ret = (struct node_match){.reason = "InvalidCapacityRequest"};
    snprintf(ret->message, sizeof(ret->message), "%s",
             size ? "spec.resources.requests.storage must be a whole number of bytes above 0"
                  : "say in spec.resources.requests.storage how large the device must be, or in "
                    "spec.blockDeviceName which one it is");
    return false;
}

struct wish {
    const char *name, *node, *host, *type;
    uint64_t size;
    struct api_selector selector;
    bool has_selector, partitions, sparse;
};

static const char *label(const json_t *device, const char *key)
{
    const char *value = kube_label(device, key);
    return value ? value : "";
}

bool node_device_is_manual(const json_t *device)
{
    return str_eq(label(device, "ndm.io/managed"), "false");
}

static bool tag_is_wanted(const struct wish *w, const json_t *device)
{
    if (!*label(device, NODE_DEVICE_TAG))
        return true;
    vec_for_each(&w->selector.requirements, r) {
        if (str_eq(r->key, NODE_DEVICE_TAG))
            return true; /* and its value is what the selector says, or it would not match */
    }
    return false;
}

static bool is_here(const struct wish *w, const json_t *device)
{
    return (!*w->node || str_eq(w->node, block_device_of(device).spec.node_name)) &&
           (!*w->host || str_eq(w->host, label(device, "kubernetes.io/hostname")));
}

/*
 * As its node says. Where conditions are not kept, as in NDM's own definition of the kind, by the rest
 * of what it says; the node looks at the device itself before it gives it away.
 */
static bool is_claimable(const struct block_device *device)
{
    if (kube_condition_get(device->json, NODE_CLAIMABLE))
        return kube_condition_is_true(device->json, NODE_CLAIMABLE);
    return !*device->spec.fs_type && !*device->spec.mount_point &&
           !str_eq(device->spec.partitioned, "Yes");
}

/* REASONS when it fits. */
static int obstacle(const struct wish *w, const json_t *device)
{
    const struct block_device its = block_device_of(device);
    const char *type = its.spec.device_type;
    if (!is_here(w, device))
        return WRONG_NODE;
    if (w->has_selector &&
        !api_selector_matches(&w->selector, json_at(device, "metadata", "labels")))
        return WRONG_LABELS;
    if (*w->type && !str_eq(w->type, type))
        return WRONG_TYPE;
    if (!*w->name) { /* who names a device knows what it is */
        if (!tag_is_wanted(w, device))
            return WRONG_LABELS;
        if ((str_eq(type, "sparse") && !w->sparse) || (str_eq(type, "partition") && !w->partitions))
            return WRONG_TYPE;
    }
    if (!str_eq(its.status.state, "Active") || kube_deleting(device))
        return INACTIVE;
    if (node_device_has_claim(device) || !str_eq(its.status.claim_state, "Unclaimed"))
        return TAKEN;
    if (!is_claimable(&its))
        return NOT_CLAIMABLE;
    return its.spec.size <= 0 || (uint64_t)its.spec.size < w->size ? TOO_SMALL : REASONS;
}

static bool is_better(const json_t *a, const json_t *b)
{
    int64_t size_a = block_device_of(a).spec.size, size_b = block_device_of(b).spec.size;
    return size_a != size_b ? size_a < size_b : strcmp(kube_name(a), kube_name(b)) < 0;
}

static void explain(const struct wish *w, const unsigned counts[REASONS], size_t n,
                    struct node_match *ret)
{
    _cleanup_(str_done) struct str s = {0};
    ret->reason = "NoDevice";
    if (*w->name && n == 0) {
        ret->reason = "NotFound";
        str_appendf(&s, "there is no BlockDevice \"%.253s\" in this namespace", w->name);
    } else {
        str_appendf(&s, "no device fits; of %zu", n);
    }
    bool closest = true;
    for (int i = 0; i < REASONS && n; i++) {
        if (!counts[i])
            continue;
        if (closest)
            ret->reason = words[i].reason;
        str_appendf(&s, "%s%u %s", closest ? ": " : ", ", counts[i], words[i].text);
        closest = false;
    }
    snprintf(ret->message, sizeof(ret->message), "%s", str_get(&s));
}

static void choose(const struct wish *w, const json_t *const *devices, size_t n,
                   struct node_match *ret)
{
    unsigned counts[REASONS + 1] = {0};
    size_t considered = 0;
    for (size_t i = 0; i < n; i++) {
        if (*w->name && !str_eq(w->name, kube_name(devices[i])))
            continue;
        considered++;
        int why = obstacle(w, devices[i]);
        counts[why]++;
        if (why == REASONS && (!ret->device || is_better(devices[i], ret->device)))
            ret->device = devices[i];
    }
    if (!ret->device)
        explain(w, counts, considered, ret);
}

/* In its place, or where older manifests have it. */
static const char *host_of(const struct block_device_claim *claim)
{
    return *claim->spec.host_name ? claim->spec.host_name : claim->spec.old_host_name;
}

void node_claim_match(const json_t *claim, const json_t *const *devices, size_t n,
                      struct node_match *ret)
{
    *ret = (struct node_match){0};
    const struct block_device_claim its = block_device_claim_of(claim);
    const json_t *selector = json_at(claim, "spec", "selector");
    struct wish w = {
        .name = its.spec.device,
        .node = its.spec.node_name,
        .host = host_of(&its),
        .type = its.spec.device_type,
        .has_selector = selector != NULL,
        .partitions = its.spec.allow_partition,
    };
    w.sparse = str_eq(w.type, "sparse");
    w.partitions |= str_eq(w.type, "partition");
    if (str_eq(w.type, "blockdevice")) /* NDM's word for any */
        w.type = "";
    struct err e = {0};
    if (!claim_size(&its, &w.size, ret))
        return;
    if (selector && api_selector_from_json(selector, &w.selector, &e) < 0) {
        ret->reason = "InvalidSelector";
        snprintf(ret->message, sizeof(ret->message), "spec.selector: %.300s", e.msg);
        return;
    }
    choose(&w, devices, n, ret);
    api_selector_done(&w.selector);
}

const char *node_claim_keeper(const json_t *claim, const json_t *const *devices, size_t n)
{
    const struct block_device_claim its = block_device_claim_of(claim);
    struct wish w = {.name = its.spec.device, .node = its.spec.node_name, .host = host_of(&its)};
    const char *keeper = NULL, *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *node = block_device_of(devices[i]).spec.node_name;
        if (*w.name && str_eq(w.name, kube_name(devices[i])))
            return node;
        if (is_here(&w, devices[i]) && (!keeper || strcmp(node, keeper) < 0))
            keeper = node;
        if (!first || strcmp(node, first) < 0)
            first = node;
    }
    return keeper ? keeper : first;
}
