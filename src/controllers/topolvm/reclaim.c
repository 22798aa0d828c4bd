/*
 * What becomes of volumes whose claim is gone.
 *
 *     Delete   LogicalVolume deleted ──(its node removes it)──> PersistentVolume deleted
 *     Retain   both stay; one that somebody deletes leaves the other
 *
 * A PersistentVolume that is to go with its volume has a finalizer, so that one that people delete
 * themselves leaves no LogicalVolume behind either. A node that does not answer is waited for, not
 * asked again: its LogicalVolume going is what wakes this.
 */
#include "controllers/topolvm/topolvm.h"
#include "kinds/kinds.h"
#include "kube/condition.h"
#include "kube/groups.h"

static bool is_ours(const json_t *volume)
{
    const char *by = kube_annotation(volume, "pv.kubernetes.io/provisioned-by");
    const char *driver = json_str(json_at(volume, "spec", "csi"), "driver");
    return topolvm_is_ours(by) && topolvm_is_ours(driver);
}

/* Whether its LogicalVolume is to go: nobody claims it, and that is its policy. */
static bool is_over(const json_t *volume)
{
    const char *phase = json_str(json_object_get(volume, "status"), "phase");
    bool unused = phase && (str_eq(phase, "Released") || str_eq(phase, "Failed"));
    bool unclaimed = kube_deleting(volume) && !(phase && str_eq(phase, "Bound"));
    return str_eq(json_text(volume, "spec", "persistentVolumeReclaimPolicy"), "Delete") &&
           (unused || unclaimed);
}

static int end(struct topolvm *t, json_t **volume, struct err *e)
{
    json_auto_t *lv = topolvm_ledger_volume(t->ledger, *volume);
    if (!lv) { /* not in the cache: ask, so that nothing is left that was only not seen yet */
        struct err why = {0};
        lv = kube_get_any(t->client, &api_logical_volume, NULL, kube_name(*volume), &why);
        if (!lv && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
    }
    if (lv && kube_deleting(lv))
        return 0;
    const struct kube_delete o = {.uid = kube_uid(lv ? lv : *volume), .grace_seconds = -1};
    if (lv)
        return kube_delete(t->client, kube_groups_of(&t->ledger->lvs, lv), NULL, kube_name(lv), &o,
                           e);
    if (!kube_deleting(*volume) &&
        kube_delete(t->client, &t->volumes_r, NULL, kube_name(*volume), &o, e) < 0)
        return -1;
    json_auto_t *now = kube_get(t->client, &t->volumes_r, NULL, kube_name(*volume), NULL);
    if (!now || !str_eq(kube_uid(now), kube_uid(*volume)))
        return 0;
    json_decref(*volume);
    *volume = json_incref(now);
    return kube_finalizer_remove(t->client, &t->volumes_r, volume, TOPOLVM_VOLUME_FINALIZER, e);
}

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    struct topolvm *t = context;
    (void)ns;
    (void)ret;
    json_t *volume = kube_informer_json(t->volumes, NULL, name, NULL);
    int status = 0;
    if (volume && is_ours(volume)) {
        const char *policy =
            json_str(json_object_get(volume, "spec"), "persistentVolumeReclaimPolicy");
        if (is_over(volume))
            status = end(t, &volume, e);
        else if (!policy || !str_eq(policy, "Delete"))
            status = kube_finalizer_remove(t->client, &t->volumes_r, &volume,
                                           TOPOLVM_VOLUME_FINALIZER, e);
        else if (!kube_deleting(volume))
            status =
                kube_finalizer_add(t->client, &t->volumes_r, &volume, TOPOLVM_VOLUME_FINALIZER, e);
    }
    json_decref(volume);
    return status;
}

static void map_lv(struct kube_controller *c, const struct kube_object *lv, void *context)
{
    (void)context;
    json_auto_t *object = kube_object_json(lv);
    kube_controller_add(c, NULL, logical_volume_of(object).spec.name);
}

int topolvm_setup_reclaim(struct topolvm *t, struct kube_manager *m, struct err *e)
{
    const struct kube_controller_options o = {
        .name = "topolvm-reclaim", .workers = 1, .reconcile = reconcile, .context = t};
    struct kube_controller *c = kube_manager_controller(m, &o, e);
    if (!c)
        return -1;
    kube_controller_watch(c, (struct kube_source){.informer = t->volumes});
    kube_groups_watch(&t->ledger->lvs, c, (struct kube_source){.map = map_lv});
    return 0;
}
