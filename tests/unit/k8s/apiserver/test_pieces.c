#include "k8s/apiserver/pieces.h"
#include "unit.h"

static struct apiserver_object *object_of(const char *text)
{
    return apiserver_object_new("c", "k", 7, text, strlen(text), "!", 1);
}

static void test_read_in_parts(void **state)
{
    (void)state;
    static const char expected[] = "head one7! own";
    for (size_t max = 1; max <= sizeof(expected); max++) {
        struct pieces p = {0};
        struct apiserver_object *o = object_of("one");
        _cleanup_(str_done) struct str own = {0}, got = {0};
        str_append(&own, " own");
        pieces_add_literal(&p, "head ");
        pieces_add_object(&p, o);
        pieces_add_text(&p, pieces_text_new(&own));
        apiserver_object_unref(o);
        assert_int_equal(p.bytes, strlen(expected));
        char buf[sizeof(expected)];
        for (size_t n; (n = pieces_read(&p, buf, max));)
            str_append_n(&got, buf, n);
        assert_string_equal(str_get(&got), expected);
        assert_int_equal(p.bytes, 0);
        assert_null(p.waiting.p);
    }
}

/* Whoever reads a part lets go of it; what is forgotten is let go of as a whole. */
static void test_references(void **state)
{
    (void)state;
    struct pieces some = {0}, others = {0};
    struct apiserver_object *o = object_of("one");
    _cleanup_(str_done) struct str text = {0};
    str_append(&text, "shared");
    struct pieces_text *shared = pieces_text_new(&text);
    pieces_add_object(&some, o);
    pieces_add_object(&others, o);
    pieces_add_text(&some, pieces_text_ref(shared));
    pieces_add_text(&others, pieces_text_ref(shared));
    assert_int_equal(o->refs, 3);
    assert_int_equal(shared->refs, 3);
    char buf[6];
    assert_int_equal(pieces_read(&some, buf, 5), 5);
    assert_int_equal(o->refs, 2);
    assert_int_equal(shared->refs, 3);
    pieces_done(&some);
    pieces_done(&others);
    assert_int_equal(o->refs, 1);
    assert_int_equal(shared->refs, 1);
    assert_int_equal(others.bytes, 0);
    apiserver_object_unref(o);
    pieces_text_unref(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_in_parts),
        cmocka_unit_test(test_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
