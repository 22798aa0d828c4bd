/*
 * Nothing is opened or made outside of the folder, whatever lies in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "base/mem.h"
#include "unit.h"

static char top[64], inside[80], outside[80];
static int folder;

static void write_file(const char *in, const char *name)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", in, name);
    assert_int_equal(file_replace(path, "x", 1, 0600, NULL), 0);
}

static void make_link(const char *to, const char *name)
{
    _cleanup_free_ char *path = mem_printf("%s/%s", inside, name);
    assert_int_equal(symlink(to, path), 0);
}

static int before(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/orlop-beneath-%d", (int)getpid());
    snprintf(inside, sizeof(inside), "%s/in", top);
    snprintf(outside, sizeof(outside), "%s/out", top);
    assert_int_equal(file_make_dirs(inside, 0700, NULL), 0);
    assert_int_equal(file_make_dirs(outside, 0700, NULL), 0);
    write_file(inside, "file");
    write_file(outside, "secret");
    make_link("file", "good");
    make_link("../out/secret", "up");
    make_link(outside, "away");
    make_link("/", "root");
    folder = open(inside, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder < 0;
}

static int after(void **state)
{
    (void)state;
    close(folder);
    return file_remove_tree(top, NULL);
}

static void test_open(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int number;
    } cases[] = {
        {"file", 0},
        {"good", 0},
        {"./file", 0},
        {"none", ENOENT},
        {"up", EXDEV},
        {"away/secret", EXDEV},
        {"../out/secret", EXDEV},
        {"root/etc/passwd", EXDEV},
        {"/etc/passwd", EXDEV},

    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        errno = 0;
        int fd = beneath_open(folder, cases[i].path, O_RDWR);
        if ((fd >= 0) != !cases[i].number || (fd < 0 && errno != cases[i].number))
            fail_msg("%s: %d, %s", cases[i].path, fd, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    assert_int_equal(beneath_open(folder, "new", O_RDWR | O_CREAT), -1);
}

static void test_make(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "../out/new", "away/new", "a/../../out/new", "/tmp/new", "root/new", "up/x", ".."};
    _cleanup_(str_done) struct str real = {0};
    struct err e = {0};
    assert_int_equal(beneath_make(inside, "a/b/c", 0755, &real, &e), 0);
    _cleanup_free_ char *path = mem_printf("%s/a/b/c", inside);
    struct stat st;
    assert_true(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
    assert_true(str_ends_with(str_get(&real), "/in/a/b/c"));
    str_clear(&real);
    assert_int_equal(beneath_make(inside, "good", 0755, &real, &e), 0);
    assert_true(str_ends_with(str_get(&real), "/in/file"));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        e = (struct err){0};
        str_clear(&real);
        if (beneath_make(inside, wrong[i], 0755, &real, &e) == 0)
            fail_msg("%s was made at %s", wrong[i], str_get(&real));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    _cleanup_free_ char *made = mem_printf("%s/new", outside);
    assert_int_equal(access(made, F_OK), -1);
}

static void test_find(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum err_code code;
    } cases[] = {{"file", ERR_OK},
                 {"good", ERR_OK},
                 {"none", ERR_NOT_FOUND},
                 {"none/none", ERR_NOT_FOUND},
                 {"away/secret", ERR_INVALID_ARGUMENT},
                 {"../out/secret", ERR_INVALID_ARGUMENT}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_(str_done) struct str real = {0};
        struct err e = {0};
        assert_int_equal(beneath_find(inside, cases[i].path, &real, &e), cases[i].code ? -1 : 0);
        assert_int_equal(e.code, cases[i].code);
        assert_true(cases[i].code ? !real.len : str_ends_with(str_get(&real), "/in/file"));
    }
}

/* In a process of its own: there is no way back from a filter. */
static void test_without_the_kernel(void **state)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_SIZE(code), code};
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ||
            syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS)
            _exit(2);
        test_open(state);
        test_make(state);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_make),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_without_the_kernel),
    };
    return cmocka_run_group_tests(tests, before, after);
}
