#include "base/file.h"
#include "base/log.h"
#include "kube/client.h"
#include "kube/fake.h"
#include "metrics/metrics.h"

enum { MILLISECOND = 1000000 };

#define OBJECT                                                                                     \
    "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"namespace\":"    \
    "\"d\"}}"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":" #code            \
    ",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

static struct kube_resource config_maps(void)
{
    return kube_resource("v1", "ConfigMap");
}

static void test_resources(void **state)
{
    (void)state;
    struct kube_resource r = kube_resource("apps/v1", "StatefulSet");
    assert_string_equal(r.plural, "statefulsets");
    assert_true(r.namespaced);
    r = kube_resource("v1", "Node");
    assert_string_equal(r.plural, "nodes");
    assert_false(r.namespaced);
}

/* Calls f by name with the object. */
static json_t *call(struct kube_client *c, const char *what, struct err *e)
{
    struct kube_resource r = config_maps(), nodes = kube_resource("v1", "Node"),
                         leases = kube_resource("coordination.k8s.io/v1", "Lease");
    json_auto_t *o = json_parse(OBJECT, strlen(OBJECT), NULL, e);
    struct kube_write status = {.subresource = "status"}, dry = {.dry_run = true},
                      force = {.force = true};
    if (str_eq(what, "get"))
        return kube_get(c, &r, "d", "n", e);
    if (str_eq(what, "get node"))
        return kube_get(c, &nodes, NULL, "n", e);
    if (str_eq(what, "get lease"))
        return kube_get(c, &leases, "d", "a/b ?%\xc3\xa9", e);
    if (str_eq(what, "get .."))
        return kube_get(c, &r, "d", "..", e);
    if (str_eq(what, "get nothing"))
        return kube_get(c, &r, "d", "", e);
    if (str_eq(what, "get nowhere"))
        return kube_get(c, &r, NULL, "n", e);
    if (str_eq(what, "create"))
        return kube_create(c, &r, o, NULL, e);
    if (str_eq(what, "create dry"))
        return kube_create(c, &r, o, &dry, e);
    if (str_eq(what, "update"))
        return kube_update(c, &r, o, NULL, e);
    if (str_eq(what, "update status"))
        return kube_update(c, &r, o, &status, e);
    if (str_eq(what, "patch"))
        return kube_patch(c, &r, "d", "n", KUBE_MERGE_PATCH, o, &status, e);
    if (str_eq(what, "json patch"))
        return kube_patch(c, &r, "d", "n", KUBE_JSON_PATCH, o, NULL, e);
    if (str_eq(what, "strategic"))
        return kube_patch(c, &r, "d", "n", KUBE_STRATEGIC_PATCH, o, NULL, e);
    if (str_eq(what, "apply"))
        return kube_patch(c, &r, "d", "n", KUBE_APPLY, o, &force, e);
    struct kube_delete options = {.uid = "u",
                                  .resource_version = "7",
                                  .propagation = "Orphan",
                                  .grace_seconds = 3,
                                  .dry_run = true};
    bool plain = str_eq(what, "delete");
    return kube_delete(c, &r, "d", "n", plain ? NULL : &options, e) < 0 ? NULL : json_true();
}

#define MANAGER "fieldManager=test%20manager"

static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expect, *also;
    } table[] = {
        {"get", "GET /api/v1/namespaces/d/configmaps/n HTTP", "ccept: application/json"},
        {"get node", "GET /api/v1/nodes/n HTTP", "ser-Agent: test manager/"},
        {"get lease",
         "GET /apis/coordination.k8s.io/v1/namespaces/d/leases/a%2Fb%20%3F%25%C3%A9 HTTP", ""},
        {"create", "POST /api/v1/namespaces/d/configmaps?" MANAGER " HTTP", OBJECT},
        {"create dry", "POST /api/v1/namespaces/d/configmaps?" MANAGER "&dryRun=All HTTP",
         "ontent-Type: application/json\r\n"},
        {"update", "PUT /api/v1/namespaces/d/configmaps/n?" MANAGER " HTTP", OBJECT},
        {"update status", "PUT /api/v1/namespaces/d/configmaps/n/status?" MANAGER " HTTP", OBJECT},
        {"patch", "PATCH /api/v1/namespaces/d/configmaps/n/status?" MANAGER " HTTP",
         "ontent-Type: application/merge-patch+json\r\n"},
        {"json patch", "PATCH /api/v1/namespaces/d/configmaps/n?" MANAGER " HTTP",
         "ontent-Type: application/json-patch+json\r\n"},
        {"strategic", "PATCH /api/v1/namespaces/d/configmaps/n?" MANAGER " HTTP",
         "ontent-Type: application/strategic-merge-patch+json\r\n"},
        {"apply", "PATCH /api/v1/namespaces/d/configmaps/n?" MANAGER "&force=true HTTP",
         "ontent-Type: application/apply-patch+yaml\r\n"},
        {"delete", "DELETE /api/v1/namespaces/d/configmaps/n HTTP",
         "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}"},
        {"delete all", "DELETE /api/v1/namespaces/d/configmaps/n HTTP",
         "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},"
         "\"propagationPolicy\":\"Orphan\",\"gracePeriodSeconds\":3,\"dryRun\":[\"All\"]}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct fake_step steps[] = {{table[i].expect, 200, .body = OBJECT},
                                          {table[i].also, 200, .body = OBJECT}};
        _cleanup_(fake_freep) struct fake *f = fake_new(steps, 2);
        _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
        for (int twice = 0; twice < 2; twice++) {
            struct err e = {0};
            json_auto_t *got = call(c, table[i].what, &e);
            if (!got)
                fail_msg("%s: %s", table[i].what, e.msg);
            assert_true(json_is_true(got) || json_str(got, "kind"));
        }
        fake_check(f, 2);
    }
}

static void test_bad_names(void **state)
{
    (void)state;
    static const char *const table[] = {"get ..", "get nothing", "get nowhere"};
    _cleanup_(fake_freep) struct fake *f = fake_new(NULL, 0);
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_null(call(c, table[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    fake_check(f, 0);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        const char *body;
        enum err_code code;
        const char *reason, *message;
    } table[] = {
        {404, STATUS(404, "NotFound", "not there"), ERR_NOT_FOUND, "NotFound", "not there"},
        {409, STATUS(409, "AlreadyExists", "x"), ERR_ALREADY_EXISTS, "AlreadyExists", "x"},
        {409, STATUS(409, "Conflict", "x"), ERR_ABORTED, "Conflict", "x"},
        {410, STATUS(410, "Expired", "x"), ERR_OUT_OF_RANGE, "Expired", "x"},
        {410, STATUS(410, "Gone", "x"), ERR_OUT_OF_RANGE, "Gone", "x"},
        {400, STATUS(400, "BadRequest", "x"), ERR_INVALID_ARGUMENT, "BadRequest", "x"},
        {415, STATUS(415, "UnsupportedMediaType", "x"), ERR_INVALID_ARGUMENT,
         "UnsupportedMediaType", "x"},
        {422, STATUS(422, "Invalid", "x"), ERR_INVALID_ARGUMENT, "Invalid", "x"},
        {401, STATUS(401, "Unauthorized", "x"), ERR_UNAUTHENTICATED, "Unauthorized", "x"},
        {403, STATUS(403, "Forbidden", "x"), ERR_PERMISSION_DENIED, "Forbidden", "x"},
        {405, STATUS(405, "MethodNotAllowed", "x"), ERR_FAILED_PRECONDITION, "MethodNotAllowed",
         "x"},
        {412, "", ERR_FAILED_PRECONDITION, "Unknown", "the server answered 412: "},
        {500, STATUS(500, "InternalError", "x"), ERR_UNAVAILABLE, "InternalError", "x"},
        {503, "down", ERR_UNAVAILABLE, "Unknown", "the server answered 503: down"},
        {504, STATUS(504, "Timeout", "x"), ERR_DEADLINE_EXCEEDED, "Timeout", "x"},
        {302, "moved", ERR_INVALID_ARGUMENT, "Unknown", "the server answered 302: moved"},
        {418, STATUS(418, "Teapot", "x"), ERR_INVALID_ARGUMENT, "Unknown", "x"},
        /* what a terminal would act on does not get to one */
        {404, STATUS(404, "NotFound", "a\\u001b[2Jb"), ERR_NOT_FOUND, "NotFound", "a?[2Jb"},
        {404, "a\x1b[2Jb\xff", ERR_NOT_FOUND, "Unknown", "the server answered 404: a?[2Jb?"},
        {404, "{\"kind\":\"Status\",\"reason\":1,\"message\":[]}", ERR_NOT_FOUND, "Unknown",
         "the server answered 404 Unknown"},
        {200, "not JSON", ERR_UNAVAILABLE, "InvalidAnswer", NULL},
        {200, "[1]", ERR_UNAVAILABLE, "InvalidAnswer", NULL},
        {200, "", ERR_UNAVAILABLE, "InvalidAnswer", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct fake_step steps[] = {{NULL, table[i].status, .body = table[i].body}};
        _cleanup_(fake_freep) struct fake *f = fake_new(steps, 1);
        _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
        struct err e = {0};
        assert_null(call(c, "update", &e)); /* a write: nothing of this is tried again */
        assert_string_equal(err_code_name(e.code), err_code_name(table[i].code));
        assert_string_equal(e.reason, table[i].reason);
        if (table[i].message)
            assert_string_equal(e.msg, table[i].message);
        fake_check(f, 1);
    }
}

/* What is tried again and what is not. */
static void test_again(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct fake_step first;
        bool again;
    } table[] = {
        {"get", {NULL, 500, .body = "x"}, true},
        {"get", {NULL, 502, .body = "x"}, true},
        {"get", {NULL, 503, .body = "x"}, true},
        {"get", {NULL, 504, .body = "x"}, true},
        {"get", {NULL, 501, .body = "x"}, false},
        {"get", {NULL, 404, .body = "x"}, false},
        {"get", {NULL, 429, .body = "x"}, true},
        {"get", {NULL, 0, .end = FAKE_CUT}, true},
        {"get", {NULL, 0, .end = FAKE_RESET}, true},
        {"get", {NULL, 200, .body = OBJECT, .end = FAKE_CUT}, true},
        {"get", {NULL, 200, .body = OBJECT, .bytewise = true}, false},
        {"create", {NULL, 500, .body = "x"}, false},
        {"create", {NULL, 503, .body = "x"}, false},
        {"create", {NULL, 503, "Retry-After: 1\r\n", "x"}, true},
        {"create", {NULL, 429, .body = "x"}, true},
        {"create", {NULL, 429, "Retry-After: 1\r\n", "x"}, true},
        {"create", {NULL, 0, .end = FAKE_RESET}, false},
        {"create", {NULL, 200, .body = OBJECT, .end = FAKE_CUT}, false},
        {"update", {NULL, 409, .body = "x"}, false},
        {"delete", {NULL, 500, .body = "x"}, false},
        {"delete", {NULL, 404, .body = "x"}, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct fake_step steps[] = {table[i].first, {NULL, 200, .body = OBJECT}};
        _cleanup_(fake_freep) struct fake *f = fake_new(steps, 2);
        _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
        struct err e = {0};
        int64_t begin = clock_mono_ns(clock_system());
        json_auto_t *got = call(c, table[i].what, &e);
        bool fine = table[i].first.status == 200 && table[i].first.end == FAKE_END;
        bool gone = table[i].first.status == 404 && str_eq(table[i].what, "delete");
        assert_int_equal(got != NULL, table[i].again || fine || gone);
        fake_check(f, table[i].again ? 2 : 1);
        if (table[i].first.header)
            assert_true(clock_mono_ns(clock_system()) - begin >= CLOCK_SECOND);
    }
}

static void test_deadline(void **state)
{
    (void)state;
    static const struct {
        struct fake_step step;
        enum err_code code;
    } table[] = {
        {{NULL, 429, "Retry-After: 3000\r\n", "x"}, ERR_RESOURCE_EXHAUSTED},
        {{NULL, 503, .body = "x", .repeat = 100}, ERR_UNAVAILABLE},
        {{NULL, 0, .end = FAKE_HOLD}, ERR_DEADLINE_EXCEEDED},
        {{NULL, 200, .body = "{", .end = FAKE_HOLD}, ERR_DEADLINE_EXCEEDED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(fake_freep) struct fake *f = fake_new(&table[i].step, 1);
        _cleanup_(kube_client_freep) struct kube_client *c =
            fake_client(f, &(struct kube_client_options){.deadline_ns = 300 * MILLISECOND});
        struct err e = {0};
        int64_t begin = clock_mono_ns(clock_system());
        assert_null(call(c, "get", &e));
        assert_string_equal(err_code_name(e.code), err_code_name(table[i].code));
        assert_true(clock_mono_ns(clock_system()) - begin < 10 * CLOCK_SECOND);
    }
}

static void test_nobody_there(void **state)
{
    (void)state;
    _cleanup_(fake_freep) struct fake *f = fake_new(NULL, 0);
    _cleanup_(kube_client_freep) struct kube_client *c =
        fake_client(f, &(struct kube_client_options){.deadline_ns = 2 * CLOCK_SECOND});
    shutdown(f->listener, SHUT_RDWR);
    int64_t begin = clock_mono_ns(clock_system());
    struct err e = {0};
    assert_null(call(c, "create", &e));
    /* The deadline may also pass in the middle of an attempt. */
    assert_true(e.code == ERR_UNAVAILABLE || e.code == ERR_DEADLINE_EXCEEDED);
    /* it tried for a while */
    assert_true(clock_mono_ns(clock_system()) - begin >= 50 * MILLISECOND);
}

/* A bucket of two tokens, and ten more a second. */
static void test_rate(void **state)
{
    (void)state;
    const struct fake_step steps[] = {{NULL, 200, .body = OBJECT, .repeat = 99}};
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, 1);
    _cleanup_(kube_client_freep) struct kube_client *c =
        fake_client(f, &(struct kube_client_options){.qps = 10, .burst = 2});
    int64_t begin = clock_mono_ns(clock_system());
    for (int i = 0; i < 5; i++) {
        json_auto_t *got = call(c, "get", NULL);
        assert_non_null(got);
    }
    assert_true(clock_mono_ns(clock_system()) - begin >= 300 * MILLISECOND);

    _cleanup_(kube_client_freep) struct kube_client *slow = fake_client(
        f, &(struct kube_client_options){.qps = 1, .burst = 1, .deadline_ns = 100 * MILLISECOND});
    struct err e = {0};
    json_auto_t *first = call(slow, "get", &e);
    assert_non_null(first);
    assert_null(call(slow, "get", &e));
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
}

struct stopper {
    struct fake *fake;
    struct kube_client *client;
};

static void *stop(void *context)
{
    struct stopper *s = context;
    fake_wait_for(s->fake, 1);
    kube_client_stop(s->client);
    return NULL;
}

/* A request that hangs, and one that waits for its next attempt. */
static void test_stop(void **state)
{
    (void)state;
    static const struct fake_step table[] = {
        {NULL, 0, .end = FAKE_HOLD},
        {NULL, 429, "Retry-After: 20\r\n", "x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(fake_freep) struct fake *f = fake_new(&table[i], 1);
        _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
        struct stopper s = {f, c};
        pthread_t thread;
        struct err e = {0};
        assert_int_equal(pthread_create(&thread, NULL, stop, &s), 0);
        assert_null(call(c, "get", &e));
        assert_int_equal(e.code, ERR_CANCELLED);
        assert_null(call(c, "get", &e));
        assert_int_equal(e.code, ERR_CANCELLED);
        pthread_join(thread, NULL);
        fake_check(f, 1);
    }
}

static void test_token(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {"uthorization: Bearer one", 200, .body = OBJECT},
        {"uthorization: Bearer one", 401, .body = "x"}, /* refused: the file has another by now */
        {"uthorization: Bearer two", 200, .body = OBJECT},
        {"uthorization: Bearer two", 401, .body = "x"}, /* it has not */
        {"uthorization: Bearer three", 200, .body = OBJECT},
    };
    char path[] = "/tmp/kube-token-XXXXXX";
    struct err e = {0};
    struct clock_manual clock;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_replace(path, "one\n", 4, 0600, &e), 0);
    clock_manual_init(&clock, 0);
    struct kube_config config = {.ns = (char[]){"d"}, .token_file = path};
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c =
        fake_client(f, &(struct kube_client_options){.config = &config, .clock = &clock.clock});
    json_decref(call(c, "get", &e));
    assert_int_equal(file_replace(path, "two\n", 4, 0600, &e), 0);
    json_decref(call(c, "get", &e));
    assert_null(call(c, "get", &e));
    assert_int_equal(e.code, ERR_UNAUTHENTICATED);
    assert_int_equal(file_replace(path, "three\n", 6, 0600, &e), 0);
    clock_manual_advance(&clock, 61 * CLOCK_SECOND);
    json_decref(call(c, "get", &e));
    fake_check(f, ARRAY_SIZE(steps));
    unlink(path);
}

static void test_metrics(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {NULL, 500, .body = "x"}, {NULL, 0, .end = FAKE_CUT}, {NULL, 200, .body = OBJECT}};
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c =
        fake_client(f, &(struct kube_client_options){.metrics = m});
    json_decref(call(c, "get", NULL));
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    for (size_t i = 0; i < 3; i++) {
        _cleanup_free_ char *line = mem_printf(
            "rest_client_requests_total{code=\"%s\",method=\"GET\",host=\"127.0.0.1:%u\"} 1\n",
            (const char *[]){"500", "<error>", "200"}[i], f->port);
        if (!strstr(text.p, line))
            fail_msg("%s is not in %s", line, text.p);
    }
    assert_non_null(strstr(text.p, "rest_client_request_duration_seconds_count{verb=\"GET\""));
}

/* Each warning is logged once, whatever it is written like. */
static void test_warnings(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {
        {NULL, 200, "Warning: 299 - \"a \\\"b\\\" c\"\r\nWarning: 299 - \"d\"\r\n", OBJECT},
        {NULL, 404, "Warning: 299 - \"d\"\r\nWarning: bare\r\n", "x"},
    };
    char path[] = "/tmp/kube-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    log_init(fd, LOG_FORMAT_JSON, LOG_LEVEL_WARN);
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    json_decref(call(c, "get", NULL));
    assert_null(call(c, "get", NULL));
    log_init(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    _cleanup_(str_done) struct str text = {0};
    assert_int_equal(file_read(path, 1 << 20, &text, NULL), 0);
    static const char *const wanted[] = {"\"a \\\"b\\\" c\"", "\"d\"", "\"bare\""};
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const char *once = strstr(text.p, wanted[i]);
        assert_non_null(once);
        assert_null(strstr(once + 1, wanted[i]));
    }
    close(fd);
    unlink(path);
}

static void test_raw(void **state)
{
    (void)state;
    static const struct fake_step steps[] = {{"GET /healthz HTTP", 200, .body = "ok"},
                                             {"POST /x?y=1 HTTP", 201, .body = "made"},
                                             {"GET /z HTTP", 404, .body = "no"}};
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    _cleanup_(str_done) struct str body = {0};
    struct err e = {0};
    json_auto_t *o = json_object();
    assert_int_equal(kube_raw(c, "GET", "/healthz", NULL, &body, &e), 0);
    assert_int_equal(kube_raw(c, "POST", "/x?y=1", o, &body, &e), 0);
    assert_string_equal(body.p, "okmade");
    assert_int_equal(kube_raw(c, "GET", "/z", NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources),    cmocka_unit_test(test_requests),
        cmocka_unit_test(test_bad_names),    cmocka_unit_test(test_errors),
        cmocka_unit_test(test_again),        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_nobody_there), cmocka_unit_test(test_rate),
        cmocka_unit_test(test_stop),         cmocka_unit_test(test_token),
        cmocka_unit_test(test_metrics),      cmocka_unit_test(test_raw),
        cmocka_unit_test(test_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
