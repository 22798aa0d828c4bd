/*
 * Whose store it is: its identity and generation, in the header of the bottom's checksums; and whether the data is what the
 * checksums are of, by a sample.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/le.h"
#include "store/chain.h"

bool chain_mark(struct store *s, struct store_mark *ret_mark)
{
    const struct chain *c = chain_of(s);
    if (!c->cache)
        return false;
    struct sums_header h = sums_header(checked_sums(c->layers[0]->file));
    *ret_mark = (struct store_mark){h.identity, h.generation};
    return true;
}

/* Stamps: one after the other. */

struct stamp {
    struct list_link link;
    struct chain *chain;
    struct sums_file *sums; /* the bottom's, which stays */
    uint64_t generation;
    void (*done)(void *context, int error);
    void *context;
    struct io_request request;
};

static int write_stamp(void *context)
{
    const struct stamp *st = context;
    return sums_set_generation(st->sums, st->generation);
}

static void start_stamp(struct chain *c);

static void stamp_written(struct io_request *request, int64_t result)
{
    struct stamp *st = container_of(request, struct stamp, request);
    struct chain *c = st->chain;
    c->stamping = false;
    start_stamp(c);
    st->done(st->context, (int)-result);
    free(st);
}

static void start_stamp(struct chain *c)
{
    if (c->stamping || list_empty(&c->stamps))
        return;
    struct stamp *st = container_of(list_take(&c->stamps), struct stamp, link);
    c->stamping = true;
    st->request = (struct io_request){
        .op = IO_CALL, .call = write_stamp, .context = st, .done = stamp_written};
    io_submit(c->loop, &st->request);
}

void chain_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                 void *context)
{
    struct stamp *st = NEW(struct stamp);
    *st = (struct stamp){.chain = chain_of(s),
                         .sums = checked_sums(chain_of(s)->layers[0]->file),
                         .generation = generation,
                         .done = done,
                         .context = context};
    list_init(&st->link);
    list_push(&st->chain->stamps, &st->link);
    start_stamp(st->chain);
}

/* A sample. */

enum { SAMPLES = 64, PAGES_EACH = 4, FEW = 8 }; /* of fewer nothing is concluded: reads tell */

struct sample {
    struct chain *c;
    unsigned layer;
    bool (*stale)(void *context, uint64_t offset, uint64_t length);
    void *context;
    uint8_t *granule; /* aligned */
    unsigned looked, wrong;
};

/*
 * Whether its checksum says something: not one that a copy down has still to make, nor one that a crash left. A
 * snapshot's were durable before it was taken, and nobody writes to it.
 */
static bool counts(const struct sample *a, uint64_t g)
{
    const struct layer *l = a->c->layers[a->layer];
    bool merging = !l->snapshot && a->layer + 1 < a->c->n;
    if (!layer_has(l, g) || (merging && layer_has(a->c->layers[a->layer + 1], g)))
        return false;
    return l->snapshot || !a->stale(a->context, g * GRANULE, GRANULE);
}

static int look_at(struct sample *a, uint64_t g, uint32_t sum)
{
    struct store *s = a->c->layers[a->layer]->file;
    uint64_t left = s->size - g * GRANULE;
    ssize_t n = pread(store_file_fd(checked_file(s)), a->granule, GRANULE, (off_t)(g * GRANULE));
    if (n < 0)
        return errno;
    size_t has = (size_t)n < left ? (size_t)n : left;
    a->looked++;
    a->wrong += sums_of(a->granule, has) != sum;
    return 0;
}

/* The first granule from g on that counts and is not zeroes; UINT64_MAX: none, or none near. */
static int find_one(struct sample *a, uint64_t g, uint64_t *ret_g, uint32_t *ret_sum)
{
    struct store *s = a->c->layers[a->layer]->file;
    int fd = checked_sums(s)->fd;
    uint64_t granules = (s->size + GRANULE - 1) / GRANULE;
    *ret_g = UINT64_MAX;
    for (unsigned pages = 0; pages < PAGES_EACH && g < granules; pages++) {
        uint8_t page[SUMS_PAGE] = {0};
        off_t at = lseek(fd, (off_t)(SUMS_START + g / SUMS_PER_PAGE * SUMS_PAGE), SEEK_DATA);
        if (at < 0)
            return errno == ENXIO ? 0 : errno;
        uint64_t number = ((uint64_t)at - SUMS_START) / SUMS_PAGE;
        if (number > g / SUMS_PER_PAGE)
            g = number * SUMS_PER_PAGE;
        if (pread(fd, page, sizeof(page), (off_t)(SUMS_START + number * SUMS_PAGE)) < 0)
            return errno;
        for (; g < granules && g / SUMS_PER_PAGE == number; g++) {
            *ret_sum = le_get32(page + g % SUMS_PER_PAGE * 4);
            if (!*ret_sum || !counts(a, g))
                continue;
            *ret_g = g;
            return 0;
        }
    }
    return 0;
}

static int sample_layer(struct sample *a)
{
    uint64_t granules = (a->c->layers[a->layer]->file->size + GRANULE - 1) / GRANULE, next = 0;
    for (uint64_t k = 0; k < SAMPLES; k++) {
        uint64_t g = granules / SAMPLES * k + granules % SAMPLES * k / SAMPLES;
        uint32_t sum;
        int error = find_one(a, g > next ? g : next, &g, &sum);
        if (error)
            return error;
        if (g == UINT64_MAX)
            continue;
        if ((error = look_at(a, g, sum)))
            return error;
        next = g + 1;
    }
    return 0;
}

int chain_inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                  void *context, struct err *e)
{
    struct chain *c = chain_of(s);
    void *granule = NULL;
    int status = 0;
    if (!c->cache)
        return 0;
    if (posix_memalign(&granule, GRANULE, GRANULE) != 0)
        return err_errno(e, ENOMEM, "%s", c->path);
    for (unsigned i = 0; status == 0 && i < c->n; i++) {
        _cleanup_free_ char *path = chain_layer_path(c->path, c->layers[i]->number, "");
        struct sample a = {
            .c = c, .layer = i, .stale = stale, .context = context, .granule = granule};
        int error = sample_layer(&a);
        if (error)
            status = err_errno(e, error, "cannot read %s", path);
        else if (a.looked >= FEW && a.wrong > a.looked / 4)
            status = err_set(e, ERR_DATA_LOSS, "DamagedStore",
                             "%s is not what its checksums are of: %u of %u blocks differ", path,
                             a.wrong, a.looked);
    }
    free(granule);
    return status;
}
