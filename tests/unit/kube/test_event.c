/* The client is a seam here: what is written is kept, and answered as the case says. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "kube/event.h"
#include "kube/event_impl.h"
#include "unit.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned creates, patches;
    json_t *created, *patched; /* the last of each */
    char patched_name[300];
    enum err_code answer; /* of patches */
    bool hold, stopped;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* With the lock; gives it back. */
static json_t *answer(enum err_code code, struct err *e)
{
    pthread_cond_broadcast(&server.changed);
    while (server.hold && !server.stopped)
        pthread_cond_wait(&server.changed, &server.lock);
    if (server.stopped)
        code = ERR_CANCELLED;
    pthread_mutex_unlock(&server.lock);
    if (code == ERR_OK)
        return json_object();
    err_set(e, code, "Test", "as told");
    return NULL;
}

json_t *kube_create(struct kube_client *c, const struct kube_resource *r, const json_t *object,
                    const struct kube_write *w, struct err *e)
{
    (void)c, (void)w;
    assert_string_equal(r->plural, "events");
    pthread_mutex_lock(&server.lock);
    server.creates++;
    json_decref(server.created);
    server.created = json_deep_copy(object);
    return answer(ERR_OK, e);
}

json_t *kube_patch(struct kube_client *c, const struct kube_resource *r, const char *ns,
                   const char *name, enum kube_patch type, const json_t *patch,
                   const struct kube_write *w, struct err *e)
{
    (void)c, (void)r, (void)w;
    assert_string_equal(ns, "d");
    assert_int_equal(type, KUBE_MERGE_PATCH);
    pthread_mutex_lock(&server.lock);
    server.patches++;
    json_decref(server.patched);
    server.patched = json_deep_copy(patch);
    snprintf(server.patched_name, sizeof(server.patched_name), "%s", name);
    return answer(server.answer, e);
}

void kube_client_stop(struct kube_client *c)
{
    (void)c;
    pthread_mutex_lock(&server.lock);
    server.stopped = true;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.lock);
}

static struct clock_manual the_clock;
static struct kube_recorder *recorder;
static json_t *pod;

static int setup(void **state)
{
    (void)state;
    clock_manual_init(&the_clock, 1000 * CLOCK_SECOND);
    server.creates = server.patches = 0;
    server.answer = ERR_OK;
    server.hold = server.stopped = false;
    recorder = kube_recorder_new(NULL, "tester", "h", &the_clock.clock, NULL);
    pod = json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s}}", "apiVersion", "v1", "kind", "Pod", "metadata",
                    "name", "x", "namespace", "d", "uid", "u", "resourceVersion", "7");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (recorder)
        kube_recorder_free(recorder);
    json_decref(pod);
    json_decref(server.created);
    json_decref(server.patched);
    server.created = server.patched = NULL;
    return 0;
}

/* With the lock. */
static void wait_writes(unsigned creates, unsigned patches)
{
    while (server.creates < creates || server.patches < patches)
        pthread_cond_wait(&server.changed, &server.lock);
    assert_int_equal(server.creates, creates);
    assert_int_equal(server.patches, patches);
}

static void expect(unsigned creates, unsigned patches)
{
    pthread_mutex_lock(&server.lock);
    wait_writes(creates, patches);
    pthread_mutex_unlock(&server.lock);
}

static void assert_json(const json_t *value, const char *expected)
{
    json_auto_t *wanted = json_parse(expected, strlen(expected), NULL, NULL);
    assert_non_null(wanted);
    _cleanup_(str_done) struct str text = {0};
    json_format(value, &text);
    if (!json_equal(value, wanted))
        fail_msg("expected %s, got %s", expected, str_get(&text));
}

static void test_shape(void **state)
{
    (void)state;
    kube_event_normal(recorder, pod, "Started", "disk %d", 5);
    expect(1, 0);
    assert_json(
        server.created,
        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"x.e8d4a51000\","
        "\"namespace\":\"d\"},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
        "\"namespace\":\"d\",\"name\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"7\"},"
        "\"reason\":\"Started\",\"message\":\"disk 5\",\"source\":{\"component\":\"tester\","
        "\"host\":\"h\"},\"firstTimestamp\":\"1970-01-01T00:16:40Z\",\"lastTimestamp\":"
        "\"1970-01-01T00:16:40Z\",\"count\":1,\"type\":\"Normal\",\"reportingComponent\":"
        "\"tester\",\"reportingInstance\":\"h\"}");
    kube_event_warning(NULL, pod, "Ignored", "nobody records");
}

/* A reference in place of the object; what has no namespace. */
static void test_reference(void **state)
{
    (void)state;
    json_auto_t *node = json_pack("{s:s,s:s}", "kind", "Node", "name", "n");
    kube_event_warning(recorder, node, "Gone", "it is");
    expect(1, 0);
    assert_json(json_object_get(server.created, "involvedObject"),
                "{\"kind\":\"Node\",\"name\":\"n\"}");
    assert_string_equal(json_str(json_object_get(server.created, "metadata"), "namespace"),
                        "default");
    assert_string_equal(json_str(server.created, "type"), "Warning");
}

static void test_count(void **state)
{
    (void)state;
    kube_event_normal(recorder, pod, "Again", "the same");
    expect(1, 0);
    clock_manual_advance(&the_clock, 60 * CLOCK_SECOND);
    json_object_set_new(json_object_get(pod, "metadata"), "resourceVersion", json_string("8"));
    kube_event_normal(recorder, pod, "Again", "the same");
    expect(1, 1);
    assert_json(server.patched, "{\"count\":2,\"lastTimestamp\":\"1970-01-01T00:17:40Z\","
                                "\"message\":\"the same\"}");
    assert_string_equal(server.patched_name,
                        json_str(json_object_get(server.created, "metadata"), "name"));
    kube_event_normal(recorder, pod, "Again", "another");
    expect(2, 1);
    kube_event_warning(recorder, pod, "Again", "the same");
    expect(3, 1);
}

/* The event has expired: another is made, and the count goes on. */
static void test_gone(void **state)
{
    (void)state;
    kube_event_normal(recorder, pod, "Again", "x");
    expect(1, 0);
    server.answer = ERR_NOT_FOUND;
    clock_manual_advance(&the_clock, CLOCK_SECOND);
    kube_event_normal(recorder, pod, "Again", "x");
    expect(2, 1);
    assert_int_equal(json_integer_value(json_object_get(server.created, "count")), 2);
    assert_string_equal(json_str(server.created, "firstTimestamp"), "1970-01-01T00:16:40Z");
    assert_string_equal(json_str(server.created, "lastTimestamp"), "1970-01-01T00:16:41Z");
    server.answer = ERR_OK;
    kube_event_normal(recorder, pod, "Again", "x");
    expect(2, 2);
    assert_string_equal(server.patched_name,
                        json_str(json_object_get(server.created, "metadata"), "name"));
}

static void test_long_message(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'm', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    kube_event_normal(recorder, pod, "Long", "%s", text);
    expect(1, 0);
    assert_int_equal(strlen(json_str(server.created, "message")), 1024);
}

/* A server that does not answer: nobody waits, what is too much is dropped, the end comes in time. */
static void test_never_blocks(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    server.hold = true;
    int64_t begin = clock_mono_ns(clock_system());
    for (int i = 0; i < 2000; i++)
        kube_event_normal(recorder, pod, "Flood", "%d", i);
    assert_true(clock_mono_ns(clock_system()) - begin < CLOCK_SECOND);
    kube_recorder_free(recorder);
    recorder = NULL;
    int64_t took = clock_mono_ns(clock_system()) - begin;
    assert_true(took >= CLOCK_SECOND / 2 && took < 10 * CLOCK_SECOND);
    assert_int_equal(server.creates, 1);
    log_set_level(LOG_LEVEL_INFO);
}

/* What waits is written before the recorder is gone. */
static void test_drains(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        kube_event_normal(recorder, pod, "Last", "%d", i);
    kube_recorder_free(recorder);
    recorder = NULL;
    assert_int_equal(server.creates, 5);
    assert_false(server.stopped);
}

/* The memory. */

static void test_combines(void **state)
{
    (void)state;
    struct event_memory m;
    event_memory_init(&m);
    bool combined;
    char message[16];
    int64_t at = CLOCK_SECOND;
    for (int i = 0; i < EVENT_MESSAGES; i++) {
        snprintf(message, sizeof(message), "%d", i);
        assert_non_null(event_memory_see(&m, "o", "w", message, at, &combined));
        assert_false(combined);
    }
    struct event_entry *first = event_memory_see(&m, "o", "w", "new", at, &combined);
    assert_true(combined);
    assert_int_equal(first->count, 1);
    assert_ptr_equal(event_memory_see(&m, "o", "w", "newer", at, &combined), first);
    assert_true(combined);
    assert_int_equal(first->count, 2);
    event_memory_see(&m, "o", "w", "3", at, &combined); /* an old acquaintance stays itself */
    assert_false(combined);
    event_memory_see(&m, "o", "other", "new", at, &combined);
    assert_false(combined);
    at += (EVENT_WINDOW_SECONDS + 1) * CLOCK_SECOND;
    event_memory_see(&m, "o", "w", "after a while", at, &combined);
    assert_false(combined);
    event_memory_done(&m);
}

static void test_spam(void **state)
{
    (void)state;
    struct event_memory m;
    event_memory_init(&m);
    bool combined;
    int64_t at = CLOCK_SECOND;
    for (int i = 0; i < EVENT_BURST; i++)
        assert_non_null(event_memory_see(&m, "o", "w", "m", at, &combined));
    assert_null(event_memory_see(&m, "o", "w", "m", at, &combined));
    assert_non_null(event_memory_see(&m, "another", "w", "m", at, &combined));
    at += (EVENT_REFILL_SECONDS - 1) * CLOCK_SECOND;
    assert_null(event_memory_see(&m, "o", "w", "m", at, &combined));
    at += CLOCK_SECOND;
    struct event_entry *event = event_memory_see(&m, "o", "w", "m", at, &combined);
    assert_non_null(event);
    assert_int_equal(event->count, EVENT_BURST + 3); /* those that were not sent count too */
    assert_null(event_memory_see(&m, "o", "w", "m", 0, &combined)); /* the clock was set back */
    at += 1000 * (int64_t)EVENT_REFILL_SECONDS * CLOCK_SECOND;
    for (int i = 0; i < EVENT_BURST; i++)
        assert_non_null(event_memory_see(&m, "o", "w", "m", at, &combined));
    assert_null(event_memory_see(&m, "o", "w", "m", at, &combined));
    event_memory_done(&m);
}

static void test_bounded(void **state)
{
    (void)state;
    struct event_memory m;
    event_memory_init(&m);
    bool combined;
    char object[16];
    event_memory_see(&m, "first", "w", "m", 1, &combined);
    for (int i = 0; i < 5000; i++) {
        snprintf(object, sizeof(object), "o%d", i);
        event_memory_see(&m, object, "w", "m", 1, &combined);
        assert_true(m.entries.count <= EVENT_ENTRIES);
    }
    assert_int_equal(event_memory_see(&m, object, "w", "m", 1, &combined)->count, 2);
    assert_int_equal(event_memory_see(&m, "first", "w", "m", 1, &combined)->count, 1);
    event_memory_done(&m);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_shape),
        CASE(test_reference),
        CASE(test_count),
        CASE(test_gone),
        CASE(test_long_message),
        CASE(test_never_blocks),
        CASE(test_drains),
        cmocka_unit_test(test_combines),
        cmocka_unit_test(test_spam),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
