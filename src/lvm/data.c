#include "lvm/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"

enum { END_BYTES = 1 << 20, STRIPES_MAX = 128 };

/* Where a stretch of a volume is. */
struct place {
    const char *disk; /* of `len` bytes of text */
    size_t len;
    uint64_t at, run; /* the offset there, and how far it goes on so */
};

/* The nth of "disk:first-last ...". */
static bool leg_of(const char *ranges, unsigned n, struct place *ret, uint64_t *ret_extent)
{
    for (;; n--) {
        ranges += strspn(ranges, " ");
        size_t len = strcspn(ranges, " ");
        if (!len)
            return false;
        if (n == 0) {
            const char *colon = memrchr(ranges, ':', len);
            if (!colon)
                return false;
            ret->disk = ranges;
            ret->len = (size_t)(colon - ranges);
            *ret_extent = strtoull(colon + 1, NULL, 10);
            return true;
        }
        ranges += len;
    }
}

static bool start_of(const struct lvm_view *v, const char *vg, const struct place *p,
                     uint64_t *ret_start)
{
    vec_for_each(&v->pvs, pv) {
        if (str_eq(pv->vg, vg) && strlen(pv->name) == p->len &&
            memcmp(pv->name, p->disk, p->len) == 0) {
            *ret_start = pv->start;
            return true;
        }
    }
    return false;
}

static bool in_segment(const struct lvm_view *v, const struct lvm_seg *s, uint64_t extent_size,
                       uint64_t offset, struct place *ret)
{
    uint64_t in = offset - s->start, extent = 0, start = 0;
    unsigned leg = 0;
    ret->run = s->size - in;
    if (s->stripes > 1) {
        if (!s->stripe_size || s->stripes > STRIPES_MAX)
            return false;
        uint64_t piece = in / s->stripe_size, rest = in % s->stripe_size;
        leg = (unsigned)(piece % s->stripes);
        in = piece / s->stripes * s->stripe_size + rest;
        ret->run = s->stripe_size - rest;
    }
    if (!leg_of(s->ranges, leg, ret, &extent) || !start_of(v, s->vg, ret, &start))
        return false;
    ret->at = start + extent * extent_size + in;
    return true;
}

static int find(const struct lvm_view *v, const char *vg, const char *lv, uint64_t offset,
                struct place *ret, struct err *e)
{
    const struct lvm_vg *group = lvm_view_vg(v, vg);
    if (!group || !lvm_view_lv(v, vg, lv))
        return err_set(e, ERR_NOT_FOUND, "NoLogicalVolume", "there is no volume %s/%s", vg, lv);
    vec_for_each(&v->segs, s) {
        if (!str_eq(s->vg, vg) || !str_eq(s->lv, lv) || offset < s->start ||
            offset - s->start >= s->size)
            continue;
        if (!str_eq(s->type, "linear") && !str_eq(s->type, "striped"))
            return err_set(e, ERR_FAILED_PRECONDITION, "NoDirectMap",
                           "%s/%s is of type %s, whose bytes only device-mapper finds", vg, lv,
                           s->type);
        if (in_segment(v, s, group->extent, offset, ret))
            return 0;
        return err_set(e, ERR_INTERNAL, "BadReport", "%s/%s: no disk for \"%s\"", vg, lv,
                       s->ranges);
    }
    return err_set(e, ERR_OUT_OF_RANGE, "BeyondEnd", "%s/%s ends before byte %llu", vg, lv,
                   (unsigned long long)offset);
}

static int move_at(const struct place *p, void *in, const void *out, size_t n, struct err *e)
{
    _cleanup_free_ char *path = mem_strndup(p->disk, p->len);
    int fd = open(path, (in ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    int status = 0;
    for (size_t done = 0; status == 0 && done < n;) {
        off_t at = (off_t)(p->at + done);
        ssize_t some = in ? pread(fd, (char *)in + done, n - done, at)
                          : pwrite(fd, (const char *)out + done, n - done, at);
        if (some <= 0)
            status = err_errno(e, some < 0 ? errno : EIO, "%s at byte %lld", path, (long long)at);
        else
            done += (size_t)some;
    }
    if (status == 0 && !in && fsync(fd) < 0)
        status = err_errno(e, errno, "cannot sync %s", path);
    close(fd);
    return status;
}

static int move(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from, void *in,
                const void *out, size_t size, struct err *e)
{
    for (size_t done = 0; done < size;) {
        struct place p = {0};
        if (find(v, vg, lv, from + done, &p, e) < 0)
            return -1;
        size_t n = size - done < p.run ? size - done : (size_t)p.run;
        if (move_at(&p, in ? (char *)in + done : NULL, out ? (const char *)out + done : NULL, n,
                    e) < 0)
            return -1;
        done += n;
    }
    return 0;
}

int lvm_data_read(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from,
                  void *buffer, size_t size, struct err *e)
{
    return move(v, vg, lv, from, buffer, NULL, size, e);
}

int lvm_data_write(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from,
                   const void *buffer, size_t size, struct err *e)
{
    return move(v, vg, lv, from, NULL, buffer, size, e);
}

static bool is_zero(const char *bytes, size_t n)
{
    return !n || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* What is zeros already, as on a new disk, is left so: to read is cheaper than to sync. */
static int zero(const struct lvm_view *v, const char *vg, const char *lv, uint64_t from, size_t n,
                struct err *e)
{
    _cleanup_free_ char *bytes = mem_alloc(n + 1);
    if (move(v, vg, lv, from, bytes, NULL, n, e) < 0)
        return -1;
    if (is_zero(bytes, n))
        return 0;
    memset(bytes, 0, n);
    return move(v, vg, lv, from, NULL, bytes, n, e);
}

int lvm_data_wipe(const struct lvm_view *v, const char *vg, const char *lv, struct err *e)
{
    const struct lvm_lv *it = lvm_view_lv(v, vg, lv);
    uint64_t size = it ? it->size : 0, end = size < END_BYTES ? size : END_BYTES;
    return zero(v, vg, lv, 0, (size_t)end, e) < 0 ? -1
                                                  : zero(v, vg, lv, size - end, (size_t)end, e);
}
