/*
 * Backup and restore.
 *
 * A backup is one file, a database of its own, consistent as of one moment: it is read through a
 * connection of its own while the store goes on. It comes into being under another name and takes
 * its own when it is complete and on disk.
 *
 * A restore never leaves half of two stores: what is there is moved aside first, as
 * PATH.before-restore-TIME with its journal, and the backup, which lies ready as PATH.part, takes the
 * place in one rename. If the machine stops in between, there is PATH.part and no PATH, and opening
 * says so instead of starting an empty store.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "k8s/apiserver/store_impl.h"

enum { PAGES_AT_ONCE = 1000 };

static int sync_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? err_errno(e, errno, "%s", path) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

static int sync_folder_of(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder =
        slash ? mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : mem_strdup(".");
    return sync_file(folder, e);
}

static int sql_failed(sqlite3 *db, const char *path, struct err *e)
{
    return store_sql_error(&(struct apiserver_store){.db = db}, path, e);
}

struct progress {
    apiserver_store_progress *fn; /* NULL: nobody asks */
    void *context;
};

/* The pages, a piece at a time, all as of one moment. */
static int copy_pages(sqlite3 *source, sqlite3 *copy, const char *to, struct progress p,
                      struct err *e)
{
    /* A transaction that reads holds the moment still, whatever is written meanwhile. */
    if (sqlite3_exec(source, "BEGIN; SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) !=
        SQLITE_OK)
        return sql_failed(source, "cannot read the store", e);
    sqlite3_backup *backup = sqlite3_backup_init(copy, "main", source, "main");
    int result = backup ? SQLITE_OK : SQLITE_ERROR;
    bool go_on = true;
    while (result == SQLITE_OK && go_on) {
        result = sqlite3_backup_step(backup, PAGES_AT_ONCE);
        int total = sqlite3_backup_pagecount(backup);
        go_on = !p.fn || p.fn(p.context, total - sqlite3_backup_remaining(backup), total);
    }
    if (sqlite3_backup_finish(backup) != SQLITE_OK || (go_on && result != SQLITE_DONE) ||
        sqlite3_exec(copy, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_failed(copy, to, e);
    return go_on ? 0 : err_set(e, ERR_CANCELLED, "Cancelled", "the copy was given up");
}

/* Copies a database into a new file that needs no journal beside it. */
static int copy_database(const char *from, const char *to, struct progress p, struct err *e)
{
    sqlite3 *source = NULL, *copy = NULL;
    int status = 0;
    unlink(to);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* it may hold secrets */
    if (fd < 0)
        return err_errno(e, errno, "%s", to);
    close(fd);
    if (sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        status = sql_failed(source, from, e);
    } else if (sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        status = sql_failed(copy, to, e);
    } else {
        sqlite3_busy_timeout(source, 10000);
        status = copy_pages(source, copy, to, p, e);
    }
    sqlite3_close(copy);
    sqlite3_close(source);
    if (status == 0)
        status = sync_file(to, e);
    if (status < 0)
        unlink(to);
    return status;
}

int apiserver_store_copy(struct apiserver_store *s, const char *path, apiserver_store_progress *fn,
                         void *context, struct err *e)
{
    return copy_database(sqlite3_db_filename(s->db, "main"), path, (struct progress){fn, context},
                         e);
}

int apiserver_store_backup(struct apiserver_store *s, const char *path, struct err *e)
{
    _cleanup_free_ char *part = mem_printf("%s.part", path);
    if (apiserver_store_copy(s, part, NULL, NULL, e) < 0)
        return -1;
    if (rename(part, path) < 0) {
        err_errno(e, errno, "%s", path);
        unlink(part);
        return -1;
    }
    return sync_folder_of(path, e);
}

/* Opens the copy as a store would, which checks everything. */
static int check_copy(const char *path, const struct apiserver_store_options *options,
                      struct err *e)
{
    struct apiserver_store *s;
    if (apiserver_store_open(path, options, &s, e) < 0)
        return err_prefix(e, "the backup is of no use");
    apiserver_store_close(s);
    _cleanup_free_ char *lock = mem_printf("%s.lock", path);
    unlink(lock);
    return 0;
}

/* One number; 0 when there is none or it cannot be read. */
static uint64_t query_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row = NULL;
    uint64_t number = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        number = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return number;
}

/* The revision of the store at path, as far as it can be read. */
static uint64_t revision_of(const char *path)
{
    sqlite3 *db = NULL;
    uint64_t revision = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        revision = query_number(db, "SELECT max(coalesce((SELECT max(revision) FROM changes), 0), "
                                    "coalesce((SELECT cast(value AS INTEGER) FROM facts WHERE "
                                    "name = 'horizon'), 0))");
    sqlite3_close(db);
    return revision;
}

/* The copy goes on at that revision, and knows nothing of what was before. */
static int set_revision(const char *path, uint64_t revision, struct err *e)
{
    sqlite3 *db = NULL;
    char sql[256];
    snprintf(sql, sizeof(sql), "UPDATE facts SET value = '%" PRIu64 "' WHERE name = 'horizon'",
             revision);
    int status = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        status = sql_failed(db, path, e);
    sqlite3_close(db);
    return status < 0 ? -1 : sync_file(path, e);
}

/* PATH.before-restore-TIME, which does not exist. To be freed. */
static char *aside_name(const char *path)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    for (unsigned i = 0;; i++) {
        _cleanup_free_ char *name = i ? mem_printf("%s.before-restore-%s-%u", path, stamp, i)
                                      : mem_printf("%s.before-restore-%s", path, stamp);
        if (access(name, F_OK) < 0)
            return TAKE_PTR(name);
    }
}

/* PATH, PATH-wal and PATH-shm get other names; the main file last, so that a store is whole or gone. */
static int move_aside(const char *path, const char *aside, struct err *e)
{
    static const char *const endings[] = {"-shm", "-wal", ""};
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        _cleanup_free_ char *from = mem_printf("%s%s", path, endings[i]);
        _cleanup_free_ char *to = mem_printf("%s%s", aside, endings[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return err_errno(e, errno, "%s", from);
    }
    return sync_folder_of(path, e);
}

/* Makes the backup ready at `part`, at a revision beyond all that were seen. */
static int prepare(const char *backup, const char *part, uint64_t seen,
                   const struct apiserver_store_options *options, struct err *e)
{
    if (copy_database(backup, part, (struct progress){0}, e) < 0 ||
        check_copy(part, options, e) < 0)
        return -1;
    uint64_t own = revision_of(part);
    return set_revision(part, (own > seen ? own : seen) + APISERVER_RESTORE_STEP, e);
}

/* With the store locked. */
static int replace(const char *backup, const char *path,
                   const struct apiserver_store_options *options, char **ret_aside, struct err *e)
{
    bool exists = access(path, F_OK) == 0;
    _cleanup_free_ char *part = mem_printf("%s.part", path), *aside = aside_name(path);
    if (prepare(backup, part, exists ? revision_of(path) : 0, options, e) < 0 ||
        move_aside(path, aside, e) < 0) {
        unlink(part);
        return -1;
    }
    if (rename(part, path) < 0)
        return err_errno(e, errno, "%s", path); /* the part stays: the next restore replaces it */
    if (exists && ret_aside)
        *ret_aside = TAKE_PTR(aside);
    return sync_folder_of(path, e);
}

int apiserver_store_restore(const char *backup, const char *path,
                            const struct apiserver_store_options *options, char **ret_aside,
                            struct err *e)
{
    if (access(backup, R_OK) < 0)
        return err_errno(e, errno, "%s", backup);
    int lock = store_lock(path, e);
    if (lock < 0)
        return -1;
    int status = replace(backup, path, options, ret_aside, e);
    close(lock);
    return status;
}
