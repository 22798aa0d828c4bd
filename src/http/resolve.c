#include "http/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_THREADS = 32, STACK = 256 << 10 };

/* Of the thread and of who waits for it: the last one frees it. */
struct lookup {
    _Atomic unsigned refs;
    int done;      /* eventfd */
    uint16_t port; /* and the host: set before the thread begins */
    struct http_addresses found;
    atomic_int status; /* set last; what is above is not touched from then on */
    char host[];
};

static atomic_uint threads;

static void lookup_unref(struct lookup *l)
{
    if (atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    close(l->done);
    free(l);
}

DEFINE_CLEANUP(struct lookup *, lookup_unref)

static int look(const char *host, uint16_t port, int flags, struct http_addresses *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV}, *list;
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    ret->n = 0;
    int status = getaddrinfo(host, service, &hints, &list);
    if (status != 0)
        return status;
    for (const struct addrinfo *i = list; i && ret->n < HTTP_ADDRESSES; i = i->ai_next) {
        if (i->ai_addrlen > sizeof(ret->p[0].storage))
            continue;
        struct http_address *a = &ret->p[ret->n++];
        memcpy(&a->storage, i->ai_addr, i->ai_addrlen);
        a->size = i->ai_addrlen;
    }
    freeaddrinfo(list);
    return ret->n ? 0 : EAI_NONAME;
}

static void *look_up(void *context)
{
    struct lookup *l = context;
    atomic_store(&l->status, look(l->host, l->port, 0, &l->found));
    eventfd_write(l->done, 1);
    lookup_unref(l);
    atomic_fetch_sub(&threads, 1);
    return NULL;
}

static int start_thread(struct lookup *l)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    atomic_fetch_add(&l->refs, 1);
    int r = pthread_create(&thread, &attributes, look_up, l);
    if (r != 0)
        atomic_fetch_sub(&l->refs, 1);
    pthread_attr_destroy(&attributes);
    return r;
}

static int no_thread(struct err *e)
{
    atomic_fetch_sub(&threads, 1);
    return err_set(e, ERR_UNAVAILABLE, "TooManyLookups",
                   "too many names are being looked up: does the name server answer?");
}

bool http_is_address(const char *host)
{
    struct in6_addr six;
    struct in_addr four;
    return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1;
}

int http_resolve(const char *host, uint16_t port, const struct http_wait *w,
                 struct http_addresses *ret_addresses, struct err *e)
{
    if (look(host, port, AI_NUMERICHOST, ret_addresses) == 0)
        return 0;
    if (atomic_fetch_add(&threads, 1) >= MOST_THREADS)
        return no_thread(e);
    _cleanup_(lookup_unrefp) struct lookup *l = mem_zalloc(sizeof(*l) + strlen(host) + 1);
    l->refs = 1;
    l->port = port;
    memcpy(l->host, host, strlen(host) + 1);
    l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done < 0 || start_thread(l) != 0)
        return no_thread(e);
    if (http_wait_for(w, l->done, POLLIN, e) < 0)
        return -1;
    int status = atomic_load(&l->status);
    if (status != 0)
        return err_set(e, ERR_UNAVAILABLE, "UnknownHost", "cannot look up %s: %s", host,
                       gai_strerror(status));
    *ret_addresses = l->found;
    return 0;
}
