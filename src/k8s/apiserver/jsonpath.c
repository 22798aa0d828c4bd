#include "k8s/apiserver/jsonpath.h"

#include "base/mem.h"

enum { MAX_DEPTH = 16 }; /* of filters in filters */

static const json_t *find(const json_t *value, const char *path, unsigned depth);

/* Reads "member" up to an unescaped . or [ ; false when there is none or it is cut short. */
static bool read_member(const char **path, struct str *key)
{
    const char *p = *path;
    str_clear(key);
    for (; *p && *p != '.' && *p != '['; p++) {
        if (*p == '\\' && !*++p)
            return false;
        str_append_c(key, *p);
    }
    *path = p;
    return key->len > 0;
}

/* Reads a text in quotes of either kind; false when it does not end. */
static bool read_quoted(const char **path, struct str *text)
{
    const char *p = *path;
    char quote = *p++;
    str_clear(text);
    for (; *p && *p != quote; p++) {
        if (*p == '\\' && !*++p)
            return false;
        str_append_c(text, *p);
    }
    *path = p + (*p == quote);
    return *p == quote;
}

/* The element that "12]" or "-1]" names; the path goes behind it. NULL: none, or no index. */
static const json_t *read_index(const char **path, const json_t *list)
{
    enum { MOST_DIGITS = 9 };
    const char *p = *path;
    bool from_end = *p == '-';
    size_t index = 0, n = json_array_size(list);
    p += from_end;
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > MOST_DIGITS || p[digits] != ']')
        return NULL;
    for (; *p != ']'; p++)
        index = index * 10 + (size_t)(*p - '0');
    *path = p + 1;
    if (from_end)
        return index && index <= n ? json_array_get(list, n - index) : NULL;
    return json_array_get(list, index);
}

/* The other side of a comparison: a text in quotes, a number, true or false. */
static json_t *read_literal(const char **path)
{
    _cleanup_(str_done) struct str text = {0};
    if (**path == '"' || **path == '\'')
        return read_quoted(path, &text) ? json_stringn(str_get(&text), text.len) : NULL;
    size_t n = strcspn(*path, ") ");
    str_append_n(&text, *path, n);
    *path += n;
    return json_loads(str_get(&text), JSON_DECODE_ANY, NULL);
}

/* Behind "?(": "@.path==literal)]", "@.path!=literal)]" or "@.path)]". */
static const json_t *read_filter(const char **path, const json_t *list, unsigned depth)
{
    if (**path != '@' || depth >= MAX_DEPTH)
        return NULL;
    size_t n = strcspn(*path, "=!) ");
    _cleanup_free_ char *own = mem_strndup(*path + 1, n - 1);
    *path += n;
    *path += strspn(*path, " ");
    bool exists = **path == ')', differs = **path == '!';
    json_auto_t *literal = NULL;
    if (!exists) {
        if ((*path)[0] == '\0' || (*path)[1] != '=')
            return NULL;
        *path += 2;
        *path += strspn(*path, " ");
        literal = read_literal(path);
        if (!literal)
            return NULL;
        *path += strspn(*path, " ");
    }
    if (!str_starts_with(*path, ")]"))
        return NULL;
    *path += 2;
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element) {
        const json_t *found = find(element, own, depth + 1);
        if (exists ? found != NULL : found && json_equal(found, literal) != differs)
            return element;
    }
    return NULL;
}

/* What stands in brackets, of which the first is read. */
static const json_t *bracket(const char **path, const json_t *value, unsigned depth)
{
    _cleanup_(str_done) struct str key = {0};
    if (**path == '\'' || **path == '"') {
        if (!read_quoted(path, &key) || **path != ']')
            return NULL;
        ++*path;
        return json_object_get(value, str_get(&key));
    }
    if (str_starts_with(*path, "*]")) {
        *path += 2;
        return json_is_array(value) ? json_array_get(value, 0)
                                    : json_object_iter_value(json_object_iter((json_t *)value));
    }
    if (str_starts_with(*path, "?(")) {
        *path += 2;
        return read_filter(path, value, depth);
    }
    return read_index(path, value);
}

static const json_t *find(const json_t *value, const char *path, unsigned depth)
{
    _cleanup_(str_done) struct str key = {0};
    if (!*path)
        return NULL;
    while (value && *path) {
        char step = *path++;
        if (step == '.' && *path == '[')
            continue; /* .spec.['a'] is as good */
        if (step == '.' && read_member(&path, &key))
            value = json_object_get(value, str_get(&key));
        else if (step == '[')
            value = bracket(&path, value, depth);
        else
            return NULL;
    }
    return value;
}

const json_t *apiserver_jsonpath(const json_t *value, const char *path)
{
    return find(value, path, 0);
}
