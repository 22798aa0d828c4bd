#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/log.h"
#include "jsontest.h"
#include "k8s/apiserver/audit.h"
#include "k8s/apiserver/metrics.h"
#include "k8s/kinds/kinds.h"
#include "scratch.h"

static const char *log_path(unsigned backup)
{
    static char path[300];
    if (backup)
        snprintf(path, sizeof(path), "%s/audit.log.%u", folder, backup);
    else
        snprintf(path, sizeof(path), "%s/audit.log", folder);
    return path;
}

static struct apiserver_audit *open_log(size_t max_bytes, unsigned backups, size_t queue)
{
    struct apiserver_audit *a = NULL;
    struct err e = {0};
    struct apiserver_audit_options o = {APISERVER_AUDIT_ALL, log_path(0), max_bytes, backups,
                                        queue};
    if (apiserver_audit_open(&o, &a, &e) < 0)
        fail_msg("%s", e.msg);
    return a;
}

static void add(struct apiserver_audit *a, const char *text)
{
    struct str line = {0};
    str_appendf(&line, "%s\n", text);
    apiserver_audit_line(a, &line);
}

static void assert_file(unsigned backup, const char *expected)
{
    _cleanup_(str_done) struct str text = {0};
    struct err e = {0};
    if (!expected) {
        assert_int_equal(access(log_path(backup), F_OK), -1);
        return;
    }
    if (file_read(log_path(backup), 1 << 20, &text, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_get(&text), expected);
}

static void test_lines_in_order(void **state)
{
    (void)state;
    struct apiserver_audit *a = open_log(0, 1, 0);
    add(a, "one");
    add(a, "two");
    apiserver_audit_close(a);
    assert_file(0, "one\ntwo\n");
    struct stat st;
    assert_int_equal(stat(log_path(0), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    a = open_log(0, 1, 0); /* it goes on where it was */
    add(a, "three");
    apiserver_audit_close(a);
    assert_file(0, "one\ntwo\nthree\n");
}

static void test_rotation(void **state)
{
    (void)state;
    static const char *const lines[] = {"first", "second", "third", "fourth"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) { /* each is one batch */
        struct apiserver_audit *a = open_log(8, 2, 0);
        add(a, lines[i]);
        apiserver_audit_close(a);
    }
    assert_file(0, "fourth\n");
    assert_file(1, "third\n");
    assert_file(2, "second\n");
    assert_file(3, NULL);
}

static void test_no_backups(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct apiserver_audit *a = open_log(4, 0, 0);
        add(a, i == 2 ? "last" : "line");
        apiserver_audit_close(a);
    }
    assert_file(0, "last\n");
    assert_file(1, NULL);
}

static void *drain(void *fd)
{
    static char buffer[1 << 16];
    while (read(*(int *)fd, buffer, sizeof(buffer)) > 0)
        ;
    return NULL;
}

/* Nobody waits: what the queue does not take is counted. */
static void test_full_queue(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(log_path(0), 0600), 0); /* a disk that is slow: nobody reads it */
    int reader = open(log_path(0), O_RDONLY | O_NONBLOCK);
    assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
    struct apiserver_audit *a = open_log(0, 0, 8);
    static char text[70000];
    memset(text, 'x', sizeof(text) - 1);
    for (int i = 0; i < 100; i++)
        add(a, text);
    assert_true(apiserver_audit_dropped(a) > 50);
    pthread_t thread;
    pthread_create(&thread, NULL, drain, &reader);
    apiserver_audit_close(a);
    pthread_join(thread, NULL);
    close(reader);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct apiserver_audit *a = NULL;
    struct apiserver_audit_options o = {APISERVER_AUDIT_ALL, "/dev/full", 0, 0, 0};
    assert_int_equal(apiserver_audit_open(&o, &a, NULL), 0);
    for (int i = 0; i < 10; i++)
        add(a, "line");
    for (int i = 0; i < 10000 && apiserver_audit_dropped(a) < 10; i++)
        usleep(1000);
    assert_int_equal(apiserver_audit_dropped(a), 10);
    struct apiserver_metrics *m = apiserver_metrics_new();
    _cleanup_(str_done) struct str text = {0};
    apiserver_metrics_audit(m, a);
    apiserver_metrics_format(m, &text);
    assert_non_null(strstr(text.p, "\napiserver_audit_event_total 10\n"));
    assert_non_null(strstr(text.p, "\napiserver_audit_error_total{plugin=\"log\"} 10\n"));
    apiserver_metrics_free(m);
    apiserver_audit_close(a);
}

static void test_cannot_open(void **state)
{
    (void)state;
    struct apiserver_audit *a = NULL;
    struct err e = {0};
    _cleanup_free_ char *path = mem_printf("%s/none/audit.log", folder);
    struct apiserver_audit_options o = {APISERVER_AUDIT_ALL, path, 0, 0, 0};
    assert_int_equal(apiserver_audit_open(&o, &a, &e), -1);
    assert_non_null(strstr(e.msg, path));
    o.level = APISERVER_AUDIT_OFF; /* is not even opened */
    assert_int_equal(apiserver_audit_open(&o, &a, &e), 0);
    add(a, "nothing");
    assert_int_equal(apiserver_audit_dropped(a), 0);
    apiserver_audit_close(a);
}

static const struct apiserver_user jane = {
    .name = "jane", .groups = (const char *const[]){"devs", "system:authenticated", NULL}};

static void test_event(void **state)
{
    (void)state;
    struct apiserver_audit_call call = {"id-1", 1767323045 * (int64_t)1000000000, NULL};
    struct apiserver_path path;
    static const char target[] = "/api/v1/namespaces/ns/pods/p/status";
    assert_int_equal(
        apiserver_path_parse(api_kinds, "PUT", target, strlen(target), false, &path, NULL), 0);
    struct apiserver_audit_record r = {
        .call = &call,
        .answered = call.received + 1500000,
        .method = "PUT",
        .target = "/api/v1/namespaces/ns/pods/p/status?dryRun=All",
        .user_agent = "test \xff",
        .peer = "192.0.2.1",
        .user = &jane,
        .path = &path,
        .code = 200,
        .decided = true,
        .allowed = true,
        .reason = "RBAC: allowed by ...",
    };
    _cleanup_(str_done) struct str line = {0};
    apiserver_audit_format(&r, &line);
    assert_int_equal(line.p[line.len - 1], '\n');
    json_auto_t *event = parse_json(line.p);
    json_auto_t *expected = parse_quoted(
        "{'kind': 'Event', 'apiVersion': 'audit.k8s.io/v1', 'level': 'Metadata', 'auditID': 'id-1',"
        "'stage': 'ResponseComplete', 'requestURI': "
        "'/api/v1/namespaces/ns/pods/p/status?dryRun=All',"
        "'verb': 'update', 'user': {'username': 'jane', 'groups': ['devs', "
        "'system:authenticated']},"
        "'sourceIPs': ['192.0.2.1'], 'userAgent': 'test ?', 'objectRef': {'resource': 'pods',"
        "'namespace': 'ns', 'name': 'p', 'apiVersion': 'v1', 'subresource': 'status'},"
        "'responseStatus': {'metadata': {}, 'code': 200},"
        "'requestReceivedTimestamp': '2026-01-02T03:04:05.000000Z',"
        "'stageTimestamp': '2026-01-02T03:04:05.001500Z',"
        "'annotations': {'authorization.k8s.io/decision': 'allow',"
        "'authorization.k8s.io/reason': 'RBAC: allowed by ...'}}");
    assert_json(event, expected, "the event");

    static const struct apiserver_user admin = {.name = "admin"};
    r.user = &admin;
    r.impersonated = &jane;
    str_done(&line);
    line = (struct str){0};
    apiserver_audit_format(&r, &line);
    json_auto_t *acted = parse_json(line.p);
    json_auto_t *who = json_pack("{s:O,s:O}", "user", json_object_get(acted, "user"),
                                 "impersonatedUser", json_object_get(acted, "impersonatedUser"));
    json_auto_t *expected_who = parse_quoted(
        "{'user': {'username': 'admin'}, 'impersonatedUser': {'username': 'jane', 'groups': "
        "['devs', 'system:authenticated']}}");
    assert_json(who, expected_who, "who acted as whom");
}

static void test_no_credentials(void **state)
{
    (void)state;
    static const struct {
        const char *target, *uri;
    } cases[] = {
        {"/api?a=b&c", "/api?a=b&c"},
        {"/api?access_token=x&b=1", "/api?access_token=[redacted]&b=1"},
        {"/api?b=1&PassWord=x", "/api?b=1&PassWord=[redacted]"},
        {"/api?token", "/api?token"},
        {"/api?clientSecret=a=b", "/api?clientSecret=[redacted]"},
        {"/api?", "/api?"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct apiserver_audit_call call = {"id", 0, "Forbidden"};
        struct apiserver_audit_record r = {
            .call = &call, .method = "GET", .target = cases[i].target, .code = 403};
        _cleanup_(str_done) struct str line = {0};
        apiserver_audit_format(&r, &line);
        json_auto_t *event = parse_json(line.p);
        assert_string_equal(json_str(event, "requestURI"), cases[i].uri);
        assert_string_equal(json_str(event, "verb"), "get");
        assert_string_equal(json_str(json_object_get(event, "responseStatus"), "reason"),
                            "Forbidden");
    }
}

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR); /* that lines are lost is what some of these are about */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_in_order, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_rotation, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_no_backups, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_full_queue, scratch_begin, scratch_end),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test_setup_teardown(test_cannot_open, scratch_begin, scratch_end),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_no_credentials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
