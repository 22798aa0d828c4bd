/*
 * Reviews: questions that are posted, answered in their status, and never stored.
 */
#include "api/kinds/kinds.h"
#include "apiserver/serve_impl.h"

static const struct {
    const struct api_kind *kind;
    int (*answer)(struct call *c, json_t *object); /* -1 with c->err, or problems in c->report */
} reviews[] = {
    {&api_self_subject_review, review_self},
    {&api_token_review, review_token},
};

void call_review(struct call *c)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(reviews) && reviews[i].kind != c->path.kind)
        i++;
    json_auto_t *object = i < ARRAY_SIZE(reviews) ? call_body_object(c) : NULL;
    if (i == ARRAY_SIZE(reviews))
        err_set(&c->err, ERR_NOT_FOUND, "NotFound",
                "the server could not find the requested resource");
    if (!object || reviews[i].answer(c, object) < 0)
        call_fail(c);
    else
        call_reply_json(c, 201, object);
}
