/* The client is a seam here: what is sent is kept, and answered as the case says. */
#include "base/str.h"
#include "kube/condition.h"
#include "unit.h"

static json_t *sent;        /* the last patch */
static const char *sent_to; /* subresource; "" */
static unsigned patches;
static enum err_code answer; /* ERR_OK: the object with a new version */

json_t *kube_patch(struct kube_client *c, const struct kube_resource *r, const char *ns,
                   const char *name, enum kube_patch type, const json_t *patch,
                   const struct kube_write *w, struct err *e)
{
    (void)c, (void)r;
    assert_string_equal(ns, "d");
    assert_string_equal(name, "x");
    assert_int_equal(type, KUBE_MERGE_PATCH);
    json_decref(sent);
    sent = json_deep_copy(patch);
    sent_to = w && w->subresource ? w->subresource : "";
    patches++;
    if (answer != ERR_OK) {
        err_set(e, answer, "Test", "refused");
        return NULL;
    }
    return json_pack("{s:{s:s}}", "metadata", "resourceVersion", "2");
}

static const struct kube_resource pods = {"v1", "Pod", "pods", true};

static int setup(void **state)
{
    (void)state;
    patches = 0;
    answer = ERR_OK;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(sent);
    sent = NULL;
    return 0;
}

static json_t *parse(const char *text)
{
    json_t *value = json_parse(text, strlen(text), NULL, NULL);
    assert_non_null(value);
    return value;
}

static void assert_json(const json_t *value, const char *expected)
{
    json_auto_t *wanted = parse(expected);
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    if (!json_equal(value, wanted))
        fail_msg("expected %s, got %s", expected, str_get(&text));
}

static void test_condition_set(void **state)
{
    (void)state;
    static const struct {
        struct kube_condition set;
        bool differs;
        const char *time;
    } steps[] = {
        {{"Ready", "False", "Waiting", "for a", 3}, true, "1970-01-01T00:00:10Z"},
        {{"Ready", "False", "Waiting", "for a", 3}, false, "1970-01-01T00:00:10Z"},
        {{"Ready", "False", "Waiting", "for b", 3}, true, "1970-01-01T00:00:10Z"},
        {{"Ready", "False", "Failed", "for b", 3}, true, "1970-01-01T00:00:10Z"},
        {{"Ready", "False", "Failed", "for b", 4}, true, "1970-01-01T00:00:10Z"},
        {{"Ready", "True", "Done", "", 4}, true, "1970-01-01T00:01:00Z"},
        {{"Ready", "True", "Done", NULL, 4}, false, "1970-01-01T00:01:00Z"},
    };
    json_auto_t *all = parse("[{\"type\":\"Other\",\"status\":\"True\"},\"junk\"]");
    struct clock_manual clock;
    clock_manual_init(&clock, 0);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        clock_manual_advance(&clock, 10 * CLOCK_SECOND);
        assert_int_equal(kube_condition_set(all, &steps[i].set, &clock.clock), steps[i].differs);
        assert_int_equal(json_array_size(all), 3);
        const json_t *it = json_array_get(all, 2);
        assert_string_equal(json_str(it, "lastTransitionTime"), steps[i].time);
        assert_string_equal(json_str(it, "status"), steps[i].set.status);
        assert_string_equal(json_str(it, "reason"), steps[i].set.reason);
        assert_int_equal(json_integer_value(json_object_get(it, "observedGeneration")),
                         steps[i].set.generation);
    }
    assert_json(json_array_get(all, 0), "{\"type\":\"Other\",\"status\":\"True\"}");
}

static void test_condition_get(void **state)
{
    (void)state;
    json_auto_t *object = parse("{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},"
                                "{\"type\":\"B\",\"status\":\"False\"},{\"type\":\"C\"},7]}}");
    assert_true(kube_condition_is_true(object, "A"));
    assert_false(kube_condition_is_true(object, "B"));
    assert_false(kube_condition_is_true(object, "C"));
    assert_false(kube_condition_is_true(object, "D"));
    assert_non_null(kube_condition_get(object, "C"));
    assert_null(kube_condition_get(object, "D"));
    json_auto_t *empty = json_object();
    assert_null(kube_condition_get(empty, "A"));
}

#define META "\"metadata\":{\"name\":\"x\",\"namespace\":\"d\",\"resourceVersion\":\"1\""

static void test_status_write(void **state)
{
    (void)state;
    static const struct {
        const char *was, *status, *patch; /* NULL: nothing is sent */
    } cases[] = {
        {"{" META "}}", "{\"a\":1}", "{\"a\":1}"},
        {"{" META "}}", "{}", NULL},
        {"{" META "},\"status\":{\"a\":1,\"b\":{\"c\":2}}}", "{\"a\":1,\"b\":{\"c\":2}}", NULL},
        {"{" META "},\"status\":{\"a\":1,\"b\":{\"c\":2,\"d\":3}}}", "{\"b\":{\"c\":2,\"d\":4}}",
         "{\"a\":null,\"b\":{\"d\":4}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *object = parse(cases[i].was);
        json_auto_t *status = parse(cases[i].status);
        patches = 0;
        assert_int_equal(kube_status_write(NULL, &pods, &object, status, NULL), 0);
        assert_int_equal(patches, cases[i].patch != NULL);
        assert_string_equal(kube_version(object), cases[i].patch ? "2" : "1");
        if (!cases[i].patch)
            continue;
        assert_string_equal(sent_to, "status");
        assert_string_equal(kube_version(sent), "1"); /* the precondition */
        assert_json(json_object_get(sent, "status"), cases[i].patch);
    }
}

static void test_condition_write(void **state)
{
    (void)state;
    const struct kube_condition ready = {
        .type = "Ready", .status = "True", .reason = "R", .message = "m"};
    json_t *object = parse("{\"metadata\":{\"namespace\":\"d\",\"name\":\"x\","
                           "\"resourceVersion\":\"1\"}}");
    json_auto_t *again = json_deep_copy(object);
    assert_int_equal(kube_condition_write(NULL, &pods, &object, &ready, NULL, NULL), 1);
    assert_string_equal(sent_to, "status");
    json_t *list = json_array();
    json_object_set_new(again, "status", json_pack("{s:o}", "conditions", list));
    kube_condition_set(list, &ready, NULL);
    assert_int_equal(kube_condition_write(NULL, &pods, &again, &ready, NULL, NULL), 0);
    assert_int_equal(patches, 1);
    assert_true(kube_condition_remove(list, "Ready"));
    assert_false(kube_condition_remove(list, "Ready"));
    assert_int_equal(json_array_size(list), 0);
    json_decref(object);
}

static void test_status_conflict(void **state)
{
    (void)state;
    json_auto_t *object = parse("{" META "}}");
    json_auto_t *status = parse("{\"a\":1}");
    struct err e = {0};
    answer = ERR_ABORTED;
    assert_int_equal(kube_status_write(NULL, &pods, &object, status, &e), -1);
    assert_int_equal(e.code, ERR_ABORTED);
    assert_string_equal(kube_version(object), "1");
}

static void test_finalizers(void **state)
{
    (void)state;
    static const struct {
        const char *was;
        bool add;
        const char *list; /* NULL: nothing is sent */
    } cases[] = {
        {"{" META "}}", true, "[\"f\"]"},
        {"{" META "}}", false, NULL},
        {"{" META ",\"finalizers\":[\"a\",\"f\"]}}", true, NULL},
        {"{" META ",\"finalizers\":[\"a\",\"f\",\"b\"]}}", false, "[\"a\",\"b\"]"},
        {"{" META ",\"finalizers\":[\"a\"]}}", true, "[\"a\",\"f\"]"},
        {"{" META ",\"finalizers\":[\"f\"]}}", false, "[]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *object = parse(cases[i].was), *before = json_deep_copy(object);
        patches = 0;
        int status = cases[i].add ? kube_finalizer_add(NULL, &pods, &object, "f", NULL)
                                  : kube_finalizer_remove(NULL, &pods, &object, "f", NULL);
        assert_int_equal(status, 0);
        assert_int_equal(patches, cases[i].list != NULL);
        if (!cases[i].list) {
            assert_true(json_equal(object, before));
            continue;
        }
        assert_string_equal(sent_to, "");
        assert_string_equal(kube_version(sent), "1");
        assert_json(json_at(sent, "metadata", "finalizers"), cases[i].list);
        assert_string_equal(kube_version(object), "2");
    }
}

static void test_finalizer_of_what_is_gone(void **state)
{
    (void)state;
    struct err e = {0};
    json_auto_t *object = parse("{" META ",\"finalizers\":[\"f\"]}}");
    answer = ERR_NOT_FOUND;
    assert_int_equal(kube_finalizer_remove(NULL, &pods, &object, "f", &e), 0);
    assert_int_equal(kube_finalizer_add(NULL, &pods, &object, "g", &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    answer = ERR_ABORTED;
    assert_int_equal(kube_finalizer_remove(NULL, &pods, &object, "f", &e), -1);
    assert_int_equal(e.code, ERR_ABORTED);
    assert_true(kube_finalizer_has(object, "f"));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_condition_set),
        CASE(test_condition_get),
        CASE(test_status_write),
        CASE(test_status_conflict),
        CASE(test_condition_write),
        CASE(test_finalizers),
        CASE(test_finalizer_of_what_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
