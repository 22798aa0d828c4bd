#include "json/pointer.h"

#include <stdint.h>

#include "base/mem.h"

int json_pointer_next(const char **pointer, struct str *token, struct err *e)
{
    const char *p = *pointer;
    str_clear(token);
    if (*p == '\0')
        return 0;
    if (*p != '/')
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidPointer",
                       "\"%s\" is not a JSON pointer: it must be empty or start with \"/\"", p);

    str_append_n(token, "", 0); /* an empty token is "", not NULL */
    for (p++;;) {
        size_t plain = strcspn(p, "/~");
        str_append_n(token, p, plain);
        p += plain;
        if (*p != '~')
            break;
        if (p[1] != '0' && p[1] != '1')
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidPointer",
                           "\"%s\" is not a JSON pointer: write \"~\" as \"~0\" and \"/\" inside a "
                           "key as \"~1\"",
                           *pointer);
        str_append_c(token, p[1] == '0' ? '~' : '/');
        p += 2;
    }
    *pointer = p;
    return 1;
}

bool json_pointer_index(const char *token, size_t limit, size_t *ret_index)
{
    size_t index = 0;
    if (*token == '\0' || (token[0] == '0' && token[1] != '\0'))
        return false;
    for (; *token; token++) {
        if (*token < '0' || *token > '9' || index > (SIZE_MAX - 9) / 10)
            return false;
        index = index * 10 + (size_t)(*token - '0');
    }
    if (index >= limit)
        return false;
    *ret_index = index;
    return true;
}

void json_pointer_append(struct str *pointer, const char *key)
{
    str_append_c(pointer, '/');
    for (;;) {
        size_t plain = strcspn(key, "/~");
        str_append_n(pointer, key, plain);
        key += plain;
        if (*key == '\0')
            return;
        str_append(pointer, *key++ == '~' ? "~0" : "~1");
    }
}

void json_pointer_append_index(struct str *pointer, size_t index)
{
    str_appendf(pointer, "/%zu", index);
}

/* Why token leads nowhere from value, which stands at the first n characters of pointer. */
static void set_missing(struct err *e, const json_t *value, const char *pointer, size_t n,
                        const char *token)
{
    const char *at = n ? pointer : "the document";
    int len = n ? (int)n : (int)strlen(at);

    if (json_is_array(value))
        err_set(e, ERR_NOT_FOUND, "NotFound", "%.*s has no element \"%s\": it has %zu elements",
                len, at, token, json_array_size(value));
    else if (json_is_object(value))
        err_set(e, ERR_NOT_FOUND, "NotFound", "%.*s has no member \"%s\"", len, at, token);
    else
        err_set(e, ERR_NOT_FOUND, "NotFound", "%.*s has no member \"%s\": its type is %s", len, at,
                token, json_type_name(value));
}

json_t *json_pointer_get(const json_t *root, const char *pointer, struct err *e)
{
    _cleanup_(str_done) struct str token = {0};
    const char *rest = pointer;

    for (;;) {
        size_t n = (size_t)(rest - pointer), index;
        int r = json_pointer_next(&rest, &token, e);
        if (r < 0)
            return NULL;
        if (r == 0)
            return (json_t *)root;

        const json_t *next = NULL;
        if (json_is_object(root))
            next = json_object_get(root, str_get(&token));
        else if (json_is_array(root) &&
                 json_pointer_index(str_get(&token), json_array_size(root), &index))
            next = json_array_get(root, index);
        if (!next) {
            set_missing(e, root, pointer, n < 512 ? n : 512, str_get(&token));
            return NULL;
        }
        root = next;
    }
}
