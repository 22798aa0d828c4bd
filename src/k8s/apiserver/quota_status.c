/*
 * What ResourceQuotas say of themselves: status.hard are the limits in force, status.used what the
 * namespace uses of each. Only for people: admission counts by itself.
 */
#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/quota.h"
#include "k8s/apiserver/self.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

struct quota_status {
    struct map quotas; /* namespaces that have any, or had */
    struct map dirty;  /* those whose use may have changed */
};

struct sum {
    const struct quota_term *term;
    __int128 amount;
};

static void add(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    struct sum *sum = context;
    json_auto_t *object = quota_term_needs_object(sum->term) ? self_parse(o) : json_object();
    sum->amount += quota_term_amount(sum->term, object);
}

static enum self_result update_one(struct apiserver_registry *g, const char *namespace,
                                   const struct apiserver_object *o)
{
    _cleanup_(apiserver_kinds_unrefp) struct apiserver_kinds *set = apiserver_kinds_get(g);
    json_auto_t *quota = self_parse(o);
    const json_t *hard = json_at(quota, "spec", "hard");
    json_t *used = json_object();
    const char *name;
    json_t *limit;
    json_object_foreach((json_t *)hard, name, limit) {
        struct quota_term term;
        if (!quota_term_of(set->all, quota, name, &term))
            continue;
        struct sum sum = {.term = &term};
        self_each(g, term.kind, namespace, add, &sum);
        char text[QUANTITY_TEXT_MAX];
        quota_amount_text(sum.amount, limit, text);
        json_object_set_new(used, name, json_string(text));
    }
    json_auto_t *status = json_object();
    json_object_set_new(status, "hard", hard ? json_deep_copy(hard) : json_object());
    json_object_set_new(status, "used", used);
    if (json_equal(json_object_get(quota, "status"), status))
        return SELF_DONE;
    json_object_set(quota, "status", status);
    return self_update(g, &api_resource_quota, o, quota, APISERVER_STATUS);
}

static void tick(struct apiserver *a)
{
    struct quota_status *q = a->quotas;
    struct map work = q->dirty;
    q->dirty = (struct map){0};
    map_for_each(&work, it) {
        struct apiserver_list list;
        bool any = quota_list(&a->registry, it->key, &list);
        vec_for_each(&list.objects, o) {
            if (update_one(&a->registry, it->key, *o) != SELF_DONE)
                map_set(&q->dirty, it->key, q);
        }
        apiserver_list_done(&list);
        if (!any)
            map_remove(&q->quotas, it->key);
    }
    map_done(&work);
}

static void see(void *context, const struct api_kind *kind, struct apiserver_object *o)
{
    (void)kind;
    struct quota_status *q = context;
    _cleanup_free_ char *namespace = self_namespace(o->key);
    if (!namespace)
        return;
    map_set(&q->quotas, namespace, q);
    map_set(&q->dirty, namespace, q);
}

static void stop(struct apiserver *a)
{
    if (!a->quotas)
        return;
    map_done(&a->quotas->quotas);
    map_done(&a->quotas->dirty);
    free(a->quotas);
    a->quotas = NULL;
}

static void resync(struct apiserver *a)
{
    stop(a);
    a->quotas = NEW(struct quota_status);
    self_each(&a->registry, &api_resource_quota, NULL, see, a->quotas);
}

static void changed(struct apiserver *a, const struct apiserver_event *event)
{
    struct quota_status *q = a->quotas;
    const struct api_kind *kind = apiserver_kind_of(&a->registry, event->object->collection);
    if (kind == &api_resource_quota) {
        see(q, kind, event->object);
        return;
    }
    bool same = event->change == APISERVER_UPDATED && kind != &api_persistent_volume_claim &&
                kind != &api_pod; /* what an update of the others changes is not counted */
    _cleanup_free_ char *namespace =
        q->quotas.count && !same ? self_namespace(event->object->key) : NULL;
    if (namespace && map_has(&q->quotas, namespace))
        map_set(&q->dirty, namespace, q);
}

const struct apiserver_follower quota_follower = {"quotas", resync, changed, tick, stop};
