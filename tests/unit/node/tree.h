/*
 * A machine made of files: sysfs, /proc and /dev in a temporary folder.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "node/device.h"
#include "unit.h"

enum { TREE_DISK = 16 << 20 }; /* size of a disk */

struct tree {
    char root[64];
    char *sys, *proc, *dev, *sparse;
    struct node_places places;
    struct node_filter filter;
    struct node_prober prober;
};

static inline void tree_put(const char *text, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void tree_put(const char *text, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *path = mem_vprintf(fmt, ap);
    va_end(ap);
    _cleanup_free_ char *folder = mem_strdup(path);
    *strrchr(folder, '/') = '\0';
    struct err e = {0};
    if (file_make_dirs(folder, 0700, &e) < 0)
        fail_msg("%s", e.msg);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static inline void tree_link(const char *target, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void tree_link(const char *target, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *path = mem_vprintf(fmt, ap);
    va_end(ap);
    _cleanup_free_ char *folder = mem_strdup(path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(file_make_dirs(folder, 0700, NULL), 0);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static inline int tree_enter(void **state)
{
    struct tree *t = NEW(struct tree);
    strcpy(t->root, "/tmp/test-node-XXXXXX");
    if (!mkdtemp(t->root))
        return -1;
    t->sys = mem_printf("%s/sys", t->root);
    t->proc = mem_printf("%s/proc", t->root);
    t->dev = mem_printf("%s/dev", t->root);
    t->sparse = mem_printf("%s/sparse", t->root);
    t->places = (struct node_places){t->sys, t->proc, t->dev};
    tree_put("", "%s/class/block/.keep", t->sys);
    tree_put("", "%s/.keep", t->dev);
    tree_put("Filename Type Size Used Priority\n", "%s/swaps", t->proc);
    tree_put("", "%s/self/mountinfo", t->proc);
    *state = t;
    return 0;
}

static inline int tree_leave(void **state)
{
    struct tree *t = *state;
    node_filter_done(&t->filter);
    node_prober_done(&t->prober);
    int status = file_remove_tree(t->root, NULL);
    free(t->sys);
    free(t->proc);
    free(t->dev);
    free(t->sparse);
    free(t);
    return status;
}

/* An attribute of a device, a partition as "sda/sda1". */
static inline void tree_set(struct tree *t, const char *device, const char *name, const char *text)
{
    tree_put(text, "%s/devices/%s/%s", t->sys, device, name);
}

/* A device of zeros. */
static inline void tree_disk(struct tree *t, const char *device, const char *number)
{
    const char *slash = strrchr(device, '/');
    const char *name = slash ? slash + 1 : device;
    _cleanup_free_ char *target = mem_printf("../../devices/%s", device);
    _cleanup_free_ char *node = mem_printf("%s/%s", t->dev, name);
    char sectors[32];
    snprintf(sectors, sizeof(sectors), "%d\n", TREE_DISK / 512);
    tree_set(t, device, "size", sectors);
    tree_set(t, device, "dev", number);
    tree_set(t, device, "ro", "0\n");
    tree_set(t, device, "stat", "1 2 3 4 5 6 7 8 9 10 11\n");
    if (!slash)
        tree_set(t, device, "queue/rotational", "1\n");
    tree_link(target, "%s/class/block/%s", t->sys, name);
    int fd = open(node, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, TREE_DISK), 0);
    close(fd);
}

static inline void tree_run(const char *input, const char *const *argv)
{
    struct spawn s = {.argv = argv, .timeout_ms = 60000};
    if (input) {
        s.input = input;
        s.input_size = strlen(input);
    }
    struct spawn_result r = {0};
    struct err e = {0};
    if (spawn_run(&s, &r, &e) < 0 || spawn_check(&s, &r, &e) < 0)
        fail_msg("%s", e.msg);
    spawn_result_done(&r);
}
#define tree_tool(input, ...) tree_run(input, (const char *const[]){__VA_ARGS__, NULL})

static inline void tree_scan(struct tree *t, struct node_scan *ret)
{
    struct node_scan_options o = {.places = &t->places,
                                  .filter = &t->filter,
                                  .node = "n1",
                                  .sparse = t->sparse,
                                  .prober = &t->prober};
    struct err e = {0};
    if (node_scan(&o, ret, &e) < 0)
        fail_msg("%s", e.msg);
}

static inline const struct node_device *tree_find(const struct node_scan *s, const char *name)
{
    vec_for_each(&s->devices, d) {
        if (str_eq(d->name, name))
            return d;
    }
    return NULL;
}

/* The one device's name, as an object; the caller's. */
static inline char *tree_object(struct tree *t, const char *name)
{
    _cleanup_(node_scan_done) struct node_scan s = {0};
    tree_scan(t, &s);
    const struct node_device *d = tree_find(&s, name);
    assert_non_null(d);
    return mem_strdup(d->object);
}
