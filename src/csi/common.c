/*
 * What RPCs share: names, sizes, capabilities, waiting, and the message of a volume.
 */
#include <stdio.h>
#include <time.h>

#include "api/format.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/uuid.h"
#include "csi/csi.h"

enum { OBJECT_NAME_MAX = 43 }; /* with what children add, a label's value */

char *csi_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

const struct csi_engine *csi_engine_find(const char *driver)
{
    static const struct csi_engine *const engines[] = {&csi_jiva};
    for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
        if (str_in(driver, engines[i]->names))
            return engines[i];
    }
    return NULL;
}

const char *csi_object_name(struct csi_call *c, const char *name)
{
    if (strlen(name) <= OBJECT_NAME_MAX && !api_dns_label.check(name))
        return name;
    const struct uuid hash = uuid_of_name(name);
    char text[UUID_TEXT_MAX];
    return arena_printf(c->arena, "vol-%s", uuid_format(&hash, text));
}

int csi_pause(struct csi_call *c, unsigned turn, const char *what, struct err *e)
{
    static const int64_t first = 5000000, most = 200000000;
    int64_t now = clock_mono_ns(clock_system()), wait = first << (turn < 6 ? turn : 6);
    wait = wait < most ? wait : most;
    if (now + wait >= c->deadline || (c->cancelled && c->cancelled(c->context)))
        return err_set(e, ERR_DEADLINE_EXCEEDED, "NotYet", "%s: try again", what);
    const struct timespec ts = {wait / CLOCK_SECOND, wait % CLOCK_SECOND};
    nanosleep(&ts, NULL);
    return 0;
}

int csi_pick_size(const Csi__V1__CapacityRange *range, int64_t fallback, int64_t granule,
                  int64_t *ret_size, struct err *e)
{
    int64_t least = range ? range->required_bytes : 0, most = range ? range->limit_bytes : 0;
    if (least < 0 || most < 0 || (most && least > most))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadSize",
                       "a volume cannot have at least %lld and at most %lld bytes",
                       (long long)least, (long long)most);
    if (!least)
        least = most && most < fallback ? most / granule * granule : fallback;
    if (least > INT64_MAX - granule)
        return err_set(e, ERR_OUT_OF_RANGE, "TooLarge", "%lld bytes are more than there can be",
                       (long long)least);
    *ret_size = (least + granule - 1) / granule * granule;
    if (!*ret_size || (most && *ret_size > most))
        return err_set(e, ERR_OUT_OF_RANGE, "NoSuchSize",
                       "sizes are multiples of %lld bytes, and none lies between %lld and %lld",
                       (long long)granule, (long long)least, (long long)most);
    return 0;
}

/* Capabilities. */

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

static bool is_served(Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
    return mode == MODE(SINGLE_NODE_WRITER) || mode == MODE(SINGLE_NODE_READER_ONLY) ||
           mode == MODE(SINGLE_NODE_SINGLE_WRITER) || mode == MODE(SINGLE_NODE_MULTI_WRITER) ||
           mode == MODE(MULTI_NODE_READER_ONLY);
}

int csi_check_capability(const Csi__V1__VolumeCapability *capability, struct err *e)
{
    static const char *const types[] = {"", "ext2", "ext3", "ext4", "xfs", "btrfs", NULL};
    if (!capability || !capability->access_mode)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoAccessMode",
                       "a capability has to have an access mode");
    if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoAccessType",
                       "a capability has to be about a block device or a mount");
    if (!is_served(capability->access_mode->mode))
        return err_set(e, ERR_INVALID_ARGUMENT, "AccessMode",
                       "access mode %d is not served: a volume is written on one node at a time",
                       (int)capability->access_mode->mode);
    if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
        !str_in(capability->mount->fs_type, types))
        return err_set(e, ERR_INVALID_ARGUMENT, "FileSystem",
                       "there is no file system \"%s\" here: ext4, xfs and btrfs are served",
                       capability->mount->fs_type);
    return 0;
}

int csi_check_capabilities(Csi__V1__VolumeCapability *const *list, size_t n, struct err *e)
{
    if (!n)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoCapabilities", "capabilities are missing");
    for (size_t i = 0; i < n; i++) {
        if (csi_check_capability(list[i], e) < 0)
            return -1;
    }
    return 0;
}

/* Messages. */

static void set_source(struct csi_call *c, const struct csi_volume *v, Csi__V1__Volume *m)
{
    if (!v->source_snapshot && !v->source_volume)
        return;
    m->content_source = arena_new(c->arena, Csi__V1__VolumeContentSource);
    csi__v1__volume_content_source__init(m->content_source);
    if (v->source_snapshot) {
        m->content_source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
        m->content_source->snapshot =
            arena_new(c->arena, Csi__V1__VolumeContentSource__SnapshotSource);
        csi__v1__volume_content_source__snapshot_source__init(m->content_source->snapshot);
        m->content_source->snapshot->snapshot_id = csi_text(v->source_snapshot);
    } else {
        m->content_source->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
        m->content_source->volume = arena_new(c->arena, Csi__V1__VolumeContentSource__VolumeSource);
        csi__v1__volume_content_source__volume_source__init(m->content_source->volume);
        m->content_source->volume->volume_id = csi_text(v->source_volume);
    }
}

static void set_topology(struct csi_call *c, const struct csi_volume *v, Csi__V1__Volume *m)
{
    if (!v->node)
        return;
    Csi__V1__Topology__SegmentsEntry *entry = arena_new(c->arena, Csi__V1__Topology__SegmentsEntry);
    csi__v1__topology__segments_entry__init(entry);
    entry->key = csi_text(v->topology_key);
    entry->value = csi_text(v->node);
    Csi__V1__Topology *t = arena_new(c->arena, Csi__V1__Topology);
    csi__v1__topology__init(t);
    t->n_segments = 1;
    t->segments = arena_alloc(c->arena, sizeof(*t->segments));
    t->segments[0] = entry;
    m->n_accessible_topology = 1;
    m->accessible_topology = arena_alloc(c->arena, sizeof(*m->accessible_topology));
    m->accessible_topology[0] = t;
}

Csi__V1__Volume *csi_volume_message(struct csi_call *c, const struct csi_volume *v)
{
    Csi__V1__Volume *m = arena_new(c->arena, Csi__V1__Volume);
    csi__v1__volume__init(m);
    m->volume_id = csi_text(v->id);
    m->capacity_bytes = v->size;
    set_source(c, v, m);
    set_topology(c, v, m);
    return m;
}
