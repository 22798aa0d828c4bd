/*
 * What stands in the way of a resize: for ever, or for now.
 */
#include "controllers/volume/resize.h"

const char *resizing_why_never(const struct resizing *g, char text[RESIZING_TEXT_MAX])
{
    const struct volume_engine *x = g->w.c->engine;
    const json_t *volume = g->w.volume;
    if (!volume) {
        snprintf(text, RESIZING_TEXT_MAX, "There is no %s \"%s\" in namespace \"%s\"", x->kind,
                 g->w.name, g->w.ns);
        return "VolumeNotFound";
    }
    if (kube_deleting(volume)) {
        snprintf(text, RESIZING_TEXT_MAX, "%s \"%s\" is being deleted", x->kind, g->w.name);
        return "VolumeDeleted";
    }
    if (!str_eq(volume_annotation(volume, x->resize->enabled), "true")) {
        snprintf(text, RESIZING_TEXT_MAX,
                 "%s \"%s\" does not let itself be resized; to allow it: kubectl annotate %s %s "
                 "-n %s %s=true",
                 x->kind, g->w.name, x->singular, g->w.name, g->w.ns, x->resize->enabled);
        return "NotEnabled";
    }
    const struct volume_view view = volume_look(&g->w);
    if (g->wanted < view.size) {
        snprintf(text, RESIZING_TEXT_MAX, "%s \"%s\" has %s, and a volume does not shrink to %s",
                 x->kind, g->w.name, view.capacity, resizing_look(g).spec.capacity.text);
        return "CannotShrink";
    }
    return NULL;
}

const char *resizing_why_not_now(const struct resizing *g, const char **ret_reason,
                                 struct str *text)
{
    const struct volume_view view = volume_look(&g->w);
    if (*view.growth) {
        *ret_reason = "WaitsForTarget";
        str_appendf(text, "Waits until the target is through with the resize before, \"%s\"",
                    view.growth);
    } else if (view.snapshotting) {
        *ret_reason = "SnapshotRunning";
        str_append(text, "Waits for the snapshot that is being taken of the volume");
    } else if (!view.ready || view.healthy < view.members || view.healthy < view.factor) {
        *ret_reason = "WaitsForReplicas";
        str_appendf(text, "Waits until all %u replicas are healthy: %u are, and the volume is %s",
                    view.factor, view.healthy, view.phase);
    } else if (resizing_over_quota(g, text)) {
        *ret_reason = "QuotaExceeded";
    }
    return text->len ? str_get(text) : NULL;
}
