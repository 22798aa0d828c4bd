/*
 * Certificates of a server that runs for years, with a clock that is moved.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "k8s/apiserver/certificates.h"
#include "unit.h"

#define DAYS(n) ((int64_t)(n)*24 * 60 * 60 * CLOCK_SECOND)

static char *folder, *pki, *kubeconfig;
static struct clock_manual now;
static struct apiserver_certificates *certificates;
static struct http_server *server;

static void handle(void *context, struct http_request *r)
{
    (void)context;
    http_reply(r, 200, NULL, NULL, 0, NULL, NULL);
}

static void start(const char *address, const char *const *names, bool plain_http)
{
    struct apiserver_certificates_options o = {.folder = pki,
                                               .kubeconfig = kubeconfig,
                                               .address = address,
                                               .names = names,
                                               .plain_http = plain_http,
                                               .clock = &now.clock};
    struct http_server_options http = {.address = address, .threads = 1, .handle = handle};
    struct err e = {0};
    if (apiserver_certificates_open(&o, &certificates, &e) < 0 ||
        apiserver_certificates_start_http(certificates, &http, &server, &e) < 0)
        fail_msg("%s", e.msg);
}

static void stop(void)
{
    apiserver_certificates_leave_http(certificates);
    http_server_stop(server);
    apiserver_certificates_close(certificates);
    server = NULL;
    certificates = NULL;
}

static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-certificates-XXXXXX";
    folder = mem_strdup(mkdtemp(template));
    pki = mem_printf("%s/pki", folder);
    kubeconfig = mem_printf("%s/admin.kubeconfig", folder);
    clock_manual_init(&now, 1767323045 * CLOCK_SECOND);
    return 0;
}

static int end(void **state)
{
    (void)state;
    int status = file_remove_tree(folder, NULL);
    free(folder);
    free(pki);
    free(kubeconfig);
    return status;
}

static char *read_file(const char *path)
{
    struct str text = {0};
    struct err e = {0};
    if (file_read(path, 1 << 20, &text, &e) < 0)
        fail_msg("%s", e.msg);
    return str_take(&text);
}

static char *server_certificate(void)
{
    _cleanup_free_ char *path = mem_printf("%s/apiserver.pem", pki);
    return read_file(path);
}

static void tick(void)
{
    struct err e = {0};
    if (apiserver_certificates_tick(certificates, &e) < 0)
        fail_msg("%s", e.msg);
}

static void test_kubeconfig(void **state)
{
    (void)state;
    start(NULL, NULL, false);
    _cleanup_free_ char *text = read_file(kubeconfig);
    _cleanup_free_ char *url =
        mem_printf("server: https://127.0.0.1:%u\n", http_server_port(server));
    struct stat st;
    assert_int_equal(stat(kubeconfig, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_non_null(strstr(text, url));
    assert_non_null(strstr(text, "certificate-authority-data: "));
    assert_non_null(strstr(text, "client-key-data: "));
    stop();
    start(NULL, NULL, true);
    _cleanup_free_ char *plain = read_file(kubeconfig);
    assert_non_null(strstr(plain, "server: http://127.0.0.1:"));
    stop();
    start("0.0.0.0", NULL, false);
    _cleanup_free_ char *all = read_file(kubeconfig);
    assert_non_null(strstr(all, "server: https://127.0.0.1:"));
    stop();
}

static void test_names(void **state)
{
    static const char *const names[] = {"api.example.test", "localhost", "10.1.2.3", NULL};
    (void)state;
    start(NULL, NULL, false);
    _cleanup_free_ char *first = server_certificate();
    stop();
    start(NULL, NULL, false);
    _cleanup_free_ char *same = server_certificate();
    assert_string_equal(first, same);
    stop();
    start(NULL, names, false);
    _cleanup_free_ char *more = server_certificate();
    assert_string_not_equal(first, more);
    stop();
    static const char *const bad[] = {"no name", NULL};
    struct apiserver_certificates_options o = {.folder = pki, .names = bad, .clock = &now.clock};
    struct err e = {0};
    assert_int_equal(apiserver_certificates_open(&o, &certificates, &e), -1);
    assert_string_equal(e.reason, "InvalidName");
}

static void test_years(void **state)
{
    (void)state;
    start(NULL, NULL, false);
    uint64_t generation = apiserver_certificates_generation(certificates), later;
    _cleanup_(str_done) struct str bundle = {0}, both = {0};
    apiserver_certificates_bundle(certificates, &bundle, NULL);
    _cleanup_free_ char *cert = server_certificate(), *config = read_file(kubeconfig);
    tick();
    clock_manual_advance(&now, DAYS(PKI_LEAF_DAYS / 2));
    tick();
    _cleanup_free_ char *same = server_certificate();
    assert_string_equal(cert, same);
    clock_manual_advance(&now, DAYS(PKI_LEAF_DAYS / 3));
    tick();
    _cleanup_free_ char *next = server_certificate(), *next_config = read_file(kubeconfig);
    assert_string_not_equal(cert, next);
    assert_string_not_equal(config, next_config);
    assert_int_equal(apiserver_certificates_generation(certificates), generation);

    clock_manual_advance(&now, DAYS(PKI_AUTHORITY_DAYS * 2 / 3));
    tick();
    apiserver_certificates_bundle(certificates, &both, &later);
    assert_int_not_equal(later, generation);
    assert_non_null(strstr(both.p, bundle.p));
    assert_true(both.len > bundle.len);
    stop();
}

/* A disk that takes nothing: what is there goes on, and it is tried again. */
static void test_failure(void **state)
{
    (void)state;
    start(NULL, NULL, false);
    _cleanup_free_ char *away = mem_printf("%s-away", pki);
    struct err e = {0};
    clock_manual_advance(&now, DAYS(PKI_LEAF_DAYS));
    assert_int_equal(rename(pki, away), 0);
    assert_int_equal(apiserver_certificates_tick(certificates, &e), -1);
    tick();                                                           /* not yet again */
    clock_manual_set_real(&now, clock_real_ns(&now.clock) - DAYS(1)); /* which changes nothing */
    tick();
    clock_manual_advance(&now, 60 * CLOCK_SECOND);
    assert_int_equal(apiserver_certificates_tick(certificates, &e), -1);
    assert_int_equal(rename(away, pki), 0);
    _cleanup_free_ char *before = server_certificate();
    clock_manual_advance(&now, 60 * CLOCK_SECOND);
    tick();
    _cleanup_free_ char *after = server_certificate();
    assert_string_not_equal(before, after);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kubeconfig, begin, end),
        cmocka_unit_test_setup_teardown(test_names, begin, end),
        cmocka_unit_test_setup_teardown(test_years, begin, end),
        cmocka_unit_test_setup_teardown(test_failure, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
