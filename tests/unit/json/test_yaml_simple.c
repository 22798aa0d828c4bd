#include <stdio.h>

#include "base/mem.h"
#include "nodes.h"
#include "unit.h"

/* Whether the short way was taken; if so, that libyaml sees the same. */
static bool is_simple(const char *text)
{
    struct arena arena = {0};
    const struct json_node *simple = json_yaml_read_simple(&arena, text, strlen(text));
    if (simple) {
        struct json_node *full = NULL;
        struct json_pos pos;
        struct err e = {0};
        if (json_yaml_read(&arena, text, strlen(text), (struct json_pos){1, 1}, &full, &pos, &e))
            fail_msg("libyaml refuses it: %s\n%s", e.msg, text);
        const struct json_node *other = nodes_differ(simple, full);
        if (other)
            fail_msg("%u:%u is something else to libyaml in\n%s", other->pos.line,
                     other->pos.column, text);
    }
    bool result = simple != NULL;
    arena_done(&arena);
    return result;
}

static void test_simple(void **state)
{
    static const char *const texts[] = {
        "a: b",
        "a: b\n",
        "---\na: b\n",
        "# x\n---   \n\n# y\na: b\n",
        "a:\nb:\n",
        "a:   \n  b:    c   \n",
        "a:\n  b:\n    c: d\ne: f\n",
        "a:\n- b\n- c\nd: e\n",
        "a:\n  - b\n  - c\nd: e\n",
        "- a\n- b\n",
        "- - a\n  - b\n- - - c\n",
        "- a: b\n  c: d\n- e:\n    f: g\n",
        "- a:\n  - b\n  - c: d\n    e: f\n  g: h\n",
        "a: \"b c\"\nd: 'e: #f'\ng: \"\"\nh: ''\n",
        "a: []\nb: {}\nc:\n- {}\n- []\n",
        "a: -5Gi\nb: +1\nc: .5\nd: 10.0.0.1:3260\n",
        "a: http://example.com/x?\nb: c\n",
        "yes: no\non: off\n1: 2\ntrue: ~x\n",
        "kubernetes.io/hostname: x\n",
        "a: it's (a b); c=d, 100%\n",
        "  a: b\n  c: d\n",
    };
    (void)state;
    size_t taken = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        taken += is_simple(texts[i]);
    assert_int_equal(taken, ARRAY_SIZE(texts) - 2); /* "?" and "~" are left to libyaml */
}

static void test_left_to_libyaml(void **state)
{
    static const char *const texts[] = {
        "",
        "# only\n",
        "a: b # c\n",
        "a: b: c\n",
        "a: b:\n",
        "a:b\n",
        "a: |\n  b\n",
        "a: >-\n  b\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !!str b\n",
        "a: [b]\n",
        "a: {b: c}\n",
        "a: b\n  c\n",
        "a:\n  b\n",
        "a: \"b\n  c\"\n",
        "a: \"b\\n\"\n",
        "a: 'it''s'\n",
        "\"a\": b\n",
        "? a\n: b\n",
        "<<: b\n",
        "a:\tb\n",
        "\ta: b\n",
        "a: b\r\n",
        "a: \xc3\xa4\n",
        "# \xc3\xa4\na: b\n",
        "a: b\n---\nc: d\n",
        "a: b\n...\n",
        "%YAML 1.1\n---\na: b\n",
        "-\n  a: b\n",
        "- \n",
        "a:\n    b: c\n  d: e\n",
        "a: b\n- c\n",
        "- a\nb: c\n",
        "a: -\n",
        "a: - b\n",
        "a: --- b\n",
        "null: a\n",
        "a: @b\n",
        "a: `b\n",
        "a: b\n c: d\n",
        "plain\n",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (is_simple(texts[i]))
            fail_msg("taken for simple:\n%s", texts[i]);
    }
}

/* The deepest that is allowed, and one more: "- - - ... END". */
static void test_depth(void **state)
{
    static const struct {
        unsigned items;
        const char *end;
        bool simple;
    } cases[] = {
        {JSON_MAX_DEPTH, "a", true},          {JSON_MAX_DEPTH + 1, "a", false},
        {JSON_MAX_DEPTH - 1, "[]", true},     {JSON_MAX_DEPTH, "[]", false},
        {JSON_MAX_DEPTH - 1, "{}", true},     {JSON_MAX_DEPTH, "{}", false},
        {JSON_MAX_DEPTH - 1, "a: b", true},   {JSON_MAX_DEPTH, "a: b", false},
        {JSON_MAX_DEPTH - 1, "a: []", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(str_done) struct str text = {0};
        for (unsigned n = 0; n < cases[i].items; n++)
            str_append(&text, "- ");
        str_append(&text, cases[i].end);
        if (is_simple(str_get(&text)) != cases[i].simple)
            fail_msg("%u items and %s", cases[i].items, cases[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple),
        cmocka_unit_test(test_left_to_libyaml),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests_name("yaml_simple", tests, NULL, NULL);
}
