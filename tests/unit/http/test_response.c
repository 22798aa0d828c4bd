/*
 * Answers of servers, good and bad: each is read whole, byte by byte, and in pieces of every size in
 * between, and must come out the same.
 */
#include "http/response.h"
#include "unit.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* What came of an answer: "STATUS body", "STATUS body|" when the connection may be kept, or an error. */
static void read_answer(const char *bytes, size_t n, bool head, size_t piece, struct str *out,
                        struct http_response *response)
{
    struct http_reader r;
    struct err e = {0};
    struct str body = {0};
    int status = 0;
    size_t at = 0;
    http_reader_init(&r, head, response);
    while (status == 0 && at < n && !http_reader_complete(&r)) {
        size_t most = n - at < piece ? n - at : piece, used = 0, got = 0;
        const char *part = NULL;
        status = http_reader_feed(&r, bytes + at, most, &used, &part, &got, &e);
        if (status == 0) {
            assert_true(used > 0 && used <= most);
            if (got)
                str_append_n(&body, part, got);
        }
        at += used;
    }
    if (status == 0 && !http_reader_complete(&r))
        status = http_reader_end(&r, &e);
    if (status < 0)
        str_appendf(out, "%s %s", err_code_name(e.code), e.reason);
    else
        str_appendf(out, "%u %s%s%s", response->status, str_get(&body), r.keep ? "|" : "",
                    at < n ? "+" : "");
    http_reader_done(&r);
    str_done(&body);
}

static const char bad[] = "INTERNAL InvalidResponse";
static const char cut[] = "UNAVAILABLE ConnectionLost";

static const struct {
    const char *bytes, *is;
    bool head;
} table[] = {
    /* lengths */
    {OK "Content-Length: 5\r\n\r\nhello", "200 hello|"},
    {OK "content-length:5  \r\n\r\nhello", "200 hello|"},
    {OK "Content-Length: 5\r\n\r\nhello and more", "200 hello|+"},
    {OK "Content-Length: 0\r\n\r\n", "200 |"},
    {OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "200 hello|"},
    {OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", bad},
    {OK "Content-Length: 5, 5\r\n\r\nhello", bad},
    {OK "Content-Length: -5\r\n\r\nhello", bad},
    {OK "Content-Length: +5\r\n\r\nhello", bad},
    {OK "Content-Length: 0x5\r\n\r\nhello", bad},
    {OK "Content-Length: \r\n\r\nhello", bad},
    {OK "Content-Length: 99999999999999999999\r\n\r\n", bad},
    {OK "Content-Length: 5\r\n\r\nhell", cut},
    /* no length */
    {OK "\r\nall of it", "200 all of it"},
    {OK "\r\n", "200 "},
    {"HTTP/1.0 200 OK\r\n\r\nx", "200 x"},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "200 x"},
    /* no body */
    {OK "Content-Length: 5\r\n\r\n", "200 |", true},
    {OK "Transfer-Encoding: chunked\r\n\r\n", "200 |", true},
    {OK "\r\n", "200 |", true},
    {"HTTP/1.1 204 No Content\r\n\r\n", "204 |"},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "204 |"},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 |"},
    /* chunks */
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 hello|"},
    {OK "Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "200 hello|"},
    {OK "Transfer-Encoding: chunked\r\n\r\n00000A\r\n0123456789\r\n000\r\n\r\n", "200 0123456789|"},
    {OK "Transfer-Encoding: chunked\r\n\r\na;b=\"c\" ;d\r\n0123456789\r\n0;x\r\n\r\n",
     "200 0123456789|"},
    {OK "Transfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "200 x|"},
    {OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nmore", "200 x|+"},
    {OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 |"},
    {OK "Transfer-Encoding: chunked\r\n\r\n", cut},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", cut},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", cut},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello world\r\n0\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n;x\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n-1\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n5;x\nhello\r\n0\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\rhello", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\n\r\n0000000000000000000000005\r\nhello\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", bad},
    {OK "Transfer-Encoding: gzip\r\n\r\n", bad},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n", bad},
    {OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", bad},
    /* connections */
    {OK "Connection: close\r\nContent-Length: 1\r\n\r\nx", "200 x"},
    {OK "Connection: a, Close ,b\r\nContent-Length: 1\r\n\r\nx", "200 x"},
    {OK "Connection: closed\r\nContent-Length: 1\r\n\r\nx", "200 x|"},
    /* first lines */
    {"HTTP/1.1 418\r\nContent-Length: 0\r\n\r\n", "418 |"},
    {"HTTP/1.1 418 \r\nContent-Length: 0\r\n\r\n", "418 |"},
    {"HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "200 x|"},
    {"", cut},
    {"HTTP/1.1 200", cut},
    {OK "Content-Le", cut},
    {"\r\n" OK "\r\n", bad},
    {"HTTP/2 200 OK\r\n\r\n", bad},
    {"HTTP/1.2 200 OK\r\n\r\n", bad},
    {"http/1.1 200 OK\r\n\r\n", bad},
    {"HTTP/1.1  200 OK\r\n\r\n", bad},
    {"HTTP/1.1 20 OK\r\n\r\n", bad},
    {"HTTP/1.1 2000 OK\r\n\r\n", bad},
    {"HTTP/1.1 099 OK\r\n\r\n", bad},
    {"HTTP/1.1 2OO OK\r\n\r\n", bad},
    {"SSH-2.0-OpenSSH\r\n", bad},
    /* headers */
    {OK "Nothing\r\n\r\n", bad},
    {OK ": x\r\n\r\n", bad},
    {OK "A B: x\r\n\r\n", bad},
    {OK "A : x\r\n\r\n", bad},
    {OK "A: x\r\n folded\r\n\r\n", bad},
    {OK "A: x\ry\r\n\r\n", bad},
    {OK "A: \x01\r\n\r\n", bad},
    {OK "A:\r\nB:\tx\r\nContent-Length: 0\r\n\r\n", "200 |"},
    /* several */
    {"HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", "200 x|"},
    {"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\nConnection: close\r\n\r\n" OK
     "Content-Length: 1\r\n\r\nx",
     "200 x|"},
    {"HTTP/1.1 100 Continue\r\n\r\n", cut},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", bad},
};

static void test_answers(void **state)
{
    (void)state;
    struct http_response response = {0};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t n = strlen(table[i].bytes);
        for (size_t piece = n + 1; piece > 0; piece--) {
            _cleanup_(str_done) struct str got = {0};
            /* at its very end, so that reading beyond it is seen */
            char *copy = mem_alloc(n + 1);
            memcpy(copy + 1, table[i].bytes, n);
            read_answer(copy + 1, n, table[i].head, piece, &got, &response);
            if (!str_eq(got.p, table[i].is))
                fail_msg("%zu in pieces of %zu: %s: got '%s'", i, piece, table[i].bytes, got.p);
            free(copy);
        }
    }
    http_response_done(&response);
}

static void test_nul(void **state)
{
    (void)state;
    struct http_response response = {0};
    _cleanup_(str_done) struct str got = {0};
    static const char bytes[] = OK "A: x\0y\r\n\r\n";
    read_answer(bytes, sizeof(bytes) - 1, false, 1, &got, &response);
    assert_string_equal(got.p, bad);
    http_response_done(&response);
}

/* Servers that never stop: each is ended after a bounded number of bytes. */
static void test_endless(void **state)
{
    (void)state;
    static const struct {
        const char *start, *again;
    } endless[] = {
        {"", "H"},
        {"HTTP/1.1 200 ", "x"},
        {OK, "x"},
        {OK "A: ", "x"},
        {OK, "A: x\r\n"},
        {"", "HTTP/1.1 100 Continue\r\n\r\n"},
        {OK "Transfer-Encoding: chunked\r\n\r\n", "0"},
        {OK "Transfer-Encoding: chunked\r\n\r\n1;", "x"},
        {OK "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: x\r\n"},
        {OK "Transfer-Encoding: chunked\r\n\r\n0\r\n", "x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(endless); i++) {
        struct http_response response = {0};
        struct http_reader r;
        struct err e = {0};
        const char *bytes = endless[i].start, *body;
        size_t total = 0, used, n;
        http_reader_init(&r, false, &response);
        int status = 0;
        for (; status == 0 && total < 2 * HTTP_HEAD_MAX; bytes = endless[i].again) {
            for (size_t at = 0; status == 0 && bytes[at]; at += used, total += used) {
                used = 0;
                status = http_reader_feed(&r, bytes + at, strlen(bytes + at), &used, &body, &n, &e);
            }
            assert_true(r.line.cap <= 2 * HTTP_HEAD_MAX);
        }
        assert_int_equal(status, -1);
        assert_int_equal(e.code, ERR_INTERNAL);
        assert_true(total <= HTTP_HEAD_MAX + HTTP_EXTENSION_MAX);
        http_reader_done(&r);
        http_response_done(&response);
    }
}

/* As long as allowed, to the byte. */
static void test_longest_head(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct http_response response = {0};
        _cleanup_(str_done) struct str bytes = {0}, got = {0};
        str_append(&bytes, OK "Content-Length: 0\r\nA: ");
        while (bytes.len < (size_t)HTTP_HEAD_MAX - 4 + (size_t)more)
            str_append_c(&bytes, 'x');
        str_append(&bytes, "\r\n\r\n");
        read_answer(bytes.p, bytes.len, false, 1000, &got, &response);
        assert_string_equal(got.p, more ? bad : "200 |");
        http_response_done(&response);
    }
}

static void test_headers(void **state)
{
    (void)state;
    struct http_response response = {0};
    _cleanup_(str_done) struct str bytes = {0}, got = {0};
    str_append(&bytes,
               "HTTP/1.1 103 Early\r\nWarning: 299 - \"early\"\r\nRetry-After: 9\r\n\r\n" OK
               "Content-Length: 0\r\nContent-Type:  text/plain; a=b \r\nretry-after: 7\r\n");
    for (int i = 0; i < 20; i++)
        str_appendf(&bytes, "Warning: 299 - \"%d\"\r\n", i);
    str_append(&bytes, "\r\n");
    for (int round = 0; round < 2; round++) { /* nothing is left of an earlier response */
        str_clear(&got);
        read_answer(bytes.p, bytes.len, false, 1, &got, &response);
        assert_string_equal(got.p, "200 |");
        assert_string_equal(response.content_type, "text/plain; a=b");
        assert_int_equal(response.retry_after, 7);
        assert_true(str_starts_with(response.warnings.p, "299 - \"0\"\n299 - \"1\"\n"));
        assert_true(str_ends_with(response.warnings.p, "299 - \"15\"\n"));
    }
    http_response_done(&response);
}

static void test_retry_after(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        unsigned is;
    } values[] = {{"1", 1},   {"3600", 3600}, {"99999999999", 3600},
                  {"0", 0},   {"-1", 0},      {"soon", 0},
                  {"1.5", 0}, {"", 0},        {"Fri, 31 Dec 1999 23:59:59 GMT", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        struct http_response response = {0};
        _cleanup_(str_done) struct str bytes = {0}, got = {0};
        str_appendf(&bytes, OK "Content-Length: 0\r\nRetry-After: %s\r\n\r\n", values[i].value);
        read_answer(bytes.p, bytes.len, false, 7, &got, &response);
        assert_int_equal(response.retry_after, values[i].is);
        http_response_done(&response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_nul),
        cmocka_unit_test(test_endless), cmocka_unit_test(test_longest_head),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_retry_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
