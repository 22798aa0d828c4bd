#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit.h"

static struct clock_manual clock_;
static int pipe_[2];

static int open_pipe(void **state)
{
    (void)state;
    clock_manual_init(&clock_, 1767323045678901234);
    log_set_clock(&clock_.clock);
    return pipe2(pipe_, O_CLOEXEC | O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    log_init(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    close(pipe_[0]);
    return close(pipe_[1]);
}

/* What was written since; a pipe keeps no borders, so it is read after each line. */
static const char *written(void)
{
    static char buf[3 * LOG_LINE_MAX];
    ssize_t n = read(pipe_[0], buf, sizeof(buf) - 1);
    buf[n < 0 ? 0 : n] = '\0';
    return buf;
}

#define TS "2026-01-02T03:04:05.678Z"

static void test_text(void **state)
{
    (void)state;
    log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_DEBUG);
    log_info("pool imported", LOG_S("pool", "tank"), LOG_I("devices", 3));
    assert_string_equal(written(), TS " INFO  pool imported pool=tank devices=3\n");
    log_error("no fields");
    assert_string_equal(written(), TS " ERROR no fields\n");
    log_warn("w", LOG_S("k", "two words"), LOG_S("empty", ""), LOG_S("none", NULL));
    assert_string_equal(written(), TS " WARN  w k=\"two words\" empty=\"\" none=null\n");
    log_debug("numbers", LOG_I("least", INT64_MIN), LOG_U("most", UINT64_MAX), LOG_B("t", true),
              LOG_B("f", false), LOG_SECRET("password"));
    assert_string_equal(written(), TS " DEBUG numbers least=-9223372036854775808 "
                                      "most=18446744073709551615 t=true f=false "
                                      "password=[redacted]\n");

    struct err e;
    err_set(&e, ERR_NOT_FOUND, "NotFound", "no pool \"%s\"", "tank");
    log_error("cannot import", LOG_ERR(&e), LOG_I("n", 1));
    assert_string_equal(written(), TS " ERROR cannot import code=NOT_FOUND reason=NotFound "
                                      "error=\"no pool \\\"tank\\\"\" n=1\n");
    log_error("no error", LOG_ERR(NULL));
    assert_string_equal(written(), TS " ERROR no error\n");
}

static void test_json(void **state)
{
    (void)state;
    log_init(pipe_[1], LOG_FORMAT_JSON, LOG_LEVEL_DEBUG);
    log_info("pool imported", LOG_S("pool", "tank"), LOG_I("devices", 3));
    assert_string_equal(written(),
                        "{\"ts\":\"" TS "\",\"level\":\"info\",\"msg\":\"pool imported\","
                        "\"pool\":\"tank\",\"devices\":3}\n");
    log_error("no fields");
    assert_string_equal(written(),
                        "{\"ts\":\"" TS "\",\"level\":\"error\",\"msg\":\"no fields\"}\n");
    log_debug("numbers", LOG_I("least", INT64_MIN), LOG_U("most", UINT64_MAX), LOG_B("t", true),
              LOG_B("f", false), LOG_SECRET("password"), LOG_S("none", NULL), LOG_S("e", ""));
    assert_string_equal(written(),
                        "{\"ts\":\"" TS "\",\"level\":\"debug\",\"msg\":\"numbers\","
                        "\"least\":-9223372036854775808,\"most\":18446744073709551615,"
                        "\"t\":true,\"f\":false,\"password\":\"[redacted]\",\"none\":null,"
                        "\"e\":\"\"}\n");
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "NotFound", "no pool");
    log_warn("w", LOG_ERR(&e));
    assert_string_equal(written(), "{\"ts\":\"" TS "\",\"level\":\"warn\",\"msg\":\"w\","
                                   "\"code\":\"NOT_FOUND\",\"reason\":\"NotFound\","
                                   "\"error\":\"no pool\"}\n");
}

static void test_escaping(void **state)
{
    (void)state;
    static const struct {
        const char *value, *text, *json;
    } table[] = {
        {"plain", "plain", "\"plain\""},
        {"a=b", "\"a=b\"", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\""},
        {"x\ny", "\"x\\ny\"", "\"x\\ny\""},
        {"\t\r", "\"\\t\\r\"", "\"\\t\\r\""},
        {"\x01\x1b[31m", "\"\\u0001\\u001b[31m\"", "\"\\u0001\\u001b[31m\""},
        {"\x7f", "\"\\u007f\"", "\"\\u007f\""},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"\xc2\x9b", "\"\\u009b\"", "\"\\u009b\""},     /* CSI in Latin-1 */
        {"\xe2\x80\xa8", "\"\\u2028\"", "\"\\u2028\""}, /* line separator */
        {"\xe2\x80\xae", "\"\\u202e\"", "\"\\u202e\""}, /* right to left */
        {"a\xff"
         "b",
         "\"a\\xffb\"",
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xc3", "\"\\xc3\"", "\"\xef\xbf\xbd\""},                      /* cut short */
        {"\xc0\xaf", "\"\\xc0\\xaf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""}, /* longer than needed */
        {"\xed\xa0\x80", "\"\\xed\\xa0\\x80\"",
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* half a surrogate pair */
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char want[256];
        log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
        log_info("m", LOG_S("k", table[i].value));
        snprintf(want, sizeof(want), TS " INFO  m k=%s\n", table[i].text);
        assert_string_equal(written(), want);

        log_init(pipe_[1], LOG_FORMAT_JSON, LOG_LEVEL_INFO);
        log_info("m", LOG_S("k", table[i].value));
        snprintf(want, sizeof(want),
                 "{\"ts\":\"" TS "\",\"level\":\"info\",\"msg\":\"m\",\"k\":%s}\n", table[i].json);
        assert_string_equal(written(), want);
    }
    /* Neither message nor key can begin a new line. */
    log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_info("a \"b\"\nc", LOG_I("k\n", 1));
    assert_string_equal(written(), TS " INFO  a \"b\"\\nc k\\n=1\n");
    log_init(pipe_[1], LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    log_info("a \"b\"\nc", LOG_I("k\n", 1));
    assert_string_equal(written(),
                        "{\"ts\":\"" TS "\",\"level\":\"info\",\"msg\":\"a \\\"b\\\"\\nc\","
                        "\"k\\n\":1}\n");
}

static int evaluated;

static const char *expensive(void)
{
    evaluated++;
    return "x";
}

static void test_levels(void **state)
{
    (void)state;
    static const struct {
        enum log_level set;
        int lines;
    } table[] = {
        {LOG_LEVEL_ERROR, 1},
        {LOG_LEVEL_WARN, 2},
        {LOG_LEVEL_INFO, 3},
        {LOG_LEVEL_DEBUG, 4},
    };
    log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        log_set_level(table[i].set);
        evaluated = 0;
        log_error("e", LOG_S("k", expensive()));
        log_warn("w", LOG_S("k", expensive()));
        log_info("i", LOG_S("k", expensive()));
        log_debug("d", LOG_S("k", expensive()));
        int lines = 0;
        for (const char *p = written(); (p = strchr(p, '\n')); p++)
            lines++;
        assert_int_equal(lines, table[i].lines);
        assert_int_equal(evaluated, table[i].lines);
    }
}

/* Whatever the sizes, a line is whole, fits a pipe, and says so when it is cut. */
static void test_long_lines(void **state)
{
    (void)state;
    _cleanup_free_ char *big = mem_zalloc(100001);
    static const char *const fills[] = {"x", "\n", "\xff", "\xc3\xa9", " "};
    for (size_t f = 0; f < ARRAY_SIZE(fills); f++) {
        for (size_t i = 0, n = strlen(fills[f]); i + n <= 100000; i += n)
            memcpy(big + i, fills[f], n);
        for (int json = 0; json < 2; json++) {
            log_init(pipe_[1], json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
            log_info("long", LOG_S("a", big), LOG_I("b", 1), LOG_S("c", big), LOG_S("d", big),
                     LOG_S("e", big), LOG_I("f", 2), LOG_S("g", "short"));
            const char *line = written();
            size_t n = strlen(line);
            assert_true(n <= PIPE_BUF && n > 3500);
            assert_ptr_equal(strchr(line, '\n'), line + n - 1);
            assert_true(str_ends_with(line, json ? "\"cut\":true}\n" : " cut=true\n"));
            assert_non_null(strstr(line, "..."));
            assert_non_null(strstr(line, json ? ",\"b\":1" : " b=1"));
            for (const char *p = line; *p;) {
                uint32_t c;
                size_t len = str_utf8(p, strlen(p), &c);
                assert_true(len > 0);
                p += len;
            }
        }
    }
    /* Each length around the border, so that every way to run out of room is met. */
    memset(big, 'x', 5000);
    for (size_t n = 300; n < 1100; n++) {
        big[n] = '\0';
        log_init(pipe_[1], n % 2 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
        log_info("m", LOG_S("a", big), LOG_S("b", big), LOG_S("c", big), LOG_S("d", big),
                 LOG_S("e", "1 2"), LOG_I("f", 6));
        const char *line = written();
        bool cut = strstr(line, n % 2 ? ",\"cut\":true}\n" : " cut=true\n") != NULL;
        bool whole = strstr(line, n % 2 ? ",\"f\":6}\n" : " f=6\n") != NULL;
        assert_true(cut != whole);
        assert_true(strlen(line) <= PIPE_BUF);
        size_t quotes = 0;
        for (const char *p = line; *p; p++)
            quotes += *p == '"';
        assert_int_equal(quotes % 2, 0);
        big[n] = 'x';
    }
}

static void test_errno_and_lost_lines(void **state)
{
    (void)state;
    /* A full pipe that does not block loses the line and nothing else. */
    log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    char fill[PIPE_BUF] = {0};
    size_t filled = 0;
    while (write(pipe_[1], fill, sizeof(fill)) > 0)
        filled += sizeof(fill);
    errno = ENOTTY;
    log_info("lost");
    assert_int_equal(errno, ENOTTY);
    size_t there = 0;
    for (ssize_t n; (n = read(pipe_[0], fill, sizeof(fill))) > 0;)
        there += (size_t)n;
    assert_int_equal(there, filled);
    /* So does one that nobody reads any more. */
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    close(pipe_[0]);
    errno = ENOTTY;
    log_info("lost too");
    assert_int_equal(errno, ENOTTY);
    signal(SIGPIPE, handler);
    pipe_[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    log_init(-1, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_info("nowhere");
    assert_int_equal(errno, EBADF); /* set by log_init's isatty, kept by log_info */
}

static void test_colour(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        skip(); /* no pseudo-terminals here */
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    char buf[256] = {0};
    log_init(slave, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_error("red");
    assert_true(read(master, buf, sizeof(buf) - 1) > 0);
    assert_true(str_starts_with(buf, TS " \033[31mERROR\033[0m red"));

    memset(buf, 0, sizeof(buf));
    log_init(slave, LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    log_error("plain");
    assert_true(read(master, buf, sizeof(buf) - 1) > 0);
    assert_null(strchr(buf, '\033'));
    close(slave);
    close(master);
}

enum { WRITERS = 4, LINES = 200, FILL = 1500 };

static void *write_lines(void *arg)
{
    char fill[FILL + 1] = {0};
    memset(fill, *(const char *)arg, FILL);
    for (int i = 0; i < LINES; i++)
        log_info("line", LOG_S("fill", fill));
    return NULL;
}

/* Threads and processes write to one pipe that is always nearly full: every line arrives whole. */
static void test_lines_never_mix(void **state)
{
    (void)state;
    assert_int_equal(fcntl(pipe_[0], F_SETFL, 0), 0);
    assert_int_equal(fcntl(pipe_[1], F_SETFL, 0), 0);
    log_init(pipe_[1], LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    static const char letters[2 * WRITERS + 1] = "abcdefgh";
    pid_t child = fork();
    assert_true(child >= 0);
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines,
                                        (void *)&letters[child == 0 ? i : WRITERS + i]),
                         0);
    if (child == 0) {
        for (int i = 0; i < WRITERS; i++)
            pthread_join(threads[i], NULL);
        _exit(0);
    }

    FILE *in = fdopen(dup(pipe_[0]), "r");
    assert_non_null(in);
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    int seen[256] = {0};
    for (int i = 0; i < 2 * WRITERS * LINES; i++) {
        assert_true(getline(&line, &size, in) > 0);
        const char *fill = strstr(line, " INFO  line fill=");
        assert_non_null(fill);
        fill += strlen(" INFO  line fill=");
        assert_int_equal(strspn(fill, (char[]){*fill, '\0'}), FILL);
        assert_string_equal(fill + FILL, "\n");
        seen[(unsigned char)*fill]++;
    }
    for (int i = 0; i < 2 * WRITERS; i++)
        assert_int_equal(seen[(unsigned char)letters[i]], LINES);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    fclose(in);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_json, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_escaping, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_levels, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_long_lines, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_errno_and_lost_lines, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_colour, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_lines_never_mix, open_pipe, close_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
