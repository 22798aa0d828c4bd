#include "cmd/flags.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

enum { FLAGS_MAX = 64, FIRST = 256, COLUMN = 33 };

static bool is_optional(const struct flag *f)
{
    return f->argument && *f->argument == '[';
}

int flags_usage(const struct flags *f, FILE *out)
{
    fputs(f->usage, out);
    fputc('\n', out);
    for (const struct flag *it = f->p; it->name; it++) {
        int width =
            fprintf(out, "  --%s%s%s", it->name, it->argument && !is_optional(it) ? " " : "",
                    it->argument ? it->argument : "");
        if (width >= COLUMN)
            width = fprintf(out, "\n") - 1;
        fprintf(out, "%*s", COLUMN - width, "");
        for (const char *line = it->doc; line;) {
            size_t n = strcspn(line, "\n");
            fprintf(out, "%.*s\n", (int)n, line);
            line = line[n] ? line + n + 1 : NULL;
            if (line)
                fprintf(out, "%*s", COLUMN, "");
        }
    }
    return out == stdout ? 0 : 2;
}

bool flags_parse(const struct flags *f, int argc, char **argv, struct settings *s, int *ret_status)
{
    int verbose = -1;
    struct option options[FLAGS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
    for (int i = 0; f->p[i].name; i++) {
        if (i == FLAGS_MAX)
            abort();
        int has = !f->p[i].argument       ? no_argument
                  : is_optional(&f->p[i]) ? optional_argument
                                          : required_argument;
        options[i + 1] = (struct option){f->p[i].name, has, NULL, FIRST + i};
        if (str_eq(f->p[i].name, "verbose"))
            verbose = i;
    }
    const char *letters = verbose < 0 ? "h" : "hv";
    struct err e = {0};
    int found;
    while ((found = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (found == 'v') {
            found = FIRST + verbose;
        } else if (found < FIRST) {
            *ret_status = flags_usage(f, found == 'h' ? stdout : stderr);
            return false;
        }
        const struct flag *it = &f->p[found - FIRST];
        if (it->take(s, optarg, &e) < 0) {
            fprintf(stderr, "%s: --%s: %s\n", f->program, it->name, e.msg);
            *ret_status = 2;
            return false;
        }
    }
    if (optind == argc)
        return true;
    fprintf(stderr, "%s: it takes no arguments: '%s'\n", f->program, argv[optind]);
    *ret_status = 2;
    return false;
}

static bool is_digits(const char *text, size_t n)
{
    return n > 0 && n <= 9 && strspn(text, "0123456789") >= n;
}

int flags_number(const char *text, unsigned long most, unsigned *ret_n, struct err *e)
{
    if (!is_digits(text, strlen(text)) || strtoul(text, NULL, 10) > most)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write a number from 0 to %lu, not \"%s\"",
                       most, text);
    *ret_n = (unsigned)strtoul(text, NULL, 10);
    return 0;
}

int flags_bool(const char *text, bool *ret_b, struct err *e)
{
    if (text && !str_eq(text, "true") && !str_eq(text, "false"))
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write true or false, not \"%s\"", text);
    *ret_b = !text || str_eq(text, "true");
    return 0;
}

int flags_duration(const char *text, int64_t *ret_ns, struct err *e)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"ms", CLOCK_SECOND / 1000},
                 {"s", CLOCK_SECOND},
                 {"m", 60 * CLOCK_SECOND},
                 {"h", 3600 * CLOCK_SECOND}};
    int64_t total = 0;
    const char *at = text;
    while (*at) {
        size_t digits = strspn(at, "0123456789"), letters = strspn(at + digits, "hms"), u = 0;
        bool plain = at == text && !at[digits];
        while (u < ARRAY_SIZE(units) && !(strlen(units[u].unit) == letters &&
                                          strncmp(at + digits, units[u].unit, letters) == 0))
            u++;
        if (!is_digits(at, digits) || (u == ARRAY_SIZE(units) && !plain))
            break;
        total += (int64_t)strtoul(at, NULL, 10) * (plain ? CLOCK_SECOND : units[u].ns);
        at += digits + letters;
        if (total > INT64_MAX / 4)
            break;
    }
    if (*at || at == text)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "write a duration like 15s, 1m30s or 500ms, not \"%s\"", text);
    *ret_ns = total;
    return 0;
}
