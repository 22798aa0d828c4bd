#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit.h"

static void test_allocation(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 4096, 1000000};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_free_ char *p = mem_alloc(sizes[i]);
        assert_non_null(p);
        memset(p, 1, sizes[i]);
        _cleanup_free_ char *z = mem_zalloc(sizes[i]);
        assert_non_null(z);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(z[j], 0);
    }
    char *p = mem_realloc(NULL, 4);
    memcpy(p, "abc", 4);
    p = mem_realloc(p, 1000);
    assert_string_equal(p, "abc");
    p = mem_realloc_array(p, 500, 4);
    assert_string_equal(p, "abc");
    p = mem_realloc(p, 0);
    assert_non_null(p);
    free(p);

    _cleanup_free_ struct rlimit *typed = NEW(struct rlimit);
    assert_int_equal(typed->rlim_cur, 0);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t n;
        const char *want;
    } table[] = {
        {"abc", 0, ""}, {"abc", 2, "ab"}, {"abc", 3, "abc"}, {"abc", 100, "abc"}, {"", 5, ""}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_free_ char *p = mem_strndup(table[i].s, table[i].n);
        assert_string_equal(p, table[i].want);
    }
    /* n may be the size of a buffer without a terminator */
    char raw[3] = {'x', 'y', 'z'};
    _cleanup_free_ char *p = mem_strndup(raw, sizeof(raw));
    assert_string_equal(p, "xyz");
    _cleanup_free_ char *q = mem_strndup("all", SIZE_MAX);
    assert_string_equal(q, "all");
    _cleanup_free_ char *d = mem_strdup("copy");
    assert_string_equal(d, "copy");
    _cleanup_free_ char *f = mem_printf("%s-%d", "a", 5);
    assert_string_equal(f, "a-5");
}

static int freed;

static void count_free(char *p)
{
    freed++;
    free(p);
}
DEFINE_CLEANUP(char *, count_free)

static char *make(bool fail)
{
    _cleanup_(count_freep) char *p = mem_strdup("x");
    return fail ? NULL : TAKE_PTR(p);
}

static void test_cleanup(void **state)
{
    (void)state;
    freed = 0;
    assert_null(make(true));
    assert_int_equal(freed, 1);
    char *p = make(false);
    assert_string_equal(p, "x");
    assert_int_equal(freed, 1);
    char *taken = TAKE_PTR(p);
    assert_null(p);
    free(taken);

    struct {
        int before;
        int member;
    } outer = {1, 2};
    assert_ptr_equal(container_of(&outer.member, typeof(outer), member), &outer);
}

/* What a program says and how it ends when there is no memory. */
static void assert_dies(void (*f)(void))
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(fds[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        f();
        _exit(0);
    }
    close(fds[1]);
    char text[256] = {0};
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_true(n > 0);
    assert_non_null(strstr(text, "out of memory"));
}

static void overflow(void)
{
    free(mem_realloc_array(NULL, SIZE_MAX / 2, 3));
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_dies(overflow);
}

static long resident_pages(void)
{
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
    fclose(f);
    return resident;
}

/* What is given back is there again, and what is the process' own was not given back. */
static void test_trim(void **state)
{
    (void)state;
    static const char *const relocated[] = {"pointers", "that the loader", "has set"};
    static char written[10000];
    memset(written, 'w', sizeof(written));
    long before = resident_pages();
    mem_trim();
    assert_true(resident_pages() < before);
    assert_string_equal(relocated[2], "has set");
    for (size_t i = 0; i < sizeof(written); i++)
        assert_true(written[i] == 'w');
    mem_trim();
    _cleanup_free_ char *text = mem_printf("%.3f", 2.5);
    assert_string_equal(text, "2.500");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocation), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_cleanup),    cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
