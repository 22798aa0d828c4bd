#include "base/ask.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { CHUNK = 4096, ANSWER_MOST = 4 << 20 };

static int connect_to(const char *path, int64_t timeout_ns, int *ret_fd, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidPath", "%s is too long for a socket", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    const struct timeval most = {.tv_sec = timeout_ns / CLOCK_SECOND,
                                 .tv_usec = timeout_ns % CLOCK_SECOND / 1000};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, errno, "socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (connect(fd, (const void *)&a, sizeof(a)) < 0) {
        err_set(e, ERR_UNAVAILABLE, "NotThere", "nobody answers at %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

static int receive(int fd, const char *path, struct str *answer, struct err *e)
{
    while (!(answer->len && answer->p[answer->len - 1] == '\n')) {
        char part[CHUNK];
        ssize_t n = recv(fd, part, sizeof(part), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return err_set(e, ERR_DEADLINE_EXCEEDED, "NoAnswer", "%s does not answer in time",
                           path);
        if (n <= 0 || answer->len + (size_t)n > ANSWER_MOST)
            return err_set(e, ERR_UNAVAILABLE, "NoAnswer", "%s ended without an answer", path);
        str_append_n(answer, part, (size_t)n);
    }
    str_truncate(answer, answer->len - 1);
    return 0;
}

int ask_unix(const char *path, const struct str *request, int64_t timeout_ns,
             struct str *ret_answer, struct err *e)
{
    int fd = -1;
    if (connect_to(path, timeout_ns, &fd, e) < 0)
        return -1;
    int status = send(fd, request->p, request->len, MSG_NOSIGNAL) == (ssize_t)request->len
                     ? receive(fd, path, ret_answer, e)
                     : err_set(e, ERR_UNAVAILABLE, "NoAnswer", "%s takes no requests", path);
    close(fd);
    return status;
}
