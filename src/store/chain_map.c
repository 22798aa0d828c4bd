/*
 * Which granules a layer has, and flushes, which make that durable:
 *
 *     asked for ──> waiting ── none under way ──> changed pages are copied ──> data is synced ──┬──> done()
 *                                                             pages are written, synced <───────┘ if there are any
 *
 * Bits that rise after the copy was taken belong to the next flush: their data may not be in this one's sync.
 * The header of a map is written with each of them (page.h).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/chain.h"

int layer_map_resize(struct layer *l, uint64_t size)
{
    uint64_t granules = (size + GRANULE - 1) / GRANULE,
             pages = (granules + MAP_SPAN - 1) / MAP_SPAN;
    if (l->map_fd < 0 || pages <= l->pages)
        return 0;
    /* Memory that is not touched is none: most of a map is zeroes. */
    void *bits = l->bits ? mremap(l->bits, l->pages * PAGE_ROOM, pages * PAGE_ROOM, MREMAP_MAYMOVE)
                         : mmap(NULL, pages * PAGE_ROOM, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bits == MAP_FAILED)
        return ENOMEM;
    l->bits = bits;
    l->dirty = mem_realloc(l->dirty, pages);
    memset(l->dirty + l->pages, 0, pages - l->pages);
    l->sequence = mem_realloc_array(l->sequence, pages, sizeof(*l->sequence));
    memset(l->sequence + l->pages, 0, (pages - l->pages) * sizeof(*l->sequence));
    l->pages = pages;
    return 0;
}

/* Reading. */

static int damaged(struct err *e, const char *path, const char *why)
{
    return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s %s", path, why);
}

/*
 * The next write goes to the copy that is not the chosen one: parity decides, so a number may be left out.
 */
static uint64_t sequence_from(uint64_t sequence, int chosen)
{
    return (sequence + 1) % 2 == (uint64_t)chosen ? sequence + 1 : sequence;
}

static int load_pair(struct layer *l, const struct page_place *place, uint8_t *pair)
{
    memset(pair, 0, PAGE_PAIR);
    return pread(l->map_fd, pair, PAGE_PAIR, (off_t)(place->index * PAGE_PAIR)) < 0 ? errno : 0;
}

static int load_header(struct layer *l, const struct page_place *place, uint8_t *pair)
{
    uint64_t sequence;
    bool both;
    int error = load_pair(l, place, pair);
    int chosen = error ? -1 : page_choose(pair, place, &sequence, &both);
    if (chosen < 0 || !page_header_get(pair + (size_t)chosen * PAGE_SIZE, &l->map))
        return error ? error : EBADMSG;
    l->map_sequence = sequence_from(sequence, chosen);
    return 0;
}

static int load_pages(struct layer *l, struct page_place *place, uint8_t *pair, uint64_t *ret_found)
{
    off_t at = PAGE_PAIR, end = (off_t)((l->pages + 1) * PAGE_PAIR);
    while (at < end) {
        at = lseek(l->map_fd, at, SEEK_DATA);
        if (at < 0 && errno == ENXIO)
            break; /* only holes are left */
        if (at < 0)
            return errno;
        at -= at % PAGE_PAIR;
        if (at >= end)
            break;
        place->index = (uint64_t)at / PAGE_PAIR;
        int error = load_pair(l, place, pair);
        if (error)
            return error;
        uint64_t sequence, page = place->index - 1;
        bool both;
        int chosen = page_choose(pair, place, &sequence, &both);
        if (chosen >= 0) {
            memcpy(l->bits + page * PAGE_ROOM, pair + (size_t)chosen * PAGE_SIZE, PAGE_ROOM);
            l->sequence[page] = sequence_from(sequence, chosen);
            l->dirty[page] = !both; /* the other copy is made whole with the next flush */
            ++*ret_found;
        }
        at += PAGE_PAIR;
    }
    return 0;
}

int layer_map_load(struct layer *l, const struct uuid *identity, const char *path, struct err *e)
{
    uint8_t pair[PAGE_PAIR];
    struct page_place place = {.identity = *identity, .layer = l->number};
    uint64_t found = 0;
    l->identity = *identity;
    int error = load_header(l, &place, pair);
    if (!error)
        error = load_pages(l, &place, pair, &found);
    if (error == EBADMSG)
        return damaged(e, path, "is damaged, or the map of another layer");
    if (error)
        return err_errno(e, error, "cannot read %s", path);
    if (found < l->map.written)
        return damaged(e, path, "is damaged: pages of it are gone");
    l->map_stale = found > l->map.written; /* a crash came before the header */
    l->map.written = found;
    return 0;
}

int layer_map_make(int fd, const struct uuid *identity, uint32_t number)
{
    uint8_t pair[PAGE_PAIR];
    const struct page_place place = {.identity = *identity, .layer = number};
    page_header_put(pair, &(struct page_header){0});
    page_seal(pair, &place, 1);
    memcpy(pair + PAGE_SIZE, pair, PAGE_SIZE);
    ssize_t n = pwrite(fd, pair, sizeof(pair), 0);
    return n == sizeof(pair) ? 0 : n < 0 ? -errno : -EIO;
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

/* Flushes. */

static struct chain_page *stage_page(struct chain *c, const struct layer *l, uint64_t index,
                                     uint64_t sequence)
{
    if (c->staged_n == c->staged_cap) {
        c->staged_cap = c->staged_cap ? 2 * c->staged_cap : 4;
        c->staged = mem_realloc_array(c->staged, c->staged_cap, sizeof(*c->staged));
    }
    struct chain_page *p = &c->staged[c->staged_n++];
    p->fd = l->map_fd;
    p->index = index;
    p->sequence = sequence;
    return p;
}

/* Whether the checksums' header is behind the map. */
static bool is_behind(const struct layer *l)
{
    struct sums_file *sums = l ? checked_sums(l->file) : NULL;
    return sums && l->map_fd >= 0 && sums_header(sums).map != l->map.version;
}

static void stage(struct chain *c, struct layer *l)
{
    struct page_place place = {.identity = l->identity, .layer = l->number};
    size_t before = c->staged_n;
    for (uint64_t page = 0; l->map_fd >= 0 && page < l->pages; page++) {
        if (!l->dirty[page])
            continue;
        l->dirty[page] = 0;
        c->staged_new |= !l->sequence[page];
        l->map.written += !l->sequence[page];
        place.index = page + 1;
        struct chain_page *p = stage_page(c, l, page + 1, ++l->sequence[page]);
        memcpy(p->bytes, l->bits + page * PAGE_ROOM, PAGE_ROOM);
        page_seal(p->bytes, &place, p->sequence);
    }
    if (c->staged_n == before && !l->map_stale && !(c->sync_sums && is_behind(l)))
        return;
    c->staged_new |= l->map_stale || c->sync_sums;
    l->map_stale = false;
    place.index = 0;
    l->map.version++;
    struct chain_page *p = stage_page(c, l, 0, ++l->map_sequence);
    page_header_put(p->bytes, &l->map);
    page_seal(p->bytes, &place, p->sequence);
}

static int write_copy(const struct chain_page *p, uint64_t copy)
{
    ssize_t n =
        pwrite(p->fd, p->bytes, PAGE_SIZE, (off_t)(p->index * PAGE_PAIR + copy * PAGE_SIZE));
    return n == PAGE_SIZE ? 0 : n < 0 ? -errno : -EIO;
}

/* A sync of each file that a page was staged for. */
static int sync_maps(const struct chain *c)
{
    for (size_t i = 0; i < c->staged_n; i++)
        if (!c->staged[i].index && fdatasync(c->staged[i].fd) < 0)
            return -errno;
    return 0;
}

/* An older map is found from now on. */
static int vouch(const struct layer *l)
{
    return is_behind(l) ? sums_set_map(checked_sums(l->file), l->map.version) : 0;
}

/*
 * On a thread where it may wait: pages, a sync, headers with the other copies of the pages. A header that counts a new
 * page, or that checksums are to vouch for, is synced, and then its other copy is written; others wait for the next
 * flush, which writes the other one.
 */
static int write_pages(void *context)
{
    const struct chain *c = context;
    unsigned rounds = c->staged_new ? 3 : 2;
    int status = 0;
    for (unsigned round = 0; status == 0 && round < rounds; round++) {
        for (size_t i = 0; status == 0 && i < c->staged_n; i++) {
            const struct chain_page *p = &c->staged[i];
            unsigned first = p->index ? 0 : 1; /* the round of its first copy */
            if (round == first || round == first + 1)
                status = write_copy(p, round == first ? p->sequence % 2 : 1 - p->sequence % 2);
        }
        if (status == 0 && round + 1 < rounds)
            status = sync_maps(c);
    }
    for (unsigned i = 0; status == 0 && c->sync_sums && i < ARRAY_SIZE(c->sync_layer); i++)
        status = vouch(c->sync_layer[i]);
    return status;
}

static void start(struct chain *c);

static void finish(struct chain *c, int error)
{
    struct list_link served, *l;
    list_init(&served);
    list_splice(&served, &c->flush_served);
    c->staged_n = 0;
    c->staged_new = false;
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
    c->sync_layer[0] = chain_head(c);
    c->sync_layer[1] = lower;
    c->sync_sums = false;
    list_for_each(&c->flush_served, it, struct store_io, link)
        c->sync_sums |= it->sums;
    stage(c, chain_head(c));
    if (lower)
        stage(c, lower);
    c->sync[0] = (struct store_io){.op = STORE_FLUSH, .sums = c->sync_sums, .done = head_synced};
    c->sync[1] = (struct store_io){.op = STORE_FLUSH, .sums = c->sync_sums, .done = lower_synced};
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
