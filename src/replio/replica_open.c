/*
 * A replica's folder: who it is, its data and its metadata.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "repl/meta.h"
#include "replio/replica_impl.h"

enum { NEW_SIZE = 4096, BLOCK = 512 };

static int parse_id(char *text, const struct uuid *wanted, struct uuid *ret_id, struct err *e)
{
    text[strcspn(text, "\n")] = '\0';
    if (uuid_from_text(text, ret_id, e) < 0)
        return -1;
    if (wanted && !uuid_eq(wanted, ret_id))
        return err_set(e, ERR_FAILED_PRECONDITION, "OtherReplica",
                       "this is replica %s, not the one that --id says: check which folder it is",
                       text);
    return 0;
}

/* Who it is; of a new one the id that is wanted, or one at random. */
static int read_id(const char *dir, const struct uuid *wanted, struct uuid *ret_id, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/id", dir);
    _cleanup_(str_done) struct str text = {0};
    struct err why = {0};
    if (file_read(path, 100, &text, &why) == 0)
        return parse_id(text.len ? text.p : (char[]){""}, wanted, ret_id, e) < 0
                   ? err_prefix(e, "%s", path)
                   : 0;
    if (why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    char text_id[UUID_TEXT_MAX], line[UUID_TEXT_MAX + 1];
    *ret_id = wanted ? *wanted : uuid_random();
    int n = snprintf(line, sizeof(line), "%s\n", uuid_format(ret_id, text_id));
    return file_replace(path, line, (size_t)n, 0600, e);
}

static int load(struct replio_replica *r, struct err *e)
{
    uint8_t a[REPL_SUPER_SIZE], b[REPL_SUPER_SIZE] = {0};
    memset(a, 0, sizeof(a));
    if (pread(r->meta_fd, a, sizeof(a), 0) < 0 || pread(r->meta_fd, b, sizeof(b), sizeof(a)) < 0)
        return err_errno(e, errno, "cannot read the metadata");
    if (repl_replica_load_super(r->core, a, b, e) < 0)
        return -1;
    for (uint64_t page = 0; page < repl_replica_pages(r->core); page++) {
        memset(a, 0, sizeof(a));
        if (pread(r->meta_fd, a, sizeof(a), (off_t)repl_page_offset(page)) < 0)
            return err_errno(e, errno, "cannot read the region map");
        repl_replica_load_page(r->core, page, a);
    }
    return 0;
}

static int open_meta(struct replio_replica *r, const char *dir, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/meta", dir);
    r->meta_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (r->meta_fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    if (file_lock(r->meta_fd, false) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "%s is in use by another replica", dir);
    return 0;
}

/* The names of what was made in the folder are on disk. */
static int sync_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? err_errno(e, errno, "cannot sync %s", dir) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

static int open_store(struct replio_replica *r, const struct replio_replica_options *o,
                      struct err *e)
{
    _cleanup_free_ char *data = mem_printf("%s/data", o->dir),
                        *name = mem_printf("file:%s%s", data, o->direct ? "?direct=1" : "");
    struct store_options options = {
        .loop = o->loop,
        .size = o->store || access(data, F_OK) == 0 ? 0 : NEW_SIZE,
        .block_size = BLOCK,
    };
    r->store = store_open(o->store ? o->store : name, &options, e);
    return r->store ? 0 : -1;
}

int replica_open_all(struct replio_replica *r, const struct replio_replica_options *o,
                     const struct repl_replica_ops *ops, struct err *e)
{
    static const struct uuid none;
    const struct uuid *wanted = uuid_eq(&o->id, &none) ? NULL : &o->id;
    if (file_make_dirs(o->dir, 0700, e) < 0 || read_id(o->dir, wanted, &r->id, e) < 0 ||
        open_meta(r, o->dir, e) < 0 || open_store(r, o, e) < 0 || sync_dir(o->dir, e) < 0)
        return -1;
    struct repl_replica_config config = {
        .volume = o->volume, .replica = r->id, .store_size = r->store->size};
    struct store_snapshot snaps[REPL_HELD];
    unsigned n = store_snapshots(r->store, snaps, REPL_HELD);
    for (unsigned i = 0; i < n; i++)
        config.held.id[config.held.n++] = snaps[i].id;
    r->core = repl_replica_new(&config, ops, r);
    return load(r, e) < 0 ? err_prefix(e, "%s", o->dir) : 0;
}
