#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/config.h"
#include "unit.h"

#define PEM     "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
#define PEM_B64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCngKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

/* A kubeconfig of one cluster, user and context, with these members. */
#define CONFIG(cluster, user)                                                                      \
    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"                                           \
    "contexts: [{name: c, context: {cluster: k, user: u, namespace: here}}]\n"                     \
    "clusters: [{name: k, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user "}}]\n"
#define HTTPS "server: 'https://h:6443'"

static char folder[64];

static void put(const char *name, const char *text)
{
    struct err e = {0};
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    if (file_replace(path, text, strlen(text), 0600, &e) < 0)
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/kube-config-XXXXXX");
    assert_non_null(mkdtemp(folder));
    put("pem", PEM);
    put("token", "abc\n");
    put("bad", "a b\n");
    put("empty", "\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct err e;
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    return file_remove_tree(folder, &e);
}

static int parse(const char *text, struct kube_config *c, struct err *e)
{
    return kube_config_parse(text, strlen(text), folder, NULL, c, e);
}

static const char *or_dash(const char *s)
{
    return s ? s : "-";
}

static void test_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *server, *address, *ca, *certificate, *key, *token;
    } table[] = {
        {CONFIG(HTTPS, ""), "https://h:6443", "-", "-", "-", "-", "-"},
        {CONFIG("server: 'https://h/'", "token: t"), "https://h", "-", "-", "-", "-", "t"},
        {CONFIG("server: 'https://[::1]:1'", ""), "https://[::1]:1", "-", "-", "-", "-", "-"},
        {CONFIG("server: 'http://127.0.0.1:1'", ""), "http://127.0.0.1:1", "-", "-", "-", "-", "-"},
        {CONFIG("server: 'http://localhost:1'", ""), "http://localhost:1", "-", "-", "-", "-", "-"},
        {CONFIG(HTTPS ", certificate-authority-data: " PEM_B64,
                "client-certificate-data: " PEM_B64 ", client-key: pem"),
         "https://h:6443", "-", PEM, PEM, "file", "-"},
        {CONFIG(HTTPS ", certificate-authority: pem", "client-certificate: ./pem, client-key: pem"),
         "https://h:6443", "-", "file", "file", "file", "-"},
        /* the data wins over the file, which is not even looked for */
        {CONFIG(HTTPS ", certificate-authority: none, certificate-authority-data: " PEM_B64, ""),
         "https://h:6443", "-", PEM, "-", "-", "-"},
        {CONFIG(HTTPS, "tokenFile: token, token: other"), "https://h:6443", "-", "-", "-", "-",
         "abc"},
        {CONFIG("server: 'https://10.0.0.1:6443', tls-server-name: api.example", ""),
         "https://api.example:6443", "10.0.0.1", "-", "-", "-", "-"},
        {CONFIG("server: 'https://localhost', tls-server-name: api.example", ""),
         "https://api.example:443", "127.0.0.1", "-", "-", "-", "-"},
        {CONFIG("server: 'https://[2001:db8::1]:1', tls-server-name: api.example", ""),
         "https://api.example:1", "2001:db8::1", "-", "-", "-", "-"},
        /* what says nothing is nothing */
        {CONFIG(HTTPS ", insecure-skip-tls-verify: false, proxy-url: ''", "exec: null, as: ''"),
         "https://h:6443", "-", "-", "-", "-", "-"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct kube_config c;
        struct err e = {0};
        if (parse(table[i].text, &c, &e) < 0)
            fail_msg("%zu: %s", i, e.msg);
        assert_string_equal(c.server, table[i].server);
        assert_string_equal(or_dash(c.address), table[i].address);
        assert_string_equal(or_dash(c.token), table[i].token);
        assert_string_equal(c.ns, "here");
        const char *const got[] = {c.ca, c.certificate, c.key}, *const wanted[] = {
                                                                    table[i].ca,
                                                                    table[i].certificate,
                                                                    table[i].key};
        for (size_t k = 0; k < ARRAY_SIZE(got); k++) {
            /* files are read without the line end behind them */
            bool from_file = strcmp(wanted[k], "file") == 0;
            assert_string_equal(or_dash(got[k]), from_file ? "-----BEGIN CERTIFICATE-----\nx\n"
                                                             "-----END CERTIFICATE-----"
                                                           : wanted[k]);
        }
        kube_config_done(&c);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "no kubeconfig"},
        {"[]", "no kubeconfig"},
        {"kind: Pod", "no kubeconfig"},
        {"kind: Config\na: [", "line 2"},
        {"kind: Config", "no current-context"},
        {"kind: Config\ncurrent-context: x", "no context 'x'"},
        {"kind: Config\ncurrent-context: x\ncontexts: {}", "no context 'x'"},
        {"kind: Config\ncurrent-context: x\ncontexts: [{name: x}]", "no context 'x'"},
        {"kind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {}}]", "cluster ''"},
        {"kind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: k}}]",
         "cluster 'k'"},
        {"kind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: k, user: z}}]\n"
         "clusters: [{name: k, cluster: {}}]",
         "user 'z'"},
        {CONFIG("", ""), "no server"},
        {CONFIG("server: 'h:6443'", ""), "https://HOST:PORT"},
        {CONFIG("server: 'ftp://h'", ""), "https://HOST:PORT"},
        {CONFIG("server: 'https://'", ""), "https://HOST:PORT"},
        {CONFIG("server: 'https://:1'", ""), "no host"},
        {CONFIG("server: 'https://h:0'", ""), "port"},
        {CONFIG("server: 'https://h:65536'", ""), "port"},
        {CONFIG("server: 'https://h:99999999999999999999'", ""), "port"},
        {CONFIG("server: 'https://h:1x'", ""), "port"},
        {CONFIG("server: 'https://u@h'", ""), "more than a host"},
        {CONFIG("server: 'https://h/path'", ""), "more than a host"},
        {CONFIG("server: 'https://[::1'", ""), "no ']'"},
        {CONFIG("server: \"https://h\\r\\nX: y\"", ""), "more than a host"},
        {CONFIG("server: 'http://10.0.0.1'", ""), "without TLS"},
        {CONFIG("server: 'http://example.org'", ""), "without TLS"},
        {CONFIG("server: 'https://h', tls-server-name: x", ""), "by its address"},
        {CONFIG("server: 'https://10.0.0.1', tls-server-name: 'x/y'", ""), "more than a host"},
        {CONFIG(HTTPS ", insecure-skip-tls-verify: true", ""), "insecure-skip-tls-verify"},
        {CONFIG(HTTPS ", proxy-url: 'http://p'", ""), "proxy-url"},
        {CONFIG(HTTPS ", certificate-authority: none", ""), "none"},
        {CONFIG(HTTPS ", certificate-authority: token", ""), "no PEM"},
        {CONFIG(HTTPS ", certificate-authority-data: '!'", ""), "base64"},
        {CONFIG(HTTPS ", certificate-authority-data: AAAA", ""), "base64"},
        {CONFIG(HTTPS, "exec: {command: evil}"), "exec"},
        {CONFIG(HTTPS, "auth-provider: {name: gcp}"), "auth-provider"},
        {CONFIG(HTTPS, "username: u, password: p"), "username"},
        {CONFIG(HTTPS, "as: somebody"), "as is not supported"},
        {CONFIG(HTTPS, "client-key: pem"), "without a client-certificate"},
        {CONFIG(HTTPS, "client-certificate: pem"), "without a client-key"},
        {CONFIG(HTTPS, "token: 'a b'"), "the token"},
        {CONFIG(HTTPS, "token: \"a\\r\\nX: y\""), "the token"},
        {CONFIG(HTTPS, "tokenFile: bad"), "the token"},
        {CONFIG(HTTPS, "tokenFile: empty"), "the token is empty"},
        {CONFIG(HTTPS, "tokenFile: none"), "none"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct kube_config c;
        struct err e = {0};
        if (parse(table[i].text, &c, &e) == 0)
            fail_msg("%zu was taken", i);
        if (!strstr(e.msg, table[i].says))
            fail_msg("%zu: '%s' does not say '%s'", i, e.msg, table[i].says);
        assert_null(c.server);
        kube_config_done(&c); /* may be called */
    }
}

/* No message tells a secret. */
static void test_secrets(void **state)
{
    (void)state;
    struct kube_config c;
    struct err e = {0};
    assert_int_equal(parse(CONFIG(HTTPS, "token: 'hush hush'"), &c, &e), -1);
    assert_null(strstr(e.msg, "hush"));
    assert_int_equal(
        parse(CONFIG(HTTPS, "client-key-data: aHVzaA==, client-certificate: pem"), &c, &e), -1);
    assert_null(strstr(e.msg, "hush"));
    assert_null(strstr(e.msg, "aHVzaA"));
}

static void load(const char *path, const char *context, const char *server)
{
    struct kube_config c;
    struct err e = {0};
    if (kube_config_load(path, context, &c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(c.server, server);
    kube_config_done(&c);
}

#define PART(context, cluster, server)                                                             \
    "kind: Config\ncurrent-context: " context "\ncontexts: [{name: " context                       \
    ", context: {cluster: " cluster "}}]\nclusters: [{name: " cluster                              \
    ", cluster: {server: 'https://" server "'}}]\n"

static void test_files(void **state)
{
    (void)state;
    put("one", PART("a", "x", "one-x"));
    put("two", PART("b", "w", "two-w"));
    put("three", "contexts: [{name: a, context: {cluster: w}}, {name: c, context: {cluster: w}}]\n"
                 "clusters: [{name: x, cluster: {server: 'https://three-x'}}]\n");
    _cleanup_free_ char *one = mem_printf("%s/one", folder);
    _cleanup_free_ char *list =
        mem_printf("%s/none::%s/one:%s/two:%s/three", folder, folder, folder, folder);
    _cleanup_free_ char *none = mem_printf("%s/none:%s/nothing", folder, folder);
    _cleanup_free_ char *bad = mem_printf("%s/one:%s/bad", folder, folder);
    load(one, NULL, "https://one-x");

    setenv("KUBECONFIG", list, 1);
    load(NULL, NULL, "https://one-x");
    load(NULL, "a", "https://one-x"); /* the first that has it */
    load(NULL, "b", "https://two-w");
    load(NULL, "c", "https://two-w"); /* what one file names another has */

    struct kube_config c;
    struct err e = {0};
    setenv("KUBECONFIG", none, 1);
    assert_int_equal(kube_config_load(NULL, NULL, &c, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    setenv("KUBECONFIG", bad, 1);
    assert_int_equal(kube_config_load(NULL, NULL, &c, &e), -1);
    assert_non_null(strstr(e.msg, "/bad"));

    setenv("KUBECONFIG", "", 1);
    setenv("HOME", folder, 1);
    assert_int_equal(kube_config_load(NULL, NULL, &c, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "/.kube/config"));
    _cleanup_free_ char *usual = mem_printf("%s/.kube", folder);
    assert_int_equal(file_make_dirs(usual, 0700, &e), 0);
    put(".kube/config", PART("h", "h", "home"));
    load(NULL, NULL, "https://home");
    unsetenv("KUBECONFIG");
}

static void test_in_cluster(void **state)
{
    (void)state;
    struct kube_config c;
    struct err e = {0};
    assert_int_equal(kube_config_in_cluster(folder, &c, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(kube_config_in_cluster(folder, &c, &e), -1);
    assert_non_null(strstr(e.msg, "ca.crt"));
    put("ca.crt", PEM);
    assert_int_equal(kube_config_in_cluster(folder, &c, &e), 0);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    assert_string_equal(c.token, "abc");
    assert_non_null(c.token_file);
    assert_string_equal(c.ns, "default");
    kube_config_done(&c);
    put("namespace", "mine\n");
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    assert_int_equal(kube_config_in_cluster(folder, &c, &e), 0);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.ns, "mine");
    kube_config_done(&c);
    setenv("KUBERNETES_SERVICE_PORT", "x", 1);
    assert_int_equal(kube_config_in_cluster(folder, &c, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parsed),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_secrets),    cmocka_unit_test(test_files),
        cmocka_unit_test(test_in_cluster),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
