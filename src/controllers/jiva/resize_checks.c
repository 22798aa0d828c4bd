/*
 * What stands in the way of a resize: for ever, or for now.
 */
#include "controllers/jiva/resize.h"

const char *resizing_why_never(const struct resizing *g, char text[RESIZING_TEXT_MAX])
{
    const json_t *volume = g->w.volume;
    if (!volume) {
        snprintf(text, RESIZING_TEXT_MAX, "There is no JivaVolume \"%s\" in namespace \"%s\"",
                 g->w.name, g->w.ns);
        return "VolumeNotFound";
    }
    if (kube_deleting(volume)) {
        snprintf(text, RESIZING_TEXT_MAX, "JivaVolume \"%s\" is being deleted", g->w.name);
        return "VolumeDeleted";
    }
    if (!str_eq(jiva_annotation(volume, API_JIVA_RESIZE_ENABLED), "true")) {
        snprintf(text, RESIZING_TEXT_MAX,
                 "JivaVolume \"%s\" does not let itself be resized; to allow it: kubectl annotate "
                 "jivavolume %s -n %s " API_JIVA_RESIZE_ENABLED "=true",
                 g->w.name, g->w.name, g->w.ns);
        return "NotEnabled";
    }
    if (g->wanted < jiva_bytes(json_at(volume, "spec", "capacity"))) {
        snprintf(text, RESIZING_TEXT_MAX,
                 "JivaVolume \"%s\" has %s, and a volume does not shrink to %s", g->w.name,
                 jiva_text(volume, "spec", "capacity"), jiva_text(g->resize, "spec", "capacity"));
        return "CannotShrink";
    }
    return NULL;
}

/* Whether the target is at a snapshot, or has been told to be. */
static bool snapshot_runs(const json_t *volume)
{
    const char *text = kube_annotation(volume, API_JIVA_SNAPSHOT);
    json_auto_t *order = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
    const char *id = json_str(order, "id");
    const json_t *said = json_at(volume, "status", "snapshotOrder");
    const char *phase = json_str(said, "phase"), *answered = json_str(said, "id");
    bool open = id && (!answered || !str_eq(answered, id) || !phase || str_eq(phase, "Running"));
    return open || strstr(jiva_text(volume, "status", "operation"), "snapshot");
}

const char *resizing_why_not_now(const struct resizing *g, const char **ret_reason,
                                 struct str *text)
{
    const json_t *volume = g->w.volume, *replicas = json_at(volume, "status", "replicaStatus");
    unsigned healthy = 0;
    size_t i;
    json_t *it;
    json_array_foreach((json_t *)(uintptr_t)replicas, i, it) {
        const char *state = json_str(it, "state");
        healthy += state && str_eq(state, "Healthy");
    }
    const char *earlier = json_str(json_at(volume, "status", "resize"), "name");
    if (earlier) {
        *ret_reason = "WaitsForTarget";
        str_appendf(text, "Waits until the target is through with the resize before, \"%s\"",
                    earlier);
    } else if (snapshot_runs(volume)) {
        *ret_reason = "SnapshotRunning";
        str_append(text, "Waits for the snapshot that is being taken of the volume");
    } else if (!str_eq(jiva_text(volume, "status", "phase"), "Ready") ||
               healthy < json_array_size(replicas) || healthy < api_jiva_factor(volume)) {
        *ret_reason = "WaitsForReplicas";
        str_appendf(text, "Waits until all %u replicas are healthy: %u are, and the volume is %s",
                    api_jiva_factor(volume), healthy, jiva_text(volume, "status", "phase"));
    } else if (resizing_over_quota(g, text)) {
        *ret_reason = "QuotaExceeded";
    }
    return text->len ? str_get(text) : NULL;
}
