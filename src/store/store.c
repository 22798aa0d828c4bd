#include "store/store.h"

#include <errno.h>

#include "base/str.h"
#include "store/chain.h"
#include "store/impl.h"

static int check(const struct store *s, const struct store_io *io)
{
    if (io->op == STORE_FLUSH)
        return 0;
    uint64_t mask = s->block_size - 1;
    if ((io->offset & mask) || (io->length & mask) || io->offset > s->size ||
        io->length > s->size - io->offset)
        return EINVAL;
    if (io->snapshot && (io->op != STORE_READ || !s->ops->snapshots))
        return EINVAL;
    if (io->op == STORE_RESUM &&
        (io->offset % STORE_GRANULE ||
         (io->length % STORE_GRANULE && io->offset + io->length != s->size)))
        return EINVAL;
    return io->op != STORE_READ && s->read_only ? EROFS : 0;
}

void store_submit(struct store *s, struct store_io *io)
{
    io->store = s;
    list_init(&io->link);
    int error = check(s, io);
    if (error || (io->length == 0 && io->op != STORE_FLUSH) ||
        (io->op == STORE_RESUM && !s->checked))
        store_done(io, error);
    else
        s->ops->submit(s, io);
}

struct store *store_open(const char *name, const struct store_options *o, struct err *e)
{
    static const struct {
        const char *prefix;
        struct store *(*open)(const char *rest, const struct store_options *o, struct err *e);
    } kinds[] = {
        {"file:", store_chain_open},
        {"mem:", store_mem_open},
        {"fault:", store_fault_open},
        {"volatile:", store_volatile_open},
    };
    if (o->block_size != 512 && o->block_size != 4096) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidBlockSize",
                "a block size of %u: only 512 and 4096 are possible", o->block_size);
        return NULL;
    }
    if (o->size % o->block_size) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidSize",
                "%llu bytes are not a whole number of blocks of %u", (unsigned long long)o->size,
                o->block_size);
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (str_starts_with(name, kinds[i].prefix))
            return kinds[i].open(name + strlen(kinds[i].prefix), o, e);
    }
    err_set(e, ERR_INVALID_ARGUMENT, "InvalidStore",
            "no store is called '%s': write file:PATH, file:PATH?direct=1 or mem:", name);
    return NULL;
}

uint64_t store_used(struct store *s)
{
    return s->ops->used ? s->ops->used(s) : s->size;
}

void store_pause(struct store *s, void (*done)(void *context), void *context)
{
    if (s->ops->pause)
        s->ops->pause(s, done, context);
    else
        done(context);
}

void store_close(struct store *s)
{
    s->ops->close(s);
}

void store_grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                void *context)
{
    if (size < s->size || size % s->block_size)
        done(context, EINVAL);
    else if (s->read_only)
        done(context, EROFS);
    else if (size == s->size)
        done(context, 0);
    else
        s->ops->grow(s, size, done, context);
}

void store_snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                    void *context)
{
    if (!s->ops->snapshot || s->read_only)
        done(context, s->ops->snapshot ? EROFS : ENOTSUP);
    else
        s->ops->snapshot(s, id, done, context);
}

void store_snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                         void *context)
{
    if (!s->ops->snapshot_drop || s->read_only)
        done(context, s->ops->snapshot_drop ? EROFS : 0);
    else
        s->ops->snapshot_drop(s, id, done, context);
}

void store_revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                  void *context)
{
    if (!s->ops->revert || s->read_only)
        done(context, s->ops->revert ? EROFS : ENOTSUP);
    else
        s->ops->revert(s, id, done, context);
}

unsigned store_snapshots(struct store *s, struct store_snapshot *out, unsigned most)
{
    return s->ops->snapshots ? s->ops->snapshots(s, out, most) : 0;
}

bool store_mark(struct store *s, struct store_mark *ret_mark)
{
    return s->ops->mark && s->ops->mark(s, ret_mark);
}

void store_stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                 void *context)
{
    struct store_mark mark;
    if (!store_mark(s, &mark))
        done(context, 0);
    else if (s->read_only)
        done(context, EROFS);
    else
        s->ops->stamp(s, generation, done, context);
}

int store_inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                  void *context, struct err *e)
{
    return s->ops->inspect ? s->ops->inspect(s, stale, context, e) : 0;
}

int store_remove(const char *name, struct err *e)
{
    const char *file = strstr(name, "file:"); /* behind what others are wrapped around it */
    if (!file)
        return 0;
    file += strlen("file:");
    _cleanup_free_ char *path = mem_strndup(file, strcspn(file, "?"));
    return chain_remove(path, e);
}

void store_client(struct store *s, uint64_t client, bool gone)
{
    if (s->ops->client)
        s->ops->client(s, client, gone);
}
