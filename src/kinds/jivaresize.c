/*
 * JivaVolumeResize: the growth of a JivaVolume, as an object.
 *
 *     "" ──> INIT ──> IN-PROGRESS ──> SUCCEEDED ──> COMPLETED
 *              └───────────┴──────> FAILED
 *
 * SUCCEEDED: replicas and target have the new size. COMPLETED: the volume's spec.capacity says so
 * too and its lock is free. FAILED: the volume is as it was. The last two are final.
 */
#include "kinds/jiva.h"
#include "kinds/kinds.h"

#define JVR struct jiva_resize

static const struct api_field spec[] = {
    {"capacity", API_QUANTITY, API_AMOUNT(JVR, spec.capacity),
     .flags = API_REQUIRED | API_POSITIVE | API_IMMUTABLE,
     .doc = "The size that is wanted. A bare number counts GiB."},
    {0},
};

static const struct api_field replica_progress[] = {
    {"address", API_STRING, API_TEXT(struct jiva_progress, address),
     .doc = "Where the replica is."},
    {"capacity", API_QUANTITY, API_AMOUNT(struct jiva_progress, capacity),
     .doc = "Size that it has; not said of one that is offline."},
    {"state", API_STRING, API_TEXT(struct jiva_progress, state),
     .doc = "How it is, as the volume's status has it."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING, API_TEXT(JVR, status.phase),
     .words = API_WORDS("", "INIT", "IN-PROGRESS", "FAILED", "SUCCEEDED", "COMPLETED"),
     .synonyms = (const struct api_synonym[]){{"SUCCESS", "SUCCEEDED"}, {0}},
     .doc = "How far the resize is."},
    {"reason", API_STRING, API_TEXT(JVR, status.reason),
     .doc = "One CamelCase word for why it waits or failed."},
    {"message", API_STRING, API_TEXT(JVR, status.message),
     .doc = "The same for people: what happened and what to do."},
    {"fromCapacity", API_QUANTITY, API_AMOUNT(JVR, status.from),
     .doc = "Size that the volume had."},
    {"startTime", API_TIME, API_TEXT(JVR, status.start_time),
     .doc = "When it took the volume's lock."},
    {"completionTime", API_TIME, API_TEXT(JVR, status.completion_time),
     .doc = "When it became final."},
    {"replicas", API_OBJECT, API_LIST, API_ARRAY(JVR, status.replicas), .fields = replica_progress,
     .merge_key = "address", .doc = "The replicas, and the size that each has."},
    {"conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",
     .doc = "What it waits for."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The size that is wanted."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "How far the resize is."},
    {0},
};

struct jiva_resize jiva_resize_of(const json_t *json, struct arena *arena)
{
    struct jiva_resize resize = {.json = json};
    api_decode(fields, json, &resize, arena);
    return resize;
}

bool jiva_resize_is_over(const struct jiva_resize *resize)
{
    return str_eq(resize->status.phase, "COMPLETED") || str_eq(resize->status.phase, "FAILED");
}

static const struct api_column columns[] = {
    {"Volume", "string", ".metadata.labels.jiva\\.openebs\\.io/name", "Volume that it is about"},
    {"From", "string", ".status.fromCapacity", "Size that the volume had"},
    {"To", "string", ".spec.capacity", "Size that is wanted"},
    {"Phase", "string", ".status.phase", "How far it is"},
    {"Message", "string", ".status.message", "What happened last", 1},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

static const struct {
    const char *from;
    const char *const *to;
} transitions[] = {
    {"", API_WORDS("INIT", "IN-PROGRESS", "FAILED")},  {"INIT", API_WORDS("IN-PROGRESS", "FAILED")},
    {"IN-PROGRESS", API_WORDS("SUCCEEDED", "FAILED")}, {"SUCCEEDED", API_WORDS("COMPLETED")},
    {"COMPLETED", (const char *const[]){NULL}},        {"FAILED", (const char *const[]){NULL}},
};

static void validate(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "metadata"), "labels");
    const char *volume = json_str(json_at(object, "metadata", "labels"), API_JIVA_NAME);
    if (!volume || !*volume)
        api_problem(report, API_KEY(at, API_JIVA_NAME), API_MISSING, NULL,
                    "name the JivaVolume to resize in this label");
}

static void validate_update(const json_t *old, const json_t *object, struct api_report *report)
{
    const struct api_path *labels_at = API_KEY(API_KEY(NULL, "metadata"), "labels");
    const json_t *was = json_at(old, "metadata", "labels", API_JIVA_NAME);
    const json_t *is = json_at(object, "metadata", "labels", API_JIVA_NAME);
    if (was && is && !json_equal(was, is))
        api_problem(report, API_KEY(labels_at, API_JIVA_NAME), API_INVALID, is,
                    "field is immutable (was \"%s\"); create another resize",
                    json_string_value(was));

    const char *from = jiva_resize_of(old, NULL).status.phase,
               *to = jiva_resize_of(object, NULL).status.phase;
    for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
        if (!str_eq(transitions[i].from, from) || str_eq(from, to) || str_in(to, transitions[i].to))
            continue;
        api_problem(report, API_KEY(API_KEY(NULL, "status"), "phase"), API_FORBIDDEN, NULL,
                    "a resize cannot go from %s to %s", *from ? from : "its beginning",
                    *to ? to : "its beginning");
    }
}

const struct api_kind api_jiva_volume_resize = {
    .kind = "JivaVolumeResize",
    .plural = "jivavolumeresizes",
    .singular = "jivavolumeresize",
    .short_names = API_WORDS("jvr"),
    .versions = (const struct api_group_version[]){{"openebs.io", "v1alpha1"}, {0}},
    .flags = API_STATUS,
    .fields = fields,
    .columns = columns,
    .normalize = api_jiva_capacity,
    .validate = validate,
    .validate_update = validate_update,
    .doc = "Grows a JivaVolume: created to ask for it, deleted when it is COMPLETED.",
};
