/*
 * Lists, page by page. One page is in memory at a time, and as a tree it takes ten times its text: a
 * page that is too large is asked for in halves, and after a large one the next are half as long.
 */
#include <stdio.h>

#include "kube/client_impl.h"

enum { PAGE = 500, PAGE_LARGE_BYTES = 1 << 20, PAGE_MAX_BYTES = 8 << 20, PAGES_MAX = 100000 };

struct list {
    struct kube_client *client;
    struct kube_call *call;
    const struct kube_resource *resource;
    const char *ns;
    const struct kube_query *query;
    unsigned limit;
    struct str next, version; /* the continuation; "": none */
};

static int invalid(const struct list *l, const char *what, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "InvalidAnswer", "the list of %s is not one: %s",
                   l->resource->plural, what);
}

static void make_path(const struct list *l, struct str *path)
{
    char limit[16];
    snprintf(limit, sizeof(limit), "%u", l->limit);
    kube_path_append(path, l->resource, l->ns, NULL, NULL);
    kube_path_query(path, "limit", limit);
    kube_path_query(path, "labelSelector", l->query->labels);
    kube_path_query(path, "fieldSelector", l->query->fields);
    if (l->next.len)
        kube_path_query(path, "continue", l->next.p);
    else
        kube_path_query(path, "resourceVersion", l->query->resource_version);
}

static json_t *fetch(struct list *l, struct err *e)
{
    struct err why = {0};
    json_t *page = NULL;
    for (;;) {
        _cleanup_(str_done) struct str path = {0};
        struct http_response r = {0};
        make_path(l, &path);
        int status = kube_send(
            l->client, l->call,
            &(struct kube_request){.method = "GET", .path = path.p, .limit = PAGE_MAX_BYTES}, &r,
            &why);
        if (status == 0 && !(page = json_parse(str_get(&r.body), r.body.len, NULL, &why)))
            invalid(l, "no JSON", &why);
        if (page && r.body.len > PAGE_LARGE_BYTES && l->limit > 1)
            l->limit /= 2;
        http_response_done(&r);
        if (page)
            return page;
        bool too_large =
            why.code == ERR_RESOURCE_EXHAUSTED && str_eq(why.reason, "ResponseTooLarge");
        if (!too_large || l->limit == 1)
            break;
        l->limit /= 2;
    }
    if (e)
        *e = why;
    return NULL;
}

/* Items of Kubernetes' own kinds come without the two words that every other object begins with. */
static int complete_item(const struct list *l, json_t *item, const char *key, const char *value,
                         struct err *e)
{
    const json_t *there = json_object_get(item, key);
    if (!there)
        return json_object_set_new(item, key, json_string(value));
    const char *text = json_string_value(there);
    return text && str_eq(text, value) ? 0 : invalid(l, "it has an item of another kind", e);
}

static int complete(const struct list *l, json_t *items, struct err *e)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item) {
        if (!json_is_object(item))
            return invalid(l, "it has an item that is no object", e);
        if (complete_item(l, item, "apiVersion", l->resource->api_version, e) < 0 ||
            complete_item(l, item, "kind", l->resource->kind, e) < 0)
            return -1;
    }
    return 0;
}

/* What a page says of the whole: its version, and where to go on. */
static int read_metadata(struct list *l, const json_t *page, struct err *e)
{
    const json_t *metadata = json_object_get(page, "metadata");
    const char *version = json_str(metadata, "resourceVersion"),
               *next = json_str(metadata, "continue");
    if (!version || !*version)
        return invalid(l, "it has no resourceVersion", e);
    if (l->version.len && !str_eq(l->version.p, version))
        return err_set(e, ERR_OUT_OF_RANGE, "Expired",
                       "the pages of the list of %s are of different times", l->resource->plural);
    str_clear(&l->version);
    str_append(&l->version, version);
    if (next && *next && str_eq(next, str_get(&l->next)))
        return invalid(l, "it does not go on", e);
    str_clear(&l->next);
    str_append(&l->next, next ? next : "");
    return 0;
}

static int each_page(struct list *l, int (*page)(void *context, const json_t *items, struct err *e),
                     void *context, struct err *e)
{
    char kind[256];
    snprintf(kind, sizeof(kind), "%sList", l->resource->kind);
    for (unsigned n = 0; n < PAGES_MAX; n++) {
        json_auto_t *list = fetch(l, e);
        if (!list)
            return -1;
        json_t *items = json_object_get(list, "items");
        const char *its = json_str(list, "kind");
        if (!its || !str_eq(its, kind))
            return invalid(l, "it is of another kind", e);
        json_auto_t *none = json_array();
        if (!items || json_is_null(items)) /* how Go writes an empty list */
            items = none;
        if (!json_is_array(items))
            return invalid(l, "it has no items", e);
        if (read_metadata(l, list, e) < 0 || complete(l, items, e) < 0 ||
            page(context, items, e) < 0)
            return -1;
        if (!l->next.len)
            return 0;
    }
    return invalid(l, "it has no end", e);
}

int kube_list_each(struct kube_client *c, struct kube_call *call, const struct kube_resource *r,
                   const char *ns, const struct kube_query *q,
                   int (*page)(void *context, const json_t *items, struct err *e), void *context,
                   struct str *ret_version, struct err *e)
{
    static const struct kube_query all;
    struct list l = {.client = c, .call = call, .resource = r, .ns = ns, .query = q ? q : &all};
    l.limit = l.query->limit ? l.query->limit : PAGE;
    int status = each_page(&l, page, context, e);
    if (status == 0 && ret_version) {
        str_clear(ret_version);
        str_append_n(ret_version, l.version.p, l.version.len);
    }
    str_done(&l.next);
    str_done(&l.version);
    return status;
}

int kube_list_pages(struct kube_client *c, const struct kube_resource *r, const char *ns,
                    const struct kube_query *q,
                    int (*page)(void *context, const json_t *items, struct err *e), void *context,
                    struct str *ret_version, struct err *e)
{
    struct kube_call *call = kube_call_begin(c);
    int status = kube_list_each(c, call, r, ns, q, page, context, ret_version, e);
    kube_call_end(c, call);
    return status;
}

static int keep_all(void *context, const json_t *items, struct err *e)
{
    (void)e;
    json_array_extend(context, (json_t *)items);
    return 0;
}

json_t *kube_list(struct kube_client *c, const struct kube_resource *r, const char *ns,
                  const struct kube_query *q, struct err *e)
{
    enum { ATTEMPTS = 3 };
    struct err why = {0};
    for (int i = 0; i < ATTEMPTS; i++) {
        json_t *all = json_array();
        if (kube_list_pages(c, r, ns, q, keep_all, all, NULL, &why) == 0)
            return all;
        json_decref(all);
        if (why.code != ERR_OUT_OF_RANGE || (q && q->resource_version))
            break;
    }
    if (e)
        *e = why;
    return NULL;
}
