/*
 * A replica's folder, or the stores that it was given: who it is, its data and its metadata.
 *
 * Data and metadata name each other (repl/replica_load.c). Data that is missing, cut short, damaged as a whole, or not the
 * data that the metadata speaks of, is never opened: it is set aside, and the replica begins as a *lost* one, with a new
 * store, to be rebuilt from the others. The same if there is data and the metadata is gone. A store that was given stays,
 * and is compared whole.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "repl/meta.h"
#include "replio/replica_impl.h"

enum { NEW_SIZE = 4096, BLOCK = 512 };

static int check_wanted(const struct uuid *id, const struct uuid *wanted, struct err *e)
{
    char text[UUID_TEXT_MAX];
    if (!wanted || uuid_eq(wanted, id))
        return 0;
    return err_set(e, ERR_FAILED_PRECONDITION, "OtherReplica",
                   "this is replica %s, not the one that --id says: check which folder it is",
                   uuid_format(id, text));
}

static int parse_id(char *text, const struct uuid *wanted, struct uuid *ret_id, struct err *e)
{
    text[strcspn(text, "\n")] = '\0';
    if (uuid_from_text(text, ret_id, e) < 0)
        return -1;
    return check_wanted(ret_id, wanted, e);
}

/* Who it is; *ret_missing: nothing says so. */
static int read_id(struct replio_replica *r, const char *dir, const struct uuid *wanted,
                   bool *ret_missing, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/id", dir);
    _cleanup_(str_done) struct str text = {0};
    struct err why = {0};
    *ret_missing = false;
    if (file_read(path, 100, &text, &why) == 0)
        return parse_id(text.len ? text.p : (char[]){""}, wanted, &r->id, e) < 0
                   ? err_prefix(e, "%s", path)
                   : 0;
    *ret_missing = why.code == ERR_NOT_FOUND;
    if (*ret_missing)
        return 0;
    *e = why;
    return -1;
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

static void read_meta(void *context, uint64_t offset, void *data, size_t size)
{
    const struct replio_replica *r = context;
    r->meta->ops->read(r->meta, offset, data, size);
}

static enum repl_found read_super(struct replio_replica *r, struct repl_super *ret_super)
{
    uint8_t slots[2][REPL_SUPER_SLOT];
    for (uint64_t i = 0; i < 2; i++)
        read_meta(r, repl_super_offset(i), slots[i], sizeof(slots[i]));
    return repl_super_choose(slots[0], slots[1], ret_super);
}

/* There is no file with the id: the metadata has it; a new replica gets the one that is wanted, or one at random. */
static int make_id(struct replio_replica *r, const char *dir, const struct uuid *wanted,
                   struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/id", dir);
    char text[UUID_TEXT_MAX], line[UUID_TEXT_MAX + 1];
    struct repl_super super;
    read_super(r, &super);
    r->id = super.generation ? super.replica : wanted ? *wanted : uuid_random();
    int n = snprintf(line, sizeof(line), "%s\n", uuid_format(&r->id, text));
    if (check_wanted(&r->id, wanted, e) < 0)
        return err_prefix(e, "%s is missing, and by the metadata", path);
    return file_replace(path, line, (size_t)n, 0600, e);
}

/* The store. */

static bool is_data(const char *name)
{
    return str_eq(name, "data") || str_starts_with(name, "data.");
}

static int move_data(const char *dir, const char *to, struct err *e)
{
    DIR *d = opendir(dir);
    int status = 0;
    if (!d || (mkdir(to, 0700) < 0 && errno != EEXIST)) {
        status = err_errno(e, errno, "cannot set the data in %s aside", dir);
    } else {
        for (struct dirent *it; status == 0 && (it = readdir(d));) {
            _cleanup_free_ char *new_path = mem_printf("%s/%s", to, it->d_name);
            if (is_data(it->d_name) && renameat(dirfd(d), it->d_name, AT_FDCWD, new_path) < 0)
                status = err_errno(e, errno, "cannot move %s/%s", dir, it->d_name);
        }
    }
    if (d)
        closedir(d);
    return status;
}

/* Nobody deletes what may be the last good copy of something: it is moved to DIR/damaged-N. */
static int set_aside(struct replio_replica *r, const char *dir, struct err *e)
{
    _cleanup_free_ char *to = NULL;
    for (unsigned n = 1; !to || access(to, F_OK) == 0; n++) {
        free(to);
        to = mem_printf("%s/damaged-%u", dir, n);
    }
    snprintf(r->set_aside, sizeof(r->set_aside), "%s", to);
    return move_data(dir, to, e);
}

static struct store *try_store(const struct replio_replica_options *o, bool existing, struct err *e)
{
    _cleanup_free_ char *name = mem_printf("file:%s/data%s", o->dir, o->direct ? "?direct=1" : "");
    const struct store_options options = {.loop = o->loop,
                                          .size = existing || o->store ? 0 : NEW_SIZE,
                                          .block_size = BLOCK,
                                          .sums = true,
                                          .existing = existing,
                                          .identity = uuid_random()};
    return store_open(o->store ? o->store : name, &options, e);
}

/* Whether anything was ever stored: a new store is small until a volume gives it its size. */
static bool was_used(const struct replio_replica_options *o)
{
    struct stat st;
    _cleanup_free_ char *data = mem_printf("%s/data", o->dir);
    return !o->store && stat(data, &st) == 0 && st.st_size > NEW_SIZE;
}

/* The store that the metadata speaks of; NULL, with *e set, if it is not there, not whole, or another. */
static struct store *open_known(const struct replio_replica_options *o,
                                const struct repl_super *super, enum repl_found found,
                                struct err *e)
{
    struct store_mark mark;
    struct store *store = try_store(o, true, e);
    if (!store)
        return NULL;
    bool same = store_mark(store, &mark) &&
                (found == REPL_FOUND_GOOD ? repl_super_knows(super, &mark.id, mark.generation)
                                          : uuid_eq(&super->store, &mark.id));
    if (same)
        return store;
    store_close(store);
    err_set(e, ERR_DATA_LOSS, "OtherStore",
            "the data is not what the metadata speaks of: it is another store, or an older copy");
    return NULL;
}

static void describe_store(const struct replio_replica *r, struct repl_replica_config *config)
{
    struct store_mark mark = {.id = r->id};
    store_mark(r->store, &mark);
    config->store = mark.id;
    config->store_generation = mark.generation;
    config->checked = r->store->checked;
    config->sums_with_data = r->store->sums_with_data;
    config->store_size = r->store->size;
}

static int open_store(struct replio_replica *r, const struct replio_replica_options *o,
                      struct repl_replica_config *config, struct err *e)
{
    struct repl_super super;
    struct err why = {0};
    enum repl_found found = read_super(r, &super);
    bool used = was_used(o);
    if (super.generation)
        r->store = open_known(o, &super, found, &why);
    else if (found == REPL_FOUND_BAD || used)
        err_set(&why, ERR_DATA_LOSS, "NoMetadata", "there is data whose metadata is gone");
    if (!r->store && why.code) {
        if (why.code != ERR_DATA_LOSS && why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
        snprintf(r->damage, sizeof(r->damage), "%s", why.msg);
        config->lost = true;
        if (used && set_aside(r, o->dir, e) < 0)
            return -1;
    }
    config->store_new = !r->store;
    if (!r->store)
        r->store = try_store(o, false, e);
    if (!r->store)
        return -1;
    describe_store(r, config);
    return 0;
}

static int open_core(struct replio_replica *r, struct repl_replica_config *config,
                     const struct repl_replica_ops *ops, struct err *e)
{
    struct store_snapshot snaps[REPL_HELD];
    unsigned n = store_snapshots(r->store, snaps, REPL_HELD);
    config->held.n = 0;
    for (unsigned i = 0; i < n; i++)
        config->held.id[config->held.n++] = snaps[i].id;
    config->replica = r->id;
    r->core = repl_replica_new(config, ops, r);
    return repl_replica_load(r->core, read_meta, e);
}

static bool is_stale(void *context, uint64_t offset, uint64_t length)
{
    const struct replio_replica *r = context;
    return repl_replica_stale(r->core, offset, length);
}

/* The data is not what its checksums are of: with a new store, from the beginning. */
static int begin_anew(struct replio_replica *r, const struct replio_replica_options *o,
                      struct repl_replica_config *config, const struct repl_replica_ops *ops,
                      struct err *e)
{
    repl_replica_free(r->core);
    store_close(r->store);
    r->core = NULL;
    r->store = NULL;
    if (o->store)
        return err_set(e, ERR_DATA_LOSS, "DamagedStore",
                       "%s; remove this replica from the volume, wipe it and add it again",
                       r->damage);
    if (set_aside(r, o->dir, e) < 0)
        return -1;
    config->lost = config->store_new = true;
    r->store = try_store(o, false, e);
    if (!r->store)
        return -1;
    describe_store(r, config);
    return open_core(r, config, ops, e);
}

static int open_folder(struct replio_replica *r, const struct replio_replica_options *o,
                       const struct repl_replica_ops *ops, struct err *e)
{
    static const struct uuid none;
    const struct uuid *wanted = uuid_eq(&o->id, &none) ? NULL : &o->id;
    struct repl_replica_config config = {.volume = o->volume};
    struct err why = {0};
    bool missing;
    if (file_make_dirs(o->dir, 0700, e) < 0 || read_id(r, o->dir, wanted, &missing, e) < 0 ||
        !(r->meta = replica_meta_file(r, o->dir, e)) ||
        (missing && make_id(r, o->dir, wanted, e) < 0) || open_store(r, o, &config, e) < 0 ||
        sync_dir(o->dir, e) < 0 || open_core(r, &config, ops, e) < 0)
        return err_prefix(e, "%s", o->dir);
    if (config.store_new || store_inspect(r->store, is_stale, r, &why) == 0)
        return 0;
    snprintf(r->damage, sizeof(r->damage), "%s", why.msg);
    return begin_anew(r, o, &config, ops, e);
}

/* Stores that were given. */

size_t replio_meta_size(const void *head, uint64_t data_size)
{
    struct repl_super super;
    const uint8_t *slots = head;
    repl_super_choose(slots, slots + REPL_SUPER_SLOT, &super);
    if (!super.view.version)
        return REPL_META_HEAD;
    uint64_t regions = (data_size >> super.view.region_shift) + 1;
    return repl_page_offset((regions < REPL_REGIONS ? regions : REPL_REGIONS) / REPL_PAGE_ENTRIES +
                            1);
}
_Static_assert((int)REPLIO_META_HEAD == (int)REPL_META_HEAD,
               "what says how much there is comes first");

/* Why the data is not what the metadata speaks of; NULL: it is. *ret_new: both are. */
static const char *judge_stores(struct replio_replica *r, bool *ret_new)
{
    struct repl_super super;
    struct store_mark mark = {0};
    enum repl_found found = read_super(r, &super);
    store_mark(r->store, &mark);
    *ret_new = false;
    if (found == REPL_FOUND_BAD)
        return "both superblocks are damaged";
    if (!super.generation && mark.generation)
        return "there is data whose metadata is gone";
    *ret_new = !super.generation;
    if (!super.generation ||
        (found == REPL_FOUND_GOOD ? repl_super_knows(&super, &mark.id, mark.generation)
                                  : uuid_eq(&super.store, &mark.id)))
        return NULL;
    return "the data is not what the metadata speaks of: it is another store, or an older copy";
}

static int open_stores(struct replio_replica *r, const struct replio_replica_options *o,
                       const struct repl_replica_ops *ops, struct err *e)
{
    const struct replio_stores *s = o->stores;
    struct repl_replica_config config = {.volume = o->volume};
    r->id = o->id;
    r->store = s->data;
    r->meta_store = s->meta;
    r->lent = true;
    r->meta = replica_meta_store(r, s->meta, s->image, s->image_size);
    const char *why = judge_stores(r, &config.store_new);
    why = why ? why : s->lost;
    if (why) {
        snprintf(r->damage, sizeof(r->damage), "%s", why);
        config.lost = true;
        config.store_new = false;
    }
    describe_store(r, &config);
    return open_core(r, &config, ops, e);
}

int replica_open_all(struct replio_replica *r, const struct replio_replica_options *o,
                     const struct repl_replica_ops *ops, struct err *e)
{
    return o->stores ? open_stores(r, o, ops, e) : open_folder(r, o, ops, e);
}
