/*
 * What is read from devices, how it is handed over, and how it is wiped.
 */
#include "node/label.h"
#include "node/wipe.h"
#include "tree.h"

static char *file_of(struct tree *t, const char *name, off_t size)
{
    char *path = mem_printf("%s/%s", t->root, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
    return path;
}

static void test_text(void **state)
{
    struct tree *t = *state;
    _cleanup_free_ char *path = file_of(t, "disk", TREE_DISK);
    tree_tool("label: gpt\nsize=1M, uuid=11111111-2222-3333-4444-555555555555\nsize=1M\n", "sfdisk",
              "-q", path);
    struct node_probe probe, again;
    node_probe_read(path, &probe);
    assert_false(probe.failed);
    assert_string_equal(probe.table, "gpt");
    assert_int_equal(probe.n_partitions, 2);
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    node_probe_format(&probe, f);
    fclose(f);
    struct err e = {0};
    assert_int_equal(node_probe_parse(text, &again, &e), 0);
    assert_string_equal(again.table, probe.table);
    assert_string_equal(again.table_uuid, probe.table_uuid);
    assert_int_equal(again.n_partitions, 2);
    assert_int_equal(again.partitions[0].number, 1);
    assert_string_equal(again.partitions[0].uuid, "11111111-2222-3333-4444-555555555555");
    node_probe_done(&again);
    node_probe_done(&probe);

    /* Of a text that was cut off nothing is believed. */
    for (size_t cut = 0; cut + 1 < n; cut++) {
        _cleanup_free_ char *part = mem_strndup(text, cut);
        if (node_probe_parse(part, &again, &e) == 0 && !str_eq(part + cut - 3, "END"))
            fail_msg("taken: %s", part);
        else
            node_probe_done(&again);
    }
    free(text);
}

static void test_bad_text(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "END=1\n",
                                      "WHAT=1\nEND\n",
                                      "TYPE\nEND\n",
                                      "END\nTYPE=x\n",
                                      "PARTITION=x:y\nEND\n",
                                      "PARTITION=1\nEND\n",
                                      "PARTITION=99999999:u\nEND\n"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct node_probe probe;
        struct err e = {0};
        if (node_probe_parse(bad[i], &probe, &e) == 0)
            fail_msg("taken: %s", bad[i]);
    }
    struct str many = {0};
    for (int i = 1; i <= 1000; i++)
        str_appendf(&many, "PARTITION=%d:%0100d\n", i, i);
    str_append(&many,
               "TYPE=\033[31mred and far too long a name for any file system that there is\nEND\n");
    struct node_probe probe;
    assert_int_equal(node_probe_parse(str_get(&many), &probe, NULL), 0);
    assert_int_equal(probe.n_partitions, NODE_PARTITIONS_MAX);
    assert_true(strlen(probe.type) < sizeof(probe.type) && probe.type[0] == '?');
    node_probe_done(&probe);
    str_done(&many);
}

static void test_unreadable(void **state)
{
    struct tree *t = *state;
    struct node_probe probe;
    _cleanup_free_ char *none = mem_printf("%s/none", t->root);
    node_probe_read(none, &probe);
    assert_true(probe.failed);
    assert_non_null(strstr(probe.error, "No such file"));
    struct node_prober prober = {.program = "/nonexistent/orlop-node"};
    node_prober_read(&prober, none, "state", &probe);
    assert_true(probe.failed);
    prober.program = "/bin/echo"; /* says something else */
    node_prober_read(&prober, none, "other", &probe);
    assert_true(probe.failed);
    /* It is left alone for a while, longer each time, and then tried again. */
    prober.program = NULL;
    tree_put("now it can be read", "%s", none);
    unsigned scans = 0;
    for (; probe.failed && scans < 10; scans++)
        node_prober_read(&prober, none, "other", &probe);
    assert_int_equal(scans, 2);
    node_prober_done(&prober);
}

static void assert_empty(const char *path)
{
    struct node_probe probe;
    node_probe_read(path, &probe);
    assert_false(probe.failed || probe.several);
    assert_string_equal(probe.type, "");
    assert_string_equal(probe.table, "");
    node_probe_done(&probe);
}

/* Each tool leaves something, and nothing of it is left. */
static void test_wipe(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    _cleanup_free_ char *path = file_of(t, "disk", TREE_DISK);
    tree_tool(NULL, "mkfs.ext4", "-q", "-F", path);
    assert_int_equal(node_wipe(path, &e), 0);
    assert_empty(path);
    tree_tool(NULL, "mkswap", path);
    assert_int_equal(node_wipe(path, &e), 0);
    assert_empty(path);
    tree_tool("label: gpt\nsize=1M\n", "sfdisk", "-q", path);
    assert_int_equal(node_wipe(path, &e), 0);
    assert_empty(path);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, TREE_DISK);
    _cleanup_free_ char *small = file_of(t, "small", 1536 << 10);
    tree_tool(NULL, "mkswap", small);
    assert_int_equal(node_wipe(small, &e), 0);
    assert_empty(small);
}

static void test_wipe_refuses(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    _cleanup_free_ char *none = mem_printf("%s/none", t->root);
    assert_int_equal(node_wipe(none, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(node_wipe("/dev/null", &e), -1);
    _cleanup_free_ char *path = file_of(t, "disk", TREE_DISK), *link = mem_printf("%s/l", t->root);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(node_wipe(link, &e), -1);
    assert_int_equal(node_wipe_with("/bin/false", path, &e), -1);
    assert_int_equal(node_label_write(none, "x", &e), -1);
    /* Somebody has the file open. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(node_wipe(path, &e), -1);
    assert_string_equal(e.reason, "Busy");
    close(fd);
    assert_int_equal(node_wipe(path, &e), 0);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_enter, tree_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_text), cmocka_unit_test(test_bad_text), IN_TREE(test_unreadable),
        IN_TREE(test_wipe), IN_TREE(test_wipe_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
