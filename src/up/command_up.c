#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

static int take_disks(const struct cli_args *args, struct up_options *o)
{
    const char *text = cli_get(args, "sparse-disks");
    if (!text)
        return CLI_DONE;
    size_t n = strcspn(text, "x");
    struct quantity size;
    if (!number(text, n, DISKS_MOST, &o->disks) || text[n] != 'x' ||
        quantity_parse(text + n + 1, &size, NULL) < 0)
        return cli_misuse(
            args, "--sparse-disks takes how many and how large, such as 3x10Gi, not '%s'", text);
    o->sparse_disks = o->disks ? text : NULL;
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

/* The front of a detached system: shows what it says until it is ready, or has failed. */
static int await_ready(const struct cli_args *args, int fd, pid_t pid)
{
    char block[TEXT_BLOCK];
    ssize_t n;
    bool ready = false;
    while ((n = read(fd, block, sizeof(block))) > 0 || (n < 0 && errno == EINTR)) {
        fwrite(block, 1, n > 0 ? (size_t)n : 0, stdout);
        ready |= n > 0;
    }
    if (ready)
        return cli_finish(args);
    int status = 0;
    waitpid(pid, &status, 0); /* it has said why */
    return CLI_FAILED;
}

static int run(const struct cli_args *args, struct up_options *o)
{
    struct err e = {0};
    if (up_place_lock(o->place, &e) < 0 || up_run(o, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return CLI_DONE;
}

static int run_detached(const struct cli_args *args, struct up_options *o)
{
    int fds[2];
    if (pipe(fds) < 0)
        return cli_fail(args, "%s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        return cli_fail(args, "%s", strerror(errno));
    if (pid > 0) {
        close(fds[1]);
        return await_ready(args, fds[0], pid);
    }
    close(fds[0]);
    setsid();
    o->ready_fd = fds[1];
    _exit(run(args, o));
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
    int status = take_nodes(args, &o);
    if (status == CLI_DONE)
        status = take_disks(args, &o);
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
