#include <inttypes.h>

#include "k8s/controllers/pods.h"
#include "k8s/controllers/statefulset.h"
#include "kube/names.h"

int64_t statefulset_ordinal(const json_t *set, const json_t *pod)
{
    const char *name = kube_name(pod), *own = kube_name(set);
    size_t n = strlen(own);
    if (!str_starts_with(name, own) || name[n] != '-' || !name[n + 1] ||
        strspn(name + n + 1, "0123456789") != strlen(name + n + 1) || strlen(name + n + 1) > 9 ||
        (name[n + 1] == '0' && name[n + 2]))
        return -1;
    return strtoll(name + n + 1, NULL, 10);
}

/* The claims of the templates in place of volumes of the same name. */
static void add_volumes(const json_t *set, json_t *spec, int64_t ordinal)
{
    json_auto_t *claims = json_incref((json_t *)json_at(set, "spec", "volumeClaimTemplates"));
    json_t *volumes = json_array_at(spec, "volumes"), *claim, *volume;
    size_t i, j;
    json_array_foreach(claims, i, claim) {
        json_array_foreach(volumes, j, volume) {
            const char *name = json_str(volume, "name");
            if (name && str_eq(name, kube_name(claim))) {
                json_array_remove(volumes, j);
                break;
            }
        }
        json_t *of = json_sprintf("%s-%s-%" PRId64, kube_name(claim), kube_name(set), ordinal);
        json_array_append_new(volumes, json_pack("{s:s,s:{s:o}}", "name", kube_name(claim),
                                                 "persistentVolumeClaim", "claimName", of));
    }
    if (!json_array_size(volumes))
        json_object_del(spec, "volumes");
}

json_t *statefulset_pod(const json_t *set, const json_t *template, int64_t ordinal,
                        const char *revision)
{
    const char *service = json_str(json_object_get(set, "spec"), "serviceName");
    _cleanup_free_ char *name = mem_printf("%s-%" PRId64, kube_name(set), ordinal);
    json_t *pod = pods_from_template(set, template, name);
    json_t *spec = json_object_get(pod, "spec");
    json_t *labels = json_object_at(json_object_get(pod, "metadata"), "labels");
    json_object_set_new(labels, STATEFULSET_HASH, json_string(revision));
    json_object_set_new(labels, "statefulset.kubernetes.io/pod-name", json_string(name));
    json_object_set_new(labels, "apps.kubernetes.io/pod-index", json_sprintf("%" PRId64, ordinal));
    json_object_set_new(spec, "hostname", json_string(name));
    if (service && *service)
        json_object_set_new(spec, "subdomain", json_string(service));
    add_volumes(set, spec, ordinal);
    return pod;
}

json_t *statefulset_claims(const json_t *set, int64_t ordinal)
{
    json_t *claims = json_array(), *template;
    size_t i;
    json_array_foreach((json_t *)json_at(set, "spec", "volumeClaimTemplates"), i, template) {
        json_t *claim = json_deep_copy(template);
        json_t *metadata = json_object_at(claim, "metadata");
        json_object_set_new(
            metadata, "name",
            json_sprintf("%s-%s-%" PRId64, kube_name(template), kube_name(set), ordinal));
        json_object_set_new(metadata, "namespace", json_string(kube_namespace(set)));
        json_t *labels = json_deep_copy(json_at(set, "spec", "selector", "matchLabels"));
        if (labels) {
            json_object_update(json_object_at(metadata, "labels"), labels);
            json_decref(labels);
        }
        json_object_del(claim, "status");
        json_object_set_new(claim, "apiVersion", json_string("v1"));
        json_object_set_new(claim, "kind", json_string("PersistentVolumeClaim"));
        json_array_append_new(claims, claim);
    }
    return claims;
}

json_t *statefulset_revision(const json_t *set, int64_t number)
{
    char hash[KUBE_HASH];
    json_t *template = json_deep_copy(json_at(set, "spec", "template"));
    json_t *labels = json_deep_copy(json_at(set, "spec", "template", "metadata", "labels"));
    kube_hash(template, 0, hash);
    json_object_set_new(template, "$patch", json_string("replace"));
    json_t *metadata =
        json_pack("{s:o,s:s,s:o,s:[o]}", "name", json_sprintf("%.240s-%s", kube_name(set), hash),
                  "namespace", kube_namespace(set), "labels", labels ? labels : json_object(),
                  "ownerReferences", kube_owner_reference(set));
    json_object_set_new(json_object_get(metadata, "labels"), "controller.kubernetes.io/hash",
                        json_string(hash));
    return json_pack("{s:s,s:s,s:o,s:{s:{s:o}},s:I}", "apiVersion", "apps/v1", "kind",
                     "ControllerRevision", "metadata", metadata, "data", "spec", "template",
                     template, "revision", (json_int_t)number);
}

const json_t *statefulset_template(const json_t *revision)
{
    return json_at(revision, "data", "spec", "template");
}

/* The end of pods that are not wanted, or not as they are. */
static struct statefulset_step next_end(const struct statefulset_pod_state *pods, size_t n,
                                        size_t wanted, size_t partition, bool parallel,
                                        bool rolling)
{
    for (size_t i = n; i > wanted; i--) {
        if (!pods[i - 1].there)
            continue;
        if (!pods[i - 1].ending)
            return (struct statefulset_step){STATEFULSET_DELETE, i - 1};
        if (!parallel)
            return (struct statefulset_step){0};
    }
    for (size_t i = wanted; rolling && i > partition; i--) {
        const struct statefulset_pod_state *p = &pods[i - 1];
        if (p->there && !p->updated && !p->ending)
            return (struct statefulset_step){STATEFULSET_DELETE, i - 1};
        if (!p->available)
            break; /* one at a time */
    }
    return (struct statefulset_step){0};
}

struct statefulset_step statefulset_next(const struct statefulset_pod_state *pods, size_t n,
                                         size_t wanted, size_t partition, bool parallel,
                                         bool rolling)
{
    for (size_t i = 0; i < wanted && i < n; i++) {
        if (pods[i].failed && !pods[i].ending)
            return (struct statefulset_step){STATEFULSET_DELETE, i};
        if (!pods[i].there)
            return (struct statefulset_step){STATEFULSET_CREATE, i};
        if (parallel || pods[i].available)
            continue;
        /* One that never becomes ready is replaced, if what is wanted now is something else. */
        bool stuck = !pods[i].updated && !pods[i].ending && rolling && i >= partition;
        return (struct statefulset_step){stuck ? STATEFULSET_DELETE : STATEFULSET_NOTHING, i};
    }
    return next_end(pods, n, wanted, partition, parallel, rolling);
}
