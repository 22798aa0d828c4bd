/*
 * The text format: what is escaped, and how numbers are written.
 */
#include <math.h>
#include <stdio.h>

#include "metrics/metrics_impl.h"

/* A label's value or a help text: backslash and newline, and of a value the quote. */
static void append_escaped(struct str *out, const char *text, bool quoted)
{
    for (; *text; text++) {
        if (*text == '\\')
            str_append(out, "\\\\");
        else if (*text == '\n')
            str_append(out, "\\n");
        else if (*text == '"' && quoted)
            str_append(out, "\\\"");
        else
            str_append_c(out, *text);
    }
}

static void append_number(struct str *out, double value)
{
    if (isnan(value))
        str_append(out, "NaN");
    else if (isinf(value))
        str_append(out, value > 0 ? "+Inf" : "-Inf");
    else if (value == floor(value) && fabs(value) < 1e15)
        str_appendf(out, "%.0f", value);
    else
        str_appendf(out, "%.15g", value);
}

/* Begins a line: name, suffix, labels without the closing brace. True when a brace is open. */
static bool append_head(struct metrics_out *out, const char *suffix, const char *const *labels,
                        const char *const *values)
{
    str_append(out->text, out->name);
    str_append(out->text, suffix);
    bool any = false;
    for (size_t i = 0; labels && labels[i]; i++, any = true) {
        str_appendf(out->text, "%c%s=\"", any ? ',' : '{', labels[i]);
        append_escaped(out->text, values[i], true);
        str_append_c(out->text, '"');
    }
    return any;
}

static void append_tail(struct metrics_out *out, bool brace, double value)
{
    str_append(out->text, brace ? "} " : " ");
    append_number(out->text, value);
    str_append_c(out->text, '\n');
}

void metrics_out_family(struct metrics_out *out, const char *name, const char *help,
                        enum metrics_type type)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    out->name = name;
    str_appendf(out->text, "# HELP %s ", name);
    append_escaped(out->text, help, false);
    str_appendf(out->text, "\n# TYPE %s %s\n", name, types[type]);
}

void metrics_out_value(struct metrics_out *out, const char *const *labels,
                       const char *const *values, double value)
{
    out_suffixed(out, "", labels, values, value);
}

void out_suffixed(struct metrics_out *out, const char *suffix, const char *const *labels,
                  const char *const *values, double value)
{
    bool brace = append_head(out, suffix, labels, values);
    append_tail(out, brace, value);
}

void out_bucket(struct metrics_out *out, const char *const *labels, const char *const *values,
                const double *bound, uint64_t count)
{
    bool brace = append_head(out, "_bucket", labels, values);
    str_append(out->text, brace ? ",le=\"" : "{le=\"");
    append_number(out->text, bound ? *bound : INFINITY);
    str_append_c(out->text, '"');
    append_tail(out, true, (double)count);
}
