/*
 * Which granules a layer has, and flushes, which make that durable:
 *
 *     asked for ──> waiting ── none under way ──> changed pages are copied ──> data is synced ──┬──> done()
 *                                                             pages are written, synced <───────┘ if there are any
 *
 * Bits that rise after the copy was taken belong to the next flush: their data may not be in this one's sync.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/chain.h"

int layer_map_resize(struct layer *l, uint64_t size)
{
    uint64_t granules = (size + GRANULE - 1) / GRANULE,
             pages = (granules + MAP_SPAN - 1) / MAP_SPAN;
    if (l->map_fd < 0 || pages <= l->pages)
        return 0;
    /* Memory that is not touched is none: most of a map is zeroes. */
    void *bits = l->bits ? mremap(l->bits, l->pages * MAP_PAGE, pages * MAP_PAGE, MREMAP_MAYMOVE)
                         : mmap(NULL, pages * MAP_PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bits == MAP_FAILED)
        return ENOMEM;
    l->bits = bits;
    l->dirty = mem_realloc(l->dirty, pages);
    memset(l->dirty + l->pages, 0, pages - l->pages);
    l->pages = pages;
    return 0;
}

int layer_map_load(struct layer *l)
{
    off_t end = (off_t)(l->pages * MAP_PAGE);
    for (off_t at = 0; l->map_fd >= 0 && at < end;) {
        at = lseek(l->map_fd, at, SEEK_DATA);
        if (at < 0 && errno == ENXIO)
            return 0; /* only holes are left */
        if (at < 0)
            return errno;
        at -= at % MAP_PAGE;
        ssize_t n = at < end ? pread(l->map_fd, l->bits + at, MAP_PAGE, at) : 0;
        if (n < 0)
            return errno;
        at += MAP_PAGE;
    }
    return 0;
}

void layer_map_set(struct layer *l, uint64_t first, uint64_t last)
{
    if (l->map_fd < 0)
        return;
    for (uint64_t g = first; g <= last; g++) {
        uint8_t bit = (uint8_t)(1 << g % 8);
        if (l->bits[g / 8] & bit)
            continue;
        l->bits[g / 8] |= bit;
        l->dirty[g / MAP_SPAN] = 1;
    }
}

static void stage(struct chain *c, struct layer *l)
{
    for (uint64_t page = 0; l->map_fd >= 0 && page < l->pages; page++) {
        if (!l->dirty[page])
            continue;
        l->dirty[page] = 0;
        if (c->staged_n == c->staged_cap) {
            c->staged_cap = c->staged_cap ? 2 * c->staged_cap : 4;
            c->staged = mem_realloc_array(c->staged, c->staged_cap, sizeof(*c->staged));
        }
        struct chain_page *p = &c->staged[c->staged_n++];
        p->fd = l->map_fd;
        p->page = page;
        memcpy(p->bits, l->bits + page * MAP_PAGE, MAP_PAGE);
    }
}

/* On a thread where it may wait. */
static int write_pages(void *context)
{
    const struct chain *c = context;
    int last = -1;
    for (size_t i = 0; i < c->staged_n; i++) {
        const struct chain_page *p = &c->staged[i];
        if (last >= 0 && last != p->fd && fdatasync(last) < 0)
            return -errno;
        last = p->fd;
        ssize_t n = pwrite(p->fd, p->bits, MAP_PAGE, (off_t)(p->page * MAP_PAGE));
        if (n != MAP_PAGE)
            return n < 0 ? -errno : -EIO;
    }
    return last >= 0 && fdatasync(last) < 0 ? -errno : 0;
}

static void start(struct chain *c);

static void finish(struct chain *c, int error)
{
    struct list_link served, *l;
    list_init(&served);
    list_splice(&served, &c->flush_served);
    c->staged_n = 0;
    if (error && !c->broken)
        c->broken = error; /* bits that are no longer dirty may not be on disk */
    c->flushing = false;
    if (!list_empty(&c->flush_waiting))
        start(c);
    while ((l = list_take(&served)))
        store_done(container_of(l, struct store_io, link), c->broken);
}

static void pages_written(struct io_request *request, int64_t result)
{
    finish(container_of(request, struct chain, map_write), (int)-result);
}

static void data_synced(struct chain *c, int error)
{
    c->sync_error = c->sync_error ? c->sync_error : error;
    if (--c->syncs)
        return;
    if (c->sync_error || !c->staged_n) {
        finish(c, c->sync_error);
        return;
    }
    c->map_write = (struct io_request){
        .op = IO_CALL, .call = write_pages, .context = c, .done = pages_written};
    io_submit(c->loop, &c->map_write);
}

static void head_synced(struct store_io *io, int error)
{
    data_synced(container_of(io, struct chain, sync[0]), error);
}

static void lower_synced(struct store_io *io, int error)
{
    data_synced(container_of(io, struct chain, sync[1]), error);
}

static void start(struct chain *c)
{
    struct layer *lower = chain_mirrors(c) || c->merge.flushed ? c->merge.lower : NULL;
    c->flushing = true;
    list_splice(&c->flush_served, &c->flush_waiting);
    c->sync_error = 0;
    c->syncs = lower ? 2 : 1;
    stage(c, chain_head(c));
    if (lower)
        stage(c, lower);
    c->sync[0] = (struct store_io){.op = STORE_FLUSH, .done = head_synced};
    c->sync[1] = (struct store_io){.op = STORE_FLUSH, .done = lower_synced};
    store_submit(chain_head(c)->file, &c->sync[0]);
    if (lower)
        store_submit(lower->file, &c->sync[1]);
}

void chain_flush(struct chain *c, struct store_io *io)
{
    list_push(&c->flush_waiting, &io->link);
    if (!c->flushing)
        start(c);
}
