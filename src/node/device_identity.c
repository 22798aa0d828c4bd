/*
 * Which device this is, whatever it is called today.
 *
 *     scheme            identity                        is it unique beyond this node?
 *     wwn               naa., eui., nvme., uuid.        yes
 *     serial            vendor, model, serial number    yes, but for virtual disks
 *     device-mapper     its uuid                        yes
 *     file              backing file, sparse file       no
 *     partition         PARTUUID; or disk and number    yes; as the disk
 *     label             a name that we wrote            yes
 *     partition-table   GUID of the disk                yes
 *     path              only where it is                no
 *
 * Where the answer is no the node's name is part of it, so that two nodes never mean the same object.
 */
#include "base/str.h"
#include "node/device.h"
#include "node/sysfs.h"

/* FNV-1a with 128 bits: names, not secrets. */
static void hash_hex(const char *text, char out[33])
{
    const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
    unsigned __int128 h = ((unsigned __int128)0x6c62272e07bb0142ULL << 64) | 0x62b821756295c58dULL;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        h = (h ^ *c) * prime;
    for (int i = 31; i >= 0; i--, h >>= 4)
        out[i] = "0123456789abcdef"[h & 15];
    out[32] = '\0';
}

void device_name(struct node_device *d, unsigned turn)
{
    if (d->scheme == NODE_BY_LABEL) {
        snprintf(d->object, sizeof(d->object), "%s", d->identity);
        return;
    }
    char hex[33];
    _cleanup_free_ char *text = mem_printf("%s/%s", node_scheme_name(d->scheme), d->identity);
    _cleanup_free_ char *again = turn ? mem_printf("%s#%u", text, turn) : NULL;
    hash_hex(again ? again : text, hex);
    snprintf(d->object, sizeof(d->object), "%s-%s",
             d->type == NODE_SPARSE ? "sparse" : "blockdevice", hex);
}

/* Serial numbers of virtual disks are what somebody typed, or a count. */
static bool is_virtual(const struct node_device *d)
{
    static const char *const words[] = {"QEMU", "VMware", "VBOX", "Virtual", "Msft", "Xen", NULL};
    for (size_t i = 0; words[i]; i++) {
        if (strstr(d->vendor, words[i]) || strstr(d->model, words[i]))
            return true;
    }
    return !*d->vendor && !*d->model; /* virtio */
}

static bool has_wwn(const struct node_device *d)
{
    static const char *const prefixes[] = {"naa.", "eui.", "nvme.", "uuid.", NULL};
    if (str_starts_with(d->wwn, "nvme.1b36-")) /* QEMU's: made from the serial number */
        return false;
    for (size_t i = 0; prefixes[i]; i++) {
        const char *number = d->wwn + strlen(prefixes[i]);
        /* Some controllers say that it is 0. */
        if (str_starts_with(d->wwn, prefixes[i]) && strspn(number, "0.-") != strlen(number))
            return true;
    }
    return false;
}

static const char *partition_uuid(const struct node_device *disk, unsigned number)
{
    for (size_t i = 0; disk && i < disk->probe.n_partitions; i++) {
        if (disk->probe.partitions[i].number == number)
            return disk->probe.partitions[i].uuid;
    }
    return "";
}

static void set(struct node_device *d, enum node_scheme scheme, const char *identity)
{
    d->scheme = scheme;
    d->identity = identity;
    device_name(d, 0);
}

/* MS-DOS tables number their partitions with 32 bits of their own: not enough beyond a node. */
static bool is_guid(const char *uuid)
{
    return strlen(uuid) == 36;
}

/* What the device says of itself, without what is written on it; false: nothing. */
static bool identify_itself(struct node_device *d, const char *node, struct arena *a)
{
    bool local = is_virtual(d);
    const char *file = NULL, *mapper = NULL;
    if (d->type == NODE_SPARSE)
        set(d, NODE_BY_FILE, arena_printf(a, "%s/%s", node, d->serial));
    else if (has_wwn(d))
        set(d, NODE_BY_WWN, d->wwn);
    else if (*d->serial)
        set(d, NODE_BY_SERIAL,
            arena_printf(a, "%s%s%s/%s/%s", local ? node : "", local ? "/" : "", d->vendor,
                         d->model, d->serial));
    else if (d->type >= NODE_LVM && (mapper = node_sysfs_text(a, d->sysfs, "dm/uuid")) && *mapper)
        set(d, NODE_BY_MAPPER, mapper);
    else if (d->type == NODE_LOOP && (file = node_sysfs_text(a, d->sysfs, "loop/backing_file")) &&
             *file)
        set(d, NODE_BY_FILE, arena_printf(a, "%s/%s", node, file));
    else
        return false;
    return true;
}

static bool identify_partition(struct node_device *d, const struct node_device *disk,
                               const char *node, struct arena *a)
{
    const char *uuid = partition_uuid(disk, d->partition);
    if (is_guid(uuid))
        set(d, NODE_BY_PARTITION, uuid);
    else if (disk && (disk->scheme == NODE_BY_WWN || disk->scheme == NODE_BY_SERIAL))
        set(d, NODE_BY_PARTITION, arena_printf(a, "%s/%u", disk->identity, d->partition));
    else if (*uuid)
        set(d, NODE_BY_PARTITION, arena_printf(a, "%s/%s", node, uuid));
    else
        return false;
    return true;
}

void device_identify(struct node_device *d, const struct node_device *parent, const char *node,
                     struct arena *a)
{
    if (d->type == NODE_PARTITION ? identify_partition(d, parent, node, a)
                                  : identify_itself(d, node, a))
        return;
    if (d->probe.label[0])
        set(d, NODE_BY_LABEL, arena_strdup(a, d->probe.label));
    else if (is_guid(d->probe.table_uuid))
        set(d, NODE_BY_TABLE, arena_strdup(a, d->probe.table_uuid));
    else
        set(d, NODE_BY_PATH, arena_printf(a, "%s/%s", node, d->path));
}
