#include "k8s/apiserver/definition.h"

#include "k8s/apiserver/conversion.h"
#include "k8s/apiserver/discovery.h"
#include "k8s/schema/schema.h"

static const char *copy(struct apiserver_definition *d, const char *text)
{
    return text ? arena_strdup(&d->arena, text) : NULL;
}

/* A list of strings, ended by NULL. */
static const char *const *copy_words(struct apiserver_definition *d, const json_t *list)
{
    const char **words = arena_alloc(&d->arena, (json_array_size(list) + 1) * sizeof(*words));
    size_t i, n = 0;
    json_t *word;
    json_array_foreach(list, i, word) {
        if (json_is_string(word))
            words[n++] = copy(d, json_string_value(word));
    }
    return words;
}

static const struct api_column *copy_columns(struct apiserver_definition *d, const json_t *list)
{
    static const struct api_column usual[] = {
        {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"}, {0}};
    if (!json_array_size(list))
        return usual;
    struct api_column *columns =
        arena_alloc(&d->arena, (json_array_size(list) + 1) * sizeof(*columns));
    size_t i;
    json_t *column;
    json_array_foreach(list, i, column) {
        const char *path = copy(d, json_str(column, "jsonPath"));
        const char *doc = json_str(column, "description");
        columns[i] = (struct api_column){
            .name = copy(d, json_str(column, "name")),
            .type = copy(d, json_str(column, "type")),
            .path = path,
            .doc = doc && *doc
                       ? copy(d, doc)
                       : arena_printf(&d->arena,
                                      "Custom resource definition column (in JSONPath format): %s",
                                      path),
            .priority = (int)json_integer_value(json_object_get(column, "priority")),
        };
    }
    return columns;
}

/* The fields of field selectors, without the dot that their paths begin with. */
static const char *const *copy_selectable(struct apiserver_definition *d, const json_t *list)
{
    const char **paths = arena_alloc(&d->arena, (json_array_size(list) + 1) * sizeof(*paths));
    size_t i;
    json_t *field;
    json_array_foreach(list, i, field) {
        const char *path = json_str(field, "jsonPath");
        paths[i] = copy(d, *path == '.' ? path + 1 : path);
    }
    return paths;
}

/* Which version to use in place of a deprecated one: the first of those that go before it. */
static const char *replacement(const json_t *versions, const char *deprecated)
{
    const char *best = NULL;
    size_t i;
    json_t *version;
    json_array_foreach(versions, i, version) {
        const char *name = json_str(version, "name");
        if (json_is_true(json_object_get(version, "served")) &&
            !json_is_true(json_object_get(version, "deprecated")) &&
            apiserver_version_cmp(name, deprecated) < 0 &&
            (!best || apiserver_version_cmp(name, best) < 0))
            best = name;
    }
    return best;
}

static const char *warning_of(struct apiserver_definition *d, const json_t *version,
                              const json_t *versions, const char *group, const char *kind)
{
    const char *own = json_str(version, "deprecationWarning"), *name = json_str(version, "name");
    if (!json_is_true(json_object_get(version, "deprecated")))
        return NULL;
    if (own)
        return copy(d, own);
    const char *other = replacement(versions, name);
    if (!other)
        return arena_printf(&d->arena, "%s/%s %s is deprecated", group, name, kind);
    return arena_printf(&d->arena, "%s/%s %s is deprecated; use %s/%s %s", group, name, kind, group,
                        other, kind);
}

static void set_subresources(struct apiserver_definition *d, struct api_kind *kind,
                             const json_t *version)
{
    const json_t *scale = json_at(version, "subresources", "scale");
    if (json_is_object(json_at(version, "subresources", "status")))
        kind->flags |= API_STATUS;
    if (!json_is_object(scale))
        return;
    const char *selector = json_str(scale, "labelSelectorPath");
    kind->flags |= API_SCALE;
    kind->scale_spec = copy(d, json_str(scale, "specReplicasPath"));
    kind->scale_status = copy(d, json_str(scale, "statusReplicasPath"));
    kind->scale_selector = selector && *selector ? copy(d, selector) : NULL;
}

static int add_version(struct apiserver_definition *d, struct api_kind *kind, const json_t *version,
                       const json_t *versions, struct err *e)
{
    struct api_report report = {0};
    const json_t *schema = json_at(version, "schema", "openAPIV3Schema");
    const char *group = kind->stored->group, *doc = json_str(schema, "description");
    kind->schema = schema ? api_schema_compile(d->schemas, schema, NULL, &report) : NULL;
    kind->schema_rules = &api_schema_rules;
    if (!kind->schema) {
        const struct api_problem *p = report.problems.len ? &report.problems.p[0] : NULL;
        err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "version %s: %s: %s", json_str(version, "name"),
                p ? p->path : "schema", p ? p->message : "there is none");
    }
    api_report_done(&report);
    if (!kind->schema)
        return -1;
    struct api_group_version *gv = arena_alloc(&d->arena, 2 * sizeof(*gv));
    gv->group = group;
    gv->version = copy(d, json_str(version, "name"));
    kind->versions = gv;
    kind->fields = api_schema_fields(d->schemas, kind->schema);
    kind->columns = copy_columns(d, json_object_get(version, "additionalPrinterColumns"));
    kind->selectable = copy_selectable(d, json_object_get(version, "selectableFields"));
    kind->warning = warning_of(d, version, versions, group, kind->kind);
    kind->doc = doc ? copy(d, doc) : "";
    set_subresources(d, kind, version);
    return 0;
}

/* What all versions have in common. */
static struct api_kind common(struct apiserver_definition *d, const json_t *definition,
                              const json_t *names)
{
    const json_t *spec = json_object_get(definition, "spec");
    struct api_group_version *stored = arena_alloc(&d->arena, 2 * sizeof(*stored));
    const char *scope = json_str(spec, "scope");
    struct api_kind kind = {
        .kind = copy(d, json_str(names, "kind")),
        .plural = copy(d, json_str(names, "plural")),
        .singular = copy(d, json_str(names, "singular")),
        .list_kind = copy(d, json_str(names, "listKind")),
        .short_names = copy_words(d, json_object_get(names, "shortNames")),
        .categories = copy_words(d, json_object_get(names, "categories")),
        .stored = stored,
        .conversion = d->conversion,
        .since = d->source->revision,
        .source = d->source->bytes,
        .source_size = d->source->size,
    };
    if (scope && str_eq(scope, "Cluster"))
        kind.flags |= API_CLUSTER_SCOPED;
    if (json_at(definition, "metadata", "deletionTimestamp"))
        kind.flags |= API_TERMINATING;
    size_t i;
    json_t *version;
    stored->group = copy(d, json_str(spec, "group"));
    json_array_foreach(json_object_get(spec, "versions"), i, version) {
        if (json_is_true(json_object_get(version, "storage")))
            stored->version = copy(d, json_str(version, "name"));
    }
    return kind;
}

struct apiserver_definition *apiserver_definition_new(struct apiserver_registry *g,
                                                      struct apiserver_object *source,
                                                      const json_t *definition, const json_t *names,
                                                      struct err *e)
{
    struct apiserver_definition *d = NEW(struct apiserver_definition);
    d->refs = 1;
    d->source = apiserver_object_ref(source);
    d->schemas = api_schema_set_new();
    d->conversion = apiserver_conversion_new(g, definition);
    const json_t *versions = json_at(definition, "spec", "versions");
    struct api_kind kind = common(d, definition, names);
    struct api_kind *kinds = arena_alloc(&d->arena, (json_array_size(versions) + 1) * sizeof(kind));
    d->kinds = kinds;
    size_t i;
    json_t *version;
    bool whole = kind.kind && kind.plural && kind.singular && kind.list_kind &&
                 kind.stored->group && kind.stored->version;
    if (!whole)
        err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "it has no names or no version to store");
    for (i = 0; whole && i < json_array_size(versions); i++) {
        version = json_array_get(versions, i);
        if (!json_is_true(json_object_get(version, "served")))
            continue;
        kinds[d->n] = kind;
        kinds[d->n].flags |= d->n ? API_SIBLING : 0;
        whole = add_version(d, &kinds[d->n++], version, versions, e) == 0;
    }
    if (whole)
        return d;
    apiserver_definition_unref(d);
    return NULL;
}

struct apiserver_definition *apiserver_definition_ref(struct apiserver_definition *d)
{
    __atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
    return d;
}

void apiserver_definition_unref(struct apiserver_definition *d)
{
    if (!d || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    api_schema_set_free(d->schemas);
    apiserver_conversion_free(d->conversion);
    apiserver_object_unref(d->source);
    arena_done(&d->arena);
    free(d);
}
