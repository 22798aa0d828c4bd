/*
 * A kind that has a field of every sort, for the tests of server-side apply.
 */
#pragma once

#include "api/kind.h"

static const struct api_field gadget_inner[] = {
    {"a", API_STRING, .doc = "A."},
    {"b", API_STRING, .doc = "B."},
    {0},
};
static const struct api_field gadget_item[] = {
    {"name", API_STRING, .flags = API_REQUIRED, .doc = "Key."},
    {"value", API_STRING, .doc = "Value."},
    {"inner", API_OBJECT, .fields = gadget_inner, .doc = "Inner."},
    {0},
};
static const struct api_field gadget_port[] = {
    {"port", API_INT, .flags = API_REQUIRED, .doc = "Key."},
    {"protocol", API_STRING, .def = "\"TCP\"", .doc = "Key with a default."},
    {"name", API_STRING, .doc = "Name."},
    {0},
};
static const struct api_field gadget_spec[] = {
    {"size", API_STRING, .doc = "A scalar.", .aliases = API_ALIASES("capacity")},
    {"replicas", API_INT, .def = "1", .doc = "With a default."},
    {"inner", API_OBJECT, .fields = gadget_inner, .doc = "An object."},
    {"whole", API_OBJECT, .flags = API_ATOMIC, .fields = gadget_inner, .doc = "One as a whole."},
    {"map", API_STRING, API_MAP, .doc = "A map."},
    {"wholeMap", API_STRING, API_MAP, API_ATOMIC, .doc = "One as a whole."},
    {"objects", API_OBJECT, API_MAP, .fields = gadget_inner, .doc = "A map of objects."},
    {"list", API_STRING, API_LIST, .doc = "A list."},
    {"set", API_STRING, API_LIST, API_SET, .doc = "A set."},
    {"items", API_OBJECT, API_LIST, .fields = gadget_item, .merge_key = "name", .doc = "By name."},
    {"refs", API_OBJECT, API_LIST, API_ATOMIC_ITEMS, .fields = gadget_item, .merge_key = "name",
     .doc = "By name, each as a whole."},
    {"ports", API_OBJECT, API_LIST, .fields = gadget_port, .merge_key = "port",
     .map_keys = API_KEYS("port", "protocol"), .doc = "By two keys."},
    {"rows", API_OBJECT, API_LIST, .fields = gadget_port, .doc = "A list with defaults in it."},
    {"any", API_ANY, .doc = "Anything."},
    {0},
};
static const struct api_field gadget_status[] = {
    {"phase", API_STRING, .doc = "A word."},
    {"conditions", API_OBJECT, API_LIST, .fields = gadget_item, .merge_key = "name",
     .doc = "List."},
    {0},
};
static const struct api_field gadget_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .fields = gadget_spec, .doc = "Spec."},
    {"status", API_OBJECT, .fields = gadget_status, .doc = "Status."},
    {0},
};
static const struct api_kind gadget = {
    .kind = "Gadget",
    .plural = "gadgets",
    .singular = "gadget",
    .versions = (const struct api_group_version[]){{"example.test", "v1"}, {0}},
    .flags = API_STATUS,
    .fields = gadget_fields,
    .doc = "A gadget.",
};
