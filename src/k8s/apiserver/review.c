/*
 * Reviews: questions that are posted, answered in their status, and never stored.
 */
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

static const struct {
    const struct api_kind *kind;
    int (*answer)(struct call *c, json_t *object); /* -1 with c->err, or problems in c->report */
} reviews[] = {
    {&api_local_subject_access_review, review_local_access},
    {&api_self_subject_access_review, review_self_access},
    {&api_self_subject_review, review_self},
    {&api_self_subject_rules_review, review_self_rules},
    {&api_subject_access_review, review_access},
    {&api_token_review, review_token},
};

/* The question, checked; NULL with c->err. */
static json_t *question(struct call *c)
{
    json_auto_t *object = call_body_object(c);
    if (!object)
        return NULL;
    if (!json_object_get(object, "metadata"))
        json_object_set_new(object, "metadata", json_object());
    json_object_del(object, "status");
    if (!api_admit(c->path.kind, object, NULL, API_UNKNOWN_IGNORE, &c->report)) {
        err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "the %s is not valid",
                c->path.kind->kind);
        return NULL;
    }
    return json_incref(object);
}

void call_review(struct call *c)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(reviews) && reviews[i].kind != c->path.kind)
        i++;
    json_auto_t *object = i < ARRAY_SIZE(reviews) ? question(c) : NULL;
    if (i == ARRAY_SIZE(reviews))
        err_set(&c->err, ERR_NOT_FOUND, "NotFound",
                "the server could not find the requested resource");
    if (!object || reviews[i].answer(c, object) < 0)
        call_fail(c);
    else
        call_reply_value(c, 201, object);
}
