#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "up/commands.h"
#include "up/supervisor.h"

enum { NODES_MOST = 100, DISKS_MOST = 100, TEXT_BLOCK = 4096 };

/* A whole number, all of the text. */
static bool number(const char *text, size_t size, unsigned most, unsigned *ret_n)
{
    unsigned long n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || n > most)
            return false;
        n = n * 10 + (unsigned long)(text[i] - '0');
    }
    *ret_n = (unsigned)n;
    return size > 0 && n <= most;
}

/* "3x10Gi"; *ret_text is NULL for none. */
static int take_disks(const struct cli_args *args, const char *option, const char *text,
                      unsigned *ret_count, const char **ret_text)
{
    if (!text)
        return CLI_DONE;
    size_t n = strcspn(text, "x");
    struct quantity size;
    if (!number(text, n, DISKS_MOST, ret_count) || text[n] != 'x' ||
        quantity_parse(text + n + 1, &size, NULL) < 0)
        return cli_misuse(args, "--%s takes how many and how large, such as 3x10Gi, not '%s'",
                          option, text);
    *ret_text = *ret_count ? text : NULL;
    return CLI_DONE;
}

/* "ADDRESS", "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT"; the address goes into *ret_address. */
static bool split_listen(const char *text, char **ret_address, unsigned *ret_port)
{
    unsigned char addr[sizeof(struct in6_addr)];
    const char *colon = strrchr(text, ':');
    if (number(text, strlen(text), UINT16_MAX, ret_port))
        return true;
    bool whole = inet_pton(AF_INET, text, addr) == 1 || inet_pton(AF_INET6, text, addr) == 1;
    if (!whole && (!colon || !number(colon + 1, strlen(colon + 1), UINT16_MAX, ret_port)))
        return false;
    size_t size = whole ? strlen(text) : (size_t)(colon - text);
    bool brackets = size > 1 && text[0] == '[' && text[size - 1] == ']';
    free(*ret_address);
    *ret_address = mem_strndup(text + brackets, brackets ? size - 2 : size);
    return inet_pton(AF_INET, *ret_address, addr) == 1 ||
           inet_pton(AF_INET6, *ret_address, addr) == 1;
}

/*
 * A detached system, seen from the front: what comes through the pipe is what there is to say, and the
 * first byte is whether it is ready. It ends without one when the system was killed.
 */
static int await_ready(const struct cli_args *args, int fd)
{
    _cleanup_(str_done) struct str text = {0};
    char block[TEXT_BLOCK];
    ssize_t n;
    while ((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR))
        str_append_n(&text, block, n > 0 ? (size_t)n : 0);
    close(fd);
    if (!text.len)
        return cli_fail(args, "it has ended before it was ready");
    if (text.p[0] != UP_IS_READY)
        return cli_fail(args, "%s", text.p + 1);
    fputs(text.p + 1, stdout);
    return cli_finish(args);
}

/* What it says from now on goes to a log: there is nobody to read it. */
static int leave_terminal(const struct up_place *place, struct err *e)
{
    _cleanup_free_ char *logs = up_place_path(place, "logs");
    _cleanup_free_ char *path = up_place_path(place, "logs/up.log");
    if (file_make_dirs(logs, 0700, e) < 0)
        return -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (null < 0 || log < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        return err_errno(e, errno, "%s", path);
    close(null);
    close(log);
    return 0;
}

/* In the background; ends the process. */
static void serve_detached(struct up_options *o)
{
    struct err e = {0};
    setsid();
    if (up_place_lock(o->place, &e) == 0 && leave_terminal(o->place, &e) == 0 && up_run(o, &e) == 0)
        _exit(CLI_DONE);
    log_error("cannot go on", LOG_ERR(&e));
    dprintf(o->ready_fd, "!%s", e.msg); /* nobody reads it once it was ready */
    _exit(CLI_FAILED);
}

static int run_detached(const struct cli_args *args, struct up_options *o)
{
    int fds[2];
    pid_t pid = pipe2(fds, O_CLOEXEC) < 0 ? -1 : fork();
    if (pid < 0)
        return cli_fail(args, "%s", strerror(errno));
    if (pid == 0) {
        close(fds[0]);
        o->ready_fd = fds[1];
        serve_detached(o);
    }
    close(fds[1]);
    return await_ready(args, fds[0]);
}

static int run_attached(const struct cli_args *args, struct up_options *o)
{
    struct err e = {0};
    if (up_place_lock(o->place, &e) < 0 || up_run(o, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return CLI_DONE;
}

static int run_up(const struct cli_args *args)
{
    _cleanup_free_ char *libexec = cli_libexec();
    _cleanup_free_ char *address = mem_strdup("127.0.0.1");
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    const struct up_settings *s = args->settings;
    struct up_options o = {
        .place = &place,
        .libexec = libexec,
        .port = 6443,
        .nodes = s->nodes,
        .lost_after = s->lost_after,
        .rehome_after = s->rehome_after,
        .ready_fd = -1,
    };
    struct err e = {0};
    unsigned vg_disks = 0;
    int status = take_disks(args, "sparse-disks", s->sparse_disks, &o.disks, &o.sparse_disks);
    if (status == CLI_DONE)
        status = take_disks(args, "vg-disks", s->vg_disks, &vg_disks, &o.vg_disks);
    if (status != CLI_DONE)
        return status;
    if (s->listen && !split_listen(s->listen, &address, &o.port))
        return cli_misuse(args,
                          "--listen takes an address, a port, or both, such as "
                          "192.0.2.1:6443, not '%s'",
                          s->listen);
    o.address = address;
    if (up_place_open(s->data, &place, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    log_init(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    return s->detach ? run_detached(args, &o) : run_attached(args, &o);
}

static const struct cli_option options[] = {
    UP_DATA_OPTION,
    {"nodes", 'n', "N", CLI_INT, UP_AT(nodes), .def = "1", .least = 1, .most = NODES_MOST,
     .doc = "How many virtual nodes to run."},
    {"sparse-disks", 0, "NxSIZE", CLI_STRING, UP_AT(sparse_disks),
     .doc = "Sparse files on every node to use as disks, such as 3x10Gi. They take only the space "
            "that is written."},
    {"vg-disks", 0, "NxSIZE", CLI_STRING, UP_AT(vg_disks),
     .doc = "Sparse files on every node for its volume group orlop, for local volumes, such as "
            "1x4Gi. They need loop devices."},
    {"listen", 'l', "ADDRESS", CLI_STRING, UP_AT(listen),
     .doc = "Where the API listens: an address, a port, or both; without it 127.0.0.1:6443. Port 0 "
            "is any free one."},
    {"lost-after", 0, "TIME", CLI_DURATION, UP_AT(lost_after),
     .doc = "How long a node may be silent before it counts as lost; without it 40s."},
    {"rehome-after", 0, "TIME", CLI_DURATION, UP_AT(rehome_after),
     .doc = "How long a node or pool is lost before the replicas of volumes on it are rebuilt on "
            "another; without it 5m."},
    {"detach", 0, NULL, CLI_SWITCH, UP_AT(detach),
     .doc = "Go to the background once everything is ready."},
    {0},
};

CLI_COMMAND(up_command) = {
    .name = "up",
    .topic = CLI_MACHINE,
    .summary = "Start the whole system on this machine",
    .doc =
        "Starts the API server, the controllers and virtual nodes as programs of their own, keeps "
        "them running, and prints where they are and what to type next. Ctrl-C, or `orlop down`, "
        "ends them all; the data folder stays, and the next `orlop up` continues with it. A "
        "program that ends by itself is started again.\n\n"
        "DIR/kubeconfig is the administrator's. The logs of the programs are in DIR/logs.",
    .settings = sizeof(struct up_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop up --nodes 3 --sparse-disks 3x10Gi", "Three nodes with three disks each."},
            {"orlop up --data /srv/orlop --detach", "In the background, with a folder of its own."},
            {NULL},
        },
    .run = run_up,
};
