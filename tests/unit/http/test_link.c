/*
 * What a client does about connections: keeps and reopens them, tries addresses, and waits no longer
 * than it is told, at every stage. Servers here do as a script says.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/un.h>

#include "base/clock.h"
#include "http/client.h"
#include "http/raw_server.h"

enum { MILLISECOND = 1000000 };

#define OK     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define CLOSES "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

/*
 * The resolver, in place of the system's: two.test has two addresses, and nobody listens at the
 * first; slow.test is not found until somebody posts.
 */
static sem_t found;
static _Atomic unsigned begun; /* lookups of slow.test */

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    static const char *const two[] = {"127.0.0.2", "127.0.0.1"};
    struct in_addr numeric;
    bool is_numeric = inet_pton(AF_INET, host, &numeric) == 1;
    if (hints->ai_flags & AI_NUMERICHOST && !is_numeric)
        return EAI_NONAME;
    if (str_eq(host, "slow.test")) {
        begun++;
        sem_wait(&found);
    }
    if (!is_numeric && !str_eq(host, "two.test"))
        return EAI_NONAME;
    struct addrinfo *all = mem_zalloc(2 * sizeof(*all));
    struct sockaddr_in *in = mem_zalloc(2 * sizeof(*in));
    for (size_t i = 0; i < 2; i++) {
        in[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(service))};
        inet_pton(AF_INET, is_numeric ? host : two[i], &in[i].sin_addr);
        all[i] = (struct addrinfo){.ai_family = AF_INET,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_addr = (void *)&in[i],
                                   .ai_addrlen = sizeof(in[i])};
    }
    if (!is_numeric)
        all[0].ai_next = &all[1];
    *ret = all;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    free(list->ai_addr);
    free(list);
}

static struct http_client *plain(void)
{
    struct err e = {0};
    struct http_client *c = http_client_new(&(struct http_client_options){0}, &e);
    assert_non_null(c);
    return c;
}

static const char *url_of(const char *scheme, const char *host, uint16_t port)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s://%s:%u/a", scheme, host, port);
    return text;
}

/* "200 ok" or "CODE Reason" */
static const char *ask(struct http_client *c, const struct http_exchange *x)
{
    static char text[256];
    struct http_response r = {0};
    struct err e = {0};
    if (http_client_send(c, x, &r, &e) == 0)
        snprintf(text, sizeof(text), "%u %.100s", r.status, str_get(&r.body));
    else
        snprintf(text, sizeof(text), "%s %s", err_code_name(e.code), e.reason);
    http_response_done(&r);
    return text;
}

static const char *get(struct http_client *c, uint16_t port, const char *method)
{
    return ask(c, &(struct http_exchange){.method = method,
                                          .url = url_of("http", "127.0.0.1", port),
                                          .timeout_ns = 30 * CLOCK_SECOND});
}

#define SERVER(scripts) raw_server_new(scripts, ARRAY_SIZE(scripts))
#define _server_        _cleanup_(raw_server_freep) struct raw_server
#define _client_        _cleanup_(http_client_freep) struct http_client

static void test_kept(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {
        {{OK, "HTTP/1.1 204 No\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nA: b\r\n\r\n",
          "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", CLOSES},
         RAW_HOLD},
        {{"HTTP/1.1 200 OK\r\n\r\nok"}, RAW_CLOSE},
        {{OK "surplus"}, RAW_HOLD},
        {{OK}, RAW_HOLD},
    };
    static const char *const expected[] = {"200 ok", "204 ",   "200 ok", "404 ",
                                           "200 ok", "200 ok", "200 ok", "200 ok"};
    static const unsigned connections[] = {1, 1, 1, 1, 1, 2, 3, 4};
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_string_equal(get(c, s->port, "POST"), expected[i]);
        assert_int_equal(raw_get(s, &s->accepted), connections[i]);
    }
}

/* A server that closes between two requests, as they do when a connection is idle. */
static void test_closed_between(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{OK}}, {{OK}}, {{OK}}};
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    for (unsigned i = 0; i < ARRAY_SIZE(scripts); i++) {
        assert_string_equal(get(c, s->port, i % 2 ? "POST" : "GET"), "200 ok");
        raw_wait(s, &s->closed, i + 1);
    }
    assert_int_equal(s->accepted, 3);
}

static void test_once_more(void **state)
{
    (void)state;
    static const struct {
        const char *method, *result;
        struct raw_script first, second;
        unsigned connections;
    } table[] = {
        {"GET", "200 ok", {{OK}, RAW_READ_CLOSE}, {{OK}}, 2},
        {"HEAD", "200 ", {{OK}, RAW_READ_CLOSE}, {{OK}}, 2},
        {"POST", "UNAVAILABLE ConnectionLost", {{OK}, RAW_READ_CLOSE}, {{OK}}, 1},
        {"PATCH", "UNAVAILABLE ConnectionLost", {{OK}, RAW_READ_CLOSE}, {{OK}}, 1},
        {"DELETE", "UNAVAILABLE ConnectionLost", {{OK}, RAW_READ_CLOSE}, {{OK}}, 1},
        /* once, not for ever */
        {"GET", "UNAVAILABLE ConnectionLost", {{OK}, RAW_READ_CLOSE}, {{}, RAW_READ_CLOSE}, 2},
        /* something of an answer has come */
        {"GET", "UNAVAILABLE ConnectionLost", {{OK, "H"}}, {{OK}}, 1},
        {"GET", "INTERNAL InvalidResponse", {{OK, "X\r\n"}}, {{OK}}, 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct raw_script scripts[] = {table[i].first, table[i].second, {{OK}}};
        _server_ *s = SERVER(scripts);
        _client_ *c = plain();
        assert_string_equal(get(c, s->port, "GET"), "200 ok");
        assert_string_equal(get(c, s->port, table[i].method), table[i].result);
        assert_int_equal(raw_get(s, &s->accepted), table[i].connections);
    }
}

/* A connection that was never kept has nothing to repeat. */
static void test_no_answer(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{}, RAW_READ_CLOSE}, {{OK}}};
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    assert_string_equal(get(c, s->port, "GET"), "UNAVAILABLE ConnectionLost");
    assert_string_equal(get(c, s->port, "GET"), "200 ok");
}

static void test_early_answer(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {
        {{"HTTP/1.1 413 Large\r\nContent-Length: 1\r\n\r\nx"}, RAW_CLOSE, .early = true},
        {{OK}},
        {{"HTTP/1.1 413 Large\r\nContent-Length: 1\r\n\r\nx"}, RAW_HOLD, .early = true},
    };
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    size_t size = 64 << 20; /* more than sockets take */
    _cleanup_free_ char *body = mem_zalloc(size);
    struct http_exchange x = {.method = "POST",
                              .url = url_of("http", "127.0.0.1", s->port),
                              .body = body,
                              .body_size = size,
                              .timeout_ns = 30 * CLOCK_SECOND};
    assert_string_equal(ask(c, &x), "413 x");
    assert_string_equal(get(c, s->port, "GET"), "200 ok");
    raw_wait(s, &s->closed, 2);
    assert_string_equal(ask(c, &x), "413 x");
}

/* A body in many writes arrives as it was. */
static void test_long_body(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{OK, OK}, RAW_HOLD}};
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    size_t size = 5 << 20;
    _cleanup_free_ char *body = mem_zalloc(size);
    struct http_exchange x = {.method = "PUT",
                              .url = url_of("http", "127.0.0.1", s->port),
                              .body = body,
                              .body_size = size,
                              .timeout_ns = 30 * CLOCK_SECOND};
    assert_string_equal(ask(c, &x), "200 ok");
    assert_string_equal(get(c, s->port, "POST"), "200 ok"); /* the next begins in its place */
    assert_int_equal(raw_get(s, &s->accepted), 1);
}

static void test_slow_servers(void **state)
{
    (void)state;
    static const struct {
        struct raw_script script;
        int64_t timeout_ns, idle_ns;
        const char *result;
    } table[] = {
        {{{OK}, .drip_ms = 1}, 30 * CLOCK_SECOND, 10 * CLOCK_SECOND, "200 ok"},
        {{{}, RAW_HOLD}, 50 * MILLISECOND, 0, "DEADLINE_EXCEEDED Timeout"},
        {{{}, RAW_HOLD}, 0, 50 * MILLISECOND, "DEADLINE_EXCEEDED Timeout"},
        {{{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"}, RAW_HOLD},
         50 * MILLISECOND,
         0,
         "DEADLINE_EXCEEDED Timeout"},
        /* a byte now and then is no silence, and still no answer in time */
        {{{"H"}, RAW_REPEAT, .drip_ms = 5},
         60 * MILLISECOND,
         CLOCK_SECOND,
         "DEADLINE_EXCEEDED Timeout"},
        /* as fast as it can */
        {{{"A"}, RAW_REPEAT}, 30 * CLOCK_SECOND, 0, "INTERNAL InvalidResponse"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _server_ *s = raw_server_new(&table[i].script, 1);
        _client_ *c = plain();
        struct http_exchange x = {.url = url_of("http", "127.0.0.1", s->port),
                                  .timeout_ns = table[i].timeout_ns,
                                  .idle_ns = table[i].idle_ns};
        assert_string_equal(ask(c, &x), table[i].result);
    }
}

static int drop(void *context, const char *bytes, size_t n, struct err *e)
{
    (void)bytes, (void)e;
    *(size_t *)context += n;
    return 0;
}

/* A stream without a pause ends at its deadline too. */
static void test_endless_stream(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {
        {{"HTTP/1.1 200 OK\r\n\r\n"}, RAW_REPEAT},
    };
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    size_t total = 0;
    struct http_exchange x = {.url = url_of("http", "127.0.0.1", s->port),
                              .timeout_ns = 100 * MILLISECOND,
                              .receive = drop,
                              .context = &total};
    assert_string_equal(ask(c, &x), "DEADLINE_EXCEEDED Timeout");
    assert_true(total > 0);
}

/* Each stage at which a request can hang, ended by a deadline and by a cancel. */

static void *cancel_soon(void *context)
{
    poll(NULL, 0, 20); /* it works whenever it comes; most likely when the request hangs */
    http_cancel_fire(context);
    return NULL;
}

static void check_hang(struct http_client *c, const char *url)
{
    struct http_exchange x = {.url = url, .timeout_ns = 50 * MILLISECOND};
    int64_t start = clock_mono_ns(clock_system());
    assert_string_equal(ask(c, &x), "DEADLINE_EXCEEDED Timeout");
    assert_true(clock_mono_ns(clock_system()) - start < 5 * CLOCK_SECOND);

    _cleanup_(http_cancel_freep) struct http_cancel *cancel = http_cancel_new();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    x = (struct http_exchange){.url = url, .cancel = cancel};
    assert_string_equal(ask(c, &x), "CANCELLED Cancelled");
    pthread_join(thread, NULL);
}

static void test_hanging_lookup(void **state)
{
    (void)state;
    _client_ *c = plain();
    sem_init(&found, 0, 0);
    check_hang(c, "http://slow.test/");
    sem_post(&found);
    sem_post(&found);
    assert_string_equal(ask(c, &(struct http_exchange){.url = "http://none.test/"}),
                        "UNAVAILABLE UnknownHost");
}

/* Dead name servers cost a bounded number of threads. */
static void test_many_lookups(void **state)
{
    (void)state;
    enum { MANY = 100 };
    _client_ *c = plain();
    struct http_exchange x = {.url = "http://slow.test/", .timeout_ns = MILLISECOND};
    unsigned hung = 0, refused = 0;
    sem_init(&found, 0, 0);
    begun = 0;
    for (int i = 0; i < MANY; i++) {
        const char *result = ask(c, &x);
        hung += str_eq(result, "DEADLINE_EXCEEDED Timeout");
        refused += str_eq(result, "UNAVAILABLE TooManyLookups");
    }
    assert_int_equal(hung + refused, MANY);
    assert_in_range(refused, 1, MANY - 1); /* on a busy machine some time out before they look */
    assert_in_range(begun, 1, 32);
    for (int i = 0; i < MANY; i++)
        sem_post(&found);
    /* and they come back */
    x = (struct http_exchange){.url = "http://none.test/", .timeout_ns = 30 * CLOCK_SECOND};
    while (str_eq(ask(c, &x), "UNAVAILABLE TooManyLookups"))
        poll(NULL, 0, 1);
    assert_string_equal(ask(c, &x), "UNAVAILABLE UnknownHost");
}

/* A listener that takes nobody: when its queue is full the kernel drops whoever knocks. */
static void test_hanging_connect(void **state)
{
    (void)state;
    enum { KNOCKS = 4 };
    uint16_t port;
    int listener = raw_listen(0, &port), fds[KNOCKS];
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < KNOCKS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fds[i], (const void *)&to, sizeof(to));
    }
    _client_ *c = plain();
    check_hang(c, url_of("http", "127.0.0.1", port));
    for (int i = 0; i < KNOCKS; i++)
        close(fds[i]);
    close(listener);
}

static void test_hanging_handshake(void **state)
{
    (void)state;
    uint16_t port;
    int listener = raw_listen(8, &port);
    _client_ *c = plain();
    check_hang(c, url_of("https", "127.0.0.1", port));
    close(listener);
}

static void test_hanging_answer(void **state)
{
    (void)state;
    uint16_t port;
    int listener = raw_listen(8, &port);
    _client_ *c = plain();
    check_hang(c, url_of("http", "127.0.0.1", port));
    close(listener);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{OK}}, {{OK}}};
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    struct http_exchange x = {.url = url_of("http", "two.test", s->port),
                              .timeout_ns = 30 * CLOCK_SECOND};
    assert_string_equal(ask(c, &x), "200 ok");
    char host[64];
    snprintf(host, sizeof(host), "\nHost: two.test:%u\n", s->port);
    assert_non_null(strstr(s->request.p, host));
    raw_wait(s, &s->closed, 1);
    x = (struct http_exchange){
        .url = "http://elsewhere.test/b", .address = "127.0.0.1", .port = s->port};
    assert_string_equal(ask(c, &x), "200 ok");
    assert_non_null(strstr(s->request.p, "\nHost: elsewhere.test\n"));
}

static void test_unix_socket(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{OK, OK}}};
    char folder[] = "/tmp/test-link-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (const void *)&to, sizeof(to)) == 0 && listen(fd, 8) == 0);
    struct raw_server *s = raw_server_on(fd, scripts, 1);
    struct http_client *c =
        http_client_new(&(struct http_client_options){.unix_socket = path}, NULL);
    assert_string_equal(ask(c, &(struct http_exchange){.url = "http://any.test/"}), "200 ok");
    assert_string_equal(ask(c, &(struct http_exchange){.url = "http://any.test/"}), "200 ok");
    assert_int_equal(s->accepted, 1);
    http_client_free(c);
    raw_server_free(s);
    unlink(path);
    c = http_client_new(&(struct http_client_options){.unix_socket = path}, NULL);
    assert_string_equal(ask(c, &(struct http_exchange){.url = "http://any.test/"}),
                        "UNAVAILABLE NoConnection");
    http_client_free(c);
    rmdir(folder);
}

static void check_token(struct raw_server *s, struct http_client *c, const char *header)
{
    assert_string_equal(get(c, s->port, "GET"), "200 ok");
    pthread_mutex_lock(&s->lock);
    const char *found_header = strstr(s->request.p, "Authorization");
    assert_int_equal(header != NULL, found_header != NULL);
    if (header)
        assert_true(str_starts_with(found_header, header));
    pthread_mutex_unlock(&s->lock);
}

static void test_token(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {{{OK, OK, OK, OK}}};
    _server_ *s = SERVER(scripts);
    struct err e = {0};
    _client_ *c = http_client_new(&(struct http_client_options){.token = "first"}, &e);
    check_token(s, c, "Authorization: Bearer first\n");
    assert_int_equal(http_client_set_token(c, "second", &e), 0);
    check_token(s, c, "Authorization: Bearer second\n");
    assert_int_equal(http_client_set_token(c, "third\r\nX: y", &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    check_token(s, c, "Authorization: Bearer second\n");
    assert_int_equal(http_client_set_token(c, NULL, &e), 0);
    check_token(s, c, NULL);
    assert_null(http_client_new(&(struct http_client_options){.token = "a\n"}, &e));
}

static void test_head_of_response(void **state)
{
    (void)state;
    static const struct raw_script scripts[] = {
        {{"HTTP/1.1 503 Busy\r\nContent-Type: text/x\r\nRetry-After: 3\r\nWarning: 299 - \"a\"\r\n"
          "Warning: 299 - \"b\"\r\nContent-Length: 0\r\n\r\n",
          OK}},
    };
    _server_ *s = SERVER(scripts);
    _client_ *c = plain();
    struct http_response r = {0};
    struct http_exchange x = {.url = url_of("http", "127.0.0.1", s->port)};
    assert_int_equal(http_client_send(c, &x, &r, NULL), 0);
    assert_int_equal(r.status, 503);
    assert_int_equal(r.retry_after, 3);
    assert_string_equal(r.content_type, "text/x");
    assert_string_equal(r.warnings.p, "299 - \"a\"\n299 - \"b\"\n");
    assert_int_equal(http_client_send(c, &x, &r, NULL), 0);
    assert_int_equal(r.retry_after, 0);
    assert_string_equal(r.content_type, "");
    assert_int_equal(r.warnings.len, 0);
    http_response_done(&r);
}

static void test_requests_refused(void **state)
{
    (void)state;
    static const struct {
        const char *method, *header;
    } table[] = {
        {"GE T", NULL},     {"", NULL},
        {"GET\r\n", NULL},  {NULL, "Host: x"},
        {NULL, "X : y"},    {NULL, "content-length: 3"},
        {NULL, "X: y\r\n"}, {NULL, "Transfer-Encoding: chunked"},
        {NULL, ": y"},      {NULL, "connection: close"},
    };
    _client_ *c = plain();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct http_exchange x = {.method = table[i].method,
                                  .url = "http://127.0.0.1:1/",
                                  .headers = (const char *const[]){table[i].header, NULL}};
        assert_true(str_starts_with(ask(c, &x), "INVALID_ARGUMENT "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_closed_between),
        cmocka_unit_test(test_once_more),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_early_answer),
        cmocka_unit_test(test_long_body),
        cmocka_unit_test(test_slow_servers),
        cmocka_unit_test(test_endless_stream),
        cmocka_unit_test(test_hanging_lookup),
        cmocka_unit_test(test_many_lookups),
        cmocka_unit_test(test_hanging_connect),
        cmocka_unit_test(test_hanging_handshake),
        cmocka_unit_test(test_hanging_answer),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_head_of_response),
        cmocka_unit_test(test_requests_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
