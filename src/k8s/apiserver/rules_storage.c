/*
 * Storage: a claim without a class gets the default one; claims and volumes are protected while
 * they are used (protection.c lets them go); claims and the claim templates of StatefulSets grow
 * only where the class says that its volumes can.
 */
#include "api/update.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"

static const char class_annotation[] = "volume.beta.kubernetes.io/storage-class";

static bool is_default(const json_t *class)
{
    const json_t *annotations = json_at(class, "metadata", "annotations");
    const char *now = json_str(annotations, "storageclass.kubernetes.io/is-default-class");
    const char *beta = json_str(annotations, "storageclass.beta.kubernetes.io/is-default-class");
    return (now && str_eq(now, "true")) || (beta && str_eq(beta, "true"));
}

/* The default class; of several the newest, and of those the first by name. NULL: none. */
static json_t *default_class(struct apiserver_registry *g)
{
    _cleanup_(str_done) struct str collection = {0};
    struct apiserver_list list;
    struct apiserver_list_options all = {0};
    json_t *found = NULL;
    apiserver_collection(&api_storage_class, &collection);
    if (apiserver_store_list(g->store, str_get(&collection), &all, &list, NULL) < 0)
        return NULL;
    vec_for_each(&list.objects, o) {
        json_auto_t *class = json_parse((*o)->bytes, (*o)->size, NULL, NULL);
        const char *created = json_str(json_at(class, "metadata"), "creationTimestamp");
        const char *best = json_str(json_at(found, "metadata"), "creationTimestamp");
        if (!is_default(class) || (best && created && strcmp(created, best) <= 0))
            continue;
        json_decref(found);
        found = json_incref(class);
    }
    apiserver_list_done(&list);
    return found;
}

/* The class of a claim's spec, or the default one where it names none. NULL: none, or missing. */
static json_t *class_of(struct apiserver_registry *g, const json_t *spec)
{
    const char *name = json_str(spec, "storageClassName");
    if (!name)
        return default_class(g);
    return *name ? rules_get(g, &api_storage_class, NULL, name) : NULL;
}

static void fill_class(struct apiserver_admission *a)
{
    json_t *spec = json_object_get(a->object, "spec");
    const json_t *given = json_object_get(spec, "storageClassName");
    if (!json_is_object(spec) || (given && !json_is_null(given)) ||
        json_str(json_at(a->object, "metadata", "annotations"), class_annotation))
        return;
    json_auto_t *class = default_class(a->registry);
    const char *name = json_str(json_at(class, "metadata"), "name");
    if (name)
        json_object_set_new(spec, "storageClassName", json_string(name));
}

static void protect(struct apiserver_admission *a, const char *finalizer)
{
    json_t *metadata = json_object_get(a->object, "metadata");
    if (registry_has_finalizer(metadata, finalizer))
        return;
    json_t *list = json_array_at(metadata, "finalizers");
    json_array_append_new(list, json_string(finalizer)); /* not to what is no list */
}

int rules_storage_fill(struct apiserver_admission *a, struct err *e)
{
    (void)e;
    if (a->operation != APISERVER_OP_CREATE)
        return 0;
    if (a->request->kind == &api_persistent_volume_claim) {
        fill_class(a);
        protect(a, RULES_CLAIM_FINALIZER);
    } else if (a->request->kind == &api_persistent_volume) {
        protect(a, RULES_VOLUME_FINALIZER);
    }
    return 0;
}

static bool can_grow(const json_t *class)
{
    return json_is_true(json_object_get(class, "allowVolumeExpansion"));
}

static int check_claim(struct apiserver_admission *a, struct err *e)
{
    const json_t *was = json_at(a->old, "spec", "resources", "requests", "storage");
    const json_t *is = json_at(a->object, "spec", "resources", "requests", "storage");
    if (!was || !is || api_quantity_cmp(is, was) <= 0)
        return 0;
    const char *phase = json_str(json_object_get(a->old, "status"), "phase");
    if (!phase || !str_eq(phase, "Bound"))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "Only bound persistent volume claims can be expanded");
    const char *name = json_str(json_object_get(a->object, "spec"), "storageClassName");
    json_auto_t *class =
        name && *name ? rules_get(a->registry, &api_storage_class, NULL, name) : NULL;
    if (!can_grow(class))
        return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                       "only dynamically provisioned pvc can be resized and the storageclass that "
                       "provisions the pvc must support resize");
    return 0;
}

static void refuse_template(struct apiserver_admission *a, size_t i, const json_t *template)
{
    const struct api_path *spec = API_KEY(NULL, "spec");
    const struct api_path *at = API_KEY(API_AT(API_KEY(spec, "volumeClaimTemplates"), i), "spec");
    const char *name = json_str(json_object_get(template, "spec"), "storageClassName");
    if (a->registry->rules && a->registry->rules->features.fixed_claim_templates)
        api_problem(a->report, spec, API_FORBIDDEN, NULL, "%s", api_stateful_set_fixed);
    else
        api_problem(a->report, API_KEY(API_KEY(API_KEY(at, "resources"), "requests"), "storage"),
                    API_FORBIDDEN, NULL,
                    "the size can change only where the storage class allows it; %s%s%s has no "
                    "allowVolumeExpansion: true",
                    name ? "the class \"" : "the default class", name ? name : "",
                    name ? "\"" : "");
}

/* Sizes of claim templates, up or down; the rest is the kind's to compare. */
static void check_templates(struct apiserver_admission *a)
{
    const json_t *before = json_at(a->old, "spec", "volumeClaimTemplates");
    const json_t *after = json_at(a->object, "spec", "volumeClaimTemplates");
    size_t i;
    json_t *template;
    json_array_foreach(after, i, template) {
        const json_t *was =
            json_at(json_array_get(before, i), "spec", "resources", "requests", "storage");
        const json_t *is = json_at(template, "spec", "resources", "requests", "storage");
        if (!was || !is || api_quantity_cmp(was, is) == 0)
            continue;
        json_auto_t *class = class_of(a->registry, json_object_get(template, "spec"));
        if (!can_grow(class) ||
            (a->registry->rules && a->registry->rules->features.fixed_claim_templates))
            refuse_template(a, i, template);
    }
}

int rules_storage_check(struct apiserver_admission *a, struct err *e)
{
    if (a->operation != APISERVER_OP_UPDATE)
        return 0;
    if (rules_concern(a, &api_persistent_volume_claim))
        return check_claim(a, e);
    if (rules_concern(a, &api_stateful_set))
        check_templates(a);
    return 0;
}
