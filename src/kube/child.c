#include "kube/child.h"

#include "base/crash.h"
#include "base/quantity.h"
#include "kube/client_impl.h"
#include "kube/names.h"

/* Comparing. */

static bool is_quantities(const char *key)
{
    return str_eq(key, "limits") || str_eq(key, "requests");
}

/* The server writes a quantity its own way: 0.5 is 500m. */
static bool is_same_quantity(const json_t *a, const json_t *b)
{
    struct quantity x, y;
    const char *left = json_string_value(a), *right = json_string_value(b);
    return left && right && quantity_parse(left, &x, NULL) == 0 &&
           quantity_parse(right, &y, NULL) == 0 && quantity_cmp(&x, &y) == 0;
}

static bool has_value(const json_t *live, const json_t *wanted, const char *key);

static bool has_members(const json_t *live, const json_t *wanted, const char *parent)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
        const json_t *there = json_object_get(live, key);
        if (!has_value(there, value, key) &&
            !(is_quantities(parent) && is_same_quantity(there, value)))
            return false;
    }
    return json_is_object(live);
}

static bool has_items(const json_t *live, const json_t *wanted)
{
    if (!live && !json_array_size(wanted)) /* a server leaves empty lists out */
        return true;
    if (!json_is_array(live) || json_array_size(live) != json_array_size(wanted))
        return false;
    const json_t *it;
    for (size_t i = 0; (it = json_array_get(wanted, i)); i++) {
        if (!has_value(json_array_get(live, i), it, ""))
            return false;
    }
    return true;
}

static bool has_value(const json_t *live, const json_t *wanted, const char *key)
{
    if (json_is_object(wanted))
        return has_members(live, wanted, key);
    if (json_is_array(wanted))
        return has_items(live, wanted);
    return live && json_equal(live, wanted);
}

bool kube_child_has(const json_t *live, const json_t *wanted)
{
    return has_value(live, wanted, "");
}

/* Whether a member of what it was born with is missing: it could not work so, and gets another. */
static bool lacks_birth(const json_t *live, const struct kube_birth *birth)
{
    for (size_t i = 0; birth && birth->keys[i]; i++) {
        const char *has = json_str(json_object_get(live, "data"), birth->keys[i]);
        if (!has || !*has)
            return true;
    }
    return false;
}

/* What is wanted, with owner and hash. */
static json_t *make_complete(const struct kube_child *child)
{
    json_t *o = json_deep_copy(child->wanted), *metadata = json_object_get(o, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    char hash[KUBE_HASH];
    if (child->owner)
        json_object_set_new(metadata, "ownerReferences",
                            json_pack("[o]", kube_owner_reference(child->owner)));
    kube_hash(o, 0, hash);
    if (!annotations) {
        annotations = json_object();
        json_object_set_new(metadata, "annotations", annotations);
    }
    json_object_set_new(annotations, KUBE_CHILD_HASH, json_string(hash));
    return o;
}

/* Whose it is. */

static int check_owner(const struct kube_child *child, const json_t *live, struct err *e)
{
    const json_t *is = kube_controller_of(live);
    const char *kind = child->of->r.kind, *uid = json_str(is, "uid"), *name = json_str(is, "name"),
               *of = json_str(is, "kind"), *wanted = json_str(child->owner, "kind");
    if (!child->owner || (uid ? str_eq(uid, kube_uid(child->owner))
                              : kube_annotation(live, KUBE_CHILD_HASH) != NULL))
        return 0;
    if (uid && name && of && wanted && str_eq(name, kube_name(child->owner)) && str_eq(of, wanted))
        return err_set(e, ERR_UNAVAILABLE, "Leftover",
                       "%s \"%s\" is of a %s of this name that was deleted, and not gone yet", kind,
                       kube_name(live), of);
    return err_set(
        e, ERR_FAILED_PRECONDITION, "NotOurs",
        "there is a %s \"%s\" that does not belong to %s \"%s\": delete it, or give that "
        "another name",
        kind, kube_name(live), wanted ? wanted : "object", kube_name(child->owner));
}

/* Writing. */

static const char *place_of(const struct kube_child *child)
{
    return child->of->r.namespaced ? kube_namespace(child->wanted) : NULL;
}

/* What the cache has; else what the server has, as the cache may not be able to see it. */
static int find_live(struct kube_client *c, const struct kube_child *child, json_t **ret_live,
                     struct err *e)
{
    const char *ns = place_of(child), *name = kube_name(child->wanted);
    struct err why = {0};
    *ret_live =
        child->of->informer ? kube_informer_json(child->of->informer, ns, name, NULL) : NULL;
    if (!*ret_live)
        *ret_live = kube_get(c, &child->of->r, ns, name, &why);
    if (*ret_live || why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

/* Where the entry is by which we own fields that we wrote without an apply; -1. */
static int find_update(const struct kube_client *c, const json_t *live)
{
    const json_t *it, *all = json_at(live, "metadata", "managedFields");
    int found = -1;
    for (size_t i = 0; (it = json_array_get(all, i)); i++) {
        const char *manager = json_str(it, "manager"), *operation = json_str(it, "operation");
        if (!manager || !operation || !str_eq(manager, c->manager) || json_str(it, "subresource"))
            continue;
        if (str_eq(operation, "Apply"))
            return -1; /* what we applied is known */
        found = (int)i;
    }
    return found;
}

/*
 * Of a child that an earlier version created and updated, the fields become those of an apply, so
 * that the next one takes out what is no longer wanted. A cache has no managedFields: then the
 * server is asked.
 */
static int take_over(struct kube_client *c, const struct kube_child *child, const json_t *live,
                     struct err *e)
{
    const struct kube_resource *r = &child->of->r;
    const char *ns = place_of(child), *name = kube_name(child->wanted);
    json_auto_t *whole = json_at(live, "metadata", "managedFields")
                             ? json_incref((json_t *)(uintptr_t)live)
                             : kube_get(c, r, ns, name, e);
    int at = find_update(c, whole);
    if (at < 0)
        return whole ? 0 : -1;
    _cleanup_free_ char *path = mem_printf("/metadata/managedFields/%d/operation", at);
    json_auto_t *patch = json_pack("[{s:s,s:s,s:s},{s:s,s:s,s:s}]", "op", "test", "path",
                                   "/metadata/resourceVersion", "value", kube_version(whole), "op",
                                   "replace", "path", path, "value", "Apply");
    json_auto_t *now = kube_patch(c, r, ns, name, KUBE_JSON_PATCH, patch, NULL, e);
    return now ? 0 : -1;
}

static json_t *write_child(struct kube_client *c, const struct kube_child *child, bool created,
                           bool reborn, const json_t *wanted, struct err *e)
{
    static const struct kube_write force = {.force = true};
    const struct kube_resource *r = &child->of->r;
    if (!child->birth)
        return kube_patch(c, r, place_of(child), kube_name(wanted), KUBE_APPLY, wanted, &force, e);
    /* Applying would make one that has just gone, without what it had from its birth. */
    json_auto_t *whole = json_copy((json_t *)(uintptr_t)wanted);
    json_auto_t *data = created || reborn ? child->birth->make(child->owner, e) : NULL;
    if (data)
        json_object_set(whole, "stringData", data);
    else if (created || reborn)
        return NULL;
    return created ? kube_create(c, r, whole, NULL, e)
                   : kube_patch(c, r, place_of(child), kube_name(wanted), KUBE_MERGE_PATCH, whole,
                                NULL, e);
}

static enum kube_applied judge_child(const json_t *live, const json_t *wanted)
{
    const char *has = kube_annotation(live, KUBE_CHILD_HASH);
    if (!live)
        return KUBE_CHILD_CREATED;
    if (kube_deleting(live)) /* its going is an event, and then it is made again */
        return KUBE_CHILD_KEPT;
    if (!has || !str_eq(has, kube_annotation(wanted, KUBE_CHILD_HASH)))
        return KUBE_CHILD_CHANGED;
    return kube_child_has(live, wanted) ? KUBE_CHILD_KEPT : KUBE_CHILD_REPAIRED;
}

json_t *kube_apply_child(struct kube_client *c, const struct kube_child *child,
                         enum kube_applied *ret_applied, struct err *e)
{
    json_t *found;
    if (find_live(c, child, &found, e) < 0)
        return NULL;
    json_auto_t *live = found, *wanted = make_complete(child);
    if (live && check_owner(child, live, e) < 0)
        return NULL;
    enum kube_applied what = judge_child(live, wanted);
    bool reborn = live && lacks_birth(live, child->birth);
    if (what == KUBE_CHILD_KEPT && reborn && !kube_deleting(live))
        what = KUBE_CHILD_REPAIRED;
    if (ret_applied)
        *ret_applied = what;
    if (what == KUBE_CHILD_KEPT)
        return json_incref(live);
    if (what == KUBE_CHILD_CHANGED && !child->birth && take_over(c, child, live, e) < 0)
        return NULL;
    crash_point(child->of->r.kind);
    json_t *now = write_child(c, child, what == KUBE_CHILD_CREATED, reborn, wanted, e);
    crash_point(child->of->r.kind);
    /* What was missing in it was none of ours, such as a list that others have items in. */
    if (ret_applied && now && live && *kube_version(now) &&
        str_eq(kube_version(now), kube_version(live)))
        *ret_applied = KUBE_CHILD_KEPT;
    return now;
}

/* Pruning. */

static void add_owner(const json_t *object, struct kube_index_values *out)
{
    const char *uid = kube_controller_uid(object);
    if (*uid)
        kube_index_add(out, uid);
}

const struct kube_index kube_children_by_owner = {"owner", add_owner};

int kube_prune_children(struct kube_client *c, const struct kube_children *of, const json_t *owner,
                        const char *const *names, struct err *e)
{
    _cleanup_(kube_objects_done) struct kube_objects found = {0};
    kube_informer_find(of->informer, kube_children_by_owner.name, kube_uid(owner), &found);
    for (size_t i = 0; i < found.len; i++) {
        const struct kube_object *it = found.p[i];
        const struct kube_delete o = {
            .uid = it->uid, .propagation = "Background", .grace_seconds = -1};
        if (it->deleting || str_in(it->name, names))
            continue;
        crash_point("prune");
        if (kube_delete(c, &of->r, of->r.namespaced ? it->ns : NULL, it->name, &o, e) < 0)
            return -1;
        crash_point("prune");
    }
    return 0;
}
