/*
 * What the parser is made of: tokens, nodes, and errors with their place.
 */
#include <ctype.h>
#include <stdio.h>

#include "k8s/cel/macro.h"

void *cel_fail_at(const char *text, const char *at, struct err *e, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    what[str_cut(what, sizeof(what) - 4)] = '\0';
    unsigned line = 1;
    const char *start = text;
    for (const char *c = text; c < at; c++) {
        if (*c == '\n') {
            line++;
            start = c + 1;
        }
    }
    size_t column = (size_t)cel_utf8_length(start, (size_t)(at - start));
    _cleanup_(str_done) struct str under = {0}, source = {0};
    str_append_n(&source, start, strcspn(start, "\n"));
    for (char *c = source.p; c && *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    for (size_t i = 0; i < column; i++)
        str_append_c(&under, '.');
    if (source.len > 300) /* an error has not the room */
        err_set(e, ERR_INVALID_ARGUMENT, "CompilationFailed", "ERROR: <input>:%u:%zu: %s", line,
                column + 1, what);
    else
        err_set(e, ERR_INVALID_ARGUMENT, "CompilationFailed",
                "ERROR: <input>:%u:%zu: %s\n | %s\n | %s^", line, column + 1, what,
                str_get(&source), str_get(&under));
    return NULL;
}

struct cel_node *cel_unexpected(struct cel_parser *p, const char *expected)
{
    char shown[8] = "<EOF>";
    uint32_t c;
    size_t n = *p->at ? str_utf8(p->at, strlen(p->at), &c) : 0;
    if (*p->at)
        snprintf(shown, sizeof(shown), "%.*s", (int)(n ? n : 1), p->at);
    return cel_fail_at(p->text, p->at, p->e, "Syntax error: mismatched input '%s' expecting %s",
                       shown, expected);
}

void cel_skip_space(struct cel_parser *p)
{
    for (;;) {
        p->at += strspn(p->at, " \t\r\n\f");
        if (p->at[0] != '/' || p->at[1] != '/')
            return;
        p->at += strcspn(p->at, "\n");
    }
}

bool cel_take(struct cel_parser *p, const char *token)
{
    cel_skip_space(p);
    if (!str_starts_with(p->at, token))
        return false;
    p->at += strlen(token);
    return true;
}

bool cel_is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *cel_take_name(struct cel_parser *p)
{
    cel_skip_space(p);
    if (!cel_is_letter(*p->at) || isdigit((unsigned char)*p->at))
        return NULL;
    size_t n = 1;
    while (cel_is_letter(p->at[n]))
        n++;
    const char *name = arena_strndup(&p->program->arena, p->at, n);
    p->at += n;
    return name;
}

struct cel_node *cel_node_new(struct cel_parser *p, enum cel_op op, const char *at,
                              struct cel_node *const *args, size_t n)
{
    struct arena *a = &p->program->arena;
    struct cel_node *node = arena_new(a, struct cel_node);
    node->op = op;
    node->at = (unsigned)(at - p->text);
    node->n = n;
    node->args = arena_alloc(a, (n + 1) * sizeof(struct cel_node *));
    for (size_t i = 0; i < n; i++) {
        node->args[i] = args[i];
        if (args[i]->depth > node->depth)
            node->depth = args[i]->depth;
    }
    if (++node->depth > CEL_MAX_DEPTH)
        return cel_fail_at(p->text, at, p->e, "expression recursion limit exceeded: %d",
                           CEL_MAX_DEPTH);
    return node;
}

struct cel_node *cel_literal(struct cel_parser *p, const char *at, struct cel_value value)
{
    struct cel_node *n = cel_node_new(p, CEL_OP_LITERAL, at, NULL, 0);
    n->value = value;
    return n;
}

struct cel_node *cel_call(struct cel_parser *p, const char *name, bool member, const char *at,
                          struct cel_node *const *args, size_t n)
{
    struct cel_node *node = cel_node_new(p, CEL_OP_CALL, at, args, n);
    if (node) {
        node->text = name;
        node->member = member;
    }
    return node;
}
