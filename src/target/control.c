/*
 * The control socket: one request a line, each answered by one line, what `show` shows, or {"error":"..."}
 * when it could not be done. Only the owner of the socket's file, and root, can reach it.
 *
 *     {"command":"show"}                     {"command":"add","replica":UUID[,"instead":UUID]}
 *     {"command":"grow","size":BYTES}        {"command":"remove","replica":UUID[,"force":true]}
 *     {"command":"drain"}                    {"command":"scrub"}
 *     {"command":"rate","bytes":N}           {"command":"snapshot","name":NAME}
 *     {"command":"revert","name":NAME}       {"command":"snapshot-delete","name":NAME}
 *     {"command":"snapshots"}                what there are, with the replicas that have them
 *     {"command":"create","size":BYTES,"replicas":N[,"consistency":N]}
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/stream.h"
#include "json/json.h"
#include "target/target.h"

enum { LINE_MOST = 4096, CLIENTS_MOST = 16 };

/* What takes its time: as a word of status.operation, and as a person reads it. */
struct operation {
    const char *word, *text;
};

static const struct operation growth = {"Growth", "growth"},
                              replica_addition = {"ReplicaAddition", "the addition of a replica"},
                              replica_removal = {"ReplicaRemoval", "the removal of a replica"},
                              a_scrub = {"Scrub", "a scrub"},
                              a_snapshot = {"Snapshot", "a snapshot"},
                              snapshot_deletion = {"SnapshotDeletion",
                                                   "the deletion of a snapshot"},
                              reversion = {"Revert", "the way back to a snapshot"};

struct target_control {
    struct target *target;
    struct io_watch watch;
    int lock; /* of the path, as long as the process lives */
    char *path;
    struct list_link clients;
    unsigned count;
    const struct operation *doing; /* what takes its time; NULL: nothing */
    struct client *asker;          /* who asked for it, if still there */
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

/* What takes its time: one thing at a time, and who asked is told the end. */

static bool begin(struct client *c, const struct operation *what)
{
    struct target_control *control = c->control;
    if (control->doing) {
        _cleanup_free_ char *text =
            mem_printf("%s is under way: wait until it has ended", control->doing->text);
        reply_error(c, text);
        return false;
    }
    control->doing = what;
    control->asker = c;
    return true;
}

static void ended(void *context, int error)
{
    struct target_control *control = context;
    struct target *t = control->target;
    struct client *c = control->asker;
    const char *what = control->doing->text;
    control->doing = NULL;
    control->asker = NULL;
    if (error) {
        struct err e = {0};
        if (error == EFBIG && t->volume)
            err_set(
                &e, ERR_OUT_OF_RANGE, "TooLarge",
                "%s has failed: a replicated volume can become 64 times as large as it was made, "
                "or 4Ti if that is more; make another one, and copy",
                what);
        else
            err_errno(&e, error, "%s has failed", what);
        log_error("target", LOG_ERR(&e));
        if (c)
            reply_error(c, e.msg);
        return;
    }
    log_info("target: it is done", LOG_S("what", what), LOG_S("iqn", t->o->iqn));
    if (c)
        show(c, NULL);
}

static void grown(void *context, int error)
{
    struct target_control *control = context;
    struct target *t = control->target;
    crash_point("grown");
    if (!error) {
        t->size = t->store->size;
        scsi_unit_resized(t->unit);
        log_info("target grew", LOG_S("iqn", t->o->iqn), LOG_U("size", t->store->size));
    }
    ended(context, error);
}

static void grow(struct client *c, const json_t *request)
{
    struct target *t = c->control->target;
    json_int_t size = json_integer_value(json_object_get(request, "size"));
    if (!t->ready)
        reply_error(c, "the volume waits for its replicas");
    else if (size <= 0 || size % t->o->block_size)
        reply_error(c, "the size must be a whole number of blocks");
    else if ((uint64_t)size < t->store->size)
        reply_error(c, "the volume is larger than that: a volume does not shrink");
    else if (begin(c, &growth)) {
        crash_point("grow");
        store_grow(t->store, (uint64_t)size, grown, c->control);
    }
}

/* Replicas. */

static bool is_replicated(struct client *c)
{
    if (!c->control->target->volume)
        reply_error(c, "this volume has no replicas");
    return c->control->target->volume != NULL;
}

/* A replica's UUID at a key of the request. */
static bool take_replica(struct client *c, const json_t *request, const char *key, struct uuid *ret)
{
    const char *text = json_str(request, key);
    struct err e = {0};
    if (text && uuid_from_text(text, ret, &e) == 0)
        return true;
    _cleanup_free_ char *message = mem_printf("\"%s\": %s", key, text ? e.msg : "which one?");
    reply_error(c, message);
    return false;
}

static void begun(struct client *c, bool ok)
{
    struct target_control *control = c->control;
    if (ok)
        return;
    control->doing = NULL;
    control->asker = NULL;
    reply_error(c, "something else is under way: wait until it has ended");
}

static void add(struct client *c, const json_t *request)
{
    struct uuid id, instead;
    bool replaces = json_str(request, "instead") != NULL;
    if (is_replicated(c) && take_replica(c, request, "replica", &id) &&
        (!replaces || take_replica(c, request, "instead", &instead)) && begin(c, &replica_addition))
        begun(c, replio_volume_add(c->control->target->volume, &id, replaces ? &instead : NULL,
                                   ended, c->control));
}

/* At once: it is for a volume that waits, and what else waits there ends. */
static void force_out(struct client *c, const struct uuid *id)
{
    static const struct {
        int error;
        const char *why;
    } refusals[] = {
        {ENOENT, "no replica with this id is a member, as far as those that are here know"},
        {EALREADY, "the volume serves without it: remove it without --force"},
        {EBUSY, "that replica answers: it is not gone. Wait until the volume serves, and remove it "
                "without --force"},
        {EHOSTUNREACH, "no other replica with the volume's data is here"},
    };
    int error = replio_volume_force_out(c->control->target->volume, id);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
        if (error == refusals[i].error)
            reply_error(c, refusals[i].why);
    if (!error)
        show(c, NULL);
}

static void drop(struct client *c, const json_t *request)
{
    struct uuid id;
    if (!is_replicated(c) || !take_replica(c, request, "replica", &id))
        return;
    if (json_is_true(json_object_get(request, "force")))
        force_out(c, &id);
    else if (begin(c, &replica_removal))
        begun(c, replio_volume_remove(c->control->target->volume, &id, ended, c->control));
}

static void scrub(struct client *c, const json_t *request)
{
    (void)request;
    if (is_replicated(c) && begin(c, &a_scrub))
        begun(c, replio_volume_scrub(c->control->target->volume, ended, c->control));
}

/* Snapshots. */

static const char *take_name(struct client *c, const json_t *request)
{
    const char *name = json_str(request, "name");
    if (name && target_snapshot_name(name))
        return name;
    reply_error(c, "\"name\" must be a snapshot's: up to 47 letters, digits, '.', '_' and '-', the "
                   "first of them a letter or a digit");
    return NULL;
}

/* What could not begin, and why. */
static void snapshot_begun(struct client *c, const char *name, int error)
{
    struct target_control *control = c->control;
    _cleanup_(str_done) struct str why = {0};
    if (!error)
        return;
    control->doing = NULL;
    control->asker = NULL;
    target_snapshot_why(control->target, name, error, &why);
    reply_error(c, str_get(&why));
}

static void snapshot(struct client *c, const json_t *request)
{
    struct replio_volume *volume = c->control->target->volume;
    const char *name = is_replicated(c) ? take_name(c, request) : NULL;
    if (name && begin(c, &a_snapshot))
        snapshot_begun(c, name, replio_volume_snapshot(volume, name, ended, c->control));
}

static void snapshot_delete(struct client *c, const json_t *request)
{
    struct replio_volume *volume = c->control->target->volume;
    const char *name = is_replicated(c) ? take_name(c, request) : NULL;
    if (name && begin(c, &snapshot_deletion))
        snapshot_begun(c, name, replio_volume_snap_delete(volume, name, ended, c->control));
}

static void reverted(void *context, int error)
{
    struct target_control *control = context;
    if (!error)
        scsi_unit_changed(control->target->unit); /* for who has logged in meanwhile */
    ended(context, error);
}

static void revert(struct client *c, const json_t *request)
{
    struct target *t = c->control->target;
    const char *name = is_replicated(c) ? take_name(c, request) : NULL;
    if (name && iscsi_node_sessions(t->node))
        reply_error(c, "initiators are logged in, and remember what would no longer be true: let "
                       "them log out first");
    else if (name && begin(c, &reversion))
        snapshot_begun(c, name, replio_volume_revert(t->volume, name, reverted, c->control));
}

static void snapshots(struct client *c, const json_t *request)
{
    (void)request;
    _cleanup_(str_done) struct str out = {0};
    if (!is_replicated(c))
        return;
    json_auto_t *o = json_pack("{s:o}", "snapshots", target_snapshots(c->control->target));
    json_format(o, &out);
    reply(c, out.p, out.len);
}

/*
 * A target that was started without --create waits for replicas that know its volume. Whoever keeps the
 * books of volumes knows whether there ever was one, and says so here.
 */
static void create(struct client *c, const json_t *request)
{
    struct target *t = c->control->target;
    json_int_t size = json_integer_value(json_object_get(request, "size"));
    json_int_t replicas = json_integer_value(json_object_get(request, "replicas"));
    json_int_t consistency = json_integer_value(json_object_get(request, "consistency"));
    consistency = consistency ? consistency : replicas / 2 + 1;
    if (size <= 0 || size % t->o->block_size || replicas < 1 || replicas > REPL_MEMBERS ||
        consistency <= replicas / 2 || consistency > replicas) {
        reply_error(c, "\"size\" must be a whole number of blocks, \"replicas\" from 1 to 8, and "
                       "\"consistency\" more than half of them");
    } else if (is_replicated(c)) {
        replio_volume_create(t->volume, (uint64_t)size, (uint8_t)replicas, (uint8_t)consistency);
        show(c, request);
    }
}

static void rate(struct client *c, const json_t *request)
{
    const json_t *bytes = json_object_get(request, "bytes");
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0) {
        reply_error(c, "\"bytes\" must be a number of bytes a second, 0 for no limit");
    } else if (is_replicated(c)) {
        replio_volume_set_rate(c->control->target->volume, (uint64_t)json_integer_value(bytes));
        show(c, request);
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
    } verbs[] = {
        {"show", show},           {"grow", grow},
        {"drain", drain},         {"add", add},
        {"remove", drop},         {"scrub", scrub},
        {"rate", rate},           {"create", create},
        {"snapshot", snapshot},   {"snapshot-delete", snapshot_delete},
        {"snapshots", snapshots}, {"revert", revert},
    };
    struct err e = {0};
    json_auto_t *request = json_parse(str_get(&c->line), c->line.len, NULL, &e);
    const char *name = request ? json_str(request, "command") : NULL;
    for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++) {
        if (str_eq(name, verbs[i].name)) {
            verbs[i].fn(c, request);
            return;
        }
    }
    reply_error(c, request ? "\"command\" is none that is known" : e.msg);
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
    if (c->control->asker == c)
        c->control->asker = NULL;
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

/*
 * The folder entry belongs to whoever holds the lock beside it. Whether something answers at the
 * socket would not tell: the kernel takes a killed process's ring apart in its own time, and until
 * then its sockets still accept.
 */
static int take_path(const char *path, struct err *e)
{
    _cleanup_free_ char *beside = mem_printf("%s.lock", path);
    int fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", beside);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (errno == EWOULDBLOCK)
        err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                "another target has its control socket at %s; name another with --control", path);
    else
        err_errno(e, errno, "cannot lock %s", beside);
    close(fd);
    return -1;
}

/* What is there is left over from a crash: only a socket is taken away. */
static int bind_socket(int fd, const struct sockaddr_un *a, struct err *e)
{
    struct stat st;
    if (lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
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
    memcpy(a.sun_path, path, strlen(path) + 1);
    int lock = take_path(path, e);
    if (lock < 0)
        return NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_socket(fd, &a, e) < 0) {
        if (fd < 0)
            err_errno(e, errno, "socket");
        else
            close(fd);
        close(lock);
        return NULL;
    }
    struct target_control *c = NEW(struct target_control);
    c->target = t;
    c->lock = lock;
    c->path = mem_strdup(path);
    list_init(&c->clients);
    c->watch.readable = acceptable;
    io_watch_add(t->loop, &c->watch, fd);
    return c;
}

const char *target_control_doing(const struct target_control *c)
{
    return c->doing ? c->doing->text : "";
}

const char *target_control_operation(const struct target_control *c)
{
    return c->doing ? c->doing->word : "";
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
    close(c->lock);
    free(c->path);
    free(c);
}
