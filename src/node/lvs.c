/*
 * Setting it up: LVM, device classes, the groups of the API that there are.
 */
#include "node/lvs.h"

#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "metrics/metrics.h"
#include "node/lv_impl.h"

enum { WORKERS = 16 };
static const int64_t AUDIT_NS = 300 * CLOCK_SECOND, GRACE_NS = 600 * CLOCK_SECOND,
                     CLASSES_NS = 10 * CLOCK_SECOND, MEND_NS = 30 * CLOCK_SECOND;

static void by_uid(const json_t *object, struct kube_index_values *out)
{
    kube_index_add(out, kube_uid(object));
}

static void by_name(const json_t *object, struct kube_index_values *out)
{
    kube_index_add(out, kube_name(object));
}

static void by_volume(const json_t *object, struct kube_index_values *out)
{
    const char *id = logical_volume_of(object).status.volume_id;
    if (*id)
        kube_index_add(out, id);
}

static const struct kube_index indexes[] = {
    {LV_BY_UID, by_uid}, {LV_BY_NAME, by_name}, {LV_BY_VOLUME, by_volume}};

/* Only those of this node; most say so without being parsed. */
static void map_own(struct kube_controller *c, const struct kube_object *object, void *context)
{
    struct node_lvs *s = context;
    if (strstr(object->text, s->n->name.node))
        kube_controller_add(c, "", object->uid);
}

/* Why there is no LVM here; code 0: there is. */
struct err lv_broken(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    struct err broken = s->broken;
    pthread_mutex_unlock(&s->lock);
    return broken;
}

/*
 * Whether the node is to have volume groups at all. Where several nodes share a machine, its disks are of
 * one of them; the others have their own or none.
 */
static int check_wanted(const struct node *n, struct err *e)
{
    const struct node_lvs_options *o = &n->options.lvs;
    if (!o->disks.count && !o->classes_file && !n->options.discover)
        return err_set(e, ERR_FAILED_PRECONDITION, "NoVolumeGroup",
                       "the node %s offers no volume groups: its agent has neither --vg-disks nor "
                       "--device-classes",
                       n->name.node);
    if (access("/usr/sbin/lvm", X_OK) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "NoLVM", "the node %s has no lvm2: install it",
                       n->name.node);
    return 0;
}

/* LVM as it is: disks of our own if there are to be some, devices of all volumes. */
static int open_lvm(struct node_lvs *s, struct err *e)
{
    struct node *n = s->n;
    const struct node_lvs_options *o = &n->options.lvs;
    _cleanup_free_ char *folder = mem_printf("%s/lvm", n->options.data_dir);
    _cleanup_free_ char *own = mem_printf("%s/dev", folder);
    const struct lvm_options lo = {.folder = folder, .device_dir = o->disks.count ? own : NULL};
    struct node_vg_disks disks = {0};
    struct lvm *l = NULL;
    struct lvm_view *v = NULL;
    if (check_wanted(n, e) < 0 || lvm_open(&lo, &l, e) < 0)
        return -1;
    if ((o->disks.count &&
         node_vg_disks_start(&disks, l, n->options.data_dir, own, &o->disks, e) < 0) ||
        lvm_look(l, &v, e) < 0) {
        node_vg_disks_done(&disks);
        lvm_close(l);
        return -1;
    }
    pthread_mutex_lock(&s->lock);
    s->lvm = l;
    s->disks = disks;
    lvm_view_unref(s->view);
    s->view = v;
    s->broken = (struct err){0};
    pthread_mutex_unlock(&s->lock);
    lv_classes_activate(s, &s->classes->set, v);
    return 0;
}

/* What was in the way at the start may be so no more: lvm2 is installed, a disk answers. */
static int mend(struct node_lvs *s)
{
    struct err why = {0};
    if (open_lvm(s, &why) < 0) {
        pthread_mutex_lock(&s->lock);
        s->broken = why;
        pthread_mutex_unlock(&s->lock);
        return 0;
    }
    log_info("this node has logical volumes now");
    kube_controller_add(s->keeper, "", LV_ANNOUNCE);
    lv_look_at_all(s);
    return 0;
}

static int keep_up(void *context, const char *ns, const char *name, struct kube_result *ret,
                   struct err *e)
{
    struct node_lvs *s = context;
    (void)ns;
    if (str_eq(name, LV_ANNOUNCE))
        return lv_announce(s, e);
    bool audit = str_eq(name, LV_AUDIT), works = !lv_broken(s).code;
    int64_t most = !works ? MEND_NS : audit ? INT64_MAX : CLASSES_NS;
    ret->again_ns = s->n->options.lvs.audit_ns < most ? s->n->options.lvs.audit_ns : most;
    if (!works)
        return audit ? mend(s) : 0;
    return audit ? lv_audit(s, e) : lv_classes_look(s, e);
}

static void free_all(void *context)
{
    struct node_lvs *s = context;
    if (s->lvm && s->disks.count)
        node_vg_disks_stop(&s->disks, s->lvm);
    node_vg_disks_done(&s->disks);
    map_for_each(&s->judged, it)
        free(it->value);
    map_done(&s->judged);
    lv_orphans_done(s);
    map_done(&s->pools);
    vec_for_each(&s->given, it)
        free(it->of);
    vec_done(&s->given);
    lvm_view_unref(s->view);
    lv_classes_unref(s->classes);
    str_done(&s->classes_text);
    free(s->classes_problem);
    if (s->lvm)
        lvm_close(s->lvm);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->change);
    free(s);
}

static int add_controller(struct node_lvs *s, const char *name, unsigned workers,
                          int (*reconcile)(void *, const char *, const char *, struct kube_result *,
                                           struct err *),
                          struct kube_controller **ret, struct err *e)
{
    const struct kube_controller_options o = {
        .name = name, .workers = workers, .reconcile = reconcile, .context = s};
    *ret = kube_manager_controller(s->n->manager, &o, e);
    return *ret ? 0 : -1;
}

static int setup_keeper(struct node_lvs *s, struct err *e)
{
    if (add_controller(s, "volumegroups", 1, keep_up, &s->keeper, e) < 0)
        return -1;
    kube_controller_watch(s->keeper,
                          (struct kube_source){.informer = s->n->nodes, .map = lv_map_node});
    /* The audit must not begin before they are known. */
    kube_groups_watch(&s->lvs, s->keeper, (struct kube_source){.map = lv_map_nothing});
    kube_controller_add(s->keeper, "", LV_AUDIT);
    kube_controller_add(s->keeper, "", LV_ANNOUNCE);
    if (s->n->options.lvs.classes_file)
        kube_controller_add(s->keeper, "", LV_CLASSES);
    lv_metrics_setup(s);
    return 0;
}

static struct node_lvs *new_lvs(struct node *n)
{
    static const char nothing[] = "{\"report\":[]}";
    struct node_lvs_options *o = &n->options.lvs;
    if (o->audit_ns <= 0)
        o->audit_ns = AUDIT_NS;
    if (o->orphan_grace_ns <= 0)
        o->orphan_grace_ns = GRACE_NS;
    struct node_lvs *s = NEW(struct node_lvs);
    s->n = n;
    pthread_mutex_init(&s->change, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    lvm_view_parse(nothing, strlen(nothing), &s->view, NULL); /* until there is another */
    kube_manager_on_stop(n->manager, free_all, s);
    return s;
}

int node_lvs_setup(struct node *n, struct err *e)
{
    struct node_lvs *s = new_lvs(n);
    if (lv_classes_load(s, e) < 0)
        return -1;
    struct err why = {0};
    bool wanted = check_wanted(n, &why) == 0;
    if (open_lvm(s, &why) < 0)
        s->broken = why;
    if (wanted && s->broken.code)
        log_error("this node has no logical volumes", LOG_ERR(&why));
    if (add_controller(s, "logicalvolumes", wanted ? WORKERS : 1, lv_reconcile, &s->volumes, e) < 0)
        return -1;
    /* The seed's group first: where both are the same objects, that one is used. */
    kube_groups_init(&s->lvs, n->manager, "topolvm.cybozu.com/v1", "topolvm.io/v1",
                     "LogicalVolume");
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++)
        kube_groups_add_index(&s->lvs, &indexes[i]);
    kube_groups_watch(&s->lvs, s->volumes, (struct kube_source){.map = map_own, .context = s});
    return setup_keeper(s, e);
}
