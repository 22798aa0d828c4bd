#include "kube/fake.h"
#include "kube/object.h"

#define ITEM(name) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\"}}"
#define LIST(version, next, items)                                                                 \
    "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"         \
    "\"" version "\",\"continue\":\"" next "\"},\"items\":" items "}"
#define EXPIRED "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

struct pages {
    struct str names;
    unsigned n, fail_at; /* page that fails; 0: none */
};

static int on_page(void *context, const json_t *items, struct err *e)
{
    struct pages *p = context;
    size_t i;
    const json_t *item;
    if (++p->n == p->fail_at)
        return err_set(e, ERR_ABORTED, "Enough", "enough");
    json_array_foreach(items, i, item) {
        /* what lists leave out is there */
        assert_string_equal(json_str(item, "kind"), "ConfigMap");
        assert_string_equal(json_str(item, "apiVersion"), "v1");
        str_append(&p->names, kube_name(item));
    }
    str_append_c(&p->names, ';');
    return 0;
}

static void test_pages(void **state)
{
    (void)state;
    static const struct {
        struct fake_step steps[3];
        size_t n;
        enum err_code code; /* OK: version 7 */
        const char *names;
    } table[] = {
        {{{"/configmaps?limit=500 HTTP", 200, .body = LIST("7", "", "[" ITEM("a") "]")}},
         1,
         ERR_OK,
         "a;"},
        {{{NULL, 200, .body = LIST("7", "", "[]")}}, 1, ERR_OK, ";"},
        {{{NULL, 200, .body = LIST("7", "", "null")}}, 1, ERR_OK, ";"},
        {{{NULL, 200, .body = LIST("7", "x/y", "[" ITEM("a") "," ITEM("b") "]")},
          {"?limit=500&continue=x%2Fy HTTP", 200, .body = LIST("7", "", "[" ITEM("c") "]")}},
         2,
         ERR_OK,
         "ab;c;"},
        /* a page that fails is fetched again by itself */
        {{{NULL, 200, .body = LIST("7", "x", "[" ITEM("a") "]")},
          {"continue=x", 500, .body = "x"},
          {"continue=x", 200, .body = LIST("7", "", "[" ITEM("b") "]")}},
         3,
         ERR_OK,
         "a;b;"},
        {{{NULL, 200, .body = LIST("7", "x", "[]")}, {"continue=x", 410, .body = EXPIRED}},
         2,
         ERR_OUT_OF_RANGE,
         ";"},
        {{{NULL, 200, .body = LIST("7", "x", "[]")}, {NULL, 200, .body = LIST("8", "", "[]")}},
         2,
         ERR_OUT_OF_RANGE,
         ";"},
        /* never the same again */
        {{{NULL, 200, .body = LIST("7", "x", "[]")}, {NULL, 200, .body = LIST("7", "x", "[]")}},
         2,
         ERR_UNAVAILABLE,
         ";"},
        {{{NULL, 200, .body = "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"}}"}},
         1,
         ERR_UNAVAILABLE,
         ""},
        {{{NULL, 200, .body = LIST("", "", "[]")}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = LIST("7", "", "{}")}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = LIST("7", "", "[1]")}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = LIST("7", "", "[{\"kind\":\"Pod\"}]")}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = LIST("7", "", "[{\"kind\":1}]")}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = "{\"kind\":\"ConfigMapList\",\"items\":["}}, 1, ERR_UNAVAILABLE, ""},
        {{{NULL, 200, .body = "[]"}}, 1, ERR_UNAVAILABLE, ""},
    };
    struct kube_resource r = kube_resource("v1", "ConfigMap");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(fake_freep) struct fake *f = fake_new(table[i].steps, table[i].n);
        _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
        _cleanup_(str_done) struct str version = {0};
        struct pages p = {0};
        struct err e = {0};
        int status = kube_list_pages(c, &r, NULL, NULL, on_page, &p, &version, &e);
        assert_string_equal(err_code_name(status ? e.code : ERR_OK), err_code_name(table[i].code));
        assert_string_equal(str_get(&version), status ? "" : "7");
        assert_string_equal(str_get(&p.names), table[i].names);
        fake_check(f, table[i].n);
        str_done(&p.names);
    }
}

static void test_query(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {"GET /api/v1/namespaces/d/configmaps?limit=3&labelSelector=a%3Db%2Cc&"
         "fieldSelector=metadata.name%3Dx&resourceVersion=0 HTTP",
         200, .body = LIST("7", "t", "[]")},
        /* a continuation has its version in it */
        {"?limit=3&labelSelector=a%3Db%2Cc&fieldSelector=metadata.name%3Dx&continue=t HTTP", 200,
         .body = LIST("7", "", "[" ITEM("a") "]")},
    };
    struct kube_resource r = kube_resource("v1", "ConfigMap");
    struct kube_query q = {
        .labels = "a=b,c", .fields = "metadata.name=x", .resource_version = "0", .limit = 3};
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, 2);
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    json_auto_t *all = kube_list(c, &r, "d", &q, NULL);
    assert_int_equal(json_array_size(all), 1);
    fake_check(f, 2);
}

/* A list of everything begins again when it expires in between; a page may end it. */
static void test_whole(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {"?limit=500 HTTP", 200, .body = LIST("7", "x", "[" ITEM("a") "]")},
        {"continue=x", 410, .body = EXPIRED},
        {"?limit=500 HTTP", 200, .body = LIST("9", "", "[" ITEM("b") "]")},
        {"?limit=500 HTTP", 200, .body = LIST("9", "y", "[" ITEM("b") "]")},
    };
    struct kube_resource r = kube_resource("v1", "ConfigMap");
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    json_auto_t *all = kube_list(c, &r, NULL, NULL, NULL);
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(kube_name(json_array_get(all, 0)), "b");
    struct pages p = {.fail_at = 1};
    struct err e = {0};
    assert_int_equal(kube_list_pages(c, &r, NULL, NULL, on_page, &p, NULL, &e), -1);
    assert_string_equal(e.reason, "Enough");
    fake_check(f, ARRAY_SIZE(steps));
}

/* A page that does not fit is asked for in halves, and at one object it is over. */
static void test_too_large(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {"?limit=4 HTTP", 200, .body = "{", .filler = 9 << 20},
        {"?limit=2 HTTP", 200, .body = LIST("7", "x", "[" ITEM("a") "]")},
        {"?limit=2&continue=x HTTP", 200, .body = "{", .filler = 9 << 20},
        {"?limit=1&continue=x HTTP", 200, .body = LIST("7", "", "[" ITEM("b") "]")},
        {"?limit=8 HTTP", 200, .body = LIST("7", "x", "[]"),
         .filler = 2 << 20}, /* large, and taken */
        {"?limit=4&continue=x HTTP", 200, .body = LIST("7", "", "[" ITEM("b") "]")},
        {"?limit=1 HTTP", 200, .body = "{", .filler = 9 << 20},
    };
    struct kube_resource r = kube_resource("v1", "ConfigMap");
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    struct err e = {0};
    json_auto_t *all = kube_list(c, &r, NULL, &(struct kube_query){.limit = 4}, &e);
    assert_int_equal(json_array_size(all), 2);
    json_auto_t *large = kube_list(c, &r, NULL, &(struct kube_query){.limit = 8}, &e);
    assert_int_equal(json_array_size(large), 1);
    assert_null(kube_list(c, &r, NULL, &(struct kube_query){.limit = 1}, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    fake_check(f, ARRAY_SIZE(steps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
