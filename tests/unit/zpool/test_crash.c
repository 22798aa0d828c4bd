/*
 * The process is killed: under load, while a device is copied, while it holds a pool.
 *
 * The test starts itself as the process to be killed: test-zpool-crash MODE DIR GUID ROUND. What it does
 * follows from the round, so the parent knows every write without being told; the child only says up to
 * where each of its threads has flushed.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "zpool/zpooltest.h"

enum { THREADS = 3, PAGES = 2048, REGION = 16, OPS_MAX = 1 << 20 };

/* What a thread does as its nth operation of a round: writes a page of its own, or unmaps a region. */
struct op {
    bool unmap;
    uint64_t first, pages;
};

static struct op nth_op(unsigned thread, uint64_t n)
{
    uint64_t x = (n * THREADS + thread + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 32;
    uint64_t part = PAGES / THREADS / REGION * REGION, base = thread * part;
    if (x % 16 == 0)
        return (struct op){true, base + (x >> 8) % (part / REGION) * REGION, REGION};
    return (struct op){false, base + (x >> 8) % part, 1};
}

struct report {
    uint64_t thread, done; /* all operations up to this one are durable */
};

/* The child. */

static unsigned batch;
static uint64_t first_op;

static void say(uint64_t thread, uint64_t done)
{
    struct report r = {thread, done};
    if (write(STDOUT_FILENO, &r, sizeof(r)) != sizeof(r))
        _exit(1);
}

struct writer {
    struct zpool_volume *v;
    unsigned thread;
};

static void *write_thread(void *context)
{
    struct writer *w = context;
    uint64_t words[PAGE / 8];
    for (uint64_t n = first_op; n < first_op + OPS_MAX; n++) {
        struct op op = nth_op(w->thread, n);
        bool fua = batch == 1;
        fill_page(words, op.first, n);
        int error = op.unmap
                        ? run_io(w->v, ZPOOL_UNMAP, op.first * PAGE, NULL, op.pages * PAGE, fua)
                        : run_io(w->v, ZPOOL_WRITE, op.first * PAGE, words, PAGE, fua);
        if (!error && batch > 1 && n % batch == 0)
            error = flush(w->v);
        if (error)
            _exit(2);
        if (n % batch == 0)
            say(w->thread, n);
    }
    return NULL;
}

static void child_write(struct zpool *p)
{
    struct zpool_volume *v;
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    for (unsigned i = 0; i < THREADS; i++) {
        struct writer *w = NEW(struct writer);
        *w = (struct writer){v, i};
        pthread_t t;
        pthread_create(&t, NULL, write_thread, w);
    }
}

/* libzpool's: a scan begins and does nothing. */
extern int zfs_scan_suspend_progress;

/* Gets into the middle of a resilver, from where it cannot get to the end before it is killed. */
static void child_resilver(struct zpool *p)
{
    zfs_scan_suspend_progress = 1;
    assert_ok(zpool_replace(p, disks[1], &(struct zpool_device){.path = disks[6]}, &e) == 0);
    wait_for(status_of(p).scan.state == ZPOOL_SCAN_RUNNING);
    struct zpool_fault slow = {disks[6], ZPOOL_FAULT_WRITE, ZPOOL_FAULT_SLOW, .delay_ms = 20000};
    zpool_fault_set(&slow, 1);
    zfs_scan_suspend_progress = 0;
    wait_for(zpool_fault_count() > 0);
    say(0, 0);
}

static int write_nth(struct zpool_volume *v, uint64_t n)
{
    uint64_t words[PAGE / 8];
    struct op op = nth_op(0, n);
    fill_page(words, op.first, n);
    return op.unmap ? run_io(v, ZPOOL_UNMAP, op.first * PAGE, NULL, op.pages * PAGE, false)
                    : run_io(v, ZPOOL_WRITE, op.first * PAGE, words, PAGE, false);
}

/* The only device forgets what was written and says so once: nothing is called durable any more. */
static void child_forget(struct zpool *p)
{
    enum { BEFORE = 60, IN_DOUBT = 10 };
    struct zpool_volume *v;
    uint64_t n = first_op;
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    for (; n < first_op + BEFORE; n++) {
        assert_int_equal(write_nth(v, n), 0);
        assert_int_equal(flush(v), 0);
    }
    say(0, n - 1);
    const struct zpool_fault forget[] = {{disks[0], ZPOOL_FAULT_WRITE, ZPOOL_FAULT_LOSE},
                                         {disks[0], ZPOOL_FAULT_SYNC, ZPOOL_FAULT_EIO}};
    zpool_fault_set(forget, 2);
    for (; n < first_op + BEFORE + IN_DOUBT; n++)
        assert_int_equal(write_nth(v, n), 0);
    assert_int_equal(flush(v), EIO);
    zpool_fault_set(NULL, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(flush(v), EIO);
    assert_refused(zpool_clear(p, &e) == 0, "InDoubt");
    assert_int_equal(flush(v), EIO);
    assert_true(zpool_export(p, &e) < 0);
    say(1, 0);
}

/* A process on another machine: there is no lock on the devices that this one could see. */
static void child_elsewhere(void)
{
    enum { FDS = 1024 };
    for (int fd = 0; fd < FDS; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            flock(fd, LOCK_UN);
    }
    say(0, 0);
}

static void child(int argc, char **argv)
{
    assert_int_equal(argc, 6);
    const char *mode = argv[1];
    set_dir(argv[2]);
    uint64_t guid = strtoull(argv[3], NULL, 10);
    first_op = strtoull(argv[4], NULL, 10);
    batch = (unsigned)atoi(argv[5]);
    bool elsewhere = strcmp(mode, "elsewhere") == 0;
    if (elsewhere)
        sign_ms =
            1000; /* whoever watches does so for twenty seconds, however busy the machine is */
    start_engine(strcmp(mode, "host") == 0 || elsewhere ? HOST + 1 : HOST,
                 strcmp(mode, "direct") == 0);
    static const struct zpool_fault faults[] = {
        {"", ZPOOL_FAULT_WRITE, ZPOOL_FAULT_VOLATILE},
        {"", ZPOOL_FAULT_SYNC, ZPOOL_FAULT_LOSE},
    };
    if (strcmp(mode, "volatile") == 0)
        zpool_fault_set(faults, 1);
    if (strcmp(mode, "control") == 0)
        zpool_fault_set(faults, 2);
    const char *paths[DISKS];
    for (int i = 0; i < DISKS; i++)
        paths[i] = disks[i];
    struct zpool_import how = {guid, paths, DISKS, .take_over = true};
    struct zpool *p;
    assert_ok((p = zpool_import(&how, &e)));
    if (strcmp(mode, "resilver") == 0)
        child_resilver(p);
    else if (strcmp(mode, "forget") == 0)
        child_forget(p);
    else if (elsewhere)
        child_elsewhere();
    else if (strcmp(mode, "hold") == 0 || strcmp(mode, "host") == 0)
        say(0, 0);
    else
        child_write(p);
    for (;;)
        pause();
}

/* The parent. */

struct running {
    pid_t pid;
    int fd;
};

static struct running start_child(const char *mode, uint64_t guid, uint64_t first, unsigned every)
{
    char numbers[3][32];
    snprintf(numbers[0], 32, "%lu", guid);
    snprintf(numbers[1], 32, "%lu", first);
    snprintf(numbers[2], 32, "%u", every);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        execl("/proc/self/exe", "child", mode, dir, numbers[0], numbers[1], numbers[2], NULL);
        _exit(127);
    }
    close(fds[1]);
    return (struct running){pid, fds[0]};
}

static void kill_child(struct running *c)
{
    int status;
    kill(c->pid, SIGKILL);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    if (!WIFSIGNALED(status))
        fail_msg("the child had ended: %x", status);
}

static bool next_report(struct running *c, struct report *r)
{
    return read(c->fd, r, sizeof(*r)) == sizeof(*r);
}

/* For each page the newest operation that is durable; 0: none. */
static uint64_t durable[PAGES];

static unsigned thread_of(uint64_t page)
{
    return (unsigned)(page / (PAGES / THREADS / REGION * REGION));
}

static void note_durable(unsigned thread, uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n <= to; n++) {
        struct op op = nth_op(thread, n);
        for (uint64_t i = 0; i < op.pages; i++)
            durable[op.first + i] = n;
    }
}

/* Is what this page holds what some operation, no older than the durable one, left there? */
static bool page_is_right(uint64_t page, const uint64_t *words, uint64_t to)
{
    uint64_t n;
    if (!read_page(words, page, &n))
        return false; /* torn */
    unsigned thread = thread_of(page);
    if (n) {
        struct op op = nth_op(thread, n);
        return n >= durable[page] && !op.unmap && op.first == page;
    }
    if (!durable[page])
        return true;
    for (n = durable[page]; n <= to; n++) {
        struct op op = nth_op(thread, n);
        if (op.unmap && page >= op.first && page < op.first + op.pages)
            return true;
    }
    return false;
}

/* How many pages are not what they should be. After this, what there is counts. */
static unsigned verify(struct zpool *p, const uint64_t *to)
{
    struct zpool_volume *v;
    static uint64_t data[PAGES][PAGE / 8];
    assert_ok((v = zpool_volume_open(p, "vol", false, &e)));
    assert_int_equal(run_io(v, ZPOOL_READ, 0, data, sizeof(data), false), 0);
    unsigned wrong = 0;
    for (uint64_t page = 0; page < PAGES / THREADS / REGION * REGION * THREADS; page++) {
        wrong += !page_is_right(page, data[page], to[thread_of(page)]);
        durable[page] = data[page][1];
    }
    zpool_volume_close(v);
    return wrong;
}

/* One round; how many pages were wrong. */
static unsigned round_of(const char *mode, uint64_t guid, uint64_t round, unsigned every,
                         uint64_t *ret_flushed)
{
    uint64_t first = (round + 1) * OPS_MAX, done[THREADS], to[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        done[i] = first - 1;
    struct running c = start_child(mode, guid, first, every);
    struct report r;
    /* As long as it takes to flush some, then a little more, differently each time. */
    uint64_t reports = 0, until = 20 + round * 37 % 150;
    while (reports < until && next_report(&c, &r)) {
        done[r.thread] = r.done;
        reports++;
    }
    kill_child(&c);
    for (; next_report(&c, &r); reports++)
        done[r.thread] = r.done;
    close(c.fd);
    assert_true(reports >= until);
    for (unsigned i = 0; i < THREADS; i++) {
        note_durable(i, first, done[i]);
        to[i] = done[i] + 2 * every + 2; /* it may have got so much further */
        *ret_flushed += done[i] - first + 1;
    }
    struct zpool *p = import_without(guid, NULL);
    if (!p && strcmp(mode, "control") == 0)
        return PAGES;
    assert_ok(p);
    unsigned wrong = verify(p, to);
    assert_ok(zpool_export(p, &e) == 0);
    return wrong;
}

static uint64_t make_pool(const char *text, uint32_t block)
{
    make_disks();
    memset(durable, 0, sizeof(durable));
    struct zpool *p = create(text);
    uint64_t guid = zpool_guid(p);
    struct zpool_volume_spec spec = {.size = PAGES * PAGE, .block_size = block};
    assert_ok(zpool_volume_create(p, "vol", &spec, &e) == 0);
    assert_ok(zpool_export(p, &e) == 0);
    return guid;
}

/* kill -9 under load: what was flushed is there, whole. */
static void test_killed(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *text;
        uint32_t block;
        unsigned every, rounds;
    } table[] = {
        {"write", "mirror 0 1", 4096, 1, 1},      {"direct", "raidz 0 1 2 log 3", 16384, 8, 2},
        {"volatile", "stripe 0", 16384, 1, 2},    {"volatile", "mirror 0 1", 131072, 16, 2},
        {"volatile", "raidz 0 1 2", 65536, 4, 1},
    };
    const char *times = getenv("ZPOOL_TEST_TIMES"); /* how much longer */
    unsigned more = times ? (unsigned)atoi(times) : 1;
    uint64_t flushed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        uint64_t guid = make_pool(table[i].text, table[i].block);
        for (unsigned round = 0; round < table[i].rounds * more; round++) {
            unsigned wrong = round_of(table[i].mode, guid, round, table[i].every, &flushed);
            if (wrong)
                fail_msg("%s, %s, round %u: %u pages lost or torn", table[i].mode, table[i].text,
                         round, wrong);
        }
    }
    print_message("# %lu operations were flushed, none was lost\n", flushed);
}

/* The same with devices that sync nothing: were nothing found then, the test above would prove nothing. */
static void test_control(void **state)
{
    (void)state;
    uint64_t guid = make_pool("stripe 0", 16384), flushed = 0;
    unsigned wrong = 0;
    for (unsigned round = 0; round < 6 && !wrong; round++)
        wrong = round_of("control", guid, round, 1, &flushed);
    assert_true(wrong > 0);
}

/* What was promised before the only device lost something is there when the pool is imported anew. */
static void test_forgotten(void **state)
{
    (void)state;
    uint64_t guid = make_pool("stripe 0", 16384);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t first = (round + 1) * OPS_MAX, to[THREADS] = {first + 70, 0, 0};
        struct running c = start_child("forget", guid, first, 1);
        struct report r;
        assert_true(next_report(&c, &r));
        note_durable(0, first, r.done);
        assert_true(next_report(&c, &r));
        kill_child(&c);
        close(c.fd);
        struct zpool *p = import_all(guid);
        assert_int_equal(verify(p, to), 0);
        assert_ok(zpool_scrub(p, true, &e) == 0);
        wait_for(scan_is_over(p));
        assert_int_equal(status_of(p).scan.errors, 0);
        assert_ok(zpool_export(p, &e) == 0);
    }
}

/* Killed in the middle of a resilver: it goes on. */
static void test_killed_resilvering(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("mirror 0 1");
    uint64_t guid = zpool_guid(p);
    struct model m = model_new(p);
    model_close(&m);
    assert_ok(zpool_export(p, &e) == 0);
    struct running c = start_child("resilver", guid, 0, 1);
    struct report r;
    assert_true(next_report(&c, &r));
    kill_child(&c);
    close(c.fd);
    p = import_all(guid);
    assert_non_null(row_of(p, 1)); /* not done yet */
    assert_non_null(row_of(p, 6));
    model_open(&m, p);
    model_write(&m, 30, 30);
    wait_for(!row_of(p, 1) && all_whole(p));
    assert_int_equal(status_of(p).scan.errors, 0);
    model_verify(&m);
    model_close(&m);
    /* The new one alone has everything. */
    assert_ok(zpool_export(p, &e) == 0);
    model_verify_without(&m, guid, 0);
}

/* A pool that another process has is left alone, and free again when that process is killed. */
static void test_held(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *after;
    } table[] = {{"hold", NULL}, {"host", "OtherHost"}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        uint64_t guid = make_pool("mirror 0 1", 16384);
        struct running c = start_child(table[i].mode, guid, 0, 1);
        struct report r;
        assert_true(next_report(&c, &r));
        struct zpool_found f;
        zpool_scan(&(const char *){disks[0]}, 1, &f);
        assert_int_equal(f.error, EBUSY);
        assert_refused(import_without(guid, NULL), "DeviceInUse");
        assert_refused(zpool_create("other", layout("mirror 0 1"), &e), "DeviceInUse");
        kill_child(&c);
        close(c.fd);
        struct zpool *p;
        if (table[i].after) {
            assert_refused(import_without(guid, NULL), table[i].after);
            const char *paths[] = {disks[0], disks[1]};
            struct zpool_import how = {guid, paths, 2, .take_over = true};
            assert_ok((p = zpool_import(&how, &e)));
        } else {
            p = import_all(guid);
        }
        assert_int_equal(row_of(p, -1)->state, ZPOOL_ONLINE);
        assert_ok(zpool_destroy(p, &e) == 0);
    }
}

/* Whoever believes another host to be gone, and is wrong, does no harm. */
static void test_in_use_elsewhere(void **state)
{
    (void)state;
    uint64_t guid = make_pool("mirror 0 1", 16384);
    struct running c = start_child("elsewhere", guid, 0, 1);
    struct report r;
    assert_true(next_report(&c, &r));
    const char *paths[] = {disks[0], disks[1]};
    struct zpool_import how = {guid, paths, 2, .take_over = true};
    assert_refused(zpool_import(&how, &e), "InUseElsewhere");
    kill_child(&c);
    close(c.fd);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        child(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_in_use_elsewhere),
        cmocka_unit_test(test_killed_resilvering),
        cmocka_unit_test(test_forgotten),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
