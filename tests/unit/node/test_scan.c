/*
 * What is found, what is offered, and why not.
 */
#include "node/label.h"
#include "node/sparse.h"
#include "tree.h"

static char *device_path(struct tree *t, const char *name)
{
    return mem_printf("%s/%s", t->dev, name);
}

/* Things that a person can do to the disk "sda", and the reason for which it is then not offered; ""
 * is no object at all, NULL is that it may be claimed. */

static void nothing(struct tree *t)
{
    (void)t;
}

static void mount_it(struct tree *t)
{
    tree_put("36 1 8:0 / /mnt/a\\040b rw - ext4 /dev/sda rw\n", "%s/self/mountinfo", t->proc);
}

static void mount_on_host(struct tree *t)
{
    tree_put("36 1 8:0 / /data rw shared:1 - ext4 /dev/sda rw\n", "%s/1/mountinfo", t->proc);
}

static void mount_as_source(struct tree *t)
{
    tree_link("../sda", "%s/mapper/data", t->dev);
    tree_put("36 1 0:40 / /data rw - btrfs /dev/mapper/data rw\n", "%s/self/mountinfo", t->proc);
}

static void mount_as_root(struct tree *t)
{
    tree_put("36 1 8:0 / / rw - ext4 /dev/sda rw\n", "%s/self/mountinfo", t->proc);
}

static void bad_mounts(struct tree *t)
{
    tree_put("36\n36 1\n36 1 8:0\n\n36 1 8:0 /\n - - -\n", "%s/self/mountinfo", t->proc);
}

static void swap_to(struct tree *t)
{
    tree_put("Filename Type Size Used Priority\n/dev/sda partition 1 0 -2\n", "%s/swaps", t->proc);
}

static void hold_by_lvm(struct tree *t)
{
    tree_link("../../dm-0", "%s/devices/sda/holders/dm-0", t->sys);
}

static void partition_it(struct tree *t)
{
    tree_disk(t, "sda/sda1", "8:1\n");
    tree_set(t, "sda/sda1", "partition", "1\n");
}

static void make_read_only(struct tree *t)
{
    tree_set(t, "sda", "ro", "1\n");
}

static void make_removable(struct tree *t)
{
    tree_set(t, "sda", "removable", "1\n");
}

static void make_empty(struct tree *t)
{
    tree_set(t, "sda", "size", "0\n");
}

static void make_size_nonsense(struct tree *t)
{
    tree_set(t, "sda", "size", "99999999999999999999999\n");
}

static void hide(struct tree *t)
{
    tree_set(t, "sda", "hidden", "1\n");
}

static void make_cd(struct tree *t)
{
    tree_set(t, "sda", "device/type", "5\n");
}

static void make_ext4(struct tree *t)
{
    _cleanup_free_ char *path = device_path(t, "sda");
    tree_tool(NULL, "mkfs.ext4", "-q", "-F", path);
}

static void make_swap(struct tree *t)
{
    _cleanup_free_ char *path = device_path(t, "sda");
    tree_tool(NULL, "mkswap", path);
}

static void make_gpt(struct tree *t)
{
    _cleanup_free_ char *path = device_path(t, "sda");
    tree_tool("label: gpt\n", "sfdisk", "-q", path);
}

static void make_gpt_partition(struct tree *t)
{
    _cleanup_free_ char *path = device_path(t, "sda");
    tree_tool("label: gpt\nsize=1M\n", "sfdisk", "-q", path);
}

static void lose_node(struct tree *t)
{
    _cleanup_free_ char *path = device_path(t, "sda");
    assert_int_equal(unlink(path), 0);
}

static void exclude_it(struct tree *t)
{
    vec_push(&t->filter.exclude_paths, "*/sd?");
}

static void exclude_by_link(struct tree *t)
{
    tree_link("../../sda", "%s/disk/by-id/wwn-0x5000", t->dev);
    vec_push(&t->filter.exclude_paths, "*/by-id/wwn-*");
}

static void include_others(struct tree *t)
{
    vec_push(&t->filter.include_paths, "*/nvme*");
}

static void include_it(struct tree *t)
{
    vec_push(&t->filter.include_paths, "*/nvme*");
    vec_push(&t->filter.include_paths, "*/sda");
}

static void exclude_vendor(struct tree *t)
{
    tree_set(t, "sda", "device/vendor", "ATA     \n");
    vec_push(&t->filter.exclude_vendors, "ata");
}

static void include_vendor(struct tree *t)
{
    tree_set(t, "sda", "device/vendor", "ATA     \n");
    vec_push(&t->filter.include_vendors, "Seagate");
}

static void same_disk_twice(struct tree *t)
{
    tree_set(t, "sda", "device/wwid", "naa.5000c5008e5f6a2b\n");
    tree_disk(t, "sdb", "8:16\n");
    tree_set(t, "sdb", "device/wwid", "naa.5000c5008e5f6a2b\n");
}

static const struct {
    const char *name;
    void (*act)(struct tree *t);
    const char *obstacle, *why;
} cases[] = {
    {"free", nothing, NULL, "label is written"},
    {"mounted", mount_it, "Mounted", "/mnt/a b"},
    {"mounted by the host", mount_on_host, "Mounted", "/data"},
    {"mounted under an anonymous number", mount_as_source, "Mounted", "/data"},
    {"operating system", mount_as_root, "", NULL},
    {"damaged mount table", bad_mounts, NULL, ""},
    {"swap in use", swap_to, "Swap", "swap"},
    {"held", hold_by_lvm, "Held", "dm-0"},
    {"partitioned", partition_it, "Partitioned", "partitions"},
    {"read-only", make_read_only, "ReadOnly", "written"},
    {"removable", make_removable, "Removable", "taken out"},
    {"no size", make_empty, "", NULL},
    {"nonsense for a size", make_size_nonsense, "", NULL},
    {"hidden", hide, "", NULL},
    {"CD", make_cd, "", NULL},
    {"file system", make_ext4, "Signature", "ext4"},
    {"swap space", make_swap, "Signature", "swap"},
    {"empty partition table", make_gpt, "Signature", "gpt"},
    {"partition table, kernel knows nothing", make_gpt_partition, "Partitioned", ""},
    {"cannot be opened", lose_node, "Unreadable", "opened"},
    {"excluded", exclude_it, "", NULL},
    {"excluded by a link", exclude_by_link, "", NULL},
    {"others included", include_others, "", NULL},
    {"included", include_it, NULL, ""},
    {"vendor excluded", exclude_vendor, "", NULL},
    {"other vendors included", include_vendor, "", NULL},
    {"two paths to one disk", same_disk_twice, "SeveralPaths", "multipath"},
};

static void test_obstacles(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        void *made;
        assert_int_equal(tree_enter(&made), 0);
        struct tree *t = made;
        tree_disk(t, "sda", "8:0\n");
        cases[i].act(t);
        struct node_scan s = {0};
        tree_scan(t, &s);
        const struct node_device *d = tree_find(&s, "sda");
        const char *want = cases[i].obstacle;
        if (want && !*want) {
            if (d)
                fail_msg("%s: has an object", cases[i].name);
        } else if (!d) {
            fail_msg("%s: has no object", cases[i].name);
        } else {
            if ((d->obstacle == NULL) != (want == NULL) || (want && !str_eq(d->obstacle, want)))
                fail_msg("%s: %s", cases[i].name, d->obstacle ? d->obstacle : "claimable");
            if (!strstr(d->why, cases[i].why))
                fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].name, d->why, cases[i].why);
        }
        node_scan_done(&s);
        assert_int_equal(tree_leave(&made), 0);
    }
}

static void test_never(void **state)
{
    struct tree *t = *state;
    static const char *const names[] = {"ram0", "zram0", "sr0", "fd0"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        tree_disk(t, names[i], "1:1\n");
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_int_equal(s.devices.len, 0);
}

/* The root is on LVM over a partition: all of that disk, and only that disk, is the system's. */
static void test_os_below(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "sda", "8:0\n");
    tree_disk(t, "sda/sda1", "8:1\n");
    tree_set(t, "sda/sda1", "partition", "1\n");
    tree_disk(t, "sda/sda2", "8:2\n");
    tree_set(t, "sda/sda2", "partition", "2\n");
    tree_disk(t, "dm-0", "253:0\n");
    tree_set(t, "dm-0", "dm/uuid", "LVM-abc\n");
    tree_link("../../../dm-0", "%s/devices/sda/sda2/holders/dm-0", t->sys);
    tree_disk(t, "sdb", "8:16\n");
    tree_put("36 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n", "%s/self/mountinfo", t->proc);
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_int_equal(s.devices.len, 1);
    assert_string_equal(s.devices.p[0].name, "sdb");
}

static void test_facts(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "sda", "8:0\n");
    tree_set(t, "sda", "device/vendor", "ATA     \n");
    tree_set(t, "sda", "device/model", "ST4000\033[31mX \n");
    tree_set(t, "sda", "device/rev", "0001\n");
    tree_set(t, "sda", "device/wwid", "naa.5000c5008e5f6a2b\n");
    tree_set(t, "sda", "queue/logical_block_size", "512\n");
    tree_set(t, "sda", "queue/physical_block_size", "4096\n");
    tree_link("../../sda", "%s/disk/by-id/wwn-b", t->dev);
    tree_link("../../sda", "%s/disk/by-id/ata-a", t->dev);
    tree_link("../../sdz", "%s/disk/by-id/other", t->dev);
    tree_link("../../sda", "%s/disk/by-path/pci-1", t->dev);
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    const struct node_device *d = tree_find(&s, "sda");
    assert_non_null(d);
    assert_string_equal(d->vendor, "ATA");
    assert_string_equal(d->model, "ST4000?[31mX");
    assert_string_equal(d->firmware, "0001");
    assert_int_equal(d->size, TREE_DISK);
    assert_int_equal(d->physical_sector, 4096);
    assert_true(d->rotational);
    assert_int_equal(d->links[NODE_LINK_ID].len, 2);
    assert_true(str_ends_with(d->links[NODE_LINK_ID].p[0], "ata-a"));
    assert_int_equal(d->links[NODE_LINK_PATH].len, 1);
    assert_int_equal(d->scheme, NODE_BY_WWN);
    assert_null(d->obstacle);
}

/* Identity */

static const struct {
    const char *name;
    const char *attributes[4][2];
    enum node_scheme scheme;
    bool local; /* another node with such a device means another object */
} identities[] = {
    {"WWN", {{"device/wwid", "naa.5000c5008e5f6a2b"}}, NODE_BY_WWN, false},
    {"NVMe", {{"wwid", "eui.0025385881b40a1c"}}, NODE_BY_WWN, false},
    {"WWN of zeros", {{"wwid", "eui.0000000000000000"}}, NODE_BY_PATH, true},
    {"QEMU's NVMe", {{"wwid", "nvme.1b36-6162-51454d55-00000001"}}, NODE_BY_PATH, true},
    {"serial number",
     {{"device/vendor", "ATA"}, {"device/model", "WD40"}, {"device/serial", "WX1"}},
     NODE_BY_SERIAL,
     false},
    {"QEMU's serial number",
     {{"device/vendor", "ATA"}, {"device/model", "QEMU HARDDISK"}, {"device/serial", "QM00001"}},
     NODE_BY_SERIAL,
     true},
    {"virtio's serial number", {{"serial", "disk1"}}, NODE_BY_SERIAL, true},
    {"nothing", {{NULL}}, NODE_BY_PATH, true},
};

static void test_identity(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(identities); i++) {
        void *made;
        assert_int_equal(tree_enter(&made), 0);
        struct tree *t = made;
        tree_disk(t, "sda", "8:0\n");
        for (size_t k = 0; k < 4 && identities[i].attributes[k][0]; k++)
            tree_set(t, "sda", identities[i].attributes[k][0], identities[i].attributes[k][1]);
        struct node_scan s = {0};
        tree_scan(t, &s);
        struct node_device d = s.devices.p[0];
        if (d.scheme != identities[i].scheme)
            fail_msg("%s: by %s", identities[i].name, node_scheme_name(d.scheme));
        assert_true(str_starts_with(d.object, "blockdevice-"));
        assert_int_equal(strlen(d.object), strlen("blockdevice-") + 32);
        char here[NODE_OBJECT_MAX];
        strcpy(here, d.object);
        device_identify(&d, NULL, "n2", &s.arena);
        if (str_eq(here, d.object) == identities[i].local)
            fail_msg("%s: local is %d", identities[i].name, !identities[i].local);
        node_scan_done(&s);
        assert_int_equal(tree_leave(&made), 0);
    }
}

static void test_moved(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "sda", "8:0\n");
    tree_set(t, "sda", "device/wwid", "naa.5000c5008e5f6a2b\n");
    _cleanup_free_ char *before = tree_object(t, "sda");
    _cleanup_free_ char *old = mem_printf("%s/class/block/sda", t->sys);
    unlink(old);
    tree_disk(t, "sdc", "8:32\n");
    tree_set(t, "sdc", "device/wwid", "naa.5000c5008e5f6a2b\n");
    tree_disk(t, "sda", "8:0\n");
    tree_set(t, "sda", "device/wwid", "naa.5000c5008e5f0000\n");
    _cleanup_free_ char *after = tree_object(t, "sdc"), *other = tree_object(t, "sda");
    assert_string_equal(before, after);
    assert_string_not_equal(before, other);
}

static bool one_is_labelled(void *context, const char *object)
{
    return str_eq(context, object);
}

/* A disk without identity is labelled when it is claimed; from then on it may move. */
static void test_label(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "vdb", "254:16\n");
    _cleanup_free_ char *name = tree_object(t, "vdb");
    _cleanup_free_ char *path = device_path(t, "vdb");
    struct err e = {0};
    assert_int_equal(node_label_write(path, name, &e), 0);
    tree_set(t, "vdb", "stat", "1 2 3 4 6 6 7 8 9 10 11\n");
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_int_equal(s.devices.p[0].scheme, NODE_BY_LABEL);
    assert_string_equal(s.devices.p[0].object, name);
    assert_null(s.devices.p[0].obstacle);

    /* It moves to vdc, and a blank one comes where it was. */
    tree_disk(t, "vdc", "254:32\n");
    _cleanup_free_ char *moved = device_path(t, "vdc");
    assert_int_equal(rename(path, moved), 0);
    tree_disk(t, "vdb", "254:16\n");
    tree_set(t, "vdb", "diskseq", "2\n");
    struct node_scan_options o = {.places = &t->places,
                                  .filter = &t->filter,
                                  .node = "n1",
                                  .prober = &t->prober,
                                  .labelled = one_is_labelled,
                                  .context = name};
    _cleanup_(node_scan_done) struct node_scan again = {0};
    assert_int_equal(node_scan(&o, &again, &e), 0);
    assert_int_equal(again.devices.len, 2);
    assert_string_equal(tree_find(&again, "vdc")->object, name);
    assert_string_not_equal(tree_find(&again, "vdb")->object, name);
    assert_null(tree_find(&again, "vdb")->obstacle);

    /* It is gone: the blank one still is not it. */
    _cleanup_free_ char *link = mem_printf("%s/class/block/vdc", t->sys);
    unlink(link);
    _cleanup_(node_scan_done) struct node_scan alone = {0};
    assert_int_equal(node_scan(&o, &alone, &e), 0);
    assert_int_equal(alone.devices.len, 1);
    assert_string_not_equal(alone.devices.p[0].object, name);
}

static void test_label_format(void **state)
{
    (void)state;
    unsigned char block[NODE_LABEL_SIZE];
    char name[NODE_LABEL_NAME];
    node_label_encode("blockdevice-1", block);
    assert_true(node_label_decode(block, name));
    assert_string_equal(name, "blockdevice-1");
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 1;
        assert_false(node_label_decode(block, name));
        block[i] ^= 1;
    }
    node_label_encode("../../etc/passwd", block);
    assert_false(node_label_decode(block, name));
    node_label_encode("", block);
    assert_false(node_label_decode(block, name));
}

static void test_partitions(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "sda", "8:0\n");
    _cleanup_free_ char *path = device_path(t, "sda");
    tree_tool("label: gpt\nsize=2M, uuid=11111111-2222-3333-4444-555555555555\nsize=2M\n", "sfdisk",
              "-q", path);
    tree_disk(t, "sda/sda1", "8:1\n");
    tree_set(t, "sda/sda1", "partition", "1\n");
    tree_disk(t, "sda/sda2", "8:2\n");
    tree_set(t, "sda/sda2", "partition", "2\n");
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_int_equal(s.devices.len, 3);
    const struct node_device *disk = tree_find(&s, "sda"), *one = tree_find(&s, "sda1");
    assert_int_equal(disk->scheme, NODE_BY_TABLE);
    assert_string_equal(disk->obstacle, "Partitioned");
    assert_int_equal(one->scheme, NODE_BY_PARTITION);
    assert_string_equal(one->identity, "11111111-2222-3333-4444-555555555555");
    assert_string_equal(one->parent, "sda");
    assert_null(one->obstacle);
    assert_string_not_equal(one->object, tree_find(&s, "sda2")->object);
}

/* What nobody wrote to is not read again. */
static void test_memory(void **state)
{
    struct tree *t = *state;
    tree_disk(t, "sda", "8:0\n");
    free(tree_object(t, "sda"));
    make_ext4(t);
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_null(s.devices.p[0].obstacle); /* sysfs counts no write */
    tree_set(t, "sda", "stat", "1 2 3 4 99 6 7 8 9 10 11\n");
    _cleanup_(node_scan_done) struct node_scan again = {0};
    tree_scan(t, &again);
    assert_string_equal(again.devices.p[0].obstacle, "Signature");
}

/* Sparse files */

static void test_sparse(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    struct node_sparse want;
    assert_int_equal(node_sparse_parse("2x8Mi", &want, &e), 0);
    assert_int_equal(node_sparse_make(t->sparse, &want, &e), 0);
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    assert_int_equal(s.devices.len, 2);
    assert_true(str_starts_with(s.devices.p[0].object, "sparse-"));
    assert_int_equal(s.devices.p[0].size, 8 << 20);
    assert_null(s.devices.p[0].obstacle);
    tree_put("nothing of ours", "%s/5-x.img", t->sparse);
    tree_put("left by a crash", "%s/.new", t->sparse);

    assert_int_equal(node_sparse_parse("3x16Mi", &want, &e), 0);
    assert_int_equal(node_sparse_make(t->sparse, &want, &e), 0);
    assert_int_equal(node_sparse_parse("1x4Mi", &want, &e), 0);
    assert_int_equal(node_sparse_make(t->sparse, &want, &e), 0);
    _cleanup_(node_scan_done) struct node_scan more = {0};
    tree_scan(t, &more);
    assert_int_equal(more.devices.len, 3);
    vec_for_each(&s.devices, d) {
        const struct node_device *same = node_scan_find(&more, d->object);
        assert_non_null(same);
        assert_int_equal(same->size, 16 << 20);
    }

    /* A file that is removed comes back as another device. */
    assert_int_equal(unlink(s.devices.p[0].path), 0);
    assert_int_equal(node_sparse_parse("3x16Mi", &want, &e), 0);
    assert_int_equal(node_sparse_make(t->sparse, &want, &e), 0);
    _cleanup_(node_scan_done) struct node_scan last = {0};
    tree_scan(t, &last);
    assert_int_equal(last.devices.len, 3);
    assert_null(node_scan_find(&last, s.devices.p[0].object));
}

/* A loop device on a sparse file is no device of its own, and keeps the file from being offered. */
static void test_sparse_attached(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    struct node_sparse want = {1, 8 << 20};
    assert_int_equal(node_sparse_make(t->sparse, &want, &e), 0);
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    tree_disk(t, "loop3", "7:3\n");
    tree_set(t, "loop3", "loop/backing_file", s.devices.p[0].path);
    tree_disk(t, "loop4", "7:4\n");
    tree_set(t, "loop4", "loop/backing_file", "/srv/disk.img\n");
    _cleanup_(node_scan_done) struct node_scan more = {0};
    tree_scan(t, &more);
    assert_int_equal(more.devices.len, 2);
    assert_null(tree_find(&more, "loop3"));
    assert_int_equal(tree_find(&more, "loop4")->scheme, NODE_BY_FILE);
    assert_string_equal(node_scan_find(&more, s.devices.p[0].object)->obstacle, "Held");
}

static void test_sparse_parse(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        "3",        "x10Gi",  "3x",     "3x0",   "3x1Ki",
                                      "-1x10Gi", "1001x1Gi", "3x-1Gi", "3 x1Gi", "3xten", "3x1e30"};
    struct node_sparse s;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        if (node_sparse_parse(bad[i], &s, &e) == 0)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_true(e.msg[0]);
    }
    assert_int_equal(node_sparse_parse("3x10Gi", &s, NULL), 0);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.size, 10ULL << 30);
    assert_int_equal(node_sparse_parse("0x1Gi", &s, NULL), 0);
}

static void test_overcommitted(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    struct node_sparse small = {1, 1 << 20}, large = {2, 8ULL << 40};
    assert_int_equal(node_sparse_overcommitted(t->sparse), 0);
    assert_int_equal(node_sparse_make(t->sparse, &small, &e), 0);
    assert_int_equal(node_sparse_overcommitted(t->sparse), 0);
    assert_int_equal(node_sparse_make(t->sparse, &large, &e), 0);
    assert_true(node_sparse_overcommitted(t->sparse) > 1ULL << 40);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_enter, tree_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_obstacles),
        IN_TREE(test_never),
        IN_TREE(test_os_below),
        IN_TREE(test_facts),
        cmocka_unit_test(test_identity),
        IN_TREE(test_moved),
        IN_TREE(test_label),
        cmocka_unit_test(test_label_format),
        IN_TREE(test_partitions),
        IN_TREE(test_memory),
        IN_TREE(test_sparse),
        IN_TREE(test_sparse_attached),
        cmocka_unit_test(test_sparse_parse),
        IN_TREE(test_overcommitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
