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

static int take_nodes(const struct cli_args *args, struct up_options *o)
{
    const char *text = cli_get(args, "nodes");
    if (!text)
        return CLI_DONE;
    if (!number(text, strlen(text), NODES_MOST, &o->nodes) || !o->nodes)
        return cli_misuse(args, "--nodes takes a number from 1 to %d, not '%s'", NODES_MOST, text);
    return CLI_DONE;
}

/* "3x10Gi"; *ret_text is NULL for none. */
static int take_disks(const struct cli_args *args, const char *option, unsigned *ret_count,
                      const char **ret_text)
{
    const char *text = cli_get(args, option);
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
    *ret_address = mem_strndup(text + brackets, size - 2 * brackets);
    return inet_pton(AF_INET, *ret_address, addr) == 1 ||
           inet_pton(AF_INET6, *ret_address, addr) == 1;
}

/* Where this program lies, the others do. */
static char *own_folder(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    return slash ? mem_strndup(self, (size_t)(slash - self)) : mem_strdup(".");
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

static int run(const struct cli_args *args, struct up_options *o)
{
    struct err e = {0};
    if (up_place_lock(o->place, &e) < 0 || up_run(o, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return CLI_DONE;
}

int up_command_up(const struct cli_args *args)
{
    _cleanup_free_ char *libexec = own_folder();
    _cleanup_free_ char *address = mem_strdup("127.0.0.1");
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    struct up_options o = {
        .place = &place, .libexec = libexec, .port = 6443, .nodes = 1, .ready_fd = -1};
    const char *listen = cli_get(args, "listen");
    struct err e = {0};
    unsigned vg_disks = 0;
    int status = take_nodes(args, &o);
    if (status == CLI_DONE)
        status = take_disks(args, "sparse-disks", &o.disks, &o.sparse_disks);
    if (status == CLI_DONE)
        status = take_disks(args, "vg-disks", &vg_disks, &o.vg_disks);
    o.lost_after = cli_get(args, "lost-after");
    o.rehome_after = cli_get(args, "rehome-after");
    if (status != CLI_DONE)
        return status;
    if (listen && !split_listen(listen, &address, &o.port))
        return cli_misuse(args,
                          "--listen takes an address, a port, or both, such as "
                          "192.0.2.1:6443, not '%s'",
                          listen);
    o.address = address;
    if (up_place_open(cli_get(args, "data"), &place, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    log_init(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    return cli_get(args, "detach") ? run_detached(args, &o) : run(args, &o);
}
