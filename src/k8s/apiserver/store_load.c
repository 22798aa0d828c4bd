/*
 * From disk into memory. Changes are read in their order; of each key the last is its object, and
 * those behind the horizon are the history.
 */
#include <inttypes.h>

#include "base/str.h"
#include "k8s/apiserver/store_impl.h"

struct loading {
    struct apiserver_store *store;
    uint64_t horizon;
    struct map last; /* "collection key" -> the newest object so far, a reference */
};

static int read_horizon(struct apiserver_store *s, uint64_t *ret_horizon, struct err *e)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'horizon'",
                           -1, &row, NULL) != SQLITE_OK)
        return store_sql_error(s, "cannot read the facts", e);
    int status =
        sqlite3_step(row) == SQLITE_ROW ? 0 : store_sql_error(s, "cannot read the facts", e);
    if (status == 0)
        *ret_horizon = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return status;
}

/* An object as it was stored; its collection, key and value are three columns in a row. */
static struct apiserver_object *stored_object(struct apiserver_store *s, sqlite3_stmt *row,
                                              int first_column, uint64_t revision, struct err *e)
{
    const char *collection = (const char *)sqlite3_column_text(row, first_column);
    const char *key = (const char *)sqlite3_column_text(row, first_column + 1);
    struct store_bytes value = {sqlite3_column_blob(row, first_column + 2),
                                (size_t)sqlite3_column_bytes(row, first_column + 2)};
    char *bytes;
    struct apiserver_object *o =
        store_object_alloc(store_collection(s, collection ? collection : "", true)->name,
                           key ? key : "", revision, store_plain_size(value), &bytes);
    if (store_unseal(s, o->collection, o->key, revision, value, bytes, e) == 0)
        return o;
    apiserver_object_unref(o);
    return NULL;
}

static int load_change(struct loading *l, sqlite3_stmt *rows, struct err *e)
{
    struct apiserver_store *s = l->store;
    uint64_t revision = (uint64_t)sqlite3_column_int64(rows, 0);
    enum apiserver_change change = (enum apiserver_change)sqlite3_column_int(rows, 1);
    uint64_t expected = (s->count ? s->revision : l->horizon) + 1;
    if (revision > l->horizon && revision != expected)
        return err_set(e, ERR_DATA_LOSS, "Damaged",
                       "the store is damaged: after revision %" PRIu64 " comes %" PRIu64
                       "; restore it from a backup",
                       expected - 1, revision);
    struct apiserver_object *o = stored_object(s, rows, 2, revision, e);
    if (!o)
        return -1;
    bool deleted = change == APISERVER_DELETED;
    _cleanup_free_ char *id = mem_printf("%s %s", o->collection, o->key);
    struct apiserver_object *previous =
        map_set(&l->last, id, deleted ? NULL : apiserver_object_ref(o));
    s->revision = revision;
    if (revision > l->horizon) {
        store_remember(s, (struct apiserver_event){change, o, previous});
        return 0;
    }
    /* What is left of changes that were to be forgotten. */
    if (previous)
        vec_push(&s->obsolete, previous->revision);
    if (deleted)
        vec_push(&s->obsolete, revision);
    apiserver_object_unref(previous);
    apiserver_object_unref(o);
    return 0;
}

static int load_changes(struct loading *l, struct err *e)
{
    struct apiserver_store *s = l->store;
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(s->db,
                           "SELECT revision, change, collection, key, value FROM changes "
                           "ORDER BY revision",
                           -1, &rows, NULL) != SQLITE_OK)
        return store_sql_error(s, "cannot read the changes", e);
    int result = SQLITE_DONE, status = 0;
    while (status == 0 && (result = sqlite3_step(rows)) == SQLITE_ROW)
        status = load_change(l, rows, e);
    if (status == 0 && result != SQLITE_DONE)
        status = store_sql_error(s, "cannot read the changes", e);
    sqlite3_finalize(rows);
    if (s->revision < l->horizon)
        s->revision = l->horizon;
    return status;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct apiserver_object *const *)a)->key,
                  (*(struct apiserver_object *const *)b)->key);
}

int store_load(struct apiserver_store *s, struct err *e)
{
    struct loading l = {.store = s};
    int status = read_horizon(s, &l.horizon, e);
    if (status == 0)
        status = load_changes(&l, e);
    map_for_each(&l.last, it) {
        struct apiserver_object *o = it->value;
        if (o)
            vec_push(&store_collection(s, o->collection, true)->objects, o);
    }
    map_done(&l.last);
    map_for_each(&s->collections, it) {
        struct collection *c = it->value;
        if (c->objects.len)
            qsort(c->objects.p, c->objects.len, sizeof(*c->objects.p), by_key);
    }
    return status;
}
