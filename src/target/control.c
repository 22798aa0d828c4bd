/*
 * The control socket: {"command":"show"}, {"command":"grow","size":BYTES}, {"command":"drain"}, one a
 * line; each is answered by one line, {"error":"..."} when it could not be done. Only the owner of the
 * socket's file, and root, can reach it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "io/stream.h"
#include "json/json.h"
#include "target/target.h"

enum { LINE_MOST = 4096, CLIENTS_MOST = 16 };

struct target_control {
    struct target *target;
    struct io_watch watch;
    char *path;
    struct list_link clients;
    unsigned count;
    bool growing;
    struct client *grower; /* who asked for it, if still there */
};

struct client {
    struct io_stream stream;
    struct target_control *control;
    struct list_link link;
    struct str line;
};

static void reply(struct client *c, const char *text, size_t n)
{
    io_queue_copy(&c->stream.out, text, n);
    io_queue_copy(&c->stream.out, "\n", 1);
    io_stream_flush(&c->stream);
}

static void reply_error(struct client *c, const char *message)
{
    _cleanup_(str_done) struct str out = {0};
    json_auto_t *o = json_object();
    json_object_set_new(o, "error", json_string(message));
    json_format(o, &out);
    reply(c, out.p, out.len);
}

static void show(struct client *c, const json_t *request)
{
    (void)request;
    _cleanup_(str_done) struct str out = {0};
    target_status(c->control->target, &out);
    reply(c, out.p, out.len);
}

static void grown(void *context, int error)
{
    struct target_control *control = context;
    struct target *t = control->target;
    struct client *c = control->grower;
    control->growing = false;
    if (error) {
        struct err e = {0};
        err_errno(&e, error, "cannot grow the store");
        log_error("target cannot grow", LOG_ERR(&e));
        if (c)
            reply_error(c, e.msg);
        return;
    }
    t->size = t->store->size;
    scsi_unit_resized(t->unit);
    log_info("target grew", LOG_S("iqn", t->o->iqn), LOG_U("size", t->store->size));
    if (c)
        show(c, NULL);
}

static void grow(struct client *c, const json_t *request)
{
    struct target_control *control = c->control;
    struct target *t = control->target;
    json_int_t size = json_integer_value(json_object_get(request, "size"));
    if (control->growing) {
        reply_error(c, "it is being grown already");
        return;
    }
    if (size <= 0 || (uint64_t)size < t->store->size || size % t->o->block_size)
        reply_error(c, "\"size\" must be a whole number of blocks, and no less than the size is: a "
                       "volume does not shrink");
    else {
        control->growing = true;
        control->grower = c;
        store_grow(t->store, (uint64_t)size, grown, control);
    }
}

static void drain(struct client *c, const json_t *request)
{
    struct target *t = c->control->target;
    log_info("target drains", LOG_S("iqn", t->o->iqn));
    iscsi_node_drain(t->node, t->o->drain_seconds);
    show(c, request);
}

static void obey(struct client *c)
{
    static const struct {
        const char *name;
        void (*fn)(struct client *c, const json_t *request);
    } verbs[] = {{"show", show}, {"grow", grow}, {"drain", drain}};
    struct err e = {0};
    json_auto_t *request = json_parse(str_get(&c->line), c->line.len, NULL, &e);
    const char *name = request ? json_str(request, "command") : NULL;
    for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++) {
        if (str_eq(name, verbs[i].name)) {
            verbs[i].fn(c, request);
            return;
        }
    }
    reply_error(c, request ? "\"command\" must be show, grow or drain" : e.msg);
}

static void received(struct io_stream *stream, const struct io_slice *slices, unsigned n)
{
    struct client *c = container_of(stream, struct client, stream);
    for (unsigned i = 0; i < n; i++) {
        for (uint32_t at = 0; at < slices[i].length; at++) {
            char byte = (char)slices[i].data[at];
            if (byte == '\n') {
                obey(c);
                str_clear(&c->line);
            } else if (c->line.len < LINE_MOST) {
                str_append_c(&c->line, byte);
            } else {
                io_stream_close(stream);
                return;
            }
        }
    }
}

static void closed(struct io_stream *stream, int error)
{
    struct client *c = container_of(stream, struct client, stream);
    (void)error;
    list_unlink(&c->link);
    if (c->control->grower == c)
        c->control->grower = NULL;
    c->control->count--;
    str_done(&c->line);
    free(c);
}

static const struct io_stream_ops ops = {.received = received, .closed = closed};

static void acceptable(struct io_watch *watch)
{
    struct target_control *control = container_of(watch, struct target_control, watch);
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (control->count == CLIENTS_MOST) {
        close(fd);
        return;
    }
    struct client *c = NEW(struct client);
    c->control = control;
    control->count++;
    list_push(&control->clients, &c->link);
    io_stream_start(&c->stream, control->target->loop, fd, &ops);
}

/* A socket that nobody answers at is left over from a crash. */
static int bind_socket(int fd, const struct sockaddr_un *a, struct err *e)
{
    if (connect(fd, (const void *)a, sizeof(*a)) == 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "another target answers at %s",
                       a->sun_path);
    if (errno == ECONNREFUSED)
        unlink(a->sun_path);
    mode_t was = umask(0177);
    int status = bind(fd, (const void *)a, sizeof(*a));
    umask(was);
    if (status < 0 || listen(fd, CLIENTS_MOST) < 0)
        return err_errno(e, errno, "cannot listen at %s", a->sun_path);
    return 0;
}

struct target_control *target_control_new(struct target *t, const char *path, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path)) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidPath", "%s: a socket's path has at most %zu bytes",
                path, sizeof(a.sun_path) - 1);
        return NULL;
    }
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_socket(fd, &a, e) < 0) {
        if (fd < 0)
            err_errno(e, errno, "socket");
        else
            close(fd);
        return NULL;
    }
    struct target_control *c = NEW(struct target_control);
    c->target = t;
    c->path = mem_strdup(path);
    list_init(&c->clients);
    c->watch.readable = acceptable;
    io_watch_add(t->loop, &c->watch, fd);
    return c;
}

void target_control_close(struct target_control *c)
{
    struct io_loop *loop = c->target->loop;
    io_watch_remove(&c->watch);
    list_for_each(&c->clients, client, struct client, link)
        io_stream_close(&client->stream);
    while (c->count)
        io_loop_turn(loop, 1000000);
    for (int i = 0; i < 3; i++) /* the watch comes back too */
        io_loop_turn(loop, 0);
    close(c->watch.fd);
    unlink(c->path);
    free(c->path);
    free(c);
}
