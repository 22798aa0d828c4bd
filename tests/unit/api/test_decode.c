/*
 * Objects as structs, by the rows of a table.
 */
#include "api/decode.h"
#include "api/shared.h"
#include "jsontest.h"
#include "kinds/blockdevice.h"
#include "kinds/logicalvolume.h"
#include "kinds/pool.h"

struct part {
    const char *name;
    int64_t weight;
};

struct thing {
    struct {
        const char *text, *since;
        bool on;
        int64_t number, size;
        struct part first;
        API_ITEMS(struct part) parts;
        API_ITEMS(const char *) words;
        const json_t *labels, *any;
    } spec;
};

static const struct api_field part_fields[] = {
    {"name", API_STRING, API_TEXT(struct part, name), .doc = "x"},
    {"weight", API_QUANTITY, API_NUMBER_AT(struct part, weight), .doc = "x"},
    {0},
};

static const struct api_field fields[] = {
    {"text", API_STRING, API_TEXT(struct thing, spec.text), .aliases = API_ALIASES("oldText"),
     .doc = "x"},
    {"since", API_TIME, API_TEXT(struct thing, spec.since), .doc = "x"},
    {"on", API_BOOL, API_TRUTH(struct thing, spec.on), .doc = "x"},
    {"number", API_INT, API_NUMBER_AT(struct thing, spec.number), .doc = "x"},
    {"size", API_QUANTITY, API_NUMBER_AT(struct thing, spec.size), .doc = "x"},
    {"first", API_OBJECT, API_STRUCT(struct thing, spec.first), .fields = part_fields, .doc = "x"},
    {"parts", API_OBJECT, API_LIST, API_ARRAY(struct thing, spec.parts), .fields = part_fields,
     .doc = "x"},
    {"words", API_STRING, API_LIST, API_ARRAY(struct thing, spec.words), .doc = "x"},
    {"labels", API_STRING, API_MAP, API_JSON(struct thing, spec.labels), .doc = "x"},
    {"any", API_ANY, API_JSON(struct thing, spec.any), .doc = "x"},
    {"unread", API_STRING, .doc = "x"},
    {0},
};

#define WHOLE                                                                                      \
    "{'text':'a','since':'2026-01-02T03:04:05Z','on':true,'number':7,'size':'2Mi','first':"        \
    "{'name':'f'},'parts':[{'name':'p','weight':'1Ki'},{'name':'q'}],'words':['x','y'],"           \
    "'labels':{'k':'v'},'any':[1]}"

static void test_every_type_of_field(void **state)
{
    (void)state;
    json_auto_t *json = parse_quoted(WHOLE);
    struct arena arena = {0};
    struct thing t = {0};
    api_decode(fields, json, &t, &arena);
    assert_string_equal(t.spec.text, "a");
    assert_string_equal(t.spec.since, "2026-01-02T03:04:05Z");
    assert_true(t.spec.on);
    assert_int_equal(t.spec.number, 7);
    assert_int_equal(t.spec.size, 2 << 20);
    assert_string_equal(t.spec.first.name, "f");
    assert_int_equal(t.spec.parts.len, 2);
    assert_int_equal(t.spec.parts.p[0].weight, 1024);
    assert_string_equal(t.spec.parts.p[1].name, "q");
    assert_string_equal(t.spec.words.p[1], "y");
    assert_string_equal(json_str(t.spec.labels, "k"), "v");
    assert_int_equal(json_array_size(t.spec.any), 1);
    json_auto_t *again = api_encode(fields, &t);
    assert_json(again, json, "what was decoded, encoded");
    arena_done(&arena);
}

/* Absent members, members of another type, and no object at all are all absent. */
static void test_absent(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{'text':1,'since':[],'on':'yes','number':'7','size':{},'first':3,'parts':{},'words':'x'}",
        "null",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        json_auto_t *json = parse_quoted(texts[i]);
        struct arena arena = {0};
        struct thing t = {0};
        api_decode(fields, json, &t, &arena);
        assert_string_equal(t.spec.text, "");
        assert_string_equal(t.spec.since, "");
        assert_false(t.spec.on);
        assert_int_equal(t.spec.number, 0);
        assert_int_equal(t.spec.size, 0);
        assert_string_equal(t.spec.first.name, "");
        assert_int_equal(t.spec.parts.len, 0);
        assert_int_equal(t.spec.words.len, 0);
        json_auto_t *again = api_encode(fields, &t);
        assert_int_equal(json_object_size(again), 0);
        arena_done(&arena);
    }
}

static void test_alias(void **state)
{
    (void)state;
    json_auto_t *json = parse_quoted("{'oldText':'b'}");
    struct thing t = {0};
    api_decode(fields, json, &t, NULL);
    assert_string_equal(t.spec.text, "b");
    json_auto_t *lv = parse_quoted("{'spec':{'deviceClass':'ssd','size':'1Gi'}}");
    assert_string_equal(logical_volume_of(lv).spec.class_name, "ssd");
    assert_string_equal(logical_volume_of(NULL).status.volume_id, "");
}

/* What absence means, where it does not mean nothing. */
struct usual {
    bool on, off;
    int64_t block, size;
    const char *word, *mode;
    struct api_amount amount, least;
    const json_t *part;
};

static const struct api_field usual_fields[] = {
    {"on", API_BOOL, API_TRUTH(struct usual, on), .absent = "true", .doc = "x"},
    {"off", API_BOOL, API_TRUTH(struct usual, off), .def = "false", .doc = "x"},
    {"block", API_INT, API_NUMBER_AT(struct usual, block), .def = "4096", .doc = "x"},
    {"size", API_QUANTITY, API_NUMBER_AT(struct usual, size), .absent = "2Ki", .doc = "x"},
    {"word", API_STRING, API_TEXT(struct usual, word), .absent = "CHAP", .doc = "x"},
    {"mode", API_STRING, API_TEXT(struct usual, mode), .def = "\"lz4\"",
     .words = API_WORDS("lz", "lz4"), .doc = "x"},
    {"amount", API_QUANTITY, API_AMOUNT(struct usual, amount), .doc = "x"},
    {"least", API_QUANTITY, API_AMOUNT(struct usual, least), .absent = "1Ki", .doc = "x"},
    {"part", API_OBJECT, API_JSON(struct usual, part), .fields = part_fields, .doc = "x"},
    {0},
};

static void test_what_absence_means(void **state)
{
    (void)state;
    struct usual u = {0};
    api_decode(usual_fields, NULL, &u, NULL);
    assert_true(u.on);
    assert_false(u.off);
    assert_int_equal(u.block, 4096);
    assert_int_equal(u.size, 2048);
    assert_string_equal(u.word, "CHAP");
    assert_string_equal(u.mode, "lz4");
    assert_string_equal(u.amount.text, "");
    assert_int_equal(u.least.n, 1024);
    assert_null(u.part);
    json_auto_t *nothing = api_encode(usual_fields, &u);
    assert_int_equal(json_object_size(nothing), 0);

    json_auto_t *json = parse_quoted(
        "{'on':false,'off':true,'block':0,'size':'0','word':'','mode':'lz','amount':'1500M',"
        "'least':'0.5','part':{'name':'p','other':1}}");
    api_decode(usual_fields, json, &u, NULL);
    assert_false(u.on);
    assert_true(u.off);
    assert_int_equal(u.amount.n, 1500000000);
    assert_int_equal(u.least.n, 1);
    assert_int_equal(json_object_size(u.part), 2);
    json_auto_t *again = api_encode(usual_fields, &u);
    assert_json(again, json, "zeros and quantities as they were written");

    json_auto_t *number = parse_quoted("{'least':7}");
    api_decode(usual_fields, number, &u, NULL);
    assert_int_equal(u.least.n, 7);
    assert_string_equal(u.least.text, "");
}

/* Objects whose members are members of the struct around them, and one that is its own. */
static void test_inline(void **state)
{
    (void)state;
    json_auto_t *json = parse_quoted(
        "{'spec':{'nodeAttributes':{'nodeName':'n1'},'capacity':{'storage':4096},'claimRef':"
        "{'name':'c','uid':'u'},'devlinks':[{'kind':'by-id','links':['/dev/x']}]},"
        "'status':{'claimState':'Claimed'}}");
    const struct block_device bd = block_device_of(json);
    assert_string_equal(bd.spec.node_name, "n1");
    assert_int_equal(bd.spec.size, 4096);
    assert_string_equal(bd.spec.claim.name, "c");
    assert_string_equal(bd.spec.claim.ns, "");
    assert_string_equal(bd.status.claim_state, "Claimed");
    assert_string_equal(bd.status.state, "");
    assert_string_equal(device_links_of(json_array_get(bd.spec.devlinks, 0)).kind, "by-id");
    json_auto_t *claim = parse_quoted("{'spec':{'blockDeviceNodeAttributes':{'hostName':'h'},"
                                      "'hostName':'old'},'status':{'phase':'Bound'}}");
    assert_string_equal(block_device_claim_of(claim).spec.host_name, "h");
    assert_string_equal(block_device_claim_of(claim).spec.old_host_name, "old");
    assert_true(block_device_claim_is_bound(claim));
    assert_false(block_device_claim_is_bound(NULL));
}

#define POOL                                                                                       \
    "{'spec':{'hostName':'n1','poolConfig':{'defaultRaidGroupType':'mirror'},'raidGroups':["       \
    "{'blockDevices':[{'blockDeviceName':'a','capacity':'1Ki'},{'blockDeviceName':'b'}]},"         \
    "{'blockDevices':[]},{'isSpare':true,'blockDevices':[{'blockDeviceName':'s'}]}]},"             \
    "'status':{'guid':'7','adding':['s'],'devices':[{'blockDeviceName':'a','guid':'8'}]}}"

static void test_instance_of_pool(void **state)
{
    (void)state;
    json_auto_t *json = parse_quoted(POOL);
    struct arena arena = {0};
    const struct pool_instance p = pool_instance_of(json, &arena);
    assert_string_equal(p.spec.host_name, "n1");
    assert_int_equal(p.spec.config.read_only_percent, 85); /* the default of the table */
    assert_int_equal(p.spec.groups.len, 3);
    assert_string_equal(p.spec.groups.p[0].devices.p[1].name, "b");
    assert_int_equal(p.spec.groups.p[0].devices.p[0].capacity, 1024);
    assert_string_equal(raid_group_type(&p.spec.groups.p[0], &p.spec.config), "mirror");
    assert_string_equal(raid_group_type(&p.spec.groups.p[2], &p.spec.config), "stripe");
    assert_int_equal(raid_group_role(&p.spec.groups.p[2]), API_RAID_SPARE);
    assert_string_equal(p.status.devices.p[0].guid, "8");
    assert_string_equal(p.status.adding.p[0], "s");
    arena_done(&arena);
    /* Whoever brings no arena has the rest, and is not told that lists are empty. */
    const struct pool_instance flat = pool_instance_of(json, NULL);
    assert_string_equal(flat.status.guid, "7");
    assert_int_equal(flat.spec.groups.len, 3);
    assert_non_null(flat.spec.groups.p);
}

static void test_walk_over_devices(void **state)
{
    (void)state;
    json_auto_t *json = parse_quoted(POOL);
    _cleanup_(str_done) struct str seen = {0};
    pool_each_device(json_object_get(json, "spec"), it)
        str_appendf(&seen, "%s %zu.%zu ", it.name, it.group, it.device);
    assert_string_equal(str_get(&seen), "a 0.0 b 0.1 s 2.0 ");
    pool_each_device(NULL, it)
        fail_msg("%s", it.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_of_field),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_alias),
        cmocka_unit_test(test_what_absence_means),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_instance_of_pool),
        cmocka_unit_test(test_walk_over_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
