#include <math.h>
#include <stdio.h>

#include "json/internal.h"
#include "json/node.h"

struct context {
    struct json_pos base; /* where the text starts in the stream */
    struct json_pos *pos;
    struct err *e;
};

const struct json_node *json_node_real(const struct json_node *n)
{
    return n->kind == JSON_NODE_ALIAS ? n->target : n;
}

static json_t *fail(const struct context *c, const struct json_node *n)
{
    *c->pos = n->pos;
    return NULL;
}

/* What a scalar is, its tag taken into account; -1 when the tag contradicts the text. */
static int resolve(const struct json_node *n, struct json_scalar *ret, struct err *e)
{
    static const struct {
        enum json_scalar_type type;
        const char *name;
    } wanted[] = {
        [JSON_NODE_PLAIN] = {JSON_SCALAR_STRING, NULL},
        [JSON_NODE_STR] = {JSON_SCALAR_STRING, NULL},
        [JSON_NODE_INT] = {JSON_SCALAR_INT, "!!int"},
        [JSON_NODE_FLOAT] = {JSON_SCALAR_REAL, "!!float"},
        [JSON_NODE_BOOL] = {JSON_SCALAR_BOOL, "!!bool"},
        [JSON_NODE_NULL] = {JSON_SCALAR_NULL, "!!null"},
    };

    *ret = (struct json_scalar){JSON_SCALAR_STRING, false, 0, 0};
    if (n->tag == JSON_NODE_STR)
        return 0;
    *ret = json_scalar_resolve(n->text, n->len);
    if (ret->type == JSON_SCALAR_INT && n->tag == JSON_NODE_FLOAT) {
        ret->type = JSON_SCALAR_REAL;
        ret->real = (double)ret->integer;
    }
    if (n->tag == JSON_NODE_PLAIN || ret->type == wanted[n->tag].type)
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidYAML",
                   "\"%.*s\" is not what its tag %s says; mend it, or remove the tag",
                   (int)str_cut(n->text, 60), n->text, wanted[n->tag].name);
}

static json_t *scalar_value(const struct context *c, const struct json_node *n)
{
    struct json_scalar s;
    if (resolve(n, &s, c->e) < 0)
        return fail(c, n);

    switch (s.type) {
    case JSON_SCALAR_NULL:
        return json_null();
    case JSON_SCALAR_BOOL:
        return json_boolean(s.boolean);
    case JSON_SCALAR_INT:
        return json_integer(s.integer);
    case JSON_SCALAR_REAL:
        return json_real(s.real);
    case JSON_SCALAR_NOT_FINITE:
        err_set(c->e, ERR_INVALID_ARGUMENT, "InvalidYAML",
                "%s is no number that JSON knows; write a finite number, or \"%s\" in quotes for a "
                "string",
                n->text, n->text);
        return fail(c, n);
    case JSON_SCALAR_STRING:
        break;
    }
    json_t *value = memchr(n->text, '\0', n->len) ? NULL : json_stringn(n->text, n->len);
    if (value)
        return value;
    err_set(c->e, ERR_INVALID_ARGUMENT, "InvalidYAML",
            "a string cannot contain \"\\0\"; remove it");
    return fail(c, n);
}

/* As Go prints a number of single precision with %g: that is what such a key is in kubectl. */
static size_t format_real_key(double value, char buf[64])
{
    char digits[32];
    float number = (float)value;
    int precision = 0;

    if (isinf(number))
        return (size_t)snprintf(buf, 64, "%s.inf", number < 0 ? "-" : "");
    do
        snprintf(digits, sizeof(digits), "%.*e", precision, (double)number);
    while (strtof(digits, NULL) != number && precision++ < 9);

    char *e = strchr(digits, 'e');
    int exponent = (int)strtol(e + 1, NULL, 10);
    if (exponent >= -4 && exponent < 6)
        return (size_t)snprintf(buf, 64, "%.*f", precision > exponent ? precision - exponent : 0,
                                (double)number);
    *e = '\0';
    return (size_t)snprintf(buf, 64, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
}

const char *json_yaml_key(struct arena *a, const struct json_node *n, size_t *ret_len,
                          struct err *e)
{
    struct json_scalar s;
    char buf[64];

    if (resolve(n, &s, e) < 0)
        return NULL;
    *ret_len = n->len;
    switch (s.type) {
    case JSON_SCALAR_BOOL:
        *ret_len = s.boolean ? 4 : 5;
        return s.boolean ? "true" : "false";
    case JSON_SCALAR_INT:
        *ret_len = (size_t)snprintf(buf, sizeof(buf), "%lld", (long long)s.integer);
        return arena_copy(a, buf, *ret_len);
    case JSON_SCALAR_REAL:
        *ret_len = format_real_key(s.real, buf);
        return arena_copy(a, buf, *ret_len);
    case JSON_SCALAR_NOT_FINITE: {
        const char *name = strpbrk(n->text, "nN") == n->text + 1 ? ".nan"
                           : *n->text == '-'                     ? "-.inf"
                                                                 : ".inf";
        *ret_len = strlen(name);
        return name;
    }
    case JSON_SCALAR_NULL:
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidYAML",
                n->len ? "a key cannot be null; write \"%s\" in quotes"
                       : "there is no key in front of the \":\"%s",
                n->len ? n->text : "");
        return NULL;
    default:
        break;
    }
    if (!memchr(n->text, '\0', n->len))
        return n->text;
    err_set(e, ERR_INVALID_ARGUMENT, "InvalidYAML", "a key cannot contain \"\\0\"; remove it");
    return NULL;
}

static json_t *node_value(const struct context *c, const struct json_node *n);

static json_t *sequence_value(const struct context *c, const struct json_node *n)
{
    json_auto_t *array = json_array();
    for (const struct json_node *child = n->first; child; child = child->next) {
        json_t *value = node_value(c, child);
        if (!value)
            return NULL;
        json_array_append_new(array, value);
    }
    return json_incref(array);
}

/* The members that `<<: value` brings: a map's, or those of several, where the first one wins. */
static int merge(const struct context *c, json_t *into, const struct json_node *value)
{
    const struct json_node *real = json_node_real(value);
    if (real->kind == JSON_NODE_MAP) {
        json_auto_t *members = node_value(c, real);
        if (!members)
            return -1;
        return json_object_update_missing(into, members);
    }
    if (real->kind == JSON_NODE_SEQUENCE) {
        const struct json_node *item = real->first;
        while (item && json_node_real(item)->kind == JSON_NODE_MAP && merge(c, into, item) == 0)
            item = item->next;
        if (!item)
            return 0;
        if (json_node_real(item)->kind == JSON_NODE_MAP)
            return -1;
    }
    err_set(c->e, ERR_INVALID_ARGUMENT, "InvalidYAML",
            "\"<<\" merges a map or a list of maps; write \"<<: *name\", where &name marks a map");
    fail(c, value);
    return -1;
}

static json_t *refuse_duplicate(const struct context *c, const struct json_node *map,
                                const struct json_node *key)
{
    const struct json_node *first = map->first;
    while (first->merge || first->len != key->len || memcmp(first->text, key->text, key->len) != 0)
        first = first->next->next;
    struct json_pos at = json_pos_add(c->base, first->pos);
    err_set(c->e, ERR_INVALID_ARGUMENT, "DuplicateKey",
            "the key \"%.*s\" is here twice, first at line %u, column %u; remove one of them",
            (int)str_cut(key->text, 60), key->text, at.line, at.column);
    return fail(c, key);
}

static json_t *map_value(const struct context *c, const struct json_node *n)
{
    json_auto_t *object = json_object(), *merged = NULL;
    for (const struct json_node *key = n->first; key; key = key->next->next) {
        if (key->merge) {
            /* Later merges win over earlier ones, as in kubectl; the map's own members over all. */
            json_auto_t *members = json_object();
            if (merge(c, members, key->next) < 0)
                return NULL;
            if (!merged)
                merged = json_object();
            json_object_update(merged, members);
            continue;
        }
        if (json_object_getn(object, key->text, key->len))
            return refuse_duplicate(c, n, key);
        json_t *value = node_value(c, key->next);
        if (!value)
            return NULL;
        json_object_setn_new(object, key->text, key->len, value);
    }
    if (merged)
        json_object_update_missing(object, merged);
    return json_incref(object);
}

static json_t *node_value(const struct context *c, const struct json_node *n)
{
    n = json_node_real(n);
    if (n->kind == JSON_NODE_SCALAR)
        return scalar_value(c, n);
    return n->kind == JSON_NODE_MAP ? map_value(c, n) : sequence_value(c, n);
}

json_t *json_yaml_value(const struct json_node *root, struct json_pos base,
                        struct json_pos *ret_pos, struct err *e)
{
    return node_value(&(struct context){base, ret_pos, e}, root);
}
