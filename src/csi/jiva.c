/*
 * Volumes that are JivaVolumes. The object has the volume's name, and its id is that name; the name that the caller
 * gave is in an annotation.
 *
 *     create   JivaVolume, if there is none ──> it serves
 *     remove   deleted ──> gone
 *     grow     JivaVolumeResize ──> COMPLETED
 */
#include "kinds/jiva.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/quantity.h"
#include "base/str.h"
#include "csi/csi.h"
#include "kinds/kinds.h"
#include "kube/condition.h"
#include "kube/resource.h"

#define NAME_GIVEN "orlop.io/csi-name"
#define BY_CSI     "orlop.io/made-by"

static struct kube_resource volumes(void)
{
    return kube_resource("openebs.io/v1", "JivaVolume");
}

static struct kube_resource resizes(void)
{
    return kube_resource("openebs.io/v1alpha1", "JivaVolumeResize");
}

static json_t *get(struct csi_call *c, const char *id, struct err *e)
{
    const struct kube_resource r = volumes();
    struct csi *s = c->driver->csi;
    return kube_get(s->client, &r, s->ns, id, e);
}

/* What it is, for a caller. */

static void set_health(struct csi_call *c, const json_t *object, struct csi_volume *v)
{
    const json_t *serving = kube_condition_get(object, "Serving");
    const struct jiva_volume its = jiva_volume_of(object, c->arena);
    const char *why = json_str(serving, "message");
    if (kube_deleting(object) || !*its.status.capacity.text)
        return;
    if (!kube_condition_is_true(object, "Serving")) {
        v->health = CSI__V1__VOLUME_HEALTH_ERROR_TYPE__INACCESSIBLE;
        v->problem_reason = "NoQuorum";
        v->problem = arena_strdup(c->arena, why ? why : "the target does not serve");
    } else if (!str_eq(its.status.phase, "Ready")) {
        v->health = CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED;
        v->problem_reason = "ReplicaMissing";
        v->problem = arena_strdup(c->arena, why ? why : "not all replicas have all data");
    }
}

static void describe(struct csi_call *c, const json_t *object, struct csi_volume *v)
{
    const struct jiva_volume its = jiva_volume_of(object, c->arena);
    *v = (struct csi_volume){
        .id = arena_strdup(c->arena, kube_name(object)),
        .size = *its.status.capacity.text ? its.status.capacity.n : its.spec.capacity.n,
    };
    set_health(c, object, v);
}

static int find(struct csi_call *c, const char *id, struct csi_volume *ret, struct err *e)
{
    json_auto_t *object = get(c, id, e);
    if (!object)
        return e->code == ERR_INVALID_ARGUMENT /* no object can have such a name */
                   ? err_set(e, ERR_NOT_FOUND, "NotFound", "there is no volume %s", id)
                   : -1;
    describe(c, object, ret);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct csi_volume *)a)->id, ((const struct csi_volume *)b)->id);
}

static int list(struct csi_call *c, struct csi_volume **ret, size_t *ret_n, struct err *e)
{
    const struct kube_resource r = volumes();
    json_auto_t *all = kube_list(c->driver->csi->client, &r, c->driver->csi->ns, NULL, e);
    if (!all)
        return -1;
    size_t i;
    json_t *it;
    *ret = arena_alloc(c->arena, (json_array_size(all) + 1) * sizeof(**ret));
    *ret_n = 0;
    json_array_foreach(all, i, it) {
        if (!kube_deleting(it))
            describe(c, it, &(*ret)[(*ret_n)++]);
    }
    qsort(*ret, *ret_n, sizeof(**ret), by_id);
    return 0;
}

/* Making. */

static const char *parameter(const struct csi_wish *w, const char *key)
{
    for (size_t i = 0; i < w->request->n_parameters; i++) {
        if (str_eq(w->request->parameters[i]->key, key))
            return w->request->parameters[i]->value;
    }
    return NULL;
}

static int read_replicas(const struct csi_wish *w, json_int_t *ret, struct err *e)
{
    const char *text = parameter(w, "replicaCount");
    char *end = NULL;
    *ret = text ? strtol(text, &end, 10) : 0;
    if (text && (*ret < 1 || *ret > API_JIVA_REPLICAS || *end))
        return err_set(e, ERR_INVALID_ARGUMENT, "ReplicaCount",
                       "replicaCount is \"%s\": it has to be a number from 1 to %d", text,
                       API_JIVA_REPLICAS);
    return 0;
}

static json_t *make_object(struct csi_call *c, const struct csi_wish *w, json_int_t replicas)
{
    const char *name = csi_object_name(c, w->name);
    const char *claim = parameter(w, "csi.storage.k8s.io/pvc/name");
    char size[32];
    snprintf(size, sizeof(size), "%" PRId64, w->size);
    json_t *object = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s}},s:{s:s,s:s}}", "apiVersion",
        "openebs.io/v1", "kind", "JivaVolume", "metadata", "name", name, "namespace",
        c->driver->csi->ns, "labels", "openebs.io/persistent-volume", name, "openebs.io/component",
        "jiva-volume", "annotations", NAME_GIVEN, w->name, API_JIVA_RECLAIM, "Delete",
        API_JIVA_RESIZE_ENABLED, "true", "spec", "capacity", size, "pv", name);
    if (replicas)
        json_object_set_new(json_object_get(object, "spec"), "desiredReplicationFactor",
                            json_integer(replicas));
    if (claim)
        json_object_set_new(json_object_get(json_object_get(object, "metadata"), "annotations"),
                            "openebs.io/persistent-volume-claim", json_string(claim));
    return object;
}

/* One that is there already is what is asked for, or the name is taken. */
static int compare(const json_t *object, const struct csi_wish *w, struct err *e)
{
    const struct jiva_volume its = jiva_volume_of(object, NULL);
    int64_t size = its.spec.capacity.n;
    const char *given = kube_annotation(object, NAME_GIVEN);
    if (kube_deleting(object))
        return err_set(e, ERR_ABORTED, "Deleting", "volume %s is being removed: try again",
                       kube_name(object));
    if (given && !str_eq(given, w->name))
        return err_set(e, ERR_ALREADY_EXISTS, "NameTaken", "the name %s belongs to volume %s",
                       kube_name(object), given);
    if (size < w->size || (w->limit && size > w->limit))
        return err_set(e, ERR_ALREADY_EXISTS, "OtherSize",
                       "there is a volume %s already, with %" PRId64 " bytes", w->name, size);
    return 0;
}

static json_t *create_object(struct csi_call *c, const struct csi_wish *w, struct err *e)
{
    json_int_t replicas;
    struct err why = {0};
    const struct kube_resource r = volumes();
    json_t *found = get(c, csi_object_name(c, w->name), &why);
    if (found || why.code != ERR_NOT_FOUND) {
        if (!found)
            *e = why;
        return found;
    }
    if (read_replicas(w, &replicas, e) < 0)
        return NULL;
    json_auto_t *object = make_object(c, w, replicas);
    return kube_create(c->driver->csi->client, &r, object, NULL, e);
}

/* What cannot get better by waiting; NULL. */
static const char *hopeless(const json_t *object)
{
    const json_t *configured = kube_condition_get(object, "Configured");
    const char *status = json_str(configured, "status");
    return status && str_eq(status, "False") ? json_str(configured, "message") : NULL;
}

static int await_serving(struct csi_call *c, const char *id, struct csi_volume *ret, struct err *e)
{
    for (unsigned turn = 0;; turn++) {
        json_auto_t *object = get(c, id, e);
        if (!object)
            return -1;
        const char *why = hopeless(object);
        if (kube_condition_is_true(object, "Serving") &&
            *jiva_volume_of(object, NULL).status.capacity.text) {
            describe(c, object, ret);
            return 0;
        }
        _cleanup_free_ char *waits =
            mem_printf("volume %s does not serve yet%s%s", id, why ? ": " : "", why ? why : "");
        if (csi_pause(c, turn, waits, e) < 0)
            return -1;
    }
}

static int create(struct csi_call *c, const struct csi_wish *wish, struct csi_volume *ret,
                  struct err *e)
{
    json_auto_t *object = create_object(c, wish, e);
    if (!object || compare(object, wish, e) < 0)
        return -1;
    return await_serving(c, kube_name(object), ret, e);
}

/* Removing. */

static int await_gone(struct csi_call *c, const char *id, const char *uid, struct err *e)
{
    for (unsigned turn = 0;; turn++) {
        struct err why = {0};
        json_auto_t *object = get(c, id, &why);
        if (!object && why.code == ERR_NOT_FOUND)
            return 0;
        if (!object) {
            *e = why;
            return -1;
        }
        if (!str_eq(kube_uid(object), uid))
            return 0;
        _cleanup_free_ char *waits = mem_printf("volume %s is being removed", id);
        if (csi_pause(c, turn, waits, e) < 0)
            return -1;
    }
}

static int remove_volume(struct csi_call *c, const char *id, struct err *e)
{
    const struct kube_resource r = volumes();
    struct err why = {0};
    json_auto_t *object = get(c, id, &why);
    if (!object && (why.code == ERR_NOT_FOUND || why.code == ERR_INVALID_ARGUMENT))
        return 0;
    if (!object) {
        *e = why;
        return -1;
    }
    const struct kube_delete how = {.uid = kube_uid(object), .grace_seconds = -1};
    if (!kube_deleting(object) &&
        kube_delete(c->driver->csi->client, &r, c->driver->csi->ns, id, &how, e) < 0)
        return -1;
    return await_gone(c, id, kube_uid(object), e);
}

/* Growing. */

static json_t *order_growth(struct csi_call *c, const char *id, int64_t size, struct err *e)
{
    struct csi *s = c->driver->csi;
    const struct kube_resource r = resizes();
    struct err why = {0};
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%" PRId64, size);
    _cleanup_free_ char *name = mem_printf("%s-%s", id, bytes);
    json_t *found = kube_get(s->client, &r, s->ns, name, &why);
    if (found || why.code != ERR_NOT_FOUND) {
        if (!found)
            *e = why;
        return found;
    }
    json_auto_t *object = json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s},s:{s:s}},s:{s:s}}", "apiVersion",
                                    r.api_version, "kind", r.kind, "metadata", "name", name,
                                    "namespace", s->ns, "labels", API_JIVA_NAME, id, "annotations",
                                    BY_CSI, c->driver->name, "spec", "capacity", bytes);
    return kube_create(s->client, &r, object, NULL, e);
}

/* One that failed goes, so that the next call can try again. */
static int end_growth(struct csi_call *c, const json_t *resize, struct err *e)
{
    const struct kube_resource r = resizes();
    const struct jiva_resize its = jiva_resize_of(resize, NULL);
    struct err ignored = {0};
    bool done = !str_eq(its.status.phase, "FAILED");
    if (!done)
        err_set(e,
                str_eq(its.status.reason, "QuotaExceeded") ? ERR_RESOURCE_EXHAUSTED
                                                           : ERR_OUT_OF_RANGE,
                "GrowthFailed", "%s", its.status.message);
    kube_delete(c->driver->csi->client, &r, c->driver->csi->ns, kube_name(resize), NULL, &ignored);
    return done ? 0 : -1;
}

static int grow(struct csi_call *c, const char *id, int64_t size, struct csi_volume *ret,
                struct err *e)
{
    for (unsigned turn = 0;; turn++) {
        json_auto_t *resize = order_growth(c, id, size, e);
        if (!resize)
            return -1;
        const struct jiva_resize its = jiva_resize_of(resize, NULL);
        if (jiva_resize_is_over(&its))
            return end_growth(c, resize, e) < 0 ? -1 : find(c, id, ret, e);
        _cleanup_free_ char *waits = mem_printf(
            "volume %s is growing%s%s", id, *its.status.message ? ": " : "", its.status.message);
        if (csi_pause(c, turn, waits, e) < 0)
            return -1;
    }
}

const struct csi_engine csi_jiva = {
    .names = (const char *const[]){"jiva.csi.openebs.io", NULL},
    .default_size = 5 * CSI_GIB,
    .granule = 4096,
    .create = create,
    .remove = remove_volume,
    .find = find,
    .list = list,
    .grow = grow,
};
