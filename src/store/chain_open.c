/*
 * The files of a chain: which there are, made, opened and removed.
 *
 * A chain with checksums is opened only if all that belongs to it is there and belongs together: the bottom's header gives
 * the identity; the manifest, the maps and the other headers have the same, and are not older than the headers say.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "store/chain.h"

char *chain_layer_path(const char *path, uint32_t number, const char *suffix)
{
    return number ? mem_printf("%s.layer%u%s", path, number, suffix)
                  : mem_printf("%s%s", path, suffix);
}

static int say_damaged(struct err *e, const char *path, const char *why)
{
    return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s %s", path, why);
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

static void set_error(void *context, int error)
{
    *(int *)context = error;
}

/* size: it grows to it; 0: as it is. */
static struct store *open_file(const struct chain *c, uint32_t number, const char *path,
                               const struct store_options *o, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("%s%s", path, c->direct ? "?direct=1" : ""),
                        *sums = chain_layer_path(c->path, number, ".sums");
    if (!c->cache)
        return store_file_open(name, o, e);
    const struct checked_options co = {
        .cache = c->cache,
        .name = name,
        .path = path,
        .sums = sums,
        .identity = c->identity,
        .layer = number,
        .any_identity = number == 0,
    };
    struct store *s = checked_open(&co, o, e);
    int error = 0;
    if (s && o->size > s->size && !o->read_only)
        store_grow(s, o->size, set_error, &error);
    if (s && o->size && o->size < s->size)
        error = EINVAL;
    if (!error)
        return s;
    err_errno(e, error, "cannot make %s %llu bytes large", path, (unsigned long long)o->size);
    store_close(s);
    return NULL;
}

static int open_map(const struct chain *c, struct layer *l, struct err *e)
{
    _cleanup_free_ char *path = chain_layer_path(c->path, l->number, ".map");
    l->map_fd = open(path, (c->store.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW);
    if (l->map_fd < 0)
        return errno == ENOENT ? say_damaged(e, path, "is missing")
                               : err_errno(e, errno, "cannot open %s", path);
    int error = layer_map_resize(l, l->file->size);
    if (error)
        return err_errno(e, error, "cannot read %s", path);
    if (layer_map_load(l, &c->identity, path, e) < 0)
        return -1;
    struct sums_file *sums = checked_sums(l->file);
    return sums && l->map.version < sums_header(sums).map
               ? say_damaged(e, path, "is older than what was flushed: put the right one back")
               : 0;
}

struct layer *chain_layer_open(const struct chain *c, const struct manifest_layer *m, uint64_t size,
                               bool existing, struct err *e)
{
    _cleanup_free_ char *path = chain_layer_path(c->path, m->number, "");
    const struct store_options o = {.loop = c->loop,
                                    .size = size,
                                    .block_size = c->store.block_size,
                                    .read_only = c->store.read_only,
                                    .existing = existing || m->number};
    struct layer *l = NEW(struct layer);
    *l = (struct layer){.number = m->number,
                        .snapshot = m->snapshot,
                        .size = m->size,
                        .merged = m->merged,
                        .map_fd = -1};
    struct stat st;
    if (m->number && stat(path, &st) < 0 && errno == ENOENT)
        say_damaged(e, path, "is missing: it is a layer of a file with snapshots");
    else
        l->file = open_file(c, m->number, path, &o, e);
    if (l->file && (!m->number || open_map(c, l, e) == 0))
        return l;
    chain_layer_close(l);
    return NULL;
}

/* Files that are there. */

/* Calls fn for each file of a layer, by its number and what follows it. */
static int each_layer_file(const char *path,
                           int (*fn)(void *context, int dir, const char *name,
                                     unsigned long number),
                           void *context)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    _cleanup_free_ char *folder =
                            slash ? mem_strndup(path, (size_t)(base - path)) : mem_strdup("."),
                        *prefix = mem_printf("%s.layer", base);
    DIR *dir = opendir(folder);
    const struct dirent *it;
    int status = 0;
    while (dir && status == 0 && (it = readdir(dir))) {
        char *end;
        if (!str_starts_with(it->d_name, prefix))
            continue;
        const char *digits = it->d_name + strlen(prefix);
        unsigned long number = strtoul(digits, &end, 10);
        if (*digits >= '1' && *digits <= '9' &&
            (!*end || str_eq(end, ".map") || str_eq(end, ".sums")))
            status = fn(context, dirfd(dir), it->d_name, number);
    }
    if (dir)
        closedir(dir);
    return status;
}

static int remove_stranger(void *context, int dir, const char *name, unsigned long number)
{
    const struct chain *c = context;
    for (unsigned i = 0; i < c->n; i++)
        if (c->layers[i]->number == number)
            return 0;
    unlinkat(dir, name, 0);
    return 0;
}

static int remove_any(void *context, int dir, const char *name, unsigned long number)
{
    (void)context;
    (void)number;
    return unlinkat(dir, name, 0);
}

/* The bottom goes last: until then it is a damaged store, not one that can be made anew by mistake. */
int chain_remove(const char *path, struct err *e)
{
    static const char *const suffixes[] = {".chain", ".sums", ""};
    if (each_layer_file(path, remove_any, NULL) < 0)
        return err_errno(e, errno, "cannot remove a layer of %s", path);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        _cleanup_free_ char *it = mem_printf("%s%s", path, suffixes[i]);
        if (unlink(it) < 0 && errno != ENOENT)
            return err_errno(e, errno, "cannot remove %s", it);
    }
    return 0;
}

/* Making one with checksums. */

static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash ? mem_strndup(path, (size_t)(slash + 1 - path)) : mem_strdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? -1 : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* Nothing is there, or only what a crash left of one that was being made. */
static bool is_new(const struct chain *c)
{
    _cleanup_free_ char *sums = mem_printf("%s.sums", c->path);
    struct stat st;
    if (stat(c->path, &st) < 0)
        return errno == ENOENT;
    return S_ISREG(st.st_mode) && st.st_blocks == 0 && access(sums, F_OK) < 0 && errno == ENOENT;
}

/* Of the size that is wanted, or that of the blank file. */
static int make_bottom(const struct chain *c, const struct store_options *o, struct err *e)
{
    _cleanup_free_ char *sums = mem_printf("%s.sums", c->path);
    struct stat st = {0};
    uint64_t blank = stat(c->path, &st) == 0 ? (uint64_t)st.st_size : 0;
    const struct sums_header h = {.identity = o->identity, .size = o->size ? o->size : blank};
    if (!h.size)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidSize", "%s is not there: give it a size",
                       c->path);
    if (chain_remove(c->path, e) < 0)
        return -1;
    int fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool made = fd >= 0 && ftruncate(fd, (off_t)h.size) == 0 && fsync(fd) == 0;
    int status = made ? sums_make(sums, &h) : -errno;
    if (fd >= 0)
        close(fd);
    if (status == 0 && sync_folder(c->path) < 0)
        status = -errno;
    return status < 0 ? err_errno(e, -status, "cannot make %s", c->path) : 0;
}

/* Opening. */

/* next 0: there is none. */
static int read_manifest(const char *path, struct manifest *ret_m, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    struct err why = {0};
    *ret_m = (struct manifest){.n = 1};
    if (file_read(path, MANIFEST_MAX, &text, &why) == 0)
        return manifest_decode((const uint8_t *)text.p, text.len, ret_m, e) < 0
                   ? err_prefix(e, "%s", path)
                   : 0;
    if (why.code == ERR_NOT_FOUND)
        return 0;
    if (why.code == ERR_OUT_OF_RANGE)
        return say_damaged(e, path, "is damaged: it is too long for a list of snapshots");
    *e = why;
    return -1;
}

/* The bottom is open: what belongs to it, and what does not? */
static int check_manifest(struct chain *c, const char *path, const struct manifest *m,
                          struct err *e)
{
    struct sums_file *sums = checked_sums(c->layers[0]->file);
    if (!sums)
        return 0;
    struct sums_header h = sums_header(sums);
    c->identity = h.identity;
    if (!m->next && h.revision)
        return say_damaged(e, path, "is missing: the store has snapshots");
    if (m->next && !uuid_eq(&m->identity, &h.identity))
        return err_set(e, ERR_DATA_LOSS, "DamagedStore", "%s is of another store than %s", path,
                       sums->path);
    if (m->revision < h.revision)
        return say_damaged(e, path, "is older than the store's last change");
    return 0;
}

/* Nobody writes past the checksums that another keeps. */
static int check_plain(const struct chain *c, struct err *e)
{
    _cleanup_free_ char *sums = mem_printf("%s.sums", c->path);
    if (c->cache || c->store.read_only || access(sums, F_OK) < 0)
        return 0;
    return err_set(
        e, ERR_FAILED_PRECONDITION, "InUse",
        "%s belongs to a replica, which keeps checksums of it: serve it as a replica, or "
        "open it to read only",
        c->path);
}

int chain_open_layers(struct chain *c, const struct store_options *o, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s.chain", c->path);
    struct manifest m;
    if (check_plain(c, e) < 0 ||
        (c->cache && !o->existing && !o->read_only && is_new(c) && make_bottom(c, o, e) < 0) ||
        read_manifest(path, &m, e) < 0)
        return -1;
    c->next = m.next ? m.next : 1;
    c->revision = m.revision;
    c->identity = m.identity;
    for (uint32_t i = 0; i < m.n; i++) {
        /* The bottom is opened first, and its lock is that of all. */
        uint64_t size = i + 1 == m.n && !o->existing ? o->size : 0;
        struct layer *l = chain_layer_open(c, &m.layer[i], size, o->existing, e);
        if (!l)
            return -1;
        c->layers[c->n++] = l;
        if (i == 0 && check_manifest(c, path, &m, e) < 0)
            return -1;
    }
    c->store.size = chain_head(c)->file->size;
    c->store.volatile_cache = true;
    c->store.checked = c->cache != NULL;
    if (!o->read_only && m.next)
        each_layer_file(c->path, remove_stranger, c);
    return 0;
}
