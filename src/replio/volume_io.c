/*
 * Requests of clients: from a store_io to what the core knows, and back.
 *
 *     store_io ─┬─ state: one request ──────────────> repl_target_submit() ──> complete ──> done()
 *               └─ too large for a frame: several, allocated, and in the state how many are left
 *
 * The core must not be called from within an action, and whoever is told that an I/O is done may submit the
 * next: so what is complete is put on a list, and told of when the core has returned.
 */
#include "replio/volume_impl.h"

enum { PART_DATA = IO_HUGE, PART_ZERO = REPL_MAX_ZERO };

/*
 * A client's request as the core has it: in the state of its store_io, or, for one that is too large for
 * a frame, several of them, allocated, with a count in the state.
 */
struct request {
    struct repl_io io; /* its link is ours once it is complete */
    struct store_io *of;
    int status;
};

struct cut {
    unsigned left;
    int status;
};

_Static_assert(sizeof(struct request) <= sizeof(((struct store_io *)0)->state),
               "state is too small");

static void request_done(struct request *r)
{
    struct store_io *of = r->of;
    int status = r->status;
    repl_buf_unref(r->io.buf);
    if ((void *)of->state != r) {
        struct cut *cut = (void *)of->state;
        if (!cut->status)
            cut->status = status;
        status = cut->status;
        free(r);
        if (--cut->left)
            return;
    }
    of->done(of, -status);
}

void volume_complete(void *context, struct repl_io *io, int status)
{
    struct replio_volume *v = context;
    container_of(io, struct request, io)->status = status;
    list_init(&io->link);
    list_push(&v->complete, &io->link);
    turn_soon(v);
}

void volume_tell(struct replio_volume *v)
{
    struct list_link *l;
    while ((l = list_take(&v->complete)))
        request_done(container_of(container_of(l, struct repl_io, link), struct request, io));
}

static void submit_request(struct replio_volume *v, struct request *r, struct store_io *of,
                           uint64_t offset, uint64_t length)
{
    static const enum repl_io_op ops[] = {
        [STORE_READ] = REPL_IO_READ,  [STORE_WRITE] = REPL_IO_WRITE, [STORE_FLUSH] = REPL_IO_FLUSH,
        [STORE_UNMAP] = REPL_IO_ZERO, [STORE_ZERO] = REPL_IO_ZERO,
    };
    r->of = of;
    r->io.op = ops[of->op];
    r->io.flags = (uint16_t)((of->fua ? REPL_FUA : 0) | (of->op == STORE_UNMAP ? REPL_UNMAP : 0));
    r->io.offset = offset;
    r->io.length = length;
    r->io.client = of->client;
    list_init(&r->io.link);
    repl_target_time(v->core, io_loop_now(v->loop));
    repl_target_submit(v->core, &r->io);
}

/* Vectors of a part; how many. */
static unsigned slice(const struct store_io *io, uint64_t skip, uint64_t length, struct iovec *out,
                      struct io_buf **bufs)
{
    unsigned n = 0;
    for (unsigned i = 0; i < io->iovs && length; i++) {
        uint64_t has = io->iov[i].iov_len;
        if (skip >= has) {
            skip -= has;
            continue;
        }
        uint64_t part = has - skip < length ? has - skip : length;
        if (bufs && io->bufs)
            bufs[n] = io->bufs[i];
        out[n++] = (struct iovec){(uint8_t *)io->iov[i].iov_base + skip, part};
        length -= part;
        skip = 0;
    }
    return n;
}

/* A part's request, with its vectors behind it. */
static struct request *make_part(struct replio_volume *v, const struct store_io *io, uint64_t at,
                                 uint64_t length)
{
    bool data = io->op == STORE_READ || io->op == STORE_WRITE;
    unsigned most = data ? io->iovs : 0;
    struct request *r = mem_zalloc(sizeof(*r) + most * sizeof(struct iovec));
    struct iovec *iov = (void *)(r + 1);
    _cleanup_free_ struct io_buf **bufs = mem_zalloc((most + 1) * sizeof(*bufs));
    r->io.iov = iov;
    r->io.iov_n = data ? (int)slice(io, at, length, iov, bufs) : 0;
    if (io->op == STORE_WRITE && io->bufs)
        r->io.buf = replio_payload_new(&v->payloads, bufs, (unsigned)r->io.iov_n);
    return r;
}

static void submit_cut(struct replio_volume *v, struct store_io *io, uint64_t most)
{
    struct cut *cut = (void *)io->state;
    *cut = (struct cut){.left = (unsigned)((io->length + most - 1) / most)};
    /* It may end, and be gone, with the last part. */
    uint64_t offset = io->offset, length = io->length;
    for (uint64_t at = 0; at < length; at += most) {
        uint64_t part = length - at < most ? length - at : most;
        submit_request(v, make_part(v, io, at, part), io, offset + at, part);
    }
}

void volume_submit(struct store *s, struct store_io *io)
{
    struct replio_volume *v = volume_of(s);
    bool data = io->op == STORE_READ || io->op == STORE_WRITE;
    uint64_t most = data ? PART_DATA : PART_ZERO;
    turn_soon(v);
    if (io->op != STORE_FLUSH && io->length > most) {
        submit_cut(v, io, most);
        return;
    }
    struct request *r = (void *)io->state;
    *r = (struct request){0};
    if (data) {
        r->io.iov = io->iov;
        r->io.iov_n = (int)io->iovs;
    }
    if (io->op == STORE_WRITE && io->bufs)
        r->io.buf = replio_payload_new(&v->payloads, io->bufs, io->iovs);
    submit_request(v, r, io, io->offset, io->op == STORE_FLUSH ? 0 : io->length);
}

void volume_client(struct store *s, uint64_t client, bool gone)
{
    struct replio_volume *v = volume_of(s);
    if (!v->core)
        return;
    repl_target_client(v->core, client, gone);
    turn_soon(v);
}
