#include "store/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/le.h"

enum { MAGIC = 0x6d75536f, VERSION = 1, AT_CRC = 8 }; /* "oSum" */

static const uint8_t zeroes[STORE_GRANULE];

/* Checksums. */

uint32_t sums_from_crc(uint32_t crc, size_t n)
{
    static uint32_t of_zeroes;
    if (!of_zeroes)
        of_zeroes = crc_32c(zeroes, sizeof(zeroes));
    if (n < STORE_GRANULE)
        crc = crc_32c_more(crc, zeroes, STORE_GRANULE - n);
    return crc ^ of_zeroes;
}

uint32_t sums_of(const uint8_t *granule, size_t n)
{
    return sums_from_crc(crc_32c(granule, n), n);
}

/* Headers. */

static uint32_t header_sum(const uint8_t *p)
{
    return crc_32c_more(crc_32c_more(crc_32c(p, AT_CRC), zeroes, 4), p + AT_CRC + 4,
                        SUMS_PAGE - AT_CRC - 4);
}

void sums_header_encode(const struct sums_header *h, uint8_t out[SUMS_PAGE])
{
    memset(out, 0, SUMS_PAGE);
    le_put32(out, MAGIC);
    le_put32(out + 4, VERSION);
    le_put32(out + 12, h->layer);
    le_put64(out + 16, h->sequence);
    memcpy(out + 24, h->identity.bytes, sizeof(h->identity.bytes));
    le_put64(out + 40, h->generation);
    le_put64(out + 48, h->size);
    le_put64(out + 56, h->revision);
    le_put64(out + 64, h->map);
    le_put32(out + AT_CRC, header_sum(out));
}

static bool decode(const uint8_t *p, struct sums_header *ret_h)
{
    *ret_h = (struct sums_header){
        .layer = le_get32(p + 12),
        .sequence = le_get64(p + 16),
        .generation = le_get64(p + 40),
        .size = le_get64(p + 48),
        .revision = le_get64(p + 56),
        .map = le_get64(p + 64),
    };
    memcpy(ret_h->identity.bytes, p + 24, sizeof(ret_h->identity.bytes));
    return le_get32(p) == MAGIC && le_get32(p + 4) == VERSION &&
           le_get32(p + AT_CRC) == header_sum(p) && ret_h->size <= INT64_MAX;
}

int sums_header_choose(const uint8_t slots[SUMS_START], struct sums_header *ret_h)
{
    struct sums_header h[2];
    bool whole[2] = {decode(slots, &h[0]), decode(slots + SUMS_PAGE, &h[1])};
    if (!whole[0] && !whole[1])
        return -1;
    unsigned chosen = whole[1] && (!whole[0] || h[1].sequence > h[0].sequence);
    *ret_h = h[chosen];
    /* The next write must not go to the only one that is whole. */
    if (!whole[1 - chosen] && (ret_h->sequence + 1) % 2 == chosen)
        ret_h->sequence++;
    return 0;
}

static int write_slot(int fd, const uint8_t *slot, uint64_t which)
{
    ssize_t n = pwrite(fd, slot, SUMS_PAGE, (off_t)(which * SUMS_PAGE));
    return n == SUMS_PAGE ? 0 : n < 0 ? -errno : -EIO;
}

static int write_header(int fd, const struct sums_header *h)
{
    uint8_t slot[SUMS_PAGE];
    sums_header_encode(h, slot);
    int status = write_slot(fd, slot, h->sequence % 2);
    if (status == 0 && fdatasync(fd) < 0)
        status = -errno;
    return status == 0 ? write_slot(fd, slot, 1 - h->sequence % 2) : status;
}

/* With the lock. A write that failed leaves the older slot, and the next takes the same one. */
static int replace_header(struct sums_file *f, struct sums_header next)
{
    next.sequence = f->header.sequence + 1;
    int status = write_header(f->fd, &next);
    if (status == 0)
        f->header = next;
    return status;
}

static int set_field(struct sums_file *f, size_t field, uint64_t value)
{
    int status = 0;
    pthread_mutex_lock(&f->lock);
    struct sums_header next = f->header;
    uint64_t *at = (uint64_t *)(void *)((uint8_t *)&next + field);
    if (*at != value) {
        *at = value;
        status = replace_header(f, next);
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

int sums_set_generation(struct sums_file *f, uint64_t generation)
{
    return set_field(f, offsetof(struct sums_header, generation), generation);
}

int sums_set_revision(struct sums_file *f, uint64_t revision)
{
    return set_field(f, offsetof(struct sums_header, revision), revision);
}

int sums_set_map(struct sums_file *f, uint64_t version)
{
    return set_field(f, offsetof(struct sums_header, map), version);
}

struct sums_header sums_header(struct sums_file *f)
{
    pthread_mutex_lock(&f->lock);
    struct sums_header h = f->header;
    pthread_mutex_unlock(&f->lock);
    return h;
}

/* Files. */

static off_t file_size(uint64_t size)
{
    const uint64_t span = (uint64_t)SUMS_PER_PAGE * STORE_GRANULE;
    return (off_t)(SUMS_START + (size + span - 1) / span * SUMS_PAGE);
}

int sums_make(const char *path, const struct sums_header *h)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    struct sums_header first = *h;
    first.sequence = 1;
    int status = write_header(fd, &first);
    if (status == 0 && (ftruncate(fd, file_size(h->size)) < 0 || fsync(fd) < 0))
        status = -errno;
    close(fd);
    return status;
}

static int load_header(struct sums_file *f, struct err *e)
{
    uint8_t slots[SUMS_START] = {0};
    struct stat st;
    if (fstat(f->fd, &st) < 0 || pread(f->fd, slots, sizeof(slots), 0) < 0)
        return err_errno(e, errno, "cannot read %s", f->path);
    if (sums_header_choose(slots, &f->header) < 0)
        return err_set(e, ERR_DATA_LOSS, "DamagedStore",
                       "%s is damaged, or no file of checksums: its header is not whole", f->path);
    if (st.st_size < file_size(f->header.size))
        return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s is damaged: it has %lld bytes of %lld",
                       f->path, (long long)st.st_size, (long long)file_size(f->header.size));
    return 0;
}

struct sums_file *sums_open(struct sums_cache *cache, const char *path, bool read_only,
                            struct err *e)
{
    struct sums_file *f = NEW(struct sums_file);
    f->cache = cache;
    f->path = mem_strdup(path);
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->pages);
    list_init(&f->dirty);
    f->fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd < 0 && errno == ENOENT)
        err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s is missing", path);
    else if (f->fd < 0)
        err_errno(e, errno, "cannot open %s", path);
    if (f->fd >= 0 && load_header(f, e) == 0)
        return f;
    sums_close(f);
    return NULL;
}

void sums_close(struct sums_file *f)
{
    if (!f)
        return;
    sums_forget(f);
    if (f->fd >= 0)
        close(f->fd);
    pthread_mutex_destroy(&f->lock);
    free(f->path);
    free(f);
}

int sums_grow(struct sums_file *f, uint64_t size)
{
    if (ftruncate(f->fd, file_size(size)) < 0)
        return -errno;
    return set_field(f, offsetof(struct sums_header, size), size);
}

/* Flushes. */

struct sums_copy {
    struct sums_page *page;
    uint64_t number;
    uint32_t sums[SUMS_PER_PAGE];
};

/* On a thread where it may wait. */
static int write_copies(void *context)
{
    struct sums_file *f = context;
    int status = 0;
    for (size_t i = 0; status == 0 && i < f->copies_n; i++)
        status = sums_write_page(f, f->copies[i].number, f->copies[i].sums);
    return status == 0 && fdatasync(f->fd) < 0 ? -errno : status;
}

static void copies_written(struct io_request *r, int64_t result)
{
    struct sums_file *f = container_of(r, struct sums_file, write);
    for (size_t i = 0; i < f->copies_n; i++)
        f->copies[i].page->writing = false;
    free(f->copies);
    f->copies = NULL;
    f->copies_n = 0;
    if (result < 0 && !f->broken)
        f->broken = (int)-result;
    f->flushed(f->context, f->broken);
}

void sums_flush(struct sums_file *f, void (*done)(void *context, int error), void *context)
{
    size_t n = 0;
    list_for_each(&f->dirty, p, struct sums_page, dirty_link)
        n++;
    if (f->broken || (!n && !f->unsynced)) {
        done(context, f->broken);
        return;
    }
    f->flushed = done;
    f->context = context;
    f->unsynced = false;
    f->copies = mem_alloc((n + 1) * sizeof(*f->copies));
    for (struct list_link *l; (l = list_take(&f->dirty));) {
        struct sums_page *p = container_of(l, struct sums_page, dirty_link);
        struct sums_copy *copy = &f->copies[f->copies_n++];
        p->writing = true;
        copy->page = p;
        copy->number = p->number;
        memcpy(copy->sums, p->sums, sizeof(copy->sums));
    }
    f->write = (struct io_request){
        .op = IO_CALL, .call = write_copies, .context = f, .done = copies_written};
    io_submit(sums_loop(f), &f->write);
}
