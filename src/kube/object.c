#include "kube/object.h"

static const json_t *metadata(const json_t *object)
{
    return json_object_get(object, "metadata");
}

const char *kube_name(const json_t *object)
{
    return json_text(metadata(object), "name");
}

json_t *kube_find(const json_t *objects, const char *name)
{
    for (size_t i = 0; i < json_array_size(objects); i++) {
        if (str_eq(kube_name(json_array_get(objects, i)), name))
            return json_array_get(objects, i);
    }
    return NULL;
}

const char *kube_namespace(const json_t *object)
{
    return json_text(metadata(object), "namespace");
}

const char *kube_uid(const json_t *object)
{
    return json_text(metadata(object), "uid");
}

const char *kube_version(const json_t *object)
{
    return json_text(metadata(object), "resourceVersion");
}

int64_t kube_generation(const json_t *object)
{
    return json_integer_value(json_object_get(metadata(object), "generation"));
}

bool kube_deleting(const json_t *object)
{
    return json_str(metadata(object), "deletionTimestamp") != NULL;
}

const char *kube_label(const json_t *object, const char *key)
{
    return json_str(json_object_get(metadata(object), "labels"), key);
}

const char *kube_annotation(const json_t *object, const char *key)
{
    return json_str(json_object_get(metadata(object), "annotations"), key);
}

json_t *kube_owner_reference(const json_t *owner)
{
    return json_pack("{ss ss ss ss sb sb}", "apiVersion", json_text(owner, "apiVersion"), "kind",
                     json_text(owner, "kind"), "name", kube_name(owner), "uid", kube_uid(owner),
                     "controller", 1, "blockOwnerDeletion", 1);
}

void kube_key_split(const char *key, char *buf, const char **ret_ns, const char **ret_name)
{
    size_t size = strlen(key) + 1;
    memcpy(buf, key, size);
    char *slash = strchr(buf, '/');
    if (slash)
        *slash = '\0';
    *ret_ns = slash ? buf : buf + size - 1; /* the NUL: "" */
    *ret_name = slash ? slash + 1 : buf;
}

/* The owner that controls the object, or NULL. */
static const json_t *controller(const json_t *object)
{
    size_t i;
    const json_t *owner;
    json_array_foreach(json_object_get(metadata(object), "ownerReferences"), i, owner) {
        if (json_is_true(json_object_get(owner, "controller")))
            return owner;
    }
    return NULL;
}

/* The text without metadata.managedFields; the object stays as it is. */
static void format(const json_t *object, struct str *out)
{
    if (!json_object_get(metadata(object), "managedFields")) {
        json_format(object, out);
        return;
    }
    json_auto_t *copy = json_copy((json_t *)object);
    json_t *meta = json_copy((json_t *)metadata(object));
    json_object_del(meta, "managedFields");
    json_object_set_new(copy, "metadata", meta);
    json_format(copy, out);
}

/* Appends a string to the memory of an object; returns where it is now. */
static const char *put(char **at, const char *s, size_t n)
{
    char *begin = *at;
    memcpy(begin, s, n);
    begin[n] = '\0';
    *at += n + 1;
    return begin;
}

struct kube_object *kube_object_new(const json_t *object, struct err *e)
{
    const char *ns = kube_namespace(object), *name = kube_name(object), *uid = kube_uid(object),
               *version = kube_version(object);
    if (!*name || !*uid || !*version) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidObject",
                "an object '%s' of the server has no name, uid or resourceVersion", name);
        return NULL;
    }
    const json_t *owner = controller(object);
    const char *const strings[] = {ns,
                                   uid,
                                   version,
                                   json_text(owner, "kind"),
                                   json_text(owner, "name"),
                                   json_text(owner, "uid")};
    _cleanup_(str_done) struct str text = {0};
    format(object, &text);
    if (text.len > JSON_MAX_BYTES) {
        err_set(e, ERR_INVALID_ARGUMENT, "TooLarge", "the object '%s' has more than %d bytes", name,
                JSON_MAX_BYTES);
        return NULL;
    }
    size_t size = sizeof(struct kube_object) + strlen(ns) + 1 + strlen(name) + 1 + text.len + 1;
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        size += strlen(strings[i]) + 1;

    struct kube_object *o = mem_alloc(size);
    char *at = (char *)(o + 1);
    *o = (struct kube_object){.size = (uint32_t)text.len,
                              .deleting = kube_deleting(object),
                              .generation = kube_generation(object)};
    atomic_init(&o->refs, 1);
    const char **const fields[] = {&o->ns,         &o->uid,        &o->resource_version,
                                   &o->owner_kind, &o->owner_name, &o->owner_uid};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        *fields[i] = put(&at, strings[i], strlen(strings[i]));
    o->key = at;
    if (*ns) {
        put(&at, ns, strlen(ns));
        at[-1] = '/';
    }
    o->name = put(&at, name, strlen(name));
    o->text = put(&at, text.p, text.len);
    return o;
}

struct kube_object *kube_object_ref(struct kube_object *o)
{
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

void kube_object_unref(struct kube_object *o)
{
    if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
        free(o);
}

json_t *kube_object_json(const struct kube_object *o)
{
    /* It was made from a tree, and is within the limits of one. */
    struct err e;
    json_t *object = json_parse(o->text, o->size, NULL, &e);
    if (!object)
        abort();
    return object;
}

void kube_objects_done(struct kube_objects *l)
{
    vec_for_each(l, o)
        kube_object_unref(*o);
    vec_done(l);
}

const json_t *kube_controller_of(const json_t *object)
{
    const json_t *it, *owners = json_at(object, "metadata", "ownerReferences");
    for (size_t i = 0; (it = json_array_get(owners, i)); i++) {
        if (json_is_true(json_object_get(it, "controller")) && json_str(it, "uid"))
            return it;
    }
    return NULL;
}

const char *kube_controller_uid(const json_t *object)
{
    return json_text(kube_controller_of(object), "uid");
}

bool kube_class_allows(const json_t *class, const json_t *node)
{
    const json_t *terms = json_object_get(class, "allowedTopologies");
    const json_t *labels = json_at(node, "metadata", "labels");
    size_t i, j, k;
    json_t *term, *x, *value;
    json_array_foreach((json_t *)terms, i, term) {
        bool all = true;
        json_array_foreach(json_object_get(term, "matchLabelExpressions"), j, x) {
            const char *key = json_str(x, "key");
            const json_t *label = key ? json_object_get(labels, key) : NULL;
            bool one = false;
            json_array_foreach(json_object_get(x, "values"), k, value)
                one |= label && json_equal(label, value);
            all &= one;
        }
        if (all)
            return true;
    }
    return !json_array_size(terms);
}
