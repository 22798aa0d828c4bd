/*
 * The rules for single values: bounds, lengths, counts, patterns, formats, enumerations.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "k8s/schema/schema_impl.h"

/* All patterns of one object together may take that long. */
#define PATTERNS_NS (2 * CLOCK_SECOND)

#define LARGE 9007199254740992.0 /* 2 to the power of 53 */

/* Exact for every number that JSON has here: 64 bits of integer, or a double. */
static long double number_of(const json_t *value)
{
    return json_is_integer(value) ? (long double)json_integer_value(value)
                                  : (long double)json_real_value(value);
}

/* A bound as people write it: 10, 0.5, 1e+21. */
static const char *number_text(const json_t *value, char buf[64])
{
    json_int_t whole;
    if (json_is_integer(value))
        snprintf(buf, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_real_is_whole(json_real_value(value), &whole))
        snprintf(buf, 64, "%" JSON_INTEGER_FORMAT, whole);
    else
        snprintf(buf, 64, "%.*g", DBL_DIG, json_real_value(value));
    return buf;
}

static bool is_multiple(const json_t *value, const json_t *of)
{
    if (json_is_integer(value) && json_is_integer(of))
        return json_integer_value(value) % json_integer_value(of) == 0;
    json_int_t whole;
    double quotient = (double)(number_of(value) / number_of(of));
    bool large = quotient >= LARGE || quotient <= -LARGE; /* too large to have a fraction */
    return isfinite(quotient) && (large || json_real_is_whole(quotient, &whole));
}

static void check_number(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                         const struct api_path *at)
{
    const struct schema_rules *r = s->rules;
    char text[64];
    long double number = number_of(value);
    bool over = s->flags & SCHEMA_EXCLUSIVE_MAX, under = s->flags & SCHEMA_EXCLUSIVE_MIN;
    if (r->multiple_of && !is_multiple(value, r->multiple_of))
        schema_problem(w, at, API_INVALID, value, "should be a multiple of %s",
                       number_text(r->multiple_of, text));
    if (r->maximum && (over ? number >= number_of(r->maximum) : number > number_of(r->maximum)))
        schema_problem(w, at, API_INVALID, value, "should be less than %s%s",
                       over ? "" : "or equal to ", number_text(r->maximum, text));
    if (r->minimum && (under ? number <= number_of(r->minimum) : number < number_of(r->minimum)))
        schema_problem(w, at, API_INVALID, value, "should be greater than %s%s",
                       under ? "" : "or equal to ", number_text(r->minimum, text));
}

static json_int_t count_characters(const char *text, size_t size)
{
    json_int_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void check_pattern(struct schema_walk *w, const struct schema_rules *r, const json_t *value,
                          const struct api_path *at)
{
    int64_t now = clock_mono_ns(clock_system());
    if (!w->since)
        w->since = now;
    enum pattern_match match =
        now - w->since > PATTERNS_NS
            ? PATTERN_TOO_HARD
            : pattern_match(r->pattern, json_string_value(value), json_string_length(value));
    if (match == PATTERN_YES)
        return;
    if (match == PATTERN_NO) {
        schema_problem(w, at, API_INVALID, value, "should match '%s'", r->pattern_text);
        return;
    }
    w->given_up = true;
    schema_problem(w, at, API_INVALID, value, "takes too long to be matched with '%s'",
                   r->pattern_text);
}

static void check_string(struct schema_walk *w, const struct schema_rules *r, const json_t *value,
                         const struct api_path *at)
{
    json_int_t n = count_characters(json_string_value(value), json_string_length(value));
    if (r->counts.max_length >= 0 && n > r->counts.max_length && schema_reports(w))
        api_problem(w->report, at, API_TOO_LONG, NULL,
                    "may not be more than %" JSON_INTEGER_FORMAT " bytes", r->counts.max_length);
    if (n < r->counts.min_length)
        schema_problem(w, at, API_INVALID, value,
                       "should be at least %" JSON_INTEGER_FORMAT " chars long",
                       r->counts.min_length);
    if (r->pattern)
        check_pattern(w, r, value, at);
}

static void check_count(struct schema_walk *w, size_t n, json_int_t min, json_int_t max,
                        const char *what, const json_t *value, const struct api_path *at)
{
    if (max >= 0 && n > (size_t)max && schema_reports(w)) {
        json_auto_t *actual = json_integer((json_int_t)n);
        api_problem(w->report, at, API_TOO_MANY, actual,
                    "must have at most %" JSON_INTEGER_FORMAT " items", max);
    }
    if (n < (size_t)min)
        schema_problem(w, at, API_INVALID, value,
                       "should have at least %" JSON_INTEGER_FORMAT " %s", min, what);
}

/* The same value; 1 and 1.0 are. */
static bool is_same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return number_of(a) == number_of(b);
    return json_equal(a, b);
}

static void check_words(struct schema_walk *w, const json_t *words, const json_t *value,
                        const struct api_path *at)
{
    size_t i;
    json_t *word;
    json_array_foreach(words, i, word) {
        if (is_same(word, value))
            return;
    }
    if (!schema_reports(w))
        return;
    _cleanup_(str_done) struct str text = {0};
    json_array_foreach(words, i, word) {
        _cleanup_(str_done) struct str shown = {0};
        json_format(word, &shown);
        bool quoted = json_is_string(word);
        str_appendf(&text, "%s%s%s%s", i ? ", " : "", quoted ? "" : "\"", str_get(&shown),
                    quoted ? "" : "\"");
    }
    api_problem(w->report, at, API_UNSUPPORTED, value, "supported values: %s", str_get(&text));
}

static void check_format(struct schema_walk *w, const struct schema_format *f, const json_t *value,
                         const struct api_path *at)
{
    if (schema_format_check(f, value))
        return;
    _cleanup_(str_done) struct str shown = {0};
    json_format(value, &shown);
    bool quoted = json_is_string(value);
    schema_problem(w, at, API_WRONG_TYPE, value, "must be of type %s: %s%.*s%s",
                   schema_format_name(f), quoted ? "" : "\"", (int)str_cut(str_get(&shown), 80),
                   str_get(&shown), quoted ? "" : "\"");
}

void schema_check_rules(struct schema_walk *w, const struct api_schema *s, const json_t *value,
                        const struct api_path *at)
{
    const struct schema_rules *r = s->rules;
    if (json_is_string(value))
        check_string(w, r, value, at);
    else if (json_is_number(value))
        check_number(w, s, value, at);
    else if (json_is_array(value))
        check_count(w, json_array_size(value), r->counts.min_items, r->counts.max_items, "items",
                    value, at);
    else if (json_is_object(value))
        check_count(w, json_object_size(value), r->counts.min_properties, r->counts.max_properties,
                    "properties", value, at);
    if (r->format)
        check_format(w, r->format, value, at);
    if (r->words)
        check_words(w, r->words, value, at);
}
