#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

enum { STACK_BYTES = 512 * 1024 };

int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *context), void *context,
                 struct err *e)
{
    sigset_t all, was;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int status = pthread_create(ret_thread, &attr, fn, context);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    pthread_attr_destroy(&attr);
    if (status != 0)
        return err_errno(e, status, "cannot start thread %s", name);
    char cut[16];
    snprintf(cut, sizeof(cut), "%.15s", name);
    pthread_setname_np(*ret_thread, cut);
    return 0;
}
