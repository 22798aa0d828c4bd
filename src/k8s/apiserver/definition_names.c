#include "k8s/apiserver/definition_names.h"

#include <stdio.h>

#include "k8s/apiserver/kinds.h"

static void take(struct map *m, const char *name)
{
    if (name && *name)
        map_set(m, name, m);
}

void apiserver_taken_add(struct apiserver_taken *t, const json_t *names)
{
    take(&t->resources, json_str(names, "plural"));
    take(&t->resources, json_str(names, "singular"));
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(names, "shortNames"), i, name)
        take(&t->resources, json_string_value(name));
    take(&t->kinds, json_str(names, "kind"));
    take(&t->kinds, json_str(names, "listKind"));
}

static void add_table(struct apiserver_taken *t, const struct api_kind *kind)
{
    char list[256];
    snprintf(list, sizeof(list), "%sList", kind->kind);
    take(&t->resources, kind->plural);
    take(&t->resources, kind->singular);
    for (const char *const *s = kind->short_names; s && *s; s++)
        take(&t->resources, *s);
    take(&t->kinds, kind->kind);
    take(&t->kinds, list);
}

void apiserver_taken_add_tables(struct apiserver_taken *t, const char *group, const char *plural)
{
    for (const struct api_kind *const *k = apiserver_kinds_tables(); *k; k++) {
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            if (str_eq(gv->group, group) && !str_eq((*k)->plural, plural)) {
                add_table(t, *k);
                break;
            }
        }
    }
}

void apiserver_taken_done(struct apiserver_taken *t)
{
    map_done(&t->kinds);
    map_done(&t->resources);
}

/* Of several conflicts the last is reported, as Kubernetes does. */
static bool refuse(struct apiserver_names *n, const char *reason, const char *name)
{
    n->conflict = reason;
    snprintf(n->message, sizeof(n->message), "\"%.*s\" is already in use", (int)str_cut(name, 250),
             name);
    return false;
}

static bool has_word(const json_t *list, const char *word)
{
    size_t i;
    json_t *it;
    json_array_foreach(list, i, it) {
        if (json_is_string(it) && str_eq(json_string_value(it), word))
            return true;
    }
    return false;
}

static void accept_name(struct apiserver_names *n, const char *key, const char *reason,
                        const json_t *requested, const json_t *before, const struct map *taken)
{
    const char *wanted = json_str(requested, key), *had = json_str(before, key);
    if (!wanted)
        return;
    bool own = had && str_eq(had, wanted);
    if (own || !map_has(taken, wanted) || refuse(n, reason, wanted))
        json_object_set_new(n->accepted, key, json_string(wanted));
    else if (had)
        json_object_set_new(n->accepted, key, json_string(had));
}

static void accept_short_names(struct apiserver_names *n, const json_t *requested,
                               const json_t *before, const struct map *taken)
{
    const json_t *wanted = json_object_get(requested, "shortNames");
    json_t *had = json_object_get(before, "shortNames");
    size_t i;
    json_t *name;
    bool fine = true;
    json_array_foreach(wanted, i, name) {
        const char *text = json_string_value(name);
        if (!has_word(had, text) && map_has(taken, text))
            fine = refuse(n, "ShortNamesConflict", text);
    }
    if (fine && json_array_size(wanted))
        json_object_set(n->accepted, "shortNames", (json_t *)wanted);
    else if (!fine && had)
        json_object_set(n->accepted, "shortNames", had);
}

struct apiserver_names apiserver_names_accept(const json_t *requested, const json_t *before,
                                              const struct apiserver_taken *taken)
{
    struct apiserver_names n = {.accepted = json_object()};
    accept_name(&n, "plural", "PluralConflict", requested, before, &taken->resources);
    accept_name(&n, "singular", "SingularConflict", requested, before, &taken->resources);
    accept_short_names(&n, requested, before, &taken->resources);
    accept_name(&n, "kind", "KindConflict", requested, before, &taken->kinds);
    accept_name(&n, "listKind", "ListKindConflict", requested, before, &taken->kinds);
    json_t *categories = json_object_get(requested, "categories");
    if (json_array_size(categories))
        json_object_set(n.accepted, "categories", categories);
    return n;
}

bool apiserver_condition_is_true(const json_t *conditions, const char *type)
{
    return str_eq(json_text(json_find(conditions, "type", type), "status"), "True");
}

bool apiserver_condition_set(json_t *status, const char *type, bool is, const char *reason,
                             const char *message, const char *now)
{
    json_t *conditions = json_array_at(status, "conditions");
    json_t *condition = json_find(conditions, "type", type);
    const char *word = is ? "True" : "False";
    const char *was = json_str(condition, "status"), *why = json_str(condition, "reason");
    const char *text = json_str(condition, "message");
    if (was && why && text && str_eq(was, word) && str_eq(why, reason) && str_eq(text, message))
        return false;
    if (!condition) {
        condition = json_pack("{s:s}", "type", type);
        json_array_append_new(conditions, condition);
    }
    if (!was || !str_eq(was, word))
        json_object_set_new(condition, "lastTransitionTime", json_string(now));
    json_object_set_new(condition, "status", json_string(word));
    json_object_set_new(condition, "reason", json_string(reason));
    json_object_set_new(condition, "message", json_string(message));
    return true;
}
