/*
 * Electors against a lease in memory, with a clock that is moved by hand, and only when all of them
 * wait for a later time. So each case is the same every time, whatever the machine does.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "kube/informer.h"
#include "kube/leader.h"
#include "metrics/metrics.h"
#include "unit.h"

enum { LEADERS = 3 };

static struct clock_manual the_clock;

/* The server: one lease, and what goes wrong with it. Which of the electors asks, its client says. */
static struct {
    pthread_mutex_t lock;
    json_t *lease;
    unsigned version;
    unsigned calls[LEADERS];  /* that ended */
    bool down[LEADERS];       /* cannot be reached */
    bool lossy[LEADERS];      /* writes, and does not answer */
    int64_t slow_ns[LEADERS]; /* so long until the answer to a write */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char clients[LEADERS];

static size_t who(const struct kube_client *c)
{
    return (size_t)((const char *)c - clients);
}

static json_t *done(size_t i, json_t *value, struct err *e)
{
    if (server.down[i] || (server.lossy[i] && value)) {
        json_decref(value);
        value = NULL;
        err_set(e, ERR_UNAVAILABLE, "Test", "no answer");
    }
    pthread_mutex_unlock(&server.lock);
    return value;
}

json_t *kube_get(struct kube_client *c, const struct kube_resource *r, const char *ns,
                 const char *name, struct err *e)
{
    assert_string_equal(r->kind, "Lease");
    assert_string_equal(ns, "d");
    assert_string_equal(name, "l");
    pthread_mutex_lock(&server.lock);
    size_t i = who(c);
    json_t *value = server.lease && !server.down[i] ? json_deep_copy(server.lease) : NULL;
    if (!value)
        err_set(e, ERR_NOT_FOUND, "NotFound", "no lease");
    bool lossy = server.lossy[i];
    server.lossy[i] = false; /* only of writes */
    value = done(i, value, e);
    server.lossy[i] = lossy;
    return value;
}

static json_t *put(size_t i, const json_t *object)
{
    char version[16];
    snprintf(version, sizeof(version), "%u", ++server.version);
    json_t *now = json_deep_copy(object);
    json_object_set_new(json_object_get(now, "metadata"), "resourceVersion", json_string(version));
    json_decref(server.lease);
    server.lease = now;
    if (server.slow_ns[i])
        clock_manual_advance(&the_clock, server.slow_ns[i]);
    return json_deep_copy(now);
}

json_t *kube_create(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e)
{
    (void)r, (void)w;
    pthread_mutex_lock(&server.lock);
    size_t i = who(c);
    if (server.lease && !server.down[i]) {
        err_set(e, ERR_ALREADY_EXISTS, "AlreadyExists", "there is one");
        return done(i, NULL, e);
    }
    return done(i, server.down[i] ? NULL : put(i, object), e);
}

json_t *kube_update(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e)
{
    (void)r, (void)w;
    pthread_mutex_lock(&server.lock);
    size_t i = who(c);
    if (!server.down[i] &&
        !str_eq(json_str(json_object_get(object, "metadata"), "resourceVersion"),
                json_str(json_object_get(server.lease, "metadata"), "resourceVersion"))) {
        err_set(e, ERR_ABORTED, "Conflict", "it has changed");
        return done(i, NULL, e);
    }
    return done(i, server.down[i] ? NULL : put(i, object), e);
}

/* Nobody tells of changes unless a case does; the handler is that of elector b, who asks last. */
static struct kube_handler news;
static _Atomic int listening;

struct kube_informer *kube_informer_new(const struct kube_informer_options *o, struct err *e)
{
    (void)e;
    assert_string_equal(o->fields, "metadata.name=l");
    return (struct kube_informer *)(void *)clients;
}

void kube_informer_add_handler(struct kube_informer *i, struct kube_handler h)
{
    (void)i;
    pthread_mutex_lock(&server.lock);
    news = h;
    pthread_mutex_unlock(&server.lock);
}

int kube_informer_start(struct kube_informer *i, struct err *e)
{
    (void)i, (void)e;
    listening++;
    return 0;
}

void kube_informer_stop(struct kube_informer *i)
{
    (void)i;
    listening--;
}

void kube_informer_free(struct kube_informer *i)
{
    (void)i;
}

static const json_t *spec(void)
{
    return json_object_get(server.lease, "spec");
}

static json_int_t number(const char *key)
{
    pthread_mutex_lock(&server.lock);
    json_int_t n = json_integer_value(json_object_get(spec(), key));
    pthread_mutex_unlock(&server.lock);
    return n;
}

static bool is_holder(const char *name)
{
    pthread_mutex_lock(&server.lock);
    const char *holder = json_str(spec(), "holderIdentity");
    bool same = holder && str_eq(holder, name);
    pthread_mutex_unlock(&server.lock);
    return same;
}

/* The electors. */

static struct elector {
    char name[2];
    struct kube_leader *leader;
    _Atomic int elected, lost;
    struct clock clock;
    _Atomic int64_t rests_until; /* 0: it does not */
} electors[LEADERS];

static int64_t real_ns(const struct clock *c)
{
    (void)c;
    return clock_real_ns(&the_clock.clock);
}

static int64_t mono_ns(const struct clock *c)
{
    (void)c;
    return clock_mono_ns(&the_clock.clock);
}

static bool wait_ns(const struct clock *c, pthread_cond_t *changed, pthread_mutex_t *lock,
                    int64_t until_ns)
{
    struct elector *it = container_of(c, struct elector, clock);
    it->rests_until = until_ns;
    bool early = clock_wait(&the_clock.clock, changed, lock, until_ns);
    if (mono_ns(c) >= until_ns)
        it->rests_until = 0;
    return early;
}

static void on_elected(void *context)
{
    ((struct elector *)context)->elected++;
}

static void on_lost(void *context)
{
    ((struct elector *)context)->lost++;
}

static struct kube_leader *begin(size_t i)
{
    struct elector *it = &electors[i];
    const struct kube_leader_options o = {
        .client = (struct kube_client *)(void *)&clients[i],
        .ns = "d",
        .name = "l",
        .identity = it->name,
        .elected = on_elected,
        .lost = on_lost,
        .context = it,
        .clock = &it->clock,
    };
    it->clock = (struct clock){real_ns, mono_ns, mono_ns, wait_ns};
    it->leader = kube_leader_new(&o, NULL);
    assert_int_equal(kube_leader_start(it->leader, NULL), 0);
    return it->leader;
}

static void end(size_t i)
{
    kube_leader_stop(electors[i].leader);
    kube_leader_free(electors[i].leader);
    electors[i].leader = NULL;
}

static int setup(void **state)
{
    (void)state;
    clock_manual_init(&the_clock, 0);
    for (size_t i = 0; i < LEADERS; i++) {
        electors[i] = (struct elector){.name = {(char)('a' + i), 0}};
        server.down[i] = server.lossy[i] = false;
        server.slow_ns[i] = 0;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEADERS; i++) {
        server.down[i] = server.lossy[i] = false;
        if (electors[i].leader)
            end(i);
    }
    json_decref(server.lease);
    server.lease = NULL;
    server.version = 0;
    assert_int_equal(listening, 0);
    return 0;
}

static size_t leaders(void)
{
    size_t n = 0;
    for (size_t i = 0; i < LEADERS; i++)
        n += electors[i].leader && kube_leader_is(electors[i].leader);
    return n;
}

#define wait_until(condition)                                                                      \
    do {                                                                                           \
        assert_true(leaders() <= 1);                                                               \
        usleep(200);                                                                               \
    } while (!(condition))

/* All electors wait for a later time. */
static void settle(void)
{
    for (size_t i = 0; i < LEADERS; i++) {
        const struct elector *it = &electors[i];
        wait_until(!it->leader || it->lost || it->rests_until > mono_ns(NULL));
    }
}

static void pass(int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 100) {
        settle();
        clock_manual_advance(&the_clock, CLOCK_SECOND / 10);
        assert_true(leaders() <= 1);
    }
    settle();
}

/* How long until that one is elected, in milliseconds. */
static int64_t pass_until_elected(size_t i)
{
    int64_t ms = 0;
    for (; !electors[i].elected; ms += 100) {
        assert_true(ms < 60000);
        pass(100);
    }
    return ms;
}

static void test_first_and_release(void **state)
{
    (void)state;
    struct kube_leader *a = begin(0);
    wait_until(electors[0].elected);
    assert_true(kube_leader_is(a));
    assert_true(is_holder("a"));
    assert_int_equal(number("leaseDurationSeconds"), 15);
    assert_int_equal(number("leaseTransitions"), 0);
    pthread_mutex_lock(&server.lock);
    assert_string_equal(json_str(spec(), "acquireTime"), "1970-01-01T00:00:00.000000Z");
    pthread_mutex_unlock(&server.lock);

    struct kube_leader *b = begin(1);
    pass(2500);
    assert_false(kube_leader_is(b));

    end(0); /* gives it back: the next has it at its next try */
    assert_false(is_holder("a"));
    assert_int_equal(electors[0].lost, 0);
    assert_in_range(pass_until_elected(1), 0, 2500);
    assert_true(is_holder("b"));
    assert_int_equal(number("leaseTransitions"), 1);
}

static void test_renews(void **state)
{
    (void)state;
    struct kube_leader *a = begin(0);
    wait_until(electors[0].elected);
    begin(1);
    for (int i = 0; i < 400; i++) {
        pass(100);
        assert_true(kube_leader_is(a));
    }
    assert_int_equal(electors[0].elected, 1);
    assert_int_equal(electors[1].elected, 0);
    pthread_mutex_lock(&server.lock);
    assert_string_equal(json_str(spec(), "acquireTime"), "1970-01-01T00:00:00.000000Z");
    assert_string_not_equal(json_str(spec(), "renewTime"), "1970-01-01T00:00:00.000000Z");
    pthread_mutex_unlock(&server.lock);
}

/* One that cannot renew stops before another may begin. */
static void test_takeover(void **state)
{
    (void)state;
    struct kube_leader *a = begin(0);
    wait_until(electors[0].elected);
    begin(1);
    pass(1000);
    pthread_mutex_lock(&server.lock);
    server.down[0] = true;
    pthread_mutex_unlock(&server.lock);
    pass(8900);
    assert_true(kube_leader_is(a));
    pass(100);
    assert_false(kube_leader_is(a));
    assert_int_equal(electors[0].lost, 1);
    assert_in_range(pass_until_elected(1), 4900, 5100);
    assert_true(is_holder("b"));
    assert_int_equal(number("leaseTransitions"), 1);
    assert_int_equal(electors[0].elected, 1);
}

/* Who was replaced has lost, even if the lease is free again when it comes back. */
static void test_replaced_meanwhile(void **state)
{
    (void)state;
    begin(0);
    wait_until(electors[0].elected);
    pthread_mutex_lock(&server.lock);
    json_auto_t *given_back = json_deep_copy(server.lease);
    json_object_set_new(json_object_get(given_back, "spec"), "holderIdentity", json_string(""));
    json_decref(put(1, given_back));
    pthread_mutex_unlock(&server.lock);
    pass(2000);
    assert_int_equal(electors[0].lost, 1);
    assert_int_equal(electors[0].elected, 1);
    assert_true(is_holder(""));
}

/* A lease that somebody removed is not free before whom we saw must have stopped. */
static void test_removed(void **state)
{
    (void)state;
    struct kube_leader *a = begin(0);
    wait_until(electors[0].elected);
    begin(1);
    settle();
    pthread_mutex_lock(&server.lock);
    server.down[0] = true;
    json_decref(server.lease);
    server.lease = NULL;
    pthread_mutex_unlock(&server.lock);
    pass(10000);
    assert_false(kube_leader_is(a));
    assert_in_range(pass_until_elected(1), 4900, 5100);
}

/* One that is told of the change does not wait for its next try. */
static void test_news(void **state)
{
    (void)state;
    begin(0);
    wait_until(electors[0].elected);
    begin(1);
    settle();
    assert_int_equal(listening, 1);
    end(0);
    news.changed(news.context, NULL, NULL);
    wait_until(electors[1].elected);
    wait_until(listening == 0);
}

/* A write that succeeded unheard is found again by its name, and the time counts from what is sent. */
static void test_lost_answer(void **state)
{
    (void)state;
    server.lossy[0] = true;
    struct kube_leader *a = begin(0);
    wait_until(is_holder("a"));
    assert_false(kube_leader_is(a));
    pthread_mutex_lock(&server.lock);
    server.lossy[0] = false;
    pthread_mutex_unlock(&server.lock);
    assert_in_range(pass_until_elected(0), 2000, 2500);
    assert_int_equal(number("leaseTransitions"), 0);
}

/* An answer that took longer than the lease may be held is no leadership. */
static void test_late_answer(void **state)
{
    (void)state;
    server.slow_ns[0] = 11 * CLOCK_SECOND;
    struct kube_leader *a = begin(0);
    wait_until(is_holder("a"));
    assert_false(kube_leader_is(a));
    pthread_mutex_lock(&server.lock);
    server.slow_ns[0] = 0;
    pthread_mutex_unlock(&server.lock);
    assert_in_range(pass_until_elected(0), 2000, 2500);
}

/* Somebody's label on the lease is no reason to stop, somebody's name is. */
static void test_others_write(void **state)
{
    (void)state;
    struct kube_leader *a = begin(0);
    wait_until(electors[0].elected);
    pthread_mutex_lock(&server.lock);
    json_object_set_new(json_object_get(server.lease, "metadata"), "labels", json_object());
    json_decref(put(1, server.lease));
    pthread_mutex_unlock(&server.lock);
    pass(15000);
    assert_true(kube_leader_is(a));
    assert_int_equal(electors[0].lost, 0);

    pthread_mutex_lock(&server.lock);
    json_auto_t *taken = json_deep_copy(server.lease);
    json_object_set_new(json_object_get(taken, "spec"), "holderIdentity", json_string("somebody"));
    json_decref(put(1, taken));
    pthread_mutex_unlock(&server.lock);
    pass(2000);
    assert_int_equal(electors[0].lost, 1);
    assert_true(is_holder("somebody"));
    end(0);
    assert_true(is_holder("somebody")); /* what is not ours is not given back */
}

/* A lease of our own name, which this process did not write, may be that of one that still runs. */
static void test_same_name(void **state)
{
    (void)state;
    server.lease = json_pack("{s:{s:s},s:{s:s,s:i}}", "metadata", "resourceVersion", "7", "spec",
                             "holderIdentity", "a", "leaseDurationSeconds", 30);
    struct kube_leader *a = begin(0);
    pass(29000); /* as long as it says, not as long as we would */
    assert_false(kube_leader_is(a));
    assert_in_range(pass_until_elected(0), 900, 1100);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        int64_t lease, renew, retry;
        bool good;
    } cases[] = {
        {0, 0, 0, true},
        {2 * CLOCK_SECOND, 0, 0, true},
        {2 * CLOCK_SECOND, CLOCK_SECOND, CLOCK_SECOND / 10, true},
        {CLOCK_SECOND * 3 / 2, 0, 0, false},
        {2 * CLOCK_SECOND, 2 * CLOCK_SECOND, 0, false},
        {2 * CLOCK_SECOND, CLOCK_SECOND, CLOCK_SECOND, false},
        {-CLOCK_SECOND, 0, 0, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        const struct kube_leader_options o = {
            .ns = "d",
            .name = "l",
            .lease_ns = cases[i].lease,
            .renew_ns = cases[i].renew,
            .retry_ns = cases[i].retry,
        };
        _cleanup_(kube_leader_freep) struct kube_leader *l = kube_leader_new(&o, &e);
        assert_int_equal(l != NULL, cases[i].good);
        assert_int_equal(e.code, cases[i].good ? ERR_OK : ERR_INVALID_ARGUMENT);
        if (l)
            assert_false(kube_leader_is(l));
    }
}

static void test_metric(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    const struct kube_leader_options o = {.ns = "d", .name = "l", .metrics = m};
    struct kube_leader *l = kube_leader_new(&o, NULL);
    kube_leader_stop(l); /* never started */
    kube_leader_free(l);
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    assert_non_null(strstr(str_get(&text), "leader_election_master_status{name=\"l\"} 0\n"));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_first_and_release),
        CASE(test_renews),
        CASE(test_takeover),
        CASE(test_replaced_meanwhile),
        CASE(test_removed),
        CASE(test_news),
        CASE(test_lost_answer),
        CASE(test_late_answer),
        CASE(test_others_write),
        CASE(test_same_name),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
