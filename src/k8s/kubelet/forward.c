#include "k8s/kubelet/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/thread.h"

enum { BLOCK = 32 << 10, EVENTS = 64, BACKLOG = 128 };

/* What an event of epoll is about: the first member of whatever it is. */
enum about { WAKE, LISTENER, SIDE };

struct listener {
    enum about about;
    int fd; /* -1: it is gone, and freed by the thread, which may have an event of it */
    struct list_link link;
    struct sockaddr_in from, to[FORWARD_BACKENDS];
    size_t n, next; /* backends, and whose turn it is */
};

/* One end of a connection, and what it has sent that the other has not taken. */
struct side {
    enum about about;
    int fd;
    struct connection *connection;
    char *block; /* NULL while there is nothing */
    size_t start, len;
    bool ended, passed_on; /* it has ended its direction; the other was told */
    bool deaf; /* it is over both ways, and would say so for ever: not looked at any more */
    uint32_t interest;
};

struct connection {
    struct list_link link;
    struct side client, server;
    bool connecting, dead;
    bool spoken;                             /* something has passed, in any direction */
    struct sockaddr_in to[FORWARD_BACKENDS]; /* to try, in this order */
    size_t n, tried;
};

struct node_forward {
    enum about wake; /* what the event of wake_fd is about */
    int epoll, wake_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* listeners, stopping, paused */
    struct list_link listeners, connections;
    size_t count; /* of connections */
    bool stopping;
    bool paused; /* too many connections: listeners are not looked at */
};

static void watch(struct node_forward *f, int fd, uint32_t events, void *about)
{
    struct epoll_event e = {.events = events, .data.ptr = about};
    epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Connections; only the thread touches them. */

static void side_done(struct side *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    free(s->block);
    s->block = NULL;
}

/* It is freed when all events of this turn were seen: some may be about it. */
static void drop(struct connection *c, bool reset)
{
    struct linger at_once = {.l_onoff = 1};
    if (reset && c->client.fd >= 0)
        setsockopt(c->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    side_done(&c->client);
    side_done(&c->server);
    c->dead = true;
}

static void set_interest(struct node_forward *f, struct side *s, struct side *other)
{
    struct connection *c = s->connection;
    uint32_t wanted = 0;
    if (s->deaf)
        return;
    if (c->connecting) {
        wanted = s == &c->server ? EPOLLOUT : 0;
    } else {
        wanted |= !s->ended && !s->len ? EPOLLIN : 0;
        wanted |= other->len ? EPOLLOUT : 0;
    }
    if (wanted == s->interest)
        return;
    struct epoll_event e = {.events = wanted, .data.ptr = s};
    epoll_ctl(f->epoll, EPOLL_CTL_MOD, s->fd, &e);
    s->interest = wanted;
}

/* Moves what there is from one side to the other; -1 when a side has failed. */
static int pump(struct side *from, struct side *to)
{
    if (!from->len && !from->ended) {
        if (!from->block)
            from->block = mem_alloc(BLOCK);
        ssize_t n = recv(from->fd, from->block, BLOCK, MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        from->ended = n == 0;
        from->connection->spoken |= n > 0;
        from->start = 0;
        from->len = n > 0 ? (size_t)n : 0;
    }
    if (from->len) {
        ssize_t n = send(to->fd, from->block + from->start, from->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        from->start += n > 0 ? (size_t)n : 0;
        from->len -= n > 0 ? (size_t)n : 0;
    }
    if (!from->len) {
        free(from->block);
        from->block = NULL;
    }
    if (from->ended && !from->len && !from->passed_on) {
        shutdown(to->fd, SHUT_WR);
        from->passed_on = true;
    }
    return 0;
}

/* Begins to connect to the next backend; false when there is none left. */
static bool connect_next(struct node_forward *f, struct connection *c)
{
    while (c->tried < c->n) {
        const struct sockaddr_in *to = &c->to[c->tried++];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
        if (fd < 0)
            return false;
        if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 || errno == EINPROGRESS) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            c->server.fd = fd;
            c->server.interest = EPOLLOUT;
            c->connecting = true;
            watch(f, fd, EPOLLOUT, &c->server);
            return true;
        }
        close(fd);
    }
    return false;
}

static void step(struct node_forward *f, struct side *s, uint32_t events)
{
    struct connection *c = s->connection;
    if (c->dead)
        return;
    if (!c->connecting && s->ended && events & (EPOLLHUP | EPOLLERR)) {
        if (events & EPOLLERR) {
            drop(c, true);
            return;
        }
        epoll_ctl(f->epoll, EPOLL_CTL_DEL, s->fd, NULL);
        s->deaf = true;
    }
    struct side *other = s == &c->server ? &c->client : &c->server;
    bool any = (events & (EPOLLHUP | EPOLLERR)) != 0, in = any || events & EPOLLIN,
         out = any || events & EPOLLOUT;
    if (c->connecting && s == &c->server) {
        int error = 0;
        socklen_t size = sizeof(error);
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        c->connecting = false;
        if (error) {
            close(s->fd);
            s->fd = -1;
            if (!connect_next(f, c))
                drop(c, true);
            return;
        }
    }
    if (c->connecting) { /* the client has gone meanwhile */
        drop(c, false);
        return;
    }
    if ((in && pump(s, other) < 0) || (out && pump(other, s) < 0)) {
        drop(c, true);
    } else if (c->client.passed_on && c->server.passed_on) {
        drop(c, false);
    } else {
        set_interest(f, &c->client, &c->server);
        set_interest(f, &c->server, &c->client);
    }
}

static unsigned count_silent(const struct node_forward *f)
{
    unsigned n = 0;
    list_for_each(&f->connections, c, struct connection, link)
        n += !c->dead && !c->spoken;
    return n;
}

/* When there are too many, one goes through which nothing has passed yet, by chance; false: there is none. */
static bool make_room(struct node_forward *f)
{
    unsigned n = count_silent(f), chance = 0;
    if (f->count < FORWARD_MOST)
        return true;
    if (!n)
        return false;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) == sizeof(chance))
        chance %= n;
    list_for_each(&f->connections, c, struct connection, link) {
        if (!c->dead && !c->spoken && chance-- == 0) {
            drop(c, true);
            break;
        }
    }
    return true;
}

/* With the lock. */
static void take(struct node_forward *f, struct listener *l)
{
    if (l->fd < 0 || !make_room(f))
        return;
    int on = 1, fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct connection *c = NEW(struct connection);
    c->client = (struct side){.about = SIDE, .fd = fd, .connection = c};
    c->server = (struct side){.about = SIDE, .fd = -1, .connection = c};
    c->n = l->n;
    for (size_t i = 0; i < l->n; i++)
        c->to[i] = l->to[(l->next + i) % l->n];
    l->next++;
    list_init(&c->link);
    list_push(&f->connections, &c->link);
    f->count++;
    watch(f, fd, 0, &c->client);
    if (!connect_next(f, c))
        drop(c, true);
}

/* Listeners are looked at while there is room. With the lock. */
static void pause_if_full(struct node_forward *f)
{
    bool full = f->count >= FORWARD_MOST && !count_silent(f);
    if (full == f->paused)
        return;
    f->paused = full;
    list_for_each(&f->listeners, l, struct listener, link) {
        if (l->fd < 0)
            continue;
        struct epoll_event e = {.events = full ? 0 : EPOLLIN, .data.ptr = l};
        epoll_ctl(f->epoll, EPOLL_CTL_MOD, l->fd, &e);
    }
}

static void free_dead(struct node_forward *f, bool all)
{
    struct list_link *at = f->connections.next;
    while (at != &f->connections) {
        struct connection *c = container_of(at, struct connection, link);
        at = at->next;
        if (all)
            drop(c, true);
        if (!c->dead)
            continue;
        list_unlink(&c->link);
        free(c);
        f->count--;
    }
}

/* With the lock. */
static void free_listeners(struct node_forward *f, bool all)
{
    struct list_link *at = f->listeners.next;
    while (at != &f->listeners) {
        struct listener *l = container_of(at, struct listener, link);
        at = at->next;
        if (all && l->fd >= 0)
            close(l->fd);
        if (!all && l->fd >= 0)
            continue;
        list_unlink(&l->link);
        free(l);
    }
}

static void handle(struct node_forward *f, void *about, uint32_t events)
{
    eventfd_t n;
    switch (*(enum about *)about) {
    case WAKE:
        if (eventfd_read(f->wake_fd, &n) < 0)
            n = 0;
        break;
    case LISTENER:
        pthread_mutex_lock(&f->lock);
        take(f, about);
        pthread_mutex_unlock(&f->lock);
        break;
    case SIDE:
        step(f, about, events);
        break;
    }
}

static void *run(void *context)
{
    struct node_forward *f = context;
    struct epoll_event events[EVENTS];
    bool stopping = false;
    while (!stopping) {
        int n = epoll_wait(f->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++)
            handle(f, events[i].data.ptr, events[i].events);
        free_dead(f, false);
        pthread_mutex_lock(&f->lock);
        pause_if_full(f);
        free_listeners(f, false);
        stopping = f->stopping;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

int node_forward_new(struct node_forward **ret_forward, struct err *e)
{
    struct node_forward *f = NEW(struct node_forward);
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->listeners);
    list_init(&f->connections);
    f->wake = WAKE;
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = 0;
    if (f->epoll < 0 || f->wake_fd < 0)
        status = err_errno(e, errno, "cannot forward connections");
    else
        watch(f, f->wake_fd, EPOLLIN, &f->wake);
    if (status == 0)
        status = thread_start(&f->thread, "forward", run, f, e);
    if (status == 0) {
        *ret_forward = f;
        return 0;
    }
    if (f->epoll >= 0)
        close(f->epoll);
    if (f->wake_fd >= 0)
        close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return -1;
}

void node_forward_free(struct node_forward *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    eventfd_write(f->wake_fd, 1);
    pthread_join(f->thread, NULL);
    free_dead(f, true);
    free_listeners(f, true);
    close(f->epoll);
    close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* Listeners, with the lock. */

static struct listener *find(struct node_forward *f, const struct sockaddr_in *from)
{
    list_for_each(&f->listeners, l, struct listener, link) {
        if (l->fd >= 0 && l->from.sin_port == from->sin_port &&
            l->from.sin_addr.s_addr == from->sin_addr.s_addr)
            return l;
    }
    return NULL;
}

static struct listener *listen_at(struct node_forward *f, const struct sockaddr_in *from,
                                  struct err *e)
{
    char text[INET_ADDRSTRLEN];
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        err_errno(e, errno, "a socket");
        return NULL;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)from, sizeof(*from)) < 0 || listen(fd, BACKLOG) < 0) {
        int errnum = errno;
        close(fd);
        inet_ntop(AF_INET, &from->sin_addr, text, sizeof(text));
        if (errnum == EADDRINUSE)
            err_set(e, ERR_ALREADY_EXISTS, "InUse", "somebody else listens at %s:%u", text,
                    ntohs(from->sin_port));
        else
            err_errno(e, errnum, "%s:%u", text, ntohs(from->sin_port));
        return NULL;
    }
    struct listener *l = NEW(struct listener);
    *l = (struct listener){.about = LISTENER, .fd = fd, .from = *from};
    list_init(&l->link);
    list_push(&f->listeners, &l->link);
    watch(f, fd, f->paused ? 0 : EPOLLIN, l);
    return l;
}

int node_forward_set(struct node_forward *f, const struct sockaddr_in *from,
                     const struct sockaddr_in *to, size_t n, struct err *e)
{
    int status = 0;
    pthread_mutex_lock(&f->lock);
    struct listener *l = find(f, from);
    if (!l && n)
        l = listen_at(f, from, e);
    if (l && n) {
        l->n = n < FORWARD_BACKENDS ? n : FORWARD_BACKENDS;
        memcpy(l->to, to, l->n * sizeof(*to));
    } else if (l) {
        close(l->fd);
        l->fd = -1;
        eventfd_write(f->wake_fd, 1);
    } else if (n) {
        status = -1;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}
