/*
 * Who may write what (api/access.h), asked of every identity about every part of every kind with every
 * verb, for an object that is its own and for one that is not. What comes out is the table of
 * docs/guides/access.md, which has to say the same; with --write it is written there.
 *
 *     test-apiserver-access docs/guides/access.md [--write]
 */
#include "base/file.h"
#include "base/str.h"
#include "jsontest.h"
#include "k8s/apiserver/path.h"
#include "k8s/kinds/kinds.h"
#include "kinds/access.h"
#include "kinds/kinds.h"

#define BEGIN "<!-- made by tests/unit/apiserver/test_access.c: begin -->\n"
#define END   "<!-- end -->"

enum { DOCUMENT_MAX = 1 << 20 };

static const char *document;
static bool writes;

static const struct {
    enum apiserver_verb verb;
    const char *text;
} verbs[] = {
    {APISERVER_CREATE, "create"}, {APISERVER_UPDATE, "update"}, {APISERVER_DELETE, "delete"}};

/* The cluster that lookups see: the device, pool and Pod of "mine", and those of "other". */
static json_t *get_object(void *context, const struct api_kind *kind, const char *namespace,
                          const char *name, struct err *e)
{
    (void)context;
    (void)e;
    assert_non_null(namespace);
    bool mine = str_eq(name, "mine");
    const char *host = mine ? "mine" : "other";
    if (kind == &api_block_device)
        return json_pack("{s:{s:s,s:{s:s}},s:{s:{s:s}}}", "metadata", "name", name, "labels",
                         "kubernetes.io/hostname", host, "spec", "nodeAttributes", "nodeName",
                         host);
    if (kind == &api_cstor_pool_instance)
        return json_pack("{s:{s:s,s:{s:s,s:s}}}", "metadata", "name", name, "labels",
                         "openebs.io/cstor-pool-cluster", "mine", "kubernetes.io/hostname", host);
    if (kind == &api_kubernetes_pod)
        return json_pack("{s:{s:s,s:s,s:{s:s}}}", "metadata", "name", name, "uid", "pod-uid",
                         "labels", API_ACCESS_POOL_LABEL, host);
    return NULL;
}

static const struct api_lookup lookup = {.get = get_object};

static void be(struct api_actor *a, enum api_who who)
{
    static const char *const users[API_WHO_COUNT] = {
        "system:node:mine", "system:serviceaccount:ns:orlop-pool-mine",
        "system:serviceaccount:ns:orlop-volume-mine", "system:serviceaccount:ns:orlop-replica",
        "system:serviceaccount:ns:orlop-csi-node"};
    static json_t *extra;
    if (!extra)
        extra = parse_quoted("{'authentication.kubernetes.io/pod-name': ['mine'],"
                             " 'authentication.kubernetes.io/pod-uid': ['pod-uid'],"
                             " 'authentication.kubernetes.io/node-name': ['mine']}");
    api_actor_init(a, users[who], who == API_WHO_NODE, extra);
    assert_int_equal(a->who, who);
}

/* An object that everything in it says is somebody's. */
static json_t *object_of(const struct api_kind *kind, enum api_who who, const char *owner)
{
    static const char *const components[API_WHO_COUNT] = {
        "orlop-node", "orlop-pool", "orlop-sidecar", "orlop-replica", "orlop-csi"};
    bool mine = str_eq(owner, "mine");
    const char *ns = kind == &api_lease && who == API_WHO_NODE ? "kube-node-lease"
                     : mine                                    ? "ns"
                                                               : "elsewhere";
    return json_pack("{s:{s:s,s:s,s:s,s:{s:s,s:s}},s:{s:s,s:s,s:{s:s}},s:{s:s,s:s},s:{s:s}}",
                     "metadata", "name", owner, "namespace", ns, "uid", "object-uid", "labels",
                     "openebs.io/cstor-pool-cluster", owner, "cstorpoolinstance.openebs.io/name",
                     owner, "spec", "nodeName", owner, "blockDeviceName", owner, "nodeAttributes",
                     "nodeName", owner, "source", "host", owner, "component",
                     mine ? components[who] : "somebody", "status", "state", "Active");
}

static bool may(enum api_who who, const struct api_kind *kind, const char *part, const char *verb,
                json_t *old, json_t *object)
{
    struct api_actor a;
    struct err e = {0};
    be(&a, who);
    const struct api_write w = {
        .kind = kind,
        .verb = verb,
        .subresource = part,
        .old = str_eq(verb, "create") ? NULL : old,
        .object = str_eq(verb, "delete") ? NULL : object,
    };
    bool allowed = api_access_check(&a, &w, &lookup, &e) == 0;
    if (!allowed)
        assert_string_equal(e.reason, "Forbidden");
    api_actor_done(&a);
    return allowed;
}

/* The verbs that an identity has on its own objects; on those of others it must have none. */
static void append_verbs(struct str *out, enum api_who who, const struct api_kind *kind,
                         enum apiserver_subresource part)
{
    const char *text = apiserver_subresource_text(part);
    json_auto_t *own = object_of(kind, who, "mine"), *foreign = object_of(kind, who, "other");
    size_t before = out->len;
    const struct api_access_rule *rule = api_access_find(who, kind, text);
    /* Requests for certificates and tokens are not told apart by the object itself. */
    bool by_object = kind != &api_certificate_signing_request && part != APISERVER_TOKEN;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (!apiserver_allows(kind, part, verbs[i].verb))
            continue;
        const char *verb = verbs[i].text;
        if (by_object && (may(who, kind, text, verb, foreign, foreign) ||
                          (str_eq(verb, "update") && (may(who, kind, text, verb, own, foreign) ||
                                                      may(who, kind, text, verb, foreign, own)))))
            fail_msg("%s may %s %s/%s of others", api_who_text(who), verb, kind->plural, text);
        if (may(who, kind, text, verb, own, own))
            str_appendf(out, "%s%s", out->len > before ? ", " : "", verb);
    }
    if (out->len == before)
        str_append(out, "–");
    else
        assert_non_null(rule);
}

static void append_table(struct str *out)
{
    str_append(out, "| what |");
    for (enum api_who who = 0; who < API_WHO_COUNT; who++)
        str_appendf(out, " %s |", api_who_text(who));
    str_append(out, "\n| --- |");
    for (enum api_who who = 0; who < API_WHO_COUNT; who++)
        str_append(out, " --- |");
    str_append_c(out, '\n');
    for (const struct api_kind *const *kind = api_kinds; *kind; kind++) {
        if ((*kind)->flags & API_REVIEW)
            continue;
        for (enum apiserver_subresource s = 0; s < APISERVER_SUBRESOURCES; s++) {
            const char *text = apiserver_subresource_text(s);
            if (!apiserver_has_subresource(*kind, s) || s == APISERVER_LOG)
                continue;
            str_appendf(out, "| %s%s%s |", (*kind)->plural, *text ? "/" : "", text);
            for (enum api_who who = 0; who < API_WHO_COUNT; who++) {
                str_append_c(out, ' ');
                append_verbs(out, who, *kind, s);
                str_append(out, " |");
            }
            str_append_c(out, '\n');
        }
    }
    str_append(out, "\n| who | what | which are its own |\n| --- | --- | --- |\n");
    for (const struct api_access_rule *r = api_access_rules; r->kind; r++)
        str_appendf(out, "| %s | %s%s%s | %s |\n", api_who_text(r->who),
                    api_kind_by_name(r->kind)->plural, *r->subresource ? "/" : "", r->subresource,
                    r->own);
}

static void test_every_kind_verb_and_identity(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str table = {0}, text = {0};
    struct err e = {0};
    append_table(&table);
    if (file_read(document, DOCUMENT_MAX, &text, &e) < 0)
        fail_msg("%s", e.msg);
    char *begin = strstr(str_get(&text), BEGIN), *end = begin ? strstr(begin, END) : NULL;
    if (!end)
        fail_msg("%s has no place for the table", document);
    begin += strlen(BEGIN);
    bool same = (size_t)(end - begin) == table.len && memcmp(begin, table.p, table.len) == 0;
    if (!same && !writes)
        fail_msg("the table in %s is not what the rules say; run make generate", document);
    if (same)
        return;
    _cleanup_(str_done) struct str now = {0};
    str_append_n(&now, text.p, (size_t)(begin - text.p));
    str_append_n(&now, table.p, table.len);
    str_append(&now, end);
    assert_int_equal(file_replace(document, now.p, now.len, 0644, &e), 0);
}

static void test_lost_device_is_taken(void **state)
{
    (void)state;
    json_auto_t *lost = object_of(&api_block_device, API_WHO_NODE, "other");
    json_auto_t *own = object_of(&api_block_device, API_WHO_NODE, "mine");
    json_object_set_new(json_object_get(lost, "status"), "state", json_string("Unknown"));
    assert_true(may(API_WHO_NODE, &api_block_device, "", "update", lost, own));
    assert_false(may(API_WHO_NODE, &api_block_device, "", "update", lost, lost));
    assert_false(may(API_WHO_NODE, &api_block_device, "status", "update", lost, lost));
}

/* A claim without a device gets one of the node that has it, and no other afterwards. */
static void test_claim_gets_a_device(void **state)
{
    (void)state;
    json_auto_t *waits = object_of(&api_block_device_claim, API_WHO_NODE, "mine");
    json_auto_t *has = json_deep_copy(waits), *foreign = json_deep_copy(waits);
    json_object_del(json_object_get(waits, "spec"), "blockDeviceName");
    json_object_set_new(json_object_get(foreign, "spec"), "blockDeviceName", json_string("other"));
    assert_true(may(API_WHO_NODE, &api_block_device_claim, "", "update", waits, has));
    assert_false(may(API_WHO_NODE, &api_block_device_claim, "", "update", waits, foreign));
    assert_false(may(API_WHO_NODE, &api_block_device_claim, "", "update", has, waits));
}

static void test_fields_that_may_not_change(void **state)
{
    static const struct {
        enum api_who who;
        const struct api_kind *kind;
        const char *part, *pointer_of, *key;
        bool allowed;
    } cases[] = {
        {API_WHO_NODE, &api_node, "", "metadata", "ownerReferences", false},
        {API_WHO_NODE, &api_node, "", "metadata", "finalizers", false},
        {API_WHO_NODE, &api_node, "", "metadata", "annotations", true},
        {API_WHO_NODE, &api_pod, "status", "metadata", "labels", false},
        {API_WHO_NODE, &api_block_device_claim, "", "spec", "hostName", false},
        {API_WHO_NODE, &api_block_device_claim, "", "spec", "blockDeviceName", false},
        {API_WHO_NODE, &api_block_device_claim, "", "metadata", "labels", false},
        {API_WHO_NODE, &api_block_device_claim, "", "metadata", "finalizers", true},
        {API_WHO_NODE, &api_logical_volume, "", "spec", "size", false},
        {API_WHO_POOL, &api_cstor_pool_instance, "", "spec", "dataRaidGroups", false},
        {API_WHO_POOL, &api_cstor_pool_instance, "", "metadata", "annotations", false},
        {API_WHO_POOL, &api_cstor_pool_instance, "", "metadata", "finalizers", true},
        {API_WHO_TARGET, &api_jiva_volume, "status", "spec", "capacity", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *old = object_of(cases[i].kind, cases[i].who, "mine");
        json_auto_t *object = json_deep_copy(old);
        json_object_set_new(json_object_get(object, cases[i].pointer_of), cases[i].key,
                            json_pack("[s]", "changed"));
        if (may(cases[i].who, cases[i].kind, cases[i].part, "update", old, object) !=
            cases[i].allowed)
            fail_msg("%s: %s of %s", api_who_text(cases[i].who), cases[i].key,
                     cases[i].kind->plural);
    }
}

/* A credential that does not say whose it is owns nothing. */
static void test_nobody_in_particular(void **state)
{
    static const struct {
        const char *user, *extra;
        bool node;
        const struct api_kind *kind;
        const char *part;
    } cases[] = {
        {"somebody", NULL, true, &api_node, ""},
        {"system:node:", NULL, true, &api_node, ""},
        {"system:serviceaccount:ns:orlop-pool", NULL, false, &api_cstor_pool_instance, "status"},
        {"system:serviceaccount:ns:orlop-pool",
         "{'authentication.kubernetes.io/pod-name': ['mine']}", false, &api_cstor_pool_instance,
         "status"},
        {"system:serviceaccount:ns:orlop-pool",
         "{'authentication.kubernetes.io/pod-name': ['mine'],"
         " 'authentication.kubernetes.io/pod-uid': ['of one that is gone']}",
         false, &api_cstor_pool_instance, "status"},
        {"system:serviceaccount:ns:orlop-pool-", NULL, false, &api_cstor_pool_instance, "status"},
        {"system:serviceaccount:ns:orlop-pool-other",
         "{'authentication.kubernetes.io/pod-name': ['mine'],"
         " 'authentication.kubernetes.io/pod-uid': ['pod-uid']}",
         false, &api_cstor_pool_instance, "status"},
        {"system:serviceaccount:other:orlop-pool-mine", NULL, false, &api_cstor_pool_instance,
         "status"},
        {"system:serviceaccount:other:orlop-volume-mine", NULL, false, &api_jiva_volume, "status"},
        {"system:serviceaccount:ns:orlop-volume-", NULL, false, &api_jiva_volume, "status"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_actor a;
        struct err e = {0};
        json_auto_t *extra = cases[i].extra ? parse_quoted(cases[i].extra) : NULL;
        api_actor_init(&a, cases[i].user, cases[i].node, extra);
        json_auto_t *own = object_of(cases[i].kind, a.who, "mine");
        const struct api_write w = {.kind = cases[i].kind,
                                    .verb = "update",
                                    .subresource = cases[i].part,
                                    .old = own,
                                    .object = own};
        if (api_access_check(&a, &w, &lookup, &e) == 0)
            fail_msg("%s may write %s", cases[i].user, cases[i].kind->plural);
        api_actor_done(&a);
    }
}

/* A Pod that was started before its pool had an account of its own. */
static void test_pool_by_its_pod(void **state)
{
    (void)state;
    json_auto_t *extra = parse_quoted("{'authentication.kubernetes.io/pod-name': ['mine'],"
                                      " 'authentication.kubernetes.io/pod-uid': ['pod-uid']}");
    for (size_t i = 0; i < 2; i++) {
        struct api_actor a;
        struct err e = {0};
        api_actor_init(&a, "system:serviceaccount:ns:orlop-pool", false, extra);
        json_auto_t *object =
            object_of(&api_cstor_pool_instance, API_WHO_POOL, i ? "other" : "mine");
        const struct api_write w = {.kind = &api_cstor_pool_instance,
                                    .verb = "update",
                                    .subresource = "status",
                                    .old = object,
                                    .object = object};
        assert_int_equal(api_access_check(&a, &w, &lookup, &e), i ? -1 : 0);
        api_actor_done(&a);
    }
}

/* People, and programs that serve the whole cluster. */
static void test_others_are_held_by_roles_alone(void **state)
{
    static const char *const users[] = {"jane",
                                        "system:orlop-controller",
                                        "system:serviceaccount:ns:default",
                                        "system:node:mine",
                                        "system:serviceaccount:ns:orlop-pools",
                                        "system:serviceaccount:orlop-pool"};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        struct api_actor a;
        api_actor_init(&a, users[i], false, NULL);
        assert_int_equal(a.who, API_WHO_OTHER);
    }
}

int main(int argc, char **argv)
{
    document = argc > 1 ? argv[1] : "docs/guides/access.md";
    writes = argc > 2 && str_eq(argv[2], "--write");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_verb_and_identity),
        cmocka_unit_test(test_lost_device_is_taken),
        cmocka_unit_test(test_claim_gets_a_device),
        cmocka_unit_test(test_fields_that_may_not_change),
        cmocka_unit_test(test_nobody_in_particular),
        cmocka_unit_test(test_pool_by_its_pod),
        cmocka_unit_test(test_others_are_held_by_roles_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
