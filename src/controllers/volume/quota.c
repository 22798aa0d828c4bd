/*
 * The storage quota of a namespace, for volumes that grow without a claim.
 *
 * A ResourceQuota counts claims. A volume that stands behind a claim was counted with it, when the
 * claim asked for more. One without a claim uses storage of the namespace all the same: of a quota
 * on requests.storage there is left what claims and such volumes do not use.
 *
 * Several resizes are looked at side by side, and the cache does not have at once what was written
 * for one of them. So what has been promised is noted here, by the volume's uid, until its resize
 * has ended.
 */
#include "base/quantity.h"
#include "controllers/volume/resize.h"

#define RESOURCE "requests.storage"

static bool is_claimed(struct volume_controller *v, const json_t *volume)
{
    struct volume_view view;
    v->engine->view(volume, &view);
    const char *name = view.pv;
    json_auto_t *pv = *name ? kube_informer_json(v->pvs, NULL, name, NULL) : NULL;
    return pv && json_at(pv, "spec", "claimRef", "name");
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the namespace's volumes without a claim have or are promised, but for one. With the lock. */
static uint64_t sum_unclaimed(struct volume_controller *v, const char *ns, const char *but)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    uint64_t sum = 0;
    kube_informer_list(v->volumes, ns, &found);
    for (size_t i = 0; i < found.len; i++) {
        json_auto_t *volume = kube_object_json(found.p[i]);
        struct volume_view view;
        v->engine->view(volume, &view);
        uint64_t promised = (uint64_t)(uintptr_t)map_get(&v->promised, found.p[i]->uid);
        if (!str_eq(found.p[i]->name, but) && !is_claimed(v, volume))
            sum += larger(view.size, larger(promised, view.ordered));
    }
    return sum;
}

void resizing_forget(const struct resizing *g)
{
    struct volume_controller *v = g->w.c;
    pthread_mutex_lock(&v->lock);
    map_remove(&v->promised, kube_uid(g->w.volume));
    pthread_mutex_unlock(&v->lock);
}

/* Says that a quota has no room. */
static void explain_quota(const struct resizing *g, const char *quota, const uint64_t n[3],
                          struct str *ret_why)
{
    char text[3][QUANTITY_TEXT_MAX];
    for (size_t k = 0; k < 3; k++) {
        struct quantity q = quantity_from_int((int64_t)n[k], QUANTITY_BINARY_SI);
        quantity_format(&q, text[k]);
    }
    str_appendf(ret_why,
                "Waits for quota: ResourceQuota \"%s\" allows " RESOURCE
                " of %s, %s are used, and %s more are wanted; raise it, or free storage in "
                "namespace \"%s\"",
                quota, text[2], text[1], text[0], g->w.ns);
}

bool resizing_over_quota(const struct resizing *g, struct str *ret_why)
{
    struct volume_controller *v = g->w.c;
    _cleanup_(kube_objects_done) struct kube_objects quotas = {0};
    if (is_claimed(v, g->w.volume))
        return false;
    kube_informer_list(v->quotas, g->w.ns, &quotas);
    uint64_t before = volume_look(&g->w).size;
    uint64_t more = g->wanted > before ? g->wanted - before : 0;
    pthread_mutex_lock(&v->lock);
    uint64_t volumes = before + sum_unclaimed(v, g->w.ns, g->w.name);
    for (size_t i = 0; i < quotas.len && !ret_why->len; i++) {
        json_auto_t *quota = kube_object_json(quotas.p[i]);
        const json_t *hard = json_at(quota, "spec", "hard", RESOURCE);
        uint64_t most = volume_bytes(hard);
        uint64_t used = volume_bytes(json_at(quota, "status", "used", RESOURCE)) + volumes;
        if (hard && used + more > most)
            explain_quota(g, kube_name(quota), (const uint64_t[3]){more, used, most}, ret_why);
    }
    if (!ret_why->len)
        map_set(&v->promised, kube_uid(g->w.volume), (void *)(uintptr_t)g->wanted);
    pthread_mutex_unlock(&v->lock);
    return ret_why->len > 0;
}
