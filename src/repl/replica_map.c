/*
 * The region map, the activity log, and when both go to disk.
 *
 *     cold ──write──> active, waits for the log ──written──> active, writes cost nothing ──> retired: cold
 *       entry true                                 on disk: in the log                         entry true
 *
 * The unit of difference is the region: the map has its last position. The unit of activity is the extent, some MiB:
 * the log is the set of extents in which something may be written that is noted nowhere else. A region in an active
 * extent is unknown after a crash.
 *
 * Invariants:
 *   - A write is executed only in extents that the log on disk has, or in regions whose entry on disk is at least as
 *     high as the write's position; data of a rebuild counts as its stamp.
 *   - In memory an entry is at least as high as any write received. Entries only rise until map_settle().
 *   - An extent leaves the log on disk only after its entries are on disk as they are in memory, and the checksums at
 *     rest of what was written in it; nothing is under way in it then (`pins`).
 *
 * The set is cooled lazily, since leaving it costs syncs and an extent that is written again costs another write of
 * the log: when it is larger than `active_max` an eighth of it retires, the longest untouched first; and all of it when
 * nothing was written for a while.
 */
#include "base/mem.h"
#include "repl/meta.h"
#include "repl/replica_impl.h"

static uint32_t pages_of(uint32_t regions)
{
    return (regions + REPL_PAGE_ENTRIES - 1) / REPL_PAGE_ENTRIES;
}

static uint8_t extent_shift(const struct repl_replica *r)
{
    uint8_t shift = r->cfg.extent_shift;
    return shift > r->sb.view.region_shift ? shift : r->sb.view.region_shift;
}

static uint32_t extents_of(const struct repl_replica *r, uint32_t regions)
{
    uint8_t more = (uint8_t)(extent_shift(r) - r->sb.view.region_shift);
    return (regions >> more) + 1;
}

uint32_t map_extent(const struct repl_replica *r, uint64_t offset)
{
    return (uint32_t)(offset >> extent_shift(r));
}

/* Regions of an extent: from *ret_first on, below the end. */
static uint32_t regions_in(const struct repl_replica *r, uint32_t extent, uint32_t *ret_first)
{
    uint8_t more = (uint8_t)(extent_shift(r) - r->sb.view.region_shift);
    uint64_t first = (uint64_t)extent << more, end = (uint64_t)(extent + 1) << more;
    *ret_first = (uint32_t)(first < r->regions ? first : r->regions);
    return (uint32_t)(end < r->regions ? end : r->regions);
}

static bool is_active(const struct repl_replica *r, uint32_t region)
{
    uint8_t more = (uint8_t)(extent_shift(r) - r->sb.view.region_shift);
    return r->slot_of[region >> more];
}

static void mark_stale(struct repl_replica *r, uint32_t region)
{
    bool never = !r->cfg.checked || GUARD(72, r->cfg.sums_with_data);
    if (never || r->stale[region / 8] >> region % 8 & 1)
        return;
    r->stale[region / 8] |= (uint8_t)(1 << region % 8);
    r->stale_n++;
    r->stale_cold += !is_active(r, region);
}

void map_resize(struct repl_replica *r, uint64_t size, uint8_t region_shift)
{
    /* A store may be larger than any volume. */
    uint64_t all = (size + ((uint64_t)1 << region_shift) - 1) >> region_shift;
    uint32_t regions = (uint32_t)(all < REPL_REGIONS ? all : REPL_REGIONS), had = r->regions;
    if (regions <= had)
        return;
    uint32_t extents = extents_of(r, regions), old_extents = had ? extents_of(r, had) : 0;
    uint32_t words = pages_of(regions) / 64 + 1, old_words = had ? pages_of(had) / 64 + 1 : 0;
    uint32_t bytes = regions / 8 + 1, old_bytes = had ? had / 8 + 1 : 0;
    r->map = mem_realloc_array(r->map, regions, sizeof(*r->map));
    r->slot_of = mem_realloc_array(r->slot_of, extents, sizeof(*r->slot_of));
    r->dirty = mem_realloc_array(r->dirty, words, sizeof(*r->dirty));
    r->stale = mem_realloc_array(r->stale, bytes, 1);
    memset(r->map + had, 0, (regions - had) * sizeof(*r->map));
    memset(r->slot_of + old_extents, 0, (extents - old_extents) * sizeof(*r->slot_of));
    memset(r->dirty + old_words, 0, (words - old_words) * sizeof(*r->dirty));
    memset(r->stale + old_bytes, 0, bytes - old_bytes);
    r->regions = regions;
    /* A store that is not new, and whose metadata said nothing of a map: nobody knows what it has. */
    bool unknown = r->started && !had && r->sb.lost && !r->cfg.store_new;
    for (uint32_t i = 0; unknown && i < regions; i++) {
        r->map[i] = REPL_UNKNOWN;
        mark_stale(r, i);
    }
    /* A page that was never written would count as damaged. */
    for (uint32_t i = had; i < regions; i += REPL_PAGE_ENTRIES - i % REPL_PAGE_ENTRIES)
        map_dirty(r, i);
}

void map_clean(struct repl_replica *r)
{
    memset(r->dirty, 0, (pages_of(r->regions) / 64 + 1) * sizeof(*r->dirty));
}

void map_dirty(struct repl_replica *r, uint32_t region)
{
    uint32_t page = region / REPL_PAGE_ENTRIES;
    r->dirty[page / 64] |= (uint64_t)1 << page % 64;
}

/* The set of active extents. */

static struct extent *find_extent(const struct repl_replica *r, uint32_t number)
{
    return r->slot_of[number] ? &r->extents[r->slot_of[number] - 1] : NULL;
}

static struct extent *activate_extent(struct repl_replica *r, uint32_t number, uint64_t since)
{
    struct extent *x = list_first(&r->extents_free, struct extent, link);
    list_unlink(&x->link);
    *x = (struct extent){.number = number, .since = MUTANT(122, since, r->logs), .link = x->link};
    list_push(&r->lru, &x->link);
    r->slot_of[number] = (uint16_t)(x - r->extents + 1);
    r->active_n++;
    r->log_dirty |= since > r->logs;
    if (r->stale_cold) {
        uint32_t i, end = regions_in(r, number, &i);
        for (; i < end; i++)
            r->stale_cold -= r->stale[i / 8] >> i % 8 & 1;
    }
    return x;
}

static void remove_extent(struct repl_replica *r, struct extent *x)
{
    r->slot_of[x->number] = 0;
    list_unlink(&x->link);
    list_push(&r->extents_free, &x->link);
    r->active_n--;
    r->log_dirty = true;
}

bool map_room(const struct repl_replica *r, uint64_t offset, uint64_t length)
{
    uint32_t missing = 0;
    for (uint32_t i = map_extent(r, offset); i <= map_extent(r, offset + length - 1); i++)
        missing += !r->slot_of[i];
    return r->active_n + missing <= r->cfg.active_room;
}

/* The extent after one that a client writes in order: it is in the log before it is wanted. */
static void activate_ahead(struct repl_replica *r, uint32_t number)
{
    uint32_t first;
    if (number + 1 < extents_of(r, r->regions) && regions_in(r, number + 1, &first) > first &&
        !r->slot_of[number + 1] && r->active_n < r->cfg.active_max)
        activate_extent(r, number + 1, r->logs + 1);
}

uint64_t map_touch(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t pos)
{
    uint64_t need = 0;
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = (uint32_t)(offset >> r->sb.view.region_shift); i <= last; i++)
        if (r->map[i] < pos)
            r->map[i] = pos;
    for (uint32_t i = map_extent(r, offset); i <= map_extent(r, offset + length - 1); i++) {
        struct extent *x = find_extent(r, i);
        if (!x)
            x = activate_extent(r, i, r->logs + 1);
        if (r->lru.prev != &x->link) {
            list_unlink(&x->link);
            list_push(&r->lru, &x->link);
        }
        x->pins++;
        x->retiring = false;
        need = x->since > need ? x->since : need;
    }
    if (offset == r->written_to)
        activate_ahead(r, map_extent(r, offset + length - 1));
    r->written_to = offset + length;
    r->touched_at = r->now;
    return need;
}

void map_release(struct repl_replica *r, uint64_t offset, uint64_t length)
{
    for (uint32_t i = map_extent(r, offset); i <= map_extent(r, offset + length - 1); i++)
        find_extent(r, i)->pins--;
}

uint64_t map_stamp(struct repl_replica *r, uint64_t offset, uint64_t length, uint64_t stamp)
{
    uint32_t first = (uint32_t)(offset >> r->sb.view.region_shift);
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = first; i <= last; i++) {
        /* One that is unknown and not in the log has checksums that may be stale: it stays so until the rebuild ends. */
        bool keeps = r->map[i] == REPL_UNKNOWN && stamp <= r->sb.pos && !is_active(r, i);
        if ((r->map[i] == REPL_UNKNOWN && !keeps) || GUARD(55, r->map[i] < stamp))
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

/* Regions whose checksums at rest cannot be trusted. */

bool map_stale(const struct repl_replica *r, uint64_t offset, uint64_t length)
{
    if (!r->stale_n)
        return false;
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = (uint32_t)(offset >> r->sb.view.region_shift); i <= last; i++)
        if (i < r->regions && r->stale[i / 8] >> i % 8 & 1)
            return true;
    return false;
}

void map_spoil(struct repl_replica *r, uint64_t offset, uint64_t length)
{
    uint32_t last = (uint32_t)((offset + length - 1) >> r->sb.view.region_shift);
    for (uint32_t i = (uint32_t)(offset >> r->sb.view.region_shift); i <= last; i++)
        mark_stale(r, i);
}

void map_forget(struct repl_replica *r)
{
    list_for_each(&r->lru, x, struct extent, link) {
        uint32_t i, end = regions_in(r, x->number, &i);
        for (; i < end; i++) {
            r->map[i] = REPL_UNKNOWN;
            mark_stale(r, i);
        }
    }
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

void map_fresh(struct repl_replica *r, uint32_t region, bool read)
{
    /* One that could not be read is tried again; but the end of a rebuild does not wait for it. */
    if (!(r->stale[region / 8] >> region % 8 & 1) || (!read && is_active(r, region)))
        return;
    r->stale[region / 8] &= (uint8_t) ~(1 << region % 8);
    r->stale_n--;
    r->stale_cold -= !is_active(r, region);
}

bool map_next_stale(const struct repl_replica *r, uint32_t *region)
{
    for (uint32_t n = 0, i = *region; r->stale_n && n < r->regions; n++, i++) {
        i = i < r->regions ? i : 0;
        if (!(r->stale[i / 8] >> i % 8 & 1) || (r->stale_cold && is_active(r, i)))
            continue;
        *region = i;
        return true;
    }
    return false;
}

void map_load_log(struct repl_replica *r, const struct repl_log *log)
{
    for (uint32_t k = 0; k < log->n; k++) {
        uint32_t i = 0, end = 0;
        if (log->extent[k] < extents_of(r, r->regions))
            end = regions_in(r, log->extent[k], &i);
        if (i >= end || find_extent(r, log->extent[k]))
            continue;
        activate_extent(r, log->extent[k], 0);
        for (; i < end; i++)
            r->map[i] = REPL_UNKNOWN;
    }
}

/* A mark was made when the checksums below it were durable; nobody compares that region with others again. */
static bool is_marked(const struct repl_replica *r, uint32_t region)
{
    bool rebuilt = region < r->sb.mark_region && r->map[region] <= r->sb.mark_pos;
    return rebuilt || (r->sb.snap_mark && region < r->sb.snap_region);
}

void map_loaded(struct repl_replica *r)
{
    for (uint32_t i = 0; i < r->regions; i++) {
        if (r->map[i] == REPL_UNKNOWN && !is_active(r, i))
            map_dirty(r, i); /* its page was damaged */
        if (is_active(r, i) || (r->map[i] > r->sb.pos && !r->sb.clean && !is_marked(r, i)))
            mark_stale(r, i);
    }
}

/* Leaving the set: choose, checksums to disk, entries to disk, the log without them. */

static bool has_stale(const struct repl_replica *r, const struct extent *x)
{
    uint32_t i, end = regions_in(r, x->number, &i);
    for (; r->stale_n && i < end; i++)
        if (r->stale[i / 8] >> i % 8 & 1)
            return true;
    return false;
}

static uint32_t choose_retiring(struct repl_replica *r, uint32_t most)
{
    uint32_t n = 0;
    list_for_each(&r->lru, x, struct extent, link) {
        if (n == most)
            break;
        x->retiring = !x->pins && x->since <= r->logged && !has_stale(r, x);
        n += x->retiring;
    }
    return n;
}

static uint32_t retire_wanted(const struct repl_replica *r)
{
    if (r->stopping || (r->active_n && r->now - r->touched_at >= r->cfg.idle_ns))
        return r->active_n;
    return r->active_n > r->cfg.active_max ? r->active_n - r->cfg.active_max * 7 / 8 : 0;
}

static void retire_begin(struct repl_replica *r)
{
    uint32_t most = retire_wanted(r);
    if (!most || !choose_retiring(r, most))
        return;
    r->retire_state = RETIRE_SUMS;
    r->retire_op.req = (struct repl_req){.kind = REPL_STORE_FLUSH, .sums = true};
    int status = r->ops->store(r->ctx, &r->retire_op.req);
    if (status)
        retire_stored(r, status < 0 ? status : 0);
}

void retire_stored(struct repl_replica *r, int status)
{
    r->retire_state = RETIRE_IDLE;
    if (status < 0) {
        replica_fault(r, "the store cannot flush");
        return;
    }
    r->retire_state = RETIRE_PAGES;
    list_for_each(&r->lru, x, struct extent, link) {
        uint32_t i, end = regions_in(r, x->number, &i);
        for (; x->retiring && i < end; i++)
            map_dirty(r, i);
    }
    /* If all of them were written again meanwhile, there is perhaps nothing to sync. */
    r->retire_sync = meta_pages_dirty(r) ? meta_next(r) : r->syncs;
}

void map_retire(struct repl_replica *r)
{
    if (r->retire_state == RETIRE_PAGES && r->synced >= r->retire_sync) {
        r->retire_state = RETIRE_IDLE;
        list_for_each_safe(&r->lru, x, struct extent, link)
            if (x->retiring && !has_stale(r, x))
                remove_extent(r, x);
    }
    if (r->retire_state == RETIRE_IDLE && !r->failed)
        retire_begin(r);
}

/* Writing. */

static void write_page(struct repl_replica *r, uint32_t page)
{
    uint64_t entries[REPL_PAGE_ENTRIES] = {0};
    uint8_t block[REPL_SUPER_SIZE];
    uint32_t first = page * REPL_PAGE_ENTRIES;
    for (uint32_t i = first; i < r->regions && i < first + REPL_PAGE_ENTRIES; i++)
        entries[i - first] = r->map[i];
    repl_page_encode(page, &r->sb.store, r->sb.generation, entries, block);
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
    /* A log that was damaged is made anew only when all pages say what it can no longer say: else a crash in
     * between would leave a good log without the extents, beside pages that have the entries of before. */
    if (r->log_missing && !meta_pages_dirty(r)) {
        log_make(r);
        r->log_missing = false;
        any = true;
    }
    for (uint32_t w = 0; r->regions && w <= pages_of(r->regions) / 64; w++) {
        for (; r->dirty[w]; r->dirty[w] &= r->dirty[w] - 1, any = true)
            write_page(r, w * 64 + (uint32_t)__builtin_ctzll(r->dirty[w]));
    }
    if (!any)
        return;
    if (r->sb_dirty) {
        uint8_t block[REPL_SUPER_SLOT];
        r->sync_generation = ++r->sb.generation;
        r->sb.log_generation = r->log_generation;
        repl_super_slot(&r->sb, block);
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
    r->sure_generation = r->sync_generation;
}

/* As it is to be on disk: what retires is still in it until its entries are there. */
static void describe_log(const struct repl_replica *r, struct repl_log *log)
{
    *log = (struct repl_log){
        .generation = r->log_writing, .super_generation = r->sure_generation, .store = r->sb.store};
    list_for_each(&r->lru, x, struct extent, link)
        log->extent[log->n++] = x->number;
}

void log_make(struct repl_replica *r)
{
    uint8_t block[REPL_LOG_SLOT];
    struct repl_log log;
    for (int i = 0; i < 2; i++) {
        r->log_writing = ++r->log_generation;
        describe_log(r, &log);
        size_t size = repl_log_encode(&log, true, block);
        r->ops->meta_write(r->ctx, repl_log_offset(log.generation), block, size);
    }
}

void log_begin(struct repl_replica *r)
{
    if (r->log_running || !r->log_dirty || r->failed || !r->seals)
        return;
    uint8_t block[REPL_LOG_SLOT];
    struct repl_log log;
    r->log_writing = r->log_generation + 1;
    describe_log(r, &log);
    size_t size = repl_log_encode(&log, false, block);
    r->log_dirty = false;
    r->log_running = true;
    r->logs++;
    int status = r->ops->log_write(r->ctx, repl_log_offset(log.generation), block, size);
    if (status)
        repl_replica_logged(r, status < 0 ? status : 0);
}

void repl_replica_logged(struct repl_replica *r, int status)
{
    r->log_running = false;
    if (status < 0) {
        r->failed = true;
        replica_fault(r, "the activity log cannot be written");
        return;
    }
    r->log_generation = r->log_writing;
    r->logged = r->logs;
}
