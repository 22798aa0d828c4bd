/*
 * Applies label selectors, for the script that compares the results with kubectl's.
 *
 *   in:   {"labels": [{...}, ...], "selectors": ["a=b", {"matchLabels": {...}}, ...]}
 *   out:  [{"text": "a=b", "matches": [0, 3]} or {"error": "...", "code": "..."}, ...]
 */
#include <stdio.h>

#include "api/selector.h"
#include "base/mem.h"

static json_t *apply(const json_t *selector, const json_t *labels)
{
    struct api_selector s;
    struct err e = {0};
    int r = json_is_string(selector) ? api_selector_parse(json_string_value(selector), &s, &e)
                                     : api_selector_from_json(selector, &s, &e);
    if (r < 0)
        return json_pack("{ssss}", "error", e.msg, "code", err_code_name(e.code));

    _cleanup_(str_done) struct str text = {0};
    json_t *matches = json_array();
    size_t i;
    json_t *set;
    api_selector_format(&s, &text);
    json_array_foreach(labels, i, set) {
        if (api_selector_matches(&s, set))
            json_array_append_new(matches, json_integer((json_int_t)i));
    }
    api_selector_done(&s);
    return json_pack("{ssso}", "text", str_get(&text), "matches", matches);
}

int main(void)
{
    _cleanup_(str_done) struct str text = {0};
    char buffer[65536];
    size_t n;
    while ((n = fread(buffer, 1, sizeof(buffer), stdin)) > 0)
        str_append_n(&text, buffer, n);

    struct err e = {0};
    json_auto_t *request = json_parse(str_get(&text), text.len, NULL, &e);
    if (!request) {
        fprintf(stderr, "%s\n", e.msg);
        return 2;
    }
    json_auto_t *results = json_array();
    size_t i;
    json_t *selector;
    json_array_foreach(json_object_get(request, "selectors"), i, selector)
        json_array_append_new(results, apply(selector, json_object_get(request, "labels")));
    _cleanup_(str_done) struct str out = {0};
    json_format(results, &out);
    puts(str_get(&out));
    return 0;
}
