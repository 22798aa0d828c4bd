/*
 * A LogicalVolume as a struct.
 */
#pragma once

#include <stdint.h>

#include "json/json.h"

struct logical_volume {
    const json_t *json; /* borrowed */
    struct {
        const char *name, *node_name;
        int64_t size;
        const char *class_name; /* device class, or volume group; "": the node's default */
        const char *option_class;
        const char *source, *access_type;
    } spec;
    struct {
        const char *volume_id; /* "": it was not made yet */
        int64_t code;          /* of enum err_code */
        const char *message;
        int64_t current_size;
    } status;
};

/* Its texts live as long as the JSON; of NULL, all is absent. */
struct logical_volume logical_volume_of(const json_t *json);
/* Its status, as a new object. */
json_t *logical_volume_status(const struct logical_volume *lv);
