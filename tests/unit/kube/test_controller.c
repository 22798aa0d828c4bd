/* The informer and the leader are seams here: the test says what changed, and who leads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/controller.h"
#include "kube/leader.h"
#include "metrics/metrics.h"
#include "unit.h"

enum { MS = 1000000 };

static struct kube_handler handlers[2];
static size_t n_handlers;
static _Atomic bool synced, leads;
static _Atomic unsigned asked;

void kube_informer_add_handler(struct kube_informer *i, struct kube_handler h)
{
    (void)i;
    assert_true(n_handlers < ARRAY_SIZE(handlers));
    handlers[n_handlers++] = h;
}

int kube_informer_wait(struct kube_informer *i, int64_t timeout_ns, struct err *e)
{
    (void)i, (void)timeout_ns;
    asked++;
    if (synced)
        return 0;
    usleep(500);
    return err_set(e, ERR_DEADLINE_EXCEEDED, "Test", "not yet");
}

bool kube_leader_is(const struct kube_leader *l)
{
    (void)l;
    return leads;
}

/* What a reconcile is to do next, and what it was called with. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned calls, in, most; /* at a time */
    char last[64];
    int64_t last_at;
    struct kube_result result;
    enum err_code code;
    bool hold; /* does not return */
} work = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int reconcile(void *context, const char *ns, const char *name, struct kube_result *ret,
                     struct err *e)
{
    (void)context;
    pthread_mutex_lock(&work.lock);
    work.calls++;
    work.in++;
    if (work.in > work.most)
        work.most = work.in;
    work.last_at = clock_mono_ns(clock_system());
    snprintf(work.last, sizeof(work.last), "%s|%s", ns, name);
    pthread_cond_broadcast(&work.changed);
    while (work.hold)
        pthread_cond_wait(&work.changed, &work.lock);
    *ret = work.result;
    enum err_code code = work.code;
    work.in--;
    pthread_cond_broadcast(&work.changed);
    pthread_mutex_unlock(&work.lock);
    return code == ERR_OK ? 0 : err_set(e, code, "Test", "as told");
}

static unsigned calls(void)
{
    pthread_mutex_lock(&work.lock);
    unsigned n = work.calls;
    pthread_mutex_unlock(&work.lock);
    return n;
}

/* That many calls have ended. */
static void wait_calls(unsigned n)
{
    pthread_mutex_lock(&work.lock);
    while (work.calls < n || (work.in && !work.hold))
        pthread_cond_wait(&work.changed, &work.lock);
    pthread_mutex_unlock(&work.lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&work.lock);
    work.hold = false;
    pthread_cond_broadcast(&work.changed);
    pthread_mutex_unlock(&work.lock);
}

struct fixture {
    struct clock_manual clock;
    struct metrics *metrics;
    struct kube_controller *controller;
    int log;
    char path[32];
};

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    clock_manual_init(&f->clock, 0);
    f->metrics = metrics_new();
    strcpy(f->path, "/tmp/orlop-test-XXXXXX");
    f->log = mkstemp(f->path);
    log_init(f->log, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    f->controller = kube_controller_new(
        &(struct kube_controller_options){
            .name = "test",
            .reconcile = reconcile,
            .leader = (const struct kube_leader *)f,
            .backoff_ns = 1000 * MS,
            .workers = 2,
            .clock = &f->clock.clock,
            .metrics = f->metrics,
        },
        NULL);
    synced = true;
    leads = true;
    n_handlers = 0;
    asked = 0;
    work.calls = work.in = work.most = 0;
    work.code = ERR_OK;
    work.result = (struct kube_result){0};
    work.hold = false;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    let_go();
    kube_controller_stop(f->controller);
    kube_controller_free(f->controller);
    metrics_free(f->metrics);
    log_init(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    close(f->log);
    unlink(f->path);
    free(f);
    return 0;
}

static bool metric_is(struct fixture *f, const char *line)
{
    _cleanup_(str_done) struct str text = {0};
    metrics_format(f->metrics, &text);
    return strstr(str_get(&text), line) != NULL;
}

static void wait_metric(struct fixture *f, const char *line)
{
    while (!metric_is(f, line))
        usleep(200);
}

static unsigned logged(struct fixture *f, const char *word)
{
    char text[20000];
    ssize_t n = pread(f->log, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        found++;
    return found;
}

/* Objects. */

struct what {
    const char *uid, *owner_kind, *owner_name;
    int64_t generation;
    bool deleting;
};

/* d/x, and what is said of it; lives until a few more were made. */
static const struct kube_object *make(struct what w)
{
    static struct kube_object objects[8];
    static size_t next;
    struct kube_object *o = &objects[next++ % ARRAY_SIZE(objects)];
    o->key = "d/x";
    o->ns = "d";
    o->name = "x";
    o->uid = w.uid ? w.uid : "1";
    o->owner_kind = w.owner_kind ? w.owner_kind : "";
    o->owner_name = w.owner_name ? w.owner_name : "";
    o->generation = w.generation;
    o->deleting = w.deleting;
    return o;
}

#define OBJECT(...) make((struct what){__VA_ARGS__})

static void tell(size_t i, const struct kube_object *old, const struct kube_object *now)
{
    handlers[i].changed(handlers[i].context, old, now);
}

static void test_keys(void **state)
{
    struct fixture *f = *state;
    kube_controller_watch(f->controller, (struct kube_source){0});
    kube_controller_start(f->controller, NULL);
    tell(0, OBJECT(0), NULL);
    wait_calls(1);
    assert_string_equal(work.last, "d|x");
    kube_controller_add(f->controller, "", "y");
    wait_calls(2);
    assert_string_equal(work.last, "|y");
    kube_controller_add(f->controller, NULL, "z");
    wait_calls(3);
    assert_string_equal(work.last, "|z");
    kube_controller_add_after(f->controller, "n", "later", 10 * MS);
    clock_manual_advance(&f->clock, 10 * MS);
    wait_calls(4);
    assert_string_equal(work.last, "n|later");
}

/* For a controller that looks at specs alone. */
static bool spec_changed(const struct kube_object *old, const struct kube_object *now)
{
    return !old || !now || old->generation != now->generation;
}

static void map_set(struct kube_controller *c, const struct kube_object *object, void *context)
{
    (void)context;
    kube_map_owner(c, object, "Set");
}

static void test_owner(void **state)
{
    struct fixture *f = *state;
    kube_controller_watch(f->controller,
                          (struct kube_source){.predicate = spec_changed, .map = map_set});
    kube_controller_start(f->controller, NULL);
    tell(0, NULL, OBJECT(.owner_kind = "Other", .owner_name = "wrong"));
    tell(0, NULL, OBJECT(0));
    const struct kube_object *one = OBJECT(.owner_kind = "Set", .owner_name = "one");
    const struct kube_object *two =
        OBJECT(.owner_kind = "Set", .owner_name = "two", .generation = 2);
    tell(0, one, one); /* of no importance */
    tell(0, NULL, one);
    wait_calls(1);
    assert_string_equal(work.last, "d|one");
    tell(0, one, two); /* both */
    wait_calls(3);
    assert_int_equal(calls(), 3);
}

static void test_waits_for_sync(void **state)
{
    struct fixture *f = *state;
    synced = false;
    kube_controller_watch(f->controller, (struct kube_source){0});
    kube_controller_watch(f->controller, (struct kube_source){0});
    kube_controller_start(f->controller, NULL);
    kube_controller_add(f->controller, "d", "x");
    while (asked < 10)
        usleep(200);
    assert_int_equal(calls(), 0);
    synced = true;
    wait_calls(1);
}

static void test_stop_before_sync(void **state)
{
    struct fixture *f = *state;
    synced = false;
    kube_controller_watch(f->controller, (struct kube_source){0});
    kube_controller_start(f->controller, NULL);
    while (!asked)
        usleep(200);
    kube_controller_stop(f->controller);
    assert_int_equal(calls(), 0);
}

static void test_results(void **state)
{
    static const struct {
        enum err_code code;
        int64_t again;
        int64_t next; /* when it comes again; 0: it does not */
        const char *metric;
        unsigned logged;
    } cases[] = {
        {ERR_OK, 0, 0, "total{controller=\"test\",result=\"success\"} 1\n", 0},
        {ERR_OK, 70 * MS, 70 * MS, "total{controller=\"test\",result=\"requeue_after\"} 1\n", 0},
        {ERR_ABORTED, 0, 1000 * MS, "total{controller=\"test\",result=\"requeue\"} 1\n", 0},
        {ERR_CANCELLED, 0, 1000 * MS, "errors_total{controller=\"test\"} 0\n", 0},
        {ERR_UNAVAILABLE, 0, 1000 * MS, "total{controller=\"test\",result=\"error\"} 1\n", 1},
        {ERR_NOT_FOUND, 0, 0, "terminal_reconcile_errors_total{controller=\"test\"} 1\n", 1},
        {ERR_INVALID_ARGUMENT, 90 * MS, 90 * MS, "errors_total{controller=\"test\"} 1\n", 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture *f = *state;
        work.code = cases[i].code;
        work.result.again_ns = cases[i].again;
        kube_controller_start(f->controller, NULL);
        kube_controller_add(f->controller, "d", "x");
        wait_calls(1);
        wait_metric(f, cases[i].metric);
        wait_metric(f, "workqueue_work_duration_seconds_count{name=\"test\"} 1\n");
        assert_int_equal(logged(f, "d/x"), cases[i].logged);
        work.code = ERR_OK;
        work.result.again_ns = 0;
        if (cases[i].next) {
            clock_manual_advance(&f->clock, cases[i].next);
        } else {
            clock_manual_advance(&f->clock, 3600 * CLOCK_SECOND);
            kube_controller_add(f->controller, "d", "y");
        }
        wait_calls(2);
        assert_string_equal(work.last, cases[i].next ? "d|x" : "d|y");
        teardown(state);
        setup(state);
    }
}

static void test_leader_only(void **state)
{
    struct fixture *f = *state;
    leads = false;
    kube_controller_start(f->controller, NULL);
    kube_controller_add(f->controller, "d", "x");
    wait_metric(f, "workqueue_retries_total{name=\"test\"} 1\n");
    assert_int_equal(calls(), 0);
    leads = true;
    clock_manual_advance(&f->clock, 1000 * MS);
    wait_calls(1);
}

static void test_workers(void **state)
{
    struct fixture *f = *state;
    assert_true(
        metric_is(f, "controller_runtime_max_concurrent_reconciles{controller=\"test\"} 2\n"));
    work.hold = true;
    kube_controller_start(f->controller, NULL);
    kube_controller_add(f->controller, "d", "x");
    kube_controller_add(f->controller, "d", "y");
    kube_controller_add(f->controller, "d", "z");
    wait_calls(2);
    wait_metric(f, "controller_runtime_active_workers{controller=\"test\"} 2\n");
    wait_metric(f, "workqueue_depth{name=\"test\"} 1\n");
    let_go();
    wait_calls(3);
    assert_int_equal(work.most, 2);
    wait_metric(f, "controller_runtime_active_workers{controller=\"test\"} 0\n");
}

static void test_watchdog(void **state)
{
    struct fixture *f = *state;
    work.hold = true;
    kube_controller_start(f->controller, NULL);
    kube_controller_add(f->controller, "d", "slow");
    wait_calls(1);
    wait_metric(f, "controller_runtime_active_workers{controller=\"test\"} 1\n");
    clock_manual_advance(&f->clock, 59 * CLOCK_SECOND);
    kube_controller_watchdog(f->controller);
    assert_int_equal(logged(f, "takes long"), 0);
    clock_manual_advance(&f->clock, 1 * CLOCK_SECOND);
    kube_controller_watchdog(f->controller);
    kube_controller_watchdog(f->controller);
    assert_int_equal(logged(f, "takes long"), 1);
    assert_int_equal(logged(f, "d/slow"), 1);
    let_go();
    wait_metric(f, "controller_runtime_active_workers{controller=\"test\"} 0\n");
    assert_int_equal(logged(f, "has ended"), 1);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* From a change to its reconcile: by the real clock, so only the half of many counts. */
static void test_latency(void **state)
{
    (void)state;
    _cleanup_(kube_controller_freep) struct kube_controller *c = kube_controller_new(
        &(struct kube_controller_options){.name = "fast", .reconcile = reconcile}, NULL);
    kube_controller_start(c, NULL);
    int64_t took[101];
    for (size_t i = 0; i < ARRAY_SIZE(took); i++) {
        int64_t begin = clock_mono_ns(clock_system());
        kube_controller_add(c, "d", "x");
        wait_calls((unsigned)i + 1);
        took[i] = work.last_at - begin;
    }
    kube_controller_stop(c);
    qsort(took, ARRAY_SIZE(took), sizeof(took[0]), compare);
    assert_true(took[ARRAY_SIZE(took) / 2] < 5 * MS);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_keys),           CASE(test_owner),
        CASE(test_waits_for_sync), CASE(test_stop_before_sync),
        CASE(test_results),        CASE(test_leader_only),
        CASE(test_workers),        CASE(test_watchdog),
        CASE(test_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
