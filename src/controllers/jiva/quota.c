/*
 * The storage quota of a namespace, for volumes that grow without a claim.
 *
 * A ResourceQuota counts claims. A volume that stands behind a claim was counted with it, when the claim
 * asked for more. One without a claim uses storage of the namespace all the same: of a quota on
 * requests.storage there is left what claims and such volumes do not use.
 */
#include "base/quantity.h"
#include "controllers/jiva/resize.h"

#define RESOURCE "requests.storage"

static bool is_claimed(struct jiva *j, const json_t *volume)
{
    const char *name = jiva_text(volume, "spec", "pv");
    json_auto_t *pv = *name ? kube_informer_json(j->pvs, NULL, name, NULL) : NULL;
    return pv && json_at(pv, "spec", "claimRef", "name");
}

/* What the namespace's volumes without a claim have or are promised. */
static uint64_t unclaimed(struct jiva *j, const char *ns)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    uint64_t sum = 0;
    kube_informer_list(j->volumes, ns, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *volume = kube_object_json(found.p[i]);
        const char *order = kube_annotation(volume, API_JIVA_RESIZE_ORDER);
        json_auto_t *text = json_string(order ? order : "");
        uint64_t size = jiva_bytes(json_at(volume, "spec", "capacity")), more = jiva_bytes(text);
        if (!is_claimed(j, volume))
            sum += more > size ? more : size;
    }
    return sum;
}

bool resizing_over_quota(const struct resizing *g, struct str *ret_why)
{
    _cleanup_(kube_objects_done) struct kube_objects quotas = {0};
    if (is_claimed(g->w.j, g->w.volume))
        return false;
    kube_informer_list(g->w.j->quotas, g->w.ns, &quotas);
    uint64_t before = jiva_bytes(json_at(g->w.volume, "spec", "capacity"));
    uint64_t more = g->wanted > before ? g->wanted - before : 0;
    for (size_t i = 0; i < quotas.len; i++) {
        json_auto_t *quota = kube_object_json(quotas.p[i]);
        const json_t *hard = json_at(quota, "spec", "hard", RESOURCE);
        uint64_t most = jiva_bytes(hard);
        uint64_t used =
            jiva_bytes(json_at(quota, "status", "used", RESOURCE)) + unclaimed(g->w.j, g->w.ns);
        if (!hard || used + more <= most)
            continue;
        char text[3][QUANTITY_TEXT_MAX];
        const uint64_t n[3] = {more, used, most};
        for (size_t k = 0; k < 3; k++) {
            struct quantity q = quantity_from_int((int64_t)n[k], QUANTITY_BINARY_SI);
            quantity_format(&q, text[k]);
        }
        str_appendf(ret_why,
                    "Waits for quota: ResourceQuota \"%s\" allows " RESOURCE
                    " of %s, %s are used, and %s more are wanted; raise it, or free storage in "
                    "namespace \"%s\"",
                    kube_name(quota), text[2], text[1], text[0], g->w.ns);
        return true;
    }
    return false;
}
