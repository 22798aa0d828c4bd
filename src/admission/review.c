#include "admission/review.h"

#include "api/admit.h"
#include "kinds/access.h"

#define REVIEW_VERSION "admission.k8s.io/v1"

enum { UID_MAX = 256, SHOWN_PROBLEMS = 20 };

struct request {
    const json_t *request;
    const char *uid, *operation, *subresource;
    const struct api_kind *kind; /* NULL: none of ours */
    const json_t *object, *old;  /* NULL where there is none */
    bool dry_run;
};

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "%s", what);
}

static const json_t *object_or_null(const json_t *request, const char *key)
{
    const json_t *value = json_object_get(request, key);
    return json_is_object(value) ? value : NULL;
}

/* A literal of the word; NULL. */
static const char *operation_of(const char *word)
{
    static const char *const words[] = {"CREATE", "UPDATE", "DELETE", "CONNECT"};
    for (size_t i = 0; word && i < ARRAY_SIZE(words); i++) {
        if (str_eq(words[i], word))
            return words[i];
    }
    return NULL;
}

static const struct api_kind *kind_of(const json_t *gvk)
{
    const char *group = json_str(gvk, "group"), *version = json_str(gvk, "version");
    const char *kind = json_str(gvk, "kind");
    if (!group || !version || !kind)
        return NULL;
    _cleanup_free_ char *text = mem_printf("%s%s%s", group, *group ? "/" : "", version);
    const struct api_kind *found = api_kind_find(text, kind, NULL);
    return found && !(found->flags & API_BUILTIN) ? found : NULL;
}

static int take(const json_t *review, struct request *ret, struct err *e)
{
    const char *version = json_str(review, "apiVersion"), *kind = json_str(review, "kind");
    const json_t *request = json_object_get(review, "request");
    if (!version || !kind || !str_eq(version, REVIEW_VERSION) || !str_eq(kind, "AdmissionReview"))
        return bad(e, "this is no AdmissionReview of " REVIEW_VERSION);
    *ret = (struct request){
        .request = request,
        .uid = json_str(request, "uid"),
        .operation = operation_of(json_str(request, "operation")),
        .subresource = json_str(request, "subResource"),
        .kind = kind_of(json_object_get(request, "kind")),
        .object = object_or_null(request, "object"),
        .old = object_or_null(request, "oldObject"),
        .dry_run = json_is_true(json_object_get(request, "dryRun")),
    };
    if (!ret->uid || !*ret->uid || strlen(ret->uid) > UID_MAX)
        return bad(e, "the request has no uid");
    if (!ret->operation)
        return bad(e, "the request has no operation");
    bool writes = !str_eq(ret->operation, "DELETE") && !str_eq(ret->operation, "CONNECT");
    if (ret->kind && writes && !ret->object)
        return bad(e, "the request has no object");
    if (ret->kind && str_eq(ret->operation, "UPDATE") && !ret->old)
        return bad(e, "the request has no oldObject");
    return 0;
}

/*
 * Who empties namespaces and collects what has lost its owner must not be held up: what they delete
 * was decided by somebody else.
 */
static bool is_cleaner(const json_t *request)
{
    static const char *const names[] = {
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:kube-controller-manager",
        "system:apiserver",
        NULL,
    };
    const char *name = json_str(json_object_get(request, "userInfo"), "username");
    return name && str_in(name, names);
}

static int check_among(const struct admission_judge *judge, const struct request *r,
                       const json_t *object, json_t *wishes, struct api_report *report,
                       struct err *e)
{
    json_auto_t *old = r->old ? api_read(r->kind, r->old) : NULL;
    const struct api_among a = {
        .lookup = judge->lookup, .object = object, .old = old, .report = report, .wishes = wishes};
    return r->kind->among ? api_check_among(r->kind, &a, e) : 0;
}

static bool is_in_group(const json_t *user, const char *group)
{
    size_t i;
    json_t *it;
    json_array_foreach(json_object_get(user, "groups"), i, it) {
        if (json_is_string(it) && str_eq(json_string_value(it), group))
            return true;
    }
    return false;
}

/* Programs of ours write what is their own: refused with *ret_refusal set. -1: nobody can say. */
static int check_access(const struct admission_judge *judge, const struct request *r,
                        struct err *ret_refusal, struct err *e)
{
    static const char *const verbs[][2] = {
        {"CREATE", "create"}, {"UPDATE", "update"}, {"DELETE", "delete"}};
    const json_t *user = json_object_get(r->request, "userInfo");
    const char *name = json_str(user, "username"), *verb = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (str_eq(verbs[i][0], r->operation))
            verb = verbs[i][1];
    }
    if (!name || !verb || is_in_group(user, "system:masters"))
        return 0;
    struct api_actor actor;
    api_actor_init(&actor, name, is_in_group(user, "system:nodes"), json_object_get(user, "extra"));
    json_auto_t *old = r->old ? api_read(r->kind, r->old) : NULL;
    json_auto_t *object = r->object ? api_read(r->kind, r->object) : NULL;
    const struct api_write w = {
        .kind = r->kind, .verb = verb, .subresource = r->subresource, .old = old, .object = object};
    struct err why = {0};
    int status = api_access_check(&actor, &w, judge->lookup, &why);
    api_actor_done(&actor);
    if (status == 0)
        return 0;
    *(why.code == ERR_PERMISSION_DENIED ? ret_refusal : e) = why;
    return why.code == ERR_PERMISSION_DENIED ? 0 : -1;
}

/* Everything that there is to say of a request goes into the report, or is a refusal. */
static int judge_request(const struct admission_judge *judge, const struct request *r,
                         struct api_report *report, struct err *ret_refusal, struct err *e)
{
    if (r->kind && check_access(judge, r, ret_refusal, e) < 0)
        return -1;
    if (ret_refusal->code)
        return 0;
    bool status = r->subresource && str_eq(r->subresource, "status");
    if (!r->kind || (r->subresource && *r->subresource && !status) ||
        str_eq(r->operation, "CONNECT"))
        return 0;
    if (str_eq(r->operation, "DELETE"))
        return !r->old || is_cleaner(r->request) ? 0 : check_among(judge, r, NULL, NULL, report, e);
    json_auto_t *object = json_deep_copy(r->object), *wishes = json_array();
    const json_t *old = str_eq(r->operation, "UPDATE") ? r->old : NULL;
    if (!api_admit(r->kind, object, old, API_UNKNOWN_IGNORE, report) || status)
        return 0;
    if (check_among(judge, r, object, r->dry_run ? NULL : wishes, report, e) < 0)
        return -1;
    size_t i;
    json_t *wish;
    json_array_foreach(report->errors || !judge->fulfil ? NULL : wishes, i, wish)
        judge->fulfil(judge->context, wish);
    return 0;
}

/* The answer. */

static json_t *causes_of(const struct api_report *report)
{
    json_t *causes = json_array();
    vec_for_each(&report->problems, p) {
        if (!p->warning)
            json_array_append_new(causes,
                                  json_pack("{s:s, s:s, s:s}", "reason", api_cause_reason(p->cause),
                                            "message", p->message, "field", p->path));
    }
    return causes;
}

/* All problems in one text, as Kubernetes joins them. */
static void append_problems(const struct api_report *report, struct str *out)
{
    bool several = report->errors > 1;
    unsigned n = 0;
    str_append(out, several ? "[" : "");
    vec_for_each(&report->problems, p) {
        if (p->warning)
            continue;
        if (n++ == SHOWN_PROBLEMS) {
            str_appendf(out, ", and %u more", report->errors - SHOWN_PROBLEMS);
            break;
        }
        str_appendf(out, "%s%s: %s", n > 1 ? ", " : "", p->path, p->message);
    }
    str_append(out, several ? "]" : "");
}

static json_t *status_of(const struct request *r, const struct api_report *report)
{
    const json_t *metadata = json_object_get(r->object ? r->object : r->old, "metadata");
    const char *name = json_str(metadata, "name");
    const char *group = api_kind_canonical(r->kind)->group;
    bool deletion = str_eq(r->operation, "DELETE");
    _cleanup_(str_done) struct str text = {0};
    str_appendf(&text, "%s.%s \"%s\" is %s: ", deletion ? r->kind->plural : r->kind->kind, group,
                name ? name : "", deletion ? "forbidden" : "invalid");
    append_problems(report, &text);
    return json_pack("{s:s, s:s, s:s, s:i, s:{s:s, s:s, s:s, s:o}}", "status", "Failure", "message",
                     str_get(&text), "reason", deletion ? "Forbidden" : "Invalid", "code",
                     deletion ? 403 : 422, "details", "name", name ? name : "", "group", group,
                     "kind", r->kind->kind, "causes", causes_of(report));
}

static json_t *warnings_of(const struct api_report *report)
{
    json_t *warnings = json_array();
    vec_for_each(&report->problems, p) {
        if (p->warning)
            json_array_append_new(warnings, json_sprintf("%s: %s", p->path, p->message));
    }
    return warnings;
}

static json_t *answer(const struct request *r, const struct api_report *report,
                      const struct err *refusal)
{
    bool allowed = !report->errors && !refusal->code;
    json_t *response = json_pack("{s:s, s:b}", "uid", r->uid, "allowed", allowed);
    if (refusal->code)
        json_object_set_new(response, "status",
                            json_pack("{s:s, s:s, s:s, s:i}", "status", "Failure", "message",
                                      refusal->msg, "reason", "Forbidden", "code", 403));
    else if (report->errors)
        json_object_set_new(response, "status", status_of(r, report));
    if (report->warnings)
        json_object_set_new(response, "warnings", warnings_of(report));
    return json_pack("{s:s, s:s, s:o}", "apiVersion", REVIEW_VERSION, "kind", "AdmissionReview",
                     "response", response);
}

json_t *admission_review(const struct admission_judge *judge, const char *body, size_t n,
                         struct admission_verdict *ret_verdict, struct err *e)
{
    struct request r = {0};
    struct err why = {0};
    json_auto_t *review = json_parse(body, n, NULL, &why);
    if (!review) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "%s", why.msg);
        return NULL;
    }
    if (take(review, &r, e) < 0)
        return NULL;
    struct api_report report = {0};
    json_t *reply = NULL;
    struct err refusal = {0};
    if (judge_request(judge, &r, &report, &refusal, e) == 0) {
        reply = answer(&r, &report, &refusal);
        *ret_verdict =
            (struct admission_verdict){r.kind, r.operation, !report.errors && !refusal.code};
    } else if (e && e->code == ERR_INVALID_ARGUMENT) {
        e->code = ERR_INTERNAL; /* of our own request, not of theirs */
    }
    api_report_done(&report);
    return reply;
}
