#include "jsontest.h"
#include "k8s/apiserver/jsonpath.h"
#include "k8s/apiserver/table.h"
#include "k8s/kinds/kinds.h"

static const struct api_group_version versions[] = {{"rec.example.test", "v1"}, {0}};
static const struct api_column gadget_columns[] = {
    {"Size", "string", ".spec.size", "How large"},
    {"Phase", "string", ".status.phase", "How it is"},
    {"Disk", "string", ".spec.disks[1].name", "The second disk", 1},
    {"Age", "date", ".metadata.creationTimestamp", "How old"},
    {0},
};
static const struct api_kind gadget = {.kind = "Gadget",
                                       .plural = "gadgets",
                                       .singular = "gadget",
                                       .versions = versions,
                                       .columns = gadget_columns};
static struct clock_manual now;

/* 2026-11-15T19:39:31Z, one second after the object below. */
static int begin(void **state)
{
    (void)state;
    clock_manual_init(&now, 1794771571 * CLOCK_SECOND);
    return 0;
}

static void test_jsonpath(void **state)
{
    (void)state;
    json_auto_t *object = parse_quoted(
        "{'a': {'b': 1, 'x.y/z': 2, 'q\\\\r': 3}, 'l': [{'m': 4}, [5, 6]], 'n': null, "
        "'c': [{'t': 'x', 'v': 1}, {'t': 'y', 'v': 2}, {'t': 'x', 'v': 3, 'w': true}]}");
    static const struct {
        const char *path, *expected; /* NULL: nothing */
    } cases[] = {
        {".a.b", "1"},
        {".a.x\\.y/z", "2"},
        {".a.q\\\\r", "3"},
        {".l[0].m", "4"},
        {".l[1][0]", "5"},
        {".l[1][1]", "6"},
        {".n", "null"},
        {".a.c", NULL},
        {".a.b.c", NULL},
        {".l[2]", NULL},
        {".l[]", NULL},
        {".l[-3]", NULL},
        {".l[0", NULL},
        {".l[0]m", NULL},
        {".l[-]", NULL},
        {".l[99999999999999999999]", NULL},
        {".l.0", NULL},
        {".a[0]", NULL},
        {"..a", NULL},
        {".a.", NULL},
        {".a.b\\", NULL},
        {"a", NULL},
        {".", NULL},
        {"", NULL},
        {"{.a.b}", NULL},
        /* The first of several, and the first of which something holds. */
        {".l[-1]", "[5,6]"},
        {".l[*].m", "4"},
        {".l[1][*]", "5"},
        {".l[*", NULL},
        {".a['x.y/z']", "2"},
        {".a[\"b\"]", "1"},
        {".a.['b']", "1"},
        {".a['b", NULL},
        {".a['b'", NULL},
        {".c[?(@.t==\"y\")].v", "2"},
        {".c[?(@.t=='y')].v", "2"},
        {".c[?(@.t == 'y')].v", "2"},
        {".c[?(@.t!='x')].v", "2"},
        {".c[?(@.w)].v", "3"},
        {".c[?(@.w==true)].v", "3"},
        {".c[?(@.v==2)].t", "\"y\""},
        {".c[?(@.t=='n')].v", NULL},
        {".c[?(@.t=='y')", NULL},
        {".c[?(@.t=='y]", NULL},
        {".c[?(@.t>1)].v", NULL},
        {".c[?(t=='y')].v", NULL},
        {".c[?(", NULL},
        {".a[?(@.t=='y')]", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const json_t *got = apiserver_jsonpath(object, cases[i].path);
        _cleanup_(str_done) struct str text = {0};
        if (got)
            json_format(got, &text);
        if (!got != !cases[i].expected || (got && !str_eq(str_get(&text), cases[i].expected)))
            fail_msg("%s: %s", cases[i].path, str_get(&text));
    }
    assert_null(apiserver_jsonpath(NULL, ".a"));
}

/* Every path in the tables of kinds is one that can be followed. */
static void test_paths_of_kinds(void **state)
{
    (void)state;
    for (const struct api_kind *const *k = api_kinds; *k; k++) {
        for (const struct api_column *c = (*k)->columns; c && c->name; c++) {
            static const char *const types[] = {"string",  "integer", "number",
                                                "boolean", "date",    NULL};
            if (c->cell)
                continue;
            if (c->path[0] != '.' || strpbrk(c->path, "*?@{}()'\"") || !str_in(c->type, types))
                fail_msg("%s: %s %s", (*k)->kind, c->type, c->path);
        }
    }
}

#define G1                                                                                         \
    "{'apiVersion':'rec.example.test/v1','kind':'Gadget','metadata':{'name':'g1',"                 \
    "'creationTimestamp':'2026-11-15T19:39:30Z','labels':{'app':'demo'}},'spec':{'size':'10Gi'}}"

/* An object as the store would hand it out; its bytes are the caller's. */
static struct apiserver_object *raw(const char *quoted, struct apiserver_object *o, char **ret_text)
{
    *ret_text = mem_strdup(quoted);
    for (char *c = *ret_text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    *o = (struct apiserver_object){.collection = "rec.example.test/gadgets",
                                   .key = "ns/g1",
                                   .bytes = *ret_text,
                                   .size = strlen(*ret_text),
                                   .refs = 1};
    return o;
}

static json_t *table_of(const struct apiserver_table *t, const char *quoted)
{
    struct apiserver_object o;
    _cleanup_free_ char *text = NULL;
    struct apiserver_object *list[] = {raw(quoted, &o, &text)};
    _cleanup_(str_done) struct str out = {0};
    struct err e = {0};
    if (apiserver_table(t, list, 1, &out, &e) < 0)
        fail_msg("%s", e.msg);
    return parse_json(str_get(&out));
}

/* The shape that a server of Kubernetes answers with for the same object. */
static void test_shape(void **state)
{
    (void)state;
    struct apiserver_table t = {.kind = &gadget, .clock = &now.clock, .revision = 223};
    json_auto_t *got = table_of(&t, G1);
    json_auto_t *expected = parse_quoted(
        "{'kind': 'Table', 'apiVersion': 'meta.k8s.io/v1', 'metadata': {'resourceVersion': '223'},"
        "'columnDefinitions': ["
        "{'name': 'Name', 'type': 'string', 'format': 'name', 'description': '', 'priority': 0},"
        "{'name': 'Size', 'type': 'string', 'format': '', 'description': 'How large',"
        " 'priority': 0},"
        "{'name': 'Phase', 'type': 'string', 'format': '', 'description': 'How it is',"
        " 'priority': 0},"
        "{'name': 'Disk', 'type': 'string', 'format': '', 'description': 'The second disk',"
        " 'priority': 1},"
        "{'name': 'Age', 'type': 'date', 'format': '', 'description': 'How old', 'priority': 0}],"
        "'rows': [{'cells': ['g1', '10Gi', null, null, '1s'], 'object': {"
        "'kind': 'PartialObjectMetadata', 'apiVersion': 'meta.k8s.io/v1', 'metadata': {"
        "'name': 'g1', 'creationTimestamp': '2026-11-15T19:39:30Z', 'labels': {'app': "
        "'demo'}}}}]}");
    json_t *first = json_array_get(json_object_get(got, "columnDefinitions"), 0);
    assert_true(*json_str(first, "description"));
    json_object_set_new(first, "description", json_string(""));
    assert_json(got, expected, "table");
}

static void test_include(void **state)
{
    (void)state;
    static const struct {
        const char *text, *row;
    } cases[] = {
        {"Object", "{'cells': ['g1', '10Gi', null, null, '1s'], 'object': " G1 "}"},
        {"None", "{'cells': ['g1', '10Gi', null, null, '1s']}"},
    };
    struct apiserver_table t = {.kind = &gadget, .clock = &now.clock};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(apiserver_include_parse(cases[i].text, &t.include, NULL), 0);
        json_auto_t *got = table_of(&t, G1), *row = parse_quoted(cases[i].row);
        assert_json(json_array_get(json_object_get(got, "rows"), 0), row, cases[i].text);
    }
    static const char *const metadata[] = {NULL, "", "Metadata"};
    for (size_t i = 0; i < ARRAY_SIZE(metadata); i++) {
        assert_int_equal(apiserver_include_parse(metadata[i], &t.include, NULL), 0);
        assert_int_equal(t.include, APISERVER_INCLUDE_METADATA);
    }
    struct err e = {0};
    assert_int_equal(apiserver_include_parse("object", &t.include, &e), -1);
    assert_string_equal(e.reason, "BadRequest");
}

static void test_list(void **state)
{
    (void)state;
    struct apiserver_table t = {.kind = &gadget,
                                .clock = &now.clock,
                                .revision = 9,
                                .continue_token = "abc",
                                .remaining = 3,
                                .no_headers = true,
                                .include = APISERVER_INCLUDE_NONE};
    struct apiserver_object a, b;
    _cleanup_free_ char *one = NULL, *two = NULL;
    struct apiserver_object *list[] = {raw("{'metadata':{'name':'a'}}", &a, &one),
                                       raw("{'metadata':{'name':'b'}}", &b, &two)};
    _cleanup_(str_done) struct str out = {0};
    str_append(&out, "x");
    assert_int_equal(apiserver_table(&t, list, 2, &out, NULL), 0);
    json_auto_t *got = parse_json(str_get(&out) + 1);
    json_auto_t *expected = parse_quoted(
        "{'kind': 'Table', 'apiVersion': 'meta.k8s.io/v1', 'metadata': {'resourceVersion': '9',"
        "'continue': 'abc', 'remainingItemCount': 3}, 'columnDefinitions': null, 'rows': ["
        "{'cells': ['a', null, null, null, null]}, {'cells': ['b', null, null, null, null]}]}");
    assert_json(got, expected, "list");
    _cleanup_(str_done) struct str empty = {0};
    t = (struct apiserver_table){.kind = &gadget, .clock = &now.clock, .no_headers = true};
    assert_int_equal(apiserver_table(&t, NULL, 0, &empty, NULL), 0);
    assert_string_equal(str_get(&empty), "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
                                         "\"metadata\":{},\"columnDefinitions\":null,\"rows\":[]}");
}

static void test_damaged(void **state)
{
    (void)state;
    struct apiserver_table t = {.kind = &gadget, .clock = &now.clock};
    struct apiserver_object o;
    _cleanup_free_ char *text = NULL;
    struct apiserver_object *list[] = {raw("{'metadata':", &o, &text)};
    _cleanup_(str_done) struct str out = {0};
    struct err e = {0};
    str_append(&out, "before");
    assert_int_equal(apiserver_table(&t, list, 1, &out, &e), -1);
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_non_null(strstr(e.msg, "ns/g1"));
    assert_string_equal(str_get(&out), "before");
}

/* One column of a type, and what it shows of a value. */
static void test_cells(void **state)
{
    (void)state;
    static const struct {
        const char *type, *value, *cell;
    } cases[] = {
        {"string", "'a'", "'a'"},
        {"string", "''", "''"},
        {"string", "3", "'3'"},
        {"string", "true", "'true'"},
        {"string", "[1,'b']", "'[1,\\\"b\\\"]'"},
        {"string", "{}", "'{}'"},
        {"string", "null", "null"},
        {"integer", "3", "3"},
        {"integer", "3.0", "3"},
        {"integer", "3.5", "null"},
        {"integer", "1e300", "null"},
        {"integer", "'3'", "null"},
        {"integer", "true", "null"},
        {"number", "3.5", "3.5"},
        {"number", "'x'", "null"},
        {"boolean", "false", "false"},
        {"boolean", "'false'", "null"},
        {"boolean", "0", "null"},
        {"date", "'2026-11-15T19:39:30Z'", "'1s'"},
        {"date", "'2026-11-15T19:39:30.5Z'", "'0s'"},
        {"date", "'2026-11-12T17:39:31Z'", "'3d2h'"},
        {"date", "'2026-11-15T19:40:31Z'", "'<invalid>'"},
        {"date", "'0000-01-01T00:00:00Z'", "'292y'"},
        {"date", "'9999-01-01T00:00:00Z'", "'<invalid>'"},
        {"date", "'0001-01-01T00:00:00Z'", "'<unknown>'"},
        {"date", "''", "'<unknown>'"},
        {"date", "'yesterday'", "'<invalid>'"},
        {"date", "5", "null"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct api_column columns[] = {{"X", cases[i].type, ".x", "", 0}, {0}};
        struct api_kind kind = gadget;
        kind.columns = columns;
        struct apiserver_table t = {.kind = &kind, .clock = &now.clock};
        _cleanup_free_ char *text =
            mem_printf("{'metadata': {'name': 'n'}, 'x': %s}", cases[i].value);
        _cleanup_free_ char *wanted = mem_printf("['n', %s]", cases[i].cell);
        json_auto_t *object = parse_quoted(text), *cells = parse_quoted(wanted);
        _cleanup_(str_done) struct str out = {0};
        apiserver_table_row(&t, object, NULL, &out);
        json_auto_t *row = parse_json(str_get(&out));
        assert_json(json_object_get(row, "cells"), cells, text);
    }
}

/* The cells are of one object, the row carries another: the same in the version asked for. */
static void test_shown(void **state)
{
    (void)state;
    struct apiserver_table t = {
        .kind = &gadget, .clock = &now.clock, .include = APISERVER_INCLUDE_OBJECT};
    json_auto_t *object = parse_quoted(G1), *shown = parse_quoted("{'kind': 'Old'}");
    _cleanup_(str_done) struct str out = {0};
    apiserver_table_row(&t, object, shown, &out);
    json_auto_t *row = parse_json(str_get(&out));
    assert_json(json_object_get(row, "object"), shown, "object");
    t.include = APISERVER_INCLUDE_METADATA;
    str_clear(&out);
    apiserver_table_row(&t, object, shown, &out);
    json_auto_t *partial = parse_json(str_get(&out));
    json_auto_t *nothing = json_object();
    assert_json(json_at(partial, "object", "metadata"), nothing, "metadata that is not there");
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jsonpath), TEST(test_paths_of_kinds), TEST(test_shape), TEST(test_include),
        TEST(test_list),     TEST(test_damaged),        TEST(test_cells), TEST(test_shown),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
