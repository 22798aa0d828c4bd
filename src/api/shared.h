/*
 * The parts that the tables of many kinds share.
 */
#pragma once

#include "api/format.h"
#include "api/kind.h"

/* For the kinds whose only version is this one. */
#define API_VERSION(group_, version_)                                                              \
    ((const struct api_group_version[]){{(group_), (version_)}, {0}})
/* An integer of 32 bits that is not negative. */
#define API_UINT31 .min = 0, .max = INT32_MAX
/* Members and columns that many kinds have. */
#define API_CONDITIONS                                                                             \
    {                                                                                              \
        "conditions", API_OBJECT, API_LIST, .fields = api_conditions, .merge_key = "type",         \
                                            .doc = "What holds of the object, and since when."     \
    }
#define API_AGE                                                                                    \
    {                                                                                              \
        "Age", "date", ".metadata.creationTimestamp", "Time since it was created"                  \
    }
#define API_CREATED_AT                                                                             \
    {                                                                                              \
        "Created At", "string", ".metadata.creationTimestamp", "When it was created"               \
    }

extern const struct api_field api_conditions[]; /* Kubernetes' usual condition */
extern const struct api_field api_resources[];  /* limits and requests of a container */
extern const struct api_field api_toleration[];
extern const struct api_field api_version_details[];
extern const struct api_field api_label_selector[];
extern const struct api_field api_object_reference[];
struct api_reference {
    const char *ns, *name, *uid;
};
extern const struct api_field api_local_reference[]; /* a name in the same namespace */
