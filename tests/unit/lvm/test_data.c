/*
 * Bytes of volumes through their segments: files stand for the disks.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lvm/data.h"
#include "unit.h"

enum { EXTENT = 8192, START = 4096, STRIPE = 4096 };

static char disks[2][64];

/*
 * v: 2 extents on disk 0 from extent 1, then 1 on disk 1 at extent 3.
 * s: striped over both, 2 extents in all, at extent 5.
 */
static struct lvm_view *view(void)
{
    struct lvm_view *v = NEW(struct lvm_view);
    atomic_init(&v->refs, 1);
    vec_push(&v->vgs, (struct lvm_vg){.name = "g", .uuid = "", .extent = EXTENT});
    for (int i = 0; i < 2; i++)
        vec_push(&v->pvs, (struct lvm_pv){.vg = "g", .name = disks[i], .start = START});
    const struct lvm_lv lvs[] = {{.vg = "g", .name = "v", .attr = "", .size = 3 * EXTENT},
                                 {.vg = "g", .name = "s", .attr = "", .size = 2 * EXTENT},
                                 {.vg = "g", .name = "t", .attr = "", .size = EXTENT}};
    for (size_t i = 0; i < ARRAY_SIZE(lvs); i++) {
        char key[8];
        snprintf(key, sizeof(key), "g/%s", lvs[i].name);
        vec_push(&v->lvs, lvs[i]);
        map_set(&v->by_name, key, (void *)v->lvs.len);
    }
    struct arena *a = &v->arena;
    vec_push(&v->segs, (struct lvm_seg){"g", "v", "linear", 0, 2 * EXTENT, 1, 0,
                                        arena_printf(a, "%s:1-2", disks[0])});
    vec_push(&v->segs, (struct lvm_seg){"g", "v", "linear", 2 * EXTENT, EXTENT, 1, 0,
                                        arena_printf(a, "%s:3-3", disks[1])});
    vec_push(&v->segs, (struct lvm_seg){"g", "s", "striped", 0, 2 * EXTENT, 2, STRIPE,
                                        arena_printf(a, "%s:5-5 %s:5-5", disks[0], disks[1])});
    vec_push(&v->segs, (struct lvm_seg){"g", "t", "thin", 0, EXTENT, 0, 0, ""});
    return v;
}

static char at(int disk, off_t offset)
{
    char c = '?';
    int fd = open(disks[disk], O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, &c, 1, offset), 1);
    close(fd);
    return c;
}

static void test_linear(void **state)
{
    (void)state;
    struct err e = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = view();
    char out[2 * EXTENT], in[2 * EXTENT];
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (char)('a' + i % 23);
    /* over the border of the segments */
    assert_int_equal(lvm_data_write(v, "g", "v", EXTENT, out, sizeof(out), &e), 0);
    assert_int_equal(lvm_data_read(v, "g", "v", EXTENT, in, sizeof(in), &e), 0);
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(at(0, START + 2 * EXTENT), out[0]);
    assert_int_equal(at(0, START + 3 * EXTENT - 1), out[EXTENT - 1]);
    assert_int_equal(at(1, START + 3 * EXTENT), out[EXTENT]);
    assert_int_equal(lvm_data_wipe(v, "g", "v", &e), 0);
    assert_int_equal(lvm_data_read(v, "g", "v", EXTENT, in, sizeof(in), &e), 0);
    memset(out, 0, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
}

static void test_striped(void **state)
{
    (void)state;
    struct err e = {0};
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = view();
    char out[2 * EXTENT], in[2 * EXTENT];
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (char)('A' + i / STRIPE);
    assert_int_equal(lvm_data_write(v, "g", "s", 0, out, sizeof(out), &e), 0);
    assert_int_equal(at(0, START + 5 * EXTENT), 'A');
    assert_int_equal(at(1, START + 5 * EXTENT), 'B');
    assert_int_equal(at(0, START + 5 * EXTENT + STRIPE), 'C');
    assert_int_equal(at(1, START + 5 * EXTENT + STRIPE), 'D');
    assert_int_equal(lvm_data_read(v, "g", "s", 100, in, sizeof(in) - 100, &e), 0);
    assert_memory_equal(in, out + 100, sizeof(in) - 100);
}

static void test_refused(void **state)
{
    (void)state;
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = view();
    char byte = 0;
    static const struct {
        const char *vg, *lv;
        uint64_t from;
        enum err_code code;
    } table[] = {
        {"g", "v", 3 * EXTENT, ERR_OUT_OF_RANGE},
        {"g", "t", 0, ERR_FAILED_PRECONDITION},
        {"g", "none", 0, ERR_NOT_FOUND},
        {"none", "v", 0, ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_int_equal(lvm_data_read(v, table[i].vg, table[i].lv, table[i].from, &byte, 1, &e),
                         -1);
        assert_int_equal(e.code, table[i].code);
    }
    /* what a report could say and no disk has */
    static const char *const odd[] = {"", " ", "nothing", "nobody:1-2", ":", "a:b"};
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        struct err e = {0};
        v->segs.p[0].ranges = odd[i];
        assert_int_equal(lvm_data_read(v, "g", "v", 0, &byte, 1, &e), -1);
        assert_int_equal(e.code, ERR_INTERNAL);
    }
    v->segs.p[2].stripe_size = 0;
    assert_int_equal(lvm_data_read(v, "g", "s", 0, &byte, 1, NULL), -1);
}

static int make_disks(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(disks[i], sizeof(disks[i]), "/tmp/orlop-lvm-XXXXXX");
        int fd = mkstemp(disks[i]);
        if (fd < 0 || ftruncate(fd, 1 << 20) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int remove_disks(void **state)
{
    (void)state;
    return unlink(disks[0]) | unlink(disks[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_striped),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_disks, remove_disks);
}
