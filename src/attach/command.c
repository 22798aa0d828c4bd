#include "attach/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/ask.h"
#include "attach/attach.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/net.h"
#include "base/str.h"

enum { SECRET_FILE_MOST = 4096, PORT = 3260 };

struct secrets {
    struct str chap, mutual;
    char *portal;
};

static void secrets_done(struct secrets *s)
{
    str_done(&s->chap);
    str_done(&s->mutual);
    free(s->portal);
}

static int read_secret(const char *user, const char *path, struct str *out, const char **ret,
                       struct err *e)
{
    if (!user != !path)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "a CHAP user and a file with the secret go together");
    if (!path)
        return 0;
    if (file_read(path, SECRET_FILE_MOST, out, e) < 0)
        return -1;
    out->p[strcspn(out->p, "\r\n")] = 0;
    *ret = out->p;
    return 0;
}

static int take_target(struct attach_settings *s, struct secrets *m, struct err *e)
{
    struct attach_session_options *o = &s->o.session;
    char *address;
    uint16_t port;
    if (!o->portal || !o->iqn)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "--portal and --iqn are needed");
    if (net_parse(o->portal, PORT, &address, &port, e) < 0)
        return -1;
    m->portal = mem_printf(strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, (unsigned)port);
    free(address);
    o->portal = m->portal;
    if (read_secret(o->chap_user, s->chap_secret, &m->chap, &o->chap_secret, e) < 0)
        return -1;
    return read_secret(o->mutual_user, s->mutual_secret, &m->mutual, &o->mutual_secret, e);
}

/* serve */

struct told {
    int fd; /* of who waits in the foreground; -1: nobody */
};

static void tell(struct told *t, const struct err *e)
{
    if (t->fd >= 0 && write(t->fd, e, sizeof(*e)) < 0)
        log_debug("nobody waits any more");
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

static void ready(void *context)
{
    struct err none = {0};
    log_info("volume can be used");
    tell(context, &none);
}

/* In the parent: 1, and *e is what the other process said. In the other, which has no terminal: 0. */
static int go_background(const char *path, struct told *t, struct err *e)
{
    int ends[2], log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0)
        return err_errno(e, errno, "%s", path);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        close(log);
        return err_errno(e, errno, "pipe");
    }
    pid_t pid = fork();
    if (pid > 0) {
        close(ends[1]);
        close(log);
        if (read(ends[0], e, sizeof(*e)) != sizeof(*e))
            err_set(e, ERR_INTERNAL, "ProcessEnded", "the process has ended; see %s", path);
        close(ends[0]);
        return 1;
    }
    close(ends[0]);
    t->fd = ends[1];
    setsid();
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (pid < 0 || null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        err_errno(e, errno, "cannot go on in the background");
    else
        pid = 0;
    close(null);
    close(log);
    return pid ? -1 : 0;
}

static int fail(const struct cli_args *args, const struct err *e)
{
    cli_fail(args, "%s", e->msg);
    return e->code == ERR_INVALID_ARGUMENT ? CLI_USAGE : ATTACH_EXIT_BASE + (int)e->code;
}

static int serve(const struct cli_args *args, struct attach_settings *s)
{
    _cleanup_(secrets_done) struct secrets m = {0};
    struct told t = {.fd = -1};
    struct err e = {0};
    if (!s->o.mount || !s->o.control)
        return cli_misuse(args, "--mount and --control are needed");
    if (take_target(s, &m, &e) < 0)
        return fail(args, &e);
    int where = s->background ? go_background(s->background, &t, &e) : 0;
    if (where)
        return e.code ? fail(args, &e) : CLI_DONE;
    cli_log_start(&s->log);
    if (attach_serve(&s->o, ready, &t, &e) == 0)
        return CLI_DONE;
    log_error("ended", LOG_ERR(&e));
    bool background = t.fd >= 0 || s->background;
    tell(&t, &e);
    return background ? CLI_FAILED : fail(args, &e);
}

/* The others */

static int add(const struct cli_args *args, struct attach_settings *s, const struct attach_node *n)
{
    _cleanup_(secrets_done) struct secrets m = {0};
    struct attach_volume v;
    struct err e = {0};
    if (take_target(s, &m, &e) < 0)
        return fail(args, &e);
    const struct attach_session_options *o = &s->o.session;
    struct attach_request r = {.id = s->id,
                               .portal = o->portal,
                               .iqn = o->iqn,
                               .initiator = o->initiator,
                               .lun = o->lun,
                               .chap_user = o->chap_user,
                               .chap_secret = o->chap_secret,
                               .mutual_user = o->mutual_user,
                               .mutual_secret = o->mutual_secret,
                               .fail_after_ns = o->fail_after_ns,
                               .within_ns = s->o.login_within_ns};
    if (attach_add(n, &r, &v, &e) < 0)
        return fail(args, &e);
    printf("%s\n", v.device);
    return cli_finish(args);
}

static json_t *describe(const struct attach_volume *v)
{
    return json_pack("{ss sb sb sb si sI si ss si sb}", "id", v->id, "alive", v->alive, "mounted",
                     v->mounted, "connected", v->connected, "pid", (int)v->pid, "size",
                     (json_int_t)v->size, "blockSize", (int)v->block_size, "device", v->device,
                     "stale", (int)v->stale, "whole", attach_is_whole(v));
}

static void print_text(const struct attach_volume *v)
{
    const char *state = !v->alive             ? "dead"
                        : !attach_is_whole(v) ? "incomplete"
                        : v->connected        ? "connected"
                                              : "waiting";
    printf("%-40s %-12s %-12s %7d %14llu", v->id[0] ? v->id : "-", v->device[0] ? v->device : "-",
           state, (int)v->pid, (unsigned long long)v->size);
    if (v->stale)
        printf("  %u stale", v->stale);
    putchar('\n');
}

static int print(const struct cli_args *args, const struct attach_settings *s, json_t *json,
                 const struct attach_volume *v, size_t n)
{
    if (str_eq(s->output, "json")) {
        _cleanup_(str_done) struct str text = {0};
        json_format_pretty(json, &text);
        puts(text.p);
    } else {
        printf("%-40s %-12s %-12s %7s %14s\n", "VOLUME", "DEVICE", "STATE", "PID", "SIZE");
        for (size_t i = 0; i < n; i++)
            print_text(&v[i]);
    }
    return cli_finish(args);
}

/* What the process counts is added where it answers. */
static int show(const struct cli_args *args, struct attach_settings *s, const struct attach_node *n)
{
    struct attach_volume v;
    struct err e = {0}, unheard;
    if (attach_find(n, s->id, &v, &e) < 0)
        return fail(args, &e);
    json_auto_t *json = describe(&v);
    json_t *said = NULL;
    _cleanup_free_ char *control = mem_printf("%s/%s/control", n->folder, v.id);
    if (v.alive && attach_ask(control, "status", CLOCK_SECOND, &said, &unheard) == 0)
        json_object_set_new(json, "process", said);
    return print(args, s, json, &v, 1);
}

static int list(const struct cli_args *args, struct attach_settings *s, const struct attach_node *n)
{
    _cleanup_free_ struct attach_volume *v = NULL;
    size_t count;
    struct err e = {0};
    if (attach_audit(n, &v, &count, &e) < 0)
        return fail(args, &e);
    json_auto_t *json = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(json, describe(&v[i]));
    return print(args, s, json, v, count);
}

static int grow(const struct cli_args *args, struct attach_settings *s, const struct attach_node *n)
{
    uint64_t size;
    struct err e = {0};
    if (attach_grow(n, s->id, &size, &e) < 0)
        return fail(args, &e);
    printf("%llu\n", (unsigned long long)size);
    return cli_finish(args);
}

static int take_away(const struct cli_args *args, struct attach_settings *s,
                     const struct attach_node *n)
{
    struct err e = {0};
    return attach_remove(n, s->id, s->flush_within, s->force, &e) < 0 ? fail(args, &e) : CLI_DONE;
}

int attach_command(const struct cli_args *args)
{
    static const struct {
        const char *verb;
        int (*run)(const struct cli_args *args, struct attach_settings *s,
                   const struct attach_node *n);
        bool of_one;
    } verbs[] = {{"add", add, true},
                 {"show", show, true},
                 {"grow", grow, true},
                 {"remove", take_away, true},
                 {"list", list, false}};
    struct attach_settings *s = args->settings;
    if (str_eq(args->words[0], "serve"))
        return serve(args, s);
    struct attach_node n = {.folder = s->dir, .program = "/proc/self/exe"};
    _cleanup_free_ char *self = realpath(n.program, NULL);
    n.program = self ? self : n.program;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (!str_eq(verbs[i].verb, args->words[0]))
            continue;
        if (verbs[i].of_one && !s->id)
            return cli_misuse(args, "--id is needed");
        return verbs[i].run(args, s, &n);
    }
    return cli_misuse(args, "'%s' is none of serve, add, show, grow, remove, list", args->words[0]);
}
