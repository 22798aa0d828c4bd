/*
 * An object as the caches keep it: immutable, counted, and encoded.
 *
 * A tree of JSON values takes ten times the memory of its text, and a reconciler looks at few objects
 * at a time: so a cache holds the text, with what indexes, predicates and mappings ask for beside it,
 * in one piece of memory; whoever needs more parses it. managedFields are left out.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "json/json.h"

struct kube_object {
    _Atomic unsigned refs;
    uint32_t size; /* of the text */
    bool deleting; /* has a deletionTimestamp */
    int64_t generation;
    /* All in this piece of memory; "" for what it has not. */
    const char *key; /* "namespace/name", or "name" */
    const char *ns, *name, *uid, *resource_version;
    const char *owner_kind, *owner_name, *owner_uid; /* the owner that controls it */
    const char *text;                                /* compact JSON, ends with NUL */
};

/* From the server's JSON; INVALID_ARGUMENT when it has no name, uid or resourceVersion. */
struct kube_object *kube_object_new(const json_t *object, struct err *e);
struct kube_object *kube_object_ref(struct kube_object *o);
void kube_object_unref(struct kube_object *o); /* NULL is ignored */
DEFINE_CLEANUP(struct kube_object *, kube_object_unref)
/* The whole of it as a tree of the caller's own, to read or to change. */
json_t *kube_object_json(const struct kube_object *o);

/* A list of references. */
struct kube_objects {
    struct kube_object **p;
    size_t len, cap;
};
void kube_objects_done(struct kube_objects *l);

/* Reading metadata of a tree; "" or NULL as said. Borrowed. */
const char *kube_name(const json_t *object);      /* "" */
const char *kube_namespace(const json_t *object); /* "" */
const char *kube_uid(const json_t *object);       /* "" */
const char *kube_version(const json_t *object);   /* resourceVersion; "" */
int64_t kube_generation(const json_t *object);    /* 0 */
bool kube_deleting(const json_t *object);
const char *kube_label(const json_t *object, const char *key);      /* NULL */
const char *kube_annotation(const json_t *object, const char *key); /* NULL */
/* An entry of ownerReferences that says: this one controls me, and deletion of it waits for me. */
json_t *kube_owner_reference(const json_t *owner);
/* Namespace and name of a key; *ret_ns is "" for what has none. Into buf, which is as long as key. */
void kube_key_split(const char *key, char *buf, const char **ret_ns, const char **ret_name);
/* The object of an array that has that name; NULL. Borrowed. */
json_t *kube_find(const json_t *objects, const char *name);

/* The reference to the controller that owns the object; NULL. Borrowed. */
const json_t *kube_controller_of(const json_t *object);
/* Its uid; "". */
const char *kube_controller_uid(const json_t *object);
/* Whether a node is in one of the topologies that a StorageClass allows; none named are all. */
bool kube_class_allows(const json_t *class, const json_t *node);
