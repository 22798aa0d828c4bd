/*
 * Backup and restore.
 *
 * A backup is one file, a database of its own, consistent as of one moment: it is read through a
 * connection of its own while the store goes on. It comes into being under another name and takes
 * its own when it is complete and on disk.
 *
 * A restore never leaves half of two stores: what is there is moved aside first, as
 * PATH.before-restore with its journal, and the backup takes the place in one rename. If the machine
 * stops in between, there is no store at PATH, and opening it says so instead of starting an empty
 * one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "apiserver/store_impl.h"
#include "base/str.h"

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

/* Copies a database into a new file that needs no journal beside it. */
static int copy_database(const char *from, const char *to, struct err *e)
{
    sqlite3 *source = NULL, *copy = NULL;
    int status = 0;
    unlink(to);
    if (sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        status = sql_failed(source, from, e);
    } else if (sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
               SQLITE_OK) {
        status = sql_failed(copy, to, e);
    } else {
        sqlite3_busy_timeout(source, 10000);
        sqlite3_backup *backup = sqlite3_backup_init(copy, "main", source, "main");
        bool complete = backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE;
        if (sqlite3_backup_finish(backup) != SQLITE_OK || !complete ||
            sqlite3_exec(copy, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
            status = sql_failed(copy, to, e);
    }
    sqlite3_close(copy);
    sqlite3_close(source);
    if (status == 0)
        status = sync_file(to, e);
    if (status < 0)
        unlink(to);
    return status;
}

int apiserver_store_backup(struct apiserver_store *s, const char *path, struct err *e)
{
    _cleanup_free_ char *part = mem_printf("%s.part", path);
    if (copy_database(sqlite3_db_filename(s->db, "main"), part, e) < 0)
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

/* PATH, PATH-wal and PATH-shm get other names; the main file last, so that a store is whole or gone. */
static int move_aside(const char *path, struct err *e)
{
    static const char *const endings[] = {"-shm", "-wal", ""};
    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        _cleanup_free_ char *from = mem_printf("%s%s", path, endings[i]);
        _cleanup_free_ char *to = mem_printf("%s.before-restore%s", path, endings[i]);
        unlink(to);
        if (rename(from, to) < 0 && errno != ENOENT)
            return err_errno(e, errno, "%s", from);
    }
    return sync_folder_of(path, e);
}

int apiserver_store_restore(const char *backup, const char *path,
                            const struct apiserver_store_options *options, struct err *e)
{
    if (access(backup, R_OK) < 0)
        return err_errno(e, errno, "%s", backup);
    _cleanup_free_ char *part = mem_printf("%s.part", path);
    if (copy_database(backup, part, e) < 0 || check_copy(part, options, e) < 0)
        return -1;

    int lock = store_lock(path, e);
    int status = lock < 0 ? -1 : move_aside(path, e);
    if (status == 0 && rename(part, path) < 0)
        status = err_errno(e, errno, "%s", path);
    if (status == 0)
        status = sync_folder_of(path, e);
    if (lock >= 0)
        close(lock);
    unlink(part);
    return status;
}
