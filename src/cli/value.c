/*
 * The value of an option: from its text to the member of the settings. A text that does not fit is
 * refused with what to write instead; the settings are as they were.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"

bool cli_value_may(const struct cli_option *o)
{
    return o->type != CLI_SWITCH;
}

bool cli_value_must(const struct cli_option *o)
{
    return o->type != CLI_SWITCH && o->type != CLI_BOOL && !o->implied;
}

static int refuse(struct err *e, const char *text, const char *what)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "'%s' is not %s", text, what);
}

bool cli_value_fits(enum cli_member member, uint64_t n)
{
    switch (member) {
    case CLI_MEMBER_U16:
        return n <= UINT16_MAX;
    case CLI_MEMBER_I32:
        return n <= INT32_MAX;
    case CLI_MEMBER_U32:
        return n <= UINT32_MAX;
    case CLI_MEMBER_I64:
        return n <= INT64_MAX;
    default:
        return member == CLI_MEMBER_U64;
    }
}

static void store_number(enum cli_member member, void *at, uint64_t n)
{
    if (member == CLI_MEMBER_U16)
        *(uint16_t *)at = (uint16_t)n;
    else if (member == CLI_MEMBER_I32 || member == CLI_MEMBER_U32)
        *(uint32_t *)at = (uint32_t)n;
    else
        *(uint64_t *)at = n;
}

static int set_number(const struct cli_option *o, const char *text, void *at, struct err *e)
{
    char *end;
    if (o->off && str_eq(text, o->off)) {
        store_number(o->member, at, UINT64_MAX);
        return 0;
    }
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < o->least || n > o->most)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "'%s' is not a number from %llu to %llu%s%s", text,
                       (unsigned long long)o->least, (unsigned long long)o->most,
                       o->off ? ", or " : "", o->off ? o->off : "");
    store_number(o->member, at, n);
    return 0;
}

static int set_size(const struct cli_option *o, const char *text, void *at, struct err *e)
{
    uint64_t bytes;
    if (quantity_parse_bytes(text, &bytes, e) < 0)
        return -1;
    if (bytes < o->least)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "'%s' is too small; write at least %llu",
                       text, (unsigned long long)o->least);
    if (o->member == CLI_MEMBER_TEXT) {
        *(const char **)at = text;
        return 0;
    }
    if (!cli_value_fits(o->member, bytes))
        return refuse(e, text, "a size that can be used; write a smaller one");
    store_number(o->member, at, bytes);
    return 0;
}

static const struct {
    const char *name;
    int64_t ns;
} units[] = {{"ms", CLOCK_SECOND / 1000},
             {"s", CLOCK_SECOND},
             {"m", 60 * CLOCK_SECOND},
             {"h", 3600 * CLOCK_SECOND},
             {"d", 86400 * CLOCK_SECOND}};

static int64_t unit_of(const char *text, size_t n)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strlen(units[i].name) == n && strncmp(units[i].name, text, n) == 0)
            return units[i].ns;
    }
    return 0;
}

/* "1m30s", "1.5s" */
static bool parse_duration(const char *text, int64_t *ret_ns)
{
    int64_t total = 0;
    for (const char *at = text; *at;) {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        double n = strtod(at, &end);
        size_t letters = strspn(end, "dhms");
        int64_t unit = unit_of(end, letters);
        if (!unit || n * (double)unit > 1e18)
            return false;
        total += (int64_t)(n * (double)unit);
        if (total > INT64_MAX / 4)
            return false;
        at = end + letters;
    }
    *ret_ns = total;
    return *text;
}

static void format_duration(uint64_t ns, struct str *out)
{
    size_t i = ARRAY_SIZE(units) - 1;
    while (i > 0 && ns % (uint64_t)units[i].ns)
        i--;
    str_appendf(out, "%llu%s", (unsigned long long)ns / (unsigned long long)units[i].ns,
                units[i].name);
}

static bool is_plain(const char *text)
{
    return *text && strspn(text, "0123456789.") == strlen(text) && *text != '.';
}

static int set_duration(const struct cli_option *o, const char *text, void *at, struct err *e)
{
    int64_t ns = 0;
    bool plain = is_plain(text), bare = o->type == CLI_SECONDS || str_eq(text, "0");
    _cleanup_free_ char *seconds = plain && bare ? mem_printf("%ss", text) : NULL;
    if (plain && !bare)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "'%s' has no unit; write %ss", text, text);
    if (!parse_duration(seconds ? seconds : text, &ns))
        return refuse(e, text, "a duration; write one like 15s, 1m30s or 500ms");
    if ((uint64_t)ns < o->least) {
        _cleanup_(str_done) struct str least = {0};
        format_duration(o->least, &least);
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "'%s' is too short; write at least %s",
                       text, str_get(&least));
    }
    if (o->member == CLI_MEMBER_TEXT)
        *(const char **)at = text;
    else
        *(int64_t *)at = ns;
    return 0;
}

static int set_bool(const char *text, bool *at, struct err *e)
{
    if (!str_eq(text, "true") && !str_eq(text, "false"))
        return refuse(e, text, "true or false");
    *at = str_eq(text, "true");
    return 0;
}

static int set_word(const struct cli_option *o, const char *text, void *at, struct err *e)
{
    size_t i = 0;
    while (o->choices[i] && !str_eq(o->choices[i], text))
        i++;
    if (!o->choices[i]) {
        _cleanup_(str_done) struct str words = {0};
        for (i = 0; o->choices[i]; i++)
            str_appendf(&words, "%s%s", i ? ", " : "", o->choices[i]);
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "'%s' is none of %s", text,
                       str_get(&words));
    }
    if (o->member == CLI_MEMBER_TEXT)
        *(const char **)at = o->choices[i];
    else
        store_number(o->member, at, i);
    return 0;
}

static void add_item(const struct cli_option *o, const char *text, size_t n, struct cli_list *list)
{
    list->p = mem_realloc(list->p, (list->len + 2) * sizeof(*list->p));
    list->options = mem_realloc(list->options, (list->len + 1) * sizeof(*list->options));
    list->options[list->len] = o->name;
    list->p[list->len++] = mem_strndup(text, n);
    list->p[list->len] = NULL;
}

static void list_done(struct cli_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        free((char *)(uintptr_t)list->p[i]);
    free(list->p);
    free(list->options);
    *list = (struct cli_list){0};
}

static void add_words(const struct cli_option *o, const char *text, struct cli_list *list)
{
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n)
            add_item(o, text, n, list);
        text += n + (text[n] == ',');
    }
}

int cli_value_set(const struct cli_option *o, const char *text, void *settings, struct err *e)
{
    void *at = (char *)settings + o->offset;
    switch (o->type) {
    case CLI_SWITCH:
        *(bool *)at = true;
        return 0;
    case CLI_BOOL:
        return set_bool(text ? text : "true", at, e);
    case CLI_STRING:
    case CLI_FILE:
    case CLI_DIR:
        *(const char **)at = text;
        return 0;
    case CLI_INT:
        return set_number(o, text, at, e);
    case CLI_SIZE:
        return set_size(o, text, at, e);
    case CLI_DURATION:
    case CLI_SECONDS:
        return set_duration(o, text, at, e);
    case CLI_ENUM:
        return set_word(o, text ? text : o->implied, at, e);
    case CLI_LIST:
        add_words(o, text, at);
        return 0;
    case CLI_ITEMS:
        add_item(o, text, strlen(text), at);
        return 0;
    }
    return -1;
}

void cli_values_done(const struct cli_option *options, void *settings)
{
    for (const struct cli_option *o = options; o && o->name; o++) {
        if (o->member == CLI_MEMBER_LIST)
            list_done((struct cli_list *)((char *)settings + o->offset));
    }
}
