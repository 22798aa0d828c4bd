/*
 * The kinds this project serves, and how to find them.
 */
#pragma once

#include "api/field.h"
#include "api/report.h"

struct api_group_version {
    const char *group; /* "" for the core group */
    const char *version;
};

struct api_column {
    const char *name, *type, *path, *doc;
    int priority; /* above 0: only in -o wide */
    /*
     * In place of a path, for what one cannot say; a new reference. `now` in ns. Kinds that have a
     * definition cannot have it.
     */
    json_t *(*cell)(const json_t *object, int64_t now);
};

enum api_kind_flag {
    API_CLUSTER_SCOPED = 1 << 0,
    API_BUILTIN = 1 << 1, /* Kubernetes' own: no CRD; its message has what its table has not */
    API_STATUS = 1 << 2,  /* has /status, and the main path leaves status alone */
    API_SCALE = 1 << 4,
    API_LOOSE_NAME = 1 << 5, /* a name is any path segment, as in RBAC: system:node */
    API_GROUP_KEYS = 1 << 6, /* annotations and finalizers are named after the API group in use */
    API_REVIEW = 1 << 7,     /* a question: it can be created, is answered, and never stored */
    API_TOKEN = 1 << 8,      /* has /token */
    API_LOG = 1 << 9,        /* has /log */
    API_APPROVAL = 1 << 13,  /* has /approval, which writes conditions */
    API_BINDING = 1 << 14,   /* has /binding */
    API_FINALIZE = 1 << 10,  /* has /finalize, for finalizers in its spec that hold it too */

    /* Of kinds that users define: */
    API_TERMINATING = 1 << 11, /* its definition is being deleted: nothing can be created */
    API_SIBLING = 1 << 12,     /* another version of the kind before it, with the same objects */
};

/* An annotation that programs act on: what it may say. */
struct api_note {
    const char *key;
    const struct api_format *format;
    bool list;  /* of such, separated by commas */
    bool fixed; /* once it is there it stays as it is */
};

struct api_among;
struct api_schema;
struct api_conversion;

/* What to do about members that the table does not name. */
enum api_unknown {
    API_UNKNOWN_ERROR,
    API_UNKNOWN_WARN,
    API_UNKNOWN_IGNORE,
};

struct api_kind {
    const char *kind, *plural, *singular;
    const char *const *short_names;           /* ends with NULL */
    const struct api_group_version *versions; /* the canonical one first; ends with {NULL} */
    unsigned published; /* place in versions of the one that the peers published */
    unsigned flags;
    const struct api_field *fields;   /* begins with API_TYPE_AND_META */
    const struct api_column *columns; /* ends with a column without a name */
    const struct api_note *notes;     /* ends with one without a key; NULL: none */
    /*
     * With API_SCALE, where /scale finds its numbers: dotted paths such as ".spec.replicas". The
     * selector is a LabelSelector, or the text of one, and may be NULL.
     */
    const char *scale_spec, *scale_status, *scale_selector;
    const char *const *categories; /* ends with NULL; NULL: those that go without saying */
    /*
     * Seconds that an object has to end by itself when it is deleted, unless whoever deletes it says
     * otherwise: until then it only gets a deletionTimestamp, and who runs it deletes it with 0.
     * Negative: there is nothing to wait for. NULL: objects go at once.
     */
    int64_t (*grace)(const json_t *object);
    /* A finalizer that every deletion adds: the server has to clean up behind the object. */
    const char *cleanup;
    /*
     * Of a kind that a user defined; NULL of all others. The schema then decides what its objects
     * look like, and `fields` only how they merge.
     */
    const struct api_schema *schema;
    const struct api_schema_rules *schema_rules; /* with `schema`: how it is applied */
    const struct api_group_version *stored;      /* the version that objects are kept in */
    /* Who turns objects into this version and back; NULL: they differ by name only. */
    const struct api_conversion *conversion;
    uint64_t since; /* objects that were written after this revision are as the schema has them */
    const char *list_kind;
    const char *const *selectable; /* paths that field selectors may name; ends with NULL */
    const char *warning;           /* what whoever uses this version is told; NULL: nothing */
    /* The definition as JSON, for what is too large to keep in another form. */
    const char *source;
    size_t source_size;
    /*
     * Turns the published form into the normal one beyond what aliases and synonyms can say. The
     * object has not been checked yet: leave alone what has not the expected type.
     */
    void (*normalize)(json_t *object, struct api_report *report);
    /*
     * Defaults that follow from other fields. Apart from normalize, because what is filled in is not
     * what somebody said: server-side apply gives it to nobody.
     */
    void (*derive)(json_t *object);
    /* Rules that the table cannot say, on a normal, defaulted object of the right structure. */
    void (*validate)(const json_t *object, struct api_report *report);
    void (*validate_update)(const json_t *old, const json_t *object, struct api_report *report);
    /* Rules that look at other objects (api/among.h); -1 when those cannot be read. */
    int (*among)(const struct api_among *a, struct err *e);
    /* Rewrites the normal form as the published version has it; warns of what that cannot say. */
    void (*publish)(json_t *object, struct api_report *report);
    const char *doc;
};

/*
 * How the schema of a kind that a user defined is applied. The tables of fields know nothing of
 * schemas: whoever compiles one (k8s/schema/schema.h) names these with it.
 */
struct api_schema_rules {
    void (*prune)(const struct api_schema *s, json_t *object, enum api_unknown unknown,
                  struct api_report *report);
    bool (*set_defaults)(const struct api_schema *s, json_t *object);
    void (*validate)(const struct api_schema *s, const json_t *object, const json_t *old,
                     struct api_report *report);
};

/*
 * The kinds that a program knows; ends with NULL. Programs that speak to a Kubernetes API know
 * Orlop's own (kinds/kinds.c). Those that are one, or check manifests of any kind, link Kubernetes'
 * own too (k8s/kinds/kinds.c), which come after ours.
 */
extern const struct api_kind *const api_kinds[];

/* By "group/version" (or "v1") and kind; NULL. *ret_other, if given: a kind of that name in
 * another group or version, to say so. */
const struct api_kind *api_kind_find(const char *api_version, const char *kind,
                                     const struct api_kind **ret_other);
/* By what a person types: kind, plural, singular or short name, any letter case. */
const struct api_kind *api_kind_by_name(const char *name);
/* "openebs.io/v1alpha1", "v1" */
const char *api_version_text(const struct api_group_version *gv, char buf[128]);
/* The version the kind is kept in. */
static inline const struct api_group_version *api_kind_canonical(const struct api_kind *kind)
{
    return &kind->versions[0];
}

/* The version in which its objects are written to the store. */
static inline const struct api_group_version *api_kind_stored(const struct api_kind *kind)
{
    return kind->stored ? kind->stored : api_kind_canonical(kind);
}

/* metadata, shared by all kinds. */
extern const struct api_field api_object_meta[];
/* What a table begins with, by itself: all that is known of an object that has a schema. */
extern const struct api_field api_type_and_meta[];
/* The table by which an object's structure is checked. */
static inline const struct api_field *api_kind_structure(const struct api_kind *kind)
{
    return kind->schema ? api_type_and_meta : kind->fields;
}

/* How the table of every kind begins. */
#define API_TYPE_AND_META                                                                          \
    {"apiVersion", API_STRING, .flags = API_REQUIRED,                                              \
     .doc = "Group and version of the schema that this object follows."},                          \
        {"kind", API_STRING, .flags = API_REQUIRED, .doc = "The kind of object this is."},         \
    {                                                                                              \
        "metadata", API_OBJECT,                                                                    \
            .flags = API_REQUIRED, .fields = api_object_meta,                                      \
            .doc = "Name, namespace, labels, annotations and what the system keeps of an object."  \
    }
