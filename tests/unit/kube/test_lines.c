#include "base/mem.h"
#include "kube/backoff.h"
#include "kube/lines.h"
#include "unit.h"

static int collect(void *context, const char *text, size_t n, struct err *e)
{
    struct str *out = context;
    if (n == 4 && memcmp(text, "stop", 4) == 0)
        return err_set(e, ERR_ABORTED, "Stop", "told to");
    str_append_n(out, text, n);
    str_append_c(out, '|');
    return 0;
}

/* Each text in pieces of every size comes to the same. */
static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *lines, *reason; /* reason NULL: it is taken */
    } table[] = {
        {"", "", NULL},
        {"a\nbc\n", "a|bc|", NULL},
        {"a\n\n\nb\n", "a|b|", NULL},
        {"a\nhalf", "a|", NULL},
        {"12345678\n12345678\n", "12345678|12345678|", NULL},
        {"a\n123456789\nb\n", "a|", "LineTooLong"},
        {"a\n123456789", "a|", "LineTooLong"},
        {"a\nstop\nb\n", "a|", "Stop"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t size = strlen(table[i].text);
        for (size_t piece = 1; piece <= size + 1; piece++) {
            _cleanup_(str_done) struct str out = {0};
            struct kube_lines l = {.limit = 8, .line = collect, .context = &out};
            struct err e = {0};
            int status = 0;
            for (size_t at = 0; at < size && status == 0; at += piece)
                status = kube_lines_feed(&l, table[i].text + at,
                                         size - at < piece ? size - at : piece, &e);
            assert_int_equal(status, table[i].reason ? -1 : 0);
            if (table[i].reason)
                assert_string_equal(e.reason, table[i].reason);
            assert_string_equal(str_get(&out), table[i].lines);
            kube_lines_done(&l);
        }
    }
}

static int ignore(void *context, const char *text, size_t n, struct err *e)
{
    (void)context, (void)text, (void)n, (void)e;
    return 0;
}

/* One long line does not hold its memory for the rest of the watch. */
static void test_memory(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    struct kube_lines l = {.limit = sizeof(bytes), .line = ignore};
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(kube_lines_feed(&l, bytes, sizeof(bytes), NULL), 0);
    assert_true(l.begun.cap >= sizeof(bytes));
    assert_int_equal(kube_lines_feed(&l, "\n", 1, NULL), 0);
    assert_true(l.begun.cap < sizeof(bytes) / 8);
    kube_lines_done(&l);
}

static void test_backoff(void **state)
{
    (void)state;
    struct kube_backoff b = {100, 1000};
    static const int64_t whole[] = {100, 200, 400, 800, 1000, 1000};
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
            int64_t ns = kube_backoff_next(&b);
            assert_true(ns >= whole[i] / 2 && ns <= whole[i]);
        }
        kube_backoff_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_backoff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
