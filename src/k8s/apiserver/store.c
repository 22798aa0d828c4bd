/*
 * Opening the store: the file, its schema and its check. There is one table of changes and none of
 * objects: an object is the last change of its key, so a write is one row behind all others.
 *
 *     changes   revision -> change, collection, key, value
 *     facts     schema    the version of this schema
 *               horizon   a revision: behind it every change is there, the history; up to it only
 *                         those that are some key's last
 *
 * The store's revision is that of the newest change, which is never forgotten, or the horizon, when a
 * restore put that beyond all changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "k8s/apiserver/store_impl.h"

#define SCHEMA_VERSION "2"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS changes (revision INTEGER PRIMARY KEY, change INTEGER,"
    " collection TEXT, key TEXT, value BLOB);"
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT);"
    "INSERT OR IGNORE INTO facts VALUES ('schema', '" SCHEMA_VERSION "'), ('horizon', '0');";

/* What the system said when a write failed last: of the log, or of the file itself; 0: nothing. */
static int last_errno(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int number = 0;
    sqlite3_file_control(db, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    if (!number)
        sqlite3_file_control(db, NULL, SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

int store_sql_error(const struct apiserver_store *s, const char *what, struct err *e)
{
    const char *text = sqlite3_errmsg(s->db);
    int number;
    switch (sqlite3_errcode(s->db) & 0xff) {
    case SQLITE_FULL:
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "NoSpace",
                       "%s: the disk is full (%s); free some space", what, text);
    case SQLITE_READONLY:
        return err_set(e, ERR_UNAVAILABLE, "ReadOnly", "%s: the disk is read-only (%s)", what,
                       text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, ERR_DATA_LOSS, "Damaged",
                       "%s: the store is damaged (%s); restore it from a backup", what, text);
    default:
        number = last_errno(s->db);
        if (number == EROFS)
            return err_set(e, ERR_UNAVAILABLE, "ReadOnly", "%s: the disk is read-only", what);
        return err_set(e, ERR_UNAVAILABLE, "StoreFailed", "%s: %s%s%s", what, text,
                       number ? ": " : "", number ? strerror(number) : "");
    }
}

struct apiserver_object *store_object_alloc(const char *collection, const char *key,
                                            uint64_t revision, size_t size, char **ret_bytes)
{
    size_t key_size = strlen(key) + 1;
    struct apiserver_object *o = mem_alloc(sizeof(*o) + key_size + size + 1);
    char *own_key = (char *)(o + 1), *bytes = own_key + key_size;
    memcpy(own_key, key, key_size);
    bytes[size] = '\0';
    *o = (struct apiserver_object){revision, collection, own_key, bytes, size, 1};
    *ret_bytes = bytes;
    return o;
}

struct apiserver_object *apiserver_object_new(const char *collection, const char *key,
                                              uint64_t revision, const char *head, size_t head_size,
                                              const char *tail, size_t tail_size)
{
    char digits[24], *bytes;
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, revision);
    struct apiserver_object *o =
        store_object_alloc(collection, key, revision, head_size + n + tail_size, &bytes);
    memcpy(mempcpy(mempcpy(bytes, head, head_size), digits, n), tail, tail_size);
    return o;
}

/* One row of one column must be as expected; what it is otherwise goes into the message. */
static int expect(struct apiserver_store *s, const char *sql, const char *expected,
                  const char *meaning, struct err *e)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &row, NULL) != SQLITE_OK)
        return store_sql_error(s, meaning, e);
    int status = 0;
    if (sqlite3_step(row) != SQLITE_ROW) {
        status = store_sql_error(s, meaning, e);
    } else {
        const char *text = (const char *)sqlite3_column_text(row, 0);
        if (!text || strcasecmp(text, expected) != 0)
            status = err_set(e, ERR_DATA_LOSS, "Damaged",
                             "%s: it says \"%.200s\"; restore it from a backup", meaning,
                             text ? text : "nothing");
    }
    sqlite3_finalize(row);
    return status;
}

static int prepare(struct apiserver_store *s, struct err *e)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } statements[] = {
        {&s->sql.begin, "BEGIN IMMEDIATE"},
        {&s->sql.commit, "COMMIT"},
        {&s->sql.log, "INSERT INTO changes VALUES (?, ?, ?, ?, ?)"},
        {&s->sql.forget, "DELETE FROM changes WHERE revision = ?"},
        {&s->sql.horizon, "UPDATE facts SET value = ? WHERE name = 'horizon'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(statements); i++) {
        if (sqlite3_prepare_v3(s->db, statements[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                               statements[i].statement, NULL) != SQLITE_OK)
            return store_sql_error(s, "cannot open the store", e);
    }
    return 0;
}

int store_lock(const char *path, struct err *e)
{
    _cleanup_free_ char *lock = mem_printf("%s.lock", path);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "%s", lock);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                   "%s is in use by another process; stop that one first", path);
}

static int open_database(struct apiserver_store *s, const char *path, struct err *e)
{
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        return store_sql_error(s, path, e);
    chmod(path, 0600);
    /* Pages of 8 kB hold three objects of 2 kB, pages of 4 kB one. */
    static const char settings[] = "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;"
                                   "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                                   "PRAGMA cache_size = -2000;";
    if (sqlite3_exec(s->db, settings, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return store_sql_error(s, path, e);
    if (expect(s, "PRAGMA journal_mode", "wal", path, e) < 0 ||
        expect(s, "PRAGMA quick_check(1)", "ok", path, e) < 0 ||
        expect(s, "SELECT value FROM facts WHERE name = 'schema'", SCHEMA_VERSION, path, e) < 0)
        return -1;
    return prepare(s, e);
}

int apiserver_store_open(const char *path, const struct apiserver_store_options *options,
                         struct apiserver_store **ret_store, struct err *e)
{
    _cleanup_(apiserver_store_closep) struct apiserver_store *s = NEW(struct apiserver_store);
    s->lock_fd = -1;
    s->capacity = options && options->history ? options->history : HISTORY;
    s->most_bytes = options && options->history_bytes ? options->history_bytes : HISTORY_BYTES;
    s->history = mem_zalloc(s->capacity * sizeof(*s->history));
    s->waiting_end = &s->waiting;
    pthread_rwlock_init(&s->memory, NULL);
    pthread_mutex_init(&s->queue, NULL);
    pthread_mutex_init(&s->database, NULL);
    pthread_cond_init(&s->work, NULL);

    _cleanup_free_ char *part = mem_printf("%s.part", path);
    if (access(path, F_OK) < 0 && access(part, F_OK) == 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "RestoreInterrupted",
                       "a restore was interrupted: restore again, or move %s.before-restore-... "
                       "back to %s and remove %s",
                       path, path, part);
    s->lock_fd = store_lock(path, e);
    if (s->lock_fd < 0 || store_seal_load(s, options, e) < 0 || open_database(s, path, e) < 0 ||
        store_load(s, e) < 0 || store_seal_begin(s, e) < 0 || store_journal_start(s, e) < 0)
        return -1;
    s->assigned = s->revision;
    if (store_commit_start(s, e) < 0)
        return -1;
    *ret_store = TAKE_PTR(s);
    return 0;
}

void apiserver_store_close(struct apiserver_store *s)
{
    store_commit_stop(s);
    store_journal_stop(s);
    sqlite3_finalize(s->sql.begin);
    sqlite3_finalize(s->sql.commit);
    sqlite3_finalize(s->sql.log);
    sqlite3_finalize(s->sql.forget);
    sqlite3_finalize(s->sql.horizon);
    sqlite3_close(s->db);
    store_memory_done(s);
    store_seal_done(s);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    map_done(&s->pending);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->queue);
    pthread_mutex_destroy(&s->database);
    pthread_rwlock_destroy(&s->memory);
    free(s);
}
