/* Slips that people make, and that the message points at the slip and says what to write. */
#include <stdio.h>

#include "json/doc.h"
#include "unit.h"

static const struct {
    const char *in;
    unsigned line, column;
    const char *says;
} cases[] = {
    /* no space after the colon */
    {"a: 1\nb:2\nc: 3\n", 2, 1, "\"b:2\" has no space after the colon; write \"b: 2\""},
    {"a: 1\nb:2\n", 2, 1, "write \"b: 2\""},
    {"a:\n  b:2\n  c: 3\n", 2, 3, "write \"b: 2\""},
    {"a:\n  - name: x\n    isWriteCache:false # why\n    c: 3\n", 3, 5,
     "\"isWriteCache:false\" has no space after the colon; write \"isWriteCache: false\""},
    {"a:\n  - name:x\n    b: 1\n", 2, 5, "write \"name: x\""},
    {"a: 1\n\n# c\nb:2\n\n\nc: 3\n", 4, 1, "write \"b: 2\""},
    {"\"a\":1\nb: 2\n", 1, 1, "write \"\"a\": 1\""},
    {"ä:\n  äö:ü\n  b: 1\n", 2, 3, "write \"äö: ü\""},
    /* directives without a marker */
    {"%YAML 1.1\na: 1\n", 1, 1, "write \"---\" on a line of its own"},
    {"a: 1\n...\n# b\n%YAML 1.1\n", 4, 1, "\"%YAML 1.1\" is a directive"},
    /* comments of other languages */
    {"a: 1\n// New group added\nb: 2\n", 2, 1,
     "comments start with \"#\" in YAML; write \"# New group added\""},
    {"a:\n  //x\n  b: 1\n", 2, 3, "write \"# x\""},
    {"a:\n- b: 1\n  // x\n- c: 1\n", 3, 3, "comments start with"},
    {"a: 1\n/* x */\nb: 1\n", 2, 1, "comments start with"},
    /* tabs */
    {"a:\n\tb: 1\n", 2, 1, "a tab in the indentation"},
    {"a:\n  b: 1\n  \tc: 2\n", 3, 3, "a tab in the indentation"},
    {"a: |\n\tx\n", 2, 1, "a tab in the indentation"},
    /* indentation */
    {"a: 1\n  b: 2\n", 2, 3, "\"b\" is indented by 2 spaces, deeper than \"a\" above it"},
    {"a:\n    b: 1\n  c: 2\n", 3, 3, "\"c\" is indented by 2, \"b\" in line 2 by 4 spaces"},
    {"x: 1\n---\na:\n    b: 1\n  c: 2\n", 5, 3, "\"b\" in line 4 by 4 spaces"},
    {"a:\n  - b\n - c\n", 3, 2, "\"- c\" is indented by 1, \"- b\" in line 2 by 2 spaces"},
    {"a:\n  - b: 1\n   c: 2\n", 3, 4, "\"c\" is indented by 3, \"b\" in line 2 by 4 spaces"},
    {"a:\n  - b: 1\n     c: 2\n", 3, 6, "\"c\" is indented by 5 spaces, deeper than \"b\""},
    {"a: 1\n- b\n", 2, 1, "a list item among keys"},
    {"- a\nb: 1\n", 2, 1, "a key among list items; write \"- b: 1\""},
    /* quotes */
    {"a: \"foo\nb: bar\n", 1, 4, "the quote that opens here has no end"},
    {"a: 'foo\nb: bar\n", 1, 4, "the quote that opens here has no end"},
    {"a: \"foo\nb: \"bar\"\n", 1, 4, "the quote that opens here has no end"},
    {"a: 1\nb: \"x”\nc: 1\n", 2, 4, "” is not a plain quote"},
    {"a: 'it's'\n", 1, 8, "\"s'\" stands after the closing quote"},
    {"a: \"x\" y\n", 1, 8, "\"y\" stands after the closing quote"},
    {"a: \"C:\\d\"\n", 1, 7, "write \"\\\\\" for a backslash"},
    /* brackets */
    {"a: [1, 2\nb: 3\n", 1, 4, "the \"[\" here is never closed; write its \"]\""},
    {"a: {b: 1\nc: 3\n", 1, 4, "the \"{\" here is never closed; write its \"}\""},
    {"a: [1, 2", 1, 4, "never closed"},
    {"a: [1, {b: [", 1, 12, "never closed"},
    {"a:\n  b: {\n", 2, 6, "never closed"},
    {"a: [b: 1 c: 2]\n", 1, 11, "write a comma"},
    {"{a: 1\n b: 2}\n", 2, 2, "write a comma at the end of the line above"},
    {"a: [x, , y]\n", 1, 8, "a value is missing in front of \",\""},
    {"a: }\n", 1, 4, "a value cannot start with \"}\""},
    /* characters that cannot start a value */
    {"a: @foo # x\n", 1, 4, "a value cannot start with \"@\"; put it in quotes: \"@foo\""},
    {"a: `x`\n", 1, 4, "put it in quotes: \"`x`\""},
    {"- %x\n", 1, 3, "put it in quotes: \"%x\""},
    {"a: *.log\n", 1, 4, "text that starts with \"*\" must be in quotes: \"*.log\""},
    {"a: & b\n", 1, 4, "must be in quotes"},
    /* the rest */
    {"a: - b\n", 1, 4, "write the \"-\" on the next line"},
    {"a: b: c\n", 1, 4, "a value with \": \" in it must be in quotes: \"b: c\""},
    {"a: | foo\n", 1, 6, "starts on the line after"},
    {"a: 1\nreplicas 3\n", 2, 1,
     "\"replicas 3\" has no \":\" after the key; write \"replicas: 3\""},
    {"a: 1\nfoo\nb: 2\n", 2, 1, "\"foo\" has no \":\"; write \"foo: VALUE\""},
    {"url: http://x\nfoo\n", 2, 1, "\"foo\" has no \":\""},
    {"foo\nbar: x\n", 1, 1, "\"foo\" has no \":\""},
    {"a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> x\n", 2, 1, "conflict"},
    {"a: \x01\n", 1, 4, "U+0001 is not allowed"},
    {"ä: \xff\n", 1, 4, "0xFF here is not UTF-8"},
    {"a: |\n  x\n y\n", 3, 2, "did not find expected key"},
};

static void test_hints(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(json_stream_freep) struct json_stream *s =
            json_stream_new_text(cases[i].in, strlen(cases[i].in));
        struct json_doc doc = {0};
        struct err e = {0};
        int r = json_stream_next(s, &doc, &e);
        while (r > 0) {
            json_doc_done(&doc);
            r = json_stream_next(s, &doc, &e);
        }
        if (r == 0)
            fail_msg("%s is taken", cases[i].in);
        if (!strstr(e.msg, cases[i].says) || doc.start.line != cases[i].line ||
            doc.start.column != cases[i].column)
            fail_msg("%s: %u:%u %s", cases[i].in, doc.start.line, doc.start.column, e.msg);
        json_doc_done(&doc);
    }
}

/* A hint looks at the lines around the mistake, not at the whole text again for each. */
static void test_long_texts(void **state)
{
    _cleanup_(str_done) struct str text = {0};
    struct json_doc doc = {0};
    struct err e = {0};
    (void)state;
    str_append(&text, "a: 1\n");
    for (unsigned i = 0; i < 1000000; i++)
        str_append(&text, "\n");
    str_append(&text, " b: 1\n");
    _cleanup_(json_stream_freep) struct json_stream *s = json_stream_new_text(text.p, text.len);
    assert_int_equal(json_stream_next(s, &doc, &e), -1);
    assert_int_equal(doc.start.line, 1000002);
    assert_non_null(strstr(e.msg, "deeper than \"a\""));
    json_doc_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests_name("yaml_hint", tests, NULL, NULL);
}
