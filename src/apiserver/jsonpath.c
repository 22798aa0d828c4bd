#include "apiserver/jsonpath.h"

#include "base/mem.h"

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

/* Reads "12]"; false when it is no index. */
static bool read_index(const char **path, size_t *ret_index)
{
    enum { MOST_DIGITS = 9 };
    const char *p = *path;
    size_t digits = strspn(p, "0123456789");
    if (digits == 0 || digits > MOST_DIGITS || p[digits] != ']')
        return false;
    *ret_index = 0;
    for (; *p != ']'; p++)
        *ret_index = *ret_index * 10 + (size_t)(*p - '0');
    *path = p + 1;
    return true;
}

const json_t *apiserver_jsonpath(const json_t *value, const char *path)
{
    _cleanup_(str_done) struct str key = {0};
    if (!*path)
        return NULL;
    while (value && *path) {
        char step = *path++;
        size_t index;
        if (step == '.' && read_member(&path, &key))
            value = json_object_get(value, str_get(&key));
        else if (step == '[' && read_index(&path, &index))
            value = json_array_get(value, index);
        else
            return NULL;
    }
    return value;
}
