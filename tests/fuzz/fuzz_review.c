/*
 * AdmissionReviews: whatever the bytes say, and whatever other objects look like, the answer is an error
 * or a review with the same uid that says yes or no, and with a reason for no.
 *
 * The input is a review, or {"review": ..., "others": [...]}: objects that rules find.
 */
#include "admission/review.h"
#include "api/admit.h"
#include "fuzz.h"

static bool is_of(const json_t *object, const struct api_kind *kind, const char *namespace,
                  const char *name)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *its = json_str(object, "kind"), *ns = json_str(metadata, "namespace");
    const char *called = json_str(metadata, "name");
    return its && str_eq(its, kind->kind) && (!namespace || !ns || str_eq(ns, namespace)) &&
           (!name || (called && str_eq(called, name)));
}

static json_t *list(void *context, const struct api_kind *kind, const char *namespace,
                    struct err *e)
{
    json_t *found = json_array(), *each;
    size_t i;
    (void)e;
    json_array_foreach((json_t *)context, i, each) {
        if (is_of(each, kind, namespace, NULL))
            json_array_append_new(found, api_read(kind, each));
    }
    return found;
}

static json_t *get(void *context, const struct api_kind *kind, const char *namespace,
                   const char *name, struct err *e)
{
    json_t *each;
    size_t i;
    (void)e;
    json_array_foreach((json_t *)context, i, each) {
        if (is_of(each, kind, namespace, name))
            return api_read(kind, each);
    }
    return NULL;
}

static void fulfil(void *context, const json_t *wish)
{
    (void)context;
    CHECK(json_str(wish, "kind") && json_str(json_object_get(wish, "metadata"), "name"));
}

static void check_answer(const char *body, size_t n, json_t *others)
{
    const struct api_lookup lookup = {get, list, others};
    const struct admission_judge judge = {.lookup = &lookup, .fulfil = fulfil};
    struct admission_verdict verdict = {0};
    struct err e = {0};
    json_auto_t *answer = admission_review(&judge, body, n, &verdict, &e);
    CHECK(answer || (e.code == ERR_INVALID_ARGUMENT && e.msg[0]));
    if (!answer)
        return;
    const json_t *response = json_object_get(answer, "response");
    const char *message = json_str(json_object_get(response, "status"), "message");
    CHECK(json_str(response, "uid"));
    CHECK(verdict.allowed == json_is_true(json_object_get(response, "allowed")));
    CHECK(verdict.allowed || (message && *message));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *none = json_array();
    check_answer((const char *)data, size, none);
    json_auto_t *input = json_parse((const char *)data, size, NULL, NULL);
    const json_t *review = json_object_get(input, "review");
    json_t *others = json_object_get(input, "others");
    _cleanup_(str_done) struct str body = {0};
    if (review) {
        json_format(review, &body);
        check_answer(str_get(&body), body.len, json_is_array(others) ? others : none);
    }
    return 0;
}
