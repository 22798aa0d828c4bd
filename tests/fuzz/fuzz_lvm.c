/*
 * What the agent of a node reads about LVM: reports of lvm itself, and files of device classes. Whatever
 * they say, a view answers every question, and a class that was taken can be asked for.
 */
#include "fuzz.h"
#include "lvm/class.h"

static void ask(const struct lvm_view *v, const struct lvm_classes *c)
{
    vec_for_each(&v->lvs, lv) {
        CHECK(lvm_view_lv(v, lv->vg, lv->name));
        CHECK(lvm_lv_is_thin(lv) + lvm_lv_is_thin_pool(lv) < 2);
        free(lvm_lv_tag(lv, "orlop.io/owner"));
    }
    vec_for_each(&c->classes, class) {
        struct lvm_room room;
        lvm_class_room(class, v, &room);
        CHECK(room.there || (!room.free && !room.size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    struct lvm_view *v = NULL;
    struct lvm_classes c = {0};
    if (lvm_classes_parse((const char *)data, size, &c, &e) == 0) {
        const struct lvm_class *found = NULL;
        CHECK(c.classes.len);
        CHECK(lvm_classes_find(&c, c.classes.p[0].name, &found, &e) == 0 && found);
        lvm_classes_done(&c);
    } else {
        CHECK(e.code && *e.msg);
    }
    e = (struct err){0};
    lvm_classes_default(&c);
    if (lvm_view_parse((const char *)data, size, &v, &e) == 0)
        ask(v, &c);
    else
        CHECK(e.code && *e.msg);
    lvm_view_unref(v);
    lvm_classes_done(&c);
    return 0;
}
