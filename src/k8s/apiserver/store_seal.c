/*
 * Encryption at rest: the bytes of collections that are to be sealed are so on disk, and
 * plain in memory. They are sealed as collection, key and revision, so no row can take the place of
 * another, nor an old one that of a newer.
 *
 * A key is made when the store is first opened with a file for it. Rows that are plain, because they
 * are older than that, or sealed with an old key are sealed anew when the store is opened.
 */
#include <inttypes.h>

#include "base/str.h"
#include "k8s/apiserver/seal.h"
#include "k8s/apiserver/store_impl.h"

static bool is_secret(const struct apiserver_store *s, const char *collection)
{
    return s->keys && s->sealed && str_in(collection, s->sealed);
}

static void append_identity(const char *collection, const char *key, uint64_t revision,
                            struct str *as)
{
    str_append_n(as, collection, strlen(collection) + 1);
    str_append_n(as, key, strlen(key) + 1);
    str_appendf(as, "%" PRIu64, revision);
}

int store_seal(struct apiserver_store *s, const struct apiserver_object *o, struct str *buffer,
               struct store_bytes *ret_bytes, struct err *e)
{
    *ret_bytes = (struct store_bytes){o->bytes, o->size};
    if (!is_secret(s, o->collection))
        return 0;
    _cleanup_(str_done) struct str as = {0};
    append_identity(o->collection, o->key, o->revision, &as);
    if (apiserver_seal(s->keys, &as, o->bytes, o->size, buffer, e) < 0)
        return -1;
    *ret_bytes = (struct store_bytes){buffer->p, buffer->len};
    return 0;
}

size_t store_plain_size(struct store_bytes stored)
{
    return apiserver_is_sealed(stored.p, stored.size) ? stored.size - apiserver_seal_overhead()
                                                      : stored.size;
}

int store_unseal(struct apiserver_store *s, const char *collection, const char *key,
                 uint64_t revision, struct store_bytes stored, char *out, struct err *e)
{
    bool sealed = apiserver_is_sealed(stored.p, stored.size);
    if (is_secret(s, collection) && !apiserver_is_current(s->keys, stored.p, stored.size))
        s->stale = true;
    if (!sealed) {
        if (stored.size)
            memcpy(out, stored.p, stored.size);
        return 0;
    }
    if (!s->keys)
        return err_set(e, ERR_FAILED_PRECONDITION, "KeyMissing",
                       "%s \"%s\" is encrypted: open the store with its key file", collection, key);
    _cleanup_(str_done) struct str as = {0};
    append_identity(collection, key, revision, &as);
    if (apiserver_unseal(s->keys, &as, stored.p, stored.size, out, e) == 0)
        return 0;
    if (e && e->code == ERR_FAILED_PRECONDITION)
        return err_prefix(
            e,
            "cannot read %s \"%s\" (put the file that has the key back at %s; nothing "
            "was changed)",
            collection, key, s->key_file);
    return err_prefix(e, "%s \"%s\" is damaged; restore the store from a backup", collection, key);
}

/* A row: collection, key, revision, value; `update` takes value and revision. */
static int reseal_row(struct apiserver_store *s, sqlite3_stmt *row, sqlite3_stmt *update,
                      struct err *e)
{
    const char *collection = (const char *)sqlite3_column_text(row, 0);
    const char *key = (const char *)sqlite3_column_text(row, 1);
    uint64_t revision = (uint64_t)sqlite3_column_int64(row, 2);
    struct store_bytes stored = {sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3)};
    if (apiserver_is_current(s->keys, stored.p, stored.size))
        return 0;
    _cleanup_(str_done) struct str as = {0}, sealed = {0};
    size_t size = store_plain_size(stored);
    _cleanup_free_ char *plain = mem_zalloc(size + 1);
    append_identity(collection, key, revision, &as);
    if (store_unseal(s, collection, key, revision, stored, plain, e) < 0 ||
        apiserver_seal(s->keys, &as, plain, size, &sealed, e) < 0)
        return -1;
    explicit_bzero(plain, size);
    sqlite3_bind_blob64(update, 1, sealed.p, sealed.len, SQLITE_STATIC);
    sqlite3_bind_int64(update, 2, (sqlite3_int64)revision);
    int result = sqlite3_step(update);
    sqlite3_reset(update);
    sqlite3_clear_bindings(update);
    return result == SQLITE_DONE ? 0 : store_sql_error(s, "cannot encrypt the store anew", e);
}

static int reseal_collection(struct apiserver_store *s, const char *collection, struct err *e)
{
    static const char select[] =
        "SELECT collection, key, revision, value FROM changes WHERE collection = ?";
    static const char write[] = "UPDATE changes SET value = ? WHERE revision = ?";
    sqlite3_stmt *rows = NULL, *update = NULL;
    int status = 0, result = SQLITE_ROW;
    if (sqlite3_prepare_v2(s->db, select, -1, &rows, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, write, -1, &update, NULL) != SQLITE_OK) {
        status = store_sql_error(s, "cannot encrypt the store anew", e);
    } else {
        sqlite3_bind_text(rows, 1, collection, -1, SQLITE_STATIC);
        while (status == 0 && (result = sqlite3_step(rows)) == SQLITE_ROW)
            status = reseal_row(s, rows, update, e);
        if (status == 0 && result != SQLITE_DONE)
            status = store_sql_error(s, "cannot encrypt the store anew", e);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(update);
    return status;
}

static int execute(struct apiserver_store *s, const char *sql, struct err *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : store_sql_error(s, "cannot encrypt the store anew", e);
}

/* In one transaction; then what the old rows left behind in the file and its journal is wiped. */
static int reseal(struct apiserver_store *s, struct err *e)
{
    if (execute(s, "PRAGMA secure_delete = ON; BEGIN IMMEDIATE", e) < 0)
        return -1;
    int status = 0;
    for (const char *const *c = s->sealed; *c && status == 0; c++)
        status = reseal_collection(s, *c, e);
    if (status == 0)
        status = execute(s, "COMMIT", e);
    if (status < 0) {
        if (!sqlite3_get_autocommit(s->db))
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return execute(s, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA secure_delete = OFF", e);
}

int store_seal_load(struct apiserver_store *s, const struct apiserver_store_options *options,
                    struct err *e)
{
    if (!options || !options->key_file)
        return 0;
    s->sealed = options->sealed;
    s->key_file = mem_strdup(options->key_file);
    return apiserver_keys_load(s->key_file, &s->keys, e);
}

int store_seal_begin(struct apiserver_store *s, struct err *e)
{
    if (!s->keys)
        return 0;
    if (!apiserver_keys_count(s->keys)) { /* and nothing is sealed, or loading had failed */
        apiserver_keys_free(s->keys);
        s->keys = NULL;
        if (apiserver_keys_create(s->key_file, &s->keys, e) < 0)
            return -1;
    }
    return s->stale ? reseal(s, e) : 0;
}

void store_seal_done(struct apiserver_store *s)
{
    apiserver_keys_free(s->keys);
    free(s->key_file);
}
