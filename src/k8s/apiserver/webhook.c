#include <pthread.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "json/patch.h"
#include "k8s/apiserver/status.h"
#include "k8s/apiserver/webhook_impl.h"

struct apiserver_webhooks {
    struct apiserver_metrics *metrics;
    pthread_mutex_t lock;
    struct webhook_set *sets[2]; /* validating, mutating; NULL: none yet */
};

static const char *const collections[] = {
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
};

struct apiserver_webhooks *apiserver_webhooks_new(struct apiserver_metrics *metrics)
{
    struct apiserver_webhooks *w = NEW(struct apiserver_webhooks);
    w->metrics = metrics;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void apiserver_webhooks_free(struct apiserver_webhooks *w)
{
    if (!w)
        return;
    webhook_set_unref(w->sets[0]);
    webhook_set_unref(w->sets[1]);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* The webhooks of now, a new reference; NULL when there are none. */
static struct webhook_set *present(struct apiserver_webhooks *w, struct apiserver_store *store,
                                   bool mutating)
{
    struct apiserver_list list;
    struct webhook_set *s = NULL;
    apiserver_store_list(store, collections[mutating], &(struct apiserver_list_options){0}, &list,
                         NULL);
    if (list.objects.len) {
        pthread_mutex_lock(&w->lock);
        if (!webhook_set_is_of(w->sets[mutating], &list)) {
            webhook_set_unref(w->sets[mutating]);
            w->sets[mutating] = webhook_set_new(&list);
        }
        s = webhook_set_ref(w->sets[mutating]);
        pthread_mutex_unlock(&w->lock);
    }
    apiserver_list_done(&list);
    return s;
}

bool apiserver_webhooks_any(struct apiserver_store *store)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(collections) && !any; i++) {
        struct apiserver_list list;
        struct apiserver_list_options one = {.limit = 1};
        apiserver_store_list(store, collections[i], &one, &list, NULL);
        any = list.objects.len > 0;
        apiserver_list_done(&list);
    }
    return any;
}

/* Somebody who could not write these without being asked could never mend them. */
static bool is_exempt(const struct apiserver_request *r)
{
    return str_eq(api_kind_canonical(r->kind)->group, "admissionregistration.k8s.io");
}

/* How long a webhook has: its own time, or what is left of the request's. */
static int64_t time_for(const struct webhook *h, struct apiserver_admission *a)
{
    int64_t now = clock_mono_ns(clock_system());
    if (!a->deadline)
        a->deadline = now + APISERVER_WEBHOOK_SECONDS * CLOCK_SECOND;
    int64_t left = a->deadline - now;
    left = left > 1 ? left : 1;
    return left < h->timeout_ns ? left : h->timeout_ns;
}

/* The Status of a refusal: the webhook's own, with words that say whose it is. */
static json_t *denial(const struct webhook *h, const json_t *response)
{
    const json_t *said = json_object_get(response, "status");
    json_t *status = json_pack("{s:s,s:s,s:{},s:s}", "kind", "Status", "apiVersion", "v1",
                               "metadata", "status", "Failure");
    const char *message = json_str(said, "message"), *reason = json_str(said, "reason");
    json_int_t code = json_integer_value(json_object_get(said, "code"));
    _cleanup_(str_done) struct str text = {0};
    str_appendf(&text, "admission webhook \"%s\" denied the request", h->name);
    if (message && *message)
        str_appendf(&text, ": %s", message);
    else if (reason && *reason)
        str_appendf(&text, ": %s", reason);
    else
        str_append(&text, " without explanation");
    json_object_set_new(status, "message", json_string(str_get(&text)));
    if (reason && *reason)
        json_object_set_new(status, "reason", json_string(reason));
    if (json_is_object(json_object_get(said, "details")))
        json_object_set(status, "details", json_object_get(said, "details"));
    json_object_set_new(status, "code", json_integer(code < 400 || code > 599 ? 400 : code));
    return status;
}

static int deny(const struct webhook *h, struct apiserver_admission *a, const json_t *response,
                struct err *e)
{
    json_auto_t *status = denial(h, response);
    struct apiserver_notes *notes = a->request->notes;
    err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "%s", json_str(status, "message"));
    if (notes) {
        json_decref(notes->status);
        notes->status = json_incref(status);
    }
    return -1;
}

static void pass_warnings(struct apiserver_admission *a, const json_t *response)
{
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(response, "warnings"), i, text) {
        if (json_is_string(text))
            apiserver_notes_warn(a->request->notes, "%s", json_string_value(text));
    }
}

/* The patched object, as far as it is a webhook's to change. */
static void take_over(struct apiserver_admission *a, json_t *patched)
{
    static const char *const kept[] = {"name",
                                       "namespace",
                                       "uid",
                                       "resourceVersion",
                                       "creationTimestamp",
                                       "generation",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       NULL};
    const struct apiserver_request *r = a->request;
    json_t *before = json_object_get(a->object, "metadata");
    json_t *metadata = json_object_get(patched, "metadata");
    for (const char *const *key = kept; *key && json_is_object(metadata); key++) {
        json_t *value = json_object_get(before, *key);
        if (value)
            json_object_set(metadata, *key, value);
        else
            json_object_del(metadata, *key);
    }
    json_auto_t *status = json_incref(json_object_get(patched, "status"));
    bool apart = r->kind->flags & API_STATUS;
    if (apart && apiserver_is_status(r->subresource)) {
        json_object_set(a->object, "status", status ? status : json_null());
        if (!status)
            json_object_del(a->object, "status");
        return;
    }
    if (apart) {
        json_t *own = json_object_get(a->object, "status");
        if (own)
            json_object_set(patched, "status", own);
        else
            json_object_del(patched, "status");
    }
    char text[128];
    json_object_set_new(
        patched, "apiVersion",
        json_string(api_version_text(r->gv ? r->gv : api_kind_canonical(r->kind), text)));
    json_object_clear(a->object);
    json_object_update(a->object, patched);
}

/* *ret_changed: the object is another now. */
static int apply_patch(const struct webhook *h, struct apiserver_admission *a, const json_t *review,
                       const json_t *response, bool *ret_changed, struct err *e)
{
    const char *text = json_str(response, "patch");
    if (!text || !*text || !a->object)
        return 0;
    _cleanup_(str_done) struct str bytes = {0};
    struct err why = {0};
    json_auto_t *ops = NULL, *patched = NULL;
    const json_t *sent = json_at(review, "request", "object");
    if (!base64_parse(text, strlen(text), BASE64_STD, &bytes))
        err_set(&why, ERR_INTERNAL, "InternalError", "it is no base64");
    else
        ops = json_parse(str_get(&bytes), bytes.len, NULL, &why);
    json_auto_t *shared = ops ? json_patch_apply(sent, ops, &why) : NULL;
    if (shared && !json_is_object(json_object_get(shared, "metadata")))
        err_set(&why, ERR_INTERNAL, "InternalError", "it leaves no object");
    else if (shared)
        patched = json_deep_copy(shared);
    if (!patched)
        return err_set(e, ERR_INTERNAL, "InternalError",
                       "the patch of the admission webhook \"%s\" does not apply: %s", h->name,
                       why.msg);
    *ret_changed = !json_equal((json_t *)sent, patched);
    if (*ret_changed)
        take_over(a, patched);
    return 0;
}

/* What to do about a webhook that failed. */
static int failed(struct apiserver_webhooks *w, const struct webhook *h,
                  struct apiserver_admission *a, bool mutating, const struct err *why,
                  struct err *e)
{
    if (!h->ignore) {
        *e = *why;
        return -1;
    }
    log_warn("webhook failed and is passed over", LOG_S("webhook", h->name),
             LOG_S("operation", webhook_operation(a)), LOG_S("kind", a->request->kind->kind),
             LOG_ERR(why));
    apiserver_metrics_fail_open(w->metrics, h->name, mutating);
    return 0;
}

/* Asks one webhook, if it wants to be. *ret_asked: it was. */
static int ask(struct apiserver_webhooks *w, const struct webhook *h, struct apiserver_admission *a,
               bool mutating, bool *ret_asked, bool *ret_changed, struct err *e)
{
    const struct api_group_version *gv;
    struct err why = {0}, ignored = {0};
    e = e ? e : &ignored;
    *ret_asked = *ret_changed = false;
    if (!webhook_matches(h, a, &gv))
        return 0;
    char text[UUID_TEXT_MAX];
    struct uuid uid = uuid_random();
    json_auto_t *review = webhook_review(a, gv, uuid_format(&uid, text));
    int wanted = webhook_conditions(h, a, review, &why);
    if (wanted <= 0)
        return wanted == 0 ? 0 : failed(w, h, a, mutating, &why, e);
    if (a->request->dry_run && h->side_effects)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest",
                       "admission webhook \"%s\" does not support dry run", h->name);
    *ret_asked = true;
    json_auto_t *response = NULL;
    int64_t start = clock_mono_ns(clock_system());
    int status = webhook_call(h, a->registry, review, mutating, time_for(h, a), &response, &why);
    bool allowed = json_is_true(json_object_get(response, "allowed"));
    apiserver_metrics_webhook(w->metrics, h->name, mutating, webhook_operation(a),
                              status == 0 ? !allowed : !h->ignore,
                              clock_mono_ns(clock_system()) - start);
    if (status < 0)
        return failed(w, h, a, mutating, &why, e);
    pass_warnings(a, response);
    if (!allowed)
        return deny(h, a, response, e);
    return mutating ? apply_patch(h, a, review, response, ret_changed, e) : 0;
}

int apiserver_webhooks_mutate(struct apiserver_admission *a, struct err *e)
{
    struct apiserver_webhooks *w = a->registry->webhooks;
    if (!w || is_exempt(a->request))
        return 0;
    _cleanup_(webhook_set_unrefp) struct webhook_set *s = present(w, a->registry->store, true);
    if (!s)
        return 0;
    /* Where the object last changed: those that were asked before may want to see it again. */
    size_t last_change = 0;
    bool asked, changed;
    _cleanup_free_ bool *was_asked = mem_zalloc(s->hooks.len + 1);
    for (size_t i = 0; i < s->hooks.len; i++) {
        if (ask(w, &s->hooks.p[i], a, true, &asked, &changed, e) < 0)
            return -1;
        was_asked[i] = asked;
        last_change = changed ? i : last_change;
    }
    for (size_t i = 0; i < s->hooks.len; i++) {
        if (!was_asked[i] || !s->hooks.p[i].reinvoke || last_change <= i)
            continue;
        if (ask(w, &s->hooks.p[i], a, true, &asked, &changed, e) < 0)
            return -1;
        last_change = changed ? s->hooks.len : last_change;
    }
    return 0;
}

int apiserver_webhooks_validate(struct apiserver_admission *a, struct err *e)
{
    struct apiserver_webhooks *w = a->registry->webhooks;
    if (!w || is_exempt(a->request))
        return 0;
    _cleanup_(webhook_set_unrefp) struct webhook_set *s = present(w, a->registry->store, false);
    for (size_t i = 0; s && i < s->hooks.len; i++) {
        bool asked, changed;
        if (ask(w, &s->hooks.p[i], a, false, &asked, &changed, e) < 0)
            return -1;
    }
    return 0;
}
