#include "replio/payload.h"

static void put_back(struct repl_buf *counted)
{
    struct replio_payload *p = (struct replio_payload *)counted;
    for (unsigned i = 0; i < p->n; i++)
        io_buf_unref(p->bufs[i]);
    p->n = 0;
    p->next = p->of->free;
    p->of->free = p;
}

static struct replio_payload *get(struct replio_payloads *of, unsigned n)
{
    struct replio_payload *p = of->free;
    if (p)
        of->free = p->next;
    else
        p = NEW(struct replio_payload);
    if (n > p->room) {
        p->bufs = mem_realloc_array(p->bufs, n, sizeof(*p->bufs));
        p->iov = mem_realloc_array(p->iov, n, sizeof(*p->iov));
        p->room = n;
    }
    p->counted = (struct repl_buf){.refs = 1, .free = put_back};
    p->n = n;
    p->of = of;
    return p;
}

struct repl_buf *replio_payload_new(struct replio_payloads *of, struct io_buf *const *bufs,
                                    unsigned n)
{
    struct replio_payload *p = get(of, n);
    for (unsigned i = 0; i < n; i++)
        p->bufs[i] = io_buf_ref(bufs[i]);
    return &p->counted;
}

struct repl_buf *replio_payload_received(struct replio_payloads *of, const struct io_slice *pieces,
                                         unsigned n)
{
    struct replio_payload *p = get(of, n);
    for (unsigned i = 0; i < n; i++) {
        p->bufs[i] = io_buf_ref(pieces[i].buf);
        p->iov[i] = (struct iovec){pieces[i].data, pieces[i].length};
    }
    return &p->counted;
}

struct repl_buf *replio_payload_alloc(struct replio_payloads *of, size_t n, void **ret_data)
{
    struct io_buf *buf = io_buf_new(of->pool, io_buf_class((uint32_t)n));
    struct repl_buf *counted = replio_payload_new(of, &buf, 1);
    *ret_data = buf->data;
    io_buf_unref(buf);
    return counted;
}

void replio_payloads_done(struct replio_payloads *of)
{
    for (struct replio_payload *p = of->free, *next; p; p = next) {
        next = p->next;
        free(p->bufs);
        free(p->iov);
        free(p);
    }
    of->free = NULL;
}
