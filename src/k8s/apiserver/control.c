#include "k8s/apiserver/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 1200, WAITING = 8, TIMEOUT_SECONDS = 30, BLOCK = 64 << 10 };

#define SOCKET_NAME "control.sock"
#define COPY_NAME   "control.backup"

struct apiserver_control {
    char *folder;
    struct apiserver_store *store;
    int listen_fd, stop_fd;
    pthread_t thread;
    _Atomic bool stopping;
};

/*
 * A socket's name may have 107 bytes, and a folder's path more: so the folder is named by
 * descriptor.
 */
static int socket_address(const char *folder, int *ret_folder_fd, struct sockaddr_un *ret_address,
                          struct err *e)
{
    *ret_folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder_fd < 0)
        return err_errno(e, errno, "%s", folder);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/" SOCKET_NAME,
             *ret_folder_fd);
    return 0;
}

static int send_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        p += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* A line without its end; -1 when there is none. */
static int read_line(int fd, char *buf, size_t max)
{
    for (size_t n = 0; n < max; n++) {
        if (recv(fd, &buf[n], 1, 0) != 1)
            return -1;
        if (buf[n] == '\n') {
            buf[n] = '\0';
            return 0;
        }
    }
    return -1;
}

static void set_timeouts(int fd)
{
    struct timeval t = {.tv_sec = TIMEOUT_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* The server. */

struct session {
    struct apiserver_control *control;
    int fd;
};

static bool say_progress(void *context, int done, int total)
{
    struct session *s = context;
    char line[64];
    int n = snprintf(line, sizeof(line), "copying %d %d\n", done, total);
    return !s->control->stopping && send_all(s->fd, line, (size_t)n) == 0;
}

static void say_error(struct session *s, const struct err *e)
{
    char line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof(line), "error %s\n", e->msg);
    for (int i = 0; i < n - 1; i++) {
        if (line[i] == '\n')
            line[i] = ' ';
    }
    send_all(s->fd, line, (size_t)n);
}

/* The copy, which is this function's alone. */
static void send_file(struct session *s, int file, uint64_t revision)
{
    struct stat st;
    if (fstat(file, &st) < 0)
        return;
    char head[80];
    int n =
        snprintf(head, sizeof(head), "size %lld %" PRIu64 "\n", (long long)st.st_size, revision);
    if (send_all(s->fd, head, (size_t)n) < 0)
        return;
    _cleanup_free_ char *block = mem_alloc(BLOCK);
    ssize_t got;
    while (!s->control->stopping && (got = read(file, block, BLOCK)) > 0) {
        if (send_all(s->fd, block, (size_t)got) < 0)
            return;
    }
}

static void backup(struct session *s)
{
    struct apiserver_control *c = s->control;
    _cleanup_free_ char *path = mem_printf("%s/" COPY_NAME, c->folder);
    struct err e = {0};
    uint64_t revision = apiserver_store_revision(c->store); /* the copy has at least this */
    int file = -1;
    if (apiserver_store_copy(c->store, path, say_progress, s, &e) < 0) {
        say_error(s, &e);
    } else if ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        err_errno(&e, errno, "%s", path);
        say_error(s, &e);
    }
    unlink(path); /* what is open stays readable, and nothing is left behind */
    if (file < 0)
        return;
    send_file(s, file, revision);
    close(file);
}

static void serve(struct apiserver_control *c, int fd)
{
    struct session s = {c, fd};
    struct ucred peer;
    socklen_t size = sizeof(peer);
    char line[LINE_MAX_BYTES];
    struct err e = {0};
    set_timeouts(fd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        (peer.uid != 0 && peer.uid != geteuid())) {
        err_set(&e, ERR_PERMISSION_DENIED, "Forbidden",
                "only root and the server's own user may do this");
        say_error(&s, &e);
    } else if (read_line(fd, line, sizeof(line)) == 0) {
        log_info("control", LOG_S("command", line), LOG_U("uid", peer.uid));
        if (str_eq(line, "backup")) {
            backup(&s);
        } else {
            err_set(&e, ERR_INVALID_ARGUMENT, "BadRequest", "there is no such command");
            say_error(&s, &e);
        }
    }
    close(fd);
}

static void *run(void *context)
{
    struct apiserver_control *c = context;
    while (!c->stopping) {
        struct pollfd fds[] = {{c->listen_fd, POLLIN, 0}, {c->stop_fd, POLLIN, 0}};
        if (poll(fds, ARRAY_SIZE(fds), -1) <= 0 || !(fds[0].revents & POLLIN))
            continue;
        int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve(c, fd);
    }
    return NULL;
}

/* Nobody else has the store, so a socket that is there is left from an earlier server. */
static int listen_in(const char *folder, struct err *e)
{
    struct sockaddr_un address;
    int folder_fd;
    if (socket_address(folder, &folder_fd, &address, e) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(address.sun_path);
    bool good = fd >= 0 && fchmod(fd, 0600) == 0 &&
                bind(fd, (const void *)&address, sizeof(address)) == 0 &&
                chmod(address.sun_path, 0600) == 0 && listen(fd, WAITING) == 0;
    if (!good)
        err_errno(e, errno, "%s/" SOCKET_NAME, folder);
    if (!good && fd >= 0)
        close(fd);
    close(folder_fd);
    return good ? fd : -1;
}

int apiserver_control_start(const char *folder, struct apiserver_store *store,
                            struct apiserver_control **ret_control, struct err *e)
{
    int fd = listen_in(folder, e);
    if (fd < 0)
        return -1;
    struct apiserver_control *c = NEW(struct apiserver_control);
    c->folder = mem_strdup(folder);
    c->store = store;
    c->listen_fd = fd;
    c->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (c->stop_fd < 0 || pthread_create(&c->thread, NULL, run, c) != 0)
        abort(); /* like running out of memory */
    *ret_control = c;
    return 0;
}

void apiserver_control_stop(struct apiserver_control *c)
{
    if (!c)
        return;
    c->stopping = true;
    eventfd_write(c->stop_fd, 1);
    pthread_join(c->thread, NULL);
    _cleanup_free_ char *path = mem_printf("%s/" SOCKET_NAME, c->folder);
    unlink(path);
    close(c->listen_fd);
    close(c->stop_fd);
    free(c->folder);
    free(c);
}

/* The client. */

static int not_running(const char *folder, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "NotRunning", "no server runs on %s", folder);
}

static int connect_to(const char *folder, struct err *e)
{
    struct sockaddr_un address;
    int folder_fd;
    if (socket_address(folder, &folder_fd, &address, e) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -1 : connect(fd, (const void *)&address, sizeof(address));
    int errnum = errno;
    close(folder_fd);
    if (result == 0) {
        set_timeouts(fd);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    if (errnum == ENOENT || errnum == ECONNREFUSED)
        return not_running(folder, e);
    return err_errno(e, errnum, "cannot reach the server at %s/" SOCKET_NAME, folder);
}

static int lost(struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "ConnectionLost",
                   "the server ended the connection before the copy was complete");
}

static int receive(int from, int to, uint64_t size, const struct apiserver_backup_progress *p,
                   struct err *e)
{
    _cleanup_free_ char *block = mem_alloc(BLOCK);
    for (uint64_t done = 0; done < size;) {
        ssize_t got = recv(from, block, size - done < BLOCK ? (size_t)(size - done) : BLOCK, 0);
        if (got <= 0)
            return lost(e);
        for (ssize_t n = 0; n < got;) {
            ssize_t written = write(to, block + n, (size_t)(got - n));
            if (written < 0 && errno != EINTR)
                return err_errno(e, errno, "cannot write the copy");
            n += written > 0 ? written : 0;
        }
        done += (uint64_t)got;
        if (p && p->fn)
            p->fn(p->context, APISERVER_BACKUP_RECEIVING, done, size);
    }
    return 0;
}

static int converse(int fd, int to, const struct apiserver_backup_progress *p,
                    uint64_t *ret_revision, struct err *e)
{
    char line[LINE_MAX_BYTES];
    uint64_t first, second;
    if (send_all(fd, "backup\n", 7) < 0)
        return lost(e);
    for (;;) {
        if (read_line(fd, line, sizeof(line)) < 0)
            return lost(e);
        if (str_starts_with(line, "error "))
            return err_set(e, ERR_UNAVAILABLE, "BackupFailed", "%s", line + strlen("error "));
        if (sscanf(line, "size %" SCNu64 " %" SCNu64, &first, &second) == 2) {
            *ret_revision = second;
            return receive(fd, to, first, p, e);
        }
        if (sscanf(line, "copying %" SCNu64 " %" SCNu64, &first, &second) == 2 && p && p->fn)
            p->fn(p->context, APISERVER_BACKUP_COPYING, first, second);
    }
}

int apiserver_control_backup(const char *folder, int fd,
                             const struct apiserver_backup_progress *progress,
                             uint64_t *ret_revision, struct err *e)
{
    int connection = connect_to(folder, e);
    if (connection < 0)
        return -1;
    int status = converse(connection, fd, progress, ret_revision, e);
    close(connection);
    return status;
}
