/*
 * The text form of label selectors. Blanks separate and are otherwise ignored; "in" and "notin" are
 * words only where an operator is due, so that labels may be called that, too.
 *
 *     selector    = [ requirement { "," requirement } ]
 *     requirement = "!" key | key [ operator ]
 *     operator    = ( "=" | "==" | "!=" | ">" | "<" ) [ value ] | ( "in" | "notin" ) "(" values ")"
 *     values      = [ value ] { "," [ value ] }
 */
#include "api/selector.h"

enum token {
    END,
    NAME, /* a key or a value */
    BANG,
    COMMA,
    OPEN,
    CLOSE,
    EQUAL,
    DOUBLE_EQUAL,
    NOT_EQUAL,
    GREATER,
    LESS,
};

struct parser {
    const char *text;
    const char *at; /* where the token begins */
    size_t len;     /* of the token */
    enum token token;
    struct api_selector *selector;
    VEC(const char *) values; /* of the requirement that is being read; in the selector's arena */
    struct err *e;
};

static void next(struct parser *p)
{
    static const char blanks[] = " \t\r\n", special[] = "!,()=><";
    static const enum token single[] = {BANG, COMMA, OPEN, CLOSE, EQUAL, GREATER, LESS};
    const char *at = p->at + p->len;
    at += strspn(at, blanks);
    p->at = at;
    const char *symbol = *at ? strchr(special, *at) : NULL;
    if (!*at) {
        p->token = END;
        p->len = 0;
    } else if ((*at == '=' || *at == '!') && at[1] == '=') {
        p->token = *at == '=' ? DOUBLE_EQUAL : NOT_EQUAL;
        p->len = 2;
    } else if (symbol) {
        p->token = single[symbol - special];
        p->len = 1;
    } else {
        p->token = NAME;
        p->len = strcspn(at, "!,()=>< \t\r\n");
    }
}

/* The number of the character at which the token begins, from 1. */
static size_t column(const struct parser *p)
{
    size_t n = 1;
    for (const char *c = p->text; c < p->at; c++)
        n += ((unsigned char)*c & 0xc0) != 0x80;
    return n;
}

static int expected(const struct parser *p, const char *what)
{
    bool end = p->token == END;
    size_t shown = p->len > 80 ? str_cut(p->at, 80) : p->len;
    return err_set(p->e, ERR_INVALID_ARGUMENT, "InvalidSelector",
                   "label selector, character %zu: found %s%.*s%s, expected %s", column(p),
                   end ? "the end" : "'", (int)shown, p->at, end ? "" : "'", what);
}

static const char *token_text(struct parser *p)
{
    return arena_strndup(&p->selector->arena, p->at, p->len);
}

static bool token_is(const struct parser *p, const char *word)
{
    return p->token == NAME && strlen(word) == p->len && memcmp(p->at, word, p->len) == 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The values of a list are a set. */
static void make_set(struct parser *p)
{
    size_t kept = 0;
    qsort(p->values.p, p->values.len, sizeof(*p->values.p), compare_texts);
    for (size_t i = 0; i < p->values.len; i++) {
        if (i == 0 || !str_eq(p->values.p[kept - 1], p->values.p[i]))
            p->values.p[kept++] = p->values.p[i];
    }
    p->values.len = kept;
}

/* "(a,,b)": between commas and parentheses there may be nothing, which is the empty value. */
static int parse_set(struct parser *p)
{
    if (p->token != OPEN)
        return expected(p, "'(' and a list of values");
    do {
        next(p);
        if (p->values.len > API_SELECTOR_MAX_VALUES)
            return expected(p, "no more values; there are too many");
        if (p->token == NAME) {
            vec_push(&p->values, token_text(p));
            next(p);
        } else if (p->token == COMMA || p->token == CLOSE) {
            vec_push(&p->values, "");
        } else {
            return expected(p, "a value, ',' or ')'");
        }
    } while (p->token == COMMA);
    if (p->token != CLOSE)
        return expected(p, "',' or ')'");
    next(p);
    make_set(p);
    return 0;
}

static int parse_value(struct parser *p)
{
    if (p->token == NAME) {
        vec_push(&p->values, token_text(p));
        next(p);
    } else if (p->token == END || p->token == COMMA) {
        vec_push(&p->values, "");
    } else {
        return expected(p, "a value");
    }
    return 0;
}

static int parse_operator(struct parser *p, enum api_selector_op *ret_op)
{
    static const struct {
        enum token token;
        enum api_selector_op op;
    } symbols[] = {{EQUAL, API_SELECT_EQUAL},
                   {DOUBLE_EQUAL, API_SELECT_DOUBLE_EQUAL},
                   {NOT_EQUAL, API_SELECT_NOT_EQUAL},
                   {GREATER, API_SELECT_GREATER},
                   {LESS, API_SELECT_LESS}};
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        if (symbols[i].token == p->token) {
            *ret_op = symbols[i].op;
            next(p);
            return parse_value(p);
        }
    }
    if (!token_is(p, "in") && !token_is(p, "notin"))
        return expected(p, "one of = == != in notin < >, or ',' or the end");
    *ret_op = token_is(p, "in") ? API_SELECT_IN : API_SELECT_NOT_IN;
    next(p);
    return parse_set(p);
}

static int parse_requirement(struct parser *p)
{
    enum api_selector_op op = API_SELECT_EXISTS;
    if (p->token == BANG) {
        op = API_SELECT_NOT_EXISTS;
        next(p);
    }
    if (p->token != NAME)
        return expected(p, op == API_SELECT_EXISTS ? "a label key or '!'" : "a label key");
    size_t where = column(p);
    const char *key = token_text(p);
    next(p);
    p->values.len = 0;
    if (op == API_SELECT_EXISTS && p->token != END && p->token != COMMA &&
        parse_operator(p, &op) < 0)
        return -1;
    if (api_selector_add(p->selector, key, op, p->values.p, p->values.len, p->e) < 0)
        return err_prefix(p->e, "label selector, character %zu", where);
    if (p->token != END && p->token != COMMA)
        return expected(p, "',' or the end");
    return 0;
}

static int parse(struct parser *p)
{
    next(p);
    if (p->token == END)
        return 0;
    for (;;) {
        if (parse_requirement(p) < 0)
            return -1;
        if (p->token == END)
            return 0;
        next(p);
    }
}

int api_selector_parse(const char *text, struct api_selector *ret_s, struct err *e)
{
    *ret_s = (struct api_selector){0};
    if (strlen(text) > API_SELECTOR_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "SelectorTooLong",
                       "label selector: may have %d bytes", API_SELECTOR_MAX_BYTES);
    struct parser p = {.text = text, .at = text, .selector = ret_s, .e = e};
    int r = parse(&p);
    vec_done(&p.values);
    if (r < 0) {
        json_clean_message(e);
        api_selector_done(ret_s);
    }
    return r;
}
