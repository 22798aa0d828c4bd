#include "attach/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { ANSWER_MOST = 64 << 10 };

int attach_address(const char *path, struct sockaddr_un *ret, int *ret_folder, struct err *e)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    *ret_folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder < 0)
        return err_errno(e, errno, "%s", folder);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const char *name = slash ? slash + 1 : path;
    int n =
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", *ret_folder, name);
    if (n > 0 && n < (int)sizeof(ret->sun_path))
        return 0;
    close(*ret_folder);
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidPath", "%s: the name of the socket is too long",
                   path);
}

/* One line, or what there was of it when the time was over. */
static int read_line(int fd, int64_t until, struct str *line, struct err *e)
{
    while (!line->len || line->p[line->len - 1] != '\n') {
        char part[4096];
        int64_t left = (until - clock_mono_ns(clock_system())) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0 || line->len > ANSWER_MOST)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "NoAnswer", "no answer in time");
        int n = poll(&p, 1, (int)left);
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "poll");
        if (n <= 0)
            continue;
        ssize_t got = recv(fd, part, sizeof(part), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return err_set(e, ERR_UNAVAILABLE, "NoAnswer", "the connection was closed");
        if (got > 0)
            str_append_n(line, part, (size_t)got);
    }
    return 0;
}

int attach_ask(const char *path, const char *request, int64_t within_ns, json_t **ret,
               struct err *e)
{
    _cleanup_(str_done) struct str line = {0};
    struct sockaddr_un address;
    int folder, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, errno, "socket");
    int result = attach_address(path, &address, &folder, e);
    if (result == 0) {
        result = connect(fd, (struct sockaddr *)&address, sizeof(address));
        if (result < 0)
            err_set(e, ERR_UNAVAILABLE, "NotServed", "%s: %s", path, strerror(errno));
        close(folder);
    }
    _cleanup_free_ char *text = mem_printf("%s\n", request);
    if (result == 0 && send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        result = err_errno(e, errno, "%s", path);
    if (result == 0)
        result = read_line(fd, clock_mono_ns(clock_system()) + within_ns, &line, e);
    close(fd);
    if (result < 0)
        return -1;
    json_t *answer = json_parse(line.p, line.len, NULL, e);
    const char *error = json_str(answer, "error");
    if (error)
        err_set(e, ERR_FAILED_PRECONDITION, "Refused", "%s", error);
    if (!answer || error) {
        json_decref(answer);
        return -1;
    }
    *ret = answer;
    return 0;
}
