#include "store/chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

char *chain_layer_path(const char *path, uint32_t number, const char *suffix)
{
    return number ? mem_printf("%s.layer%u%s", path, number, suffix) : mem_strdup(path);
}

struct layer *chain_find(const struct chain *c, uint64_t snapshot, unsigned *ret_index)
{
    for (unsigned i = 0; snapshot && i < c->n; i++) {
        if (c->layers[i]->snapshot != snapshot)
            continue;
        if (ret_index)
            *ret_index = i;
        return c->layers[i];
    }
    return NULL;
}

/* Dispatch. */

static void submit(struct store *s, struct store_io *io)
{
    struct chain *c = chain_of(s);
    if (c->n > 1 || c->change) {
        chain_submit(c, io);
        return;
    }
    /* No snapshots: the file, and nothing else. */
    struct store *file = c->layers[0]->file;
    io->store = file;
    if (io->snapshot)
        store_done(io, ENOENT);
    else
        file->ops->submit(file, io);
}

static void set_error(void *context, int error)
{
    *(int *)context = error;
}

int chain_grow_now(struct chain *c, uint64_t size)
{
    int error = layer_map_resize(chain_head(c), size);
    if (!error && chain_mirrors(c)) {
        error = layer_map_resize(c->merge.lower, size);
        if (!error)
            store_grow(c->merge.lower->file, size, set_error, &error);
    }
    if (!error)
        store_grow(chain_head(c)->file, size, set_error, &error);
    if (!error)
        c->store.size = size;
    return error;
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct chain *c = chain_of(s);
    if (c->change)
        chain_change_ask(s, CHANGE_GROW, size, done, context);
    else
        done(context, chain_grow_now(c, size));
}

static enum store_extent extent(struct store *s, uint64_t offset, uint64_t *ret_length)
{
    const struct chain *c = chain_of(s);
    uint64_t run, length;
    unsigned layer = chain_run(c, c->n - 1, offset, s->size, &run);
    struct store *file = c->layers[layer]->file;
    enum store_extent kind = STORE_UNMAPPED;
    length = run;
    if (offset < file->size) {
        kind = file->ops->extent(file, offset, &length);
        if (kind == STORE_UNMAPPED && length == file->size - offset)
            length = run;
    }
    *ret_length = length < run ? length : run;
    return kind;
}

static uint64_t used(struct store *s)
{
    const struct chain *c = chain_of(s);
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->n; i++) {
        struct stat st;
        sum += store_used(c->layers[i]->file);
        if (c->layers[i]->map_fd >= 0 && fstat(c->layers[i]->map_fd, &st) == 0)
            sum += (uint64_t)st.st_blocks * 512;
    }
    return sum;
}

/* Layers. */

void chain_layer_close(struct layer *l)
{
    if (!l)
        return;
    if (l->file)
        store_close(l->file);
    if (l->map_fd >= 0)
        close(l->map_fd);
    if (l->bits)
        munmap(l->bits, l->pages * PAGE_ROOM);
    free(l->dirty);
    free(l->sequence);
    free(l);
}

struct layer *chain_layer_open(const struct chain *c, const struct manifest_layer *m, uint64_t size,
                               struct err *e)
{
    _cleanup_free_ char *path = chain_layer_path(c->path, m->number, ""),
                        *map = chain_layer_path(c->path, m->number, ".map"),
                        *name = mem_printf("%s%s", path, c->direct ? "?direct=1" : "");
    const struct store_options o = {.loop = c->loop,
                                    .size = size,
                                    .block_size = c->store.block_size,
                                    .read_only = c->store.read_only};
    struct layer *l = NEW(struct layer);
    *l = (struct layer){.number = m->number,
                        .snapshot = m->snapshot,
                        .size = m->size,
                        .merged = m->merged,
                        .map_fd = -1};
    struct stat st;
    if (m->number && stat(path, &st) < 0)
        err_errno(e, errno, "a layer of %s is not there: %s", c->path, path);
    else
        l->file = store_file_open(name, &o, e);
    if (l->file && m->number) {
        l->map_fd = open(map, (c->store.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        int error = l->map_fd < 0 ? errno : layer_map_resize(l, l->file->size);
        if (error ? err_errno(e, error, "cannot read %s", map) < 0
                  : layer_map_load(l, &c->identity, map, e) < 0) {
            chain_layer_close(l);
            return NULL;
        }
    }
    if (l->file)
        return l;
    free(l);
    return NULL;
}

/* Opening. */

/*
 * What a crash left: layers that the manifest does not name. Without a manifest nothing is touched: who lost it has not
 * lost what it named.
 */
static void remove_strangers(const struct chain *c)
{
    const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;
    _cleanup_free_ char *folder =
        slash ? mem_strndup(c->path, (size_t)(name - c->path)) : mem_strdup(".");
    _cleanup_free_ char *prefix = mem_printf("%s.layer", name);
    DIR *dir = opendir(folder);
    const struct dirent *it;
    while (dir && (it = readdir(dir))) {
        char *end;
        if (!str_starts_with(it->d_name, prefix))
            continue;
        const char *digits = it->d_name + strlen(prefix);
        unsigned long number = strtoul(digits, &end, 10);
        bool ours = *digits >= '1' && *digits <= '9' && (!*end || str_eq(end, ".map"));
        for (unsigned i = 0; i < c->n; i++)
            ours = ours && c->layers[i]->number != number;
        if (ours)
            unlinkat(dirfd(dir), it->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* next 0: there is none. */
static int read_manifest(const struct chain *c, struct manifest *ret_m, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s.chain", c->path);
    _cleanup_(str_done) struct str text = {0};
    struct err why = {0};
    *ret_m = (struct manifest){.n = 1};
    if (file_read(path, MANIFEST_MAX, &text, &why) == 0)
        return manifest_decode((const uint8_t *)text.p, text.len, ret_m, e) < 0
                   ? err_prefix(e, "%s", path)
                   : 0;
    if (why.code == ERR_NOT_FOUND)
        return 0;
    *e = why;
    return -1;
}

static int open_layers(struct chain *c, const struct store_options *o, struct err *e)
{
    struct manifest m;
    if (read_manifest(c, &m, e) < 0)
        return -1;
    c->next = m.next ? m.next : 1;
    c->revision = m.revision;
    c->identity = m.identity;
    for (uint32_t i = 0; i < m.n; i++) {
        /* The bottom is opened first, and its lock is that of all. */
        struct layer *l = chain_layer_open(c, &m.layer[i], i + 1 == m.n ? o->size : 0, e);
        if (!l)
            return -1;
        c->layers[c->n++] = l;
    }
    c->store.size = chain_head(c)->file->size;
    c->store.volatile_cache = true;
    if (!o->read_only && m.next)
        remove_strangers(c);
    return 0;
}

static void close_chain(struct store *s)
{
    struct chain *c = chain_of(s);
    c->closing = true;
    while (c->inflight || c->flushing || c->change)
        io_loop_turn(c->loop, -1);
    if (c->merge.timer.fn)
        io_timer_stop(c->loop, &c->merge.timer);
    list_for_each_safe(&c->free_ops, op, struct chain_op, link) {
        free(op->iov);
        free(op);
    }
    while (c->n)
        chain_layer_close(c->layers[--c->n]);
    free(c->staged);
    free(c->path);
    free(c);
}

static const struct store_ops chain_ops = {
    .name = "file",
    .submit = submit,
    .grow = grow,
    .snapshot = chain_snapshot,
    .snapshot_drop = chain_snapshot_drop,
    .revert = chain_revert,
    .snapshots = chain_snapshots,
    .extent = extent,
    .used = used,
    .pause = chain_merge_pause,
    .close = close_chain,
};

struct store *store_chain_open(const char *rest, const struct store_options *o, struct err *e)
{
    struct chain *c = NEW(struct chain);
    size_t length = strcspn(rest, "?");
    c->store =
        (struct store){.ops = &chain_ops, .block_size = o->block_size, .read_only = o->read_only};
    c->loop = o->loop;
    c->path = mem_strndup(rest, length);
    c->direct = str_eq(rest + length, "?direct=1");
    struct list_link *lists[] = {&c->active,        &c->waiting,      &c->held,   &c->free_ops,
                                 &c->flush_waiting, &c->flush_served, &c->changes};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        list_init(lists[i]);
    if (store_file_check(rest, e) < 0 || open_layers(c, o, e) < 0) {
        close_chain(&c->store);
        return NULL;
    }
    chain_merge_init(c);
    return &c->store;
}
