/*
 * One look at the machine, from facts to verdicts.
 */
#include "base/file.h"
#include "base/str.h"
#include "node/device.h"
#include "node/sysfs.h"

enum { TURNS_MAX = 16 };

static void device_done(struct node_device *d)
{
    for (int kind = 0; kind < NODE_LINKS; kind++)
        vec_done(&d->links[kind]);
    node_probe_done(&d->probe);
}

void node_scan_done(struct node_scan *s)
{
    vec_for_each(&s->devices, d)
        device_done(d);
    vec_done(&s->devices);
    arena_done(&s->arena);
}

const struct node_device *node_scan_find(const struct node_scan *s, const char *object)
{
    vec_for_each(&s->devices, d) {
        if (str_eq(d->object, object))
            return d;
    }
    return NULL;
}

static struct node_device *parent_of(struct node_scan *s, const struct node_device *d)
{
    vec_for_each(&s->devices, disk) {
        if (d->parent && str_eq(d->parent, disk->name))
            return disk;
    }
    return NULL;
}

static void cannot(struct node_device *d, const char *reason, const char *why)
{
    d->obstacle = reason;
    d->why = why;
}

/* Why it cannot be claimed, if so. */
static void judge(struct node_device *d, struct arena *a)
{
    const struct node_probe *p = &d->probe;
    if (d->obstacle)
        return; /* something was found before */
    if (d->mounted)
        cannot(d, "Mounted", arena_printf(a, "it is mounted at %s", d->mounted));
    else if (d->swap)
        cannot(d, "Swap", "the machine swaps to it");
    else if (d->holders)
        cannot(d, "Held", arena_printf(a, "it is part of %s", d->holders));
    else if (d->partitions || p->n_partitions)
        cannot(d, "Partitioned", "it has partitions; those may be claimed");
    else if (d->read_only)
        cannot(d, "ReadOnly", "it cannot be written to");
    else if (d->removable)
        cannot(d, "Removable", "it can be taken out");
    else if (p->failed)
        cannot(d, "Unreadable", arena_strdup(a, p->error));
    else if (p->several)
        cannot(d, "Signature", "signatures of several kinds are on it; look with `wipefs PATH`");
    else if (p->type[0])
        cannot(d, "Signature",
               arena_printf(a, "%s is on it; if nobody needs that, remove it with `wipefs -a %s`",
                            p->type, d->path));
    else if (p->table[0])
        cannot(d, "Signature",
               arena_printf(a,
                            "it has a partition table (%s) and no partitions; make one, or remove "
                            "the table with `wipefs -a %s`",
                            p->table, d->path));
    else if (d->scheme == NODE_BY_PATH)
        d->why = "it has no identity but its path; a label is written on it when it is claimed";
    else
        d->why = "nobody uses it";
}

/* Changes whenever the device was written to through this machine, or is another. */
static const char *state_of(const struct node_device *d, struct arena *a)
{
    if (d->type == NODE_SPARSE)
        return d->number;
    const char *stat = node_sysfs_text(a, d->sysfs, "stat");
    uint64_t writes;
    if (!stat || !node_sysfs_field(stat, 4, &writes))
        return NULL;
    return arena_printf(a, "%s %s %llu %llu", d->number, d->sequence, (unsigned long long)d->size,
                        (unsigned long long)writes);
}

/* Whether the device is nobody's business: not on the list at all. */
static bool is_outside(struct node_scan *s, const struct node_scan_options *o,
                       const struct node_device *d)
{
    if (d->type == NODE_SPARSE)
        return false;
    const struct node_device *disk = parent_of(s, d);
    if (o->sparse_only || d->os || !node_filter_passes(o->filter, d, disk ? disk->path : NULL))
        return true;
    const char *file =
        d->type == NODE_LOOP ? node_sysfs_text(&s->arena, d->sysfs, "loop/backing_file") : NULL;
    vec_for_each(&s->devices, sparse) {
        if (file && sparse->type == NODE_SPARSE && str_eq(sparse->path, file))
            return true; /* the sparse device itself, once more */
    }
    return false;
}

static void remove_outside(struct node_scan *s, const struct node_scan_options *o)
{
    bool *outside = mem_zalloc(s->devices.len + 1);
    size_t kept = 0;
    for (size_t i = 0; i < s->devices.len; i++)
        outside[i] = is_outside(s, o, &s->devices.p[i]);
    for (size_t i = 0; i < s->devices.len; i++) {
        if (outside[i])
            device_done(&s->devices.p[i]);
        else
            s->devices.p[kept++] = s->devices.p[i];
    }
    s->devices.len = kept;
    free(outside);
}

/* By its label, though that is not there any more. */
static void recall(struct node_device *d, const struct node_scan_options *o, struct arena *a)
{
    const char *object =
        o->remember && d->scheme > NODE_BY_LABEL ? o->remember(o->context, d, a) : NULL;
    if (!object)
        return;
    d->scheme = NODE_BY_LABEL;
    d->identity = object;
    device_name(d, 0);
}

/* Two that say they are the same: paths to one disk, or copies. Neither is offered. */
static void settle_names(struct node_scan *s, const struct node_scan_options *o)
{
    for (size_t i = 0; i < s->devices.len; i++) {
        struct node_device *d = &s->devices.p[i];
        for (unsigned turn = 1;
             d->scheme == NODE_BY_PATH && o->labelled && turn < TURNS_MAX &&
             (o->labelled(o->context, d->object) || node_scan_find(s, d->object) != d);
             turn++)
            device_name(d, turn);
        struct node_device *first = d;
        for (size_t j = 0; j < i && first == d; j++) {
            if (str_eq(s->devices.p[j].object, d->object))
                first = &s->devices.p[j];
        }
        if (first == d)
            continue;
        cannot(first, "SeveralPaths",
               arena_printf(&s->arena,
                            "%s and %s have the same identity (%s); use multipath, or exclude one "
                            "with --exclude-paths",
                            first->path, d->path, node_scheme_name(d->scheme)));
        device_done(d);
        memmove(d, d + 1, (s->devices.len - i - 1) * sizeof(*d));
        s->devices.len--;
        i--;
    }
}

int node_scan(const struct node_scan_options *o, struct node_scan *ret_scan, struct err *e)
{
    struct node_scan s = {0};
    if (device_list(&s, o->places, e) < 0 ||
        (o->sparse && device_list_sparse(&s, o->sparse, o->places, e) < 0)) {
        node_scan_done(&s);
        return -1;
    }
    device_uses(&s, o->places);
    remove_outside(&s, o);
    vec_for_each(&s.devices, d)
        node_prober_read(o->prober, d->path, state_of(d, &s.arena), &d->probe);
    vec_for_each(&s.devices, d) {
        if (d->type != NODE_PARTITION)
            device_identify(d, NULL, o->node, &s.arena);
    }
    vec_for_each(&s.devices, d) {
        if (d->type == NODE_PARTITION)
            device_identify(d, parent_of(&s, d), o->node, &s.arena);
    }
    vec_for_each(&s.devices, d)
        recall(d, o, &s.arena);
    settle_names(&s, o);
    vec_for_each(&s.devices, d)
        judge(d, &s.arena);
    *ret_scan = s;
    return 0;
}
