/*
 * `orlop replica serve`: keeps a replica of a volume in a folder and serves it to the volume's target.
 *
 * It ends in order at SIGTERM: what is under way is done, everything flushed, and that nothing is missing
 * is noted, so that the next start knows it.
 */
#include "replica/command.h"

#include "base/beneath.h"
#include "base/log.h"
#include "base/net.h"
#include "base/stop.h"
#include "base/str.h"
#include "replica/replica.h"
#include "replio/replica.h"

enum { PORT = 6060 };

struct serving {
    struct io_loop *loop;
    struct replio_replica *replica;
    struct io_watch stop_watch;
    const char *dir;
    struct err failure;
};

static void stopped(void *context)
{
    struct serving *s = context;
    io_loop_stop(s->loop);
}

static void stop_asked(struct io_watch *watch)
{
    struct serving *s = container_of(watch, struct serving, stop_watch);
    log_info("replica stops");
    io_watch_remove(watch);
    replio_replica_stop(s->replica, stopped, s);
}

/* Past the page cache if that was asked for; a file system without is no reason not to serve. */
static struct replio_replica *open_replica(struct replio_replica_options *o, struct err *e)
{
    struct err why = {0};
    struct replio_replica *r = replio_replica_open(o, o->direct ? &why : e);
    if (r || !o->direct)
        return r;
    o->direct = false;
    r = replio_replica_open(o, e);
    if (r)
        log_warn("no direct I/O here: data goes through the page cache", LOG_S("dir", o->dir),
                 LOG_ERR(&why));
    return r;
}

static void failed(void *context, const char *why)
{
    struct serving *s = context;
    err_set(
        &s->failure, ERR_DATA_LOSS, "ReplicaFailed",
        "the replica in %s ends: %s. Mend that and start it again: the target brings it up to date",
        s->dir, why);
    io_loop_stop(s->loop);
}

static int run(struct replio_replica_options *o, enum io_backend io, int stop_fd, struct err *e)
{
    static struct serving s = {.stop_watch = {.readable = stop_asked}};
    s.dir = o->dir;
    s.loop = io_loop_new(io, e);
    if (!s.loop)
        return -1;
    o->loop = s.loop;
    o->failed = failed;
    o->context = &s;
    s.replica = open_replica(o, e);
    if (s.replica) {
        struct replio_replica_status status;
        char id[UUID_TEXT_MAX];
        replio_replica_status(s.replica, &status);
        log_info("replica serves", LOG_S("dir", o->dir), LOG_S("id", uuid_format(&status.id, id)),
                 LOG_S("target", o->target), LOG_U("port", o->port),
                 LOG_S("io", io_loop_backend(s.loop)), LOG_B("direct", o->direct));
        if (status.damage)
            log_error("the replica has lost its data: it counts in no quorum until it is rebuilt",
                      LOG_S("dir", o->dir), LOG_S("why", status.damage),
                      LOG_S("set-aside", status.set_aside ? status.set_aside : ""));
        io_watch_add(s.loop, &s.stop_watch, stop_fd);
        io_loop_run(s.loop);
        if (s.failure.code) { /* requests may be under way: what they use goes with the process */
            *e = s.failure;
            return -1;
        }
        replio_replica_free(s.replica);
        io_loop_turn(s.loop, 0); /* what was being closed is gone */
        log_info("replica stopped", LOG_S("dir", o->dir));
    }
    io_loop_free(s.loop);
    return s.replica ? 0 : -1;
}

static int take_options(const struct replica_settings *s, struct replio_replica_options *o,
                        char **ret_address, struct replio_key **ret_key, struct err *e)
{
    *o = (struct replio_replica_options){
        .dir = s->dir,
        .store = s->store,
        .source = s->source,
        .direct = s->direct,
    };
    if (!s->target)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "serve needs --target");
    if (!s->key_file)
        return err_set(
            e, ERR_INVALID_ARGUMENT, "Usage",
            "serve needs --key-file: the file with the volume's key that its target has");
    if (o->store && o->direct)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "--direct is about DIR/data: with --store write file:PATH?direct=1");
    if (replio_key_read(s->key_file, ret_key, e) < 0 ||
        net_parse(s->target, PORT, ret_address, &o->port, e) < 0)
        return -1;
    o->target = *ret_address;
    o->key = *ret_key;
    o->volume = uuid_of_name(s->volume);
    if (s->id)
        o->id = uuid_of_name(s->id);
    return 0;
}

static int serve(const struct cli_args *args)
{
    _cleanup_free_ char *address = NULL;
    struct replio_replica_options o;
    struct replio_key *key = NULL;
    struct err e = {0};
    const struct replica_settings *s = args->settings;
    int stop_fd, status = CLI_DONE;
    cli_log_start(&s->log);
    if (take_options(s, &o, &address, &key, &e) < 0)
        status = cli_misuse(args, "%s", e.msg);
    else if (stop_catch(&stop_fd, &e) < 0 || run(&o, s->io, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    replio_key_free(key);
    return status;
}

/* The folder that is erased: with --beneath it is there wherever links and dots lead. 1: it is not there. */
static int find_folder(const struct replica_settings *s, struct str *ret_dir, struct err *e)
{
    const char *dir = s->dir, *above = s->beneath;
    size_t n = above ? strlen(above) : 0;
    if (!above) {
        str_append(ret_dir, dir);
        return 0;
    }
    if (strncmp(dir, above, n) != 0 || dir[n] != '/')
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "%s is not beneath %s", dir, above);
    if (beneath_find(above, dir + n + 1, ret_dir, e) == 0)
        return 0;
    return e->code == ERR_NOT_FOUND ? 1 : -1;
}

static int erase(const struct cli_args *args)
{
    const struct replica_settings *s = args->settings;
    _cleanup_(str_done) struct str dir = {0};
    struct err e = {0};
    const struct uuid volume = uuid_of_name(s->volume);
    int found = find_folder(s, &dir, &e);
    if (found == 0)
        found = replica_erase(str_get(&dir), &volume, s->except ? s->except : "", &e);
    return found < 0 ? cli_fail(args, "%s", e.msg) : cli_finish(args);
}

int replica_command(const struct cli_args *args)
{
    return str_eq(args->words[0], "serve") ? serve(args) : erase(args);
}
