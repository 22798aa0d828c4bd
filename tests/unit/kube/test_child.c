#include "jsontest.h"
#include "kube/child.h"
#include "kube/fake.h"
#include "kube/names.h"

#define NOT_FOUND "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"no\"}"
#define EXISTS    "{\"kind\":\"Status\",\"code\":409,\"reason\":\"AlreadyExists\",\"message\":\"no\"}"
#define SERVICE   "/api/v1/namespaces/d/services/v-svc"

static const char owner_text[] =
    "{'apiVersion':'openebs.io/v1','kind':'JivaVolume','metadata':{'name':'v','namespace':'d',"
    "'uid':'u'}}";
static const char wanted_text[] =
    "{'apiVersion':'v1','kind':'Service','metadata':{'name':'v-svc','namespace':'d'},"
    "'spec':{'ports':[{'name':'iscsi','port':3260}]}}";

/* Whether a live object has what is wanted, as an apply would leave it. */
static void test_has(void **state)
{
    static const struct {
        const char *live, *wanted;
        bool has;
    } cases[] = {
        {"{'a':1,'b':{'c':[1,2],'d':3}}", "{'b':{'c':[1,2]}}", true},
        {"{'a':1}", "{'b':2}", false},
        {"{'b':{'c':1}}", "{'b':{'c':2}}", false},
        {"{'l':null}", "{'l':{}}", false},
        /* a list that an apply owns as a whole */
        {"{'args':['a','b']}", "{'args':['a']}", false},
        {"{'rules':[{'verbs':['get']},{'verbs':['*']}]}", "{'rules':[{'verbs':['get']}]}", false},
        {"{'l':[{'n':'a','by default':1}]}", "{'l':[{'n':'a'}]}", true},
        {"{}", "{'l':[]}", true},
        /* a list with an item of somebody else: only a server knows whether that may be */
        {"{'containers':[{'name':'theirs'},{'name':'a','image':'i','x':1}]}",
         "{'containers':[{'name':'a','image':'i'}]}", false},
        {"{'containers':[{'name':'a','image':'i','x':1}]}",
         "{'containers':[{'name':'a','image':'i'}]}", true},
        {"{'containers':[{'name':'a','image':'other'}]}",
         "{'containers':[{'name':'a','image':'i'}]}", false},
        {"{'containers':[]}", "{'containers':[{'name':'a'}]}", false},
        /* quantities, as a server writes them */
        {"{'limits':{'cpu':'500m'}}", "{'limits':{'cpu':'0.5'}}", true},
        {"{'limits':{'cpu':'500m'}}", "{'limits':{'cpu':'0.6'}}", false},
        {"{'args':['500m']}", "{'args':['0.5']}", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *live = parse_quoted(cases[i].live), *wanted = parse_quoted(cases[i].wanted);
        if (kube_child_has(live, wanted) != cases[i].has)
            fail_msg("%s has %s: %d", cases[i].live, cases[i].wanted, !cases[i].has);
    }
}

/* The child as the server would have it, with the hash that what is wanted has; as text, to be freed. */
static char *live_of(const char *text, const char *uid, bool hash)
{
    json_auto_t *owner = parse_quoted(owner_text), *o = parse_quoted(text);
    json_t *metadata = json_object_get(o, "metadata");
    char made[KUBE_HASH];
    json_object_set_new(metadata, "ownerReferences", json_pack("[o]", kube_owner_reference(owner)));
    kube_hash(o, 0, made);
    if (hash)
        json_object_set_new(metadata, "annotations", json_pack("{s:s}", KUBE_CHILD_HASH, made));
    if (uid)
        json_object_set_new(json_array_get(json_object_get(metadata, "ownerReferences"), 0), "uid",
                            json_string(uid));
    else
        json_object_del(metadata, "ownerReferences");
    _cleanup_(str_done) struct str out = {0};
    json_format(o, &out);
    return mem_strdup(str_get(&out));
}

struct expected {
    bool made;
    enum kube_applied applied;
    const char *reason;
    size_t requests;
};

static void run_apply(const char *wanted, const struct kube_birth *birth,
                      const struct fake_step *steps, size_t n, const struct expected *x)
{
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, n);
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    json_auto_t *owner = parse_quoted(owner_text), *want = parse_quoted(wanted);
    const struct kube_children of = {.r = kube_resource("v1", json_str(want, "kind"))};
    const struct kube_child child = {.of = &of, .owner = owner, .wanted = want, .birth = birth};
    enum kube_applied applied = KUBE_CHILD_KEPT;
    struct err e = {0};
    json_auto_t *now = kube_apply_child(c, &child, &applied, &e);
    fake_check(f, x->requests);
    if (!!now != x->made)
        fail_msg("made: %d, %s", now != NULL, e.msg);
    if (now)
        assert_int_equal(applied, x->applied);
    else
        assert_string_equal(e.reason, x->reason);
}

static void test_apply(void **state)
{
    _cleanup_free_ char *same = live_of(wanted_text, "u", true);
    _cleanup_free_ char *older = live_of(wanted_text, "u", false);
    _cleanup_free_ char *orphan = live_of(wanted_text, NULL, true);
    _cleanup_free_ char *foreign = live_of(wanted_text, NULL, false);
    _cleanup_free_ char *leftover = live_of(wanted_text, "before", true);
    static const char port[] = "3260";
    _cleanup_free_ char *changed = live_of(wanted_text, "u", true);
    memcpy(strstr(changed, port), "9999", 4);
    const struct {
        const char *name, *live;
        struct expected expected;
    } cases[] = {
        {"none is there", NULL, {true, KUBE_CHILD_CREATED, NULL, 2}},
        {"it is as wanted", same, {true, KUBE_CHILD_KEPT, NULL, 1}},
        {"somebody changed it", changed, {true, KUBE_CHILD_REPAIRED, NULL, 2}},
        {"somebody took its owner off", orphan, {true, KUBE_CHILD_REPAIRED, NULL, 2}},
        {"it is somebody else's", foreign, {false, 0, "NotOurs", 1}},
        {"it is of an owner that was deleted", leftover, {false, 0, "Leftover", 1}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct fake_step steps[] = {
            {"GET " SERVICE " ", cases[i].live ? 200 : 404,
             .body = cases[i].live ? cases[i].live : NOT_FOUND},
            {"PATCH " SERVICE "?fieldManager=test%20manager&force=true", 200, .body = same},
        };
        print_message("# %s\n", cases[i].name);
        run_apply(wanted_text, NULL, steps, cases[i].expected.requests, &cases[i].expected);
    }
}

/* An apply that leaves the child at its version had nothing to put right. */
static void test_items_of_others(void **state)
{
    static const struct {
        const char *version;
        enum kube_applied applied;
    } cases[] = {{"5", KUBE_CHILD_KEPT}, {"6", KUBE_CHILD_REPAIRED}};
    (void)state;
    _cleanup_free_ char *text = live_of(wanted_text, "u", true);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *live = parse_json(text), *now = parse_json(text);
        _cleanup_(str_done) struct str before = {0}, after = {0};
        json_array_append_new((json_t *)(uintptr_t)json_at(live, "spec", "ports"),
                              json_pack("{s:s,s:i}", "name", "theirs", "port", 1));
        json_object_set_new(json_object_get(live, "metadata"), "resourceVersion", json_string("5"));
        json_object_set_new(json_object_get(now, "metadata"), "resourceVersion",
                            json_string(cases[i].version));
        json_format(live, &before);
        json_format(now, &after);
        const struct fake_step steps[] = {{"GET " SERVICE " ", 200, .body = str_get(&before)},
                                          {"&force=true", 200, .body = str_get(&after)}};
        run_apply(wanted_text, NULL, steps, 2, &(struct expected){true, cases[i].applied, NULL, 2});
    }
}

/* What an earlier version wrote without applying it becomes ours by an apply, once. */
static void test_take_over(void **state)
{
#define ENTRY(manager, operation) "{\"manager\":\"" manager "\",\"operation\":\"" operation "\"}"
#define STATUS                    "{\"manager\":\"test manager\",\"operation\":\"Update\",\"subresource\":\"status\"}"
    static const struct {
        const char *name, *entries, *path;
    } cases[] = {
        {"nothing is known of owners", "", NULL},
        {"others only", ENTRY("kubectl", "Update") "," STATUS, NULL},
        {"it was applied before",
         ENTRY("test manager", "Update") "," ENTRY("test manager", "Apply"), NULL},
        {"it was updated", STATUS "," ENTRY("test manager", "Update"),
         "\"path\":\"/metadata/managedFields/1/operation\",\"value\":\"Apply\""},
    };
    (void)state;
    _cleanup_free_ char *older = live_of(wanted_text, "u", false);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *text = mem_printf("[%s]", cases[i].entries);
        json_auto_t *entries = parse_json(text), *live = parse_json(older);
        json_object_set(json_object_get(live, "metadata"), "managedFields", entries);
        _cleanup_(str_done) struct str body = {0};
        json_format(live, &body);
        const struct fake_step steps[] = {
            {"GET " SERVICE " ", 200, .body = str_get(&body)},
            {cases[i].path ? cases[i].path : "&force=true", 200, .body = older},
            {"&force=true", 200, .body = older},
        };
        size_t n = cases[i].path ? 3 : 2;
        print_message("# %s\n", cases[i].name);
        run_apply(wanted_text, NULL, steps, n,
                  &(struct expected){true, KUBE_CHILD_CHANGED, NULL, n});
    }
}

static unsigned born;

static json_t *make_birth(const json_t *owner, struct err *e)
{
    (void)e;
    born++;
    assert_string_equal(kube_name(owner), "v");
    return json_pack("{s:s}", "key", "secret");
}

/* What a Secret has from its birth is written by a create, and never over another. */
static void test_birth(void **state)
{
    static const char secret[] = "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'v-key',"
                                 "'namespace':'d'},'type':'Opaque'}";
    _cleanup_free_ char *bare = live_of(secret, "u", true);
    _cleanup_free_ char *full =
        mem_printf("%.*s,\"data\":{\"key\":\"eA==\"}}", (int)(strlen(bare) - 1), bare);
    _cleanup_free_ char *old = live_of(secret, "u", false);
    _cleanup_free_ char *older =
        mem_printf("%.*s,\"data\":{\"key\":\"eA==\"}}", (int)(strlen(old) - 1), old);
    const struct kube_birth *birth =
        &(const struct kube_birth){(const char *const[]){"key", NULL}, make_birth};
    (void)state;
    born = 0;
    const struct fake_step creates[] = {
        {"GET ", 404, .body = NOT_FOUND},
        {"\"stringData\":{\"key\":\"secret\"}", 201, .body = full},
    };
    run_apply(secret, birth, creates, 2, &(struct expected){true, KUBE_CHILD_CREATED, NULL, 2});
    const struct fake_step loses[] = {
        {"GET ", 404, .body = NOT_FOUND},
        {"POST ", 409, .body = EXISTS},
    };
    run_apply(secret, birth, loses, 2, &(struct expected){false, 0, "AlreadyExists", 2});
    const struct fake_step keeps[] = {{"GET ", 200, .body = full}};
    run_apply(secret, birth, keeps, 1, &(struct expected){true, KUBE_CHILD_KEPT, NULL, 1});
    /* A change of the rest carries no data: "type" is the last member of the body. */
    const struct fake_step changes[] = {
        {"GET ", 200, .body = older},
        {"\"type\":\"Opaque\"}", 200, .body = full},
    };
    run_apply(secret, birth, changes, 2, &(struct expected){true, KUBE_CHILD_CHANGED, NULL, 2});
    assert_int_equal(born, 2); /* by those that tried to create it */
    const struct fake_step mends[] = {
        {"GET ", 200, .body = bare},
        {"\"stringData\":{\"key\":\"secret\"}", 200, .body = full},
    };
    run_apply(secret, birth, mends, 2, &(struct expected){true, KUBE_CHILD_REPAIRED, NULL, 2});
}

#define OWNED(name, owner)                                                                         \
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" name                    \
    "\",\"namespace\":\"d\",\"uid\":\"" name "\",\"resourceVersion\":\"5\",\"ownerReferences\":"   \
    "[{\"kind\":\"JivaVolume\",\"name\":\"v\",\"uid\":\"" owner "\",\"controller\":true}]}}"

/* Children that are not named go, and nobody else's. */
static void test_prune(void **state)
{
    const struct fake_step steps[] = {
        {"secrets?limit=", 200,
         .body = "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                 "\"7\"},\"items\":[" OWNED("v-key", "u") "," OWNED("v-chap", "u") "," OWNED(
                     "w-chap", "other") "]}"},
        {"watch=true", 200, .stream = true, .body = "", .end = FAKE_HOLD},
        {"DELETE /api/v1/namespaces/d/secrets/v-chap ", 200, .body = "{}"},
    };
    const struct kube_index by_owner[] = {kube_children_by_owner, {0}};
    (void)state;
    _cleanup_(fake_freep) struct fake *f = fake_new(steps, ARRAY_SIZE(steps));
    _cleanup_(kube_client_freep) struct kube_client *c = fake_client(f, NULL);
    struct err e = {0};
    const struct kube_children of = {
        .r = kube_resource("v1", "Secret"),
        .informer = kube_informer_new(
            &(struct kube_informer_options){.client = c,
                                            .resource = kube_resource("v1", "Secret"),
                                            .ns = "d",
                                            .indexes = by_owner},
            &e)};
    assert_non_null(of.informer);
    assert_int_equal(kube_informer_start(of.informer, &e), 0);
    assert_int_equal(kube_informer_wait(of.informer, FAKE_SECONDS * CLOCK_SECOND, &e), 0);
    fake_wait_for(f, 2);
    kube_informer_stop(of.informer);
    json_auto_t *owner = parse_quoted(owner_text);
    if (kube_prune_children(c, &of, owner, (const char *const[]){"v-key", NULL}, &e) < 0)
        fail_msg("%s", e.msg);
    fake_check(f, 3);
    kube_informer_free(of.informer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has),
        cmocka_unit_test(test_apply),
        cmocka_unit_test(test_items_of_others),
        cmocka_unit_test(test_take_over),
        cmocka_unit_test(test_birth),
        cmocka_unit_test(test_prune),
    };
    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
