#include "kube/lines.h"

enum { KEEP_BYTES = 64 * 1024 };

static int keep(struct kube_lines *l, const char *bytes, size_t n, struct err *e)
{
    if (n > l->limit - l->begun.len)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "LineTooLong", "a line is longer than %zu bytes",
                       l->limit);
    str_append_n(&l->begun, bytes, n);
    return 0;
}

/* The rest of a line. */
static int end(struct kube_lines *l, const char *bytes, size_t n, struct err *e)
{
    if (l->begun.len == 0 && n <= l->limit)
        return n ? l->line(l->context, bytes, n, e) : 0;
    if (keep(l, bytes, n, e) < 0)
        return -1;
    int status = l->line(l->context, l->begun.p, l->begun.len, e);
    if (l->begun.cap > KEEP_BYTES)
        str_done(&l->begun);
    else
        str_clear(&l->begun);
    return status;
}

int kube_lines_feed(struct kube_lines *l, const char *bytes, size_t n, struct err *e)
{
    const char *stop = bytes + n, *newline;
    while (bytes < stop && (newline = memchr(bytes, '\n', (size_t)(stop - bytes)))) {
        if (end(l, bytes, (size_t)(newline - bytes), e) < 0)
            return -1;
        bytes = newline + 1;
    }
    return bytes < stop ? keep(l, bytes, (size_t)(stop - bytes), e) : 0;
}

void kube_lines_done(struct kube_lines *l)
{
    str_done(&l->begun);
}
