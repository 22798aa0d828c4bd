/*
 * What sysfs says of each block device, and which links lead to it.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "node/device.h"
#include "node/sysfs.h"

enum { SECTOR = 512, LINKS_MAX = 32 }; /* sysfs counts in these, whatever the disk does */

const struct node_places node_places_machine = {"/sys", "/proc", "/dev"};
const char *const node_link_names[NODE_LINKS] = {"by-id", "by-path", "by-uuid", "by-partuuid"};

const char *node_device_type_name(enum node_device_type type)
{
    static const char *const names[] = {
        [NODE_DISK] = "disk",     [NODE_PARTITION] = "partition",
        [NODE_SPARSE] = "sparse", [NODE_LOOP] = "loop",
        [NODE_LVM] = "lvm",       [NODE_CRYPT] = "crypt",
        [NODE_DM] = "dm",         [NODE_MPATH] = "mpath",
    };
    return names[type];
}

const char *node_scheme_name(enum node_scheme scheme)
{
    static const char *const names[] = {
        [NODE_BY_WWN] = "wwn",
        [NODE_BY_SERIAL] = "serial",
        [NODE_BY_LABEL] = "label",
        [NODE_BY_PARTITION] = "partition",
        [NODE_BY_TABLE] = "partition-table",
        [NODE_BY_MAPPER] = "device-mapper",
        [NODE_BY_FILE] = "file",
        [NODE_BY_PATH] = "path",
    };
    return names[scheme];
}

static const char *text_or(struct arena *a, const char *dir, const char *name, const char *other)
{
    const char *text = node_sysfs_text(a, dir, name);
    return text && *text ? text : other;
}

/*
 * Memory, CDs and floppies, paths of a multipath NVMe that the kernel itself hides, and what has no
 * size: nothing of that is a disk to anybody.
 */
static bool is_disk(const char *dir, const char *name, struct arena *a)
{
    static const char *const never[] = {"ram", "zram", "sr", "fd", NULL};
    size_t letters = strcspn(name, "0123456789");
    for (size_t i = 0; never[i]; i++) {
        if (strlen(never[i]) == letters && strncmp(name, never[i], letters) == 0)
            return false;
    }
    return node_sysfs_number(dir, "size", 0) > 0 && node_sysfs_number(dir, "hidden", 0) == 0 &&
           !str_eq(text_or(a, dir, "device/type", ""), "5");
}

static enum node_device_type type_of(const char *dir, const char *name, struct arena *a)
{
    if (node_sysfs_has(dir, "partition"))
        return NODE_PARTITION;
    if (str_starts_with(name, "loop"))
        return NODE_LOOP;
    if (!node_sysfs_has(dir, "dm"))
        return NODE_DISK;
    const char *uuid = text_or(a, dir, "dm/uuid", "");
    return str_starts_with(uuid, "LVM-")     ? NODE_LVM
           : str_starts_with(uuid, "CRYPT-") ? NODE_CRYPT
           : str_starts_with(uuid, "mpath-") ? NODE_MPATH
                                             : NODE_DM;
}

/* The serial number of a SCSI disk is a page of binary data: 4 bytes of header, then text. */
static const char *page_80(struct arena *a, const char *dir)
{
    _cleanup_free_ char *path = mem_printf("%s/device/vpd_pg80", dir);
    FILE *f = fopen(path, "re");
    if (!f)
        return "";
    char page[256];
    size_t n = fread(page, 1, sizeof(page), f), from = 4;
    fclose(f);
    while (from < n && page[from] == ' ')
        from++;
    while (n > from && (page[n - 1] == ' ' || page[n - 1] == '\0'))
        n--;
    if (from >= n)
        return "";
    char *text = arena_copy(a, page + from, n - from);
    for (char *c = text; *c; c++) {
        if (*c <= ' ' || *c >= 0x7f)
            *c = '_';
    }
    return text;
}

/* A disk's own words; a partition has those of its disk. */
static void read_words(struct node_device *d, const char *dir, struct arena *a)
{
    d->vendor = text_or(a, dir, "device/vendor", "");
    d->model = text_or(a, dir, "device/model", "");
    d->firmware = text_or(a, dir, "device/rev", text_or(a, dir, "device/firmware_rev", ""));
    d->wwn = text_or(a, dir, "wwid", text_or(a, dir, "device/wwid", ""));
    d->serial = text_or(a, dir, "serial", text_or(a, dir, "device/serial", ""));
    if (!*d->serial)
        d->serial = page_80(a, dir);
    if (str_starts_with(d->vendor, "0x")) /* virtio's number of the driver */
        d->vendor = "";
}

static void read_queue(struct node_device *d, const char *dir)
{
    d->logical_sector = (unsigned)node_sysfs_number(dir, "queue/logical_block_size", SECTOR);
    d->physical_sector =
        (unsigned)node_sysfs_number(dir, "queue/physical_block_size", d->logical_sector);
    d->hardware_sector =
        (unsigned)node_sysfs_number(dir, "queue/hw_sector_size", d->logical_sector);
    uint64_t rotates = node_sysfs_number(dir, "queue/rotational", 2);
    d->rotational = rotates == 1;
    d->rotation_known = rotates < 2;
    d->removable = node_sysfs_number(dir, "removable", 0) == 1;
}

static void read_device(struct node_scan *s, const struct node_places *p, const char *name)
{
    struct arena *a = &s->arena;
    _cleanup_free_ char *link = mem_printf("%s/class/block/%s", p->sys, name);
    char dir[PATH_MAX];
    if (!realpath(link, dir) || !is_disk(dir, name, a))
        return; /* the first: it went while we looked */
    struct node_device d = {.name = arena_strdup(a, name),
                            .sysfs = arena_strdup(a, dir),
                            .number = text_or(a, dir, "dev", ""),
                            .sequence = text_or(a, dir, "diskseq", ""),
                            .type = type_of(dir, name, a),
                            .why = ""};
    char *path = arena_printf(a, "%s/%s", p->dev, name);
    for (char *c = path + strlen(p->dev) + 1; *c; c++) {
        if (*c == '!') /* sysfs' way to write a slash in a name */
            *c = '/';
    }
    d.path = path;
    uint64_t sectors = node_sysfs_number(dir, "size", 0);
    d.size = sectors > UINT64_MAX / SECTOR ? 0 : sectors * SECTOR;
    d.read_only = node_sysfs_number(dir, "ro", 0) == 1;
    d.holders = node_sysfs_names(a, dir, "holders");
    if (d.type == NODE_PARTITION) {
        d.partition = (unsigned)node_sysfs_number(dir, "partition", 0);
        *strrchr(dir, '/') = '\0';
        const char *slash = strrchr(dir, '/');
        d.parent = arena_strdup(a, slash ? slash + 1 : dir);
        d.read_only |= node_sysfs_number(dir, "ro", 0) == 1;
    }
    read_words(&d, dir, a);
    read_queue(&d, dir);
    vec_push(&s->devices, d);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Links of one folder, such as /dev/disk/by-id, to the devices that they lead to. */
static void read_links(struct node_scan *s, const struct node_places *p, enum node_link kind)
{
    _cleanup_free_ char *folder = mem_printf("%s/disk/%s", p->dev, node_link_names[kind]);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        _cleanup_free_ char *link = mem_printf("%s/%s", folder, entry->d_name);
        char target[PATH_MAX];
        ssize_t n = readlink(link, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        const char *slash = strrchr(target, '/');
        vec_for_each(&s->devices, d) {
            if (str_eq(d->name, slash ? slash + 1 : target) && d->links[kind].len < LINKS_MAX)
                vec_push(&d->links[kind], arena_strdup(&s->arena, link));
        }
    }
    closedir(dir);
    vec_for_each(&s->devices, d) {
        if (d->links[kind].len)
            qsort(d->links[kind].p, d->links[kind].len, sizeof(*d->links[kind].p), compare_texts);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(((const struct node_device *)a)->name, ((const struct node_device *)b)->name);
}

int device_list(struct node_scan *s, const struct node_places *p, struct err *e)
{
    _cleanup_free_ char *folder = mem_printf("%s/class/block", p->sys);
    DIR *dir = opendir(folder);
    if (!dir)
        return err_errno(e, errno, "cannot list block devices in %s", folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            read_device(s, p, entry->d_name);
    }
    closedir(dir);
    if (s->devices.len)
        qsort(s->devices.p, s->devices.len, sizeof(*s->devices.p), compare_names);
    vec_for_each(&s->devices, d) {
        vec_for_each(&s->devices, part)
            d->partitions += part->parent && str_eq(part->parent, d->name);
    }
    for (int kind = 0; kind < NODE_LINKS; kind++)
        read_links(s, p, (enum node_link)kind);
    return 0;
}
