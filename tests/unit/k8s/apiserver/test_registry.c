#include <stdio.h>

#include "a_registry.h"
#include "k8s/kinds/kinds.h"
#include "kinds/kinds.h"

static const struct apiserver_request volumes = {.kind = &api_cstor_volume, .namespace = "ns"};

static void must_not(change_fn *fn, struct apiserver_request r, const char *text,
                     const char *reason)
{
    struct err e = {0};
    json_auto_t *stored = change(fn, r, text, &e);
    if (stored || !str_eq(e.reason, reason))
        fail_msg("%s: %s instead of %s", text, stored ? "done" : e.reason, reason);
}

static struct apiserver_request named(const char *name)
{
    struct apiserver_request r = volumes;
    r.name = name;
    return r;
}

#define TYPE "'apiVersion': 'cstor.openebs.io/v1', 'kind': 'CStorVolume'"
#define VOLUME(m, cap)                                                                             \
    "{" TYPE ", 'metadata': {" m "}, 'spec': {'capacity': '" cap "', 'replicationFactor': 3}}"

static void test_create(void **state)
{
    (void)state;
    json_auto_t *a = must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi"));
    assert_member(a, "metadata", "resourceVersion", "\"1\"");
    assert_member(a, "metadata", "namespace", "\"ns\"");
    assert_member(a, "metadata", "creationTimestamp", "\"2026-01-02T03:04:05Z\"");
    assert_member(a, "metadata", "generation", "1");
    assert_member(a, "spec", "consistencyFactor", "2");
    assert_int_equal(strlen(json_str(json_at(a, "metadata"), "uid")), 36);

    json_auto_t *b = must(apiserver_create, volumes, VOLUME("'generateName': 'pvc-'", "1Gi"));
    const char *name = json_str(json_at(b, "metadata"), "name");
    assert_true(str_starts_with(name, "pvc-") && strlen(name) == 9);

    must_not(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi"), "AlreadyExists");
    must_not(apiserver_create, volumes, VOLUME("'name': 'B'", "1Gi"), "Invalid");
    must_not(apiserver_create, volumes, VOLUME("'name': 'b', 'namespace': 'x'", "1Gi"),
             "BadRequest");
    must_not(apiserver_create, volumes, VOLUME("'name': 'b', 'resourceVersion': '7'", "1Gi"),
             "BadRequest");
    must_not(apiserver_create, volumes, "{" TYPE ", 'metadata': []}", "BadRequest");
    /* the older group's objects are kept with the others */
    json_auto_t *c =
        must(apiserver_create, volumes,
             "{'apiVersion': 'openebs.io/v1alpha1', 'kind': 'CStorVolume', 'metadata': "
             "{'name': 'c'}, 'spec': {'capacity': '1Gi', 'replicationFactor': 1}}");
    assert_string_equal(json_str(c, "apiVersion"), "cstor.openebs.io/v1");
}

static void test_update(void **state)
{
    (void)state;
    json_auto_t *a = must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi"));
    json_auto_t *grown = must(apiserver_update, named("a"), VOLUME("'name': 'a'", "2Gi"));
    assert_member(grown, "metadata", "generation", "2");
    assert_member(grown, "metadata", "resourceVersion", "\"2\"");
    assert_json(json_at(grown, "metadata", "uid"), json_at(a, "metadata", "uid"), "uid");

    json_auto_t *same = must(apiserver_update, named("a"), VOLUME("'name': 'a'", "2Gi"));
    assert_member(same, "metadata", "resourceVersion", "\"2\""); /* nothing to write */
    json_auto_t *labelled =
        must(apiserver_update, named("a"), VOLUME("'name': 'a', 'labels': {'x': 'y'}", "2Gi"));
    assert_member(labelled, "metadata", "generation", "2");
    assert_member(labelled, "metadata", "resourceVersion", "\"3\"");

    must_not(apiserver_update, named("a"), VOLUME("'name': 'a'", "1Gi"), "Invalid");
    must_not(apiserver_update, named("a"), VOLUME("'name': 'a', 'resourceVersion': '2'", "3Gi"),
             "Conflict");
    must_not(apiserver_update, named("a"), VOLUME("'name': 'a', 'uid': 'other'", "3Gi"),
             "Conflict");
    must_not(apiserver_update, named("a"), VOLUME("'name': 'b'", "3Gi"), "BadRequest");
    must_not(apiserver_update, named("none"), VOLUME("'name': 'none'", "3Gi"), "NotFound");
    json_auto_t *right =
        must(apiserver_update, named("a"), VOLUME("'name': 'a', 'resourceVersion': '3'", "3Gi"));
    assert_member(right, "metadata", "generation", "3");
}

/* The main path leaves a status alone, and /status everything else. */
static void test_status(void **state)
{
    (void)state;
#define LV(spec, status)                                                                           \
    "{'apiVersion': 'topolvm.io/v1', 'kind': 'LogicalVolume', 'metadata': {'name': 'v'}, 'spec': " \
    "{'name': 'v', 'nodeName': 'n', 'size': '" spec "'}, 'status': {'currentSize': '" status "'}}"
    struct apiserver_request r = {.kind = &api_logical_volume, .name = "v"};
    json_auto_t *made = must(apiserver_create, r, LV("1Gi", "1Gi"));
    assert_null(json_at(made, "status"));
    json_auto_t *status = must(apiserver_update_status, r, LV("9Gi", "1Gi"));
    assert_member(status, "status", "currentSize", "\"1Gi\"");
    assert_member(status, "spec", "size", "\"1Gi\"");
    assert_member(status, "metadata", "generation", "1");
    json_auto_t *spec = must(apiserver_update, r, LV("2Gi", "7Gi"));
    assert_member(spec, "status", "currentSize", "\"1Gi\"");
    assert_member(spec, "metadata", "generation", "2");

    json_decref(must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi")));
#define HEALTHY                                                                                    \
    "{" TYPE ", 'metadata': {'name': 'a'}, 'spec': {'capacity': '1Gi', 'replicationFactor': 3}, "  \
    "'status': {'phase': 'Healthy'}}"
    json_auto_t *same = must(apiserver_update, named("a"), HEALTHY);
    assert_null(json_at(same, "status"));
    json_auto_t *healthy = must(apiserver_update_status, named("a"), HEALTHY);
    assert_member(healthy, "status", "phase", "\"Healthy\"");
    assert_member(healthy, "metadata", "generation", "1");
}

static struct apiserver_object *delete (struct apiserver_request r, bool *ret_gone, struct err *e)
{
    return apiserver_delete(&registry, &r, ret_gone, e);
}

static void test_delete(void **state)
{
    (void)state;
    json_auto_t *a = must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi"));
    json_decref(
        must(apiserver_create, volumes, VOLUME("'name': 'f', 'finalizers': ['x.io/keep']", "1Gi")));
    bool gone;
    struct err e = {0};
    struct apiserver_request r = named("a");
    r.uid = "other";
    assert_null(delete (r, &gone, &e));
    assert_string_equal(e.reason, "Conflict");
    r.uid = json_str(json_at(a, "metadata"), "uid");
    apiserver_object_unref(delete (r, &gone, &e));
    assert_true(gone);
    assert_null(delete (r, &gone, &e));
    assert_string_equal(e.reason, "NotFound");

    clock_manual_advance(&time_now, 60 * CLOCK_SECOND);
    struct apiserver_object *o = delete (named("f"), &gone, &e);
    assert_false(gone);
    assert_non_null(strstr(o->bytes, "\"deletionTimestamp\":\"2026-01-02T03:05:05Z\""));
    uint64_t revision = o->revision;
    apiserver_object_unref(o);
    o = delete (named("f"), &gone, &e); /* again: nothing changes */
    assert_int_equal(o->revision, revision);
    apiserver_object_unref(o);
    /* the last finalizer takes the object with it */
    json_auto_t *last = must(apiserver_update, named("f"), VOLUME("'name': 'f'", "1Gi"));
    assert_non_null(json_at(last, "metadata", "deletionTimestamp"));
    must_not(apiserver_update, named("f"), VOLUME("'name': 'f'", "1Gi"), "NotFound");
    struct apiserver_events events;
    assert_int_equal(apiserver_store_events(registry.store, "cstor.openebs.io/cstorvolumes",
                                            revision, 0, &events, NULL),
                     0);
    assert_int_equal(events.events.len, 1);
    assert_int_equal(events.events.p[0].change, APISERVER_DELETED);
    apiserver_events_done(&events);
}

/* Each deletion of the same object, and what its finalizers are then. */
static void test_propagation(void **state)
{
    (void)state;
    static const struct {
        enum apiserver_propagation propagation;
        const char *finalizers; /* NULL: it is gone */
    } cases[] = {
        {APISERVER_PROPAGATE_FOREGROUND, "[\"foregroundDeletion\"]"},
        {APISERVER_PROPAGATE_AS_IS, "[\"foregroundDeletion\"]"},
        {APISERVER_PROPAGATE_ORPHAN, "[\"orphan\"]"},
        {APISERVER_PROPAGATE_ORPHAN, "[\"orphan\"]"},
        {APISERVER_PROPAGATE_BACKGROUND, NULL},
    };
    json_decref(must(apiserver_create, volumes, VOLUME("'name': 'g'", "1Gi")));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool gone;
        struct err e = {0};
        struct apiserver_request r = named("g");
        r.propagation = cases[i].propagation;
        struct apiserver_object *o = delete (r, &gone, &e);
        assert_non_null(o);
        json_auto_t *object = parse_json(o->bytes);
        apiserver_object_unref(o);
        assert_int_equal(gone, !cases[i].finalizers);
        if (cases[i].finalizers)
            assert_member(object, "metadata", "finalizers", cases[i].finalizers);
    }
}

static void test_dry_run(void **state)
{
    (void)state;
    struct apiserver_request r = volumes;
    r.dry_run = true;
    json_auto_t *a = must(apiserver_create, r, VOLUME("'name': 'a'", "1Gi"));
    assert_non_null(json_at(a, "metadata", "uid"));
    assert_int_equal(apiserver_store_revision(registry.store), 0);
    json_decref(must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi")));
    must_not(apiserver_create, r, VOLUME("'name': 'a'", "1Gi"), "AlreadyExists");
    r.name = "a";
    json_auto_t *grown = must(apiserver_update, r, VOLUME("'name': 'a'", "2Gi"));
    assert_member(grown, "spec", "capacity", "\"2Gi\"");
    bool gone;
    struct err e = {0};
    apiserver_object_unref(delete (r, &gone, &e));
    assert_true(gone);
    assert_int_equal(apiserver_store_revision(registry.store), 1);
}

static json_t *patched(enum apiserver_patch_type type, struct apiserver_request r, bool status,
                       const char *text, struct err *e)
{
    json_auto_t *patch = parse_quoted(text);
    struct api_report report = {0};
    struct apiserver_object *o = apiserver_patch(&registry, &r, type, patch, status, &report, e);
    api_report_done(&report);
    json_t *stored = o ? parse_json(o->bytes) : NULL;
    apiserver_object_unref(o);
    return stored;
}

static void test_patch(void **state)
{
    (void)state;
    struct err e = {0};
    json_decref(must(apiserver_create, volumes, VOLUME("'name': 'a'", "1Gi")));
    json_auto_t *merged =
        patched(APISERVER_MERGE_PATCH, named("a"), false,
                "{'spec': {'capacity': '2Gi'}, 'metadata': {'labels': {'x': 'y'}}}", &e);
    assert_member(merged, "spec", "capacity", "\"2Gi\"");
    assert_member(merged, "metadata", "generation", "2");
    json_auto_t *ops = patched(APISERVER_JSON_PATCH, named("a"), false,
                               "[{'op': 'test', 'path': '/metadata/labels/x', 'value': 'y'}, "
                               "{'op': 'remove', 'path': '/metadata/labels'}]",
                               &e);
    assert_null(json_at(ops, "metadata", "labels"));
    json_auto_t *status =
        patched(APISERVER_MERGE_PATCH, named("a"), true,
                "{'spec': {'capacity': '9Gi'}, 'status': {'phase': 'Offline'}}", &e);
    assert_member(status, "spec", "capacity", "\"2Gi\"");
    assert_member(status, "status", "phase", "\"Offline\"");

    static const struct {
        enum apiserver_patch_type type;
        const char *name, *patch, *reason;
    } refused[] = {
        {APISERVER_MERGE_PATCH, "a", "{'spec': {'capacity': '1Gi'}}", "Invalid"},
        {APISERVER_MERGE_PATCH, "a", "[]", "BadRequest"},
        {APISERVER_MERGE_PATCH, "none", "{}", "NotFound"},
        {APISERVER_MERGE_PATCH, "a", "{'metadata': {'resourceVersion': '1'}}", "Conflict"},
        {APISERVER_MERGE_PATCH, "a", "{'metadata': {'name': 'b'}}", "BadRequest"},
        {APISERVER_JSON_PATCH, "a", "[{'op': 'test', 'path': '/kind', 'value': 'x'}]", "Invalid"},
        {APISERVER_JSON_PATCH, "a", "[{'op': 'remove', 'path': '/none'}]", "Invalid"},
        {APISERVER_JSON_PATCH, "a", "[{'op': 'frob'}]", "BadRequest"},
        {APISERVER_JSON_PATCH, "a", "[{'op': 'replace', 'path': '', 'value': 1}]", "BadRequest"},
        {APISERVER_STRATEGIC_PATCH, "a", "{}", "UnsupportedMediaType"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        json_auto_t *done =
            patched(refused[i].type, named(refused[i].name), false, refused[i].patch, &e);
        if (done || !str_eq(e.reason, refused[i].reason))
            fail_msg("%s: %s instead of %s", refused[i].patch, done ? "done" : e.reason,
                     refused[i].reason);
    }

    const struct api_kind *claims = api_kind_find("v1", "PersistentVolumeClaim", NULL);
    struct apiserver_request r = {.kind = claims, .namespace = "ns", .name = "c"};
    json_decref(
        must(apiserver_create, r,
             "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'metadata': {'name': 'c', "
             "'finalizers': ['x.io/a']}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': "
             "{'requests': {'storage': '1Gi'}}}}"));
    json_auto_t *strategic = patched(APISERVER_STRATEGIC_PATCH, r, false,
                                     "{'metadata': {'finalizers': ['x.io/b']}}", &e);
    /* both, and the one that protects every claim */
    assert_int_equal(json_array_size(json_at(strategic, "metadata", "finalizers")), 3);
}

/* Text that looks like the place of the revision is only text. */
static void test_encoding_cannot_be_confused(void **state)
{
    (void)state;
    json_auto_t *a = must(apiserver_create, volumes,
                          VOLUME("'name': 'a', 'annotations': {'x': '{resourceVersion:9}', "
                                 "'resourceVersion': '9'}",
                                 "1Gi"));
    assert_member(a, "metadata", "resourceVersion", "\"1\"");
    assert_string_equal(json_str(json_at(a, "metadata", "annotations"), "resourceVersion"), "9");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, registry_begin, registry_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_create),      TEST(test_update),
        TEST(test_status),      TEST(test_delete),
        TEST(test_propagation), TEST(test_dry_run),
        TEST(test_patch),       TEST(test_encoding_cannot_be_confused),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
