#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rfc3339.h"
#include "base/str.h"
#include "k8s/apiserver/pod_log.h"

enum {
    CHUNK = 32 * 1024,
    LINE_MAX_BYTES = 64 * 1024, /* a longer line is passed on in pieces */
};

struct pod_log_reader {
    struct pod_log_options options;
    int fd;
    off_t at;       /* of the next byte to read */
    struct str raw; /* read, and no whole line yet */
    struct str out; /* to be sent, from `sent` on */
    size_t sent;
    int64_t left;   /* bytes that may still be sent; -1: any number */
    bool dropping;  /* the line before was left out */
    bool in_a_line; /* what follows in `raw` continues a line */
};

/* Where the last n lines begin. */
static off_t find_tail(int fd, int64_t n)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return 0;
    char buf[CHUNK];
    off_t end = st.st_size;
    int64_t seen = 0;
    if (n == 0)
        return end;
    for (off_t at = end; at > 0;) {
        size_t size = at < CHUNK ? (size_t)at : CHUNK;
        at -= (off_t)size;
        if (pread(fd, buf, size, at) != (ssize_t)size)
            return 0;
        for (size_t i = size; i-- > 0;) {
            bool last = at + (off_t)i + 1 == end; /* the newline at the end ends a line of the n */
            if (buf[i] == '\n' && !last && ++seen == n)
                return at + (off_t)i + 1;
        }
    }
    return 0;
}

struct pod_log_reader *pod_log_reader_new(int fd, const struct pod_log_options *o)
{
    struct pod_log_reader *r = NEW(struct pod_log_reader);
    r->options = *o;
    r->fd = fd;
    r->left = o->limit;
    r->at = o->tail >= 0 ? find_tail(fd, o->tail) : 0;
    return r;
}

void pod_log_reader_free(struct pod_log_reader *r)
{
    close(r->fd);
    str_done(&r->raw);
    str_done(&r->out);
    free(r);
}

bool pod_log_is_written(const struct pod_log_reader *r)
{
    if (flock(r->fd, LOCK_SH | LOCK_NB) < 0)
        return true;
    flock(r->fd, LOCK_UN);
    return false;
}

/* The time that a line begins with; the bytes it takes with the space behind it, 0: none. */
static size_t read_time(const char *line, size_t n, int64_t *ret_ns)
{
    char text[RFC3339_MAX + 8];
    const char *space = memchr(line, ' ', n < sizeof(text) ? n : sizeof(text));
    size_t size = space ? (size_t)(space - line) : n;
    struct timespec t;
    if (size == 0 || size >= sizeof(text))
        return 0;
    memcpy(text, line, size);
    text[size] = '\0';
    if (strlen(text) != size || rfc3339_parse(text, &t, NULL) < 0)
        return 0;
    *ret_ns = rfc3339_to_ns(t);
    return space ? size + 1 : size;
}

static void pass(struct pod_log_reader *r, const char *bytes, size_t n)
{
    if (r->left >= 0 && (uint64_t)r->left < n)
        n = (size_t)r->left;
    if (r->left >= 0)
        r->left -= (int64_t)n;
    str_append_n(&r->out, bytes, n);
}

/* A line, or a piece of one, with the newline if it has one. */
static void pass_line(struct pod_log_reader *r, const char *line, size_t n)
{
    bool whole = line[n - 1] == '\n';
    if (!r->in_a_line) {
        int64_t time;
        size_t stamp = read_time(line, whole ? n - 1 : n, &time);
        if (stamp)
            r->dropping = time < r->options.since_ns;
        if (stamp && !r->options.timestamps) {
            line += stamp;
            n -= stamp;
        }
    }
    if (!r->dropping && n)
        pass(r, line, n);
    r->in_a_line = !whole;
}

/* Passes on the lines that are whole, and at the end, or of a line that is too long, the rest. */
static void pass_lines(struct pod_log_reader *r, bool at_end)
{
    size_t from = 0;
    const char *newline;
    while (from < r->raw.len && (newline = memchr(r->raw.p + from, '\n', r->raw.len - from))) {
        size_t n = (size_t)(newline - (r->raw.p + from)) + 1;
        pass_line(r, r->raw.p + from, n);
        from += n;
    }
    size_t rest = r->raw.len - from;
    if (rest && (at_end || rest > LINE_MAX_BYTES)) {
        pass_line(r, r->raw.p + from, rest);
        from += rest;
    }
    rest = r->raw.len - from;
    if (from && rest)
        memmove(r->raw.p, r->raw.p + from, rest);
    if (from)
        str_truncate(&r->raw, rest);
}

/* Reads on; false when the file has no more. */
static bool fill(struct pod_log_reader *r)
{
    char buf[CHUNK];
    struct stat st;
    if (fstat(r->fd, &st) == 0 && st.st_size < r->at)
        r->at = 0; /* it was emptied and begins again */
    ssize_t n;
    do
        n = pread(r->fd, buf, sizeof(buf), r->at);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    r->at += n;
    str_append_n(&r->raw, buf, (size_t)n);
    return true;
}

ssize_t pod_log_read(struct pod_log_reader *r, bool ended, char *buf, size_t max)
{
    bool more = true;
    while (r->sent == r->out.len && r->left != 0 && more) {
        str_clear(&r->out);
        r->sent = 0;
        more = fill(r);
        pass_lines(r, !more && (ended || !r->options.follow));
    }
    size_t n = r->out.len - r->sent;
    if (n == 0)
        return r->left == 0 || ended || !r->options.follow ? -1 : 0;
    n = n < max ? n : max;
    memcpy(buf, r->out.p + r->sent, n);
    r->sent += n;
    return (ssize_t)n;
}
