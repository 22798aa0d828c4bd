#include <signal.h>

#include "base/mem.h"
#include "base/thread.h"
#include "unit.h"

struct seen {
    char name[32];
    sigset_t mask;
    size_t stack;
};

static void *look(void *context)
{
    struct seen *s = context;
    pthread_attr_t attr;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &s->stack);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    return s;
}

static void test_start(void **state)
{
    (void)state;
    struct seen seen = {{0}};
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    pthread_t thread;
    void *returned;
    assert_int_equal(thread_start(&thread, "a name that is too long", look, &seen, NULL), 0);
    pthread_join(thread, &returned);
    assert_ptr_equal(returned, &seen);
    assert_true(sigismember(&seen.mask, SIGTERM));
    assert_true(seen.stack < 1 << 20);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
