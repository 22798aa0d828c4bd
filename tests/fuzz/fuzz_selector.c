/*
 * Selectors: what parses is written in canonical form, and that reads back as the same selector.
 * The first line is the selector, label and field selector alike; the rest is an object to match,
 * whose metadata.labels, or which itself, are the labels.
 */
#include "api/selector.h"
#include "fuzz.h"

/* It can go to a terminal and into JSON. */
static void check_message(const struct err *e, const char *start)
{
    json_auto_t *text = json_string(e->msg);
    CHECK(e->code == ERR_INVALID_ARGUMENT && text && str_starts_with(e->msg, start));
    for (const char *c = e->msg; *c; c++)
        CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_label_selector(const char *text, const json_t *object)
{
    struct api_selector s, again;
    struct err e = {0};
    if (api_selector_parse(text, &s, &e) < 0) {
        check_message(&e, "label selector");
        CHECK(s.requirements.len == 0);
        return;
    }
    _cleanup_(str_done) struct str first = {0}, second = {0};
    api_selector_format(&s, &first);
    CHECK(api_selector_parse(str_get(&first), &again, &e) == 0);
    api_selector_format(&again, &second);
    CHECK(str_eq(str_get(&first), str_get(&second)));
    CHECK(s.requirements.len == again.requirements.len);

    const json_t *labels = json_at(object, "metadata", "labels");
    CHECK(api_selector_matches(&s, labels) == api_selector_matches(&again, labels));
    CHECK(api_selector_matches(&s, object) == api_selector_matches(&again, object));
    api_selector_done(&s);
    api_selector_done(&again);
}

static void check_json_selector(const json_t *selector, const json_t *labels)
{
    struct api_selector s, again;
    struct err e = {0};
    if (api_selector_from_json(selector, &s, &e) < 0) {
        check_message(&e, "");
        return;
    }
    _cleanup_(str_done) struct str text = {0};
    api_selector_format(&s, &text);
    CHECK(api_selector_parse(str_get(&text), &again, &e) == 0);
    CHECK(s.nothing || api_selector_matches(&s, labels) == api_selector_matches(&again, labels));
    api_selector_done(&s);
    api_selector_done(&again);
}

static void check_field_selector(const char *text, const json_t *object)
{
    struct api_field_selector s, again;
    struct err e = {0};
    if (api_field_selector_parse(text, &s, &e) < 0) {
        check_message(&e, "field selector");
        CHECK(s.terms.len == 0);
        return;
    }
    _cleanup_(str_done) struct str first = {0}, second = {0};
    api_field_selector_format(&s, &first);
    CHECK(api_field_selector_parse(str_get(&first), &again, &e) == 0);
    api_field_selector_format(&again, &second);
    CHECK(str_eq(str_get(&first), str_get(&second)));
    CHECK(api_field_selector_matches(&s, object) == api_field_selector_matches(&again, object));
    api_field_selector_done(&s);
    api_field_selector_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t n = line ? (size_t)(line - data) : size;
    _cleanup_free_ char *text = mem_strndup((const char *)data, n);
    json_auto_t *object =
        line ? json_parse((const char *)line + 1, size - n - 1, NULL, NULL) : NULL;
    check_label_selector(text, object);
    check_field_selector(text, object);
    if (object)
        check_json_selector(object, json_at(object, "metadata", "labels"));
    return 0;
}
