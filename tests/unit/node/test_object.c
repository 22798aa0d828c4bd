/*
 * BlockDevices as they are written, and what the machine says of itself.
 */
#include "node/claim_match.h"
#include "node/machine.h"
#include "node/object.h"
#include "tree.h"

static const struct node_name name = {"openebs", "n1", "host-1"};
static struct clock_manual now;

static const char *at(const json_t *object, const char *a, const char *b, const char *c)
{
    const char *text = json_string_value(c ? json_at(object, a, b, c) : json_at(object, a, b));
    return text ? text : "";
}

static const json_t *claimable(const json_t *object)
{
    return json_array_get(json_at(object, "status", "conditions"), 0);
}

static void scan_one(struct tree *t, struct node_scan *s)
{
    tree_disk(t, "sda", "8:0\n");
    tree_set(t, "sda", "device/wwid", "naa.5000c5008e5f6a2b\n");
    tree_set(t, "sda", "device/model", "ST4000\n");
    tree_link("../../sda", "%s/disk/by-id/wwn-b", t->dev);
    tree_scan(t, s);
    assert_int_equal(s->devices.len, 1);
    clock_manual_init(&now, 1700000000 * CLOCK_SECOND);
}

static void test_new(void **state)
{
    _cleanup_(node_scan_done) struct node_scan s = {0};
    scan_one(*state, &s);
    json_auto_t *object = node_object_new(&s.devices.p[0], &name, &now.clock);
    assert_string_equal(at(object, "metadata", "name", NULL), s.devices.p[0].object);
    assert_string_equal(at(object, "metadata", "labels", "kubernetes.io/hostname"), "host-1");
    assert_string_equal(at(object, "spec", "nodeAttributes", "nodeName"), "n1");
    assert_string_equal(at(object, "spec", "details", "model"), "ST4000");
    assert_string_equal(at(object, "spec", "details", "driveType"), "HDD");
    assert_string_equal(at(object, "spec", "partitioned", NULL), "No");
    assert_int_equal(json_integer_value(json_at(object, "spec", "capacity", "storage")), TREE_DISK);
    assert_int_equal(json_array_size(json_at(object, "spec", "devlinks")), 1);
    assert_string_equal(at(object, "status", "claimState", NULL), "Unclaimed");
    assert_string_equal(json_str(claimable(object), "status"), "True");
    /* Nothing has changed: nothing is written. */
    clock_manual_advance(&now, 100 * CLOCK_SECOND);
    json_auto_t *again = node_object_update(object, &s.devices.p[0], &name, &now.clock);
    assert_true(json_equal(object, again));
}

/* What others wrote stays. */
static void test_update(void **state)
{
    _cleanup_(node_scan_done) struct node_scan s = {0};
    scan_one(*state, &s);
    json_auto_t *object = node_object_new(&s.devices.p[0], &name, &now.clock);
    json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    json_object_set_new(labels, NODE_DEVICE_TAG, json_string("fast"));
    json_object_set_new(json_object_get(object, "spec"), "claimRef",
                        json_pack("{s:s, s:s}", "name", "c", "uid", "u"));
    json_object_set_new(json_object_get(object, "status"), "claimState", json_string("Claimed"));
    struct node_device moved = s.devices.p[0];
    moved.path = "/dev/sdz";
    moved.mounted = "/data";
    moved.obstacle = "Mounted";
    strcpy(moved.probe.type, "ext4");
    json_auto_t *after = node_object_update(object, &moved, &name, &now.clock);
    assert_string_equal(at(after, "metadata", "labels", NODE_DEVICE_TAG), "fast");
    assert_string_equal(at(after, "spec", "claimRef", "uid"), "u");
    assert_string_equal(at(after, "spec", "path", NULL), "/dev/sdz");
    assert_string_equal(at(after, "spec", "filesystem", "mountPoint"), "/data");
    assert_string_equal(at(after, "status", "claimState", NULL), "Claimed");
    assert_string_equal(json_str(claimable(after), "reason"), "Claimed");
    json_auto_t *back = node_object_update(after, &s.devices.p[0], &name, &now.clock);
    assert_null(json_at(back, "spec", "filesystem"));
    json_auto_t *gone = node_object_gone(after, &now.clock);
    assert_string_equal(at(gone, "status", "state", NULL), "Inactive");
    assert_string_equal(at(gone, "status", "claimState", NULL), "Claimed");
    assert_string_equal(at(gone, "spec", "claimRef", "uid"), "u");
    assert_string_equal(json_str(claimable(gone), "reason"), "Inactive");
}

/* Whoever wrote claimRef may have been killed before it wrote the status. */
static void test_claim_that_was_not_said(void **state)
{
    _cleanup_(node_scan_done) struct node_scan s = {0};
    scan_one(*state, &s);
    json_auto_t *object = node_object_new(&s.devices.p[0], &name, &now.clock);
    json_object_set_new(json_object_get(object, "spec"), "claimRef",
                        json_pack("{s:s, s:s}", "name", "c", "uid", "u"));
    json_auto_t *claimed = node_object_update(object, &s.devices.p[0], &name, &now.clock);
    assert_string_equal(at(claimed, "status", "claimState", NULL), "Claimed");
    assert_string_equal(json_str(claimable(claimed), "reason"), "Claimed");
    json_object_del(object, "status");
    json_auto_t *gone = node_object_gone(object, &now.clock);
    assert_string_equal(at(gone, "status", "claimState", NULL), "Claimed");
    json_auto_t *manual = node_object_manual(object);
    assert_string_equal(at(manual, "status", "claimState", NULL), "Claimed");
    assert_string_equal(at(manual, "status", "state", NULL), "Active");
    json_object_set_new(object, "status", json_pack("{s:s}", "state", "Inactive"));
    json_object_del(json_object_get(object, "spec"), "claimRef");
    json_auto_t *away = node_object_manual(object);
    assert_string_equal(at(away, "status", "claimState", NULL), "Unclaimed");
    assert_string_equal(at(away, "status", "state", NULL), "Inactive"); /* somebody says so */
}

static void test_machine(void **state)
{
    struct tree *t = *state;
    tree_put("MemTotal:        8388608 kB\nMemAvailable:    51200 kB\n", "%s/meminfo", t->proc);
    tree_put("0.1 0.2 0.3 1/990 5\n", "%s/loadavg", t->proc);
    tree_put("1000\n", "%s/sys/kernel/pid_max", t->proc);
    json_auto_t *capacity = node_machine_capacity(&t->places, t->root);
    assert_string_equal(json_str(capacity, "memory"), "8Gi");
    assert_string_equal(json_str(capacity, "pods"), "110");
    json_auto_t *allocatable = node_machine_allocatable(capacity);
    assert_string_equal(json_str(allocatable, "memory"), "8092Mi");
    json_auto_t *info = node_machine_info(&t->places);
    assert_string_equal(json_str(info, "operatingSystem"), "linux");
    struct node_pressure p;
    node_machine_pressure(&t->places, t->root, &p);
    assert_true(p.memory && p.pid);
    assert_non_null(strstr(p.memory_text, "50 MiB"));
    tree_put("MemTotal:        8388608 kB\nMemAvailable:    5120000 kB\n", "%s/meminfo", t->proc);
    tree_put("0.1 0.2 0.3 1/90 5\n", "%s/loadavg", t->proc);
    node_machine_pressure(&t->places, t->root, &p);
    assert_false(p.memory || p.pid);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_enter, tree_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_new),
        IN_TREE(test_update),
        IN_TREE(test_claim_that_was_not_said),
        IN_TREE(test_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
