#include "k8s/apiserver/conversion.h"

#include <stdio.h>

#include "api/admit.h"
#include "api/metadata.h"
#include "base/uuid.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/webhook_impl.h"

enum { BATCH_OBJECTS = 200, BATCH_BYTES = 2 << 20 };

struct api_conversion {
    struct apiserver_registry *g;
    json_t *definition;  /* the webhook points into it */
    const char *version; /* of ConversionReview: "v1"; NULL: none that is known here */
    struct webhook hook;
};

/* The first version of reviews that both sides know. */
static const char *review_version(const json_t *versions)
{
    static const char *const known[] = {"v1", "v1beta1", NULL};
    size_t i;
    json_t *version;
    json_array_foreach(versions, i, version) {
        const char *text = json_string_value(version);
        for (const char *const *k = known; text && *k; k++) {
            if (str_eq(text, *k))
                return *k;
        }
    }
    return NULL;
}

const struct api_conversion *apiserver_conversion_new(struct apiserver_registry *g,
                                                      const json_t *definition)
{
    const json_t *conversion = json_at(definition, "spec", "conversion");
    const char *strategy = json_str(conversion, "strategy");
    if (!strategy || !str_eq(strategy, "Webhook"))
        return NULL;
    struct api_conversion *c = NEW(struct api_conversion);
    c->g = g;
    c->definition = json_deep_copy(definition);
    const json_t *spec = json_at(c->definition, "spec", "conversion", "webhook");
    c->version = review_version(json_object_get(spec, "conversionReviewVersions"));
    webhook_init(&c->hook, spec, APISERVER_CONVERSION_SECONDS);
    return c;
}

void apiserver_conversion_free(const struct api_conversion *c)
{
    if (!c)
        return;
    webhook_done((struct webhook *)&c->hook);
    json_decref(c->definition);
    free((void *)c);
}

/* A conversion on its way: what goes where, and how it is called in errors. */
struct task {
    const struct api_conversion *c;
    const struct api_kind *kind;
    char to[128];
    char about[400]; /* example.com/v1, Kind=Foo */
};

static void set_about(struct task *t, const json_t *first, bool list)
{
    snprintf(t->about, sizeof(t->about), "%.128s, Kind=%.200s%s", json_text(first, "apiVersion"),
             t->kind->kind, list ? "List" : "");
}

static int failed(const struct task *t, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int failed(const struct task *t, struct err *e, const char *fmt, ...)
{
    struct err why = {0};
    va_list ap;
    va_start(ap, fmt);
    err_vset(&why, ERR_INTERNAL, "Unknown", fmt, ap);
    va_end(ap);
    err_set(e, ERR_INTERNAL, "Unknown", "conversion webhook for %s %s", t->about, why.msg);
    json_clean_message(e);
    return -1;
}

/* A copy without managedFields, which are large and not a webhook's. */
static json_t *to_send(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object);
    json_t *metadata = json_copy(json_object_get(object, "metadata"));
    if (metadata) {
        json_object_del(metadata, "managedFields");
        json_object_set_new(copy, "metadata", metadata);
    }
    return copy;
}

/* The response in an answer, as far as it is not about single objects. Borrowed from `answer`. */
static const json_t *check_response(const struct task *t, const json_t *answer, const char *uid,
                                    struct err *e)
{
    char wanted[64];
    const char *kind = json_str(answer, "kind"), *version = json_str(answer, "apiVersion");
    snprintf(wanted, sizeof(wanted), "apiextensions.k8s.io/%s", t->c->version);
    const json_t *response = json_object_get(answer, "response");
    const json_t *result = json_object_get(response, "result");
    const char *status = json_str(result, "status"), *message = json_str(result, "message");
    const char *own = json_str(response, "uid");
    bool strict = str_eq(t->c->version, "v1");
    if (strict &&
        (!kind || !version || !str_eq(kind, "ConversionReview") || !str_eq(version, wanted)))
        failed(t, e,
               "failed: expected webhook response of %s, Kind=ConversionReview, got %.100s, "
               "Kind=%.100s",
               wanted, version ? version : "", kind ? kind : "");
    else if (!json_is_object(response))
        failed(t, e, "failed: no response provided");
    else if (strict && (!own || !str_eq(own, uid)))
        failed(t, e, "failed: expected response.uid=\"%s\", got \"%.100s\"", uid, own ? own : "");
    else if (!status || !str_eq(status, "Success")) {
        if (message && *message)
            failed(t, e, "failed: %.500s", message);
        else
            failed(t, e, "failed: response.result.status was '%.100s', not 'Success'",
                   status ? status : "");
    } else {
        return response;
    }
    return NULL;
}

/* Labels or annotations that came back: a map of strings, or nothing. */
static int check_map(const struct task *t, const json_t *map, const char *key, size_t i,
                     struct err *e)
{
    const char *name;
    json_t *value;
    if (map && !json_is_null(map) && !json_is_object(map))
        return failed(t, e,
                      "returned invalid metadata in object at index %zu: metadata.%s is no map of "
                      "strings",
                      i, key);
    json_object_foreach((json_t *)map, name, value) {
        if (!json_is_string(value))
            return failed(t, e,
                          "returned invalid metadata in object at index %zu: metadata.%s[%.100s] "
                          "must be a string",
                          i, key, name);
    }
    return 0;
}

/* What came back for an object that was sent; takes its metadata over, but for two members. */
static int take_back(const struct task *t, const json_t *sent, json_t *got, size_t i, struct err *e)
{
    static const char *const fixed[] = {"name", "namespace", "uid", NULL};
    static const char *const words[] = {"name", "namespace", "UID"};
    static const char *const open[] = {"labels", "annotations", NULL};
    const char *version = json_str(got, "apiVersion"), *kind = json_str(got, "kind");
    if (!version || !str_eq(version, t->to))
        return failed(t, e,
                      "returned invalid converted object at index %zu: invalid groupVersion "
                      "(expected %s, received %.100s)",
                      i, t->to, version ? version : "");
    if (!kind || !str_eq(kind, t->kind->kind))
        return failed(t, e,
                      "returned invalid converted object at index %zu: invalid kind (expected %s, "
                      "received %.100s)",
                      i, t->kind->kind, kind ? kind : "");
    const json_t *metadata = json_object_get(got, "metadata");
    for (size_t j = 0; fixed[j]; j++) {
        if (!str_eq(json_text(sent, "metadata", fixed[j]), json_text(got, "metadata", fixed[j])))
            return failed(t, e,
                          "returned invalid converted object at index %zu: must have the same %s: "
                          "%s != %.100s",
                          i, words[j], json_text(sent, "metadata", fixed[j]),
                          json_text(got, "metadata", fixed[j]));
    }
    if (!json_is_object(metadata))
        return failed(t, e, "returned invalid metadata in object at index %zu: it has none", i);
    json_auto_t *kept = json_deep_copy(json_object_get(sent, "metadata"));
    for (const char *const *key = open; *key; key++) {
        json_t *map = json_object_get(metadata, *key);
        if (check_map(t, map, *key, i, e) < 0)
            return -1;
        if (json_is_object(map))
            json_object_set(kept, *key, map);
        else
            json_object_del(kept, *key);
    }
    json_object_set(got, "metadata", kept);
    return 0;
}

/* Labels and annotations that a webhook made up keep to the rules that users do. */
static int check_metadata(const struct task *t, const json_t *object, struct err *e)
{
    struct api_report report = {0};
    api_check_metadata(t->kind, object, &report);
    int status = 0;
    if (report.errors)
        status = failed(t, e, "returned invalid metadata: %s: %s", report.problems.p[0].path,
                        report.problems.p[0].message);
    api_report_done(&report);
    return status;
}

/* Sends one review. *ret_objects is an array of as many objects, a new reference. */
static int review(const struct task *t, json_t *objects, json_t **ret_objects, struct err *e)
{
    char text[UUID_TEXT_MAX];
    struct uuid uuid = uuid_random();
    struct err why = {0};
    uuid_format(&uuid, text);
    if (!t->c->version)
        return failed(t, e, "failed: no supported conversion review versions");
    json_auto_t *request =
        json_pack("{s:s,s:s,s:O}", "uid", text, "desiredAPIVersion", t->to, "objects", objects);
    json_auto_t *body =
        json_pack("{s:s,s:o,s:O}", "kind", "ConversionReview", "apiVersion",
                  json_sprintf("apiextensions.k8s.io/%s", t->c->version), "request", request);
    json_auto_t *answer = webhook_send(&t->c->hook, t->c->g, body, &why);
    if (!answer)
        return failed(t, e, "failed: %s", why.msg);
    const json_t *response = check_response(t, answer, text, e);
    if (!response)
        return -1;
    const json_t *converted = json_object_get(response, "convertedObjects");
    if (json_array_size(converted) != json_array_size(objects))
        return failed(t, e, "returned %zu objects, expected %zu", json_array_size(converted),
                      json_array_size(objects));
    *ret_objects = json_incref((json_t *)converted);
    return 0;
}

/* Converts what an array has, in place. */
static int convert_batch(const struct task *t, json_t *originals, struct err *e)
{
    json_auto_t *sent = json_array();
    size_t i;
    json_t *original, *got;
    json_array_foreach(originals, i, original)
        json_array_append_new(sent, to_send(original));
    json_auto_t *back = NULL;
    if (review(t, sent, &back, e) < 0)
        return -1;
    json_array_foreach(back, i, got) {
        if (take_back(t, json_array_get(originals, i), got, i, e) < 0 ||
            check_metadata(t, got, e) < 0)
            return -1;
        json_array_set(originals, i, got);
    }
    return 0;
}

json_t *apiserver_convert_json(const struct api_kind *kind, const json_t *object,
                               const struct api_group_version *to, struct err *e)
{
    struct task t = {.c = kind->conversion, .kind = kind};
    const char *from = json_str(object, "apiVersion");
    api_version_text(to, t.to);
    if (from && str_eq(from, t.to))
        return json_incref((json_t *)object);
    set_about(&t, object, false);
    json_auto_t *one = json_array();
    json_array_append(one, (json_t *)object);
    return convert_batch(&t, one, e) < 0 ? NULL : json_incref(json_array_get(one, 0));
}

static bool is_in(const struct apiserver_object *o, const struct api_group_version *gv)
{
    char version[128], start[160];
    snprintf(start, sizeof(start), "{\"apiVersion\":\"%s\",", api_version_text(gv, version));
    return str_starts_with(o->bytes, start);
}

/* Whether an object is stored in another version than the kind's, and somebody has to convert it. */
static bool needs_conversion(const struct api_kind *kind, const struct apiserver_object *o)
{
    return kind->conversion && !is_in(o, api_kind_canonical(kind));
}

bool apiserver_conversion_current(const struct api_kind *kind, const struct apiserver_object *o)
{
    return is_in(o, api_kind_stored(kind));
}

/* The object of its own that a converted one is. */
static struct apiserver_object *make(const struct api_kind *kind, const struct apiserver_object *o,
                                     const json_t *converted)
{
    _cleanup_(str_done) struct str head = {0}, tail = {0};
    json_auto_t *read = api_read(kind, converted);
    registry_encode(read, &head, &tail);
    return apiserver_object_new(o->collection, o->key, o->revision, head.p, head.len, tail.p,
                                tail.len);
}

int apiserver_convert(const struct api_kind *kind, struct apiserver_object **objects, size_t n,
                      struct err *e)
{
    struct task t = {.c = kind->conversion, .kind = kind};
    if (!kind->conversion)
        return 0;
    api_version_text(api_kind_canonical(kind), t.to);
    for (size_t i = 0; i < n;) {
        json_auto_t *batch = json_array();
        size_t first = i, bytes = 0;
        for (; i < n && json_array_size(batch) < BATCH_OBJECTS && bytes < BATCH_BYTES; i++) {
            if (!needs_conversion(kind, objects[i]))
                continue;
            json_t *object = json_parse(objects[i]->bytes, objects[i]->size, NULL, e);
            if (!object)
                return -1;
            bytes += objects[i]->size;
            json_array_append_new(batch, object);
        }
        if (!json_array_size(batch))
            continue;
        set_about(&t, json_array_get(batch, 0), n > 1);
        if (convert_batch(&t, batch, e) < 0)
            return -1;
        for (size_t j = first, done = 0; j < i; j++) {
            if (!needs_conversion(kind, objects[j]))
                continue;
            struct apiserver_object *was = objects[j];
            objects[j] = make(kind, was, json_array_get(batch, done++));
            apiserver_object_unref(was);
        }
    }
    return 0;
}

struct apiserver_object *apiserver_convert_one(const struct api_kind *kind,
                                               struct apiserver_object *o, struct err *e)
{
    if (!o || apiserver_convert(kind, &o, 1, e) == 0)
        return o;
    apiserver_object_unref(o);
    return NULL;
}
