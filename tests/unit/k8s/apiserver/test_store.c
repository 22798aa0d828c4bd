#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "k8s/apiserver/store.h"
#include "scratch.h"

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static struct apiserver_store *open_store(size_t history)
{
    struct apiserver_store *s = NULL;
    struct err e = {0};
    if (apiserver_store_open(path_of("db"), &(struct apiserver_store_options){history}, &s, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static int change(struct apiserver_store *s, enum apiserver_change what, const char *key,
                  const char *text, uint64_t expected, uint64_t *ret_revision, struct err *e)
{
    _cleanup_free_ char *tail = mem_printf(",\"v\":\"%s\"}", text);
    struct apiserver_write w = {what, "things", key, expected, "{\"rv\":", tail, 6, strlen(tail)};
    struct apiserver_object *o = NULL;
    int status = apiserver_store_write(s, &w, &o, e);
    if (status == 0 && ret_revision)
        *ret_revision = o->revision;
    apiserver_object_unref(o);
    return status;
}

static uint64_t must(struct apiserver_store *s, enum apiserver_change what, const char *key,
                     const char *text)
{
    uint64_t revision = 0;
    struct err e = {0};
    if (change(s, what, key, text, 0, &revision, &e) < 0)
        fail_msg("%s: %s", key, e.msg);
    return revision;
}

/* The list as "key=text key=text", and how many remain. */
static void assert_list(struct apiserver_store *s, struct apiserver_list_options options,
                        const char *expected)
{
    struct apiserver_list list;
    struct err e = {0};
    if (apiserver_store_list(s, "things", &options, &list, &e) < 0)
        fail_msg("%s", e.msg);
    _cleanup_(str_done) struct str got = {0};
    vec_for_each(&list.objects, o) {
        const char *text = strstr((*o)->bytes, "\"v\":\"") + 5;
        str_appendf(&got, "%s%s=%.*s", got.len ? " " : "", (*o)->key, (int)strcspn(text, "\""),
                    text);
    }
    if (list.more)
        str_appendf(&got, " +%zu", list.remaining);
    assert_string_equal(str_get(&got), expected);
    apiserver_list_done(&list);
}

static void test_changes(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    struct err e = {0};
    assert_int_equal(apiserver_store_revision(s), 0);
    assert_int_equal(must(s, APISERVER_CREATED, "a/x", "1"), 1);
    assert_int_equal(change(s, APISERVER_CREATED, "a/x", "2", 0, NULL, &e), -1);
    assert_int_equal(e.code, ERR_ALREADY_EXISTS);
    assert_int_equal(must(s, APISERVER_UPDATED, "a/x", "3"), 2);
    assert_int_equal(change(s, APISERVER_UPDATED, "a/x", "4", 1, NULL, &e), -1);
    assert_int_equal(e.code, ERR_ABORTED);
    assert_string_equal(e.reason, "Conflict");
    assert_int_equal(change(s, APISERVER_UPDATED, "a/x", "4", 2, NULL, &e), 0);
    assert_int_equal(change(s, APISERVER_UPDATED, "a/y", "4", 0, NULL, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(apiserver_store_revision(s), 3);

    struct apiserver_object *o = apiserver_store_get(s, "things", "a/x");
    assert_string_equal(o->bytes, "{\"rv\":3,\"v\":\"4\"}");
    assert_int_equal(o->revision, 3);
    assert_int_equal(change(s, APISERVER_DELETED, "a/x", "4", 2, NULL, &e), -1);
    assert_int_equal(must(s, APISERVER_DELETED, "a/x", "4"), 4);
    assert_null(apiserver_store_get(s, "things", "a/x"));
    assert_null(apiserver_store_get(s, "none", "a/x"));
    assert_string_equal(o->bytes, "{\"rv\":3,\"v\":\"4\"}"); /* whoever has it keeps it */
    apiserver_object_unref(o);
    apiserver_store_close(s);
}

static void test_lists(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    static const char *const keys[] = {"b/2", "a/1", "b/1", "ab/1", "c/9", "a/2"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        must(s, APISERVER_CREATED, keys[i], "0");
    uint64_t then = apiserver_store_revision(s);

    assert_list(s, (struct apiserver_list_options){0}, "a/1=0 a/2=0 ab/1=0 b/1=0 b/2=0 c/9=0");
    assert_list(s, (struct apiserver_list_options){.prefix = "a/"}, "a/1=0 a/2=0");
    assert_list(s, (struct apiserver_list_options){.prefix = "d/"}, "");
    assert_list(s, (struct apiserver_list_options){.limit = 2}, "a/1=0 a/2=0 +4");
    assert_list(s, (struct apiserver_list_options){.limit = 2, .after = "a/2"}, "ab/1=0 b/1=0 +2");
    assert_list(s, (struct apiserver_list_options){.after = "b/2", .prefix = "b/"}, "");

    must(s, APISERVER_DELETED, "a/1", "0");
    must(s, APISERVER_UPDATED, "b/1", "1");
    must(s, APISERVER_UPDATED, "b/1", "2");
    must(s, APISERVER_CREATED, "a/3", "0");
    must(s, APISERVER_CREATED, "a/1", "new");
    assert_list(s, (struct apiserver_list_options){.prefix = "a/"}, "a/1=new a/2=0 a/3=0");
    assert_list(s, (struct apiserver_list_options){.revision = then},
                "a/1=0 a/2=0 ab/1=0 b/1=0 b/2=0 c/9=0");
    assert_list(s, (struct apiserver_list_options){.revision = then + 2, .prefix = "b/"},
                "b/1=1 b/2=0");
    assert_list(s, (struct apiserver_list_options){.revision = then, .limit = 2, .after = "a/2"},
                "ab/1=0 b/1=0 +2");
    assert_list(s, (struct apiserver_list_options){.revision = 1}, "b/2=0");
    apiserver_store_close(s);
}

/* Events as "C key P?" for created, updated, deleted; P when the previous object is known. */
static void assert_events(struct apiserver_store *s, uint64_t after, size_t limit,
                          const char *expected)
{
    struct apiserver_events list;
    struct err e = {0};
    _cleanup_(str_done) struct str got = {0};
    if (apiserver_store_events(s, "things", after, limit, &list, &e) < 0)
        str_append(&got, e.reason);
    vec_for_each(&list.events, event)
        str_appendf(&got, "%s%c%s%s", got.len ? " " : "", "CUD"[event->change],
                    event -> object -> key, event -> previous ? "*" : "");
    assert_string_equal(str_get(&got), expected);
    apiserver_events_done(&list);
}

static void test_history(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(4);
    struct err e = {0};
    must(s, APISERVER_CREATED, "a", "0");
    must(s, APISERVER_UPDATED, "a", "1");
    must(s, APISERVER_CREATED, "b", "0");
    assert_events(s, 0, 0, "Ca Ua* Cb");
    assert_events(s, 1, 1, "Ua*");
    assert_events(s, 3, 0, "");
    must(s, APISERVER_DELETED, "a", "1");
    must(s, APISERVER_CREATED, "c", "0");
    assert_events(s, 0, 0, "Expired");
    assert_events(s, 1, 0, "Ua* Cb Da* Cc");
    struct apiserver_list list;
    assert_int_equal(apiserver_store_list(
                         s, "things", &(struct apiserver_list_options){.revision = 0}, &list, &e),
                     0);
    apiserver_list_done(&list);
    must(s, APISERVER_UPDATED, "c", "1");
    assert_int_equal(apiserver_store_list(
                         s, "things", &(struct apiserver_list_options){.revision = 1}, &list, &e),
                     -1);
    assert_string_equal(e.reason, "Expired");
    apiserver_store_close(s);

    /* the same after a restart */
    s = open_store(4);
    assert_int_equal(apiserver_store_revision(s), 6);
    assert_events(s, 1, 0, "Expired");
    assert_events(s, 2, 0, "Cb Da* Cc Uc*");
    assert_list(s, (struct apiserver_list_options){0}, "b=0 c=1");
    assert_list(s, (struct apiserver_list_options){.revision = 5}, "b=0 c=0");
    for (int i = 0; i < 50; i++)
        must(s, APISERVER_UPDATED, "b", "x");
    apiserver_store_close(s);
    s = open_store(0); /* what was pruned from disk stays gone */
    assert_int_equal(apiserver_store_revision(s), 56);
    assert_events(s, 40, 0, "Expired");
    assert_events(s, 55, 0, "Ub*");
    apiserver_store_close(s);
}

/* Objects that nobody has any more are kept up to a size; those that are current do not count. */
static void test_history_by_bytes(void **state)
{
    (void)state;
    enum { TEXT = 1000, KEPT = 10 };
    struct apiserver_store_options options = {.history_bytes = (size_t)KEPT * TEXT};
    struct apiserver_store *s = NULL;
    struct err e = {0};
    assert_int_equal(apiserver_store_open(path_of("db"), &options, &s, &e), 0);
    char text[TEXT + 1] = "";
    memset(text, 'x', TEXT);
    for (int i = 0; i < 2 * KEPT; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        must(s, APISERVER_CREATED, key, text);
    }
    struct apiserver_events events;
    assert_int_equal(apiserver_store_events(s, "things", 0, 0, &events, &e), 0);
    assert_int_equal(events.events.len, 2 * KEPT);
    apiserver_events_done(&events);
    for (int i = 0; i < 2 * KEPT; i++)
        must(s, APISERVER_UPDATED, "k1", text);
    uint64_t last = apiserver_store_revision(s);
    assert_events(s, last - KEPT - 1, 0, "Expired");
    assert_int_equal(apiserver_store_events(s, "things", last - KEPT / 2, 0, &events, &e), 0);
    assert_int_equal(events.events.len, KEPT / 2);
    apiserver_events_done(&events);
    apiserver_store_close(s);
}

static void test_one_process_only(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0), *other = NULL;
    struct err e = {0};
    assert_int_equal(apiserver_store_open(path_of("db"), NULL, &other, &e), -1);
    assert_string_equal(e.reason, "InUse");
    struct stat st;
    assert_int_equal(stat(path_of("db"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    apiserver_store_close(s);
}

static void test_damage_is_noticed(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    _cleanup_free_ char *text = mem_zalloc(3000);
    memset(text, 'x', 2999);
    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        must(s, APISERVER_CREATED, key, text);
    }
    apiserver_store_close(s);
    int fd = open(path_of("db"), O_RDWR | O_CLOEXEC);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof(garbage));
    for (int page = 1; page < 40; page++)
        assert_int_equal(pwrite(fd, garbage, sizeof(garbage), page * 4096L), 4096);
    close(fd);
    struct err e = {0};
    assert_int_equal(apiserver_store_open(path_of("db"), NULL, &s, &e), -1);
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_non_null(strstr(e.msg, "backup"));
}

static void test_backup_and_restore(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    struct err e = {0};
    _cleanup_free_ char *db = mem_strdup(path_of("db")), *backup = mem_strdup(path_of("backup"));
    must(s, APISERVER_CREATED, "a", "old");
    if (apiserver_store_backup(s, backup, &e) < 0)
        fail_msg("%s", e.msg);
    must(s, APISERVER_UPDATED, "a", "new");
    assert_int_equal(apiserver_store_restore(backup, db, NULL, NULL, &e), -1);
    assert_string_equal(e.reason, "InUse");
    apiserver_store_close(s);

    assert_int_equal(apiserver_store_restore(path_of("none"), db, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    struct str junk = {0};
    str_append(&junk, "this is no database, and long enough to be looked at");
    assert_int_equal(file_replace(path_of("junk"), junk.p, junk.len, 0600, NULL), 0);
    str_done(&junk);
    assert_int_equal(apiserver_store_restore(path_of("junk"), db, NULL, NULL, &e), -1);
    s = open_store(0);
    assert_list(s, (struct apiserver_list_options){0}, "a=new"); /* nothing has happened */
    apiserver_store_close(s);

    _cleanup_free_ char *aside = NULL;
    if (apiserver_store_restore(backup, db, NULL, &aside, &e) < 0)
        fail_msg("%s", e.msg);
    s = open_store(0);
    assert_list(s, (struct apiserver_list_options){0}, "a=old");
    /* revisions went on beyond what anybody saw, and whoever watched must list again */
    assert_int_equal(apiserver_store_revision(s), 2 + APISERVER_RESTORE_STEP);
    struct apiserver_events events;
    for (uint64_t seen = 1; seen < 4; seen++) {
        assert_int_equal(apiserver_store_events(s, "things", seen, 0, &events, &e), -1);
        assert_string_equal(e.reason, "Expired");
        apiserver_events_done(&events);
    }
    must(s, APISERVER_CREATED, "b", "later");
    apiserver_store_close(s);
    s = open_store(0); /* also after another start */
    assert_int_equal(apiserver_store_revision(s), 3 + APISERVER_RESTORE_STEP);
    assert_int_equal(
        apiserver_store_events(s, "things", 2 + APISERVER_RESTORE_STEP, 0, &events, &e), 0);
    assert_int_equal(events.events.len, 1);
    apiserver_events_done(&events);
    apiserver_store_close(s);
    assert_non_null(aside);
    assert_non_null(strstr(aside, "db.before-restore-2"));
    assert_int_equal(access(aside, F_OK), 0);

    assert_int_equal(rename(db, path_of("db.part")), 0); /* the machine stopped in the middle */
    assert_int_equal(apiserver_store_open(db, NULL, &s, &e), -1);
    assert_string_equal(e.reason, "RestoreInterrupted");
}

enum { WRITERS = 8, WRITES = 40 };

struct writer {
    pthread_t thread;
    struct apiserver_store *store;
    int number, won;
};

/* Each creates objects of its own and counts up one that all share, by compare and swap. */
static void *write_much(void *context)
{
    struct writer *w = context;
    for (int i = 0; i < WRITES; i++) {
        char key[32];
        snprintf(key, sizeof(key), "w%d/%d", w->number, i);
        if (change(w->store, APISERVER_CREATED, key, "0", 0, NULL, NULL) < 0)
            return NULL;
        for (;;) {
            struct apiserver_object *o = apiserver_store_get(w->store, "things", "shared");
            int count = atoi(strstr(o->bytes, "\"v\":\"") + 5);
            uint64_t seen = o->revision;
            apiserver_object_unref(o);
            char text[16];
            snprintf(text, sizeof(text), "%d", count + 1);
            if (change(w->store, APISERVER_UPDATED, "shared", text, seen, NULL, NULL) == 0)
                break;
        }
        w->won++;
    }
    return NULL;
}

/* Every revision once and in order. */
static void count_revisions(void *context, struct apiserver_object *const *objects, size_t n)
{
    uint64_t *last = context;
    for (size_t i = 0; i < n; i++)
        *last = objects[i]->revision == *last + 1 ? objects[i]->revision : 0;
}

static void test_many_writers(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    uint64_t heard = 0;
    apiserver_store_on_change(s, count_revisions, &heard);
    must(s, APISERVER_CREATED, "shared", "0");
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.store = s, .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_much, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].won, WRITES);
    }
    enum { ALL = 1 + 2 * WRITERS * WRITES };
    assert_int_equal(apiserver_store_revision(s), ALL);
    assert_int_equal(heard, ALL);
    struct apiserver_object *o = apiserver_store_get(s, "things", "shared");
    assert_int_equal(atoi(strstr(o->bytes, "\"v\":\"") + 5), WRITERS * WRITES);
    apiserver_object_unref(o);

    struct apiserver_events all;
    assert_int_equal(apiserver_store_events(s, "things", 0, 0, &all, NULL), 0);
    assert_int_equal(all.events.len, ALL);
    for (size_t i = 0; i < all.events.len; i++)
        assert_int_equal(all.events.p[i].object->revision, i + 1);
    apiserver_events_done(&all);
    apiserver_store_close(s);
}

/* A process that writes for ever and says on a pipe what was acknowledged. */
static _Noreturn void write_until_killed(int acknowledged)
{
    struct apiserver_store *s = open_store(0);
    for (unsigned i = 0;; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k%u", i % 50);
        uint64_t revision = 0;
        struct apiserver_object *o = apiserver_store_get(s, "things", key);
        enum apiserver_change what = o ? APISERVER_UPDATED : APISERVER_CREATED;
        apiserver_object_unref(o);
        if (change(s, what, key, "x", 0, &revision, NULL) < 0 ||
            write(acknowledged, &revision, sizeof(revision)) != sizeof(revision))
            _exit(1);
    }
}

static void test_killed_at_any_time(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (unsigned round = 0; round < 20; round++) {
        int fds[2];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid_t child = fork();
        if (child == 0)
            write_until_killed(fds[1]);
        close(fds[1]);
        uint64_t revision, last = before;
        for (unsigned i = 0; i < 5 + round * 7; i++) {
            assert_int_equal(read(fds[0], &revision, sizeof(revision)), sizeof(revision));
            assert_int_equal(revision, last + 1); /* goes on where it stopped, never back */
            last = revision;
        }
        kill(child, SIGKILL);
        while (read(fds[0], &revision, sizeof(revision)) == sizeof(revision))
            last = revision;
        close(fds[0]);
        waitpid(child, NULL, 0);

        struct apiserver_store *s = open_store(0);
        before = apiserver_store_revision(s);
        /* one change may have become durable and its acknowledgement not been sent */
        assert_in_range(before, last, last + 1);
        apiserver_store_close(s);
    }
}

/* Files may not grow: the nearest to a full disk that needs no privileges. */
static void test_disk_that_takes_no_more(void **state)
{
    (void)state;
    struct apiserver_store *s = open_store(0);
    must(s, APISERVER_CREATED, "a", "0");
    struct rlimit old, tight = {0};
    getrlimit(RLIMIT_FSIZE, &old);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct stat st;
    assert_int_equal(stat(path_of("db-wal"), &st), 0);
    tight.rlim_cur = (rlim_t)st.st_size;
    tight.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct err e = {0};
    enum { TEXT = 1 << 20, MORE_THAN_FITS = 64 };
    _cleanup_free_ char *text = mem_zalloc(TEXT);
    memset(text, 'x', TEXT - 1);
    int status = 0;
    for (int i = 0; i < MORE_THAN_FITS && status == 0; i++)
        status = change(s, APISERVER_UPDATED, "a", text, 0, NULL, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, -1);
    assert_true(e.code == ERR_UNAVAILABLE || e.code == ERR_RESOURCE_EXHAUSTED);

    uint64_t revision = apiserver_store_revision(s); /* as it was, and on it goes */
    assert_int_equal(must(s, APISERVER_UPDATED, "a", "1"), revision + 1);
    apiserver_store_close(s);
    s = open_store(0);
    assert_list(s, (struct apiserver_list_options){0}, "a=1");
    apiserver_store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_begin, scratch_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_changes),
        TEST(test_lists),
        TEST(test_history),
        TEST(test_history_by_bytes),
        TEST(test_one_process_only),
        TEST(test_damage_is_noticed),
        TEST(test_backup_and_restore),
        TEST(test_many_writers),
        TEST(test_killed_at_any_time),
        TEST(test_disk_that_takes_no_more),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
