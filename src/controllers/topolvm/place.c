/*
 * Where a claim's volume is to be: the node with most room of those that may have it, or the one that
 * was chosen already. Choosing and promising are one step, under the ledger's lock.
 */
#include "controllers/topolvm/topolvm.h"
#include "kube/condition.h"
#include "kube/object.h"

struct place {
    json_t *node; /* of the cache */
    int64_t room;
};

static int by_room(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->room != y->room)
        return x->room > y->room ? -1 : 1;
    return strcmp(kube_name(x->node), kube_name(y->node));
}

/* Nodes that may have it, the one with most room first; to be freed. */
static struct place *places_of(struct topolvm *t, const json_t *class, const char *only,
                               size_t *ret_n)
{
    _cleanup_(kube_objects_done) struct kube_objects nodes = {0};
    kube_informer_list(t->ledger->nodes, NULL, &nodes);
    struct place *places = mem_zalloc((nodes.len + 1) * sizeof(*places));
    size_t n = 0;
    for (size_t i = 0; i < nodes.len; i++) {
        if (only && !str_eq(nodes.p[i]->name, only))
            continue;
        json_auto_t *node = kube_object_json(nodes.p[i]);
        int64_t room;
        if (kube_deleting(node) || !kube_condition_is_true(node, "Ready") ||
            !kube_class_allows(class, node) ||
            !topolvm_ledger_estimate(t->ledger, node, topolvm_class_of(class), &room))
            continue;
        places[n++] = (struct place){json_incref(node), room > 0 ? room : 0};
    }
    qsort(places, n, sizeof(*places), by_room);
    *ret_n = n;
    return places;
}

/* "no node has room for 2Gi of ...: node-1 has 1Gi, node-2 has 512Mi" */
static void describe(const struct place *places, size_t n, const char *class, int64_t size,
                     const char *only, struct str *out)
{
    char text[TOPOLVM_SIZE_MAX];
    _cleanup_free_ char *named =
        *class ? mem_printf("device class \"%s\"", class) : mem_strdup("default device class");
    if (!n && only)
        str_appendf(out, "node %s is not ready or has no %s", only, named);
    else if (!n)
        str_appendf(out, "no node that is ready and allowed has the %s", named);
    else
        str_appendf(out,
                    "%s room for %s of the %s:", only ? "the chosen node has no" : "no node has",
                    topolvm_size(size, text), named);
    for (size_t i = 0; i < n && i < 16; i++)
        str_appendf(out, "%s %s has %s", i ? "," : "", kube_name(places[i].node),
                    topolvm_size(places[i].room, text));
    if (n > 16)
        str_appendf(out, ", %zu more nodes have less", n - 16);
}

static json_t *make_lv(const char *version, const json_t *claim, const json_t *class,
                       const char *node, const char *name)
{
    const char *group = json_str(class, "provisioner"), *device = topolvm_class_of(class);
    const char *options =
        topolvm_value(json_object_get(class, "parameters"), "lvcreate-option-class");
    _cleanup_free_ char *mark =
        mem_printf("%s/%s/%s", kube_namespace(claim), kube_name(claim), kube_uid(claim));
    _cleanup_free_ char *finalizer = mem_printf("%s/logicalvolume", group);
    json_t *lv =
        json_pack("{s:s,s:s,s:{s:s,s:{s:s},s:{s:s},s:[s]},s:{s:s,s:s,s:O}}", "apiVersion", version,
                  "kind", "LogicalVolume", "metadata", "name", name, "labels",
                  "app.kubernetes.io/created-by", "topolvm-controller", "annotations",
                  TOPOLVM_CLAIM, mark, "finalizers", finalizer, "spec", "name", name, "nodeName",
                  node, "size", json_at(claim, "spec", "resources", "requests", "storage"));
    json_t *spec = json_object_get(lv, "spec");
    if (*device)
        json_object_set_new(spec, "vgName", json_string(device));
    if (options)
        json_object_set_new(spec, "lvcreateOptionClass", json_string(options));
    return lv;
}

/* 1: promised there; 0: there is no room after all, and *ret_room says how much; -1. */
static int promise(struct topolvm *t, const json_t *claim, const json_t *class, const char *node,
                   const char *name, int64_t size, int64_t *ret_room, struct err *e)
{
    if (!topolvm_ledger_room(t->ledger, node, NULL, topolvm_class_of(class), ret_room))
        *ret_room = 0;
    if (*ret_room < size)
        return 0;
    const struct kube_resource *r =
        kube_groups_prefer(&t->ledger->lvs, json_str(class, "provisioner"));
    json_auto_t *lv = make_lv(r->api_version, claim, class, node, name);
    json_auto_t *made = kube_create(t->client, r, lv, NULL, e);
    if (!made)
        return e->code == ERR_ALREADY_EXISTS ? err_set(e, ERR_ABORTED, "Conflict", "it is there")
                                             : -1;
    topolvm_ledger_wrote(t->ledger, made, "");
    kube_event_normal(t->recorder, claim, "Provisioning",
                      "LogicalVolume %s is to be made on node %s", name, node);
    return 1;
}

static int find_and_promise(struct topolvm *t, const json_t *claim, const json_t *class,
                            const char *only, const char *name, struct str *ret_why, struct err *e)
{
    int64_t size =
        topolvm_round(api_quantity_int(json_at(claim, "spec", "resources", "requests", "storage")));
    int found = 0;
    size_t n;
    struct place *places = places_of(t, class, only, &n);
    for (size_t i = 0; i < n && !found && places[i].room >= size; i++)
        found = promise(t, claim, class, kube_name(places[i].node), name, size, &places[i].room, e);
    if (!found)
        describe(places, n, topolvm_class_of(class), size, only, ret_why);
    for (size_t i = 0; i < n; i++)
        json_decref(places[i].node);
    free(places);
    return found;
}

int topolvm_place(struct topolvm *t, const json_t *claim, const json_t *class, const char *only,
                  const char *name, struct str *ret_why, struct err *e)
{
    topolvm_ledger_lock(t->ledger);
    int found = find_and_promise(t, claim, class, only, name, ret_why, e);
    topolvm_ledger_unlock(t->ledger);
    return found;
}
