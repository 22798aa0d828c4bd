/*
 * Devices that misbehave. Rules are looked at under a lock; whether there are any, without.
 *
 * A volatile device keeps pages in memory, by file and offset, until a sync writes them. Which of the
 * pages written stay there is chance, so that what a crash leaves is in no order:
 *
 *     write ──┬── straight to the file      half of the pages
 *             └── page ──sync──> the file   the others; gone if the process dies before
 *     read ── the file, with the pages over it
 */
#include "zpool/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "zpool/impl.h"

enum { PAGE = 4096, BUCKETS = 4096, NO_FAULT = -1 };

struct page {
    struct page *next;
    ino_t file;
    int fd; /* to write it with */
    off_t at;
    char data[PAGE];
};

static atomic_bool active;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zpool_fault rules[ZPOOL_FAULTS_MAX]; /* under lock, as is all that follows */
static unsigned n_rules;
static uint64_t counted;
static struct page *pages[BUCKETS];
static uint64_t chance = 88172645463325252ULL;

static bool next_chance(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance >> 63;
}

static ino_t file_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* Under lock: where the page's pointer is, or would be. */
static struct page **find_page(ino_t file, off_t at)
{
    struct page **p = &pages[((uint64_t)at / PAGE + file) % BUCKETS];
    while (*p && ((*p)->file != file || (*p)->at != at))
        p = &(*p)->next;
    return p;
}

/* Under lock: writes the pages of a file, or of all. */
static int destage(ino_t file, bool all)
{
    int status = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct page **p = &pages[i]; *p;) {
            struct page *page = *p;
            if (!all && page->file != file) {
                p = &page->next;
                continue;
            }
            if (pwrite(page->fd, page->data, PAGE, page->at) != PAGE)
                status = -1;
            *p = page->next;
            free(page);
        }
    }
    return status;
}

void zpool_fault_set(const struct zpool_fault *r, unsigned n)
{
    pthread_mutex_lock(&lock);
    destage(0, true);
    n_rules = n < ZPOOL_FAULTS_MAX ? n : ZPOOL_FAULTS_MAX;
    for (unsigned i = 0; i < n_rules; i++)
        rules[i] = r[i];
    counted = 0;
    atomic_store(&active, n_rules > 0);
    pthread_mutex_unlock(&lock);
}

uint64_t zpool_fault_count(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = counted;
    pthread_mutex_unlock(&lock);
    return n;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool fits(const struct zpool_fault *r, const char *path, unsigned op, uint64_t at,
                 uint64_t n)
{
    bool range = r->from == r->to || op == ZPOOL_FAULT_SYNC || (at < r->to && at + n > r->from);
    return (r->ops & op) && range && ends_with(path, r->path);
}

/* What is to be done to the request: a kind, or NO_FAULT. A delay is done here. */
static int judge(const char *path, unsigned op, uint64_t at, uint64_t n)
{
    int kind = NO_FAULT;
    unsigned delay_ms = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < n_rules && kind == NO_FAULT; i++) {
        if (!fits(&rules[i], path, op, at, n))
            continue;
        if (rules[i].skip) {
            rules[i].skip--;
            continue;
        }
        kind = (int)rules[i].kind;
        delay_ms = rules[i].delay_ms;
        counted++;
    }
    pthread_mutex_unlock(&lock);
    if (kind != ZPOOL_FAULT_SLOW)
        return kind;
    struct timespec t = {delay_ms / 1000, (long)(delay_ms % 1000) * 1000000};
    nanosleep(&t, NULL);
    return NO_FAULT;
}

static int fail(void)
{
    errno = EIO;
    return -1;
}

ssize_t zpool_fault_pread(const struct zpool_target *t, void *p, size_t n, off_t at)
{
    if (!atomic_load_explicit(&active, memory_order_relaxed))
        return pread(t->fd, p, n, at);
    int kind = judge(t->path, ZPOOL_FAULT_READ, (uint64_t)at, n);
    if (kind == ZPOOL_FAULT_EIO)
        return fail();
    ssize_t got = pread(t->fd, p, n, at);
    pthread_mutex_lock(&lock);
    ino_t file = file_of(t->fd);
    for (off_t o = 0; o + PAGE <= got; o += PAGE) {
        const struct page *page = *find_page(file, at + o);
        if (page)
            memcpy((char *)p + o, page->data, PAGE);
    }
    pthread_mutex_unlock(&lock);
    for (ssize_t i = 100; kind == ZPOOL_FAULT_CORRUPT && i < got; i += 512)
        ((char *)p)[i] ^= 0x5a;
    return got;
}

static ssize_t write_volatile(int fd, const char *p, size_t n, off_t at)
{
    if (n % PAGE || at % PAGE)
        return pwrite(fd, p, n, at);
    pthread_mutex_lock(&lock);
    ino_t file = file_of(fd);
    for (size_t o = 0; o < n; o += PAGE) {
        struct page **place = find_page(file, at + (off_t)o);
        bool stays = next_chance();
        if (stays && !*place) {
            *place = NEW(struct page);
            (*place)->file = file;
            (*place)->at = at + (off_t)o;
        }
        if (stays) {
            (*place)->fd = fd;
            memcpy((*place)->data, p + o, PAGE);
        } else if (*place) {
            struct page *old = *place;
            *place = old->next;
            free(old);
        }
        if (!stays && pwrite(fd, p + o, PAGE, at + (off_t)o) != PAGE) {
            pthread_mutex_unlock(&lock);
            return fail();
        }
    }
    pthread_mutex_unlock(&lock);
    return (ssize_t)n;
}

ssize_t zpool_fault_pwrite(const struct zpool_target *t, const void *p, size_t n, off_t at)
{
    if (!atomic_load_explicit(&active, memory_order_relaxed))
        return pwrite(t->fd, p, n, at);
    switch (judge(t->path, ZPOOL_FAULT_WRITE, (uint64_t)at, n)) {
    case ZPOOL_FAULT_EIO:
        return fail();
    case ZPOOL_FAULT_LOSE:
        return (ssize_t)n;
    case ZPOOL_FAULT_TEAR:
        return pwrite(t->fd, p, n / 2, at) < 0 ? -1 : (ssize_t)n;
    case ZPOOL_FAULT_VOLATILE:
        return write_volatile(t->fd, p, n, at);
    default:
        return pwrite(t->fd, p, n, at);
    }
}

int zpool_fault_sync(const struct zpool_target *t)
{
    if (!atomic_load_explicit(&active, memory_order_relaxed))
        return fdatasync(t->fd);
    int kind = judge(t->path, ZPOOL_FAULT_SYNC, 0, 0);
    if (kind == ZPOOL_FAULT_EIO)
        return fail();
    if (kind == ZPOOL_FAULT_LOSE)
        return 0;
    pthread_mutex_lock(&lock);
    int status = destage(file_of(t->fd), false);
    pthread_mutex_unlock(&lock);
    return status < 0 || fdatasync(t->fd) < 0 ? -1 : 0;
}
