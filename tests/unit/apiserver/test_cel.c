#include <stdio.h>

#include "apiserver/cel.h"
#include "unit.h"

static const char *const names[] = {"object", "oldObject", "request", NULL};
static const char object[] =
    "{\"metadata\":{\"name\":\"x\",\"labels\":{\"app\":\"web\",\"a.b/c\":\"d\"},\"n\":null},"
    "\"spec\":{\"replicas\":3,\"half\":2.5,\"list\":[\"a\",\"b\"],\"on\":true,\"text\":\"\xc3\xa4"
    "bc\"}}";
static const char request[] =
    "{\"operation\":\"UPDATE\",\"userInfo\":{\"username\":\"system:node:n1\","
    "\"groups\":[\"system:nodes\",\"g\"]},\"dryRun\":false,\"resource\":{\"group\":\"apps\"}}";

static int test(const char *text, bool *ret_result, struct err *e)
{
    _cleanup_(apiserver_cel_freep) struct apiserver_cel *c = apiserver_cel_compile(text, names, e);
    if (!c)
        return -1;
    json_auto_t *o = json_parse(object, sizeof(object) - 1, NULL, NULL);
    json_auto_t *q = json_parse(request, sizeof(request) - 1, NULL, NULL);
    assert_non_null(o);
    assert_non_null(q);
    return apiserver_cel_test(c, (const json_t *const[]){o, NULL, q}, ret_result, e);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool result;
    } table[] = {
        {"true", true},
        {" false // a comment", false},
        {"!true", false},
        {"!!true", true},
        {"! ! !true", false},
        {"1 == 1", true},
        {"1 != 1", false},
        {"-1 < 0", true},
        {"9223372036854775807 > -9223372036854775808", true},
        {"'a' == \"a\"", true},
        {"'a\\'b' == \"a'b\"", true},
        {"r'a\\n' == 'a\\\\n'", true},
        {"'1' == 1", false},
        {"null == oldObject", true},
        {"object == null", false},
        {"'b' > 'a'", true},
        {"object.metadata.name == 'x'", true},
        {"object.metadata['name'] == 'x'", true},
        {"object.metadata.labels['a.b/c'] == 'd'", true},
        {"'app' in object.metadata.labels", true},
        {"'nothing' in object.metadata.labels", false},
        {"'system:nodes' in request.userInfo.groups", true},
        {"!('system:nodes' in request.userInfo.groups)", false},
        {"3 in [1, 2, 3,]", true},
        {"3 in []", false},
        {"has(object.metadata.labels)", true},
        {"has(object.metadata.annotations)", false},
        {"has(object.metadata.n)", false},
        {"has(object.metadata.labels) && object.metadata.labels.app == 'web'", true},
        {"request.userInfo.username.startsWith('system:')", true},
        {"request.userInfo.username.endsWith(':n1')", true},
        {"request.userInfo.username.contains('node')", true},
        {"size('\xc3\xa4') == 1", true},
        {"object.spec.text.size() == 3", true},
        {"size(object.spec.list) == 2 && size(object.metadata.labels) == 2", true},
        {"object.spec.list[1] == 'b'", true},
        {"object.spec.replicas >= 3 && object.spec.replicas <= 3", true},
        {"object.spec.half > 2", true},
        {"object.spec.on ? false : true", false},
        {"false ? false : true ? true : false", true},
        {"object.spec.list == ['a', 'b']", true},
        {"object.spec.list.exists(x, x == 'b')", true},
        {"object.spec.list.all(x, x == 'b')", false},
        {"object.metadata.labels.exists(k, k.startsWith('a.'))", true},
        {"[[1],[2]].all(x, x.exists(y, y == 2 || y == 1))", true},
        {"[].all(x, false)", true},
        {"[1].exists(object, object == 1)", true},
        /* one side decides though the other is an error */
        {"object.nothing || true", true},
        {"true || object.nothing", true},
        {"object.nothing && false", false},
        {"false && object.nothing", false},
        {"[1, 'a'].exists(x, x == 'a' && x.startsWith('a'))", true},
        {"true || false && false", true},
        {"(true || false) && false", false},
        {"1 < 2 == true", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        bool result;
        if (test(table[i].text, &result, &e) < 0)
            fail_msg("%s: %s", table[i].text, e.msg);
        if (result != table[i].result)
            fail_msg("%s: %d", table[i].text, result);
    }
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"object.nothing", "no such key: nothing"},
        {"object.nothing.more == 1", "no such key: nothing"},
        {"has(object.nothing.more)", "no such key: nothing"},
        {"oldObject.metadata.name == 'x'", "no such key: metadata"},
        {"object.metadata.labels['x'] == ''", "no such key: x"},
        {"object.spec.list[2] == ''", "index out of bounds: 2"},
        {"object.spec.list[-1] == ''", "index out of bounds: -1"},
        {"object.metadata.name.more", "a field of a value of type string"},
        {"'x'", "a condition of a value of type string"},
        {"!1", "a condition of a value of type integer"},
        {"1 && true", "a condition of a value of type integer"},
        {"1 < 'a'", "comparing of a value of type string"},
        {"'a' in 'ab'", "in of a value of type string"},
        {"size(1) == 1", "size() of a value of type integer"},
        {"1.startsWith('a')", "a text's method of a value of type integer"},
        {"object.spec.replicas.startsWith('a')", "of a value of type integer"},
        {"1 .all(x, true)", "exists() or all()"},
        {"object.nothing || false", "no such key: nothing"},
        {"[1, 2].all(x, x.y)", "of a value of type integer"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        bool result;
        assert_int_equal(test(table[i].text, &result, &e), -1);
        if (!strstr(e.msg, table[i].message))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"", "character 1: the expression is not complete"},
        {"true &&", "character 8: the expression is not complete"},
        {"true true", "character 6: 't' is not supported here"},
        {"1 + 1 == 2", "'+' is not supported here"},
        {"1.5 == 1", "only decimal integers"},
        {"1u == 1", "only decimal integers"},
        {"99999999999999999999 == 1", "too large"},
        {"'abc", "the text does not end"},
        {"'\\x41' == 'A'", "escape sequence"},
        {"'''a''' == 'a'", "three quotes"},
        {"authorizer.group('x').check('y')", "the variable authorizer is not supported"},
        {"object.metadata.name.matches('^a')", "the method .matches() is not supported"},
        {"int('1') == 1", "the function int() is not supported"},
        {"has(object)", "has() takes a field"},
        {"has(object.x == 1)", "has() takes a field"},
        {"(true", "expected ')'"},
        {"[1, 2", "expected ',' or ']'"},
        {"object.", "expected the name of a field"},
        {"object['a'", "expected ']'"},
        {"true ? false", "expected ':'"},
        {"{'a': 1} == 1", "'{' is not supported here"},
        {"[1].all(1, true)", "expected a variable"},
        {"\x01", "'?' is not supported here"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_null(apiserver_cel_compile(table[i].text, names, &e));
        if (!strstr(e.msg, table[i].message))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

static void repeat(struct str *s, const char *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        str_append(s, text);
}

static void test_bounds(void **state)
{
    (void)state;
    static const char *const open[] = {"(", "[", "object[", "has(", "!(", "true?", "[1].all(x,"};
    for (size_t i = 0; i < ARRAY_SIZE(open); i++) {
        _cleanup_(str_done) struct str text = {0};
        repeat(&text, open[i], 1000);
        struct err e = {0};
        assert_null(apiserver_cel_compile(str_get(&text), names, &e));
    }
    static const char *const more[] = {".a", "[0]", "||true", "==true", ".size()"};
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        _cleanup_(str_done) struct str text = {0};
        str_append(&text, "object");
        repeat(&text, more[i], 1000);
        struct err e = {0};
        assert_null(apiserver_cel_compile(str_get(&text), names, &e));
        assert_non_null(strstr(e.msg, "in each other"));
    }
    _cleanup_(str_done) struct str not = {0}, long_one = {0};
    repeat(&not, "!", 10000);
    str_append(&not, "true");
    bool result;
    struct err e = {0};
    assert_int_equal(test(str_get(&not ), &result, &e), 0);
    assert_true(result);
    repeat(&long_one, " ", APISERVER_CEL_BYTES + 1);
    assert_null(apiserver_cel_compile(str_get(&long_one), names, &e));

    /* loops in loops cost what they cost, up to a limit */
    static const char costly[] = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, "
                                 "[1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, "
                                 "[1,2,3,4,5,6,7,8,9,10].all(f, a == a)))))";
    assert_int_equal(test(costly, &result, &e), -1);
    assert_non_null(strstr(e.msg, "steps"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
