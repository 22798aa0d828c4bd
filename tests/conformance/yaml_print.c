/*
 * Reads a stream of documents on stdin and prints each as one line of compact JSON with sorted
 * keys, or "error: line L, column C: why".
 */
#include <inttypes.h>
#include <stdio.h>

#include "json/doc.h"

static json_t *sorted(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value)) {
        json_t *array = json_array();
        json_array_foreach((json_t *)value, i, member)
            json_array_append_new(array, sorted(member));
        return array;
    }
    if (!json_is_object(value))
        return json_incref((json_t *)value);

    size_t n = 0;
    const char **keys = mem_realloc_array(NULL, json_object_size(value) + 1, sizeof(*keys));
    json_object_foreach((json_t *)value, key, member) {
        size_t at = n++;
        for (; at && strcmp(keys[at - 1], key) > 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    json_t *object = json_object();
    for (i = 0; i < n; i++)
        json_object_set_new(object, keys[i], sorted(json_object_get(value, keys[i])));
    free(keys);
    return object;
}

int main(void)
{
    _cleanup_(json_stream_freep) struct json_stream *stream = json_stream_new(stdin);
    for (;;) {
        struct json_doc doc = {0};
        struct err e = {0};
        int r = json_stream_next(stream, &doc, &e);
        if (r == 0)
            return 0;
        if (r < 0) {
            printf("error: line %u, column %u: %s\n", doc.start.line, doc.start.column, e.msg);
        } else {
            _cleanup_(str_done) struct str out = {0};
            json_auto_t *value = sorted(doc.value);
            json_format(value, &out);
            printf("%s\n", str_get(&out));
        }
        json_doc_done(&doc);
    }
}
