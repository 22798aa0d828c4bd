#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "k8s/apiserver/pod_log.h"
#include "unit.h"

static char *folder, *path;

static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-log-XXXXXX";
    folder = mem_strdup(mkdtemp(template));
    path = mem_printf("%s/log", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    int status = file_remove_tree(folder, NULL);
    free(folder);
    free(path);
    return status;
}

static void append(const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static struct pod_log_reader *reader(struct pod_log_options o)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return pod_log_reader_new(fd, &o);
}

static const struct pod_log_options everything = {.tail = -1, .limit = -1, .since_ns = INT64_MIN};

/* Reads until there is nothing; true at the end. */
static bool drain(struct pod_log_reader *r, bool ended, size_t at_once, struct str *out)
{
    char buf[4096];
    ssize_t n;
    while ((n = pod_log_read(r, ended, buf, at_once)) > 0)
        str_append_n(out, buf, (size_t)n);
    return n < 0;
}

static void assert_log(const char *text, struct pod_log_options o, const char *expected)
{
    static const size_t sizes[] = {4096, 1, 7};
    unlink(path);
    append(text, strlen(text));
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_(str_done) struct str out = {0};
        struct pod_log_reader *r = reader(o);
        assert_true(drain(r, true, sizes[i], &out));
        pod_log_reader_free(r);
        assert_string_equal(str_get(&out), expected);
    }
}

#define T0 "2026-01-02T03:04:05.000000000Z "
#define T1 "2026-01-02T03:04:06Z "

static void test_lines(void **state)
{
    (void)state;
    static const int64_t t1 = 1767323046 * 1000000000LL;
    static const struct {
        const char *text;
        int64_t tail, limit, since;
        bool timestamps;
        const char *expected;
    } cases[] = {
        {"", -1, -1, INT64_MIN, false, ""},
        {"\n\n", -1, -1, INT64_MIN, false, "\n\n"},
        {T0 "a\n" T1 "b", -1, -1, INT64_MIN, false, "a\nb"},
        {T0 "a\n" T1 "b\n", -1, -1, INT64_MIN, true, T0 "a\n" T1 "b\n"},
        {T0 "\n", -1, -1, INT64_MIN, false, "\n"},
        {"2026-01-02T03:04:05Z\n", -1, -1, INT64_MIN, false, "\n"},
        {T0 T1 "own time\n", -1, -1, INT64_MIN, false, T1 "own time\n"},
        {"2026-13-02T03:04:05Z no time\n", -1, -1, INT64_MIN, false,
         "2026-13-02T03:04:05Z no time\n"},
        {T0 "a\nwith a\n" T1 "b\nwith b\n", -1, -1, t1, false, "b\nwith b\n"},
        {T0 "a\n" T1 "b\n", 1, -1, INT64_MIN, false, "b\n"},
        {T0 "a\n" T1 "b", 1, -1, INT64_MIN, false, "b"},
        {T0 "a\n" T1 "b\n", 2, -1, INT64_MIN, false, "a\nb\n"},
        {T0 "a\n" T1 "b\n", 0, -1, INT64_MIN, false, ""},
        {"\n\n\n", 2, -1, INT64_MIN, false, "\n\n"},
        {T0 "abc\n" T1 "def\n", -1, 5, INT64_MIN, false, "abc\nd"},
        {T0 "abc\n", -1, 100, INT64_MIN, false, "abc\n"},
        {T0 "abc\n", -1, 1, INT64_MIN, false, "a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pod_log_options o = {.tail = cases[i].tail,
                                    .limit = cases[i].limit,
                                    .since_ns = cases[i].since,
                                    .timestamps = cases[i].timestamps};
        assert_log(cases[i].text, o, cases[i].expected);
    }
}

/* A line longer than what is kept goes out in pieces, and a tail reaches over many blocks. */
static void test_long(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str text = {0}, expected = {0}, out = {0};
    str_append(&text, T0);
    for (int i = 0; i < 200000; i++)
        str_append_c(&expected, (char)('a' + i % 26));
    str_append(&text, expected.p);
    str_append(&text, "\n");
    str_append(&expected, "\n");
    append(text.p, text.len);
    struct pod_log_reader *r = reader(everything);
    assert_true(drain(r, true, 4096, &out));
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(out.p, expected.p, out.len);
    pod_log_reader_free(r);

    append(T1 "last\n", strlen(T1 "last\n"));
    struct pod_log_options tail = everything;
    tail.tail = 2;
    str_clear(&out);
    r = reader(tail);
    assert_true(drain(r, true, 4096, &out));
    assert_int_equal(out.len, expected.len + strlen("last\n"));
    pod_log_reader_free(r);
}

static void test_follow(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str out = {0};
    struct pod_log_options o = everything;
    o.follow = true;
    append(T0 "a\n2026", strlen(T0 "a\n2026"));
    struct pod_log_reader *r = reader(o);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    assert_false(pod_log_is_written(r));
    assert_int_equal(flock(writer, LOCK_EX | LOCK_NB), 0);
    assert_true(pod_log_is_written(r));
    close(writer);
    assert_false(pod_log_is_written(r));
    assert_false(drain(r, false, 4096, &out));
    assert_string_equal(str_get(&out), "a\n"); /* half a line is not sent: its time is not known */
    append("-01-02T03:04:06Z b\nc", strlen("-01-02T03:04:06Z b\nc"));
    assert_false(drain(r, false, 4096, &out));
    assert_string_equal(str_get(&out), "a\nb\n");
    assert_true(drain(r, true, 4096, &out));
    assert_string_equal(str_get(&out), "a\nb\nc");
    assert_int_equal(truncate(path, 0), 0);
    append(T1 "anew\n", strlen(T1 "anew\n"));
    drain(r, false, 4096, &out);
    assert_true(str_ends_with(str_get(&out), "anew\n"));
    pod_log_reader_free(r);
}

static void test_files(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(pod_log_open_file(folder, "n", "ns", "p", "c", false, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    _cleanup_free_ char *pod = mem_printf("%s/ns/p", folder);
    _cleanup_free_ char *log = mem_printf("%s/c.log", pod);
    _cleanup_free_ char *link = mem_printf("%s/d.log", pod);
    _cleanup_free_ char *directory = mem_printf("%s/e.log", pod);
    _cleanup_free_ char *pipe = mem_printf("%s/f.log", pod);
    assert_int_equal(file_make_dirs(directory, 0700, &e), 0);
    assert_int_equal(file_replace(log, "x", 1, 0600, &e), 0);
    assert_int_equal(symlink(log, link), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int fd = pod_log_open_file(folder, "n", "ns", "p", "c", false, &e);
    assert_true(fd >= 0);
    close(fd);
    static const char *const refused[] = {"d", "e", "f"};
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        assert_int_equal(pod_log_open_file(folder, "n", "ns", "p", refused[i], false, &e), -1);
    assert_int_equal(pod_log_open_file(folder, "n", "ns", "p", "c", true, &e), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_lines), TEST(test_long), TEST(test_follow),
                                       TEST(test_files)};
    return cmocka_run_group_tests_name("pod_log", tests, NULL, NULL);
}
