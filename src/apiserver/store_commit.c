/*
 * Group commit.
 *
 * A writer puts its change into the queue. If nobody is committing, it leads: it takes all that is
 * waiting, decides each change against memory and those before it in the same group, writes the
 * good ones in one transaction, and when that is on disk makes them visible in order and wakes their
 * writers. Whoever came meanwhile is in the queue; one of them leads next. So with one writer there
 * is no hand-over at all, and with many one fsync carries many changes.
 *
 * Only the leader changes memory or uses the prepared statements, so it reads memory without a lock.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apiserver/store_impl.h"
#include "base/clock.h"
#include "base/str.h"

enum { GROUP_MAX = 1000 };

struct write_op {
    struct write_op *next;
    const struct apiserver_write *w;
    struct apiserver_object *object; /* what it becomes; NULL when refused */
    int status;
    struct err err;
    bool done;
};

/* The object as it will be once those before it in the group are done. */
static const struct apiserver_object *current(struct apiserver_store *s,
                                              struct write_op *const *group, size_t n,
                                              const struct apiserver_write *w)
{
    while (n-- > 0) {
        const struct apiserver_write *before = group[n]->w;
        if (group[n]->object && strcmp(before->key, w->key) == 0 &&
            strcmp(before->collection, w->collection) == 0)
            return before->change == APISERVER_DELETED ? NULL : group[n]->object;
    }
    const struct collection *c = store_collection(s, w->collection, false);
    size_t at;
    return c && store_find(c, w->key, &at) ? c->objects.p[at] : NULL;
}

static int check(const struct apiserver_write *w, const struct apiserver_object *now, struct err *e)
{
    if (w->change == APISERVER_CREATED)
        return now ? err_set(e, ERR_ALREADY_EXISTS, "AlreadyExists", "%s \"%s\" already exists",
                             w->collection, w->key)
                   : 0;
    if (!now)
        return err_set(e, ERR_NOT_FOUND, "NotFound", "%s \"%s\" not found", w->collection, w->key);
    if (w->expected && w->expected != now->revision)
        return err_set(e, ERR_ABORTED, "Conflict",
                       "%s \"%s\" has changed: it is at revision %" PRIu64 ", not %" PRIu64
                       "; read it again and repeat the change",
                       w->collection, w->key, now->revision, w->expected);
    return 0;
}

static int run(struct apiserver_store *s, sqlite3_stmt *statement, struct err *e)
{
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result == SQLITE_DONE ? 0 : store_sql_error(s, "cannot write the change", e);
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

static int write_one(struct apiserver_store *s, enum apiserver_change change,
                     const struct apiserver_object *o, struct err *e)
{
    sqlite3_stmt *statement = change == APISERVER_DELETED ? s->sql.drop : s->sql.put;
    _cleanup_(str_done) struct str sealed = {0};
    struct store_bytes bytes;
    if (store_seal(s, o, &sealed, &bytes, e) < 0)
        return -1;
    bind_text(statement, 1, o->collection);
    bind_text(statement, 2, o->key);
    if (change != APISERVER_DELETED) {
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)o->revision);
        sqlite3_bind_blob64(statement, 4, bytes.p, bytes.size, SQLITE_STATIC);
    }
    if (run(s, statement, e) < 0)
        return -1;
    sqlite3_bind_int64(s->sql.log, 1, (sqlite3_int64)o->revision);
    sqlite3_bind_int(s->sql.log, 2, (int)change);
    bind_text(s->sql.log, 3, o->collection);
    bind_text(s->sql.log, 4, o->key);
    sqlite3_bind_blob64(s->sql.log, 5, bytes.p, bytes.size, SQLITE_STATIC);
    return run(s, s->sql.log, e);
}

/* Drops what is too old from disk, a tenth of the history at a time. */
static int prune(struct apiserver_store *s, uint64_t revision, struct err *e)
{
    if (revision < s->pruned + s->capacity + s->capacity / 10)
        return 0;
    sqlite3_bind_int64(s->sql.prune, 1, (sqlite3_int64)(revision - s->capacity));
    if (run(s, s->sql.prune, e) < 0)
        return -1;
    s->pruned = revision - s->capacity;
    return 0;
}

static int execute(struct apiserver_store *s, const char *sql, struct err *e)
{
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return store_sql_error(s, "cannot write the change", e);
}

/* All good changes of the group in one transaction. */
static int write_group(struct apiserver_store *s, struct write_op *const *group, size_t n,
                       struct err *e)
{
    uint64_t last = s->revision, pruned = s->pruned;
    if (execute(s, "BEGIN IMMEDIATE", e) < 0)
        return -1;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        if (group[i]->object) {
            status = write_one(s, group[i]->w->change, group[i]->object, e);
            last = group[i]->object->revision;
        }
    }
    if (status == 0)
        status = prune(s, last, e);
    if (status == 0)
        status = execute(s, "COMMIT", e);
    if (status < 0) {
        s->pruned = pruned;
        if (!sqlite3_get_autocommit(s->db))
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* The name that lives as long as the store. Only a new collection needs the lock. */
static const char *collection_name(struct apiserver_store *s, const char *name)
{
    struct collection *c = store_collection(s, name, false);
    if (!c) {
        pthread_rwlock_wrlock(&s->memory);
        c = store_collection(s, name, true);
        pthread_rwlock_unlock(&s->memory);
    }
    return c->name;
}

static void decide(struct apiserver_store *s, struct write_op **group, size_t n)
{
    uint64_t revision = s->revision;
    for (size_t i = 0; i < n; i++) {
        const struct apiserver_write *w = group[i]->w;
        group[i]->status = check(w, current(s, group, i, w), &group[i]->err);
        if (group[i]->status == 0)
            group[i]->object =
                apiserver_object_new(collection_name(s, w->collection), w->key, ++revision, w->head,
                                     w->head_size, w->tail, w->tail_size);
    }
}

static void publish(struct apiserver_store *s, struct write_op *const *group, size_t n)
{
    pthread_rwlock_wrlock(&s->memory);
    for (size_t i = 0; i < n; i++) {
        if (group[i]->object) /* one reference for the writer, one for the history */
            store_publish(s, group[i]->w->change, apiserver_object_ref(group[i]->object));
    }
    uint64_t revision = s->revision;
    pthread_rwlock_unlock(&s->memory);
    if (s->on_change)
        s->on_change(s->on_change_context, revision);
}

static void commit_group(struct apiserver_store *s, struct write_op **group, size_t n)
{
    decide(s, group, n);
    size_t good = 0;
    for (size_t i = 0; i < n; i++)
        good += group[i]->object != NULL;
    if (!good)
        return;
    struct err e = {0};
    int64_t start = clock_mono_ns(clock_system());
    int status = write_group(s, group, n, &e);
    if (s->on_commit)
        s->on_commit(s->on_commit_context, good, clock_mono_ns(clock_system()) - start,
                     status < 0 ? &e : NULL);
    if (status == 0) {
        publish(s, group, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!group[i]->object)
            continue;
        apiserver_object_unref(group[i]->object);
        group[i]->object = NULL;
        group[i]->status = -1;
        group[i]->err = e;
    }
}

/* Takes what is waiting off the queue; the queue is locked. */
static size_t take_group(struct apiserver_store *s, struct write_op **group)
{
    size_t n = 0;
    while (s->waiting && n < GROUP_MAX) {
        group[n++] = s->waiting;
        s->waiting = s->waiting->next;
    }
    if (!s->waiting)
        s->waiting_end = &s->waiting;
    return n;
}

int apiserver_store_write(struct apiserver_store *s, const struct apiserver_write *w,
                          struct apiserver_object **ret_object, struct err *e)
{
    struct write_op op = {.w = w};
    pthread_mutex_lock(&s->queue);
    *s->waiting_end = &op;
    /* cppcheck-suppress autoVariables ; it is off the queue before this returns */
    s->waiting_end = &op.next;
    while (!op.done && s->leading)
        pthread_cond_wait(&s->turn, &s->queue);
    if (!op.done) {
        struct write_op *group[GROUP_MAX];
        s->leading = true;
        while (!op.done) {
            size_t n = take_group(s, group);
            pthread_mutex_unlock(&s->queue);
            commit_group(s, group, n);
            pthread_mutex_lock(&s->queue);
            for (size_t i = 0; i < n; i++)
                group[i]->done = true;
        }
        s->leading = false;
        pthread_cond_broadcast(&s->turn);
    }
    pthread_mutex_unlock(&s->queue);

    if (op.status < 0 && e)
        *e = op.err;
    if (op.object && ret_object)
        *ret_object = op.object;
    else
        apiserver_object_unref(op.object);
    return op.status;
}

void apiserver_store_on_change(struct apiserver_store *s, void (*fn)(void *, uint64_t revision),
                               void *context)
{
    pthread_mutex_lock(&s->queue);
    s->on_change = fn;
    s->on_change_context = context;
    pthread_mutex_unlock(&s->queue);
}

void apiserver_store_on_commit(struct apiserver_store *s,
                               void (*fn)(void *, size_t changes, int64_t ns,
                                          const struct err *error),
                               void *context)
{
    pthread_mutex_lock(&s->queue);
    s->on_commit = fn;
    s->on_commit_context = context;
    pthread_mutex_unlock(&s->queue);
}

int apiserver_store_probe(struct apiserver_store *s, struct err *e)
{
    pthread_mutex_lock(&s->queue);
    while (s->leading)
        pthread_cond_wait(&s->turn, &s->queue);
    s->leading = true;
    pthread_mutex_unlock(&s->queue);
    int status = execute(s,
                         "INSERT OR REPLACE INTO facts VALUES ('probe', "
                         "1 + coalesce((SELECT value FROM facts WHERE name = 'probe'), 0))",
                         e);
    pthread_mutex_lock(&s->queue);
    s->leading = false;
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->queue);
    return status;
}

int apiserver_store_relax(struct apiserver_store *s, struct err *e)
{
    return execute(s, "PRAGMA synchronous = NORMAL", e);
}

/* A checkpoint begins with making the journal durable; what it then does to the file is no harm. */
int apiserver_store_settle(struct apiserver_store *s, struct err *e)
{
    return execute(s, "PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(PASSIVE)", e);
}
