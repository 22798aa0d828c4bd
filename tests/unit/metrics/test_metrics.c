#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "metrics/metrics.h"
#include "unit.h"

static void assert_text(struct metrics *m, const char *expected)
{
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    assert_string_equal(str_get(&text), expected);
}

static void test_counter(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    assert_text(m, "");
    struct metrics_family *f = metrics_counter(m, "a_total", "Help.", METRICS_LABELS("x", "y"));
    assert_text(m, ""); /* a family without series is not shown */
    metrics_add(metrics_at(f, METRICS_VALUES("1", "2")), 3);
    metrics_add(metrics_at(f, METRICS_VALUES("12", "")), 1);
    metrics_add(metrics_at(f, METRICS_VALUES("", "12")), 1);
    metrics_add(metrics_at(f, METRICS_VALUES("1", "2")), 2);
    assert_text(m, "# HELP a_total Help.\n# TYPE a_total counter\na_total{x=\"1\",y=\"2\"} 5\n"
                   "a_total{x=\"12\",y=\"\"} 1\na_total{x=\"\",y=\"12\"} 1\n");
    assert_ptr_equal(metrics_at(f, METRICS_VALUES("1", "2")),
                     metrics_at(f, METRICS_VALUES("1", "2")));
}

static void test_escaping(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct metrics_family *f =
        metrics_gauge(m, "g", "A \"help\"\nwith \\ lines", METRICS_LABELS("l"));
    metrics_set(metrics_at(f, METRICS_VALUES("a\"b\\c\nd")), -7);
    assert_text(m, "# HELP g A \"help\"\\nwith \\\\ lines\n# TYPE g gauge\n"
                   "g{l=\"a\\\"b\\\\c\\nd\"} -7\n");
}

static void test_histogram(void **state)
{
    (void)state;
    static const double bounds[] = {0.005, 1, 2.5};
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct metrics_family *f = metrics_histogram(m, "h", "H.", NULL, bounds, 3);
    struct metrics_series *s = metrics_at(f, NULL);
    static const double values[] = {0, 0.005, 0.0051, 1, 2, 100};
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        metrics_observe(s, values[i]);
    assert_int_equal(metrics_value(s), 6);
    assert_text(m, "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0.005\"} 2\n"
                   "h_bucket{le=\"1\"} 4\nh_bucket{le=\"2.5\"} 5\nh_bucket{le=\"+Inf\"} 6\n"
                   "h_sum 103.0101\nh_count 6\n");
}

static void collect(void *context, struct metrics_out *out)
{
    metrics_out_family(out, "c", "C.", METRICS_GAUGE);
    metrics_out_value(out, METRICS_LABELS("k"), METRICS_VALUES("v"), *(double *)context);
}

static void test_collected(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    double value = 1.5;
    metrics_collect(m, collect, &value);
    assert_text(m, "# HELP c C.\n# TYPE c gauge\nc{k=\"v\"} 1.5\n");
    value = 1e300;
    assert_text(m, "# HELP c C.\n# TYPE c gauge\nc{k=\"v\"} 1e+300\n");
}

static void test_process(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    metrics_process(m);
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    static const char *const names[] = {
        "process_cpu_seconds_total", "process_start_time_seconds",
        "process_open_fds",          "process_resident_memory_bytes",
        "process_max_fds",           NULL};
    for (const char *const *name = names; *name; name++) {
        char line[64];
        snprintf(line, sizeof(line), "\n%s ", *name);
        const char *found = strstr(text.p, line);
        assert_non_null(found);
        assert_true(strtod(found + strlen(line), NULL) > 0);
    }
    const char *start = strstr(text.p, "\nprocess_start_time_seconds ");
    double began = strtod(start + strlen("\nprocess_start_time_seconds "), NULL);
    double now = (double)clock_real_ns(clock_system()) / 1e9;
    assert_true(began <= now + 1 && began > now - 3600);
}

/* However many values there are, there is an end to the series, and nothing is lost. */
static void test_bounded(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct metrics_family *f = metrics_counter(m, "n_total", "N.", METRICS_LABELS("v"));
    for (int i = 0; i < 3 * METRICS_SERIES; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        metrics_add(metrics_at(f, METRICS_VALUES(value)), 1);
    }
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    size_t lines = 0;
    for (const char *p = text.p; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, METRICS_SERIES + 2);
    assert_int_equal(metrics_value(metrics_at(f, METRICS_VALUES("other"))), 2 * METRICS_SERIES + 1);
    assert_int_equal(metrics_value(metrics_at(f, METRICS_VALUES("7"))), 1);
}

/* Who asks for a name that is taken gets the same family. */
static void test_shared(void **state)
{
    (void)state;
    static const double bounds[] = {1};
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct metrics_family *f = metrics_counter(m, "c_total", "C.", METRICS_LABELS("v"));
    assert_ptr_equal(metrics_counter(m, "c_total", "C.", METRICS_LABELS("v")), f);
    metrics_add(metrics_at(f, METRICS_VALUES("x")), 1);
    f = metrics_histogram(m, "h", "H.", NULL, bounds, 1);
    assert_ptr_equal(metrics_histogram(m, "h", "H.", NULL, bounds, 1), f);
    _cleanup_(str_done) struct str text = {0};
    metrics_format(m, &text);
    assert_null(strstr(strstr(text.p, "TYPE c_total") + 1, "TYPE c_total"));
}

enum { THREADS = 4, ROUNDS = 20000, VALUES = 50 };

struct shared {
    struct metrics_family *counter, *histogram;
};

static void *hammer(void *context)
{
    struct shared *s = context;
    for (int i = 0; i < ROUNDS; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i % VALUES);
        metrics_add(metrics_at(s->counter, METRICS_VALUES(value)), 1);
        metrics_observe(metrics_at(s->histogram, METRICS_VALUES(value)), 0.5);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    static const double bounds[] = {1};
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct shared s = {metrics_counter(m, "c_total", "C.", METRICS_LABELS("v")),
                       metrics_histogram(m, "h", "H.", METRICS_LABELS("v"), bounds, 1)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &s), 0);
    for (int i = 0; i < 100; i++) {
        _cleanup_(str_done) struct str text = {0};
        metrics_format(m, &text);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int64_t total = 0, observed = 0;
    for (int i = 0; i < VALUES; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        total += metrics_value(metrics_at(s.counter, METRICS_VALUES(value)));
        observed += metrics_value(metrics_at(s.histogram, METRICS_VALUES(value)));
    }
    assert_int_equal(total, THREADS * ROUNDS);
    assert_int_equal(observed, THREADS * ROUNDS);
}

static double half_of(void *context)
{
    return *(const int *)context / 2.0;
}

static void test_ask(void **state)
{
    (void)state;
    _cleanup_(metrics_freep) struct metrics *m = metrics_new();
    struct metrics_series *s = metrics_at(metrics_gauge(m, "g", "Half.", NULL), NULL);
    int number = 3;
    metrics_ask(s, half_of, &number);
    assert_text(m, "# HELP g Half.\n# TYPE g gauge\ng 1.5\n");
    number = 5;
    assert_text(m, "# HELP g Half.\n# TYPE g gauge\ng 2.5\n");
    metrics_ask(s, NULL, NULL);
    assert_text(m, "# HELP g Half.\n# TYPE g gauge\ng 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ask),       cmocka_unit_test(test_counter),
        cmocka_unit_test(test_escaping),  cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_collected), cmocka_unit_test(test_process),
        cmocka_unit_test(test_bounded),   cmocka_unit_test(test_shared),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
