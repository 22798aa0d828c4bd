/*
 * Variables whose types are known: what the check finds, and what JSON becomes.
 */
#include "k8s/cel/cel.h"
#include "unit.h"

static const struct cel_field meta_fields[] = {{"name", "name", &cel_decls[CEL_STRING]}};
static const struct cel_decl meta = {CEL_MAP, .object = true, .fields = meta_fields, .n_fields = 1};
static const struct cel_decl words = {CEL_LIST, .element = &cel_decls[CEL_STRING],
                                      .list = CEL_LIST_SET};
static const struct cel_decl labels = {CEL_MAP, .key = &cel_decls[CEL_STRING],
                                       .element = &cel_decls[CEL_STRING]};
static const struct cel_field port_fields[] = {{"__if__", "if", &cel_decls[CEL_INT]},
                                               {"name", "name", &cel_decls[CEL_STRING]}};
static const struct cel_decl port = {CEL_MAP, .object = true, .fields = port_fields, .n_fields = 2};
static const char *const port_keys[] = {"name", NULL};
static const struct cel_decl ports = {CEL_LIST, .element = &port, .list = CEL_LIST_MAP,
                                      .list_keys = port_keys};
static const struct cel_decl day = {CEL_TIMESTAMP, .date = true};
static const struct cel_field fields[] = {
    {"a__dash__b", "a-b", &cel_decls[CEL_INT]},
    {"data", "data", &cel_decls[CEL_BYTES]},
    {"day", "day", &day},
    {"either", "either", &cel_decls[CEL_DYN]},
    {"labels", "labels", &labels},
    {"metadata", "metadata", &meta},
    {"number", "number", &cel_decls[CEL_DOUBLE]},
    {"ports", "ports", &ports},
    {"span", "span", &cel_decls[CEL_DURATION]},
    {"when", "when", &cel_decls[CEL_TIMESTAMP]},
    {"words", "words", &words},
};
static const struct cel_decl self = {CEL_MAP, .object = true, .fields = fields,
                                     .n_fields = ARRAY_SIZE(fields)};
static const struct cel_decl maybe = {CEL_OPTIONAL, .element = &self};
static const struct cel_variable variables[] = {
    {"self", &self}, {"oldSelf", &maybe}, {"authorizer", &cel_decls[CEL_AUTHORIZER]}, {0}};
static const char object[] =
    "{\"a-b\":7,\"data\":\"aGVsbG8=\",\"day\":\"2026-01-02\",\"either\":\"50%\",\"labels\":{\"x\":"
    "\"y\"},\"metadata\":{\"name\":\"n\",\"uid\":\"hidden\"},\"number\":3,\"ports\":[{\"name\":"
    "\"a\","
    "\"if\":1},{\"name\":\"b\",\"if\":2}],\"span\":\"90s\",\"when\":\"2026-01-02T03:04:05Z\","
    "\"words\":[\"p\",\"q\"]}";
static const char old[] =
    "{\"a-b\":6,\"ports\":[{\"name\":\"b\",\"if\":2},{\"name\":\"a\",\"if\":1}"
    "],\"words\":[\"q\",\"p\"]}";

static bool allowed(const void *context, const struct cel_access *access, struct str *reason)
{
    (void)context;
    str_append(reason, "said so");
    if (access->path)
        return str_eq(access->path, "/healthz") && str_eq(access->verb, "get");
    return str_eq(access->group, "apps") && str_eq(access->resource, "deployments") &&
           str_eq(access->namespace, "a") && str_eq(access->verb, "delete") &&
           !(access->account_name && str_eq(access->account_name, "nobody"));
}

static int test(const char *text, const char *before, bool *ret, struct err *e)
{
    static const struct cel_access own = {
        .group = "apps", .resource = "deployments", .namespace = "a", .verb = ""};
    static const struct cel_authorizer authorizer = {allowed, NULL, &own};
    _cleanup_(cel_program_freep) struct cel_program *p = cel_compile(text, variables, CEL_BOOL, e);
    if (!p)
        return -1;
    json_auto_t *value = json_parse(object, strlen(object), NULL, NULL);
    json_auto_t *was = before ? json_parse(before, strlen(before), NULL, NULL) : NULL;
    return cel_test(p,
                    (const struct cel_input[]){{.json = value},
                                               {.json = was, .optional = true},
                                               {.authorizer = &authorizer}},
                    NULL, ret, e);
}

static void test_true(void **state)
{
    (void)state;
    static const char *const table[] = {
        "self.a__dash__b == 7",
        "string(self.data) == 'hello'",
        "self.day == timestamp('2026-01-02T00:00:00Z')",
        "type(self.either) == string && self.either.endsWith('%')",
        "type(self.either) == int ? self.either > 1 : self.either != ''",
        "self.labels.x == 'y' && self.labels['x'] == 'y' && 'x' in self.labels && "
        "!has(self.labels.z)",
        "self.metadata.name == 'n'",
        "self.number == 3.0 && self.number > 2 && type(self.number) == double",
        "self.ports.all(p, p.__if__ > 0)",
        "self.ports.map(p, p.name) == ['a', 'b']",
        "self.span == duration('1m30s')",
        "self.when.getFullYear() == 2026",
        "!oldSelf.metadata.hasValue() || true",
        "oldSelf.hasValue() && oldSelf.value().a__dash__b < self.a__dash__b",
        "self.a__dash__b >= oldSelf.?a__dash__b.orValue(100)",
        "self.ports == oldSelf.value().ports", /* whatever their order */
        "self.words == oldSelf.value().words",
        "self.words == ['q', 'p'] && self.words != ['q', 'r']",
        "self.words + ['p', 'z'] == ['p', 'q', 'z']",
        "(self.ports + [self.ports[0]]).size() == 2",
        "authorizer.group('apps').resource('deployments').namespace('a').check('delete').allowed()",
        "!authorizer.group('').resource('pods').namespace('a').name('x').check('get').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "authorizer.path('/healthz').check('get').reason() == 'said so'",
        "authorizer.requestResource.check('delete').allowed()",
        "!authorizer.serviceAccount('a', "
        "'nobody').group('apps').resource('deployments').namespace('a').check('delete').allowed()",
        "!authorizer.requestResource.check('x').errored()",
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        bool result;
        if (test(table[i], old, &result, &e) < 0)
            fail_msg("%s: %s", table[i], e.msg);
        if (!result)
            fail_msg("%s is false", table[i]);
    }
    bool result;
    struct err e = {0};
    assert_int_equal(
        test("!oldSelf.hasValue() && oldSelf.a__dash__b.orValue(1) == 1", NULL, &result, &e), 0);
    assert_true(result);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"self.replicas > 1", "ERROR: <input>:1:5: undefined field 'replicas'"},
        {"self.metadata.uid == ''", "ERROR: <input>:1:14: undefined field 'uid'"},
        {"has(self.nothing)", "ERROR: <input>:1:9: undefined field 'nothing'"},
        {"self.?nothing.hasValue()", "ERROR: <input>:1:5: undefined field 'nothing'"},
        {"oldSelf.nothing.hasValue()", "ERROR: <input>:1:8: undefined field 'nothing'"},
        {"self.ports[0].nme == ''", "ERROR: <input>:1:14: undefined field 'nme'"},
        {"self.ports.all(p, p.nme == '')", "ERROR: <input>:1:20: undefined field 'nme'"},
        {"self.a__dash__b == 'x'",
         "ERROR: <input>:1:17: found no matching overload for '_==_' applied to '(int, string)'"},
        {"self.number == 1",
         "ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(double, int)'"},
        {"self['a'] == 1",
         "ERROR: <input>:1:5: found no matching overload for '_[_]' applied to '(object, string)'"},
        {"'a' in self",
         "ERROR: <input>:1:5: found no matching overload for '@in' applied to '(string, object)'"},
        {"self.all(k, true)",
         "ERROR: <input>:1:1: expression of type 'object' cannot be range of a "
         "comprehension (must be list, map, or dynamic)"},
        {"self.labels.exists(k, k == 1)",
         "ERROR: <input>:1:25: found no matching overload for '_==_' applied to '(string, int)'"},
        {"self.words[0] > 1",
         "ERROR: <input>:1:15: found no matching overload for '_>_' applied to '(string, int)'"},
        {"self.words.map(w, size(w)) == ['a']",
         "ERROR: <input>:1:28: found no matching overload for "
         "'_==_' applied to '(list(int), list(string))'"},
        {"self.data == 'hello'",
         "ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(bytes, string)'"},
        {"self.when > duration('1s')", "ERROR: <input>:1:11: found no matching overload for '_>_' "
                                       "applied to '(timestamp, duration)'"},
        {"authorizer.check('get').allowed()",
         "ERROR: <input>:1:17: found no matching overload for 'check' applied to "
         "'kubernetes.authorization.Authorizer.(string)'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        struct cel_program *p = cel_compile(table[i].text, variables, CEL_BOOL, &e);
        if (p)
            fail_msg("%s is taken", table[i].text);
        e.msg[strcspn(e.msg, "\n")] = '\0';
        if (!str_eq(e.msg, table[i].message))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

static void test_uses(void **state)
{
    (void)state;
    struct err e = {0};
    _cleanup_(cel_program_freep) struct cel_program *p =
        cel_compile("self.number > 1.0", variables, CEL_BOOL, &e);
    _cleanup_(cel_program_freep) struct cel_program *q =
        cel_compile("[1].all(self, self > 0) && oldSelf.hasValue()", variables, CEL_BOOL, &e);
    assert_true(cel_uses(p, 0) && !cel_uses(p, 1));
    assert_true(!cel_uses(q, 0) && cel_uses(q, 1));
}

static void test_escape(void **state)
{
    (void)state;
    static const struct {
        const char *key, *name;
    } table[] = {
        {"plain", "plain"},
        {"a-b", "a__dash__b"},
        {"a.b/c", "a__dot__b__slash__c"},
        {"a__b", "a__underscores__b"},
        {"namespace", "__namespace__"},
        {"_x", "_x"},
        {"$ref", NULL},
        {"1st", NULL},
        {"", NULL},
        {"a b", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(str_done) struct str name = {0};
        bool can = cel_escape(table[i].key, &name);
        assert_int_equal(can, table[i].name != NULL);
        if (can)
            assert_string_equal(str_get(&name), table[i].name);
    }
}

static void test_text(void **state)
{
    (void)state;
    struct err e = {0};
    _cleanup_(cel_program_freep) struct cel_program *p = cel_compile(
        "'%s has %d'.format([self.metadata.name, self.a__dash__b])", variables, CEL_STRING, &e);
    json_auto_t *value = json_parse(object, strlen(object), NULL, NULL);
    _cleanup_(str_done) struct str out = {0};
    assert_int_equal(cel_text(p, (const struct cel_input[3]){{.json = value}}, NULL, &out, &e), 0);
    assert_string_equal(str_get(&out), "n has 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true),   cmocka_unit_test(test_refused), cmocka_unit_test(test_uses),
        cmocka_unit_test(test_escape), cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
