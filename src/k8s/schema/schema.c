#include "k8s/schema/schema_impl.h"

const char *const schema_type_names[] = {
    [SCHEMA_ANY] = "",
    [SCHEMA_OBJECT] = "object",
    [SCHEMA_ARRAY] = "array",
    [SCHEMA_STRING] = "string",
    [SCHEMA_NUMBER] = "number",
    [SCHEMA_INTEGER] = "integer",
    [SCHEMA_BOOLEAN] = "boolean",
};

struct api_schema_set *api_schema_set_new(void)
{
    struct api_schema_set *set = NEW(struct api_schema_set);
    set->values = json_array();
    return set;
}

void api_schema_set_free(struct api_schema_set *set)
{
    if (!set)
        return;
    map_for_each(&set->patterns, it)
        pattern_free(it->value);
    map_done(&set->patterns);
    vec_for_each(&set->programs, p)
        cel_program_free(*p);
    vec_done(&set->programs);
    json_decref(set->values);
    arena_done(&set->arena);
    free(set);
}

struct api_schema *schema_member(const struct api_schema *s, const char *name)
{
    size_t low = 0, high = s->n_members;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, s->members[middle].name);
        if (order == 0)
            return s->members[middle].schema;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct schema_rules *schema_rules_of(struct api_schema_set *set, struct api_schema *s)
{
    if (!s->rules) {
        s->rules = arena_new(&set->arena, struct schema_rules);
        s->rules->counts = (struct schema_counts){0, -1, 0, -1, 0, -1};
    }
    return s->rules;
}

const char *api_schema_type_at(const struct api_schema *s, const char *path)
{
    char name[256];
    while (s && *path == '.') {
        size_t n = strcspn(++path, ".");
        if (n == 0 || n >= sizeof(name))
            return NULL;
        memcpy(name, path, n);
        name[n] = '\0';
        s = schema_member(s, name);
        path += n;
    }
    return s && !*path ? schema_type_names[s->type] : NULL;
}

static const struct api_field *table(struct api_schema_set *set, const struct api_schema *s,
                                     const struct api_field *first, size_t n_first);

/* The schema of a field's elements, members or itself, whose members its table has. */
static const struct api_schema *content_of(const struct api_schema *s)
{
    if (s->type == SCHEMA_ARRAY)
        return s->items;
    return s->values ? s->values : s;
}

static struct api_field field_of(struct api_schema_set *set, const struct schema_member *m)
{
    const struct api_schema *s = m->schema, *content = content_of(s);
    struct api_field f = {.name = m->name, .flags = API_KEEP, .type = API_ANY};
    if (s->type == SCHEMA_ARRAY)
        f.shape = API_LIST;
    else if (s->values)
        f.shape = API_MAP;
    if (content && content->type == SCHEMA_OBJECT && !(content != s && content->values)) {
        f.type = API_OBJECT;
        f.fields = table(set, content, NULL, 0);
    }
    if (s->list == SCHEMA_LIST_SET)
        f.flags |= API_SET;
    if (s->list == SCHEMA_LIST_MAP && s->keys && s->keys[0]) {
        f.merge_key = s->keys[0];
        f.map_keys = s->keys[1] ? s->keys : NULL;
    }
    if (s->flags & SCHEMA_ATOMIC)
        f.flags |= API_REPLACE | API_ATOMIC;
    return f;
}

/* All members, as it matters whether a schema names one; `first` go in front of them. */
static const struct api_field *table(struct api_schema_set *set, const struct api_schema *s,
                                     const struct api_field *first, size_t n_first)
{
    size_t n = n_first;
    struct api_field *fields =
        arena_alloc(&set->arena, (n_first + s->n_members + 1) * sizeof(*fields));
    if (n_first)
        memcpy(fields, first, n_first * sizeof(*fields));
    for (size_t i = 0; i < s->n_members; i++) {
        bool known = n_first && api_field_find(first, s->members[i].name);
        if (!known)
            fields[n++] = field_of(set, &s->members[i]);
    }
    return fields;
}

const struct api_field *api_schema_fields(struct api_schema_set *set, const struct api_schema *s)
{
    static const struct api_field first[] = {API_TYPE_AND_META, {0}};
    return table(set, s, first, ARRAY_SIZE(first) - 1);
}

const struct api_schema_rules api_schema_rules = {
    .prune = api_schema_prune,
    .set_defaults = api_schema_default,
    .validate = api_schema_validate,
};
