/*
 * The log of a container. Whatever goes wrong with the file, the output is taken: a full disk must
 * not stop the program that writes. The file is locked before it has its name, and until it is
 * closed: whoever follows it knows by that whether more can come.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rfc3339.h"
#include "k8s/shim/shim.h"

enum { USUAL_BYTES = 10 * 1024 * 1024 };

static void open_new(struct shim_log *l)
{
    char new[4096];
    if (snprintf(new, sizeof(new), "%s.new", l->path) >= (int)sizeof(new))
        return;
    unlink(new);
    l->fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0640);
    if (l->fd < 0)
        return;
    flock(l->fd, LOCK_EX | LOCK_NB);
    rename(new, l->path);
}

void shim_log_open(struct shim_log *l, const struct shim_spec *s)
{
    l->fd = -1;
    l->used = 0;
    l->size = 0;
    l->path = s->log;
    l->most = s->log_bytes ? s->log_bytes : USUAL_BYTES;
    if (!l->path)
        return;
    if (s->previous_log && rename(s->log, s->previous_log) < 0 && errno != ENOENT)
        unlink(s->log);
    open_new(l);
}

/*
 * What is full is copied to PATH.1 and emptied: the file itself stays, so that whoever follows it goes
 * on. When there is no room for a copy there is none.
 */
static void rotate(struct shim_log *l)
{
    char older[4096];
    int n = snprintf(older, sizeof(older), "%s.1", l->path);
    int from = n < (int)sizeof(older) ? open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    int to =
        from < 0 ? -1 : open(older, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    ssize_t done = 1;
    while (to >= 0 && done > 0)
        done = sendfile(to, from, NULL, l->most);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    if (ftruncate(l->fd, 0) == 0)
        l->size = 0;
}

/* One write for a line, so that whoever follows the file sees it whole. */
static void flush(struct shim_log *l, int64_t now_ns)
{
    char stamp[RFC3339_MAX + 1], newline = '\n';
    rfc3339_format(rfc3339_from_ns(now_ns), RFC3339_NANO, stamp);
    size_t n = strlen(stamp);
    stamp[n++] = ' ';
    struct iovec parts[] = {{stamp, n}, {l->line, l->used}, {&newline, 1}};
    if (l->fd >= 0 && l->size > 0 && l->size + n + l->used + 1 > l->most)
        rotate(l);
    ssize_t done = l->fd < 0 ? 0 : writev(l->fd, parts, ARRAY_SIZE(parts));
    l->size += done > 0 ? (uint64_t)done : 0;
    l->used = 0;
}

void shim_log_write(struct shim_log *l, const char *bytes, size_t n, int64_t now_ns)
{
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t part = newline ? (size_t)(newline - bytes) : n, room = sizeof(l->line) - l->used;
        bool cut = part > room;
        if (cut)
            part = room;
        memcpy(l->line + l->used, bytes, part);
        l->used += part;
        bytes += part;
        n -= part;
        if (cut || newline)
            flush(l, now_ns);
        if (newline && !cut) {
            bytes++;
            n--;
        }
    }
}

void shim_log_close(struct shim_log *l, int64_t now_ns)
{
    if (l->used)
        flush(l, now_ns);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
