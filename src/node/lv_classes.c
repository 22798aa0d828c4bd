/*
 * The device classes in force, and the file that they come from.
 *
 * The file is read again every few seconds: it may be a mount of a ConfigMap, which changes without a sign that
 * could be waited for. What it says is taken up as a whole or not at all: while it cannot be read, or is wrong,
 * the classes from before stay, and that is said once. Whoever works by a set of classes holds a reference to it.
 *
 * With new classes, what could not be before may be possible: every volume of the node is looked at again.
 */
#include "base/file.h"
#include "base/log.h"
#include "node/lv_impl.h"

enum { CLASSES_BYTES = 1 << 20 };

struct lv_classes *lv_classes(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    struct lv_classes *c = s->classes;
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    return c;
}

void lv_classes_unref(struct lv_classes *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    lvm_classes_done(&c->set);
    free(c);
}

static void put_in_force(struct node_lvs *s, const struct lvm_classes *set, const struct str *text)
{
    struct lv_classes *c = NEW(struct lv_classes);
    atomic_init(&c->refs, 1);
    c->set = *set;
    pthread_mutex_lock(&s->lock);
    struct lv_classes *before = s->classes;
    s->classes = c;
    pthread_mutex_unlock(&s->lock);
    lv_classes_unref(before);
    str_clear(&s->classes_text);
    str_append_n(&s->classes_text, str_get(text), text->len);
}

int lv_classes_load(struct node_lvs *s, struct err *e)
{
    const char *path = s->n->options.lvs.classes_file;
    _cleanup_(str_done) struct str text = {0};
    struct lvm_classes set;
    if (!path)
        lvm_classes_default(&set);
    else if (file_read(path, CLASSES_BYTES, &text, e) < 0)
        return -1;
    else if (lvm_classes_parse(str_get(&text), text.len, &set, e) < 0)
        return err_prefix(e, "%s", path);
    put_in_force(s, &set, &text);
    return 0;
}

void lv_classes_activate(struct node_lvs *s, const struct lvm_classes *set,
                         const struct lvm_view *v)
{
    vec_for_each(&set->classes, c) {
        struct err why = {0};
        if (lvm_view_vg(v, c->vg) && lvm_activate(s->lvm, c->vg, &why) < 0)
            log_warn("not all volumes have devices", LOG_S("vg", c->vg), LOG_ERR(&why));
    }
}

/* Once for each different problem. */
static void complain(struct node_lvs *s, const struct err *why)
{
    const char *path = s->n->options.lvs.classes_file;
    if (s->classes_problem && str_eq(s->classes_problem, why->msg))
        return;
    free(s->classes_problem);
    s->classes_problem = mem_strdup(why->msg);
    log_error("the device classes stay as they were", LOG_S("file", path), LOG_ERR(why));
    json_auto_t *node = kube_informer_json(s->n->nodes, NULL, s->n->name.node, NULL);
    if (node)
        kube_event_warning(s->n->recorder, node, "BadDeviceClasses",
                           "%s: %s; the device classes stay as they were", path, why->msg);
}

void lv_look_at_all(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    map_for_each(&s->judged, it)
        free(it->value);
    map_done(&s->judged);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < KUBE_GROUPS; i++) {
        _cleanup_(kube_objects_done) struct kube_objects list = {0};
        kube_informer_list(s->lvs.informers[i], NULL, &list);
        vec_for_each(&list, it) {
            if (strstr((*it)->text, s->n->name.node))
                kube_controller_add(s->volumes, "", (*it)->uid);
        }
    }
}

/* A look comes first: the groups of new classes may have been made since the last one. */
static int take_up(struct node_lvs *s, struct lvm_classes *set, const struct str *text,
                   struct err *e)
{
    _cleanup_(lvm_view_unrefp) struct lvm_view *v = NULL;
    if (lv_look(s, LV_PATIENCE, &v, e) < 0) {
        lvm_classes_done(set);
        return -1;
    }
    put_in_force(s, set, text);
    lv_change_begin(s);
    lv_classes_activate(s, set, v); /* nobody else replaces them */
    lv_change_end(s, NULL, 0);
    log_info("new device classes", LOG_S("file", s->n->options.lvs.classes_file),
             LOG_I("classes", (int64_t)set->classes.len));
    json_auto_t *node = kube_informer_json(s->n->nodes, NULL, s->n->name.node, NULL);
    if (node)
        kube_event_normal(s->n->recorder, node, "NewDeviceClasses",
                          "%zu device classes of %s are in force", set->classes.len,
                          s->n->options.lvs.classes_file);
    kube_controller_add(s->keeper, "", LV_ANNOUNCE);
    lv_look_at_all(s);
    return 0;
}

int lv_classes_look(struct node_lvs *s, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    struct lvm_classes set;
    struct err why = {0};
    bool there = file_read(s->n->options.lvs.classes_file, CLASSES_BYTES, &text, &why) == 0;
    bool same = there && str_eq(str_get(&text), str_get(&s->classes_text));
    if (!there || (!same && lvm_classes_parse(str_get(&text), text.len, &set, &why) < 0)) {
        complain(s, &why);
        return 0;
    }
    free(TAKE_PTR(s->classes_problem));
    return same ? 0 : take_up(s, &set, &text, e);
}
