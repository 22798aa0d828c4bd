/*
 * Changes of volumes. Whether there is room is decided here, under the lock of changes: so promises of
 * two workers never add up to more than there is, with spare space and thin pools too, of which lvm
 * knows nothing.
 */
#include <limits.h>
#include <unistd.h>

#include "lvm/data.h"
#include "node/lv_impl.h"
#include "node/wipe.h"

const struct lvm_lv *lv_find(const struct lvm_view *v, const char *name)
{
    vec_for_each(&v->vgs, vg) {
        const struct lvm_lv *lv = lvm_view_lv(v, vg->name, name);
        if (lv)
            return lv;
    }
    return NULL;
}

static uint64_t round_up(uint64_t size, uint64_t extent)
{
    return extent ? (size + extent - 1) / extent * extent : size;
}

/* The class that the volume is of. */
static const struct lvm_class *class_of(const struct lvm_classes *set, const struct lvm_lv *lv)
{
    vec_for_each(&set->classes, c) {
        if (str_eq(c->vg, lv->vg) && (c->pool ? str_eq(c->pool, lv->pool) : !*lv->pool))
            return c;
    }
    return NULL;
}

/*
 * Whether `bytes` more fit; *v becomes the report that was asked. "No" is said only of a report that
 * was just made: somebody may have made room.
 */
static int check_room(struct node_lvs *s, const struct lvm_class *c, struct lvm_view **v,
                      uint64_t bytes, enum err_code code, const char *what, struct err *e)
{
    struct lvm_room room;
    lv_room(s, *v, c, &room);
    if (room.there && bytes <= room.free)
        return 0;
    if (!lv_view_is_news(s)) {
        struct lvm_view *fresh;
        if (lv_look(s, 0, &fresh, e) < 0)
            return -1;
        lvm_view_unref(*v);
        *v = fresh;
        lv_room(s, *v, c, &room);
    }
    if (!room.vg)
        return err_set(e, ERR_NOT_FOUND, "NoVolumeGroup",
                       "the volume group %s of the device class %s is not there", c->vg, c->name);
    if (!room.there)
        return err_set(e, ERR_NOT_FOUND, "NoThinPool",
                       "the thin pool %s/%s of the device class %s is not there", c->vg, c->pool,
                       c->name);
    if (room.vg->missing)
        return err_set(e, ERR_UNAVAILABLE, "DiskMissing",
                       "%u disks of the volume group %s are missing", room.vg->missing, c->vg);
    if (bytes <= room.free)
        return 0;
    return err_set(e, code, "NoSpace", "%s needs %llu bytes, the device class %s has %llu free",
                   what, (unsigned long long)bytes, c->name, (unsigned long long)room.free);
}

static int make_snapshot(struct node_lvs *s, const struct lv_wish *w, const struct lvm_lv *origin,
                         struct err *e)
{
    if (!lvm_lv_is_thin(origin))
        return err_set(e, ERR_FAILED_PRECONDITION, "SourceNotThin",
                       "%s is no thin volume: only those can be the source of another", w->source);
    return lvm_snapshot(s->lvm, origin->vg, origin->name, w->uid, w->read_only, w->tag, e);
}

static int make_locked(struct node_lvs *s, const struct lv_wish *w, const struct lvm_lv *origin,
                       const struct lvm_classes *set, const struct lvm_class *c,
                       uint64_t *ret_given, struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(s);
    char *const *more = NULL;
    if (*w->options && !(more = lvm_classes_options(set, w->options, e)))
        return -1;
    const struct lvm_vg *vg = lvm_view_vg(v, c->vg);
    uint64_t bytes = round_up(origin ? origin->size : w->size, vg ? vg->extent : 0);
    if (check_room(s, c, &v, bytes, ERR_RESOURCE_EXHAUSTED, "the volume", e) < 0)
        return -1;
    *ret_given = bytes;
    if (origin)
        return make_snapshot(s, w, origin, e);
    const struct lvm_create create = {
        .vg = c->vg,
        .name = w->uid,
        .size = bytes,
        .pool = c->pool,
        .stripes = c->stripes,
        .stripe_size = c->stripe_size,
        .options = (const char *const *)(more ? more : c->options),
        .tag = w->tag,
    };
    return lvm_create(s->lvm, &create, e);
}

int lv_make(struct node_lvs *s, const struct lv_wish *w, const struct lvm_lv *origin, struct err *e)
{
    _cleanup_(lv_classes_unrefp) struct lv_classes *classes = lv_classes(s);
    const struct lvm_class *c;
    uint64_t given = 0;
    if (lvm_classes_find(&classes->set, w->class, &c, e) < 0)
        return -1;
    if (origin && !(c = class_of(&classes->set, origin)))
        return err_set(e, ERR_FAILED_PRECONDITION, "NoDeviceClass",
                       "no device class has the volume group and pool of %s", w->source);
    lv_change_begin(s);
    int status = make_locked(s, w, origin, &classes->set, c, &given, e);
    lv_change_end(s, c, given);
    return status;
}

static int grow_locked(struct node_lvs *s, const struct lvm_lv *lv, const struct lvm_class *c,
                       uint64_t size, uint64_t *ret_given, struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = lv_view(s);
    const struct lvm_vg *vg = lvm_view_vg(v, lv->vg);
    uint64_t wanted = round_up(size, vg ? vg->extent : 0);
    uint64_t more = wanted > lv->size ? wanted - lv->size : 0;
    _cleanup_free_ char *what =
        mem_printf("to grow from %llu to %llu bytes", (unsigned long long)lv->size,
                   (unsigned long long)wanted);
    if (c && check_room(s, c, &v, more, ERR_OUT_OF_RANGE, what, e) < 0)
        return -1;
    *ret_given = more;
    return lvm_extend(s->lvm, lv->vg, lv->name, size, e);
}

int lv_grow(struct node_lvs *s, const struct lvm_lv *lv, uint64_t size, struct err *e)
{
    _cleanup_(lv_classes_unrefp) struct lv_classes *classes = lv_classes(s);
    const struct lvm_class *c = class_of(&classes->set, lv);
    uint64_t given = 0;
    lv_change_begin(s);
    int status = grow_locked(s, lv, c, size, &given, e);
    lv_change_end(s, c, c ? given : 0);
    return status;
}

int lv_tag(struct node_lvs *s, const struct lvm_lv *lv, const char *tag, struct err *e)
{
    lv_change_begin(s);
    int status = lvm_tag(s->lvm, lv->vg, lv->name, tag, e);
    lv_change_end(s, NULL, 0);
    return status;
}

/* What the volume holds must not come back in another: thin ones give their blocks back anyway. */
static int wipe(struct node_lvs *s, const struct lvm_view *v, const struct lvm_lv *lv,
                struct err *e)
{
    if (*lv->pool || lvm_lv_is_read_only(lv))
        return 0;
    if (!lvm_has_devices(s->lvm))
        return lvm_data_wipe(v, lv->vg, lv->name, e);
    _cleanup_free_ char *path = lvm_device_path(s->lvm, lv->vg, lv->name);
    if (access(path, F_OK) < 0)
        return 0; /* not active: nobody can read it, and the next one is wiped when it is made */
    char real[PATH_MAX];
    return node_wipe_with(s->n->options.program, realpath(path, real) ? real : path, e);
}

int lv_remove(struct node_lvs *s, const struct lvm_view *v, const struct lvm_lv *lv, struct err *e)
{
    lv_change_begin(s);
    int status = wipe(s, v, lv, e);
    if (status == 0)
        status = lvm_remove(s->lvm, lv->vg, lv->name, e);
    else if (e->code == ERR_FAILED_PRECONDITION || e->code == ERR_INTERNAL)
        e->code = ERR_UNAVAILABLE; /* in use: it may not be for long */
    lv_change_end(s, NULL, 0);
    return status;
}
