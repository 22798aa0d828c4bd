/*
 * Encryption at rest: sealed bytes, the key file, and the store that uses both.
 */
#include <sqlite3.h>
#include <sys/stat.h>

#include "k8s/apiserver/seal.h"
#include "k8s/apiserver/store.h"
#include "scratch.h"

static const char secret[] = "the-plain-text-of-a-secret";

static char *path_of(const char *name)
{
    return mem_printf("%s/%s", folder, name);
}

static void write_keys(const char *text)
{
    _cleanup_free_ char *path = path_of("keys");
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static struct apiserver_keys *load(void)
{
    _cleanup_free_ char *path = path_of("keys");
    struct apiserver_keys *k = NULL;
    struct err e = {0};
    if (apiserver_keys_load(path, &k, &e) < 0)
        fail_msg("%s", e.msg);
    return k;
}

#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n"
#define KEY_B "ff112233445566778899aabbccddeeff00112233445566778899aabbccddee00\n"

static void test_round_trip(void **state)
{
    (void)state;
    write_keys(KEY_A);
    struct apiserver_keys *k = load();
    struct str as = {.p = (char *)"name", .len = 4}, other = {.p = (char *)"game", .len = 4};
    for (size_t size = 0; size < 200; size += 13) {
        _cleanup_(str_done) struct str one = {0}, two = {0};
        char plain[200], back[200];
        memset(plain, 'p', sizeof(plain));
        assert_int_equal(apiserver_seal(k, &as, plain, size, &one, NULL), 0);
        assert_int_equal(apiserver_seal(k, &as, plain, size, &two, NULL), 0);
        assert_int_equal(one.len, size + apiserver_seal_overhead());
        assert_memory_not_equal(one.p, two.p, one.len); /* another nonce */
        assert_true(apiserver_is_sealed(one.p, one.len));
        assert_int_equal(apiserver_unseal(k, &as, one.p, one.len, back, NULL), 0);
        assert_memory_equal(plain, back, size);
        struct err e = {0};
        assert_int_equal(apiserver_unseal(k, &other, one.p, one.len, back, &e), -1);
        assert_int_equal(e.code, ERR_DATA_LOSS);
        for (size_t i = 0; i < one.len; i++) { /* every byte counts */
            one.p[i] ^= 1;
            assert_int_equal(apiserver_is_sealed(one.p, one.len), i > 0);
            if (i > 0)
                assert_int_equal(apiserver_unseal(k, &as, one.p, one.len, back, NULL), -1);
            one.p[i] ^= 1;
        }
    }
    apiserver_keys_free(k);
}

static void test_several_keys(void **state)
{
    (void)state;
    struct str as = {.p = (char *)"x", .len = 1};
    _cleanup_(str_done) struct str sealed = {0};
    char back[8];
    write_keys(KEY_A);
    struct apiserver_keys *k = load();
    assert_int_equal(apiserver_seal(k, &as, "12345678", 8, &sealed, NULL), 0);
    assert_true(apiserver_is_current(k, sealed.p, sealed.len));
    apiserver_keys_free(k);

    write_keys("# new\n" KEY_B "\n# old\n" KEY_A);
    k = load();
    assert_int_equal(apiserver_keys_count(k), 2);
    assert_false(apiserver_is_current(k, sealed.p, sealed.len));
    assert_int_equal(apiserver_unseal(k, &as, sealed.p, sealed.len, back, NULL), 0);
    apiserver_keys_free(k);

    write_keys(KEY_B);
    k = load();
    struct err e = {0};
    assert_int_equal(apiserver_unseal(k, &as, sealed.p, sealed.len, back, &e), -1);
    assert_string_equal(e.reason, "KeyMissing");
    apiserver_keys_free(k);
}

static void test_key_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "no key in it"},
        {"# only this\n\n", "no key in it"},
        {"0011\n", "line 1: this is no key"},
        {KEY_A "zz112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", "line 2"},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0\n", "line 1"},
    };
    _cleanup_free_ char *path = path_of("keys");
    struct apiserver_keys *k = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        write_keys(bad[i].text);
        assert_int_equal(apiserver_keys_load(path, &k, &e), -1);
        if (!strstr(e.msg, bad[i].message) || !strstr(e.msg, path))
            fail_msg("%s", e.msg);
        assert_null(strstr(e.msg, "zz1122")); /* keys are not shown, not even bad ones */
    }
    struct err e = {0};
    write_keys(KEY_A);
    chmod(path, 0640);
    assert_int_equal(apiserver_keys_load(path, &k, &e), -1);
    assert_string_equal(e.reason, "KeyFileMode");
    unlink(path);
    assert_int_equal(apiserver_keys_load(path, &k, &e), 0);
    assert_int_equal(apiserver_keys_count(k), 0);
    apiserver_keys_free(k);
    assert_int_equal(apiserver_keys_create(path, &k, &e), 0);
    assert_int_equal(apiserver_keys_count(k), 1);
    apiserver_keys_free(k);
    struct stat st;
    stat(path, &st);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* The store. */

static int try_open(bool keys, struct apiserver_store **ret_store, struct err *e)
{
    static const char *const sealed[] = {"/secrets", NULL};
    _cleanup_free_ char *path = path_of("db"), *file = path_of("keys");
    struct apiserver_store_options o = {.key_file = keys ? file : NULL, .sealed = sealed};
    return apiserver_store_open(path, &o, ret_store, e);
}

static struct apiserver_store *open_store(bool keys)
{
    struct apiserver_store *s = NULL;
    struct err e = {0};
    if (try_open(keys, &s, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static void put(struct apiserver_store *s, enum apiserver_change change, const char *collection,
                const char *key, const char *text)
{
    _cleanup_free_ char *tail = mem_printf(",\"v\":\"%s\"}", text);
    struct apiserver_write w = {change, collection, key, 0, "{\"rv\":", tail, 6, strlen(tail)};
    struct err e = {0};
    if (apiserver_store_write(s, &w, NULL, &e) < 0)
        fail_msg("%s", e.msg);
}

static void assert_stored(struct apiserver_store *s, const char *collection, const char *key,
                          const char *text)
{
    struct apiserver_object *o = apiserver_store_get(s, collection, key);
    assert_non_null(o);
    if (!strstr(o->bytes, text))
        fail_msg("%s instead of %s", o->bytes, text);
    apiserver_object_unref(o);
}

/* Whether a text is in any file of the store. */
static bool on_disk(const char *text)
{
    static const char *const names[] = {"db", "db-wal", "db-shm", "backup"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        _cleanup_free_ char *path = path_of(names[i]);
        _cleanup_(str_done) struct str bytes = {0};
        if (access(path, F_OK) == 0 && file_read(path, 64 << 20, &bytes, NULL) == 0 && bytes.len)
            found |= memmem(bytes.p, bytes.len, text, strlen(text)) != NULL;
    }
    return found;
}

static void test_nothing_on_disk(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(true);
    put(s, APISERVER_CREATED, "/secrets", "ns/a", secret);
    put(s, APISERVER_UPDATED, "/secrets", "ns/a", secret);
    put(s, APISERVER_CREATED, "/secrets", "ns/b", secret);
    put(s, APISERVER_DELETED, "/secrets", "ns/b", secret);
    put(s, APISERVER_CREATED, "/configmaps", "ns/c", "this-is-public");
    assert_stored(s, "/secrets", "ns/a", secret);
    _cleanup_free_ char *backup = path_of("backup");
    assert_int_equal(apiserver_store_backup(s, backup, NULL), 0);
    assert_true(on_disk("this-is-public")); /* the test can see what is there */
    assert_false(on_disk(secret));
    apiserver_store_close(s);
    assert_false(on_disk(secret));

    s = open_store(true); /* current objects and history come back as they were */
    assert_stored(s, "/secrets", "ns/a", secret);
    struct apiserver_events events;
    assert_int_equal(apiserver_store_events(s, "/secrets", 0, 0, &events, NULL), 0);
    assert_int_equal(events.events.len, 4);
    vec_for_each(&events.events, event)
        assert_non_null(strstr(event->object->bytes, secret));
    apiserver_events_done(&events);
    apiserver_store_close(s);
}

static void test_older_store(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(false);
    put(s, APISERVER_CREATED, "/secrets", "ns/a", secret);
    put(s, APISERVER_UPDATED, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
    assert_true(on_disk(secret));
    s = open_store(true);
    assert_stored(s, "/secrets", "ns/a", secret);
    assert_false(on_disk(secret));
    apiserver_store_close(s);
    assert_false(on_disk(secret));
    s = open_store(true);
    assert_stored(s, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
}

static void test_rotation(void **state)
{
    (void)state;
    write_keys(KEY_A);
    struct apiserver_store *s = open_store(true);
    put(s, APISERVER_CREATED, "/secrets", "ns/a", secret);
    put(s, APISERVER_UPDATED, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
    write_keys(KEY_B KEY_A);
    s = open_store(true);
    put(s, APISERVER_CREATED, "/secrets", "ns/b", secret);
    apiserver_store_close(s);
    write_keys(KEY_B); /* nothing needs the old one any more */
    s = open_store(true);
    assert_stored(s, "/secrets", "ns/a", secret);
    assert_stored(s, "/secrets", "ns/b", secret);
    assert_int_equal(apiserver_store_revision(s), 3);
    apiserver_store_close(s);
    assert_false(on_disk(secret));
}

static void test_wrong_keys(void **state)
{
    (void)state;
    write_keys(KEY_A);
    struct apiserver_store *s = open_store(true);
    put(s, APISERVER_CREATED, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
    _cleanup_free_ char *keys = path_of("keys");
    struct err e = {0};

    write_keys(KEY_B);
    assert_int_equal(try_open(true, &s, &e), -1);
    assert_string_equal(e.reason, "KeyMissing");
    assert_non_null(strstr(e.msg, keys));

    unlink(keys); /* no new key is made: that would look as if all were well */
    assert_int_equal(try_open(true, &s, &e), -1);
    assert_string_equal(e.reason, "KeyMissing");
    assert_int_equal(access(keys, F_OK), -1);

    assert_int_equal(try_open(false, &s, &e), -1);
    assert_string_equal(e.reason, "KeyMissing");

    write_keys(KEY_A); /* nothing was lost */
    s = open_store(true);
    assert_stored(s, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
}

static void execute(const char *sql)
{
    _cleanup_free_ char *path = path_of("db");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
}

/* Who can write the file can neither swap rows, nor bring back an old one, nor change a byte. */
static void test_tampering(void **state)
{
    (void)state;
    static const char *const tricks[] = {
        "UPDATE changes SET value = (SELECT value FROM changes WHERE key = 'ns/b')"
        " WHERE key = 'ns/a' AND revision > 1",
        "UPDATE changes SET value = (SELECT value FROM changes WHERE revision = 1)"
        " WHERE key = 'ns/a' AND revision > 1",
        "UPDATE changes SET value = CAST(substr(value, 1, 30) || x'00' || substr(value, 32) AS "
        "BLOB)"
        " WHERE key = 'ns/b'",
        "UPDATE changes SET value = CAST(substr(value, 1, 20) || x'00' || substr(value, 22) AS "
        "BLOB)"
        " WHERE revision = 1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(tricks); i++) {
        write_keys(KEY_A);
        struct apiserver_store *s = open_store(true);
        put(s, APISERVER_CREATED, "/secrets", "ns/a", "first");
        put(s, APISERVER_UPDATED, "/secrets", "ns/a", "other");
        put(s, APISERVER_CREATED, "/secrets", "ns/b", "third");
        apiserver_store_close(s);
        execute(tricks[i]);
        struct err e = {0};
        if (try_open(true, &s, &e) == 0)
            fail_msg("it was not noticed: %s", tricks[i]);
        assert_int_equal(e.code, ERR_DATA_LOSS);
        scratch_end(NULL);
        scratch_begin(NULL);
    }
}

static void test_restore(void **state)
{
    (void)state;
    static const char *const sealed[] = {"/secrets", NULL};
    write_keys(KEY_A);
    struct apiserver_store *s = open_store(true);
    put(s, APISERVER_CREATED, "/secrets", "ns/a", secret);
    _cleanup_free_ char *backup = path_of("backup"), *path = path_of("db"), *keys = path_of("keys");
    assert_int_equal(apiserver_store_backup(s, backup, NULL), 0);
    put(s, APISERVER_UPDATED, "/secrets", "ns/a", "lost");
    apiserver_store_close(s);
    struct apiserver_store_options o = {.key_file = keys, .sealed = sealed};
    struct err e = {0};
    write_keys(KEY_B);
    assert_int_equal(apiserver_store_restore(backup, path, &o, NULL, &e), -1);
    assert_string_equal(e.reason, "KeyMissing");
    write_keys(KEY_A);
    assert_int_equal(apiserver_store_restore(backup, path, &o, NULL, &e), 0);
    s = open_store(true);
    assert_stored(s, "/secrets", "ns/a", secret);
    apiserver_store_close(s);
    assert_false(on_disk(secret));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_several_keys, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_key_files, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_nothing_on_disk, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_older_store, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_rotation, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_wrong_keys, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_tampering, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(test_restore, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
