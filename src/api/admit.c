#include "api/admit.h"

#include "api/default.h"
#include "api/metadata.h"
#include "api/normalize.h"
#include "api/prune.h"
#include "api/update.h"

/* A kind of ours or of Kubernetes whose name is near, to suggest. */
static const char *near_kind(const char *name)
{
    const char *names[128];
    size_t n = 0;
    for (const struct api_kind *const *k = api_kinds; *k && n + 1 < ARRAY_SIZE(names); k++)
        names[n++] = (*k)->kind;
    names[n] = NULL;
    return str_nearest(name, names);
}

static const struct api_kind *unknown_kind(const json_t *object, const struct api_kind *other,
                                           struct api_report *report)
{
    const char *kind = json_str(object, "kind"), *version = json_str(object, "apiVersion");
    if (other) {
        _cleanup_(str_done) struct str versions = {0};
        char text[128];
        for (const struct api_group_version *gv = other->versions; gv->group; gv++)
            str_appendf(&versions, "%s\"%s\"", versions.len ? " or " : "",
                        api_version_text(gv, text));
        api_problem(report, API_KEY(NULL, "apiVersion"), API_UNSUPPORTED,
                    json_object_get(object, "apiVersion"), "for a %s write %s", kind,
                    str_get(&versions));
        return NULL;
    }
    const char *near = near_kind(kind);
    api_problem(report, API_KEY(NULL, "kind"), API_UNSUPPORTED, json_object_get(object, "kind"),
                "no such kind in %s%s%s%s", version, near ? "; did you mean \"" : "",
                near ? near : "", near ? "\"?" : "");
    return NULL;
}

const struct api_kind *api_kind_of(const json_t *object, struct api_report *report)
{
    if (!json_is_object(object)) {
        api_problem(report, NULL, API_WRONG_TYPE, object,
                    "must be an object with apiVersion, kind and metadata");
        return NULL;
    }
    const char *kind = json_str(object, "kind"), *version = json_str(object, "apiVersion");
    if (!kind || !*kind) {
        api_problem(report, API_KEY(NULL, "kind"), API_MISSING, NULL,
                    "say what this is, for example \"kind: CStorPoolCluster\"");
        return NULL;
    }
    if (!version || !*version) {
        const struct api_kind *known = api_kind_by_name(kind);
        char text[128];
        api_problem(report, API_KEY(NULL, "apiVersion"), API_MISSING, NULL, "%s%s%s",
                    known ? "write \"apiVersion: " : "say group and version",
                    known ? api_version_text(api_kind_canonical(known), text) : "",
                    known ? "\"" : "");
        return NULL;
    }
    const struct api_kind *other = NULL;
    const struct api_kind *found = api_kind_find(version, kind, &other);
    return found ? found : unknown_kind(object, other, report);
}

json_t *api_read(const struct api_kind *kind, const json_t *object)
{
    struct api_report ignored = {0};
    json_t *normal = json_deep_copy(object);
    api_normalize(kind, normal, &ignored);
    if (kind->schema)
        kind->schema_rules->prune(kind->schema, normal, API_UNKNOWN_IGNORE, &ignored);
    api_default(kind, normal);
    api_report_done(&ignored);
    return normal;
}

/*
 * An old object that does not have the structure of its kind (stored before a rule existed) cannot
 * be compared; then only the new one counts, so that it can be mended.
 */
static void check_against_old(const struct api_kind *kind, const json_t *old, const json_t *object,
                              struct api_report *report)
{
    json_auto_t *before = api_read(kind, old);
    struct api_report of_old = {0};
    api_check_structure(kind, before, API_UNKNOWN_IGNORE, &of_old);
    bool sound = !of_old.errors;
    api_report_done(&of_old);
    if (!sound)
        return;
    api_check_metadata_update(kind, before, object, report);
    api_check_update(kind, before, object, report);
    if (kind->validate_update)
        kind->validate_update(before, object, report);
}

bool api_admit_form(const struct api_kind *kind, json_t *object, enum api_unknown unknown,
                    struct api_report *report)
{
    api_normalize(kind, object, report);
    api_check_structure(kind, object, unknown, report);
    if (kind->schema)
        kind->schema_rules->prune(kind->schema, object, unknown, report);
    if (report->errors)
        return false;
    if (unknown != API_UNKNOWN_ERROR)
        api_prune(kind, object);
    api_check_metadata(kind, object, report);
    if (api_default(kind, object))
        return true;
    api_problem(report, API_KEY(NULL, "spec"), API_TOO_LONG, NULL,
                "the defaults of its schema would make the object too large; write fewer objects "
                "that get defaults");
    return false;
}

static bool admit_rules(const struct api_kind *kind, const json_t *object, const json_t *old,
                        struct api_report *report)
{
    if (kind->schema)
        kind->schema_rules->validate(kind->schema, object, old, report);
    if (kind->validate)
        kind->validate(object, report);
    if (old && !report->errors)
        check_against_old(kind, old, object, report);
    return !report->errors;
}

bool api_admit(const struct api_kind *kind, json_t *object, const json_t *old,
               enum api_unknown unknown, struct api_report *report)
{
    return api_admit_form(kind, object, unknown, report) && admit_rules(kind, object, old, report);
}
