/*
 * Reports as lvm writes them: of a group without device-mapper, of a thin pool, of nothing; and texts
 * that are no report.
 */
#include "lvm/lvm.h"
#include "unit.h"

static const char thick[] =
    "{\"report\": [ {"
    "\"vg\": [ {\"vg_name\":\"orlop\", \"vg_uuid\":\"uU31KQ\", \"vg_size\":\"2143289344\", "
    "\"vg_free\":\"2038431744\", \"vg_extent_size\":\"4194304\", \"vg_missing_pv_count\":\"0\"} ],"
    "\"pv\": [ {\"pv_name\":\"/x/disk-0\", \"pe_start\":\"1048576\", \"pv_size\":\"2143289344\"} ],"
    "\"lv\": [ {\"lv_name\":\"v\", \"lv_uuid\":\"qmc6ou\", \"lv_size\":\"104857600\", "
    "\"lv_attr\":\"-wi-XX----\", \"pool_lv\":\"\", \"origin\":\"\", "
    "\"lv_tags\":\"a,orlop.io/owner=topolvm.io/x,b=c\", \"data_percent\":\"\", "
    "\"metadata_percent\":\"\"} ],"
    "\"pvseg\": [ ],"
    "\"seg\": [ {\"lv_name\":\"v\", \"segtype\":\"linear\", \"seg_start\":\"0\", "
    "\"seg_size\":\"104857600\", \"stripes\":\"1\", \"stripe_size\":\"0\", "
    "\"seg_pe_ranges\":\"/x/disk-0:0-24\"} ] },"
    /* disks that are in no group */
    "{ \"vg\": [ ], \"pv\": [ {\"pv_name\":\"/x/disk-9\", \"pe_start\":\"1048576\", "
    "\"pv_size\":\"1\"} ], \"lv\": [ ], \"pvseg\": [ ], \"seg\": [ ] } ] }";

static const char thin[] =
    "{\"report\": [ { \"vg\": [ {\"vg_name\":\"vg1\", \"vg_uuid\":\"u\", "
    "\"vg_size\":\"415236096\", "
    "\"vg_free\":\"197132288\", \"vg_extent_size\":\"4194304\", \"vg_missing_pv_count\":\"1\"} ],"
    "\"lv\": [ "
    "{\"lv_name\":\"pool0\", \"lv_size\":\"209715200\", \"lv_attr\":\"twi-aotz--\", "
    "\"pool_lv\":\"\", \"origin\":\"\", \"lv_tags\":\"\", \"data_percent\":\"12.50\", "
    "\"metadata_percent\":\"1.07\"},"
    "{\"lv_name\":\"base\", \"lv_size\":\"314572800\", \"lv_attr\":\"Vwi-a-tz--\", "
    "\"pool_lv\":\"pool0\", \"origin\":\"\", \"lv_tags\":\"\", \"data_percent\":\"0.02\"},"
    "{\"lv_name\":\"snap\", \"lv_size\":\"314572800\", \"lv_attr\":\"Vri-a-tz--\", "
    "\"pool_lv\":\"pool0\", \"origin\":\"base\", \"lv_tags\":\"\"} ] } ] }";

static struct lvm_view *view(const char *text)
{
    struct lvm_view *v = NULL;
    struct err e = {0};
    if (lvm_view_parse(text, strlen(text), &v, &e) < 0)
        fail_msg("%s", e.msg);
    return v;
}

static void test_thick(void **state)
{
    (void)state;
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = view(thick);
    assert_int_equal(v->vgs.len, 1);
    assert_int_equal(v->pvs.len, 1);
    const struct lvm_vg *vg = lvm_view_vg(v, "orlop");
    assert_non_null(vg);
    assert_int_equal(vg->size, 2143289344);
    assert_int_equal(vg->free, 2038431744);
    assert_int_equal(vg->extent, 4 << 20);
    assert_null(lvm_view_vg(v, "other"));
    const struct lvm_lv *lv = lvm_view_lv(v, "orlop", "v");
    assert_non_null(lv);
    assert_int_equal(lv->size, 104857600);
    assert_false(lvm_lv_is_thin(lv) || lvm_lv_is_thin_pool(lv) || lvm_lv_is_read_only(lv));
    assert_true(lv->data_percent < 0);
    assert_null(lvm_view_lv(v, "orlop", "w"));
    assert_null(lvm_view_lv(v, "other", "v"));
    assert_string_equal(v->segs.p[0].ranges, "/x/disk-0:0-24");
}

static void test_tags(void **state)
{
    (void)state;
    static const struct {
        const char *tags, *key, *want;
    } table[] = {
        {"a,orlop.io/owner=topolvm.io/x,b=c", "orlop.io/owner", "topolvm.io/x"},
        {"orlop.io/owner=x", "orlop.io/owner", "x"},
        {"orlop.io/owner=", "orlop.io/owner", ""},
        {"orlop.io/owner", "orlop.io/owner", NULL},
        {"orlop.io/owners=x", "orlop.io/owner", NULL},
        {"x=orlop.io/owner=y", "orlop.io/owner", NULL},
        {"", "orlop.io/owner", NULL},
        {",,a=1", "a", "1"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct lvm_lv lv = {.tags = table[i].tags, .attr = ""};
        _cleanup_free_ char *got = lvm_lv_tag(&lv, table[i].key);
        if (!table[i].want)
            assert_null(got);
        else
            assert_string_equal(got, table[i].want);
    }
}

static void test_thin(void **state)
{
    (void)state;
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = view(thin);
    assert_int_equal(lvm_view_vg(v, "vg1")->missing, 1);
    const struct lvm_lv *pool = lvm_view_lv(v, "vg1", "pool0");
    assert_true(lvm_lv_is_thin_pool(pool) && !lvm_lv_is_thin(pool));
    assert_true(pool->data_percent > 12.4 && pool->data_percent < 12.6);
    const struct lvm_lv *snap = lvm_view_lv(v, "vg1", "snap");
    assert_true(lvm_lv_is_thin(snap) && lvm_lv_is_read_only(snap));
    assert_string_equal(snap->origin, "base");
    assert_string_equal(snap->pool, "pool0");
}

static void test_odd(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } table[] = {
        {"{\"report\": [ ] }", true},
        {"{\"report\": [ {} ] }", true},
        {"{\"report\": [ {\"vg\": 5, \"lv\": {}} , 7, null ] }", true},
        {"{\"report\": [ {\"vg\": [ {\"vg_name\": \"\"} ], \"lv\": [ {} ] } ] }", true},
        {"{\"report\": [ {\"vg\": [ {\"vg_name\": \"v\", \"vg_size\": \"-5\"} ], "
         "\"lv\": [ {}, 3 ], \"seg\": [ [] ] } ] }",
         true},
        {"{\"report\": {} }", false},
        {"{}", false},
        {"[]", false},
        {"", false},
        {"{\"report\": [", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct lvm_view *v = NULL;
        struct err e = {0};
        int status = lvm_view_parse(table[i].text, strlen(table[i].text), &v, &e);
        assert_int_equal(status, table[i].good ? 0 : -1);
        assert_true(status == 0 || e.code);
        lvm_view_unref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thick),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_thin),
        cmocka_unit_test(test_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
