#include "base/base64.h"
#include "base/clock.h"
#include "k8s/apiserver/webhook_impl.h"
#include "k8s/schema/match.h"

static void compile_conditions(struct webhook *h)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(h->spec, "matchConditions"), i, item) {
        struct webhook_condition c = {.name = json_str(item, "name")};
        c.program =
            cel_compile(json_text(item, "expression"), api_match_variables, CEL_BOOL, &c.err);
        vec_push(&h->conditions, c);
    }
}

static int make_client(struct webhook *h)
{
    const char *text = json_str(json_object_get(h->spec, "clientConfig"), "caBundle");
    _cleanup_(str_done) struct str ca = {0};
    if (text && !base64_parse(text, strlen(text), BASE64_STD, &ca))
        return err_set(&h->err, ERR_INVALID_ARGUMENT, "InvalidCertificate",
                       "clientConfig.caBundle is no base64");
    h->client = http_client_new(
        &(struct http_client_options){.ca = ca.len ? ca.p : NULL, .user_agent = "orlop-apiserver"},
        &h->err);
    return h->client ? 0 : -1;
}

/* Takes a webhook from its configuration, which was checked when it was written. */
static void compile(const json_t *spec, struct webhook *h)
{
    const char *failure = json_str(spec, "failurePolicy");
    const char *again = json_str(spec, "reinvocationPolicy");
    const char *effects = json_str(spec, "sideEffects");
    json_int_t seconds = json_integer_value(json_object_get(spec, "timeoutSeconds"));
    *h = (struct webhook){
        .name = json_str(spec, "name"),
        .spec = spec,
        .ignore = failure && str_eq(failure, "Ignore"),
        .reinvoke = again && str_eq(again, "IfNeeded"),
        .side_effects = !effects || !(str_eq(effects, "None") || str_eq(effects, "NoneOnDryRun")),
        .timeout_ns = (seconds > 0 ? seconds : 10) * CLOCK_SECOND,
    };
    const json_t *namespaces = json_object_get(spec, "namespaceSelector");
    const json_t *objects = json_object_get(spec, "objectSelector");
    compile_conditions(h);
    if ((namespaces && api_selector_from_json(namespaces, &h->namespaces, &h->err) < 0) ||
        (objects && api_selector_from_json(objects, &h->objects, &h->err) < 0))
        return;
    make_client(h);
}

void webhook_init(struct webhook *h, const json_t *spec, int seconds)
{
    *h = (struct webhook){.spec = spec, .timeout_ns = seconds * CLOCK_SECOND};
    make_client(h);
}

struct webhook_set *webhook_set_new(const struct apiserver_list *list)
{
    struct webhook_set *s = NEW(struct webhook_set);
    s->refs = 1;
    vec_for_each(&list->objects, o) {
        json_t *document = json_parse((*o)->bytes, (*o)->size, NULL, NULL);
        vec_push(&s->objects, apiserver_object_ref(*o));
        vec_push(&s->documents, document);
        size_t i;
        json_t *spec;
        json_array_foreach(json_object_get(document, "webhooks"), i, spec) {
            struct webhook h;
            if (!json_str(spec, "name"))
                continue;
            compile(spec, &h);
            vec_push(&s->hooks, h);
        }
    }
    return s;
}

bool webhook_set_is_of(const struct webhook_set *s, const struct apiserver_list *list)
{
    if (!s || s->objects.len != list->objects.len)
        return false;
    for (size_t i = 0; i < s->objects.len; i++) {
        if (s->objects.p[i] != list->objects.p[i]) /* they live as long as the set */
            return false;
    }
    return true;
}

struct webhook_set *webhook_set_ref(struct webhook_set *s)
{
    __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

void webhook_done(struct webhook *h)
{
    vec_for_each(&h->conditions, c)
        cel_program_free(c->program);
    vec_done(&h->conditions);
    api_selector_done(&h->namespaces);
    api_selector_done(&h->objects);
    if (h->client)
        http_client_free(h->client);
}

void webhook_set_unref(struct webhook_set *s)
{
    if (!s || __atomic_fetch_sub(&s->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    vec_for_each(&s->hooks, h)
        webhook_done(h);
    vec_for_each(&s->documents, d)
        json_decref(*d);
    vec_for_each(&s->objects, o)
        apiserver_object_unref(*o);
    vec_done(&s->hooks);
    vec_done(&s->documents);
    vec_done(&s->objects);
    free(s);
}
