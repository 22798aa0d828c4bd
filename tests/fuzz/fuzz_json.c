/*
 * JSON text: what parses is written as JSON and as YAML and reads back equal, and every value in
 * it has a place.
 */
#include "base/str.h"
#include "fuzz.h"
#include "json/json.h"
#include "values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_pos pos = {0, 0};
    struct err e = {0};
    json_auto_t *value = json_parse((const char *)data, size, &pos, &e);
    if (!value) {
        CHECK(pos.line > 0 && pos.column > 0 && pos.column <= size + 1);
        CHECK(e.code == ERR_INVALID_ARGUMENT && str_starts_with(e.msg, "line "));
        check_message(&e);
    } else {
        check_value(value);
        check_places((const char *)data, size);
    }
    return 0;
}
