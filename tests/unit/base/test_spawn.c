#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "unit.h"

enum { LONG_MS = 60000 };

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static int count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int fds_before;

static int before(void **state)
{
    (void)state;
    fds_before = count_entries("/proc/self/fd");
    return 0;
}

/* After each test, whatever it did: no child is left, dead or alive, and no descriptor. */
static int after(void **state)
{
    (void)state;
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        fprintf(stderr, "a child is left\n");
        return -1;
    }
    if (count_entries("/proc/self/fd") != fds_before) {
        fprintf(stderr, "a descriptor is left\n");
        return -1;
    }
    return 0;
}

static void run(const struct spawn *s, struct spawn_result *r)
{
    struct err e;
    if (spawn_run(s, r, &e) < 0)
        fail_msg("%s: %s", s->argv[0], e.msg);
}

static void test_output_and_status(void **state)
{
    (void)state;
    static const struct {
        const char *script, *out, *err;
        int status, signal;
    } table[] = {
        {"true", "", "", 0, 0},
        {"echo out; echo err >&2", "out\n", "err\n", 0, 0},
        {"exit 7", "", "", 7, 0},
        {"exit 255", "", "", 255, 0},
        {"kill -TERM $$", "", "", -1, SIGTERM},
        {"echo x; kill -KILL $$", "x\n", "", -1, SIGKILL},
        {"cat", "", "", 0, 0}, /* no input is an empty one */
        {"exec >&- 2>&-; exit 3", "", "", 3, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct spawn s = {.argv = ARGV("/bin/sh", "-c", table[i].script), .timeout_ms = LONG_MS};
        _cleanup_(spawn_result_done) struct spawn_result r = {0};
        run(&s, &r);
        assert_string_equal(r.out.p, table[i].out);
        assert_string_equal(r.err.p, table[i].err);
        assert_int_equal(r.status, table[i].status);
        assert_int_equal(r.signal, table[i].signal);
        assert_false(r.err_cut);
    }
}

static void test_arguments_are_not_interpreted(void **state)
{
    (void)state;
    struct spawn s = {
        .argv = ARGV("printf", "%s|", "a b", "$HOME", "*", "; exit 9", "", "\"'\n"),
        .timeout_ms = LONG_MS,
    };
    _cleanup_(spawn_result_done) struct spawn_result r = {0};
    run(&s, &r);
    assert_string_equal(r.out.p, "a b|$HOME|*|; exit 9||\"'\n|");
}

static void test_environment(void **state)
{
    (void)state;
    setenv("TEST_SPAWN_SECRET", "leaked", 1);
    struct spawn s = {.argv = ARGV("env"), .timeout_ms = LONG_MS};
    _cleanup_(spawn_result_done) struct spawn_result r = {0};
    run(&s, &r);
    assert_null(strstr(r.out.p, "TEST_SPAWN_SECRET"));
    assert_non_null(strstr(r.out.p, "PATH=/usr/local/sbin:"));
    assert_non_null(strstr(r.out.p, "LC_ALL=C.UTF-8\n"));

    _cleanup_(spawn_result_done) struct spawn_result given = {0};
    s.env = ARGV("A=1", "B=two words");
    s.argv = ARGV("/usr/bin/env");
    run(&s, &given);
    assert_string_equal(given.out.p, "A=1\nB=two words\n");
    unsetenv("TEST_SPAWN_SECRET");
}

static void test_input(void **state)
{
    (void)state;
    enum { N = 300000 }; /* more than a pipe holds */
    _cleanup_free_ char *data = mem_alloc(N);
    for (size_t i = 0; i < N; i++)
        data[i] = (char)(i * 31);
    struct spawn s = {.argv = ARGV("cat"), .input = data, .input_size = N, .timeout_ms = LONG_MS};
    _cleanup_(spawn_result_done) struct spawn_result r = {0};
    run(&s, &r);
    assert_int_equal(r.out.len, N);
    assert_memory_equal(r.out.p, data, N);

    /* a program that does not read it */
    _cleanup_(spawn_result_done) struct spawn_result unread = {0};
    s.argv = ARGV("true");
    run(&s, &unread);
    assert_int_equal(unread.status, 0);
}

static void test_limits(void **state)
{
    (void)state;
    struct err e = {0};
    struct spawn s = {
        .argv = ARGV("/bin/sh", "-c", "printf 12345"), .limit = 5, .timeout_ms = LONG_MS};
    _cleanup_(spawn_result_done) struct spawn_result r = {0};
    run(&s, &r);
    assert_string_equal(r.out.p, "12345");

    struct spawn_result untouched = {.status = 77};
    s.argv = ARGV("/bin/sh", "-c", "printf 123456");
    assert_int_equal(spawn_run(&s, &untouched, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    assert_string_equal(e.reason, "OutputTooLarge");
    assert_non_null(strstr(e.msg, "/bin/sh"));
    assert_int_equal(untouched.status, 77);
    assert_null(untouched.out.p);

    /* one that never stops is stopped */
    s.argv = ARGV("yes");
    s.limit = 100000;
    assert_int_equal(spawn_run(&s, &untouched, &e), -1);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);

    /* stderr is cut and the program goes on */
    _cleanup_(spawn_result_done) struct spawn_result cut = {0};
    s.argv = ARGV("/bin/sh", "-c", "head -c 200000 /dev/zero | tr '\\0' e >&2; echo done");
    s.limit = 1000;
    run(&s, &cut);
    assert_string_equal(cut.out.p, "done\n");
    assert_int_equal(cut.err.len, 1000);
    assert_true(cut.err_cut);
}

static bool alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* Runs it past a deadline of that many milliseconds. */
static void run_late(const char *script, int timeout_ms)
{
    struct spawn s = {.argv = ARGV("/bin/sh", "-c", script), .timeout_ms = timeout_ms};
    struct spawn_result r = {0};
    struct err e = {0};
    int64_t begin = clock_mono_ns(clock_system());
    assert_int_equal(spawn_run(&s, &r, &e), -1);
    int64_t took = clock_mono_ns(clock_system()) - begin;
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    assert_string_equal(e.reason, "Timeout");
    _cleanup_free_ char *want =
        mem_printf("/bin/sh did not finish within %d ms and was killed", timeout_ms);
    assert_string_equal(e.msg, want);
    assert_true(took >= timeout_ms * (CLOCK_SECOND / 1000));
}

/* The program, and what it started in the background, are gone when the deadline passes. */
static void test_deadline_kills_the_group(void **state)
{
    (void)state;
    char file[] = "/tmp/test-spawn-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    _cleanup_free_ char *script =
        mem_printf("trap '' TERM INT HUP; sleep 1000 & echo $$ $! >%s; wait", file);
    /* A busy machine may not get as far as the echo in time: more time, then. */
    char line[64] = "";
    for (int timeout_ms = 250; !*line && timeout_ms < LONG_MS; timeout_ms *= 2) {
        run_late(script, timeout_ms);
        FILE *f = fopen(file, "r");
        assert_non_null(f);
        if (!fgets(line, sizeof(line), f))
            line[0] = '\0';
        fclose(f);
    }
    char *end;
    pid_t shell = (pid_t)strtol(line, &end, 10);
    pid_t sleeper = (pid_t)strtol(end, &end, 10);
    assert_true(shell > 1 && sleeper > 1);
    unlink(file);
    assert_false(alive(shell));
    /* The sleeper was killed too; its end is not ours to wait for, but it comes. */
    struct pollfd ended = {.fd = pidfd_open(sleeper, 0), .events = POLLIN};
    if (ended.fd < 0)
        assert_int_equal(errno, ESRCH);
    else
        assert_int_equal(poll(&ended, 1, LONG_MS), 1);
    if (ended.fd >= 0)
        close(ended.fd);
}

/* A flood of output does not keep the deadline away. */
static void test_deadline_under_flood(void **state)
{
    (void)state;
    struct spawn s = {.argv = ARGV("/bin/sh", "-c", "yes >&2"), .timeout_ms = 300};
    struct spawn_result r = {0};
    struct err e = {0};
    assert_int_equal(spawn_run(&s, &r, &e), -1);
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
}

/*
 * A program that does not die when killed, as one does that hangs in the kernel on a dead device.
 * Here a tracer, in a group of its own, holds it at the door until a byte comes through the fifo.
 * Where nobody may trace, the program ends at once.
 */
static int be_undead(const char *fifo, const char *marker)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t traced = getpid(), tracer = fork();
    if (tracer != 0) {
        pause();
        return 1;
    }
    setpgid(0, 0);
    if (ptrace(PTRACE_SEIZE, traced, NULL, PTRACE_O_TRACEEXIT) < 0)
        _exit(kill(traced, SIGTERM) < 0);
    close(open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (waitpid(traced, NULL, __WALL) < 0 && errno == EINTR)
        ;
    char byte;
    int fd = open(fifo, O_RDONLY | O_CLOEXEC);
    _exit(read(fd, &byte, 1) != 1); /* which lets go of the traced */
}

/* True when it was held; *ret_there when it was still there after spawn_run(), half dead. */
static bool run_undead(const char *dir, int timeout_ms, bool *ret_there, bool *ret_may_trace)
{
    _cleanup_free_ char *fifo = mem_printf("%s/fifo", dir);
    _cleanup_free_ char *marker = mem_printf("%s/marker", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);

    struct spawn s = {.argv = ARGV("/proc/self/exe", "--undead", fifo, marker),
                      .timeout_ms = timeout_ms};
    struct spawn_result r = {0};
    struct err e = {0};
    *ret_may_trace = spawn_run(&s, &r, &e) < 0;
    spawn_result_done(&r);
    siginfo_t info;
    *ret_there = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    ssize_t released = write(fd, "", 1);
    bool held = unlink(marker) == 0;
    /* Somebody waits for it. */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        sched_yield();
    int errnum = errno;
    close(fd);
    unlink(fifo);
    unlink(marker);
    assert_int_equal(errnum, ECHILD);
    assert_int_equal(released, 1);
    if (*ret_may_trace)
        assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    return held;
}

static void test_deadline_holds_for_the_undead(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-spawn-XXXXXX";
    assert_non_null(mkdtemp(dir));
    bool held = false, there = false, may_trace = true;
    /* A busy machine may not get as far as tracing in time: more time, then. */
    for (int timeout_ms = 500; may_trace && !held && timeout_ms < LONG_MS; timeout_ms *= 2)
        held = run_undead(dir, timeout_ms, &there, &may_trace);
    rmdir(dir);
    if (!may_trace)
        skip();
    assert_true(held);
    assert_true(there);
}

/* A process left in the background holds the pipes open; nobody waits for it. */
static void test_background_is_not_waited_for(void **state)
{
    (void)state;
    struct spawn s = {.argv = ARGV("/bin/sh", "-c", "sleep 1000 & echo $!"), .timeout_ms = LONG_MS};
    _cleanup_(spawn_result_done) struct spawn_result r = {0};
    int64_t begin = clock_mono_ns(clock_system());
    run(&s, &r);
    assert_true(clock_mono_ns(clock_system()) - begin < 50 * CLOCK_SECOND);
    pid_t sleeper = (pid_t)strtol(r.out.p, NULL, 10);
    assert_true(sleeper > 1);
    assert_true(alive(sleeper));
    kill(sleeper, SIGKILL);
}

static void test_cannot_start(void **state)
{
    (void)state;
    char plain[] = "/tmp/test-spawn-XXXXXX";
    int fd = mkstemp(plain); /* not executable */
    assert_true(fd >= 0);
    close(fd);
    const struct {
        const char *name;
        const char *const *env;
        enum err_code code;
    } table[] = {
        {"/no/such/program", NULL, ERR_NOT_FOUND},
        {"no-such-program", NULL, ERR_NOT_FOUND},
        {"/etc/passwd/x", NULL, ERR_NOT_FOUND},
        {plain, NULL, ERR_PERMISSION_DENIED},
        {"/tmp", NULL, ERR_PERMISSION_DENIED},
        {"true", ARGV("PATH=/nowhere"), ERR_NOT_FOUND},
        {"true", ARGV("PATH="), ERR_NOT_FOUND},
        {"tmp", ARGV("PATH=:/nowhere::"), ERR_NOT_FOUND}, /* /tmp would be forbidden */
        {"passwd", ARGV("PATH=/etc:/nowhere"), ERR_PERMISSION_DENIED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct spawn s = {.argv = ARGV(table[i].name), .env = table[i].env, .timeout_ms = LONG_MS};
        struct spawn_result r = {0};
        struct err e = {0};
        assert_int_equal(spawn_run(&s, &r, &e), -1);
        if (e.code != table[i].code)
            fail_msg("%s: %s %s", table[i].name, err_code_name(e.code), e.msg);
        assert_non_null(strstr(e.msg, table[i].name));
    }
    unlink(plain);

    struct err e = {0};
    struct spawn_result r;
    assert_int_equal(spawn_run(&(struct spawn){.argv = ARGV("true")}, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_int_equal(spawn_run(&(struct spawn){.argv = ARGV(NULL), .timeout_ms = 1}, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_int_equal(spawn_run(&(struct spawn){.argv = ARGV(""), .timeout_ms = 1}, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

/* Without descriptors each step fails in turn; nothing leaks and nothing hangs. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct rlimit was, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    int failures = 0;
    for (rlim_t limit = 3; limit < 16; limit++) {
        now.rlim_cur = limit;
        struct spawn s = {
            .argv = ARGV("true"), .input = "x", .input_size = 1, .timeout_ms = LONG_MS};
        struct spawn_result r = {0};
        struct err e = {0};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
        int ran = spawn_run(&s, &r, &e);
        setrlimit(RLIMIT_NOFILE, &was);
        if (ran < 0) {
            failures++;
            assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
        }
        spawn_result_done(&r);
    }
    assert_true(failures > 3);
}

/* The child sees three descriptors, no blocked and no ignored signal, a group of its own. */
static void test_child_starts_clean(void **state)
{
    (void)state;
    int inherited = dup2(STDERR_FILENO, 60); /* not close-on-exec */
    assert_int_equal(inherited, 60);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    const unsigned long ignore[4] = {(unsigned long)SIG_IGN}; /* one that libc keeps to itself */
    unsigned long was[4];
    assert_int_equal(syscall(SYS_rt_sigaction, 32, ignore, was, (size_t)8), 0);

    struct spawn s = {.argv = ARGV("ls", "/proc/self/fd"), .timeout_ms = LONG_MS};
    _cleanup_(spawn_result_done) struct spawn_result fds = {0};
    run(&s, &fds);
    _cleanup_(spawn_result_done) struct spawn_result signals = {0};
    s.argv = ARGV("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status");
    run(&s, &signals);
    _cleanup_(spawn_result_done) struct spawn_result group = {0};
    s.argv = ARGV("/bin/sh", "-c", "set -- $(cat /proc/$$/stat); test $5 = $$");
    run(&s, &group);

    signal(SIGPIPE, handler);
    syscall(SYS_rt_sigaction, 32, was, NULL, (size_t)8);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &old, &now);
    close(inherited);
    assert_string_equal(fds.out.p, "0\n1\n2\n3\n"); /* 3 is how ls reads the directory */
    assert_string_equal(signals.out.p, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    assert_int_equal(group.status, 0);
    /* and ours are as they were */
    assert_true(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGTERM));
}

/* A daemon may have closed its standard descriptors: the pipes must not land there. */
static void test_standard_descriptors_closed(void **state)
{
    (void)state;
    int saved[3];
    for (int fd = 0; fd < 3; fd++) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        close(fd);
    }
    struct spawn s = {.argv = ARGV("/bin/sh", "-c", "cat; echo err >&2"),
                      .input = "in",
                      .input_size = 2,
                      .timeout_ms = LONG_MS};
    struct spawn_result r = {0};
    struct err e = {0};
    int ran = spawn_run(&s, &r, &e);
    for (int fd = 0; fd < 3; fd++) {
        dup2(saved[fd], fd);
        close(saved[fd]);
    }
    assert_int_equal(ran, 0);
    assert_string_equal(r.out.p, "in");
    assert_string_equal(r.err.p, "err\n");
    spawn_result_done(&r);
}

#define ZEROS_50  "00000000000000000000000000000000000000000000000000"
#define ZEROS_250 ZEROS_50 ZEROS_50 ZEROS_50 ZEROS_50 ZEROS_50

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *script, *want;
    } table[] = {
        {"exit 0", NULL},
        {"echo warning >&2", NULL},
        {"exit 5", "/bin/sh exited with status 5"},
        {"echo no such pool >&2; exit 5", "/bin/sh exited with status 5: no such pool"},
        {"kill -KILL $$", "/bin/sh was ended by signal 9"},
        {"printf %0500d >&2; exit 1", "/bin/sh exited with status 1: " ZEROS_250 ZEROS_250},
        {"printf %0501d >&2; exit 1", "/bin/sh exited with status 1: " ZEROS_250 ZEROS_250 "..."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct spawn s = {.argv = ARGV("/bin/sh", "-c", table[i].script), .timeout_ms = LONG_MS};
        _cleanup_(spawn_result_done) struct spawn_result r = {0};
        struct err e = {0};
        run(&s, &r);
        assert_int_equal(spawn_check(&s, &r, &e), table[i].want ? -1 : 0);
        if (table[i].want) {
            assert_string_equal(e.msg, table[i].want);
            assert_string_equal(e.reason, "CommandFailed");
            assert_int_equal(e.code, ERR_INTERNAL);
        }
    }
}

static void *run_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 15; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d", i);
        struct spawn s = {
            .argv = ARGV("cat"), .input = text, .input_size = strlen(text), .timeout_ms = LONG_MS};
        _cleanup_(spawn_result_done) struct spawn_result r = {0};
        struct err e;
        if (spawn_run(&s, &r, &e) < 0 || r.status != 0 || !str_eq(r.out.p, text))
            return (void *)"failed";
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, before, after)

int main(int argc, char **argv)
{
    if (argc == 4 && str_eq(argv[1], "--undead"))
        return be_undead(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        TEST(test_output_and_status),
        TEST(test_arguments_are_not_interpreted),
        TEST(test_environment),
        TEST(test_input),
        TEST(test_limits),
        TEST(test_deadline_kills_the_group),
        TEST(test_deadline_under_flood),
        TEST(test_deadline_holds_for_the_undead),
        TEST(test_background_is_not_waited_for),
        TEST(test_cannot_start),
        TEST(test_no_descriptors),
        TEST(test_child_starts_clean),
        TEST(test_standard_descriptors_closed),
        TEST(test_check),
        TEST(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
