/*
 * Memory as a store: one mapping, whose pages come when they are written and go when they are
 * unmapped. Everything is done at once, and nothing survives.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/str.h"
#include "store/impl.h"

enum { PAGE = 4096 };

struct mem {
    struct store store;
    uint8_t *data; /* owned */
};

static uint64_t copy(struct mem *m, const struct store_io *io)
{
    uint64_t at = io->offset, left = io->length;
    for (unsigned i = 0; i < io->iovs && left; i++) {
        size_t n = io->iov[i].iov_len < left ? io->iov[i].iov_len : left;
        if (io->op == STORE_READ)
            memcpy(io->iov[i].iov_base, m->data + at, n);
        else
            memcpy(m->data + at, io->iov[i].iov_base, n);
        at += n;
        left -= n;
    }
    return left;
}

static void clear(struct mem *m, uint64_t offset, uint64_t length, bool give_back)
{
    uint64_t first = (offset + PAGE - 1) & ~(uint64_t)(PAGE - 1), end = offset + length,
             last = end & ~(uint64_t)(PAGE - 1);
    if (!give_back || first >= last) {
        memset(m->data + offset, 0, length);
        return;
    }
    memset(m->data + offset, 0, first - offset);
    madvise(m->data + first, last - first, MADV_DONTNEED);
    memset(m->data + last, 0, end - last);
}

static void submit(struct store *s, struct store_io *io)
{
    struct mem *m = container_of(s, struct mem, store);
    int error = 0;
    switch (io->op) {
    case STORE_READ:
    case STORE_WRITE:
        error = copy(m, io) ? EINVAL : 0; /* vectors that are shorter than the length */
        break;
    case STORE_UNMAP:
    case STORE_ZERO:
        clear(m, io->offset, io->length, io->op == STORE_UNMAP);
        break;
    case STORE_FLUSH:
    case STORE_RESUM:
        break;
    }
    store_done(io, error);
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct mem *m = container_of(s, struct mem, store);
    void *moved = mremap(m->data, s->size, size, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) {
        done(context, ENOMEM);
        return;
    }
    m->data = moved;
    s->size = size;
    done(context, 0);
}

static void close_mem(struct store *s)
{
    struct mem *m = container_of(s, struct mem, store);
    munmap(m->data, s->size);
    free(m);
}

static const struct store_ops mem_ops = {
    .name = "mem",
    .submit = submit,
    .grow = grow,
    .close = close_mem,
};

struct store *store_mem_open(const char *rest, const struct store_options *o, struct err *e)
{
    if (*rest || !o->size) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidStore", "write mem: and a size");
        return NULL;
    }
    struct mem *m = NEW(struct mem);
    m->data = mmap(NULL, o->size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->data == MAP_FAILED) {
        err_errno(e, errno, "cannot have %llu bytes of memory", (unsigned long long)o->size);
        free(m);
        return NULL;
    }
    m->store = (struct store){
        .ops = &mem_ops,
        .size = o->size,
        .block_size = o->block_size,
        .read_only = o->read_only,
        .atomic = UINT32_MAX, /* nothing of it is there after a crash */
    };
    return &m->store;
}
