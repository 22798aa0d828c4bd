/*
 * Pages of checksums in memory: so many, those of all files of a store together. The clock chooses which goes: one
 * that was not used since the hand passed it last.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/sums.h"

struct sums_cache {
    struct io_loop *loop;
    uint32_t most, count, mask;
    struct list_link clock;
    struct sums_page **buckets;
};

struct sums_cache *sums_cache_new(struct io_loop *loop, uint32_t pages)
{
    struct sums_cache *c = NEW(struct sums_cache);
    c->loop = loop;
    c->most = pages ? pages : SUMS_CACHE;
    for (c->mask = 64; c->mask < c->most; c->mask *= 2)
        ;
    c->buckets = mem_zalloc(c->mask * sizeof(struct sums_page *));
    c->mask--;
    list_init(&c->clock);
    return c;
}

void sums_cache_free(struct sums_cache *c)
{
    if (c)
        free(c->buckets);
    free(c);
}

struct io_loop *sums_loop(const struct sums_file *f)
{
    return f->cache->loop;
}

static struct sums_page **bucket(const struct sums_file *f, uint64_t number)
{
    uint64_t hash = ((uintptr_t)f >> 4) * 0x9e3779b97f4a7c15u + number;
    return &f->cache->buckets[hash & f->cache->mask];
}

static struct sums_page *find(const struct sums_file *f, uint64_t number)
{
    struct sums_page *p = *bucket(f, number);
    while (p && (p->number != number || p->file != f))
        p = p->next;
    return p;
}

bool sums_cached(const struct sums_file *f, uint64_t number)
{
    return find(f, number);
}

int sums_write_page(struct sums_file *f, uint64_t number, const uint32_t *sums)
{
    ssize_t n = pwrite(f->fd, sums, SUMS_PAGE, (off_t)(SUMS_START + number * SUMS_PAGE));
    return n == SUMS_PAGE ? 0 : n < 0 ? -errno : -EIO;
}

void sums_changed(struct sums_page *p)
{
    if (!list_is_linked(&p->dirty_link))
        list_push(&p->file->dirty, &p->dirty_link);
}

/* Writes it if it has changed. What cannot be written is said by the next flush. */
static void drop(struct sums_page *p)
{
    struct sums_file *f = p->file;
    if (list_is_linked(&p->dirty_link)) {
        int status = sums_write_page(f, p->number, p->sums);
        if (status < 0 && !f->broken)
            f->broken = -status;
        f->unsynced = true;
        list_unlink(&p->dirty_link);
    }
    struct sums_page **at = bucket(f, p->number);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (f->recent == p)
        f->recent = NULL;
    list_unlink(&p->clock);
    list_unlink(&p->of_file);
    f->cache->count--;
    free(p);
}

void sums_forget(struct sums_file *f)
{
    list_for_each_safe(&f->pages, p, struct sums_page, of_file)
        drop(p);
}

/* One goes where there are `most`; if all of them are busy, one goes later (loaded()). */
static void evict(struct sums_cache *c, uint32_t most)
{
    struct sums_page *victim = NULL;
    for (uint32_t tries = 2 * c->count; !victim && tries && c->count >= most; tries--) {
        struct sums_page *p = list_first(&c->clock, struct sums_page, clock);
        if (!p->used && !p->loading && !p->writing)
            victim = p;
        p->used = false;
        list_unlink(&p->clock);
        list_push(&c->clock, &p->clock);
    }
    if (victim)
        drop(victim);
}

/* Loading. */

/* Bytes of a page, or -errno; in this thread as far as that goes without waiting. */
static int64_t read_now(struct sums_page *p)
{
    off_t at = (off_t)(SUMS_START + p->number * SUMS_PAGE);
    const struct iovec iov = p->iov; /* gcc takes the address of the member for less than it is */
    ssize_t n = preadv2(p->file->fd, &iov, 1, at, RWF_NOWAIT);
    if (n < 0 && errno == EOPNOTSUPP)
        n = preadv(p->file->fd, &iov, 1, at);
    return n < 0 ? -errno : n;
}

static void loaded(struct io_request *r, int64_t n)
{
    struct sums_page *p = container_of(r, struct sums_page, read);
    struct sums_cache *c = p->file->cache;
    struct list_link ready, *l;
    list_init(&ready);
    list_splice(&ready, &p->waiting);
    p->loading = false;
    if (n != SUMS_PAGE)
        p->error = n < 0 ? (int)-n : EIO;
    while ((l = list_take(&ready))) {
        struct sums_wait *wait = container_of(l, struct sums_wait, link);
        wait->ready(wait);
    }
    evict(c, c->most + 1);
}

static struct sums_page *add(struct sums_file *f, uint64_t number)
{
    evict(f->cache, f->cache->most);
    struct sums_page *p = mem_alloc(sizeof(*p));
    memset(p, 0, offsetof(struct sums_page, sums));
    p->file = f;
    p->number = number;
    p->iov = (struct iovec){p->sums, SUMS_PAGE};
    list_init(&p->dirty_link);
    list_init(&p->waiting);
    list_init(&p->clock);
    list_init(&p->of_file);
    list_push(&f->cache->clock, &p->clock);
    list_push(&f->pages, &p->of_file);
    p->next = *bucket(f, number);
    *bucket(f, number) = p;
    f->cache->count++;
    return p;
}

struct sums_page *sums_get(struct sums_file *f, uint64_t number, struct sums_wait *wait,
                           int *ret_error)
{
    struct sums_page *p = f->recent && f->recent->number == number ? f->recent : find(f, number);
    *ret_error = 0;
    if (!p) {
        p = add(f, number);
        int64_t n = read_now(p);
        p->loading = n == -EAGAIN;
        if (n != SUMS_PAGE && !p->loading)
            p->error = n < 0 ? (int)-n : EIO;
        if (p->loading) {
            p->read = (struct io_request){.op = IO_READ,
                                          .fd = f->fd,
                                          .offset = SUMS_START + number * SUMS_PAGE,
                                          .iov = &p->iov,
                                          .iovs = 1,
                                          .done = loaded};
            io_submit(f->cache->loop, &p->read);
        }
    }
    if (p->loading) {
        if (wait) {
            list_init(&wait->link);
            list_push(&p->waiting, &wait->link);
        }
        return NULL;
    }
    if (p->error) {
        *ret_error = p->error;
        drop(p);
        return NULL;
    }
    p->used = true;
    f->recent = p;
    return p;
}

int sums_clear(struct sums_file *f, uint64_t number, uint64_t n)
{
    static const uint32_t none[SUMS_PER_PAGE];
    int status = 0;
    f->unsynced = true;
    if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(SUMS_START + number * SUMS_PAGE), (off_t)(n * SUMS_PAGE)) == 0)
        return 0;
    for (uint64_t i = 0; status == 0 && i < n; i++)
        status = sums_write_page(f, number + i, none);
    return status;
}
