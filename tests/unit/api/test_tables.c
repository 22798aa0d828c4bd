/* Every table of every kind, ours and Kubernetes', keeps to the rules of api/field.h. */
#include <ctype.h>
#include <stdio.h>

#include "api/format.h"
#include "api/kind.h"
#include "api/structure.h"
#include "base/map.h"
#include "unit.h"

enum { DEEPEST = 32 };

/* Calls f with every field of every kind and where it is. */
typedef void (*field_test)(const struct api_field *table, const struct api_field *field,
                           const char *where);

static void walk(const struct api_field *table, const char *where, unsigned depth, field_test f)
{
    assert_true(depth < DEEPEST);
    for (const struct api_field *field = table; field->name; field++) {
        _cleanup_free_ char *here = mem_printf("%s.%s", where, field->name);
        f(table, field, here);
        if (field->fields)
            walk(field->fields, here, depth + 1, f);
    }
}

static void walk_all(field_test f)
{
    for (const struct api_kind *const *k = api_kinds; *k; k++)
        walk((*k)->fields, (*k)->kind, 0, f);
}

static void check_doc(const struct api_field *table, const struct api_field *field,
                      const char *where)
{
    (void)table;
    const char *doc = field->doc ? field->doc : "";
    if (!isalnum((unsigned char)doc[0]) || !str_ends_with(doc, "."))
        fail_msg("%s: its doc is no sentence: %s", where, *doc ? doc : "none");
    if (strchr(field->doc, '\n') || strstr(field->doc, "  "))
        fail_msg("%s: its doc is not one line of words: %s", where, field->doc);
}

static void test_docs_are_sentences(void **state)
{
    (void)state;
    walk_all(check_doc);
}

static void check_names(const struct api_field *table, const struct api_field *field,
                        const char *where)
{
    if (api_field_find(table, field->name) != field)
        fail_msg("%s: the table has the name twice", where);
    for (const char *c = field->name; *c; c++) {
        if (!isalnum((unsigned char)*c))
            fail_msg("%s: a name has letters and digits only", where);
    }
    for (const char *const *alias = field->aliases; alias && *alias; alias++) {
        if (api_field_find(table, *alias))
            fail_msg("%s: the alias %s is the name of another field", where, *alias);
        if (api_field_by_alias(table, *alias) != field)
            fail_msg("%s: the alias %s is another field's, too", where, *alias);
    }
}

static void test_names_are_unique(void **state)
{
    (void)state;
    walk_all(check_names);
}

static bool is_text(const struct api_field *field)
{
    return field->type == API_STRING || field->type == API_BOOL_OR_STRING;
}

static void check_shape(const struct api_field *table, const struct api_field *field,
                        const char *where)
{
    (void)table;
    bool list = field->shape == API_LIST, object = field->type == API_OBJECT;
    if (field->fields && !object)
        fail_msg("%s: only an object has members", where);
    if (object && !field->fields && !(field->flags & API_KEEP))
        fail_msg("%s: an object without members must keep what it is given", where);
    if (field->merge_key && (!list || !object))
        fail_msg("%s: only lists of objects have a merge key", where);
    if (field->merge_key && field->fields && !api_field_find(field->fields, field->merge_key))
        fail_msg("%s: its elements have no member %s", where, field->merge_key);
    if (field->flags & API_SET && (!list || (object && !field->merge_key)))
        fail_msg("%s: only a list of scalars, or of objects with a merge key, is a set", where);
    if (field->flags & (API_POSITIVE | API_GROW_ONLY) && field->type != API_QUANTITY)
        fail_msg("%s: only a quantity is positive or grows", where);
    if (field->flags & (API_RETAIN_KEYS | API_REPLACE | API_EMBEDDED | API_KEEP) && !object)
        fail_msg("%s: has a flag that only objects have", where);
    if ((field->min || field->max) && (field->type != API_INT || field->min >= field->max))
        fail_msg("%s: only integers have a range, and not an empty one", where);
    if (field->keys && field->shape != API_MAP)
        fail_msg("%s: only maps have keys", where);
    if ((field->words || field->synonyms || field->format) && !is_text(field))
        fail_msg("%s: only strings have words or a format", where);
    if (field->format && (!field->format->name || !field->format->check))
        fail_msg("%s: its format has no name or check", where);
}

static void test_shapes_are_sound(void **state)
{
    (void)state;
    walk_all(check_shape);
}

static void check_words(const struct api_field *table, const struct api_field *field,
                        const char *where)
{
    (void)table;
    for (const char *const *word = field->words; word && *word; word++) {
        for (const char *const *other = field->words; other != word; other++) {
            if (str_eq(*word, *other))
                fail_msg("%s: has the word %s twice", where, *word);
        }
        const char *why = field->format && **word ? field->format->check(*word) : NULL;
        if (why)
            fail_msg("%s: the word %s %s", where, *word, why);
    }
    for (const struct api_synonym *s = field->synonyms; s && s->from; s++) {
        if (field->words && !str_in(s->to, field->words))
            fail_msg("%s: %s is synonymous with %s, which is no word of it", where, s->from, s->to);
        if (field->words && str_in(s->from, field->words))
            fail_msg("%s: %s is a word and a synonym", where, s->from);
    }
}

static void test_words_agree(void **state)
{
    (void)state;
    walk_all(check_words);
}

/* Checked as a member of an object whose table has only this field. */
static void check_default(const struct api_field *table, const struct api_field *field,
                          const char *where)
{
    (void)table;
    if (!field->def)
        return;
    if (field->flags & API_REQUIRED)
        fail_msg("%s: what is required has no default", where);
    json_auto_t *object = json_object();
    json_t *value = json_loads(field->def, JSON_DECODE_ANY, NULL);
    if (!value)
        fail_msg("%s: its default is no JSON: %s", where, field->def);
    json_object_set_new(object, field->name, value);
    const struct api_field fields[] = {*field, {0}};
    const struct api_kind kind = {.fields = fields};
    struct api_report report = {0};
    api_check_structure(&kind, object, API_UNKNOWN_ERROR, &report);
    if (report.errors)
        fail_msg("%s: its default %s: %s", where, field->def, report.problems.p[0].message);
    api_report_done(&report);
}

static void test_defaults_are_valid(void **state)
{
    (void)state;
    walk_all(check_default);
}

static bool is_lower(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (!islower((unsigned char)*c))
            return false;
    }
    return *text;
}

/* Every name that a person may type leads to the kind, and no two kinds share one. */
static void check_kind_names(const struct api_kind *kind)
{
    assert_non_null(kind->kind);
    assert_non_null(kind->plural);
    assert_non_null(kind->singular);
    if (!isupper((unsigned char)kind->kind[0]) || !is_lower(kind->plural) ||
        !is_lower(kind->singular) || strcasecmp(kind->kind, kind->singular) != 0)
        fail_msg("%s: plural %s, singular %s", kind->kind, kind->plural, kind->singular);
    assert_ptr_equal(api_kind_by_name(kind->kind), kind);
    assert_ptr_equal(api_kind_by_name(kind->plural), kind);
    assert_ptr_equal(api_kind_by_name(kind->singular), kind);
    for (const char *const *name = kind->short_names; name && *name; name++) {
        if (!is_lower(*name) || api_kind_by_name(*name) != kind)
            fail_msg("%s: short name %s", kind->kind, *name);
    }
}

static void test_kinds_are_complete(void **state)
{
    (void)state;
    struct map seen = {0};
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        check_kind_names(*k);
        if (!(*k)->doc || !str_ends_with((*k)->doc, "."))
            fail_msg("%s: its doc is no sentence", (*k)->kind);
        assert_non_null((*k)->versions);
        assert_non_null((*k)->versions[0].group);
        for (const struct api_group_version *gv = (*k)->versions; gv->group; gv++) {
            char text[128];
            _cleanup_free_ char *id = mem_printf("%s %s", api_version_text(gv, text), (*k)->kind);
            assert_ptr_equal(api_kind_find(text, (*k)->kind, NULL), *k);
            if (map_set(&seen, id, (void *)*k))
                fail_msg("two kinds are called %s", id);
        }
        static const char *const head[] = {"apiVersion", "kind", "metadata"};
        for (size_t i = 0; i < ARRAY_SIZE(head); i++)
            assert_string_equal((*k)->fields[i].name, head[i]);
    }
    map_done(&seen);
}

static void test_subresources_have_their_fields(void **state)
{
    (void)state;
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        const struct api_field *spec = api_field_find((*k)->fields, "spec");
        const struct api_field *status = api_field_find((*k)->fields, "status");
        /* Of a question the status is the answer, and there is no path for it alone. */
        bool has_status = (*k)->flags & (API_STATUS | API_REVIEW);
        if (has_status != (status != NULL))
            fail_msg("%s: has %sa status", (*k)->kind, status ? "" : "not ");
        if (!((*k)->flags & API_SCALE))
            continue;
        assert_non_null(api_field_find(spec->fields, "replicas"));
        assert_non_null(api_field_find(spec->fields, "selector"));
        assert_non_null(api_field_find(status->fields, "replicas"));
    }
}

/* Follows ".a.b[0].c" through the tables as far as they know. */
static void check_column(const struct api_kind *kind, const struct api_column *column)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "date", NULL};
    if (!column->type || !str_in(column->type, types) || !column->doc || !*column->doc)
        fail_msg("%s: column %s has no type or doc", kind->kind, column->name);
    if (column->cell && !(kind->flags & API_BUILTIN))
        fail_msg("%s: column %s cannot be had in a definition", kind->kind, column->name);
    if (column->cell)
        return;
    if (!column->path || column->path[0] != '.')
        fail_msg("%s: column %s: a path starts with a dot", kind->kind, column->name);
    const struct api_field *table = kind->fields;
    for (const char *p = column->path; *p == '.' && table;) {
        size_t n = strcspn(p + 1, ".[");
        _cleanup_free_ char *name = mem_strndup(p + 1, n);
        const struct api_field *field = api_field_find(table, name);
        if (!field)
            fail_msg("%s: column %s: there is no %s", kind->kind, column->name, name);
        table = field->shape == API_MAP ? NULL : field->fields;
        p += 1 + n;
        if (*p == '[')
            p += strcspn(p, "]") + 1;
    }
}

static void test_columns_lead_to_fields(void **state)
{
    (void)state;
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        assert_non_null((*k)->columns);
        for (const struct api_column *column = (*k)->columns; column->name; column++) {
            check_column(*k, column);
            for (const struct api_column *other = (*k)->columns; other != column; other++)
                assert_string_not_equal(other->name, column->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_docs_are_sentences),
        cmocka_unit_test(test_names_are_unique),
        cmocka_unit_test(test_shapes_are_sound),
        cmocka_unit_test(test_words_agree),
        cmocka_unit_test(test_defaults_are_valid),
        cmocka_unit_test(test_kinds_are_complete),
        cmocka_unit_test(test_subresources_have_their_fields),
        cmocka_unit_test(test_columns_lead_to_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
