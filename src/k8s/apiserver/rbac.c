/*
 * The compiled form: made from the store when it is out of date, looked at without a lock.
 *
 *     roles     "namespace/name", "/name" of the whole cluster -> compiled role
 *     bindings  the same, of bindings
 *     grants    "U" or "G", namespace, "/", name of the subject -> its bindings there
 *
 * A snapshot has a reference to each compiled object in it; the next one takes over those whose
 * source is still the object in the store. The stamp is the sum of the revisions at which the four
 * collections last changed: each only grows, so equal sums mean that nothing changed. It is read
 * before the objects are: what comes in between makes the snapshot newer than it says, and the next
 * reader makes another.
 */
#include <pthread.h>

#include "base/map.h"
#include "k8s/apiserver/rbac_impl.h"
#include "k8s/kinds/kinds.h"

struct subject {
    const char *kind, *namespace, *name;
};

/* A role or a binding. */
struct compiled {
    unsigned refs; /* atomic */
    struct apiserver_object *source;
    struct arena arena; /* owns the texts */
    const char *namespace, *name;
    struct rbac_rules rules;           /* of a role */
    const char *role_kind, *role_name; /* of a binding, from here on */
    struct subject *subjects;
    size_t n_subjects;
};

/* One subject of one binding. */
struct grant {
    const struct compiled *binding, *role; /* no role: it does not exist */
    const struct subject *subject;
};

struct grants {
    VEC(struct grant) list;
};

struct rbac_snapshot {
    unsigned refs; /* atomic */
    uint64_t stamp;
    struct map roles, bindings, grants;
};

enum { ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS, COLLECTIONS };

static const struct api_kind *const kinds[COLLECTIONS] = {
    [ROLES] = &api_role,
    [CLUSTER_ROLES] = &api_cluster_role,
    [BINDINGS] = &api_role_binding,
    [CLUSTER_BINDINGS] = &api_cluster_role_binding,
};

struct apiserver_rbac {
    struct apiserver_store *store;
    struct str collections[COLLECTIONS];
    const _Atomic uint64_t *changes[COLLECTIONS];
    pthread_mutex_t making;   /* held by the one that makes a snapshot */
    pthread_rwlock_t current; /* for the moment of taking or putting the next */
    struct rbac_snapshot *snapshot;
};

static void compiled_unref(struct compiled *c)
{
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    apiserver_object_unref(c->source);
    arena_done(&c->arena);
    free(c);
}

static void snapshot_unref(struct rbac_snapshot *s)
{
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    map_for_each(&s->roles, it)
        compiled_unref(it->value);
    map_for_each(&s->bindings, it)
        compiled_unref(it->value);
    map_for_each(&s->grants, it) {
        struct grants *g = it->value;
        vec_done(&g->list);
        free(g);
    }
    map_done(&s->roles);
    map_done(&s->bindings);
    map_done(&s->grants);
    free(s);
}

static const char *member(struct compiled *c, const json_t *object, const char *key)
{
    const char *value = json_str(object, key);
    return value ? arena_strdup(&c->arena, value) : "";
}

static void compile_binding(struct compiled *c, const json_t *object)
{
    const json_t *subjects = json_object_get(object, "subjects");
    const json_t *role = json_object_get(object, "roleRef");
    c->role_kind = member(c, role, "kind");
    c->role_name = member(c, role, "name");
    c->subjects = arena_alloc(&c->arena, (json_array_size(subjects) + 1) * sizeof(*c->subjects));
    size_t i;
    json_t *subject;
    json_array_foreach((json_t *)subjects, i, subject)
        c->subjects[c->n_subjects++] =
            (struct subject){member(c, subject, "kind"), member(c, subject, "namespace"),
                             member(c, subject, "name")};
}

static struct compiled *compile(struct apiserver_object *source, bool binding)
{
    struct compiled *c = NEW(struct compiled);
    json_auto_t *object = json_parse(source->bytes, source->size, NULL, NULL);
    const char *slash = strchr(source->key, '/');
    c->refs = 1;
    c->source = apiserver_object_ref(source);
    c->name = slash ? slash + 1 : source->key;
    c->namespace =
        slash ? arena_strndup(&c->arena, source->key, (size_t)(slash - source->key)) : "";
    if (binding)
        compile_binding(c, object);
    else
        c->rules = rbac_rules_compile(json_object_get(object, "rules"), &c->arena);
    return c;
}

/* The objects of a collection, as they were compiled before where they are the same. */
static void take_objects(struct apiserver_rbac *r, int collection, const struct map *before,
                         struct map *after)
{
    struct apiserver_list list;
    struct apiserver_list_options all = {0};
    bool binding = collection == BINDINGS || collection == CLUSTER_BINDINGS;
    bool cluster = kinds[collection]->flags & API_CLUSTER_SCOPED;
    apiserver_store_list(r->store, str_get(&r->collections[collection]), &all, &list, NULL);
    vec_for_each(&list.objects, o) {
        _cleanup_free_ char *key = mem_printf("%s%s", cluster ? "/" : "", (*o)->key);
        struct compiled *c = before ? map_get(before, key) : NULL;
        if (c && c->source == *o)
            __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
        else
            c = compile(*o, binding);
        map_set(after, key, c);
    }
    apiserver_list_done(&list);
}

/* A ServiceAccount is a user with a name that tells where it is. */
static void append_subject_key(struct str *out, const char *namespace, const struct subject *s)
{
    bool account = str_eq(s->kind, "ServiceAccount");
    str_appendf(out, "%c%s/", str_eq(s->kind, "Group") ? 'G' : 'U', namespace);
    if (account)
        str_appendf(out, "system:serviceaccount:%s:", s->namespace);
    str_append(out, s->name);
}

static void add_grants(struct rbac_snapshot *s, const struct compiled *binding)
{
    bool cluster = str_eq(binding->role_kind, "ClusterRole");
    _cleanup_free_ char *role =
        mem_printf("%s/%s", cluster ? "" : binding->namespace, binding->role_name);
    for (size_t i = 0; i < binding->n_subjects; i++) {
        _cleanup_(str_done) struct str key = {0};
        append_subject_key(&key, binding->namespace, &binding->subjects[i]);
        struct grants *grants = map_get(&s->grants, str_get(&key));
        if (!grants) {
            grants = NEW(struct grants);
            map_set(&s->grants, str_get(&key), grants);
        }
        struct grant one = {binding, map_get(&s->roles, role), &binding->subjects[i]};
        vec_push(&grants->list, one);
    }
}

static uint64_t stamp_of(const struct apiserver_rbac *r)
{
    uint64_t sum = 0;
    for (int i = 0; i < COLLECTIONS; i++)
        sum += atomic_load_explicit(r->changes[i], memory_order_acquire);
    return sum;
}

static struct rbac_snapshot *make_snapshot(struct apiserver_rbac *r,
                                           const struct rbac_snapshot *before)
{
    struct rbac_snapshot *s = NEW(struct rbac_snapshot);
    s->refs = 1;
    s->stamp = stamp_of(r);
    for (int i = 0; i < COLLECTIONS; i++) {
        bool binding = i == BINDINGS || i == CLUSTER_BINDINGS;
        const struct map *old = NULL;
        if (before)
            old = binding ? &before->bindings : &before->roles;
        take_objects(r, i, old, binding ? &s->bindings : &s->roles);
    }
    map_for_each(&s->bindings, it)
        add_grants(s, it->value);
    return s;
}

/* The snapshot, if it is not out of date; a new reference. */
static struct rbac_snapshot *take_current(struct apiserver_rbac *r)
{
    uint64_t stamp = stamp_of(r);
    pthread_rwlock_rdlock(&r->current);
    struct rbac_snapshot *s = r->snapshot;
    if (s && s->stamp == stamp)
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    else
        s = NULL;
    pthread_rwlock_unlock(&r->current);
    return s;
}

static struct rbac_snapshot *take_snapshot(struct apiserver_rbac *r)
{
    struct rbac_snapshot *s = take_current(r);
    if (s)
        return s;
    pthread_mutex_lock(&r->making);
    s = take_current(r); /* somebody else may have made it meanwhile */
    if (!s) {
        s = make_snapshot(r, r->snapshot);
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
        pthread_rwlock_wrlock(&r->current);
        struct rbac_snapshot *old = r->snapshot;
        r->snapshot = s;
        pthread_rwlock_unlock(&r->current);
        snapshot_unref(old);
    }
    pthread_mutex_unlock(&r->making);
    return s;
}

struct apiserver_rbac *apiserver_rbac_new(struct apiserver_store *store)
{
    struct apiserver_rbac *r = NEW(struct apiserver_rbac);
    r->store = store;
    for (int i = 0; i < COLLECTIONS; i++) {
        apiserver_collection(kinds[i], &r->collections[i]);
        r->changes[i] = apiserver_store_last_change(store, str_get(&r->collections[i]));
    }
    pthread_mutex_init(&r->making, NULL);
    pthread_rwlock_init(&r->current, NULL);
    return r;
}

void apiserver_rbac_free(struct apiserver_rbac *r)
{
    if (!r)
        return;
    snapshot_unref(r->snapshot);
    for (int i = 0; i < COLLECTIONS; i++)
        str_done(&r->collections[i]);
    pthread_rwlock_destroy(&r->current);
    pthread_mutex_destroy(&r->making);
    free(r);
}

/* Looks at grants until one says true. */
typedef bool visit(void *context, const struct grant *g);

static bool visit_subject(const struct rbac_snapshot *s, char kind, const char *namespace,
                          const char *name, struct str *key, visit *fn, void *context)
{
    str_clear(key);
    str_append_c(key, kind);
    str_append(key, namespace);
    str_append_c(key, '/');
    str_append(key, name);
    struct grants *grants = map_get(&s->grants, key->p);
    if (!grants)
        return false;
    vec_for_each(&grants->list, g) {
        if (fn(context, g))
            return true;
    }
    return false;
}

/* Everything a user is given in the whole cluster, then in the namespace. */
static bool visit_user(const struct rbac_snapshot *s, const struct apiserver_user *user,
                       const char *namespace, visit *fn, void *context)
{
    const char *const places[] = {"", namespace};
    _cleanup_(str_done) struct str key = {0};
    for (size_t i = 0; i < (namespace && *namespace ? 2 : 1); i++) {
        if (visit_subject(s, 'U', places[i], user->name, &key, fn, context))
            return true;
        for (const char *const *group = user->groups; group && *group; group++) {
            if (visit_subject(s, 'G', places[i], *group, &key, fn, context))
                return true;
        }
    }
    return false;
}

static void append_missing_role(struct str *out, const struct compiled *binding)
{
    bool cluster = str_eq(binding->role_kind, "ClusterRole");
    str_appendf(out, "%s%s.rbac.authorization.k8s.io \"%s\" not found", out->len ? ", " : "",
                cluster ? "clusterrole" : "role", binding->role_name);
}

struct decision {
    const struct apiserver_attributes *attributes;
    const struct grant *by;
    struct str missing;
};

static bool decide(void *context, const struct grant *g)
{
    enum { SHOWN = 500 };
    struct decision *d = context;
    if (!g->role && d->missing.len < SHOWN)
        append_missing_role(&d->missing, g->binding);
    for (size_t i = 0; g->role && i < g->role->rules.n; i++) {
        if (rbac_rule_allows(&g->role->rules.p[i], d->attributes)) {
            d->by = g;
            return true;
        }
    }
    return false;
}

/* RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "s/ns" */
static void explain(const struct grant *g, struct str *out)
{
    const struct compiled *b = g->binding;
    bool local = *b->namespace, account = str_eq(g->subject->kind, "ServiceAccount");
    str_appendf(out, "RBAC: allowed by %sRoleBinding \"%s%s%s\" of %s \"%s\" to %s \"%s%s%s\"",
                local ? "" : "Cluster", b->name, local ? "/" : "", b->namespace, b->role_kind,
                b->role_name, g->subject->kind, g->subject->name, account ? "/" : "",
                account ? g->subject->namespace : "");
}

bool apiserver_rbac_allows(struct apiserver_rbac *r, const struct apiserver_user *user,
                           const struct apiserver_attributes *attributes, struct str *ret_reason)
{
    struct rbac_snapshot *s = take_snapshot(r);
    struct decision d = {.attributes = attributes};
    const char *namespace = attributes->path ? "" : attributes->namespace;
    bool allowed = visit_user(s, user, namespace, decide, &d);
    if (allowed && ret_reason)
        explain(d.by, ret_reason);
    else if (d.missing.len && ret_reason)
        str_appendf(ret_reason, "RBAC: %s", d.missing.p);
    str_done(&d.missing);
    snapshot_unref(s);
    return allowed;
}

static bool collect(void *context, const struct grant *g)
{
    struct rbac_view *v = context;
    if (!g->role)
        append_missing_role(&v->error, g->binding);
    for (size_t i = 0; g->role && i < g->role->rules.n; i++)
        vec_push(&v->rules, &g->role->rules.p[i]);
    return false;
}

void rbac_view_init(struct rbac_view *v, struct apiserver_rbac *r,
                    const struct apiserver_user *user, const char *namespace)
{
    *v = (struct rbac_view){.snapshot = take_snapshot(r)};
    visit_user(v->snapshot, user, namespace, collect, v);
}

void rbac_view_done(struct rbac_view *v)
{
    vec_done(&v->rules);
    str_done(&v->error);
    snapshot_unref(v->snapshot);
}

const struct rbac_rules *rbac_view_role(const struct rbac_view *v, const char *namespace,
                                        const char *name)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", namespace, name);
    const struct compiled *role = map_get(&v->snapshot->roles, key);
    return role ? &role->rules : NULL;
}

static json_t *json_list(const char *const *texts)
{
    json_t *list = json_array();
    for (; *texts; texts++)
        json_array_append_new(list, json_string(*texts));
    return list;
}

void apiserver_rbac_rules(struct apiserver_rbac *r, const struct apiserver_user *user,
                          const char *namespace, json_t *resource_rules, json_t *path_rules,
                          struct str *ret_error)
{
    struct rbac_view v;
    rbac_view_init(&v, r, user, namespace);
    vec_for_each(&v.rules, it) {
        const struct rbac_rule *rule = *it;
        json_t *verbs = json_list(rule->verbs);
        if (*rule->resources) {
            json_t *one =
                json_pack("{s:O,s:o,s:o}", "verbs", verbs, "apiGroups", json_list(rule->groups),
                          "resources", json_list(rule->resources));
            if (*rule->names)
                json_object_set_new(one, "resourceNames", json_list(rule->names));
            json_array_append_new(resource_rules, one);
        }
        if (*rule->paths)
            json_array_append_new(path_rules, json_pack("{s:O,s:o}", "verbs", verbs,
                                                        "nonResourceURLs", json_list(rule->paths)));
        json_decref(verbs);
    }
    str_append(ret_error, str_get(&v.error));
    rbac_view_done(&v);
}
