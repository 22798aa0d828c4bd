/*
 * Ownership through whole writes: who owns what after creates, updates, patches and applies.
 */
#include <stdio.h>

#include "a_registry.h"
#include "gadget.h"
#include "k8s/apiserver/managed.h"
#include "k8s/apiserver/status.h"

enum operation { CREATE, UPDATE, STATUS, MERGE, JSON, APPLY, FORCE, APPLY_STATUS };

struct step {
    enum operation operation;
    const char *manager;
    const char *body;  /* of an object: what comes after name and type */
    const char *spec;  /* what the object has then; NULL: not looked at */
    const char *owned; /* who owns what then, or what the error says */
    bool fails;
};

static json_t *body_of(const struct step *s)
{
    if (s->operation == MERGE || s->operation == JSON)
        return parse_quoted(s->body);
    _cleanup_free_ char *text = mem_printf("{'apiVersion': 'example.test/v1', 'kind': 'Gadget', "
                                           "'metadata': {'name': 'g'%s}",
                                           s->body);
    return parse_quoted(text);
}

static struct apiserver_object *run(const struct step *s, struct api_report *report, struct err *e)
{
    struct apiserver_request r = {.kind = &gadget,
                                  .namespace = "ns",
                                  .name = "g",
                                  .manager = s->manager,
                                  .force = s->operation == FORCE,
                                  .unknown = API_UNKNOWN_ERROR};
    bool created, status = s->operation == STATUS || s->operation == APPLY_STATUS;
    r.subresource = status ? APISERVER_STATUS : APISERVER_MAIN;
    json_auto_t *body = body_of(s);
    switch (s->operation) {
    case CREATE:
        return apiserver_create(&registry, &r, body, report, e);
    case UPDATE:
        return apiserver_update(&registry, &r, body, report, e);
    case STATUS:
        return apiserver_update_status(&registry, &r, body, report, e);
    case MERGE:
        return apiserver_patch(&registry, &r, APISERVER_MERGE_PATCH, body, false, report, e);
    case JSON:
        return apiserver_patch(&registry, &r, APISERVER_JSON_PATCH, body, false, report, e);
    default:
        return apiserver_apply(&registry, &r, body, status, &created, report, e);
    }
}

static void add_path(void *context, const char *path)
{
    str_appendf(context, " %s", path);
}

/* "a Apply: .spec.size; b Update/status: .status.phase" */
static void owners(const json_t *object, struct str *out)
{
    struct arena a = {0};
    struct managed m;
    struct err e = {0};
    if (managed_decode(&a, json_at(object, "metadata", "managedFields"), &m, &e) < 0)
        fail_msg("%s", e.msg);
    vec_for_each(&m.entries, entry) {
        str_appendf(out, "%s%s %s%s%s:", out->len ? "; " : "", entry->manager,
                    entry->applied ? "Apply" : "Update", *entry->subresource ? "/" : "",
                    entry->subresource);
        assert_string_equal(entry->version, "example.test/v1");
        fieldset_paths(entry->fields, add_path, out);
    }
    managed_done(&m);
    arena_done(&a);
}

static void run_steps(const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct api_report report = {0};
        struct err e = {0};
        clock_manual_advance(&time_now, CLOCK_SECOND);
        struct apiserver_object *o = run(&steps[i], &report, &e);
        _cleanup_(str_done) struct str got = {0};
        json_auto_t *object = o ? parse_json(o->bytes) : NULL;
        if (o) {
            owners(object, &got);
        } else {
            unsigned code;
            struct apiserver_about about = {.kind = &gadget, .name = "g"};
            json_auto_t *status = apiserver_status(&e, &report, &about, &code);
            str_append(&got, json_str(status, "message"));
        }
        if (steps[i].fails == (o != NULL) || !str_eq(str_get(&got), steps[i].owned))
            fail_msg("step %zu, %s: \"%s\" instead of \"%s\"", i, steps[i].body, str_get(&got),
                     steps[i].owned);
        if (steps[i].spec) {
            json_auto_t *wanted = parse_quoted(steps[i].spec);
            assert_json(json_object_get(object, "spec"), wanted, steps[i].body);
        }
        apiserver_object_unref(o);
        api_report_done(&report);
    }
}

#define RUN(steps) run_steps(steps, ARRAY_SIZE(steps))

static void test_updates(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {CREATE, "a", "}, 'spec': {'size': '1', 'map': {'x': '1', 'y': '1'}}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.size .spec.map.x .spec.map.y"},
        {MERGE, "b", "{'spec': {'map': {'x': '2'}}}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.size .spec.map.y; b Update: .spec.map.x"},
        /* what changes nothing moves nothing */
        {MERGE, "c", "{'spec': {'map': {'x': '2'}}}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.size .spec.map.y; b Update: .spec.map.x"},
        /* what is removed leaves everybody */
        {MERGE, "c", "{'spec': {'map': {'x': null}}}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.size .spec.map.y"},
        {STATUS, "a", "}, 'status': {'phase': 'p'}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.size .spec.map.y; a Update/status: "
         ".status "
         ".status.phase"},
        /* an update without the list keeps it */
        {UPDATE, "b", "}, 'spec': {'size': '2', 'replicas': 1, 'map': {'y': '1'}}", NULL,
         "a Update: .spec .spec.map .spec.replicas .spec.map.y; a Update/status: .status "
         ".status.phase; b Update: .spec.size"},
        {UPDATE, "b", ", 'managedFields': []}, 'spec': {'size': '2', 'replicas': 1}", NULL,
         "a Update: .spec .spec.replicas; a Update/status: .status .status.phase; b Update: "
         ".spec.size"},
        /* what cannot be read is ignored */
        {UPDATE, "b",
         ", 'managedFields': [{'manager': 'x'}]}, 'spec': {'size': '2', 'replicas': 1}", NULL,
         "a Update: .spec .spec.replicas; a Update/status: .status .status.phase; b Update: "
         ".spec.size"},
        /* a client may set it */
        {JSON, "b",
         "[{'op': 'replace', 'path': '/metadata/managedFields', 'value': [{'manager': 'm', "
         "'operation': 'Apply', 'apiVersion': 'example.test/v1', 'fieldsType': 'FieldsV1', "
         "'fieldsV1': {'f:spec': {'f:size': {}}}}]}]",
         NULL, "m Apply: .spec.size"},
        /* and clear it, and then it stays away */
        {MERGE, "b", "{'metadata': {'managedFields': [{}]}}", NULL, ""},
        {MERGE, "b", "{'spec': {'size': '3'}}", NULL, ""},
        /* until it is applied */
        {APPLY, "m", "}, 'spec': {'size': '3'}", NULL,
         "m Apply: .spec.size; before-first-apply Update: .spec .status .spec.replicas .spec.size "
         ".status.phase"},
        {FORCE, "m", "}, 'spec': {'size': '4'}", NULL,
         "m Apply: .spec.size; before-first-apply Update: .spec .status .spec.replicas "
         ".status.phase"},
    };
    RUN(steps);
}

static void test_apply(void **state)
{
    (void)state;
    static const struct step steps[] = {
        /* what the server fills in is nobody's */
        {APPLY, "a", "}, 'spec': {'size': '1', 'map': {'x': '1'}}",
         "{'size': '1', 'replicas': 1, 'map': {'x': '1'}}", "a Apply: .spec.size .spec.map.x"},
        /* a second name of a field is that field */
        {APPLY, "a", "}, 'spec': {'capacity': '1', 'map': {'x': '1'}}", NULL,
         "a Apply: .spec.size .spec.map.x"},
        /* the same value: both own it */
        {APPLY, "b", "}, 'spec': {'size': '1'}", NULL,
         "a Apply: .spec.size .spec.map.x; b Apply: .spec.size"},
        {APPLY, "b", "}, 'spec': {'size': '2'}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .spec.size", true},
        {FORCE, "b", "}, 'spec': {'size': '2', 'map': {'y': '1'}}",
         "{'size': '2', 'replicas': 1, 'map': {'x': '1', 'y': '1'}}",
         "a Apply: .spec.map.x; b Apply: .spec.size .spec.map.y"},
        {APPLY, "a", "}, 'spec': {'size': '1', 'map': {'y': '2', 'x': '1'}}", NULL,
         "Apply failed with 2 conflicts: conflicts with \"b\":\n- .spec.size\n- .spec.map.y", true},
        /* what is no longer wanted goes, unless somebody else wants it */
        {APPLY, "a", "}, 'spec': {'size': '2'}", "{'size': '2', 'replicas': 1, 'map': {'y': '1'}}",
         "b Apply: .spec.size .spec.map.y; a Apply: .spec.size"},
        {APPLY, "b", "}, 'spec': {}", "{'size': '2', 'replicas': 1}",
         "a Apply: .spec.size; b Apply: .spec"},
        {MERGE, "c", "{'spec': {'inner': {'a': '1'}}}", NULL,
         "a Apply: .spec.size; b Apply: .spec; c Update: .spec.inner .spec.inner.a"},
        {APPLY, "a", "}, 'spec': {'size': '2', 'inner': {'a': '2', 'b': '2'}}", NULL,
         "Apply failed with 1 conflict: conflict with \"c\" using example.test/v1: .spec.inner.a",
         true},
        {APPLY, "a", "}, 'spec': {'size': '2', 'inner': {'a': '1', 'b': '2'}}", NULL,
         "b Apply: .spec; a Apply: .spec.size .spec.inner.a .spec.inner.b; c Update: .spec.inner "
         ".spec.inner.a"},
        /* an updater keeps what an applier gives up */
        {APPLY, "a", "}, 'spec': {'size': '2'}",
         "{'size': '2', 'replicas': 1, 'inner': {'a': '1'}}",
         "b Apply: .spec; a Apply: .spec.size; c Update: .spec.inner .spec.inner.a"},
        /* a default that was set and is given up is filled in again */
        {APPLY, "a", "}, 'spec': {'size': '2', 'replicas': 3}", NULL,
         "b Apply: .spec; a Apply: .spec.replicas .spec.size; c Update: .spec.inner "
         ".spec.inner.a"},
        {APPLY, "a", "}, 'spec': {'size': '2'}",
         "{'size': '2', 'replicas': 1, 'inner': {'a': '1'}}",
         "b Apply: .spec; a Apply: .spec.size; c Update: .spec.inner .spec.inner.a"},
    };
    RUN(steps);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a",
         "}, 'spec': {'items': [{'name': 'x', 'value': '1'}, {'name': 'y'}], 'set': ['1', '2'], "
         "'list': ['l'], 'whole': {'a': '1'}}",
         NULL,
         "a Apply: .spec.list .spec.whole .spec.items[name=\"x\"] .spec.items[name=\"y\"] "
         ".spec.items[name=\"x\"].name .spec.items[name=\"x\"].value .spec.items[name=\"y\"].name "
         ".spec.set[=\"1\"] .spec.set[=\"2\"]"},
        {APPLY, "b", "}, 'spec': {'items': [{'name': 'z'}, {'name': 'x', 'inner': {'a': '1'}}]}",
         NULL,
         "a Apply: .spec.list .spec.whole .spec.items[name=\"x\"] .spec.items[name=\"y\"] "
         ".spec.items[name=\"x\"].name .spec.items[name=\"x\"].value .spec.items[name=\"y\"].name "
         ".spec.set[=\"1\"] .spec.set[=\"2\"]; b Apply: .spec.items[name=\"x\"] "
         ".spec.items[name=\"z\"] .spec.items[name=\"x\"].name .spec.items[name=\"x\"].inner.a "
         ".spec.items[name=\"z\"].name"},
        {APPLY, "b", "}, 'spec': {'list': ['m'], 'whole': {'a': '1', 'b': '2'}, 'set': ['3', '1']}",
         NULL, "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.list\n- .spec.whole",
         true},
        /* x is still b's, y nobody's */
        {APPLY, "a", "}, 'spec': {'set': ['2']}",
         "{'replicas': 1, 'items': [{'name': 'z'}, {'name': 'x', 'inner': {'a': '1'}}], 'set': "
         "['2']}",
         "b Apply: .spec.items[name=\"x\"] .spec.items[name=\"z\"] .spec.items[name=\"x\"].name "
         ".spec.items[name=\"x\"].inner.a .spec.items[name=\"z\"].name; a Apply: "
         ".spec.set[=\"2\"]"},
        {APPLY, "b", "}, 'spec': {'size': '1'}", "{'replicas': 1, 'set': ['2'], 'size': '1'}",
         "a Apply: .spec.set[=\"2\"]; b Apply: .spec.size"},
        /* what is filled in inside does not make it another */
        {APPLY, "a", "}, 'spec': {'rows': [{'port': 1}]}", NULL,
         "b Apply: .spec.size; a Apply: .spec.rows"},
        {APPLY, "b", "}, 'spec': {'rows': [{'port': 1}], 'size': '1'}", NULL,
         "a Apply: .spec.rows; b Apply: .spec.rows .spec.size"},
        {APPLY, "b", "}, 'spec': {'size': '1'}", NULL, "a Apply: .spec.rows; b Apply: .spec.size"},
        {APPLY, "a", "}, 'spec': {'items': [{'name': 'x'}, {'name': 'x'}]}", NULL,
         ".spec.items: duplicate entries for key [name=\"x\"]", true},
        {APPLY, "a", "}, 'spec': {'ports': [{'port': 1}]}",
         "{'replicas': 1, 'size': '1', 'ports': [{'port': 1, 'protocol': 'TCP'}]}",
         "b Apply: .spec.size; a Apply: .spec.ports[port=1,protocol=\"TCP\"] "
         ".spec.ports[port=1,protocol=\"TCP\"].port"},
        /* an element goes with what nobody owns in it */
        {APPLY, "a", "}, 'spec': {'ports': [{'port': 2}]}",
         "{'replicas': 1, 'size': '1', 'ports': [{'port': 2, 'protocol': 'TCP'}]}",
         "b Apply: .spec.size; a Apply: .spec.ports[port=2,protocol=\"TCP\"] "
         ".spec.ports[port=2,protocol=\"TCP\"].port"},
    };
    RUN(steps);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY_STATUS, "a", "}, 'status': {'phase': 'p'}", NULL,
         "gadgets.example.test \"g\" not found", true},
        {APPLY, "a", ", 'uid': 'u'}, 'spec': {'size': '1'}", NULL,
         "Operation cannot be fulfilled on gadgets.example.test \"g\": uid mismatch: the provided "
         "object specified uid u, and no existing object was found",
         true},
        {APPLY, "a", ", 'managedFields': []}", NULL, "metadata.managedFields must be nil", true},
        {APPLY, "a", "}, 'spec': {'size': '1'}, 'status': {'phase': 'p'}", NULL,
         "a Apply: .spec.size"},
        {APPLY, "a", ", 'managedFields': [{}]}", NULL, "metadata.managedFields must be nil", true},
        {APPLY, "a", ", 'resourceVersion': '77'}, 'spec': {'size': '1'}", NULL,
         "Operation cannot be fulfilled on gadgets.example.test \"g\": the object has been "
         "modified; "
         "please apply your changes to the latest version and try again",
         true},
        {APPLY, "a", "}, 'spec': {'size': 1}", NULL,
         "Gadget.example.test \"g\" is invalid: spec.size: Invalid value: 1: must be a string, not "
         "an integer; put it in quotes",
         true},
        {APPLY, "a", "}, 'spec': {'colour': 'red'}", NULL,
         "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown "
         "field \"spec.colour\"",
         true},
        {APPLY, "a", "}, 'spec': {'size': '1', 'capacity': '1'}", NULL,
         "Gadget.example.test \"g\" is invalid: spec.capacity: Forbidden: is another name of "
         "'size', which is set as well; keep one of them",
         true},
        /* only status counts there, and only elsewhere the rest */
        {APPLY_STATUS, "a", "}, 'spec': {'size': '2'}, 'status': {'phase': 'p'}",
         "{'size': '1', 'replicas': 1}", "a Apply: .spec.size; a Apply/status: .status.phase"},
        {STATUS, "b", "}, 'status': {'phase': 'q'}", NULL,
         "a Apply: .spec.size; b Update/status: .status.phase"},
        {APPLY_STATUS, "a", "}, 'status': {'phase': 'p'}", NULL,
         "Apply failed with 1 conflict: conflict with \"b\" with subresource \"status\" using "
         "example.test/v1: .status.phase",
         true},
    };
    RUN(steps);
}

/* kubectl goes from client-side apply to this one without conflicts. */
static void test_last_applied(void **state)
{
    (void)state;
#define LAST "'kubectl.kubernetes.io/last-applied-configuration'"
    static const struct step steps[] = {
        {CREATE, "kubectl-client-side-apply",
         ", 'annotations': {" LAST ": '{\\\"spec\\\":{\\\"capacity\\\":\\\"1\\\",\\\"map\\\":{\\\"x"
         "\\\":\\\"1\\\"}}}'}}, 'spec': {'size': '1', 'map': {'x': '1'}}",
         NULL,
         "kubectl-client-side-apply Update: .spec .metadata.annotations "
         ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration .spec.map "
         ".spec.replicas .spec.size .spec.map.x"},
        {APPLY, "other", "}, 'spec': {'size': '2'}", NULL,
         "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using "
         "example.test/v1: .spec.size",
         true},
        /* replicas was not in it */
        {APPLY, "kubectl", "}, 'spec': {'size': '2', 'replicas': 2}", NULL,
         "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using "
         "example.test/v1: .spec.replicas",
         true},
        {APPLY, "kubectl", "}, 'spec': {'size': '2'}", NULL,
         "kubectl Apply: .spec.size; kubectl-client-side-apply Update: .spec .metadata.annotations "
         ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration .spec.map "
         ".spec.replicas .spec.map.x"},
    };
    RUN(steps);
    struct step again = {MERGE, "x", "{'metadata': {'labels': {'a': 'b'}}}"};
    struct api_report report = {0};
    struct err e = {0};
    struct apiserver_object *o = run(&again, &report, &e);
    json_auto_t *object = parse_json(o->bytes);
    assert_string_equal(json_str(json_at(object, "metadata", "annotations"),
                                 "kubectl.kubernetes.io/last-applied-configuration"),
                        "{\"apiVersion\":\"example.test/v1\",\"kind\":\"Gadget\",\"metadata\":"
                        "{\"name\":\"g\"},\"spec\":{\"size\":\"2\"}}\n");
    apiserver_object_unref(o);
    api_report_done(&report);
}

/* Two applies within a second leave the same list, but are two changes. */
static void test_same_second(void **state)
{
    (void)state;
    static const struct step first = {APPLY, "a", "}, 'spec': {'size': '1'}"};
    static const struct step second = {APPLY, "a", "}, 'spec': {'size': '2'}"};
    struct api_report report = {0};
    struct err e = {0};
    struct apiserver_object *o = run(&first, &report, &e);
    apiserver_object_unref(o);
    o = run(&second, &report, &e);
    json_auto_t *object = parse_json(o->bytes);
    _cleanup_(str_done) struct str got = {0};
    owners(object, &got);
    assert_string_equal(str_get(&got), "a Apply: .spec.size");
    assert_string_equal(json_str(json_object_get(object, "spec"), "size"), "2");
    apiserver_object_unref(o);
    api_report_done(&report);
}

/* What changes nothing is not written, however it comes, and no time moves. */
static void test_unchanged(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {APPLY, "a", "}, 'spec': {'size': '1', 'rows': [{'port': 1}]}"},
        {APPLY, "a", "}, 'spec': {'size': '1', 'rows': [{'port': 1}]}"},
        {FORCE, "a", "}, 'spec': {'size': '1', 'rows': [{'port': 1}]}"},
        {MERGE, "b", "{'spec': {'size': '1', 'rows': [{'port': 1}]}}"},
        {UPDATE, "b", "}, 'spec': {'size': '1', 'rows': [{'port': 1}]}"},
        {JSON, "b", "[{'op': 'replace', 'path': '/spec/size', 'value': '1'}]"},
    };
    _cleanup_(str_done) struct str first = {0};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct api_report report = {0};
        struct err e = {0};
        clock_manual_advance(&time_now, CLOCK_SECOND);
        struct apiserver_object *o = run(&steps[i], &report, &e);
        assert_non_null(o);
        if (i == 0)
            str_append(&first, o->bytes);
        assert_string_equal(o->bytes, str_get(&first));
        apiserver_object_unref(o);
        api_report_done(&report);
    }
}

static void test_many_updaters(void **state)
{
    (void)state;
    struct api_report report = {0};
    struct err e = {0};
    for (int i = 0; i <= MANAGED_MAX_UPDATERS + 1; i++) {
        char manager[16], body[80];
        snprintf(manager, sizeof(manager), "m%02d", i);
        snprintf(body, sizeof(body), "{'metadata': {'labels': {'l%02d': 'x'}}}", i);
        struct step s = {i ? MERGE : CREATE, manager, i ? body : "}, 'spec': {}"};
        clock_manual_advance(&time_now, CLOCK_SECOND);
        struct apiserver_object *o = run(&s, &report, &e);
        json_auto_t *object = parse_json(o->bytes);
        apiserver_object_unref(o);
        const json_t *list = json_at(object, "metadata", "managedFields");
        size_t expected = i < MANAGED_MAX_UPDATERS ? (size_t)i + 1 : MANAGED_MAX_UPDATERS;
        assert_int_equal(json_array_size(list), expected);
        bool merged = i >= MANAGED_MAX_UPDATERS;
        assert_string_equal(json_str(json_array_get(list, 0), "manager"),
                            merged ? "ancient-changes" : "m00");
        const json_t *labels =
            json_at(json_array_get(list, 0), "fieldsV1", "f:metadata", "f:labels");
        size_t members = merged ? (size_t)(i - MANAGED_MAX_UPDATERS) + 2 : 0; /* and "." */
        assert_int_equal(json_object_size(labels), members);
    }
    api_report_done(&report);
}

/* An object whose owners would not fit beside it is refused rather than stored and never read. */
static void test_too_large(void **state)
{
    (void)state;
    json_auto_t *object = parse_quoted(
        "{'apiVersion': 'example.test/v1', 'kind': 'Gadget', 'metadata': {'name': 'g'}, 'spec': "
        "{'map': {}}}");
    json_t *map = (json_t *)json_at(object, "spec", "map");
    for (int i = 0; i < 200000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%06d", i);
        json_object_set_new(map, key, json_string(""));
    }
    struct apiserver_request r = {.kind = &gadget, .namespace = "ns", .manager = "m", .name = "g"};
    struct api_report report = {0};
    struct err e = {0};
    bool created;
    assert_null(apiserver_apply(&registry, &r, object, false, &created, &report, &e));
    assert_string_equal(e.reason, "RequestEntityTooLarge");
    assert_null(apiserver_create(&registry, &r, object, &report, &e));
    assert_string_equal(e.reason, "RequestEntityTooLarge");
    api_report_done(&report);
}

/* What somebody else wrote into the store, or wrote otherwise, is read all the same. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        size_t entries;
    } cases[] = {
        {"", 0},
        {"[]", 0},
        {"[{}]", 0},
        {"null", 0},
        {"[{\"manager\":\"m\"", 0},
        {"[ {\"operation\": \"Update\", \"apiVersion\": \"v1\", \"fieldsType\": \"FieldsV1\", "
         "\"fieldsV1\": {\"f:a\": {}}, \"manager\": \"m\"} ]",
         1},
        {"[{\"manager\":\"m\\u0007\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":"
         "\"FieldsV1\",\"fieldsV1\":{\"f:\\u0001\":{}},\"subresource\":\"status\"}]",
         1},
        {"[{\"manager\":\"m\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":"
         "\"FieldsV1\",\"fieldsV1\":{\"f:a\":{}}},{\"manager\":\"n\",\"operation\":\"Update\","
         "\"apiVersion\":\"v1\",\"time\":\"t\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{}}]",
         2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arena a = {0};
        struct managed m;
        managed_read(&a, cases[i].list, &m);
        if (m.entries.len != cases[i].entries)
            fail_msg("%s has %zu entries", cases[i].list, m.entries.len);
        _cleanup_(str_done) struct str text = {0}, again = {0};
        assert_int_equal(managed_encode(&m, &text, NULL), 0);
        managed_done(&m);
        managed_read(&a, str_get(&text), &m);
        assert_int_equal(managed_encode(&m, &again, NULL), 0);
        assert_string_equal(str_get(&text), str_get(&again));
        managed_done(&m);
        arena_done(&a);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, registry_begin, registry_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_updates),      TEST(test_apply),
        TEST(test_lists),        TEST(test_refused),
        TEST(test_last_applied), TEST(test_same_second),
        TEST(test_unchanged),    TEST(test_many_updaters),
        TEST(test_too_large),    cmocka_unit_test(test_foreign),
    };
    return cmocka_run_group_tests_name("apply", tests, NULL, NULL);
}
