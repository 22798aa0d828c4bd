/*
 * The ReplicaSets of a Deployment: the one of the present template, what is written on them, and
 * which are kept.
 */
#include <inttypes.h>
#include <stdio.h>

#include "k8s/controllers/deployment_impl.h"
#include "kube/names.h"
#include "kube/object.h"

/* Whether two templates make the same pods; the label with their hash does not count. */
static bool same_template(const json_t *a, const json_t *b)
{
    json_auto_t *x = json_deep_copy(a), *y = json_deep_copy(b);
    json_object_del(json_object_get(json_object_get(x, "metadata"), "labels"), HASH);
    json_object_del(json_object_get(json_object_get(y, "metadata"), "labels"), HASH);
    return json_equal(x, y);
}

void deploying_find_new(struct deploying *g)
{
    const json_t *template = json_at(g->deployment, "spec", "template");
    size_t i;
    json_t *set;
    g->new = SIZE_MAX;
    json_array_foreach(g->sets, i, set) {
        if (g->new == SIZE_MAX && same_template(json_at(set, "spec", "template"), template))
            g->new = i; /* of several the oldest, so that all who look agree */
    }
}

static int64_t number_of(const json_t *object, const char *annotation)
{
    const char *text = kube_annotation(object, annotation);
    return text ? strtoll(text, NULL, 10) : 0;
}

static int64_t next_revision(const struct deploying *g)
{
    int64_t last = 0;
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        int64_t revision = number_of(set, REVISION);
        if (i != g->new &&revision > last)
            last = revision;
    }
    return last + 1;
}

static json_t *number_text(int64_t n)
{
    return json_sprintf("%" PRId64, n);
}

/* What is written on a set about the Deployment: its own annotations, but for what is not about it. */
static void copy_annotations(const json_t *deployment, json_t *out)
{
    static const char *const skipped[] = {
        "kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MOST, NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json_at(deployment, "metadata", "annotations"), key, value) {
        if (!str_in(key, skipped))
            json_object_set(out, key, value);
    }
}

static void set_scale_annotations(const struct deploying *g, json_t *out)
{
    struct rollout r = rollout_of(g->deployment);
    json_object_set_new(out, DESIRED, number_text(r.wanted));
    json_object_set_new(out, MOST, number_text(r.wanted + r.surge));
}

/* Changes members of a set, if it is still as it was read. `metadata` and `spec` are taken over. */
static int patch_set(struct deploying *g, size_t i, json_t *annotations, json_t *spec,
                     struct err *e)
{
    json_t *set = json_array_get(g->sets, i);
    json_auto_t *patch = json_pack("{s:{s:s,s:o},s:o}", "metadata", "resourceVersion",
                                   kube_version(set), "annotations", annotations, "spec", spec);
    json_t *now = kube_patch(g->d->client, &g->d->sets_r, kube_namespace(set), kube_name(set),
                             KUBE_MERGE_PATCH, patch, NULL, e);
    if (!now)
        return -1;
    json_array_set_new(g->sets, i, now);
    return 0;
}

/* Whether the object has all these annotations. */
static bool has_annotations(const json_t *object, const json_t *annotations)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)annotations, key, value) {
        if (!json_equal(value, json_at(object, "metadata", "annotations", key)))
            return false;
    }
    return true;
}

int deploying_scale(struct deploying *g, size_t i, int64_t replicas, struct err *e)
{
    json_t *set = json_array_get(g->sets, i);
    int64_t before = pods_integer(set, "spec", "replicas", 1);
    json_auto_t *annotations = json_object();
    set_scale_annotations(g, annotations);
    if (before == replicas && (!replicas || has_annotations(set, annotations)))
        return 0;
    _cleanup_free_ char *name = mem_strdup(kube_name(set));
    if (patch_set(g, i, json_incref(annotations), json_pack("{s:I}", "replicas", replicas), e) < 0)
        return -1;
    if (before != replicas)
        kube_event_normal(g->d->recorder, g->deployment, "ScalingReplicaSet",
                          "Scaled %s replica set %s from %" PRId64 " to %" PRId64,
                          replicas > before ? "up" : "down", name, before, replicas);
    return 0;
}

static void set_progress(struct deploying *g, const char *reason, const char *fmt, const char *name)
    __attribute__((format(printf, 3, 0)));

static void set_progress(struct deploying *g, const char *reason, const char *fmt, const char *name)
{
    _cleanup_free_ char *text = mem_printf(fmt, name);
    json_decref(g->progress);
    g->progress = json_pack("{s:s,s:s}", "reason", reason, "message", text);
}

/* The Deployment says which revision it has. */
static int write_revision(struct deploying *g, const char *revision, struct err *e)
{
    const char *is = kube_annotation(g->deployment, REVISION);
    if (is && str_eq(is, revision))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "resourceVersion",
                                   kube_version(g->deployment), "annotations", REVISION, revision);
    json_t *now = kube_patch(g->d->client, &g->d->deployments_r, kube_namespace(g->deployment),
                             kube_name(g->deployment), KUBE_MERGE_PATCH, patch, NULL, e);
    if (!now)
        return -1;
    json_decref(g->deployment);
    g->deployment = now;
    return 0;
}

/* A set that was once current and is so again, or is: its revision and what else it should say. */
static int refresh_new(struct deploying *g, struct err *e)
{
    json_t *set = deploying_new(g);
    int64_t is = number_of(set, REVISION), next = next_revision(g);
    json_auto_t *annotations = json_object();
    copy_annotations(g->deployment, annotations);
    set_scale_annotations(g, annotations);
    if (is < next) {
        const char *history = kube_annotation(set, HISTORY);
        json_object_set_new(annotations, REVISION, number_text(next));
        if (is)
            json_object_set_new(annotations, HISTORY,
                                json_sprintf("%s%s%" PRId64, history ? history : "",
                                             history && *history ? "," : "", is));
    }
    int64_t seconds = pods_integer(g->deployment, "spec", "minReadySeconds", 0);
    bool same = seconds == pods_integer(set, "spec", "minReadySeconds", 0);
    if ((!same || !has_annotations(set, annotations)) &&
        patch_set(g, g->new, json_incref(annotations),
                  json_pack("{s:I}", "minReadySeconds", seconds), e) < 0)
        return -1;
    if (!kube_condition_get(g->deployment, "Progressing"))
        set_progress(g, "FoundNewReplicaSet", "Found new replica set \"%s\"",
                     kube_name(deploying_new(g)));
    const char *revision = kube_annotation(deploying_new(g), REVISION);
    return write_revision(g, revision ? revision : "1", e);
}

static json_t *new_set(struct deploying *g, int64_t replicas)
{
    const json_t *spec = json_object_get(g->deployment, "spec");
    char hash[KUBE_HASH];
    json_auto_t *template = json_deep_copy(json_object_get(spec, "template"));
    kube_hash(template, g->collisions, hash);
    json_object_set_new(json_object_get(json_object_get(template, "metadata"), "labels"), HASH,
                        json_string(hash));
    json_auto_t *selector = json_deep_copy(json_object_get(spec, "selector"));
    json_t *labels = json_object_at(selector, "matchLabels");
    json_object_set_new(labels, HASH, json_string(hash));
    json_auto_t *annotations = json_object();
    copy_annotations(g->deployment, annotations);
    set_scale_annotations(g, annotations);
    json_object_set_new(annotations, REVISION, number_text(next_revision(g)));
    return json_pack(
        "{s:s,s:s,s:{s:o,s:s,s:O,s:O,s:[o]},s:{s:I,s:I,s:O,s:O}}", "apiVersion", "apps/v1", "kind",
        "ReplicaSet", "metadata", "name", json_sprintf("%.240s-%s", kube_name(g->deployment), hash),
        "namespace", kube_namespace(g->deployment), "labels",
        json_at(template, "metadata", "labels"), "annotations", annotations, "ownerReferences",
        kube_owner_reference(g->deployment), "spec", "replicas", replicas, "minReadySeconds",
        pods_integer(g->deployment, "spec", "minReadySeconds", 0), "selector", selector, "template",
        template);
}

/* The set of that name is there: it is ours, only not in the cache yet, or the hash is taken. */
static int resolve_collision(struct deploying *g, const json_t *wanted, struct err *e)
{
    json_auto_t *there =
        kube_get(g->d->client, &g->d->sets_r, kube_namespace(wanted), kube_name(wanted), e);
    if (!there)
        return -1;
    if (str_eq(kube_controller_uid(there), kube_uid(g->deployment)) &&
        same_template(json_at(there, "spec", "template"), json_at(wanted, "spec", "template"))) {
        json_array_append(g->sets, there);
        g->new = json_array_size(g->sets) - 1;
        return refresh_new(g, e);
    }
    g->collisions++; /* the status keeps it, and the next look takes another name */
    return err_set(e, ERR_ABORTED, "HashCollision", "the name %s is taken", kube_name(wanted));
}

int deploying_ensure_new(struct deploying *g, bool create, int64_t replicas, struct err *e)
{
    if (g->new != SIZE_MAX)
        return refresh_new(g, e);
    if (!create)
        return 0;
    json_auto_t *wanted = new_set(g, replicas);
    struct err why = {0};
    json_t *made = kube_create(g->d->client, &g->d->sets_r, wanted, NULL, &why);
    if (!made && why.code == ERR_ALREADY_EXISTS)
        return resolve_collision(g, wanted, e);
    if (!made) {
        kube_event_warning(g->d->recorder, g->deployment, "ReplicaSetCreateError",
                           "Failed to create new replica set \"%s\": %s", kube_name(wanted),
                           why.msg);
        *e = why;
        return -1;
    }
    json_array_append_new(g->sets, made);
    g->new = json_array_size(g->sets) - 1;
    if (replicas)
        kube_event_normal(g->d->recorder, g->deployment, "ScalingReplicaSet",
                          "Scaled up replica set %s from 0 to %" PRId64, kube_name(made), replicas);
    set_progress(g, "NewReplicaSetCreated", "Created new replica set \"%s\"", kube_name(made));
    const char *revision = kube_annotation(made, REVISION);
    return write_revision(g, revision ? revision : "1", e);
}

int deploying_clean_up(struct deploying *g, struct err *e)
{
    int64_t keep = pods_integer(g->deployment, "spec", "revisionHistoryLimit", 10);
    int64_t old = (int64_t)json_array_size(g->sets) - (g->new != SIZE_MAX);
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set) {
        if (old <= keep)
            break;
        if (i == g->new || kube_deleting(set))
            continue;
        old--;
        if (pods_integer(set, "spec", "replicas", 1) ||
            pods_integer(set, "status", "replicas", 0) || !pods_is_observed(set))
            continue;
        const struct kube_delete options = {.uid = kube_uid(set), .grace_seconds = -1};
        if (kube_delete(g->d->client, &g->d->sets_r, kube_namespace(set), kube_name(set), &options,
                        e) < 0)
            return -1;
    }
    return 0;
}
