/*
 * Reading signatures with libblkid, and the text in which a child hands them over.
 */
#include "node/probe.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "node/label.h"

void node_probe_done(struct node_probe *p)
{
    free(p->partitions);
    p->partitions = NULL;
    p->n_partitions = 0;
}

void node_probe_copy(const struct node_probe *from, struct node_probe *ret)
{
    *ret = *from;
    ret->partitions = NULL;
    if (from->n_partitions) {
        size_t size = from->n_partitions * sizeof(*from->partitions);
        ret->partitions = mem_alloc(size);
        memcpy(ret->partitions, from->partitions, size);
    }
}

/* Letters that need no quoting anywhere; what else stands on a disk becomes "?". */
static void keep(char *to, size_t size, const char *text)
{
    size_t n = 0;
    for (; text && text[n] && n + 1 < size; n++)
        to[n] = (text[n] > ' ' && text[n] < 0x7f) ? text[n] : '?';
    to[n] = '\0';
}

static void add_partition(struct node_probe *p, unsigned number, const char *uuid)
{
    if (p->n_partitions == NODE_PARTITIONS_MAX)
        return;
    p->partitions = mem_realloc_array(p->partitions, p->n_partitions + 1, sizeof(*p->partitions));
    struct node_partition *at = &p->partitions[p->n_partitions++];
    at->number = number;
    keep(at->uuid, sizeof(at->uuid), uuid);
}

static int fail(struct node_probe *p, const char *what)
{
    p->failed = true;
    snprintf(p->error, sizeof(p->error), "%s: %s", what, strerror(errno ? errno : EIO));
    return -1;
}

static void read_label(int fd, struct node_probe *p)
{
    unsigned char block[NODE_LABEL_SIZE];
    if (pread(fd, block, sizeof(block), NODE_LABEL_OFFSET) == (ssize_t)sizeof(block) &&
        !node_label_decode(block, p->label))
        p->label[0] = '\0';
}

static void read_partitions(blkid_probe pr, struct node_probe *p)
{
    blkid_partlist list = blkid_probe_get_partitions(pr);
    int n = list ? blkid_partlist_numof_partitions(list) : 0;
    for (int i = 0; i < n; i++) {
        blkid_partition part = blkid_partlist_get_partition(list, i);
        int number = blkid_partition_get_partno(part);
        if (number > 0)
            add_partition(p, (unsigned)number, blkid_partition_get_uuid(part));
    }
}

/*
 * Two passes over the two chains, for a device may have a partition table beside a file system: libblkid
 * then speaks of neither or of one, and here each is a reason to leave the device alone.
 */
static int read_signatures(blkid_probe pr, struct node_probe *p)
{
    blkid_probe_enable_superblocks(pr, 1);
    blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID |
                                              BLKID_SUBLKS_USAGE | BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(pr, 0);
    errno = 0;
    int found = blkid_do_safeprobe(pr);
    if (found == -1)
        return fail(p, "its signatures cannot be read");
    p->several = found == -2;
    const char *value;
    if (blkid_probe_lookup_value(pr, "TYPE", &value, NULL) == 0)
        keep(p->type, sizeof(p->type), value);
    if (blkid_probe_lookup_value(pr, "USAGE", &value, NULL) == 0)
        keep(p->usage, sizeof(p->usage), value);
    if (blkid_probe_lookup_value(pr, "UUID", &value, NULL) == 0)
        keep(p->uuid, sizeof(p->uuid), value);
    return 0;
}

static int read_table(blkid_probe pr, struct node_probe *p)
{
    blkid_reset_probe(pr);
    blkid_probe_enable_superblocks(pr, 0);
    blkid_probe_enable_partitions(pr, 1);
    blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC);
    errno = 0;
    int found = blkid_do_safeprobe(pr);
    if (found == -1)
        return fail(p, "its partition table cannot be read");
    p->several |= found == -2;
    const char *value;
    if (blkid_probe_lookup_value(pr, "PTTYPE", &value, NULL) == 0)
        keep(p->table, sizeof(p->table), value);
    if (blkid_probe_lookup_value(pr, "PTUUID", &value, NULL) == 0)
        keep(p->table_uuid, sizeof(p->table_uuid), value);
    if (p->table[0])
        read_partitions(pr, p);
    return 0;
}

void node_probe_read(const char *path, struct node_probe *ret)
{
    *ret = (struct node_probe){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        fail(ret, "it cannot be opened");
        return;
    }
    blkid_probe pr = blkid_new_probe();
    errno = 0;
    if (!pr || blkid_probe_set_device(pr, fd, 0, 0) != 0) {
        fail(ret, "it cannot be probed");
    } else if (read_signatures(pr, ret) == 0 && read_table(pr, ret) == 0) {
        read_label(fd, ret);
    }
    blkid_free_probe(pr);
    close(fd);
}

void node_probe_format(const struct node_probe *p, FILE *out)
{
    if (p->failed)
        fprintf(out, "ERROR=%s\n", p->error);
    if (p->several)
        fputs("SEVERAL=1\n", out);
    if (p->type[0])
        fprintf(out, "TYPE=%s\n", p->type);
    if (p->usage[0])
        fprintf(out, "USAGE=%s\n", p->usage);
    if (p->uuid[0])
        fprintf(out, "UUID=%s\n", p->uuid);
    if (p->table[0])
        fprintf(out, "TABLE=%s\n", p->table);
    if (p->table_uuid[0])
        fprintf(out, "TABLE_UUID=%s\n", p->table_uuid);
    if (p->label[0])
        fprintf(out, "LABEL=%s\n", p->label);
    for (size_t i = 0; i < p->n_partitions; i++)
        fprintf(out, "PARTITION=%u:%s\n", p->partitions[i].number, p->partitions[i].uuid);
    fputs("END\n", out); /* all of it has arrived */
}

static bool take_line(struct node_probe *p, const char *key, const char *value)
{
    struct {
        const char *key;
        char *to;
        size_t size;
    } texts[] = {
        {"TYPE", p->type, sizeof(p->type)},
        {"USAGE", p->usage, sizeof(p->usage)},
        {"UUID", p->uuid, sizeof(p->uuid)},
        {"TABLE", p->table, sizeof(p->table)},
        {"TABLE_UUID", p->table_uuid, sizeof(p->table_uuid)},
        {"LABEL", p->label, sizeof(p->label)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (str_eq(key, texts[i].key)) {
            keep(texts[i].to, texts[i].size, value);
            return true;
        }
    }
    if (str_eq(key, "ERROR")) {
        p->failed = true;
        snprintf(p->error, sizeof(p->error), "%s", value);
        return true;
    }
    if (str_eq(key, "SEVERAL")) {
        p->several = true;
        return true;
    }
    char *colon;
    unsigned long number = strtoul(value, &colon, 10);
    if (!str_eq(key, "PARTITION") || colon == value || *colon != ':' || number > 100000)
        return false;
    add_partition(p, (unsigned)number, colon + 1);
    return true;
}

int node_probe_parse(const char *text, struct node_probe *ret, struct err *e)
{
    *ret = (struct node_probe){0};
    _cleanup_free_ char *copy = mem_strdup(text);
    bool end = false;
    for (char *line = copy, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        char *equals = strchr(line, '=');
        if (str_eq(line, "END") && !*next) {
            end = true;
            break;
        }
        if (equals)
            *equals = '\0';
        if (!equals || !take_line(ret, line, equals + 1)) {
            node_probe_done(ret);
            return err_set(e, ERR_INVALID_ARGUMENT, "BadProbe", "no line of a probe: \"%.60s\"",
                           line);
        }
    }
    if (end)
        return 0;
    node_probe_done(ret);
    return err_set(e, ERR_INVALID_ARGUMENT, "BadProbe", "the probe ended in the middle");
}
