#include "api/metadata.h"

#include "api/format.h"

/*
 * Kubernetes' limit on the sum of all annotation keys and values. It limits the others only by what fits into a
 * request; here they are, because lists of them are compared with each other at every write.
 */
enum { ANNOTATIONS_MAX = 256 * 1024, LABELS_MAX = 1000, FINALIZERS_MAX = 100, OWNERS_MAX = 1000 };

static const struct api_field owner_reference[] = {
    {"apiVersion", API_STRING, .flags = API_REQUIRED, .doc = "API version of the owner."},
    {"kind", API_STRING, .flags = API_REQUIRED, .doc = "Kind of the owner."},
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Name of the owner."},
    {"uid", API_STRING, .flags = API_REQUIRED, .doc = "UID of the owner."},
    {"controller", API_BOOL, .doc = "Whether this owner is the managing controller; one may be."},
    {"blockOwnerDeletion", API_BOOL,
     .doc = "Whether foreground deletion of the owner waits for this object."},
    {0},
};

const struct api_field api_object_meta[] = {
    {"name", API_STRING,
     .doc = "Unique among the objects of this kind in the namespace. Cannot be changed."},
    {"generateName", API_STRING,
     .doc = "Prefix from which the server makes a unique name when name is not given."},
    {"namespace", API_STRING, .format = &api_dns_label,
     .doc = "Where the name must be unique. \"default\" when not given; empty for kinds that "
            "belong to the whole cluster."},
    {"labels", API_STRING, API_MAP, .keys = &api_qualified_name, .format = &api_label_value,
     .doc = "Short words to select objects by."},
    {"annotations", API_STRING, API_MAP, .keys = &api_annotation_key,
     .doc = "Notes of tools and people, not selectable. Every value is a string: quote true, "
            "false and numbers."},
    {"finalizers", API_STRING, API_LIST, API_SET, .format = &api_finalizer,
     .doc = "Each must be removed by its keeper before a deleted object goes away."},
    {"ownerReferences", API_OBJECT, API_LIST, API_ATOMIC_ITEMS, .fields = owner_reference,
     .merge_key = "uid",
     .doc = "The objects this one depends on; it is collected when all are gone."},
    {"uid", API_STRING, .doc = "Unique in time and space. Set by the server."},
    {"resourceVersion", API_STRING,
     .doc = "Changes with every write; send it back to be refused when somebody was faster."},
    {"generation", API_INT, .doc = "Counts changes of the desired state. Set by the server."},
    {"creationTimestamp", API_TIME, .doc = "When it was created. Set by the server."},
    {"deletionTimestamp", API_TIME, .doc = "When deletion was asked for. Set by the server."},
    {"deletionGracePeriodSeconds", API_INT, .doc = "Time to end gracefully. Set by the server."},
    {"selfLink", API_STRING, .doc = "Obsolete; accepted and ignored."},
    {"managedFields", API_ANY, API_LIST,
     .doc = "Which manager owns which field, for server-side apply. Kept by the server."},
    {0},
};

const struct api_field api_type_and_meta[] = {API_TYPE_AND_META, {0}};

static const char *check_path_segment(const char *name)
{
    if (str_eq(name, ".") || str_eq(name, ".."))
        return "must not be '.' or '..'";
    if (strpbrk(name, "/%"))
        return "must not contain '/' or '%'";
    return NULL;
}

static void check_name(const struct api_kind *kind, const json_t *metadata,
                       const struct api_path *at, struct api_report *report)
{
    const char *name = json_str(metadata, "name"), *prefix = json_str(metadata, "generateName");
    if (!name || !*name) {
        if ((!prefix || !*prefix) && !(kind->flags & API_REVIEW)) /* a question needs none */
            api_problem(report, API_KEY(at, "name"), API_MISSING, NULL,
                        "name or generateName is required");
        return;
    }
    const json_t *value = json_object_get(metadata, "name");
    if (strlen(name) > api_dns_subdomain.max) {
        api_problem(report, API_KEY(at, "name"), API_TOO_LONG, value,
                    "may not be more than %zu bytes", api_dns_subdomain.max);
        return;
    }
    const char *why =
        kind->flags & API_LOOSE_NAME ? check_path_segment(name) : api_dns_subdomain.check(name);
    if (why)
        api_problem(report, API_KEY(at, "name"), API_INVALID, value, "%s", why);
}

/* One owner at most manages the object. */
static void check_owners(const json_t *owners, const struct api_path *at, struct api_report *report)
{
    const char *manager = NULL;
    size_t i;
    json_t *owner;
    json_array_foreach(owners, i, owner) {
        if (!json_is_true(json_object_get(owner, "controller")))
            continue;
        const char *name = json_str(owner, "name");
        if (manager)
            api_problem(report, at, API_INVALID, NULL,
                        "Only one reference can have Controller set to true. Found \"true\" in "
                        "references for %s and %s",
                        manager, name ? name : "");
        manager = name ? name : "";
    }
}

static void check_count(const json_t *metadata, const char *key, size_t max,
                        const struct api_path *at, struct api_report *report)
{
    const json_t *value = json_object_get(metadata, key);
    size_t n = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    if (n > max)
        api_problem(report, API_KEY(at, key), API_TOO_MANY, NULL,
                    "must have at most %zu items, but has %zu", max, n);
}

/* What a note says, or one word of it. */
static const char *check_word(const struct api_note *note, const char *text)
{
    if (note->format->max && strlen(text) > note->format->max)
        return "is too long";
    return note->format->check(text);
}

static const char *check_note(const struct api_note *note, const char *text)
{
    const char *why = NULL;
    if (!note->list)
        return check_word(note, text);
    for (const char *at = text; *at && !why; at += *at == ',') {
        size_t n = strcspn(at, ",");
        _cleanup_free_ char *word = mem_strndup(at, n);
        why = n ? check_word(note, word) : NULL;
        at += n;
    }
    return why;
}

/* Those that end in a path or an argument. What is going may go, whatever it says. */
static void check_notes(const struct api_kind *kind, const json_t *metadata,
                        const struct api_path *at, struct api_report *report)
{
    const json_t *annotations = json_object_get(metadata, "annotations");
    if (json_object_get(metadata, "deletionTimestamp"))
        return;
    for (const struct api_note *note = kind->notes; note && note->key; note++) {
        const json_t *value = json_object_get(annotations, note->key);
        const char *text = json_string_value(value);
        const char *why = text && *text ? check_note(note, text) : NULL;
        if (why)
            api_problem(report, API_KEY(API_KEY(at, "annotations"), note->key), API_INVALID, value,
                        "%s", why);
    }
}

void api_check_metadata(const struct api_kind *kind, const json_t *object,
                        struct api_report *report)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const struct api_path *at = API_KEY(NULL, "metadata");
    check_name(kind, metadata, at, report);

    const char *namespace = json_str(metadata, "namespace");
    if (kind->flags & API_CLUSTER_SCOPED && namespace && *namespace)
        api_problem(report, API_KEY(at, "namespace"), API_FORBIDDEN, NULL,
                    "a %s belongs to the whole cluster; remove the namespace", kind->kind);

    check_owners(json_object_get(metadata, "ownerReferences"), API_KEY(at, "ownerReferences"),
                 report);

    if (!json_object_get(metadata, "deletionTimestamp")) {
        check_count(metadata, "labels", LABELS_MAX, at, report);
        check_count(metadata, "finalizers", FINALIZERS_MAX, at, report);
        check_count(metadata, "ownerReferences", OWNERS_MAX, at, report);
    }
    check_notes(kind, metadata, at, report);

    size_t total = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(metadata, "annotations"), key, value)
        total += strlen(key) + json_string_length(value);
    if (total > ANNOTATIONS_MAX)
        api_problem(report, API_KEY(at, "annotations"), API_TOO_LONG, NULL,
                    "may not be more than %d bytes together, but are %zu", ANNOTATIONS_MAX, total);
}

/* Who did not hold a deleted object cannot begin to. */
static void check_finalizers(const json_t *before, const json_t *after, struct api_report *report)
{
    const json_t *old = json_object_get(before, "finalizers");
    size_t i, k;
    json_t *finalizer, *each;
    _cleanup_(str_done) struct str added = {0};
    json_array_foreach(json_object_get(after, "finalizers"), i, finalizer) {
        bool known = false;
        json_array_foreach(old, k, each)
            known = known || json_equal(each, finalizer);
        if (!known)
            str_appendf(&added, "%s\"%s\"", added.len ? ", " : "", json_string_value(finalizer));
    }
    if (added.len)
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "finalizers"), API_FORBIDDEN, NULL,
                    "no new finalizers can be added if the object is being deleted, found new "
                    "finalizers [%s]",
                    str_get(&added));
}

static void check_fixed_notes(const struct api_kind *kind, const json_t *before,
                              const json_t *after, struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "metadata"), "annotations");
    for (const struct api_note *note = kind->notes; note && note->key; note++) {
        const char *was = json_str(json_object_get(before, "annotations"), note->key);
        const json_t *is = json_object_get(json_object_get(after, "annotations"), note->key);
        const char *text = json_string_value(is);
        if (note->fixed && was && *was && !check_note(note, was) && (!text || !str_eq(was, text)))
            api_problem(report, API_KEY(at, note->key), API_INVALID, is,
                        "field is immutable (was %s)", was);
    }
}

void api_check_metadata_update(const struct api_kind *kind, const json_t *old, const json_t *object,
                               struct api_report *report)
{
    static const char *const fixed[] = {"name", "namespace", "uid", "creationTimestamp", NULL};
    const json_t *before = json_object_get(old, "metadata");
    const json_t *after = json_object_get(object, "metadata");
    for (const char *const *key = fixed; *key; key++) {
        const json_t *was = json_object_get(before, *key), *is = json_object_get(after, *key);
        if (was && is && !json_equal(was, is))
            api_problem(report, API_KEY(API_KEY(NULL, "metadata"), *key), API_INVALID, is,
                        "field is immutable (was %s)", json_string_value(was));
    }
    check_fixed_notes(kind, before, after, report);
    if (json_object_get(before, "deletionTimestamp"))
        check_finalizers(before, after, report);
}
