/*
 * Files of device classes, good and bad; which class is meant; how much room it has.
 */
#include "lvm/class.h"
#include "unit.h"

#define GI ((uint64_t)1 << 30)

static struct lvm_classes parse(const char *text)
{
    struct lvm_classes c = {0};
    struct err e = {0};
    if (lvm_classes_parse(text, strlen(text), &c, &e) < 0)
        fail_msg("%s", e.msg);
    return c;
}

static const char good[] = "socket-name: /run/topolvm/lvmd.sock\n"
                           "device-classes:\n"
                           "- name: ssd\n"
                           "  volume-group: vg1\n"
                           "  default: true\n"
                           "  stripe: 2\n"
                           "  stripe-size: \"64\"\n"
                           "  lvcreate-options: [--type=raid1, -m, \"1\"]\n"
                           "- name: hdd\n"
                           "  volume-group: vg2\n"
                           "  spare-gb: 3\n"
                           "- name: thin\n"
                           "  volume-group: vg1\n"
                           "  type: thin\n"
                           "  thin-pool: {name: pool0, overprovision-ratio: 2.5}\n"
                           "lvcreate-option-classes:\n"
                           "- {name: raid, options: [--type=raid1]}\n";

static void test_good(void **state)
{
    (void)state;
    struct err e = {0};
    struct lvm_classes c = parse(good);
    const struct lvm_class *found;
    static const struct {
        const char *asked, *want;
    } table[] = {{"", "ssd"},    {NULL, "ssd"},  {"hdd", "hdd"},
                 {"vg2", "hdd"}, {"vg1", "ssd"}, {"thin", "thin"}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(lvm_classes_find(&c, table[i].asked, &found, &e), 0);
        assert_string_equal(found->name, table[i].want);
    }
    assert_int_equal(lvm_classes_find(&c, "ssd", &found, &e), 0);
    assert_int_equal(found->stripes, 2);
    assert_string_equal(found->stripe_size, "64");
    assert_string_equal(found->options[2], "1");
    assert_null(found->options[3]);
    assert_int_equal(found->spare, 10 * GI); /* as with TopoLVM */
    assert_int_equal(lvm_classes_find(&c, "thin", &found, &e), 0);
    assert_string_equal(found->pool, "pool0");
    assert_true(found->ratio > 2.49 && found->ratio < 2.51);
    assert_int_equal(lvm_classes_find(&c, "nobody", &found, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "nobody, but ssd, hdd, thin"));
    assert_string_equal(lvm_classes_options(&c, "raid", &e)[0], "--type=raid1");
    assert_null(lvm_classes_options(&c, "none", &e));
    lvm_classes_done(&c);
}

static void test_default(void **state)
{
    (void)state;
    struct lvm_classes c;
    const struct lvm_class *found;
    lvm_classes_default(&c);
    assert_int_equal(lvm_classes_find(&c, "", &found, NULL), 0);
    assert_string_equal(found->vg, "orlop");
    assert_int_equal(found->spare, 0);
    lvm_classes_done(&c);
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"", "the file is empty"},
        {"a: [", "line"},
        {"[]", "write device-classes"},
        {"{}", "there are no device-classes"},
        {"device-classes: [5]", "must have a name"},
        {"device-classes: [{volume-group: v}]", "a device class: name must be"},
        {"device-classes: [{name: a}]", "a: volume-group must be"},
        {"device-classes: [{name: -a, volume-group: v}]", "name must be"},
        {"device-classes: [{name: a/b, volume-group: v}]", "name must be"},
        {"device-classes: [{name: a, volume-group: v, type: odd}]", "thick or thin"},
        {"device-classes: [{name: a, volume-group: v, type: thin}]", "needs a thin-pool"},
        {"device-classes: [{name: a, volume-group: v, thin-pool: {name: p}}]", "type: thin"},
        {"device-classes: [{name: a, volume-group: v, type: thin, thin-pool: {name: p, "
         "overprovision-ratio: 0.5}}]",
         "from 1 to 1000"},
        {"device-classes: [{name: a, volume-group: v, type: thin, thin-pool: {name: p, "
         "overprovision-ratio: much}}]",
         "from 1 to 1000"},
        {"device-classes: [{name: a, volume-group: v, spare-gb: -1}]", "spare-gb"},
        {"device-classes: [{name: a, volume-group: v, stripe: 1000}]", "stripe"},
        {"device-classes: [{name: a, volume-group: v, lvcreate-options: x}]", "list of words"},
        {"device-classes: [{name: a, volume-group: v, lvcreate-options: [5]}]", "must be a text"},
        {"device-classes: [{name: a, volume-group: v}, {name: a, volume-group: w}]", "two device"},
        {"device-classes: [{name: a, volume-group: v, default: true}, {name: b, volume-group: w, "
         "default: true}]",
         "only one"},
        {"device-classes: [{name: a, volume-group: v}]\nlvcreate-option-classes: [{}]",
         "an lvcreate-option-class"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct lvm_classes c = {0};
        struct err e = {0};
        if (lvm_classes_parse(table[i].text, strlen(table[i].text), &c, &e) == 0 ||
            e.code != ERR_INVALID_ARGUMENT || !strstr(e.msg, table[i].message))
            fail_msg("row %zu: %s", i, e.msg);
    }
}

static void test_room(void **state)
{
    (void)state;
    struct lvm_view v = {0};
    vec_push(&v.vgs, (struct lvm_vg){.name = "vg1", .uuid = "", .size = 20 * GI, .free = 12 * GI});
    vec_push(&v.lvs, (struct lvm_lv){
                         .vg = "vg1", .name = "pool0", .attr = "twi", .pool = "", .size = 4 * GI});
    vec_push(&v.lvs, (struct lvm_lv){
                         .vg = "vg1", .name = "a", .attr = "Vwi", .pool = "pool0", .size = 3 * GI});
    vec_push(&v.lvs, (struct lvm_lv){
                         .vg = "vg1", .name = "b", .attr = "Vwi", .pool = "other", .size = 9 * GI});
    map_set(&v.by_name, "vg1/pool0", (void *)1);
    struct lvm_classes c = parse(good);
    static const struct {
        const char *name;
        bool there;
        uint64_t free;
    } table[] = {{"ssd", true, 2 * GI}, {"hdd", false, 0}, {"thin", true, 7 * GI}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct lvm_class *class;
        struct lvm_room room;
        assert_int_equal(lvm_classes_find(&c, table[i].name, &class, NULL), 0);
        lvm_class_room(class, &v, &room);
        assert_int_equal(room.there, table[i].there);
        assert_int_equal(room.free, table[i].free);
    }
    v.vgs.p[0].missing = 1; /* with a disk gone nothing can be made */
    struct lvm_room room;
    lvm_class_room(&c.classes.p[0], &v, &room);
    assert_int_equal(room.free, 0);
    lvm_classes_done(&c);
    map_done(&v.by_name);
    vec_done(&v.vgs);
    vec_done(&v.lvs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
