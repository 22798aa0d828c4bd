#include "k8s/apiserver/delete_options.h"

#include "k8s/apiserver/protobuf.h"
#include "k8s/kinds/kinds.h"

const struct api_kind delete_options_kind = {
    .kind = "DeleteOptions",
    .plural = "deleteoptions",
    .singular = "deleteoptions",
    .versions = API_VERSION("meta.k8s.io", "v1"),
};

static const struct api_field preconditions[] = {
    {"uid", API_STRING, .doc = "The uid that the object must have."},
    {"resourceVersion", API_STRING, .doc = "The resourceVersion that it must have."},
    {0},
};

static const struct api_field fields[] = {
    {"kind", API_STRING, .doc = "DeleteOptions."},
    {"apiVersion", API_STRING, .doc = "Any version: all mean the same."},
    {"gracePeriodSeconds", API_INT, .doc = "Time to end gracefully."},
    {"preconditions", API_OBJECT, .fields = preconditions, .doc = "What must hold."},
    {"orphanDependents", API_BOOL, .doc = "The old way to say propagationPolicy."},
    {"propagationPolicy", API_STRING, .doc = "What becomes of what the object owns."},
    {"dryRun", API_STRING, API_LIST, .doc = "All: change nothing."},
    {0},
};

static const struct api_kind readable = {.kind = "DeleteOptions", .fields = fields};

/* The same members from the query; numbers and booleans that are none are left for the check. */
static json_t *from_query(const struct http_request *http)
{
    json_t *options = json_object();
    const char *policy = http_request_query(http, "propagationPolicy");
    const char *orphan = http_request_query(http, "orphanDependents");
    const char *grace = http_request_query(http, "gracePeriodSeconds");
    if (policy)
        json_object_set_new(options, "propagationPolicy", json_string(policy));
    if (orphan)
        json_object_set_new(options, "orphanDependents",
                            str_eq(orphan, "true") || str_eq(orphan, "1")    ? json_true()
                            : str_eq(orphan, "false") || str_eq(orphan, "0") ? json_false()
                                                                             : json_string(orphan));
    if (grace) {
        char *end;
        long long seconds = strtoll(grace, &end, 10);
        json_object_set_new(options, "gracePeriodSeconds",
                            *grace && !*end ? json_integer(seconds) : json_string(grace));
    }
    return options;
}

static void drop_nulls(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) {
        if (json_is_null(value))
            json_object_del(object, key);
    }
}

static json_t *read_options(const struct http_request *http, struct err *e)
{
    if (!http->body_size)
        return from_query(http);
    struct err why = {0};
    const char *type = http_request_header(http, "Content-Type");
    json_t *options = type && str_starts_with(type, APISERVER_PROTOBUF_TYPE)
                          ? apiserver_protobuf_parse(http->body, http->body_size, &why)
                          : json_parse(http->body, http->body_size, NULL, &why);
    if (json_is_object(options)) {
        drop_nulls(options);
        return options;
    }
    json_decref(options);
    err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the body must be DeleteOptions%s%s",
            why.msg[0] ? ": " : "", why.msg);
    return NULL;
}

static void check_dry_run(const json_t *list, struct api_report *report)
{
    size_t i;
    json_t *word;
    json_array_foreach(list, i, word) {
        if (!str_eq(json_string_value(word), "All"))
            api_problem(report, API_KEY(NULL, "dryRun"), API_UNSUPPORTED, list,
                        "supported values: \"All\"");
    }
}

static void check(const json_t *options, struct api_report *report)
{
    static const char *const policies[] = {"Foreground", "Background", "Orphan", NULL};
    const json_t *policy = json_object_get(options, "propagationPolicy");
    const struct api_path *at = API_KEY(NULL, "propagationPolicy");
    if (policy && json_object_get(options, "orphanDependents"))
        api_problem(report, at, API_INVALID, policy,
                    "orphanDependents and deletionPropagation cannot be both set");
    if (policy && !str_in(json_string_value(policy), policies))
        api_problem(report, at, API_UNSUPPORTED, policy,
                    "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
    check_dry_run(json_object_get(options, "dryRun"), report);
}

static enum apiserver_propagation propagation_of(const json_t *options)
{
    const char *policy = json_str(options, "propagationPolicy");
    const json_t *orphan = json_object_get(options, "orphanDependents");
    if (policy && str_eq(policy, "Foreground"))
        return APISERVER_PROPAGATE_FOREGROUND;
    if (orphan ? json_is_true(orphan) : policy && str_eq(policy, "Orphan"))
        return APISERVER_PROPAGATE_ORPHAN;
    return policy || orphan ? APISERVER_PROPAGATE_BACKGROUND : APISERVER_PROPAGATE_AS_IS;
}

/* A text that is no revision is one that no object has. */
static uint64_t revision_of(const char *text)
{
    if (!text || !*text)
        return 0;
    char *end;
    uint64_t revision = strtoull(text, &end, 10);
    return *end || strspn(text, "0123456789") == 0 || !revision ? UINT64_MAX : revision;
}

static void fill(struct apiserver_request *r, const json_t *options)
{
    const json_t *conditions = json_object_get(options, "preconditions");
    r->uid = json_str(conditions, "uid");
    r->revision = revision_of(json_str(conditions, "resourceVersion"));
    r->propagation = propagation_of(options);
    const json_t *grace = json_object_get(options, "gracePeriodSeconds");
    r->has_grace = grace;
    r->grace = json_integer_value(grace) < 0 ? 1 : json_integer_value(grace); /* as the original */
    r->dry_run |= json_array_size(json_object_get(options, "dryRun")) > 0;
}

int delete_options_parse(const struct http_request *http, struct apiserver_request *r,
                         struct delete_options *ret_options, struct api_report *report,
                         struct err *e)
{
    *ret_options = (struct delete_options){0};
    json_auto_t *options = read_options(http, e);
    if (!options)
        return -1;
    struct api_report types = {0};
    api_check_structure(&readable, options, API_UNKNOWN_IGNORE, &types);
    if (types.errors) {
        err_set(e, ERR_INVALID_ARGUMENT, "BadRequest", "the body must be DeleteOptions: %s: %s",
                types.problems.p[0].path, types.problems.p[0].message);
        api_report_done(&types);
        return -1;
    }
    api_report_done(&types);
    check(options, report);
    if (report->errors)
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "the DeleteOptions are invalid");
    fill(r, options);
    ret_options->accepted = json_is_false(json_object_get(options, "orphanDependents"));
    ret_options->body = json_incref(options);
    return 0;
}

void delete_options_done(struct delete_options *o)
{
    json_decref(o->body);
    *o = (struct delete_options){0};
}
