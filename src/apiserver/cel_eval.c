/*
 * Tree to value. Values are JSON values; every step and every element that is compared is counted,
 * so that an evaluation ends however large the objects are.
 */
#include "apiserver/cel_impl.h"

struct run {
    const json_t *const *values;
    json_t *bound[CEL_BOUND_MAX]; /* borrowed */
    long work;
};

/* A new reference, or NULL with *e. */
static json_t *eval(struct run *r, const struct cel_node *n, struct err *e);

static bool spend(struct run *r, size_t n, struct err *e)
{
    r->work += (long)n;
    if (r->work <= APISERVER_CEL_WORK)
        return true;
    err_set(e, ERR_RESOURCE_EXHAUSTED, "ExpressionTooExpensive",
            "the expression takes more than %d steps", APISERVER_CEL_WORK);
    return false;
}

static json_t *type_error(const char *what, const json_t *value, struct err *e)
{
    err_set(e, ERR_INVALID_ARGUMENT, "NoSuchOverload", "no such overload: %s of a value of type %s",
            what, json_type_name(value));
    return NULL;
}

static json_t *missing(const char *key, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "NoSuchKey", "no such key: %.200s", key);
    return NULL;
}

/* The values of a document, which is never deeper than JSON_MAX_DEPTH. */
static bool equal(struct run *r, const json_t *a, const json_t *b)
{
    if (!spend(r, 1, NULL))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b)
                   ? json_integer_value(a) == json_integer_value(b)
                   : json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_string(a)) {
        size_t n = json_string_length(a);
        return n == json_string_length(b) && spend(r, n / 64, NULL) &&
               memcmp(json_string_value(a), json_string_value(b), n) == 0;
    }
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach(a, i, value) {
            if (!equal(r, value, json_array_get(b, i)))
                return false;
        }
    } else if (json_is_object(a)) {
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach((json_t *)a, key, value) {
            const json_t *other = json_object_get(b, key);
            if (!other || !equal(r, value, other))
                return false;
        }
    }
    return true;
}

static json_t *field(struct run *r, const struct cel_node *n, bool only_has, struct err *e)
{
    json_auto_t *on = eval(r, n->a, e);
    if (!on)
        return NULL;
    if (!json_is_object(on) && !json_is_null(on))
        return type_error("a field", on, e);
    json_t *value = json_object_get(on, n->text);
    if (only_has)
        return json_boolean(value && !json_is_null(value));
    return value ? json_incref(value) : missing(n->text, e);
}

static json_t *element(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *on = eval(r, n->a, e);
    json_auto_t *at = on ? eval(r, n->b, e) : NULL;
    if (!at)
        return NULL;
    if (json_is_object(on) && json_is_string(at)) {
        json_t *value = json_object_get(on, json_string_value(at));
        return value ? json_incref(value) : missing(json_string_value(at), e);
    }
    if (json_is_array(on) && json_is_integer(at)) {
        json_int_t i = json_integer_value(at);
        if (i >= 0 && (size_t)i < json_array_size(on))
            return json_incref(json_array_get(on, (size_t)i));
        err_set(e, ERR_OUT_OF_RANGE, "IndexOutOfBounds", "index out of bounds: %lld", (long long)i);
        return NULL;
    }
    return type_error("an element", on, e);
}

static json_t *make_list(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *list = json_array();
    for (const struct cel_node *item = n->a; item; item = item->next) {
        json_t *value = eval(r, item, e);
        if (!value)
            return NULL;
        json_array_append_new(list, value);
    }
    return json_incref(list);
}

/* 1, 0, or -1 for an error. */
static int truth(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *value = eval(r, n, e);
    if (!value)
        return -1;
    if (json_is_boolean(value))
        return json_is_true(value);
    type_error("a condition", value, e);
    return -1;
}

/* One side that decides is enough, even if the other is an error. */
static json_t *either(struct run *r, const struct cel_node *n, int deciding, struct err *e)
{
    struct err of_left = {0};
    int left = truth(r, n->a, &of_left);
    if (left == deciding)
        return json_boolean(deciding);
    int right = truth(r, n->b, e);
    if (right == deciding)
        return json_boolean(deciding);
    if (left < 0) {
        *e = of_left;
        return NULL;
    }
    return right < 0 ? NULL : json_boolean(!deciding);
}

static json_t *loop(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *on = eval(r, n->a, e);
    if (!on)
        return NULL;
    int deciding = n->op == CEL_EXISTS;
    bool failed = false;
    size_t i = 0, count = json_is_array(on) ? json_array_size(on) : json_object_size(on);
    if (!json_is_array(on) && !json_is_object(on))
        return type_error("exists() or all()", on, e);
    void *it = json_is_object(on) ? json_object_iter(on) : NULL;
    for (; i < count; i++) {
        json_auto_t *value =
            it ? json_string(json_object_iter_key(it)) : json_incref(json_array_get(on, i));
        it = it ? json_object_iter_next(on, it) : NULL;
        r->bound[n->index] = value;
        int result = truth(r, n->b, e);
        if (result == deciding)
            return json_boolean(deciding);
        failed |= result < 0;
        if (!spend(r, 1, e))
            return NULL;
    }
    return failed ? NULL : json_boolean(!deciding);
}

static json_t *compare(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *a = eval(r, n->a, e);
    json_auto_t *b = a ? eval(r, n->b, e) : NULL;
    if (!b)
        return NULL;
    double order;
    if (json_is_integer(a) && json_is_integer(b))
        order = (json_integer_value(a) > json_integer_value(b)) -
                (json_integer_value(a) < json_integer_value(b));
    else if (json_is_number(a) && json_is_number(b))
        order = json_number_value(a) - json_number_value(b);
    else if (json_is_string(a) && json_is_string(b) && spend(r, json_string_length(a) / 64, e))
        order = strcmp(json_string_value(a), json_string_value(b));
    else
        return type_error("comparing", json_is_number(a) ? b : a, e);
    return json_boolean(n->op == CEL_LESS            ? order < 0
                        : n->op == CEL_LESS_EQUAL    ? order <= 0
                        : n->op == CEL_GREATER_EQUAL ? order >= 0
                                                     : order > 0);
}

static json_t *equality(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *a = eval(r, n->a, e);
    json_auto_t *b = a ? eval(r, n->b, e) : NULL;
    if (!b)
        return NULL;
    bool same = equal(r, a, b);
    return spend(r, 0, e) ? json_boolean(same == (n->op == CEL_EQUAL)) : NULL;
}

static json_t *contained(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *a = eval(r, n->a, e);
    json_auto_t *b = a ? eval(r, n->b, e) : NULL;
    if (!b)
        return NULL;
    if (json_is_object(b) && json_is_string(a))
        return json_boolean(json_object_get(b, json_string_value(a)) != NULL);
    if (!json_is_array(b))
        return type_error("in", b, e);
    bool found = false;
    for (size_t i = 0; i < json_array_size(b) && !found; i++)
        found = equal(r, a, json_array_get(b, i));
    return spend(r, 0, e) ? json_boolean(found) : NULL;
}

static json_t *of_strings(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *a = eval(r, n->a, e);
    json_auto_t *b = a ? eval(r, n->b, e) : NULL;
    if (!b)
        return NULL;
    if (!json_is_string(a) || !json_is_string(b))
        return type_error("a text's method", json_is_string(a) ? b : a, e);
    if (!spend(r, json_string_length(a) / 64, e))
        return NULL;
    const char *text = json_string_value(a), *part = json_string_value(b);
    return json_boolean(n->op == CEL_STARTS_WITH ? str_starts_with(text, part)
                        : n->op == CEL_ENDS_WITH ? str_ends_with(text, part)
                                                 : strstr(text, part) != NULL);
}

static json_t *size_of(struct run *r, const struct cel_node *n, struct err *e)
{
    json_auto_t *on = eval(r, n->a, e);
    if (!on)
        return NULL;
    if (json_is_array(on))
        return json_integer((json_int_t)json_array_size(on));
    if (json_is_object(on))
        return json_integer((json_int_t)json_object_size(on));
    if (!json_is_string(on))
        return type_error("size()", on, e);
    json_int_t count = 0; /* of characters: bytes that do not continue one */
    for (const char *s = json_string_value(on); *s; s++)
        count += ((unsigned char)*s & 0xc0) != 0x80;
    return spend(r, json_string_length(on) / 64, e) ? json_integer(count) : NULL;
}

static json_t *eval(struct run *r, const struct cel_node *n, struct err *e)
{
    int is;
    if (!spend(r, 1, e))
        return NULL;
    switch (n->op) {
    case CEL_LITERAL:
        return json_incref(n->value);
    case CEL_VARIABLE:
        return r->values[n->index] ? json_incref((json_t *)r->values[n->index]) : json_null();
    case CEL_BOUND:
        return json_incref(r->bound[n->index]);
    case CEL_FIELD:
        return field(r, n, false, e);
    case CEL_HAS:
        return field(r, n->a, true, e);
    case CEL_INDEX:
        return element(r, n, e);
    case CEL_LIST:
        return make_list(r, n, e);
    case CEL_NOT:
        is = truth(r, n->a, e);
        return is < 0 ? NULL : json_boolean(!is);
    case CEL_AND:
        return either(r, n, 0, e);
    case CEL_OR:
        return either(r, n, 1, e);
    case CEL_CONDITION:
        is = truth(r, n->a, e);
        return is < 0 ? NULL : eval(r, is ? n->b : n->c, e);
    case CEL_EQUAL:
    case CEL_DIFFERS:
        return equality(r, n, e);
    case CEL_LESS:
    case CEL_LESS_EQUAL:
    case CEL_GREATER:
    case CEL_GREATER_EQUAL:
        return compare(r, n, e);
    case CEL_IN:
        return contained(r, n, e);
    case CEL_SIZE:
        return size_of(r, n, e);
    case CEL_STARTS_WITH:
    case CEL_ENDS_WITH:
    case CEL_CONTAINS:
        return of_strings(r, n, e);
    case CEL_EXISTS:
    case CEL_ALL:
        return loop(r, n, e);
    }
    return NULL;
}

int apiserver_cel_test(const struct apiserver_cel *c, const json_t *const *values, bool *ret_result,
                       struct err *e)
{
    struct run r = {.values = values};
    struct err own = {0};
    int is = truth(&r, c->root, &own);
    if (is < 0) {
        if (e)
            *e = own;
        return -1;
    }
    *ret_result = is;
    return 0;
}
