/*
 * Text to tree, by recursive descent: one function for each level of precedence.
 *
 *     condition   or ? expression : expression
 *     or          and || and || ...
 *     and         relation && relation && ...
 *     relation    unary == unary, and the like; in
 *     unary       ! unary, - integer
 *     member      primary .field .method() [index] ...
 *     primary     literal, variable, function, list, ( expression )
 *
 * Nesting is counted on the way down, and every node knows how deep the tree below it is, so neither
 * parsing nor walking can exhaust the stack.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "apiserver/cel_impl.h"

struct parser {
    struct apiserver_cel *cel;
    const char *text, *at;
    const char *const *names;
    const char *bound[CEL_BOUND_MAX];
    size_t n_bound;
    unsigned nesting;
    struct err *e;
};

static struct cel_node *expression(struct parser *p);

__attribute__((format(printf, 2, 3))) static struct cel_node *fail(struct parser *p,
                                                                   const char *fmt, ...)
{
    char what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    err_set(p->e, ERR_INVALID_ARGUMENT, "UnsupportedExpression", "character %zu: %s",
            (size_t)(p->at - p->text) + 1, what);
    return NULL;
}

static void skip_space(struct parser *p)
{
    for (;;) {
        p->at += strspn(p->at, " \t\r\n");
        if (p->at[0] != '/' || p->at[1] != '/')
            return;
        p->at += strcspn(p->at, "\n");
    }
}

static bool take(struct parser *p, const char *token)
{
    skip_space(p);
    if (!str_starts_with(p->at, token))
        return false;
    p->at += strlen(token);
    return true;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* An identifier, or NULL when there is none. */
static const char *take_name(struct parser *p)
{
    skip_space(p);
    if (!is_letter(*p->at) || isdigit((unsigned char)*p->at))
        return NULL;
    size_t n = 1;
    while (is_letter(p->at[n]))
        n++;
    const char *name = arena_strndup(&p->cel->arena, p->at, n);
    p->at += n;
    return name;
}

static struct cel_node *node(struct parser *p, enum cel_op op, struct cel_node *a,
                             struct cel_node *b, struct cel_node *c)
{
    struct cel_node *n = arena_new(&p->cel->arena, struct cel_node);
    n->op = op;
    n->a = a;
    n->b = b;
    n->c = c;
    struct cel_node *const below[] = {a, b, c};
    for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
        if (below[i] && below[i]->depth > n->depth)
            n->depth = below[i]->depth;
    }
    if (++n->depth > APISERVER_CEL_DEPTH)
        return fail(p, "more than %d operations in each other", APISERVER_CEL_DEPTH);
    return n;
}

static struct cel_node *literal(struct parser *p, json_t *value)
{
    if (!value)
        return fail(p, "the text is no UTF-8");
    vec_push(&p->cel->literals, value);
    struct cel_node *n = node(p, CEL_LITERAL, NULL, NULL, NULL);
    n->value = value;
    return n;
}

/* One escape sequence, behind its backslash. */
static bool take_escape(struct parser *p, struct str *out)
{
    static const char letters[] = "nrt\\'\"`?", meanings[] = "\n\r\t\\'\"`?";
    const char *found = *p->at ? strchr(letters, *p->at) : NULL;
    if (!found)
        return false;
    str_append_c(out, meanings[found - letters]);
    p->at++;
    return true;
}

static struct cel_node *string(struct parser *p, bool raw)
{
    char quote = *p->at;
    if (p->at[1] == quote && p->at[2] == quote)
        return fail(p, "texts in three quotes are not supported");
    _cleanup_(str_done) struct str text = {0};
    for (p->at++; *p->at != quote;) {
        if (!*p->at || *p->at == '\n')
            return fail(p, "the text does not end");
        if (*p->at == '\\' && !raw) {
            p->at++;
            if (!take_escape(p, &text))
                return fail(p, "this escape sequence is not supported");
        } else {
            str_append_c(&text, *p->at++);
        }
    }
    p->at++;
    return literal(p, json_string(str_get(&text)));
}

static struct cel_node *integer(struct parser *p, bool negative)
{
    char digits[32];
    size_t n = strspn(p->at, "0123456789");
    if (!n || n + 2 > sizeof(digits) || is_letter(p->at[n]) ||
        (p->at[n] == '.' && isdigit((unsigned char)p->at[n + 1])))
        return fail(p, "of numbers only decimal integers are supported");
    snprintf(digits, sizeof(digits), "%s%.*s", negative ? "-" : "", (int)n, p->at);
    errno = 0;
    long long value = strtoll(digits, NULL, 10);
    if (errno)
        return fail(p, "the number is too large");
    p->at += n;
    return literal(p, json_integer(value));
}

static struct cel_node *list(struct parser *p)
{
    struct cel_node *first = NULL, **end = &first;
    unsigned deepest = 0;
    while (!take(p, "]")) {
        if (first && !take(p, ","))
            return fail(p, "expected ',' or ']'");
        if (first && take(p, "]"))
            break;
        struct cel_node *item = expression(p);
        if (!item)
            return NULL;
        deepest = item->depth > deepest ? item->depth : deepest;
        *end = item;
        end = &item->next;
    }
    struct cel_node *n = node(p, CEL_LIST, first, NULL, NULL);
    if (n && deepest + 1 > n->depth)
        n->depth = deepest + 1;
    return n && n->depth > APISERVER_CEL_DEPTH ? fail(p, "too many lists in each other") : n;
}

static struct cel_node *closed(struct parser *p, struct cel_node *n)
{
    return !n || take(p, ")") ? n : fail(p, "expected ')'");
}

/* has(...) and size(...). */
static struct cel_node *function(struct parser *p, const char *name)
{
    struct cel_node *argument;
    if (str_eq(name, "has")) {
        argument = closed(p, expression(p));
        if (argument && argument->op != CEL_FIELD)
            return fail(p, "has() takes a field, as in has(object.metadata.labels)");
        return argument ? node(p, CEL_HAS, argument, NULL, NULL) : NULL;
    }
    if (str_eq(name, "size")) {
        argument = closed(p, expression(p));
        return argument ? node(p, CEL_SIZE, argument, NULL, NULL) : NULL;
    }
    return fail(p, "the function %.60s() is not supported", name);
}

static struct cel_node *variable(struct parser *p, const char *name)
{
    struct cel_node *n = node(p, CEL_VARIABLE, NULL, NULL, NULL);
    for (size_t i = p->n_bound; n && i-- > 0;) {
        if (str_eq(p->bound[i], name)) {
            n->op = CEL_BOUND;
            n->index = i;
            return n;
        }
    }
    for (; p->names[n->index]; n->index++) {
        if (str_eq(p->names[n->index], name))
            return n;
    }
    return fail(p, "the variable %.60s is not supported", name);
}

static struct cel_node *primary(struct parser *p)
{
    skip_space(p);
    if (take(p, "("))
        return closed(p, expression(p));
    if (take(p, "["))
        return list(p);
    if (*p->at == '\'' || *p->at == '"')
        return string(p, false);
    if ((*p->at == 'r' || *p->at == 'R') && (p->at[1] == '\'' || p->at[1] == '"')) {
        p->at++;
        return string(p, true);
    }
    if (isdigit((unsigned char)*p->at))
        return integer(p, false);
    const char *name = take_name(p);
    if (!name)
        return *p->at ? fail(p, "'%c' is not supported here", isprint(*p->at) ? *p->at : '?')
                      : fail(p, "the expression is not complete");
    if (str_eq(name, "true") || str_eq(name, "false"))
        return literal(p, json_boolean(name[0] == 't'));
    if (str_eq(name, "null"))
        return literal(p, json_null());
    return take(p, "(") ? function(p, name) : variable(p, name);
}

/* list.exists(x, condition), behind the parenthesis. */
static struct cel_node *macro(struct parser *p, enum cel_op op, struct cel_node *on)
{
    const char *name = take_name(p);
    if (!name || !take(p, ","))
        return fail(p, "expected a variable, ',' and a condition");
    if (p->n_bound == CEL_BOUND_MAX)
        return fail(p, "more than %d loops in each other", CEL_BOUND_MAX);
    size_t index = p->n_bound;
    p->bound[p->n_bound++] = name;
    struct cel_node *body = closed(p, expression(p));
    p->n_bound--;
    struct cel_node *n = body ? node(p, op, on, body, NULL) : NULL;
    if (n)
        n->index = index;
    return n;
}

static struct cel_node *method(struct parser *p, struct cel_node *on, const char *name)
{
    static const struct {
        const char *name;
        enum cel_op op;
    } methods[] = {
        {"startsWith", CEL_STARTS_WITH},
        {"endsWith", CEL_ENDS_WITH},
        {"contains", CEL_CONTAINS},
        {"exists", CEL_EXISTS},
        {"all", CEL_ALL},
    };
    if (str_eq(name, "size"))
        return closed(p, node(p, CEL_SIZE, on, NULL, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (!str_eq(methods[i].name, name))
            continue;
        if (methods[i].op == CEL_EXISTS || methods[i].op == CEL_ALL)
            return macro(p, methods[i].op, on);
        struct cel_node *argument = closed(p, expression(p));
        return argument ? node(p, methods[i].op, on, argument, NULL) : NULL;
    }
    return fail(p, "the method .%.60s() is not supported", name);
}

static struct cel_node *member(struct parser *p)
{
    struct cel_node *n = primary(p);
    while (n) {
        if (take(p, ".")) {
            const char *name = take_name(p);
            if (!name)
                return fail(p, "expected the name of a field");
            if (take(p, "(")) {
                n = method(p, n, name);
                continue;
            }
            n = node(p, CEL_FIELD, n, NULL, NULL);
            if (n)
                n->text = name;
        } else if (take(p, "[")) {
            struct cel_node *index = expression(p);
            if (index && !take(p, "]"))
                return fail(p, "expected ']'");
            n = index ? node(p, CEL_INDEX, n, index, NULL) : NULL;
        } else {
            return n;
        }
    }
    return NULL;
}

static struct cel_node *unary(struct parser *p)
{
    bool negate = false, any = false;
    skip_space(p);
    while (p->at[0] == '!' && p->at[1] != '=') { /* in a loop: "!!!!" nests nothing */
        p->at++;
        negate = !negate;
        any = true;
        skip_space(p);
    }
    struct cel_node *n;
    if (take(p, "-"))
        n = integer(p, true);
    else
        n = member(p);
    if (n && any && !negate) /* still a boolean, or an error */
        n = node(p, CEL_NOT, n, NULL, NULL);
    return n && any ? node(p, CEL_NOT, n, NULL, NULL) : n;
}

static bool take_word(struct parser *p, const char *word)
{
    skip_space(p);
    size_t n = strlen(word);
    if (!str_starts_with(p->at, word) || is_letter(p->at[n]))
        return false;
    p->at += n;
    return true;
}

static struct cel_node *relation(struct parser *p)
{
    static const struct {
        const char *token;
        enum cel_op op;
    } table[] = {
        {"==", CEL_EQUAL},         {"!=", CEL_DIFFERS}, {"<=", CEL_LESS_EQUAL},
        {">=", CEL_GREATER_EQUAL}, {"<", CEL_LESS},     {">", CEL_GREATER},
    };
    struct cel_node *left = unary(p);
    while (left) {
        size_t i = 0;
        while (i < ARRAY_SIZE(table) && !take(p, table[i].token))
            i++;
        bool in = i == ARRAY_SIZE(table) && take_word(p, "in");
        if (i == ARRAY_SIZE(table) && !in)
            return left;
        struct cel_node *right = unary(p);
        left = right ? node(p, in ? CEL_IN : table[i].op, left, right, NULL) : NULL;
    }
    return NULL;
}

static struct cel_node *chain(struct parser *p, const char *token, enum cel_op op,
                              struct cel_node *(*operand)(struct parser *))
{
    struct cel_node *left = operand(p);
    while (left && take(p, token)) {
        struct cel_node *right = operand(p);
        left = right ? node(p, op, left, right, NULL) : NULL;
    }
    return left;
}

static struct cel_node *conjunction(struct parser *p)
{
    return chain(p, "&&", CEL_AND, relation);
}

static struct cel_node *expression(struct parser *p)
{
    if (++p->nesting > APISERVER_CEL_DEPTH)
        return fail(p, "more than %d parentheses in each other", APISERVER_CEL_DEPTH);
    struct cel_node *n = chain(p, "||", CEL_OR, conjunction);
    if (n && take(p, "?")) {
        struct cel_node *yes = expression(p);
        if (yes && !take(p, ":"))
            return fail(p, "expected ':'");
        struct cel_node *no = yes ? expression(p) : NULL;
        n = no ? node(p, CEL_CONDITION, n, yes, no) : NULL;
    }
    p->nesting--;
    return n;
}

struct apiserver_cel *apiserver_cel_compile(const char *text, const char *const *names,
                                            struct err *e)
{
    if (strlen(text) > APISERVER_CEL_BYTES) {
        err_set(e, ERR_INVALID_ARGUMENT, "UnsupportedExpression",
                "the expression is longer than %d bytes", APISERVER_CEL_BYTES);
        return NULL;
    }
    _cleanup_(apiserver_cel_freep) struct apiserver_cel *c = NEW(struct apiserver_cel);
    struct parser p = {.cel = c, .text = text, .at = text, .names = names, .e = e};
    c->root = expression(&p);
    skip_space(&p);
    if (c->root && *p.at) {
        fail(&p, "'%c' is not supported here", isprint((unsigned char)*p.at) ? *p.at : '?');
        return NULL;
    }
    return c->root ? TAKE_PTR(c) : NULL;
}

void apiserver_cel_free(struct apiserver_cel *c)
{
    vec_for_each(&c->literals, value)
        json_decref(*value);
    vec_done(&c->literals);
    arena_done(&c->arena);
    free(c);
}
