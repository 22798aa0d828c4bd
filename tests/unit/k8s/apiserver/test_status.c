#include "jsontest.h"
#include "k8s/apiserver/status.h"
#include "k8s/kinds/kinds.h"

static const struct api_group_version versions[] = {
    {"rec.example.test", "v1"}, {"old.example.test", "v2"}, {0}};
static const struct api_kind gadget = {
    .kind = "Gadget", .plural = "gadgets", .singular = "gadget", .versions = versions};
static const struct apiserver_about nope = {.kind = &gadget, .name = "nope"};

static void check(json_t *got, const char *expected)
{
    json_auto_t *status = got, *wanted = parse_quoted(expected);
    assert_json(status, wanted, expected);
}

static void test_codes(void **state)
{
    (void)state;
    static const struct {
        enum err_code code;
        const char *reason, *expected;
        unsigned status;
    } cases[] = {
        {ERR_INVALID_ARGUMENT, "BadRequest", "BadRequest", 400},
        {ERR_UNAUTHENTICATED, "Unauthorized", "Unauthorized", 401},
        {ERR_PERMISSION_DENIED, "Forbidden", "Forbidden", 403},
        {ERR_NOT_FOUND, "NotFound", "NotFound", 404},
        {ERR_UNIMPLEMENTED, "MethodNotAllowed", "MethodNotAllowed", 405},
        {ERR_INVALID_ARGUMENT, "NotAcceptable", "NotAcceptable", 406},
        {ERR_ALREADY_EXISTS, "AlreadyExists", "AlreadyExists", 409},
        {ERR_ABORTED, "Conflict", "Conflict", 409},
        {ERR_OUT_OF_RANGE, "Expired", "Expired", 410},
        {ERR_OUT_OF_RANGE, "Gone", "Gone", 410},
        {ERR_INVALID_ARGUMENT, "RequestEntityTooLarge", "RequestEntityTooLarge", 413},
        {ERR_INVALID_ARGUMENT, "UnsupportedMediaType", "UnsupportedMediaType", 415},
        {ERR_INVALID_ARGUMENT, "Invalid", "Invalid", 422},
        {ERR_RESOURCE_EXHAUSTED, "TooManyRequests", "TooManyRequests", 429},
        {ERR_INTERNAL, "InternalError", "InternalError", 500},
        {ERR_UNAVAILABLE, "ServiceUnavailable", "ServiceUnavailable", 503},
        {ERR_DEADLINE_EXCEEDED, "Timeout", "Timeout", 504},
        /* Reasons of our own. */
        {ERR_RESOURCE_EXHAUSTED, "NoSpace", "ServiceUnavailable", 503},
        {ERR_RESOURCE_EXHAUSTED, "TooManyFiles", "TooManyRequests", 429},
        {ERR_DATA_LOSS, "Damaged", "InternalError", 500},
        {ERR_UNAVAILABLE, "StorageError", "ServiceUnavailable", 503},
        {ERR_FAILED_PRECONDITION, "InUse", "Conflict", 409},
        {ERR_OUT_OF_RANGE, "Far", "BadRequest", 400},
        {ERR_INVALID_ARGUMENT, "NotJSON", "BadRequest", 400},
        {ERR_CANCELLED, "Cancelled", "Timeout", 504},
        {ERR_OK, NULL, "InternalError", 500},
        {(enum err_code)99, "Odd", "InternalError", 500},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {.code = cases[i].code, .reason = cases[i].reason, .msg = "why"};
        const char *reason;
        unsigned status = apiserver_status_code(&e, &reason), code;
        if (status != cases[i].status || !str_eq(reason, cases[i].expected))
            fail_msg("%d %s: %u %s", (int)e.code, e.reason, status, reason);
        json_auto_t *s = apiserver_status(&e, NULL, NULL, &code);
        assert_int_equal(code, cases[i].status);
        assert_int_equal(json_integer_value(json_object_get(s, "code")), cases[i].status);
        assert_string_equal(json_str(s, "reason"), cases[i].expected);
        assert_string_equal(json_str(s, "status"), "Failure");
    }
}

#define FAILURE "'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure'"

static void check_failure(json_t *got, const char *message, const char *rest)
{
    json_auto_t *status = got;
    _cleanup_free_ char *text = mem_printf("{" FAILURE ", %s}", rest);
    json_auto_t *wanted = parse_quoted(text);
    json_object_set_new(wanted, "message", json_string(message));
    assert_json(status, wanted, message);
}

static void test_words(void **state)
{
    (void)state;
    static const struct apiserver_about pod = {.kind = &api_pod, .name = "p"};
    static const struct apiserver_about pods = {.kind = &api_pod, .name = ""};
    static const struct apiserver_about other = {&gadget, &versions[1], "nope"};
    static const struct apiserver_about all = {.kind = &gadget};
    static const struct {
        const struct apiserver_about *about;
        enum err_code code;
        const char *reason, *text, *message, *rest;
    } cases[] = {
        {&nope, ERR_NOT_FOUND, "NotFound", "gadgets/ns \"ns/nope\" not found",
         "gadgets.rec.example.test \"nope\" not found",
         "'reason': 'NotFound', 'details': {'name': 'nope', 'group': 'rec.example.test',"
         "'kind': 'gadgets'}, 'code': 404"},
        {&other, ERR_NOT_FOUND, "NotFound", "x", "gadgets.old.example.test \"nope\" not found",
         "'reason': 'NotFound', 'details': {'name': 'nope', 'group': 'old.example.test',"
         "'kind': 'gadgets'}, 'code': 404"},
        {&pod, ERR_ALREADY_EXISTS, "AlreadyExists", "x", "pods \"p\" already exists",
         "'reason': 'AlreadyExists', 'details': {'name': 'p', 'kind': 'pods'}, 'code': 409"},
        {&pod, ERR_PERMISSION_DENIED, "Forbidden", "not today",
         "pods \"p\" is forbidden: not today",
         "'reason': 'Forbidden', 'details': {'name': 'p', 'kind': 'pods'}, 'code': 403"},
        {&pods, ERR_PERMISSION_DENIED, "Forbidden", "User \"x\" cannot list them",
         "pods is forbidden: User \"x\" cannot list them",
         "'reason': 'Forbidden', 'details': {'kind': 'pods'}, 'code': 403"},
        {NULL, ERR_PERMISSION_DENIED, "Forbidden", "forbidden: User \"x\" cannot get path \"/y\"",
         "forbidden: User \"x\" cannot get path \"/y\"",
         "'reason': 'Forbidden', 'details': {}, 'code': 403"},
        {&pod, ERR_ABORTED, "Conflict",
         "Operation cannot be fulfilled on pods \"p\": the object has been modified",
         "Operation cannot be fulfilled on pods \"p\": the object has been modified",
         "'reason': 'Conflict', 'details': {'name': 'p', 'kind': 'pods'}, 'code': 409"},
        {&nope, ERR_ABORTED, "Conflict",
         "Operation cannot be fulfilled on gadgets \"nope\": the object has been modified",
         "Operation cannot be fulfilled on gadgets.rec.example.test \"nope\": the object has been "
         "modified",
         "'reason': 'Conflict', 'details': {'name': 'nope', 'group': 'rec.example.test',"
         "'kind': 'gadgets'}, 'code': 409"},
        {&pod, ERR_ABORTED, "Conflict", "somebody was faster",
         "Operation cannot be fulfilled on pods \"p\": somebody was faster",
         "'reason': 'Conflict', 'details': {'name': 'p', 'kind': 'pods'}, 'code': 409"},
        {NULL, ERR_NOT_FOUND, "NotFound", "the server could not find the requested resource",
         "the server could not find the requested resource", "'reason': 'NotFound', 'code': 404"},
        {&all, ERR_NOT_FOUND, "NotFound", "the server could not find the requested resource",
         "the server could not find the requested resource", "'reason': 'NotFound', 'code': 404"},
        {&nope, ERR_INVALID_ARGUMENT, "UnsupportedMediaType", "accepted are: a, b",
         "accepted are: a, b", "'reason': 'UnsupportedMediaType', 'code': 415"},
        {&nope, ERR_DATA_LOSS, "Damaged", "page 7", "Internal error occurred: page 7",
         "'reason': 'InternalError', 'code': 500"},
        {&nope, ERR_RESOURCE_EXHAUSTED, "TooManyRequests", "wait", "wait",
         "'reason': 'TooManyRequests', 'details': {'retryAfterSeconds': 1}, 'code': 429"},
        {&nope, ERR_INVALID_ARGUMENT, "Invalid", "no report", "no report",
         "'reason': 'Invalid', 'code': 422"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e;
        unsigned code;
        err_set(&e, cases[i].code, cases[i].reason, "%s", cases[i].text);
        check_failure(apiserver_status(&e, NULL, cases[i].about, &code), cases[i].message,
                      cases[i].rest);
    }
}

static void test_invalid(void **state)
{
    (void)state;
    struct api_report report = {0};
    struct err e;
    unsigned code;
    err_set(&e, ERR_INVALID_ARGUMENT, "Invalid", "whatever");
    const struct api_path *spec = API_KEY(NULL, "spec");
    api_warn(&report, spec, "a warning is no cause");
    api_problem(&report, API_KEY(spec, "size"), API_MISSING, NULL, "must be set");
    check_failure(apiserver_status(&e, &report, &nope, &code),
                  "Gadget.rec.example.test \"nope\" is invalid: spec.size: Required value: must be "
                  "set",
                  "'reason': 'Invalid', 'details': {'name': 'nope', 'group': 'rec.example.test',"
                  "'kind': 'Gadget', 'causes': [{'reason': 'FieldValueRequired',"
                  "'message': 'Required value: must be set', 'field': 'spec.size'}]}, 'code': 422");
    assert_int_equal(code, 422);
    json_auto_t *three = json_integer(3);
    api_problem(&report, API_KEY(spec, "disks"), API_INVALID, three, "must be even");
    check_failure(apiserver_status(&e, &report, &nope, &code),
                  "Gadget.rec.example.test \"nope\" is invalid: [spec.size: Required value: must "
                  "be set, spec.disks: Invalid value: 3: must be even]",
                  "'reason': 'Invalid', 'details': {'name': 'nope', 'group': 'rec.example.test',"
                  "'kind': 'Gadget', 'causes': [{'reason': 'FieldValueRequired',"
                  "'message': 'Required value: must be set', 'field': 'spec.size'},"
                  "{'reason': 'FieldValueInvalid', 'message': 'Invalid value: 3: must be even',"
                  "'field': 'spec.disks'}]}, 'code': 422");

    /* A field that does not exist is what the decoder sees first, and all that it sees. */
    api_problem(&report, API_KEY(spec, "replicaz"), API_UNKNOWN, NULL, "did you mean replicas?");
    check_failure(apiserver_status(&e, &report, &nope, &code),
                  "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: "
                  "unknown field \"spec.replicaz\"",
                  "'reason': 'BadRequest', 'code': 400");
    assert_int_equal(code, 400);
    api_problem(&report, API_KEY(spec, "b"), API_UNKNOWN, NULL, "no");
    check_failure(apiserver_status(&e, &report, &nope, &code),
                  "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: "
                  "unknown field \"spec.replicaz\", unknown field \"spec.b\"",
                  "'reason': 'BadRequest', 'code': 400");
    api_report_done(&report);
}

/* More problems than a report keeps are counted. */
static void test_many_causes(void **state)
{
    (void)state;
    struct api_report report = {0};
    struct err e;
    unsigned code;
    err_set(&e, ERR_INVALID_ARGUMENT, "Invalid", "whatever");
    for (size_t i = 0; i < API_MAX_PROBLEMS + 5; i++)
        api_problem(&report, API_AT(API_KEY(NULL, "spec"), i), API_MISSING, NULL, "x");
    json_auto_t *s = apiserver_status(&e, &report, &nope, &code);
    assert_int_equal(json_array_size(json_at(s, "details", "causes")), API_MAX_PROBLEMS);
    assert_true(str_ends_with(json_str(s, "message"), ", and 5 more]"));
    api_report_done(&report);
}

static void test_hostile_texts(void **state)
{
    (void)state;
    struct err e;
    unsigned code;
    err_set(&e, ERR_INVALID_ARGUMENT, "BadRequest", "bad \xff byte");
    json_auto_t *s = apiserver_status(&e, NULL, NULL, &code);
    assert_string_equal(json_str(s, "message"), "bad ? byte");
    struct apiserver_about about = {.kind = &gadget, .name = "n\xff"};
    err_set(&e, ERR_NOT_FOUND, "NotFound", "x");
    json_auto_t *named = apiserver_status(&e, NULL, &about, &code);
    assert_string_equal(json_str(json_object_get(named, "details"), "name"), "n?");
    assert_non_null(json_str(named, "message"));
}

static void test_deleted(void **state)
{
    (void)state;
    static const struct apiserver_about g1 = {.kind = &gadget, .name = "g1"};
    static const struct apiserver_about pods = {.kind = &api_pod};
    check(apiserver_status_deleted(&g1, "c60565a6-e57c-4aa4-af6a-7ead800f8174"),
          "{'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success', 'details': "
          "{'name': 'g1', 'group': 'rec.example.test', 'kind': 'gadgets',"
          "'uid': 'c60565a6-e57c-4aa4-af6a-7ead800f8174'}}");
    check(apiserver_status_deleted(&pods, NULL),
          "{'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success', 'details': "
          "{'kind': 'pods'}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),         cmocka_unit_test(test_words),
        cmocka_unit_test(test_invalid),       cmocka_unit_test(test_many_causes),
        cmocka_unit_test(test_hostile_texts), cmocka_unit_test(test_deleted),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
