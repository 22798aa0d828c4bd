/*
 * Group commit.
 *
 * A writer's change is decided against memory, gets its revision, goes into the queue, and the writer
 * waits: a thread, or a fiber, so that its thread serves others meanwhile. The committer takes all
 * that is waiting, writes it in one transaction, and when that is on disk makes it visible in order
 * and wakes the writers. Whatever came meanwhile is the next group. So one sync carries many changes.
 *
 *     check, revision ──> queue ──> committer: transaction, sync ──> memory ──> writers
 *     └──────── pending: one change of a key at a time ─────────────────┘
 *
 * Revisions are given out in the order of the queue, and a key with a change under way waits for
 * it: so what was decided against memory still holds when it is written. If a transaction fails,
 * everything that is pending fails with it and the revisions are given out again.
 *
 * Locks, outermost first: queue, memory. The committer alone uses the database and publishes.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/str.h"
#include "k8s/apiserver/store_impl.h"

enum { GROUP_MAX = 1000, FORGET_MAX = 200 };

/* A change, on its writer's stack. */
struct write_op {
    struct write_op *next;
    enum apiserver_change change;
    struct apiserver_object *object; /* what it becomes, or was last */
    const char *id;                  /* in `pending` */
    struct park over;
    bool failed;
    struct err err;
};

/* A writer that waits until a key is free, on its stack. */
struct write_wait {
    struct write_wait *next;
    struct park park;
};

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
    _cleanup_(str_done) struct str sealed = {0};
    struct store_bytes bytes;
    if (store_seal(s, o, &sealed, &bytes, e) < 0)
        return -1;
    sqlite3_bind_int64(s->sql.log, 1, (sqlite3_int64)o->revision);
    sqlite3_bind_int(s->sql.log, 2, (int)change);
    bind_text(s->sql.log, 3, o->collection);
    bind_text(s->sql.log, 4, o->key);
    sqlite3_bind_blob64(s->sql.log, 5, bytes.p, bytes.size, SQLITE_STATIC);
    return run(s, s->sql.log, e);
}

/*
 * Drops some of what nothing needs any more from disk, once it is worth the trouble; how much is in
 * *ret_dropped. Those rows are of changes before the horizon, which must be on disk with it.
 */
static int forget(struct apiserver_store *s, size_t *ret_dropped, struct err *e)
{
    *ret_dropped = 0;
    if (s->obsolete.len <= s->capacity / 10)
        return 0;
    size_t keep = s->obsolete.len > FORGET_MAX ? s->obsolete.len - FORGET_MAX : 0;
    for (size_t i = keep; i < s->obsolete.len; i++) {
        sqlite3_bind_int64(s->sql.forget, 1, (sqlite3_int64)s->obsolete.p[i]);
        if (run(s, s->sql.forget, e) < 0)
            return -1;
    }
    char horizon[24];
    snprintf(horizon, sizeof(horizon), "%" PRIu64, store_horizon(s));
    bind_text(s->sql.horizon, 1, horizon);
    *ret_dropped = s->obsolete.len - keep;
    return run(s, s->sql.horizon, e);
}

/* All changes of the group in one transaction. */
static int write_group(struct apiserver_store *s, const struct write_op *group, struct err *e)
{
    size_t dropped = 0;
    int status = run(s, s->sql.begin, e);
    if (status < 0)
        return -1;
    for (const struct write_op *op = group; op && status == 0; op = op->next)
        status = write_one(s, op->change, op->object, e);
    if (status == 0)
        status = forget(s, &dropped, e);
    if (status == 0)
        status = run(s, s->sql.commit, e);
    if (status == 0)
        s->obsolete.len -= dropped;
    else if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static void publish(struct apiserver_store *s, const struct write_op *group)
{
    struct apiserver_object *objects[GROUP_MAX];
    size_t n = 0;
    pthread_rwlock_wrlock(&s->memory);
    for (const struct write_op *op = group; op; op = op->next) {
        objects[n++] = op->object;
        store_publish(s, op->change, apiserver_object_ref(op->object));
    }
    pthread_rwlock_unlock(&s->memory);
    if (s->on_change)
        s->on_change(s->on_change_context, objects, n);
}

/* The first of what is waiting, off the queue, which is locked. */
static struct write_op *take_group(struct apiserver_store *s)
{
    struct write_op *group = s->waiting, **end = &s->waiting;
    for (size_t n = 0; n < GROUP_MAX && *end; n++)
        end = &(*end)->next;
    s->waiting = *end;
    *end = NULL;
    if (!s->waiting)
        s->waiting_end = &s->waiting;
    return group;
}

/* The keys are free for the next change of them. The queue is locked. */
static void release(struct apiserver_store *s, const struct write_op *group)
{
    for (const struct write_op *op = group; op; op = op->next)
        map_remove(&s->pending, op->id);
    struct write_wait *blocked = s->blocked;
    s->blocked = NULL;
    while (blocked) {
        struct write_wait *wait = blocked;
        blocked = wait->next;
        park_wake(&wait->park);
    }
}

static void finish(struct write_op *group, const struct err *failure)
{
    for (struct write_op *op = group, *next; op; op = next) {
        next = op->next;
        op->failed = failure;
        if (failure)
            op->err = *failure;
        park_wake(&op->over); /* from here on it may be gone */
    }
}

static int commit_group(struct apiserver_store *s, const struct write_op *group, struct err *e)
{
    size_t n = 0;
    for (const struct write_op *op = group; op; op = op->next)
        n++;
    int64_t start = clock_mono_ns(clock_system());
    pthread_mutex_lock(&s->database);
    int status = write_group(s, group, e);
    pthread_mutex_unlock(&s->database);
    if (s->on_commit)
        s->on_commit(s->on_commit_context, n, clock_mono_ns(clock_system()) - start,
                     status < 0 ? e : NULL);
    if (status == 0)
        publish(s, group);
    return status;
}

/* Commits what is waiting. The queue is locked. */
static void commit_waiting(struct apiserver_store *s)
{
    struct write_op *group = take_group(s), *failed = NULL;
    struct err e = {0};
    pthread_mutex_unlock(&s->queue);
    int status = commit_group(s, group, &e);
    pthread_mutex_lock(&s->queue);
    if (status < 0) { /* what came meanwhile counts on this */
        failed = s->waiting;
        s->waiting = NULL;
        s->waiting_end = &s->waiting;
        s->assigned = s->revision;
    }
    release(s, group);
    release(s, failed);
    pthread_mutex_unlock(&s->queue);
    finish(group, status < 0 ? &e : NULL);
    finish(failed, &e);
    pthread_mutex_lock(&s->queue);
}

static void *commit(void *context)
{
    struct apiserver_store *s = context;
    pthread_mutex_lock(&s->queue);
    while (s->waiting || !s->stopping) {
        if (s->waiting) {
            commit_waiting(s);
            continue;
        }
        s->idle = true;
        pthread_cond_wait(&s->work, &s->queue);
    }
    pthread_mutex_unlock(&s->queue);
    return NULL;
}

int store_commit_start(struct apiserver_store *s, struct err *e)
{
    sigset_t all, was;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int errnum = pthread_create(&s->committer, NULL, commit, s);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    s->started = !errnum;
    return errnum ? err_errno(e, errnum, "cannot start a thread for the store") : 0;
}

void store_commit_stop(struct apiserver_store *s)
{
    if (!s->started)
        return;
    pthread_mutex_lock(&s->queue);
    s->stopping = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->queue);
    pthread_join(s->committer, NULL);
}

/* Decides against memory; the name that lives as long as the store goes to *ret_collection. */
static int decide(struct apiserver_store *s, const struct apiserver_write *w,
                  const char **ret_collection, struct err *e)
{
    pthread_rwlock_rdlock(&s->memory);
    const struct collection *c = store_collection(s, w->collection, false);
    size_t at;
    int status = check(w, c && store_find(c, w->key, &at) ? c->objects.p[at] : NULL, e);
    pthread_rwlock_unlock(&s->memory);
    if (!c && status == 0) {
        pthread_rwlock_wrlock(&s->memory);
        c = store_collection(s, w->collection, true);
        pthread_rwlock_unlock(&s->memory);
    }
    if (status == 0)
        *ret_collection = c->name;
    return status;
}

/* Puts the change into the queue, which is locked. */
static void enqueue(struct apiserver_store *s, struct write_op *op)
{
    map_set(&s->pending, op->id, op);
    *s->waiting_end = op;
    s->waiting_end = &op->next;
    if (s->idle)
        pthread_cond_signal(&s->work);
    s->idle = false;
}

/* Waits until no change of the key is under way. The queue is locked, but not meanwhile. */
static void await_key(struct apiserver_store *s, const char *id)
{
    while (map_has(&s->pending, id)) {
        struct write_wait wait = {.next = s->blocked};
        park_init(&wait.park);
        /* cppcheck-suppress autoVariables ; it is off the list before this returns */
        s->blocked = &wait;
        pthread_mutex_unlock(&s->queue);
        park_wait(&wait.park);
        pthread_mutex_lock(&s->queue);
    }
}

int apiserver_store_write(struct apiserver_store *s, const struct apiserver_write *w,
                          struct apiserver_object **ret_object, struct err *e)
{
    _cleanup_free_ char *id = mem_printf("%s %s", w->collection, w->key);
    struct write_op op = {.change = w->change, .id = id};
    const char *collection = NULL;
    pthread_mutex_lock(&s->queue);
    await_key(s, id);
    if (decide(s, w, &collection, e) < 0) {
        pthread_mutex_unlock(&s->queue);
        return -1;
    }
    op.object = apiserver_object_new(collection, w->key, ++s->assigned, w->head, w->head_size,
                                     w->tail, w->tail_size);
    park_init(&op.over);
    /* cppcheck-suppress autoVariables ; it is off the queue before this returns */
    enqueue(s, &op);
    pthread_mutex_unlock(&s->queue);
    park_wait(&op.over);
    if (op.failed && e)
        *e = op.err;
    if (!op.failed && ret_object)
        *ret_object = TAKE_PTR(op.object);
    apiserver_object_unref(op.object);
    return op.failed ? -1 : 0;
}

void apiserver_store_on_change(struct apiserver_store *s,
                               void (*fn)(void *, struct apiserver_object *const *objects,
                                          size_t n),
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

static int execute(struct apiserver_store *s, const char *sql, struct err *e)
{
    pthread_mutex_lock(&s->database);
    int status = sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
                     ? 0
                     : store_sql_error(s, "cannot write the change", e);
    pthread_mutex_unlock(&s->database);
    return status;
}

int apiserver_store_probe(struct apiserver_store *s, struct err *e)
{
    return execute(s,
                   "INSERT OR REPLACE INTO facts VALUES ('probe', "
                   "1 + coalesce((SELECT value FROM facts WHERE name = 'probe'), 0))",
                   e);
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
