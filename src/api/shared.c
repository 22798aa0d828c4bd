#include "api/shared.h"

#include "api/decode.h"

const struct api_field api_conditions[] = {
    {"type", API_STRING, .flags = API_REQUIRED, .doc = "What the condition is about."},
    {"status", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("True", "False", "Unknown"),
     .doc = "Whether it holds."},
    {"reason", API_STRING, .doc = "One CamelCase word for why the status last changed."},
    {"message", API_STRING, .doc = "The same for people: what happened and what to do."},
    {"observedGeneration", API_INT, .doc = "The metadata.generation that this was said of."},
    {"lastUpdateTime", API_TIME, .doc = "When it was last confirmed."},
    {"lastProbeTime", API_TIME, .doc = "When it was last looked at."},
    {"lastTransitionTime", API_TIME, .doc = "When the status last changed."},
    {0},
};

const struct api_field api_resources[] = {
    {"limits", API_QUANTITY, API_MAP, .doc = "The most it may use, by resource name."},
    {"requests", API_QUANTITY, API_MAP, .doc = "What it is guaranteed, by resource name."},
    {"claims", API_ANY, API_LIST, .doc = "Resource claims, passed on as they are."},
    {0},
};

const struct api_field api_toleration[] = {
    {"key", API_STRING, .doc = "The taint's key; empty matches every key."},
    {"operator", API_STRING, .words = API_WORDS("Exists", "Equal"),
     .doc = "How the value is compared; Equal when not given."},
    {"value", API_STRING, .doc = "The taint's value, for Equal."},
    {"effect", API_STRING, .words = API_WORDS("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
     .doc = "The taint's effect; empty matches every effect."},
    {"tolerationSeconds", API_INT, .doc = "How long a NoExecute taint is tolerated."},
    {0},
};

static const struct api_field version_status[] = {
    {"current", API_STRING, .doc = "Version that is in place."},
    {"dependentsUpgraded", API_BOOL, .doc = "Whether the dependent objects have it too."},
    {"state", API_STRING, .doc = "Progress of an upgrade."},
    {"message", API_STRING, .doc = "What happened last, for people."},
    {"reason", API_STRING, .doc = "Why an upgrade did not go on."},
    {"lastUpdateTime", API_TIME, .doc = "When this was last changed."},
    {0},
};

const struct api_field api_version_details[] = {
    {"autoUpgrade", API_BOOL, .doc = "Whether the object follows the version of its operator."},
    {"desired", API_STRING, .doc = "Version that is wanted."},
    {"status", API_OBJECT, .fields = version_status, .doc = "Version that is there."},
    {0},
};

static const struct api_field selector_expression[] = {
    {"key", API_STRING, .flags = API_REQUIRED, .format = &api_qualified_name, .doc = "Label key."},
    {"operator", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("In", "NotIn", "Exists", "DoesNotExist"),
     .doc = "How the label's value relates to values."},
    {"values", API_STRING, API_LIST, .doc = "For In and NotIn; empty otherwise."},
    {0},
};

const struct api_field api_label_selector[] = {
    {"matchLabels", API_STRING, API_MAP, .keys = &api_qualified_name, .format = &api_label_value,
     .doc = "Labels that must be there with these values."},
    {"matchExpressions", API_OBJECT, API_LIST, .fields = selector_expression,
     .doc = "Further requirements, all of which must hold."},
    {0},
};

const struct api_field api_object_reference[] = {
    {"apiVersion", API_STRING, .doc = "API version of the object."},
    {"kind", API_STRING, .doc = "Kind of the object."},
    {"namespace", API_STRING, API_TEXT(struct api_reference, ns),
     .doc = "Namespace of the object."},
    {"name", API_STRING, API_TEXT(struct api_reference, name), .doc = "Name of the object."},
    {"uid", API_STRING, API_TEXT(struct api_reference, uid), .doc = "UID of the object."},
    {"resourceVersion", API_STRING, .doc = "Version of the object that is meant."},
    {"fieldPath", API_STRING, .doc = "Part of the object that is meant."},
    {0},
};

const struct api_field api_local_reference[] = {
    {"name", API_STRING, .doc = "Name of the object, in the same namespace."},
    {0},
};
