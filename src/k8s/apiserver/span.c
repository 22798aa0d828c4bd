#include "k8s/apiserver/span.h"

#include <string.h>

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Behind the string that begins at p. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        if (*p == '\\')
            p++;
    }
    return p < end ? p + 1 : end;
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
            continue;
        } else if (*p == '}' || *p == ']') {
            if (depth == 0)
                return p;
            depth--;
            p++;
        } else if (depth == 0) {
            while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\n')
                p++;
        } else {
            p++;
            continue;
        }
        if (depth == 0)
            return p;
    }
    return end;
}

struct apiserver_span apiserver_span_member(const char *text, size_t size, const char *key)
{
    const char *end = text + size, *p = skip_space(text, end);
    size_t key_size = strlen(key);
    if (p == end || *p++ != '{')
        return (struct apiserver_span){0};
    while ((p = skip_space(p, end)) < end && *p == '"') {
        const char *name = p + 1;
        p = skip_string(p, end);
        bool found = (size_t)(p - name) == key_size + 1 && memcmp(name, key, key_size) == 0;
        p = skip_space(p, end);
        if (p == end || *p++ != ':')
            break;
        const char *value = skip_space(p, end);
        p = skip_value(value, end);
        if (found)
            return (struct apiserver_span){value, (size_t)(p - value)};
        p = skip_space(p, end);
        if (p == end || *p++ != ',')
            break;
    }
    return (struct apiserver_span){0};
}
