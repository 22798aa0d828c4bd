/*
 * Who uses a device: mounts, swap, and what stands on it. The disk of the operating system counts as
 * used as a whole.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"
#include "node/device.h"

enum { TABLE_LIMIT = 16 << 20, DEPTH_MAX = 16 };

/* Mounts by which the disk of the operating system is known; in a container it is seen through the
 * files that are mounted from it. */
static const char *const os_mounts[] = {"/",    "/boot",         "/boot/efi", "/etc/hosts",
                                        "/usr", "/etc/hostname", NULL};

static struct node_device *by_name(struct node_scan *s, const char *name)
{
    vec_for_each(&s->devices, d) {
        if (str_eq(d->name, name))
            return d;
    }
    return NULL;
}

static struct node_device *by_number(struct node_scan *s, const char *number)
{
    vec_for_each(&s->devices, d) {
        if (str_eq(d->number, number))
            return d;
    }
    return NULL;
}

/* By a path such as /dev/mapper/root, which may be a link. */
static struct node_device *by_path(struct node_scan *s, const struct node_places *p,
                                   const char *path)
{
    if (!str_starts_with(path, "/dev/"))
        return NULL;
    _cleanup_free_ char *here = mem_printf("%s/%s", p->dev, path + strlen("/dev/"));
    char real[PATH_MAX];
    const char *slash = strrchr(realpath(here, real) ? real : path, '/');
    return by_name(s, slash + 1);
}

/* The kernel writes blanks and backslashes in octal. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* "36 35 98:0 /root /mount opts [optional]... - type source superopts" */
static void take_mount(struct node_scan *s, const struct node_places *p, char *line)
{
    char *fields[5], *save = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        fields[i] = strtok_r(i ? NULL : line, " ", &save);
        if (!fields[i])
            return;
    }
    char *rest = save ? strstr(save, " - ") : NULL;
    char *type = rest ? strtok_r(rest + 3, " ", &save) : NULL;
    char *source = type ? strtok_r(NULL, " ", &save) : NULL;
    struct node_device *d = by_number(s, fields[2]);
    if (!d && source) { /* file systems over several devices have a number of their own */
        unescape(source);
        d = by_path(s, p, source);
    }
    if (!d)
        return;
    unescape(fields[4]);
    if (!d->mounted)
        d->mounted = arena_strdup(&s->arena, fields[4]);
    d->os |= str_in(fields[4], os_mounts);
}

static void take_swap(struct node_scan *s, const struct node_places *p, char *line)
{
    line[strcspn(line, " \t")] = '\0';
    unescape(line);
    struct node_device *d = by_path(s, p, line);
    if (d)
        d->swap = true;
}

static void each_line(struct node_scan *s, const struct node_places *p, const char *file,
                      void (*take)(struct node_scan *, const struct node_places *, char *))
{
    _cleanup_free_ char *path = mem_printf("%s/%s", p->proc, file);
    _cleanup_(str_done) struct str text = {0};
    if (file_read(path, TABLE_LIMIT, &text, NULL) < 0 || !text.p)
        return;
    for (char *line = text.p, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        take(s, p, line);
    }
}

/* What the operating system stands on is its own down to the disks. */
static void mark_below(struct node_scan *s, struct node_device *d, unsigned depth)
{
    d->os = true;
    vec_for_each(&s->devices, below) {
        _cleanup_free_ char *list = below->holders ? mem_strdup(below->holders) : NULL;
        char *save = NULL;
        for (char *name = list ? strtok_r(list, ", ", &save) : NULL; name && depth < DEPTH_MAX;
             name = strtok_r(NULL, ", ", &save)) {
            if (str_eq(name, d->name) && !below->os)
                mark_below(s, below, depth + 1);
        }
    }
    struct node_device *disk = d->parent ? by_name(s, d->parent) : NULL;
    if (disk && !disk->os && depth < DEPTH_MAX)
        mark_below(s, disk, depth + 1);
}

void device_uses(struct node_scan *s, const struct node_places *p)
{
    /* In a container that shares the host's processes, 1 sees what the host has mounted. */
    each_line(s, p, "1/mountinfo", take_mount);
    each_line(s, p, "self/mountinfo", take_mount);
    each_line(s, p, "swaps", take_swap);
    vec_for_each(&s->devices, d) {
        if (d->os)
            mark_below(s, d, 0);
    }
    vec_for_each(&s->devices, d) {
        const struct node_device *disk = d->parent ? by_name(s, d->parent) : NULL;
        d->os |= disk && disk->os;
    }
}
