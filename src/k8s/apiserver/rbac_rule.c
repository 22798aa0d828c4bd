/*
 * Rules: what one allows, and whether some allow all that another does.
 */
#include "k8s/apiserver/rbac_impl.h"

enum { MISSING_MAX = 2000 }; /* bytes of a list of what is missing; nobody reads more */

static const char **compile_list(const json_t *list, struct arena *a)
{
    const char **texts = arena_alloc(a, (json_array_size(list) + 1) * sizeof(*texts));
    size_t n = 0, i;
    json_t *value;
    json_array_foreach((json_t *)list, i, value) {
        if (json_is_string(value))
            texts[n++] = arena_strdup(a, json_string_value(value));
    }
    return texts; /* the arena's memory is zero */
}

struct rbac_rules rbac_rules_compile(const json_t *rules, struct arena *a)
{
    struct rbac_rules compiled = {
        .p = arena_alloc(a, (json_array_size(rules) + 1) * sizeof(struct rbac_rule))};
    size_t i;
    json_t *rule;
    json_array_foreach((json_t *)rules, i, rule) {
        compiled.p[compiled.n++] = (struct rbac_rule){
            .verbs = compile_list(json_object_get(rule, "verbs"), a),
            .groups = compile_list(json_object_get(rule, "apiGroups"), a),
            .resources = compile_list(json_object_get(rule, "resources"), a),
            .names = compile_list(json_object_get(rule, "resourceNames"), a),
            .paths = compile_list(json_object_get(rule, "nonResourceURLs"), a),
        };
    }
    return compiled;
}

static const char *text(const char *s)
{
    return s ? s : "";
}

/* Whether a list has the word, or the one that stands for all. */
static bool has(const char *const *list, const char *word)
{
    for (; *list; list++) {
        if (str_eq(*list, "*") || str_eq(*list, word))
            return true;
    }
    return false;
}

/* "pods/log" is in a list that has "pods/log" or all logs, but not in one that only has "pods". */
static bool has_resource(const char *const *list, const char *resource, const char *subresource)
{
    size_t n = strlen(resource);
    for (; *list; list++) {
        const char *own = *list, *part = NULL; /* what is behind the slash, if it fits so far */
        if (str_eq(own, "*"))
            return true;
        if (str_starts_with(own, "*/"))
            part = own + 2;
        else if (strncmp(own, resource, n) == 0 && own[n] == '/')
            part = own + n + 1;
        if (*subresource ? part && str_eq(part, subresource) : str_eq(own, resource))
            return true;
    }
    return false;
}

/* A path at the end of which there may be a star. */
static bool path_covers(const char *own, const char *path)
{
    size_t n = strlen(own);
    if (n && own[n - 1] == '*')
        return strncmp(own, path, n - 1) == 0;
    return str_eq(own, path);
}

static bool has_path(const char *const *list, const char *path)
{
    for (; *list; list++) {
        if (path_covers(*list, path))
            return true;
    }
    return false;
}

bool rbac_rule_allows(const struct rbac_rule *rule, const struct apiserver_attributes *attributes)
{
    if (!has(rule->verbs, text(attributes->verb)))
        return false;
    if (attributes->path)
        return has_path(rule->paths, attributes->path);
    return has(rule->groups, text(attributes->group)) &&
           has_resource(rule->resources, text(attributes->resource),
                        text(attributes->subresource)) &&
           (!*rule->names || (attributes->name && str_in(attributes->name, rule->names)));
}

/* One verb on one resource, perhaps of one name; or on one path. */
struct point {
    const char *verb, *group, *resource, *name, *path;
};

/* The resource as a rule writes it: "pods", "pods/log", or a star and a subresource. */
static bool covers_resource(const char *const *list, const char *resource)
{
    const char *slash = strchr(resource, '/');
    if (!slash)
        return has(list, resource);
    _cleanup_free_ char *main = mem_strndup(resource, (size_t)(slash - resource));
    return has_resource(list, main, slash + 1);
}

static bool covers(const struct rbac_rule *own, const struct point *p)
{
    if (!has(own->verbs, p->verb))
        return false;
    if (p->path)
        return has_path(own->paths, p->path);
    if (!has(own->groups, p->group) || (*own->names && !(p->name && str_in(p->name, own->names))))
        return false;
    return covers_resource(own->resources, p->resource);
}

static bool covered(const struct rbac_rule *const *owned, size_t n, const struct point *p)
{
    for (size_t i = 0; i < n; i++) {
        if (covers(owned[i], p))
            return true;
    }
    return false;
}

/* A star in the list, or every word of the other. */
static bool has_all(const char *const *list, const char *const *words)
{
    for (; *words; words++) {
        if (!has(list, *words))
            return false;
    }
    return true;
}

/* Most rules are covered by one other; that needs no look at the combinations. */
static bool covers_whole(const struct rbac_rule *own, const struct rbac_rule *rule)
{
    for (const char *const *p = rule->paths; *p; p++) {
        if (!has_path(own->paths, *p))
            return false;
    }
    for (const char *const *r = rule->resources; *r; r++) {
        if (!covers_resource(own->resources, *r))
            return false;
    }
    bool names = !*own->names || (*rule->names && has_all(own->names, rule->names));
    return names && has_all(own->verbs, rule->verbs) && has_all(own->groups, rule->groups);
}

static size_t length(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

/* Takes the number of a rule's combinations from the budget; false when it has not that many. */
static bool spend(const struct rbac_rule *rule, size_t *budget)
{
    size_t names = length(rule->names);
    const size_t factors[] = {length(rule->groups), length(rule->resources), names ? names : 1};
    size_t product = 1;
    for (size_t i = 0; i < ARRAY_SIZE(factors); i++) {
        if (__builtin_mul_overflow(product, factors[i], &product))
            return false;
    }
    if (__builtin_add_overflow(product, length(rule->paths), &product) ||
        __builtin_mul_overflow(product, length(rule->verbs), &product) || product > *budget)
        return false;
    *budget -= product;
    return true;
}

/* Appends the verbs of a point that the owner lacks: {APIGroups:[""], ..., Verbs:["get" "list"]} */
static void missing_verbs(const struct rbac_rule *const *owned, size_t n,
                          const struct rbac_rule *rule, struct point p, struct str *missing)
{
    bool any = false;
    for (const char *const *verb = rule->verbs; *verb; verb++) {
        p.verb = *verb;
        if (missing->len > MISSING_MAX || covered(owned, n, &p))
            continue;
        if (any) {
            str_appendf(missing, " \"%s\"", *verb);
            continue;
        }
        any = true;
        if (missing->len)
            str_append_c(missing, '\n');
        if (p.path)
            str_appendf(missing, "{NonResourceURLs:[\"%s\"], ", p.path);
        else
            str_appendf(missing, "{APIGroups:[\"%s\"], Resources:[\"%s\"], ", p.group, p.resource);
        if (p.name)
            str_appendf(missing, "ResourceNames:[\"%s\"], ", p.name);
        str_appendf(missing, "Verbs:[\"%s\"", *verb);
    }
    if (any)
        str_append(missing, "]}");
}

bool rbac_rules_missing(const struct rbac_rule *const *owned, size_t n_owned,
                        const struct rbac_rule *rule, size_t *budget, struct str *missing)
{
    static const char *const unnamed[] = {NULL};
    for (size_t i = 0; i < n_owned; i++) {
        if (covers_whole(owned[i], rule))
            return true;
    }
    if (!spend(rule, budget))
        return false;
    for (const char *const *path = rule->paths; *path; path++)
        missing_verbs(owned, n_owned, rule, (struct point){.path = *path}, missing);
    for (const char *const *group = rule->groups; *group; group++) {
        for (const char *const *resource = rule->resources; *resource; resource++) {
            /* Without names once, else once for each. */
            const char *const *name = *rule->names ? (const char *const *)rule->names : unnamed;
            do {
                struct point p = {.group = *group, .resource = *resource, .name = *name};
                missing_verbs(owned, n_owned, rule, p, missing);
            } while (*name && *++name);
        }
    }
    return true;
}

bool rbac_rules_cover(const struct rbac_rule *const *owned, size_t n_owned,
                      const struct rbac_rule *rule)
{
    _cleanup_(str_done) struct str missing = {0};
    size_t budget = RBAC_COMBINATIONS;
    return rbac_rules_missing(owned, n_owned, rule, &budget, &missing) && !missing.len;
}
