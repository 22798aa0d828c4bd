/*
 * Joining as a program does it that runs for years: it waits for a cluster that is not there yet, and
 * renews its credentials before they end.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "node/join.h"

enum { RENEW_MS = 3600 * 1000, DELAY_MS = 100, DELAY_MOST_MS = 10000 };

/* Whether the descriptor became readable within that time. */
static bool told(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

int node_join_wait(const struct node_join_options *o, int stop_fd, struct err *e)
{
    for (int delay = DELAY_MS;; delay = delay < DELAY_MOST_MS ? 2 * delay : delay) {
        if (node_join(o, NULL, e) == 0)
            return 0;
        if (e->code != ERR_UNAVAILABLE && e->code != ERR_DEADLINE_EXCEEDED)
            return -1;
        log_warn("cannot join yet", LOG_S("url", o->url), LOG_ERR(e));
        if (told(stop_fd, delay))
            return err_set(e, ERR_CANCELLED, "Stopped", "stopped while joining");
    }
}

struct node_keeper {
    struct node_join_options o;
    void (*renewed)(void);
    pthread_t thread;
    int end_fd;
    _Atomic bool changed;
};

static void *keep(void *context)
{
    struct node_keeper *k = context;
    while (!k->changed && !told(k->end_fd, RENEW_MS)) {
        struct err e = {0};
        bool changed = false;
        if (node_join(&k->o, &changed, &e) < 0)
            log_warn("the credentials cannot be renewed", LOG_ERR(&e));
        k->changed = changed;
        if (changed)
            k->renewed();
    }
    return NULL;
}

int node_keeper_start(const struct node_join_options *o, void (*renewed)(void),
                      struct node_keeper **ret_keeper, struct err *e)
{
    struct node_keeper *k = NEW(struct node_keeper);
    k->o = *o;
    k->renewed = renewed;
    k->end_fd = eventfd(0, EFD_CLOEXEC);
    if (k->end_fd >= 0 && thread_start(&k->thread, "credentials", keep, k, e) == 0) {
        *ret_keeper = k;
        return 0;
    }
    if (k->end_fd < 0)
        err_set(e, ERR_RESOURCE_EXHAUSTED, "NoDescriptors", "there are no descriptors left");
    else
        close(k->end_fd);
    free(k);
    return -1;
}

bool node_keeper_stop(struct node_keeper *k)
{
    if (!k)
        return false;
    eventfd_write(k->end_fd, 1);
    pthread_join(k->thread, NULL);
    bool changed = k->changed;
    close(k->end_fd);
    free(k);
    return changed;
}
