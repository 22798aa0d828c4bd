/*
 * Tokens of all sorts, against a store and a clock that is moved.
 */
#include <stdio.h>

#include "base/base64.h"
#include "base/file.h"
#include "jsontest.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/jwt.h"
#include "k8s/apiserver/serve_impl.h"

static char *folder;
static struct clock_manual now;
static struct apiserver server;

static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-authn-XXXXXX";
    folder = mem_strdup(mkdtemp(template));
    _cleanup_free_ char *path = mem_printf("%s/db", folder), *pki = mem_printf("%s/pki", folder);
    clock_manual_init(&now, 1767323045 * CLOCK_SECOND); /* 2026-01-02T03:04:05Z */
    server = (struct apiserver){.registry.clock = &now.clock};
    struct apiserver_certificates_options o = {.folder = pki, .clock = &now.clock};
    return apiserver_store_open(path, NULL, &server.registry.store, NULL) < 0 ||
                   apiserver_certificates_open(&o, &server.certificates, NULL) < 0
               ? -1
               : 0;
}

static int end(void **state)
{
    (void)state;
    apiserver_jwt_cache_done(&server.tokens);
    apiserver_certificates_close(server.certificates);
    apiserver_store_close(server.registry.store);
    int status = file_remove_tree(folder, NULL);
    free(folder);
    return status;
}

static struct apiserver_request request_for(const char *kind, const char *namespace)
{
    return (struct apiserver_request){.kind = api_kind_find("v1", kind, NULL),
                                      .namespace = namespace};
}

/* Creates an object of the core group from its text; returns it as stored. */
static json_t *create(const char *kind, const char *namespace, const char *text)
{
    struct apiserver_request r = request_for(kind, namespace);
    struct api_report report = {0};
    struct err e = {0};
    json_auto_t *object = parse_quoted(text);
    json_object_set_new(object, "apiVersion", json_string("v1"));
    json_object_set_new(object, "kind", json_string(kind));
    struct apiserver_object *o = apiserver_create(&server.registry, &r, object, &report, &e);
    api_report_done(&report);
    if (!o)
        fail_msg("%s: %s", text, e.msg);
    json_t *stored = parse_json(o->bytes);
    apiserver_object_unref(o);
    return stored;
}

static void remove_object(const char *kind, const char *namespace, const char *name)
{
    struct apiserver_request r = request_for(kind, namespace);
    bool gone;
    r.name = name;
    struct apiserver_object *o = apiserver_delete(&server.registry, &r, &gone, NULL);
    assert_non_null(o);
    apiserver_object_unref(o);
}

/* "name uid-or-- group,group": who has this token; "-" for nobody. */
static void check(const char *token, const char *expected)
{
    _cleanup_(str_done) struct str got = {0};
    struct err e = {0};
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *user =
        apiserver_authenticate_token(&server, token, NULL, NULL, &e);
    if (!user) {
        assert_int_equal(e.code, ERR_UNAUTHENTICATED);
        assert_true(!*token || !strstr(e.msg, token));
        str_append(&got, "-");
    } else {
        str_appendf(&got, "%s ", user->name);
        for (const char *const *group = user->groups; *group; group++)
            str_appendf(&got, "%s%s", *group, group[1] ? "," : "");
    }
    assert_string_equal(str_get(&got), expected);
}

static char *token_for(const json_t *account, const char *kind, const json_t *bound,
                       int64_t seconds)
{
    json_auto_t *audiences = json_pack("[s]", APISERVER_AUDIENCE);
    struct apiserver_account_token t = {.account = account,
                                        .bound_kind = kind,
                                        .bound = bound,
                                        .audiences = audiences,
                                        .seconds = seconds};
    struct str token = {0};
    int64_t until;
    assert_int_equal(apiserver_account_token(&server, &t, &token, &until, NULL), 0);
    assert_int_equal(until, clock_real_ns(&now.clock) / CLOCK_SECOND + seconds);
    return str_take(&token);
}

static const char builder[] =
    "system:serviceaccount:ns:builder "
    "system:serviceaccounts,system:serviceaccounts:ns,system:authenticated";

static void test_account(void **state)
{
    (void)state;
    json_auto_t *account = create("ServiceAccount", "ns", "{'metadata': {'name': 'builder'}}");
    _cleanup_free_ char *token = token_for(account, NULL, NULL, 600);
    check(token, builder);
    clock_manual_advance(&now, 599 * CLOCK_SECOND);
    check(token, builder);
    clock_manual_advance(&now, CLOCK_SECOND);
    check(token, "-");
    /* A clock that is set back a day does not make it one of the future; it is not good at any time. */
    const int64_t day = 24 * 3600 * CLOCK_SECOND,
                  made = clock_real_ns(&now.clock) - 600 * CLOCK_SECOND;
    clock_manual_set_real(&now, made - day);
    check(token, builder);
    clock_manual_set_real(&now, made - 3 * day);
    check(token, "-");
    clock_manual_set_real(&now, made);
    check(token, builder);
    /* Deleted, and another of the same name. */
    remove_object("ServiceAccount", "ns", "builder");
    check(token, "-");
    json_auto_t *next = create("ServiceAccount", "ns", "{'metadata': {'name': 'builder'}}");
    check(token, "-");
    _cleanup_free_ char *again = token_for(next, NULL, NULL, 600);
    check(again, builder);
}

static void test_bound(void **state)
{
    static const struct {
        const char *kind, *namespace, *text, *name;
    } table[] = {
        {"Pod", "ns",
         "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}", "p"},
        {"Secret", "ns", "{'metadata': {'name': 's'}}", "s"},
        {"Node", NULL, "{'metadata': {'name': 'n'}}", "n"},
    };
    (void)state;
    json_auto_t *account = create("ServiceAccount", "ns", "{'metadata': {'name': 'builder'}}");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        json_auto_t *bound = create(table[i].kind, table[i].namespace, table[i].text);
        _cleanup_free_ char *token = token_for(account, table[i].kind, bound, 600);
        check(token, builder);
        remove_object(table[i].kind, table[i].namespace, table[i].name);
        check(token, "-");
        json_decref(create(table[i].kind, table[i].namespace, table[i].text)); /* another */
        check(token, "-");
    }
}

/* On its way out it vouches for a minute more. */
static void test_deleted_slowly(void **state)
{
    (void)state;
    json_auto_t *account = create("ServiceAccount", "ns",
                                  "{'metadata': {'name': 'builder', 'finalizers': ['a.test/b']}}");
    _cleanup_free_ char *token = token_for(account, NULL, NULL, 600);
    remove_object("ServiceAccount", "ns", "builder");
    check(token, builder);
    clock_manual_advance(&now, 60 * CLOCK_SECOND);
    check(token, "-");
}

static void test_audiences(void **state)
{
    (void)state;
    json_auto_t *account = create("ServiceAccount", "ns", "{'metadata': {'name': 'builder'}}");
    json_auto_t *vault = parse_json("[\"vault\", \"other\"]"),
                *wanted = parse_json("[\"x\", \"vault\"]");
    struct apiserver_account_token t = {.account = account, .audiences = vault, .seconds = 600};
    _cleanup_(str_done) struct str token = {0};
    int64_t until;
    assert_int_equal(apiserver_account_token(&server, &t, &token, &until, NULL), 0);
    check(token.p, "-"); /* not for the API */
    json_auto_t *audiences = NULL, *expected = parse_json("[\"vault\"]");
    _cleanup_(apiserver_user_unrefp) const struct apiserver_user *user =
        apiserver_authenticate_token(&server, token.p, wanted, &audiences, NULL);
    assert_non_null(user);
    assert_json(audiences, expected, "audiences");
}

/* Signed with the right key, and yet no token of an account. */
static void test_claims(void **state)
{
    (void)state;
    json_auto_t *account = create("ServiceAccount", "ns", "{'metadata': {'name': 'builder'}}");
    const char *uid = json_str(json_object_get(account, "metadata"), "uid");
    static const struct {
        const char *path, *key, *value;
    } changes[] = {
        {"", "iss", "\"https://elsewhere\""},
        {"", "sub", "\"system:serviceaccount:ns:other\""},
        {"", "exp", "\"2030\""},
        {"", "exp", "1.8e9"},
        {"", "exp", "null"},
        {"", "nbf", "null"},
        {"", "aud", "\"" APISERVER_AUDIENCE "\""},
        {"", "aud", "null"},
        {"", "kubernetes.io", "null"},
        {"k", "namespace", "\"other\""},
        {"k", "serviceaccount", "{\"name\": \"builder\"}"},
        {"k", "serviceaccount", "{\"name\": \"builder\", \"uid\": \"another\"}"},
        {"k", "pod", "{}"},
    };
    for (size_t i = 0; i <= ARRAY_SIZE(changes); i++) {
        json_auto_t *claims =
            json_pack("{s:[s],s:i,s:i,s:s,s:s,s:{s:s,s:{s:s,s:s}}}", "aud", APISERVER_AUDIENCE,
                      "exp", 1767323100, "nbf", 1767323000, "iss", APISERVER_AUDIENCE, "sub",
                      "system:serviceaccount:ns:builder", "kubernetes.io", "namespace", "ns",
                      "serviceaccount", "name", "builder", "uid", uid);
        if (i < ARRAY_SIZE(changes)) {
            json_t *at = *changes[i].path ? json_object_get(claims, "kubernetes.io") : claims;
            json_object_set_new(at, changes[i].key,
                                json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
        }
        _cleanup_(str_done) struct str token = {0};
        apiserver_jwt_sign(apiserver_certificates_token_key(server.certificates), claims, &token,
                           NULL);
        check(token.p, i < ARRAY_SIZE(changes) ? "-" : builder);
    }
}

static void test_bootstrap_parse(void **state)
{
    static const char *const bad[] = {
        "",
        "abcdef",
        "abcdef.",
        "abcdef.0123456789abcde",   /* short */
        "abcdef.0123456789abcdef0", /* long */
        "abcde.00123456789abcdef",
        "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcdeF",
        "abcdef-0123456789abcdef",
        "abc/ef.0123456789abcdef",
        "abcdef.0123456789abcd\xc3\xa4",
        " bcdef.0123456789abcdef",
    };
    char id[7], secret[17];
    (void)state;
    assert_true(apiserver_bootstrap_parse("abcdef.0123456789abcdef", id, secret));
    assert_string_equal(id, "abcdef");
    assert_string_equal(secret, "0123456789abcdef");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (apiserver_bootstrap_parse(bad[i], id, secret))
            fail_msg("'%s' was taken", bad[i]);
    }
}

/* A Secret of plain texts, {key: text}. */
static void create_secret(const char *name, const char *type, const char *texts)
{
    json_auto_t *object = json_pack("{s:{s:s},s:s}", "metadata", "name", name, "type", type);
    json_auto_t *values = parse_quoted(texts);
    json_t *data = json_object(), *value;
    const char *key;
    json_object_foreach(values, key, value) {
        _cleanup_(str_done) struct str text = {0};
        base64_format(json_string_value(value), json_string_length(value), BASE64_STD, &text);
        json_object_set_new(data, key, json_string(str_get(&text)));
    }
    json_object_set_new(object, "data", data);
    _cleanup_(str_done) struct str out = {0};
    json_format(object, &out);
    json_decref(create("Secret", "kube-system", out.p));
}

#define BOOTSTRAP "bootstrap.kubernetes.io/token"
#define GOOD      "'token-id': 'abcdef', 'token-secret': '0123456789abcdef'"
#define USABLE    "'usage-bootstrap-authentication': 'true'"

static void test_bootstrap(void **state)
{
    static const struct {
        const char *type, *texts, *expected;
    } table[] = {
        {BOOTSTRAP, "{" GOOD "," USABLE "}",
         "system:bootstrap:abcdef system:bootstrappers,system:authenticated"},
        {BOOTSTRAP,
         "{" GOOD "," USABLE
         ", 'auth-extra-groups': 'system:bootstrappers:a,system:bootstrappers:b:c'}",
         "system:bootstrap:abcdef "
         "system:bootstrappers,system:bootstrappers:a,system:bootstrappers:b:c,"
         "system:authenticated"},
        {BOOTSTRAP, "{" GOOD "," USABLE ", 'expiration': '2026-01-02T03:04:06Z'}",
         "system:bootstrap:abcdef system:bootstrappers,system:authenticated"},
        {BOOTSTRAP, "{" GOOD "," USABLE ", 'expiration': '2026-01-02T03:04:05Z'}", "-"},
        {BOOTSTRAP, "{" GOOD "," USABLE ", 'expiration': 'tomorrow'}", "-"},
        {BOOTSTRAP, "{" GOOD "," USABLE ", 'auth-extra-groups': 'system:masters'}", "-"},
        {BOOTSTRAP, "{" GOOD "," USABLE ", 'auth-extra-groups': 'system:bootstrappers:A'}", "-"},
        {BOOTSTRAP, "{" GOOD "}", "-"},
        {BOOTSTRAP, "{" GOOD ", 'usage-bootstrap-authentication': 'false'}", "-"},
        {"Opaque", "{" GOOD "," USABLE "}", "-"},
        {BOOTSTRAP, "{'token-id': 'abcdef', " USABLE "}", "-"},
        {BOOTSTRAP, "{'token-id': 'abcdef', 'token-secret': '0123456789abcdee', " USABLE "}", "-"},
        {BOOTSTRAP, "{'token-id': 'abcdeg', 'token-secret': '0123456789abcdef', " USABLE "}", "-"},
    };
    (void)state;
    check("abcdef.0123456789abcdef", "-");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        create_secret("bootstrap-token-abcdef", table[i].type, table[i].texts);
        check("abcdef.0123456789abcdef", table[i].expected);
        check("abcdef.0123456789abcdeX", "-");
        remove_object("Secret", "kube-system", "bootstrap-token-abcdef");
    }
    check("abcdef.0123456789abcdef", "-");
}

static struct apiserver_token_file *token_file(const char *text, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/tokens.csv", folder);
    struct apiserver_token_file *f = NULL;
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
    return apiserver_token_file_open(path, &f, e) < 0 ? NULL : f;
}

static void test_token_file(void **state)
{
    (void)state;
    struct err e = {0};
    server.token_file = token_file("# comment\n\n"
                                   "first,alice,1\r\n"
                                   "\"sec\"\"ond\",bob,2,\"one, two\"\n"
                                   "third,carol,,single",
                                   &e);
    assert_non_null(server.token_file);
    check("first", "alice system:authenticated");
    check("sec\"ond", "bob one,two,system:authenticated");
    check("third", "carol single,system:authenticated");
    check("firs", "-");
    check("first ", "-");
    check("# comment", "-");
    check("", "-");
    apiserver_token_file_free(server.token_file);
    server.token_file = NULL;
    check("first", "-");

    static const char *const bad[] = {"secret\n", "secret,user\n", ",user,1\n", "secret,,1\n",
                                      "\"secret,user,1\n"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_free_ char *text = mem_printf("good,user,1\n%s", bad[i]);
        assert_null(token_file(text, &e));
        assert_string_equal(e.reason, "InvalidTokenFile");
        assert_non_null(strstr(e.msg, "line 2"));
        assert_null(strstr(e.msg, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_account, begin, end),
        cmocka_unit_test_setup_teardown(test_bound, begin, end),
        cmocka_unit_test_setup_teardown(test_deleted_slowly, begin, end),
        cmocka_unit_test_setup_teardown(test_audiences, begin, end),
        cmocka_unit_test_setup_teardown(test_claims, begin, end),
        cmocka_unit_test(test_bootstrap_parse),
        cmocka_unit_test_setup_teardown(test_bootstrap, begin, end),
        cmocka_unit_test_setup_teardown(test_token_file, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
