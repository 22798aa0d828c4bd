/*
 * Text to tree, by recursive descent: one function for each level of precedence.
 *
 *     expression  or ? or : expression
 *     or          and || and || ...
 *     and         relation && relation && ...
 *     relation    sum == sum, and the like; in
 *     sum         product + product - ...
 *     product     unary * unary / ... % ...
 *     unary       ! member, - member
 *     member      primary .field .?field .method() [index] [?index] ...
 *     primary     literal, name, function, list, map, ( expression )
 *
 * Nesting is counted on the way down, and every node knows how deep the tree below it is, so neither
 * parsing nor walking can exhaust the stack.
 */
#include <ctype.h>

#include "k8s/cel/macro.h"

/* Expressions up to a token that closes, which is taken; pairs with a colon for a map. */
static bool items(struct cel_parser *p, const char *close, bool pairs, bool optional,
                  struct cel_items *ret)
{
    for (bool first_one = true; !cel_take(p, close); first_one = false) {
        if (!first_one && !cel_take(p, ",")) {
            cel_unexpected(p, pairs ? "{'}', ','}" : *close == ']' ? "{']', ','}" : "{')', ','}");
            return false;
        }
        if (!first_one && optional && cel_take(p, close)) /* a comma at the end */
            return true;
        cel_skip_space(p);
        const char *at = p->at;
        bool maybe = optional && cel_take(p, "?");
        struct cel_node *first = cel_expression(p), *second = NULL;
        if (first && pairs && !cel_take(p, ":"))
            first = cel_unexpected(p, "':'");
        if (first && pairs)
            second = cel_expression(p);
        struct cel_node **last = pairs ? &second : &first;
        if (first && *last && maybe)
            *last = cel_node_new(p, CEL_OP_OPTIONAL, at, last, 1);
        if (!first || (pairs && !second))
            return false;
        vec_push(ret, first);
        if (pairs)
            vec_push(ret, second);
    }
    return true;
}

bool cel_arguments(struct cel_parser *p, struct cel_items *ret)
{
    return items(p, ")", false, false, ret);
}

/* A list or a map, behind its bracket. */
static struct cel_node *aggregate(struct cel_parser *p, const char *at, bool map)
{
    struct cel_items all = {0};
    struct cel_node *n = NULL;
    if (items(p, map ? "}" : "]", map, true, &all))
        n = cel_node_new(p, map ? CEL_OP_MAP : CEL_OP_LIST, at, all.p, all.len);
    vec_done(&all);
    return n;
}

static struct cel_node *name_or_call(struct cel_parser *p, const char *at, const char *name)
{
    static const char *const reserved[] = {
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",    "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while", NULL};
    if (str_eq(name, "true") || str_eq(name, "false"))
        return cel_literal(p, at, cel_make_bool(name[0] == 't'));
    if (str_eq(name, "null"))
        return cel_literal(p, at, (struct cel_value){.type = CEL_NULL});
    if (str_in(name, reserved))
        return cel_fail_at(p->text, at, p->e, "Syntax error: reserved identifier: %s", name);
    cel_skip_space(p);
    const char *open = p->at;
    return cel_take(p, "(") ? cel_function_call(p, NULL, name, open) : cel_name(p, at, name);
}

static struct cel_node *primary(struct cel_parser *p)
{
    cel_skip_space(p);
    const char *at = p->at;
    if (cel_take(p, "(")) {
        struct cel_node *n = cel_expression(p);
        return !n || cel_take(p, ")") ? n : cel_unexpected(p, "')'");
    }
    if (cel_take(p, "["))
        return aggregate(p, at, false);
    if (cel_take(p, "{"))
        return aggregate(p, at, true);
    if (cel_at_string(at))
        return cel_parse_string(p);
    if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1])))
        return cel_parse_number(p);
    cel_take(p, "."); /* an absolute name */
    const char *name = cel_take_name(p);
    return name ? name_or_call(p, at, name) : cel_unexpected(p, "an expression");
}

static struct cel_node *field(struct cel_parser *p, struct cel_node *on, const char *dot)
{
    bool optional = cel_take(p, "?");
    const char *name = cel_take_name(p);
    if (!name)
        return cel_unexpected(p, "IDENTIFIER");
    cel_skip_space(p);
    const char *open = p->at;
    if (!optional && cel_take(p, "("))
        return cel_function_call(p, on, name, open);
    struct cel_node *joined = optional ? NULL : cel_qualified(p, on, name);
    if (joined)
        return joined;
    struct cel_node *n = cel_node_new(p, CEL_OP_FIELD, dot, &on, 1);
    if (n) {
        n->text = name;
        n->optional = optional;
    }
    return n;
}

static struct cel_node *member(struct cel_parser *p)
{
    struct cel_node *n = primary(p);
    while (n) {
        cel_skip_space(p);
        const char *at = p->at;
        if (cel_take(p, ".")) {
            n = field(p, n, at);
        } else if (cel_take(p, "[")) {
            bool optional = cel_take(p, "?");
            struct cel_node *index = cel_expression(p);
            if (index && !cel_take(p, "]"))
                return cel_unexpected(p, "']'");
            n = index ? cel_node_new(p, CEL_OP_INDEX, at, (struct cel_node *[]){n, index}, 2)
                      : NULL;
            if (n)
                n->optional = optional;
        } else {
            return n;
        }
    }
    return NULL;
}

/* Signs are counted in a loop: "!!!!" nests nothing. */
static struct cel_node *unary(struct cel_parser *p)
{
    cel_skip_space(p);
    const char *at = p->at, *last = at;
    char sign = *at == '!' || *at == '-' ? *at : 0;
    unsigned count = 0;
    for (; sign && *p->at == sign && !(sign == '!' && p->at[1] == '='); count++) {
        last = p->at++;
        cel_skip_space(p);
    }
    struct cel_node *n;
    if (sign == '-' && count && isdigit((unsigned char)*p->at)) {
        p->at = last;
        count--;
        n = cel_parse_number(p);
        if (n && (*p->at == '.' || *p->at == '[')) /* of the number, without its sign */
            return cel_unexpected(p, "an operator");
    } else {
        n = member(p);
    }
    for (unsigned i = count ? 2 - count % 2 : 0; n && i > 0; i--)
        n = sign == '!' ? cel_node_new(p, CEL_OP_NOT, at, &n, 1)
                        : cel_call(p, "-_", false, at, &n, 1);
    return n;
}

/* Operators of one level, of which the left ones bind first. */
struct operator
{
    const char *token, *function; /* NULL: op */
    enum cel_op op;
};

static const struct operator* take_operator(struct cel_parser *p, const struct operator* table)
{
    cel_skip_space(p);
    for (; table->token; table++) {
        size_t n = strlen(table->token);
        if (!str_starts_with(p->at, table->token) ||
            (isalpha((unsigned char)table->token[0]) && cel_is_letter(p->at[n])))
            continue;
        p->at += n;
        return table;
    }
    return NULL;
}

static struct cel_node *level(struct cel_parser *p, const struct operator* table,
                              struct cel_node *(*operand)(struct cel_parser *))
{
    struct cel_node *left = operand(p);
    while (left) {
        cel_skip_space(p);
        const char *at = p->at;
        const struct operator* o = take_operator(p, table);
        if (!o)
            return left;
        struct cel_node *right = operand(p), *args[] = {left, right};
        if (!right)
            return NULL;
        left = o->function ? cel_call(p, o->function, false, at, args, 2)
                           : cel_node_new(p, o->op, at, args, 2);
    }
    return NULL;
}

static struct cel_node *product(struct cel_parser *p)
{
    static const struct operator table[] = {{"*", "_*_"}, {"/", "_/_"}, {"%", "_%_"}, {0}};
    return level(p, table, unary);
}

static struct cel_node *sum(struct cel_parser *p)
{
    static const struct operator table[] = {{"+", "_+_"}, {"-", "_-_"}, {0}};
    return level(p, table, product);
}

static struct cel_node *relation(struct cel_parser *p)
{
    static const struct operator table[] = {{"==", NULL, CEL_OP_EQUAL},
                                            {"!=", NULL, CEL_OP_DIFFERS},
                                            {"<=", "_<=_"},
                                            {">=", "_>=_"},
                                            {"<", "_<_"},
                                            {">", "_>_"},
                                            {"in", NULL, CEL_OP_IN},
                                            {0}};
    return level(p, table, sum);
}

/* All operands of && or || as one node: a long chain is not deep. */
static struct cel_node *chain(struct cel_parser *p, const char *token, enum cel_op op,
                              struct cel_node *(*operand)(struct cel_parser *))
{
    struct cel_items all = {0};
    struct cel_node *n = operand(p);
    cel_skip_space(p);
    const char *at = p->at;
    while (n && cel_take(p, token)) {
        vec_push(&all, n);
        n = operand(p);
    }
    if (n && all.len) {
        vec_push(&all, n);
        n = cel_node_new(p, op, at, all.p, all.len);
    }
    vec_done(&all);
    return n;
}

static struct cel_node *conjunction(struct cel_parser *p)
{
    return chain(p, "&&", CEL_OP_AND, relation);
}

struct cel_node *cel_expression(struct cel_parser *p)
{
    if (++p->nesting > CEL_MAX_DEPTH)
        return cel_fail_at(p->text, p->at, p->e, "expression recursion limit exceeded: %d",
                           CEL_MAX_DEPTH);
    struct cel_node *n = chain(p, "||", CEL_OP_OR, conjunction);
    cel_skip_space(p);
    const char *at = p->at;
    if (n && cel_take(p, "?")) {
        struct cel_node *yes = chain(p, "||", CEL_OP_OR, conjunction);
        if (yes && !cel_take(p, ":"))
            return cel_unexpected(p, "':'");
        struct cel_node *no = yes ? cel_expression(p) : NULL;
        n = no ? cel_node_new(p, CEL_OP_CONDITION, at, (struct cel_node *[]){n, yes, no}, 3) : NULL;
    }
    p->nesting--;
    return n;
}

struct cel_node *cel_parse(struct cel_parser *p)
{
    struct cel_node *n = cel_expression(p);
    cel_skip_space(p);
    return n && *p->at ? cel_unexpected(p, "<EOF>") : n;
}
