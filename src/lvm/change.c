/*
 * The commands that change something. Each is one command line, in full, below.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lvm/impl.h"

enum { TEXT = 32 };

struct words {
    const char **p;
    size_t len, cap;
};

static void add_all(struct words *w, const char *const *words)
{
    for (; words && *words; words++)
        vec_push(w, *words);
}
#define ADD(w, ...) add_all(w, (const char *const[]){__VA_ARGS__, NULL})

static int run(struct lvm *l, enum lvm_intent intent, struct words *w, struct err *e)
{
    vec_push(w, NULL);
    int status = lvm_run(l, intent, w->p, NULL, e);
    vec_done(w);
    return status;
}
#define RUN(l, intent, e, ...) lvm_run(l, intent, (const char *const[]){__VA_ARGS__, NULL}, NULL, e)

static const char *bytes(uint64_t n, char text[TEXT])
{
    snprintf(text, TEXT, "%" PRIu64 "b", n);
    return text;
}

int lvm_create(struct lvm *l, const struct lvm_create *c, struct err *e)
{
    char size[TEXT], stripes[TEXT];
    struct words w = {0};
    ADD(&w, "lvcreate", "-y", "-n", c->name);
    if (c->tag)
        ADD(&w, "--addtag", c->tag);
    if (c->pool)
        ADD(&w, "--type", "thin", "--thinpool", c->pool, "-V", bytes(c->size, size));
    else
        ADD(&w, "-L", bytes(c->size, size));
    /* Without a device nothing can be zeroed; asking for it, lvm would create nothing and return 0. */
    if (!l->has_dm)
        ADD(&w, "-an", "-Zn", "-Wn");
    else if (!c->pool)
        ADD(&w, "-Zy", "-Wy");
    if (c->stripes > 1 && !c->pool) {
        snprintf(stripes, sizeof(stripes), "%u", c->stripes);
        ADD(&w, "--stripes", stripes);
        if (c->stripe_size)
            ADD(&w, "--stripesize", c->stripe_size);
    }
    add_all(&w, c->options);
    ADD(&w, c->vg);
    return run(l, LVM_TO_CREATE, &w, e);
}

int lvm_snapshot(struct lvm *l, const char *vg, const char *origin, const char *name,
                 bool read_only, const char *tag, struct err *e)
{
    struct words w = {0};
    _cleanup_free_ char *of = mem_printf("%s/%s", vg, origin);
    ADD(&w, "lvcreate", "-y", "-s", "-kn", "-n", name, "-p", read_only ? "r" : "rw");
    if (tag)
        ADD(&w, "--addtag", tag);
    ADD(&w, of);
    return run(l, LVM_TO_CREATE, &w, e);
}

int lvm_extend(struct lvm *l, const char *vg, const char *name, uint64_t size, struct err *e)
{
    char text[TEXT];
    _cleanup_free_ char *of = mem_printf("%s/%s", vg, name);
    return RUN(l, LVM_TO_GROW, e, "lvextend", "-L", bytes(size, text), of);
}

int lvm_remove(struct lvm *l, const char *vg, const char *name, struct err *e)
{
    _cleanup_free_ char *of = mem_printf("%s/%s", vg, name);
    return RUN(l, LVM_TO_REMOVE, e, "lvremove", "-f", "-y", of);
}

int lvm_rename(struct lvm *l, const char *vg, const char *name, const char *to, struct err *e)
{
    return RUN(l, LVM_TO_CHANGE, e, "lvrename", vg, name, to);
}

int lvm_tag(struct lvm *l, const char *vg, const char *name, const char *tag, struct err *e)
{
    _cleanup_free_ char *of = mem_printf("%s/%s", vg, name);
    return RUN(l, LVM_TO_CHANGE, e, "lvchange", "--addtag", tag, of);
}

int lvm_activate(struct lvm *l, const char *vg, struct err *e)
{
    return l->has_dm ? RUN(l, LVM_TO_CHANGE, e, "vgchange", "-ay", "-K", vg) : 0;
}

int lvm_deactivate(struct lvm *l, const char *vg, struct err *e)
{
    return l->has_dm ? RUN(l, LVM_TO_CHANGE, e, "vgchange", "-an", vg) : 0;
}

int lvm_vg_create(struct lvm *l, const char *vg, const char *const *disks, struct err *e)
{
    struct words w = {0};
    ADD(&w, "vgcreate", "-y", "--setautoactivation", "n", vg);
    add_all(&w, disks);
    return run(l, LVM_TO_CHANGE, &w, e);
}

int lvm_vg_extend(struct lvm *l, const char *vg, const char *disk, struct err *e)
{
    return RUN(l, LVM_TO_CHANGE, e, "vgextend", "-y", vg, disk);
}

int lvm_pv_resize(struct lvm *l, const char *disk, struct err *e)
{
    return RUN(l, LVM_TO_CHANGE, e, "pvresize", "-y", disk);
}
