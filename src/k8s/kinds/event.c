/*
 * Event: what happened to an object. Kubernetes serves the same events in two groups, under other
 * member names; here the core group's names are the normal form and those of events.k8s.io aliases,
 * so that there is one kind and one list of events whichever client wrote them.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field source[] = {
    {"component", API_STRING, .doc = "The program that saw it."},
    {"host", API_STRING, .doc = "The node on which it was seen."},
    {0},
};

static const struct api_field series[] = {
    {"count", API_INT, API_UINT31, .doc = "How often it happened."},
    {"lastObservedTime", API_TIME, .doc = "When it happened last."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"involvedObject", API_OBJECT, .flags = API_ATOMIC | API_REQUIRED,
     .fields = api_object_reference, .aliases = API_ALIASES("regarding"),
     .doc = "The object that the event is about."},
    {"reason", API_STRING, .doc = "One CamelCase word for why it happened."},
    {"message", API_STRING, .aliases = API_ALIASES("note"), .doc = "The same for people."},
    {"source", API_OBJECT, .fields = source, .aliases = API_ALIASES("deprecatedSource"),
     .doc = "Who saw it."},
    {"firstTimestamp", API_TIME, .aliases = API_ALIASES("deprecatedFirstTimestamp"),
     .doc = "When it happened first."},
    {"lastTimestamp", API_TIME, .aliases = API_ALIASES("deprecatedLastTimestamp"),
     .doc = "When it happened last."},
    {"count", API_INT, API_UINT31, .aliases = API_ALIASES("deprecatedCount"),
     .doc = "How often it happened."},
    {"type", API_STRING, .doc = "Normal or Warning."},
    {"eventTime", API_TIME, .doc = "When it happened, to the microsecond."},
    {"series", API_OBJECT, .fields = series, .doc = "Repetitions of an event that goes on."},
    {"action", API_STRING, .doc = "What was done or failed."},
    {"related", API_OBJECT, .flags = API_ATOMIC, .fields = api_object_reference,
     .doc = "A second object involved."},
    {"reportingComponent", API_STRING, .aliases = API_ALIASES("reportingController"),
     .doc = "The controller that reports it."},
    {"reportingInstance", API_STRING, .doc = "Which of its processes reports it."},
    {0},
};

static const struct api_column columns[] = {
    {"Last Seen", "string", NULL, "Time since it happened last", 0, api_cell_event_last},
    {"Type", "string", ".type", "Normal or Warning"},
    {"Reason", "string", ".reason", "Why it happened"},
    {"Object", "string", NULL, "The object that it is about", 0, api_cell_event_object},
    {"Subobject", "string", ".involvedObject.fieldPath", "Part of the object", 1},
    {"Source", "string", NULL, "Who saw it", 1, api_cell_event_source},
    {"Message", "string", NULL, "What happened", 0, api_cell_event_message},
    {"First Seen", "string", NULL, "Time since it happened first", 1, api_cell_event_first},
    {"Count", "string", NULL, "How often it happened", 1, api_cell_event_count},
    {"Name", "string", ".metadata.name", "Name of the event", 1},
    {0},
};

/* As events.k8s.io has it. */
static void publish(json_t *object, struct api_report *report)
{
    (void)report;
    for (const struct api_field *f = fields; f->name; f++) {
        json_t *value = f->aliases ? json_object_get(object, f->name) : NULL;
        if (!value)
            continue;
        json_object_set(object, f->aliases[0], value);
        json_object_del(object, f->name);
    }
}

const struct api_kind api_event = {
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_names = API_WORDS("ev"),
    .versions = (const struct api_group_version[]){{"", "v1"}, {"events.k8s.io", "v1"}, {0}},
    .published = 1,
    .flags = API_BUILTIN,
    .fields = fields,
    .columns = columns,
    .publish = publish,
    .doc = "Something that happened to an object; kept for a while and then dropped.",
};
