/*
 * One document: whatever the short way through YAML accepts, libyaml reads as the same nodes at the
 * same places.
 */
#include "fuzz.h"
#include "nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    const char *text = arena_copy(&arena, data, size);
    const struct json_node *simple = json_yaml_read_simple(&arena, text, size);
    if (simple) {
        struct json_node *full = NULL;
        struct json_pos pos;
        struct err e = {0};
        CHECK(json_yaml_read(&arena, text, size, (struct json_pos){1, 1}, &full, &pos, &e) == 0);
        CHECK(!nodes_differ(simple, full));
    }
    arena_done(&arena);
    return 0;
}
