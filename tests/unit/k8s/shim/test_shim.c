/*
 * The texts of a shim, its log, and finding processes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "k8s/shim/shim.h"
#include "unit.h"

static void test_spec(void **state)
{
    (void)state;
    struct shim_spec s = {.folder = "/f",
                          .number = 7,
                          .log = "/l",
                          .previous_log = "/p",
                          .cwd = "/w",
                          .uid = 5,
                          .gid = -1,
                          .log_bytes = 99};
    vec_push(&s.argv, "a b");
    vec_push(&s.argv, "");
    vec_push(&s.env, "X=1=2\n3");
    vec_push(&s.mounts, (struct shim_mount){"/from", "/to", true});
    vec_push(&s.mounts, (struct shim_mount){"/from2", "/to2", false});
    vec_push(&s.groups, 12);
    _cleanup_(str_done) struct str text = {0}, again = {0};
    shim_spec_format(&s, &text);
    struct shim_spec got;
    struct err e = {0};
    assert_int_equal(shim_spec_parse(text.p, text.len, &got, &e), 0);
    assert_int_equal(got.number, 7);
    assert_int_equal(got.uid, 5);
    assert_string_equal(got.argv.p[1], "");
    assert_null(got.argv.p[2]);
    assert_string_equal(got.env.p[0], "X=1=2\n3");
    assert_true(got.mounts.p[0].read_only);
    assert_string_equal(got.mounts.p[1].target, "/to2");
    assert_int_equal(got.groups.p[0], 12);
    (void)vec_pop(&got.argv);
    (void)vec_pop(&got.env);
    shim_spec_format(&got, &again);
    assert_int_equal(text.len, again.len);
    assert_memory_equal(text.p, again.p, text.len);
    /* A text that was cut anywhere is refused, or is whole without what is missing. */
    for (size_t n = 0; n < text.len; n++) {
        struct shim_spec cut;
        if (shim_spec_parse(text.p, n, &cut, &e) == 0)
            shim_spec_done(&cut);
    }
    shim_spec_done(&s);
    shim_spec_done(&got);
}

static void test_wrong_specs(void **state)
{
    (void)state;
#define TEXT(t)                                                                                    \
    {                                                                                              \
        t, sizeof(t)                                                                               \
    }
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        TEXT(""),
        TEXT("folder=/f"),
        TEXT("arg=x"),
        TEXT("folder=/f\0arg=x\0colour=red"),
        TEXT("folder=/f\0arg=x\0nothing"),
        TEXT("folder=/f\0arg=x\0number=-1"),
        TEXT("folder=/f\0arg=x\0number=99999999999"),
        TEXT("folder=/f\0arg=x\0number=1x"),
        TEXT("folder=/f\0arg=x\0at=/to"),
        TEXT("folder=/f\0arg=x\0mount=/from"),
        TEXT("folder=/f\0arg=x\0mount=from\0at=/to"),
        TEXT("folder=/f\0arg=x\0uid=root"),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shim_spec s;
        struct err e = {0};
        if (shim_spec_parse(cases[i].text, cases[i].size, &s, &e) == 0)
            fail_msg("%zu was taken", i);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void test_status(void **state)
{
    (void)state;
    static const struct shim_status cases[] = {
        {0},
        {.begun = true, .pid = 12, .ticks = 1ULL << 60, .started = 5},
        {.begun = true,
         .pid = 12,
         .ticks = 3,
         .started = 5,
         .ended = true,
         .finished = 9,
         .exit_code = 255},
        {.begun = true,
         .pid = 12,
         .ticks = 3,
         .started = 5,
         .ended = true,
         .finished = 9,
         .signal = 9,
         .error = "cannot run x: No such file"},
    };
    struct err e = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_(str_done) struct str text = {0}, again = {0};
        struct shim_status got;
        shim_status_format(&cases[i], &text);
        assert_int_equal(shim_status_parse(str_get(&text), &got, &e), 0);
        assert_int_equal(got.ended, cases[i].ended);
        assert_int_equal(got.begun, cases[i].begun);
        shim_status_format(&got, &again);
        assert_string_equal(str_get(&text), str_get(&again));
    }
    struct shim_status none;
    assert_int_equal(shim_status_parse("exit 1\nrubbish\n", &none, &e), -1);
    assert_int_equal(e.code, ERR_DATA_LOSS);
}

static char folder[] = "/tmp/orlop-test-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return file_remove_tree(folder, NULL);
}

static void expect(const char *name, const char *text)
{
    char path[200];
    struct err e = {0};
    _cleanup_(str_done) struct str got = {0};
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (file_read(path, 1 << 20, &got, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_get(&got), text);
}

#define T "1970-01-01T00:00:00.000000005Z "

static void test_log(void **state)
{
    (void)state;
    char log[200], previous[200];
    snprintf(log, sizeof(log), "%s/c.log", folder);
    snprintf(previous, sizeof(previous), "%s/c.previous.log", folder);
    struct shim_spec s = {.log = log, .previous_log = previous, .log_bytes = 200};
    static struct shim_log l;
    shim_log_open(&l, &s);
    shim_log_write(&l, "one\ntw", 6, 5);
    shim_log_write(&l, "o\n\nthr", 6, 5);
    expect("c.log", T "one\n" T "two\n" T "\n");
    shim_log_close(&l, 5);
    expect("c.log", T "one\n" T "two\n" T "\n" T "thr\n");
    /* Another instance: that was the previous one. */
    shim_log_open(&l, &s);
    int follower = open(log, O_RDONLY);
    assert_int_equal(flock(follower, LOCK_SH | LOCK_NB), -1); /* more may come */
    for (int i = 0; i < 7; i++)
        shim_log_write(&l, "0123456789\n", 11, 5);
    shim_log_close(&l, 5);
    assert_int_equal(flock(follower, LOCK_SH | LOCK_NB), 0);
    struct stat followed, named;
    assert_int_equal(fstat(follower, &followed), 0);
    assert_int_equal(stat(log, &named), 0);
    assert_int_equal(followed.st_ino, named.st_ino);
    close(follower);
    expect("c.previous.log", T "one\n" T "two\n" T "\n" T "thr\n");
    /* Four lines fit in 200 bytes; the others are in the new file. */
    expect("c.log.1", T "0123456789\n" T "0123456789\n" T "0123456789\n" T "0123456789\n");
    expect("c.log", T "0123456789\n" T "0123456789\n" T "0123456789\n");
}

static void test_long_lines(void **state)
{
    (void)state;
    char log[200];
    snprintf(log, sizeof(log), "%s/c.log", folder);
    struct shim_spec s = {.log = log};
    static struct shim_log l;
    static char text[sizeof(l.line) + 10];
    memset(text, 'x', sizeof(text));
    shim_log_open(&l, &s);
    shim_log_write(&l, text, sizeof(text), 5);
    shim_log_write(&l, "\nend\n", 5, 5);
    shim_log_close(&l, 5);
    _cleanup_(str_done) struct str got = {0};
    assert_int_equal(file_read(log, 1 << 20, &got, NULL), 0);
    assert_int_equal(got.len, 3 * strlen(T) + sizeof(text) + 3 + 3);
    assert_true(str_ends_with(str_get(&got), "xxxxxxxxxx\n" T "end\n"));
    /* Nowhere to write is no reason to stop reading. */
    s.log = "/proc/none/c.log";
    shim_log_open(&l, &s);
    shim_log_write(&l, text, sizeof(text), 5);
    shim_log_close(&l, 5);
}

static void test_marked(void **state)
{
    (void)state;
    char mark[64], env[100];
    snprintf(mark, sizeof(mark), "test/%d/", (int)getpid());
    snprintf(env, sizeof(env), SHIM_MARK "=%s0", mark);
    pid_t pid = fork();
    if (pid == 0) {
        char *const environment[] = {env, NULL};
        execle("/bin/sleep", "sleep", "1000", NULL, environment);
        _exit(127);
    }
    for (int tries = 0; tries < 1000 && !shim_signal_marked(mark, true, 0); tries++)
        usleep(10 * 1000);
    assert_int_equal(shim_signal_marked(mark, false, SIGKILL), 0);
    assert_int_equal(shim_signal_marked(mark, true, SIGKILL), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(shim_signal_marked(mark, true, 0), 0);
}

static void test_owner(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(shim_owner(folder), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *path = shim_lock_path(folder);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        free(path);
        (void)!write(ready[1], fcntl(fd, F_SETLK, &lock) == 0 ? "y" : "n", 1);
        pause();
    }
    char answer;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    assert_int_equal(shim_owner(folder), pid);
    assert_true(shim_ticks(pid) > 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(shim_owner(folder), 0);
    assert_int_equal(shim_ticks(pid), 0);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_wrong_specs),
        cmocka_unit_test(test_status),
        cmocka_unit_test_setup_teardown(test_log, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_long_lines, make_folder, remove_folder),
        cmocka_unit_test(test_marked),
        cmocka_unit_test_setup_teardown(test_owner, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
