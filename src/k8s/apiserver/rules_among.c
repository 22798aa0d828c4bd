/*
 * Rules of our own kinds that look at other objects (api/among.h), over the store.
 *
 * A write is visible to these rules from the moment it is looked at until it is in the store or has
 * failed: it stands in a list, and who came later sees it there. So of two clusters that want the
 * same device at the same moment exactly one gets it. What the server does of its own accord, such
 * as emptying a namespace, is subject to none of them.
 *
 * Wishes are fulfilled when the write is visible. If the server is killed in between, or they fail,
 * the controller of the kind does the same.
 */
#include "api/among.h"
#include "base/log.h"
#include "k8s/apiserver/rules.h"

struct rules_flight {
    struct list_link link;
    const struct api_kind *kind;
    char *namespace;
    struct str
        text; /* {"metadata": {...}, "spec": {...}}: who looks at it makes values of their own */
};

struct view {
    struct apiserver_admission *a;
    const struct rules_flight *own; /* NULL of a dry run */
};

static json_t *look_up(void *context, const struct api_kind *kind, const char *namespace,
                       const char *name, struct err *e)
{
    const struct view *v = context;
    (void)e; /* what cannot be read is not there: the store has written it itself */
    return rules_get(v->a->registry, kind, namespace, name);
}

/* Adds what is under way: all that came before this write. */
static void add_flights(const struct view *v, const struct api_kind *kind, const char *namespace,
                        json_t *into)
{
    struct apiserver_rules *rules = v->a->registry->rules;
    pthread_mutex_lock(&rules->lock);
    list_for_each(&rules->flights, f, struct rules_flight, link) {
        if (f == v->own)
            break;
        if (f->kind == kind && (!namespace || (f->namespace && str_eq(f->namespace, namespace))))
            json_array_append_new(into, json_parse(f->text.p, f->text.len, NULL, NULL));
    }
    pthread_mutex_unlock(&rules->lock);
}

static json_t *list(void *context, const struct api_kind *kind, const char *namespace,
                    struct err *e)
{
    const struct view *v = context;
    _cleanup_(str_done) struct str collection = {0};
    _cleanup_free_ char *prefix = namespace ? mem_printf("%s/", namespace) : NULL;
    struct apiserver_list found;
    struct apiserver_list_options all = {.prefix = prefix};
    apiserver_collection(kind, &collection);
    if (apiserver_store_list(v->a->registry->store, str_get(&collection), &all, &found, e) < 0)
        return NULL;
    json_t *objects = json_array();
    vec_for_each(&found.objects, o) {
        json_t *object = json_parse((*o)->bytes, (*o)->size, NULL, NULL);
        if (object)
            json_array_append_new(objects, object);
    }
    apiserver_list_done(&found);
    add_flights(v, kind, namespace, objects);
    return objects;
}

static void take_off(struct apiserver_admission *a)
{
    struct apiserver_rules *rules = a->registry->rules;
    json_auto_t *object =
        json_pack("{s:O, s:O}", "metadata", json_object_get(a->object, "metadata"), "spec",
                  json_object_get(a->object, "spec"));
    struct rules_flight *f = NEW(struct rules_flight);
    f->kind = a->request->kind;
    f->namespace = a->request->namespace ? mem_strdup(a->request->namespace) : NULL;
    json_format(object, &f->text);
    pthread_mutex_lock(&rules->lock);
    list_push(&rules->flights, &f->link);
    pthread_mutex_unlock(&rules->lock);
    a->flight = f;
}

void rules_among_release(struct apiserver_admission *a)
{
    if (a->flight) {
        pthread_mutex_lock(&a->registry->rules->lock);
        list_unlink(&a->flight->link);
        pthread_mutex_unlock(&a->registry->rules->lock);
        str_done(&a->flight->text);
        free(a->flight->namespace);
        free(a->flight);
    }
    a->flight = NULL;
    json_decref(a->wishes);
    a->wishes = NULL;
}

/* A deletion has no report of its own: the first problem is the answer. */
static int refuse_deletion(const struct api_report *report, struct err *e)
{
    if (!report->errors)
        return 0;
    const struct api_problem *p = &report->problems.p[0];
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "%s: %s", p->path, p->message);
}

int rules_among_check(struct apiserver_admission *a, struct err *e)
{
    const struct apiserver_request *r = a->request;
    const struct apiserver_rules *rules = a->registry->rules;
    if (!rules || rules->features.no_rules || !r->user || r->user == &apiserver_self ||
        r->subresource != APISERVER_MAIN || !api_among_concerns(r->kind, a->old, a->object))
        return 0;
    if (a->object && !r->dry_run)
        take_off(a);
    if (a->object && !r->dry_run && !a->wishes)
        a->wishes = json_array();
    struct view view = {.a = a, .own = a->flight};
    const struct api_lookup lookup = {.get = look_up, .list = list, .context = &view};
    struct api_report own = {0};
    const struct api_among among = {.lookup = &lookup,
                                    .object = a->object,
                                    .old = a->old,
                                    .report = a->report ? a->report : &own,
                                    .wishes = a->wishes};
    int status = api_check_among(r->kind, &among, e);
    if (status == 0)
        status = refuse_deletion(&own, e);
    api_report_done(&own);
    return status;
}

static int fulfil(struct apiserver_registry *g, json_t *wish, const char *name, struct err *e)
{
    const json_t *metadata = json_object_get(wish, "metadata");
    /* Of our own, because the object is changed in place. */
    _cleanup_free_ char *namespace = mem_strdup(json_str(metadata, "namespace"));
    bool there = json_object_get(metadata, "resourceVersion");
    const struct apiserver_request r = {
        .user = &apiserver_self,
        .kind = api_kind_find(json_str(wish, "apiVersion"), json_str(wish, "kind"), NULL),
        .namespace = namespace,
        .name = there ? name : NULL,
    };
    struct api_report report = {0};
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o =
        there ? apiserver_update(g, &r, wish, &report, e)
              : apiserver_create(g, &r, wish, &report, e);
    api_report_done(&report);
    return o ? 0 : -1;
}

void rules_among_follow(struct apiserver_registry *g, json_t *wishes)
{
    size_t i;
    json_t *wish;
    json_array_foreach(wishes, i, wish) {
        struct err e = {0};
        _cleanup_free_ char *name = mem_strdup(json_str(json_object_get(wish, "metadata"), "name"));
        if (fulfil(g, wish, name, &e) < 0)
            log_info("left to the controller", LOG_S("object", name), LOG_ERR(&e));
    }
}
