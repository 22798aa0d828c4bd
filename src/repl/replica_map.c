/*
 * The region map, hot regions, and metadata on disk.
 *
 *     cold ──write──> hot, waits for a sync ──sync──> hot, writes cost nothing ──untouched──> cold
 *       entry true      "unknown" to be written        "unknown" on disk             entry true
 *
 * Invariants: a write is executed only in regions whose entry on disk is "unknown", or at least as high as the
 * write's position; data of a rebuild counts as its stamp. In memory an entry is at least as high as any write
 * received. Entries only rise until map_settle().
 */
#include "base/mem.h"
#include "repl/meta.h"
#include "repl/replica_impl.h"

enum { AHEAD = 3 }; /* regions made hot ahead of a sequential writer */

static uint32_t pages_of(uint32_t regions)
{
    return (regions + REPL_PAGE_ENTRIES - 1) / REPL_PAGE_ENTRIES;
}

void map_resize(struct repl_replica *r, uint64_t size, uint8_t region_shift)
{
    /* A store may be larger than any volume. */
    uint64_t all = (size + ((uint64_t)1 << region_shift) - 1) >> region_shift;
    uint32_t regions = (uint32_t)(all < REPL_REGIONS ? all : REPL_REGIONS);
    if (regions <= r->regions)
        return;
    r->map = mem_realloc_array(r->map, regions, sizeof(*r->map));
    r->hot_of = mem_realloc_array(r->hot_of, regions, sizeof(*r->hot_of));
    uint32_t words = pages_of(regions) / 64 + 1,
             had = r->regions ? pages_of(r->regions) / 64 + 1 : 0;
    r->dirty = mem_realloc_array(r->dirty, words, sizeof(*r->dirty));
    memset(r->map + r->regions, 0, (regions - r->regions) * sizeof(*r->map));
    memset(r->hot_of + r->regions, 0, (regions - r->regions) * sizeof(*r->hot_of));
    memset(r->dirty + had, 0, (words - had) * sizeof(*r->dirty));
    r->regions = regions;
}

void map_dirty(struct repl_replica *r, uint32_t region)
{
    uint32_t page = region / REPL_PAGE_ENTRIES;
    r->dirty[page / 64] |= (uint64_t)1 << page % 64;
}

static void cool(struct repl_replica *r, struct hot *h)
{
    map_dirty(r, h->region);
    r->hot_of[h->region] = 0;
    list_unlink(&h->link);
    list_push(&r->hot_free, &h->link);
    r->hot_n--;
}

static struct hot *heat(struct repl_replica *r, uint32_t region)
{
    if (list_empty(&r->hot_free))
        cool(r, container_of(r->lru.next, struct hot, link));
    struct hot *h = container_of(r->hot_free.next, struct hot, link);
    list_unlink(&h->link);
    list_push(&r->lru, &h->link);
    *h = (struct hot){.region = region,
                      .since = MUTANT(122, meta_next(r), r->syncs),
                      .touched = r->now,
                      .link = h->link};
    r->hot_of[region] = (uint16_t)(h - r->hot + 1);
    r->hot_n++;
    map_dirty(r, region);
    return h;
}

static uint64_t touch_one(struct repl_replica *r, uint32_t region)
{
    if (!r->hot_of[region]) {
        struct hot *h = heat(r, region);
        if (region && r->hot_of[region - 1])
            for (uint32_t i = region + 1;
                 i <= region + AHEAD && i < r->regions && r->hot_n < r->cfg.hot_max; i++)
                if (!r->hot_of[i])
                    heat(r, i);
        return h->since;
    }
    struct hot *h = &r->hot[r->hot_of[region] - 1];
    h->touched = r->now;
    if (r->lru.prev != &h->link) {
        list_unlink(&h->link);
        list_push(&r->lru, &h->link);
    }
    return h->since;
}

uint64_t map_touch(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t pos)
{
    uint64_t need = 0;
    uint32_t first = (uint32_t)(offset >> r->sb.view.region_shift);
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = first; i <= last; i++) {
        if (r->map[i] < pos)
            r->map[i] = pos;
        uint64_t since = touch_one(r, i);
        need = since > need ? since : need;
    }
    return need;
}

uint64_t map_stamp(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t stamp)
{
    uint32_t first = (uint32_t)(offset >> r->sb.view.region_shift);
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = first; i <= last; i++) {
        if (r->map[i] == REPL_UNKNOWN || GUARD(55, r->map[i] < stamp))
            r->map[i] = stamp;
        map_dirty(r, i);
    }
    return meta_next(r);
}

uint64_t map_stamp_above(struct repl_replica *r, uint64_t above, uint64_t stamp)
{
    bool any = false;
    for (uint32_t i = 0; i < r->regions; i++) {
        if (r->map[i] <= above)
            continue;
        r->map[i] = stamp;
        map_dirty(r, i);
        any = true;
    }
    return any ? meta_next(r) : 0;
}

void map_cool(struct repl_replica *r, int64_t untouched_since)
{
    struct hot *h;
    while ((h = list_first(&r->lru, struct hot, link)) && h->touched <= untouched_since)
        cool(r, h);
}

void map_forget(struct repl_replica *r)
{
    list_for_each(&r->lru, h, struct hot, link)
        r->map[h->region] = REPL_UNKNOWN;
}

void map_settle(struct repl_replica *r, uint64_t pos)
{
    for (uint32_t i = 0; i < r->regions; i++) {
        if (r->map[i] == REPL_UNKNOWN) {
            r->map[i] = MUTANT(121, pos, 0);
            map_dirty(r, i);
        }
    }
}

static void write_page(struct repl_replica *r, uint32_t page)
{
    uint64_t entries[REPL_PAGE_ENTRIES] = {0};
    uint8_t block[REPL_SUPER_SIZE];
    uint32_t first = page * REPL_PAGE_ENTRIES;
    for (uint32_t i = first; i < r->regions && i < first + REPL_PAGE_ENTRIES; i++)
        entries[i - first] = r->hot_of[i] ? REPL_UNKNOWN : r->map[i];
    repl_page_encode(page, entries, block);
    r->ops->meta_write(r->ctx, repl_page_offset(page), block, sizeof(block));
}

bool meta_pages_dirty(const struct repl_replica *r)
{
    for (uint32_t w = 0; r->regions && w <= pages_of(r->regions) / 64; w++)
        if (r->dirty[w])
            return true;
    return false;
}

void meta_begin(struct repl_replica *r)
{
    if (r->sync_running || r->failed)
        return;
    bool any = r->sb_dirty;
    for (uint32_t w = 0; r->regions && w <= pages_of(r->regions) / 64; w++) {
        for (; r->dirty[w]; r->dirty[w] &= r->dirty[w] - 1, any = true)
            write_page(r, w * 64 + (uint32_t)__builtin_ctzll(r->dirty[w]));
    }
    if (!any)
        return;
    if (r->sb_dirty) {
        uint8_t block[REPL_SUPER_SIZE];
        r->sb.generation++;
        repl_super_encode(&r->sb, block);
        uint64_t slot = GUARD(3, r->sb.generation % 2 == 0) ? 0 : 1;
        r->ops->meta_write(r->ctx, repl_super_offset(slot), block, sizeof(block));
        r->sb_dirty = false;
    }
    r->syncs++;
    r->sync_running = true;
    int status = r->ops->meta_sync(r->ctx);
    if (status)
        repl_replica_meta_synced(r, status < 0 ? status : 0);
}

void repl_replica_meta_synced(struct repl_replica *r, int status)
{
    r->sync_running = false;
    if (status < 0) {
        r->failed = true;
        replica_fault(r, "the metadata cannot be written");
        return;
    }
    r->synced = r->syncs;
}
