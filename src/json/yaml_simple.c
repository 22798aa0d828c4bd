/*
 * A short way through simple YAML.
 *
 * Nearly all manifests are block maps and lists of one-line values. Reading those needs one look at
 * each byte, and takes a tenth of what libyaml takes (docs/benchmarks.md). This reader knows only
 * that much of YAML. Whatever it is not sure of, it gives up on, without an error, and libyaml
 * reads the document from its start; so it can be wrong only by accepting, and a fuzzer compares
 * the two readers on all that it accepts.
 *
 * What it is sure of, each line alone:
 *
 *     # comment              alone on its line
 *     key:                   a word of letters, digits and . _ / -, and a colon
 *     key: value             a plain value without anything that YAML gives a meaning
 *     key: "value" 'value'   without escapes and without the quote itself
 *     key: [] {}             empty
 *     - value, - key: ...    an item
 *
 * ASCII only; no tabs, no carriage returns, no comment behind a value, no value over two lines.
 *
 * Nesting is a stack of the containers that are open. Each has the column its entries start at. A
 * line at a smaller column closes; a line at a larger one opens a container as the value of the
 * entry that has none yet, and where every entry has its value it is a continued scalar: not simple.
 */
#include "json/node.h"

enum { KEY_MAX = 1000 }; /* libyaml takes no key much longer than this */

struct level {
    struct json_node *node;
    unsigned column;
    struct json_node *waiting; /* the entry's null, to be replaced if a container follows */
};

struct simple {
    struct arena *arena;
    const char *at, *end;
    const char *line; /* start of the line */
    unsigned number;  /* of the line, from 1 */
    struct level open[JSON_MAX_DEPTH];
    unsigned depth;
    size_t nodes;
    struct json_node *root;
};

enum class {
    KEY = 1,   /* may stand in a key */
    FIRST = 2, /* may start a plain value */
    INSIDE = 4 /* may stand in a plain value */
};

static const unsigned char classes[256] = {
    ['a' ... 'z'] = KEY | FIRST | INSIDE,
    ['A' ... 'Z'] = KEY | FIRST | INSIDE,
    ['0' ... '9'] = KEY | FIRST | INSIDE,
    ['_'] = KEY | FIRST | INSIDE,
    ['.'] = KEY | FIRST | INSIDE,
    ['/'] = KEY | FIRST | INSIDE,
    ['-'] = KEY | INSIDE,
    ['+'] = FIRST | INSIDE,
    ['('] = FIRST | INSIDE,
    [')'] = INSIDE,
    ['@'] = INSIDE,
    ['='] = INSIDE,
    [','] = INSIDE,
    [';'] = INSIDE,
    ['%'] = INSIDE,
    [' '] = INSIDE,
    [':'] = INSIDE,
    ['\''] = INSIDE,
};

static struct json_node *new_node(struct simple *s, enum json_node_kind kind, const char *at)
{
    struct json_node *n = arena_new(s->arena, struct json_node);
    n->kind = kind;
    n->pos = (struct json_pos){s->number, (unsigned)(at - s->line) + 1};
    n->nodes = 1;
    s->nodes++;
    return n;
}

static struct json_node *new_scalar(struct simple *s, const char *at, const char *text, size_t len,
                                    enum json_node_tag tag)
{
    struct json_node *n = new_node(s, JSON_NODE_SCALAR, at);
    n->tag = tag;
    n->text = arena_copy(s->arena, text, len);
    n->len = len;
    return n;
}

/* Closes what the entry at this column cannot belong to. */
static void close_levels(struct simple *s, unsigned column, enum json_node_kind kind)
{
    while (s->depth) {
        const struct level *top = &s->open[s->depth - 1];
        if (top->column < column || (top->column == column && top->node->kind == kind))
            return;
        if (top->column == column && top->waiting)
            return; /* key:, and its list at the same column */
        s->depth--;
    }
}

/* The container that has entries of this kind at this column, opened where one can be; or NULL. */
static struct level *level_for(struct simple *s, const char *at, enum json_node_kind kind)
{
    unsigned column = (unsigned)(at - s->line);
    close_levels(s, column, kind);
    struct level *top = s->depth ? &s->open[s->depth - 1] : NULL;
    if (top && top->column == column && top->node->kind == kind) {
        top->waiting = NULL;
        return top;
    }
    if (s->depth == JSON_MAX_DEPTH || (top ? !top->waiting : s->root != NULL))
        return NULL;
    if (top && top->column == column && kind != JSON_NODE_SEQUENCE)
        return NULL;

    struct json_node *n;
    if (top) { /* it takes the place of the null that stood in for it */
        n = top->waiting;
        n->kind = kind;
        n->tag = JSON_NODE_PLAIN;
        n->first = n->last = NULL;
        n->pos = (struct json_pos){s->number, column + 1};
        top->waiting = NULL;
    } else {
        n = s->root = new_node(s, kind, at);
    }
    s->open[s->depth] = (struct level){.node = n, .column = column};
    return &s->open[s->depth++];
}

/* Only spaces up to the end of the line. */
static bool ends_line(const char *p, const char *line_end)
{
    while (p < line_end && *p == ' ')
        p++;
    return p == line_end;
}

/* A value that ends with its line; NULL when it is not simple. */
static struct json_node *read_value(struct simple *s, const char *p, const char *line_end)
{
    if (*p == '"' || *p == '\'') {
        const char *close = memchr(p + 1, *p, (size_t)(line_end - p) - 1);
        if (!close || !ends_line(close + 1, line_end))
            return NULL;
        for (const char *c = p + 1; c < close; c++) {
            if (*c < ' ' || *c > '~' || *c == '\\')
                return NULL;
        }
        return new_scalar(s, p, p + 1, (size_t)(close - p) - 1, JSON_NODE_STR);
    }
    if ((*p == '[' || *p == '{') && line_end - p >= 2 && p[1] == *p + 2 &&
        ends_line(p + 2, line_end) && s->depth < JSON_MAX_DEPTH)
        return new_node(s, *p == '[' ? JSON_NODE_SEQUENCE : JSON_NODE_MAP, p);

    const char *q = p;
    if (*q == '-' && q + 1 < line_end && q[1] != ' ' && q[1] != '-')
        q++; /* -5Gi, but neither an item nor a marker */
    if (q == line_end || !(classes[(unsigned char)*q] & FIRST))
        return NULL;
    for (; q < line_end; q++) {
        if (!(classes[(unsigned char)*q] & INSIDE))
            return NULL;
        if (*q == ':' && (q + 1 == line_end || q[1] == ' '))
            return NULL;
    }
    while (q[-1] == ' ')
        q--;
    return new_scalar(s, p, p, (size_t)(q - p), JSON_NODE_PLAIN);
}

/* The colon of the key at p; NULL when no key stands there. */
static const char *find_colon(const char *p, const char *line_end)
{
    const char *colon = p;
    while (colon < line_end && classes[(unsigned char)*colon] & KEY)
        colon++;
    bool found = colon > p && colon < line_end && *colon == ':' &&
                 (colon + 1 == line_end || colon[1] == ' ');
    return found ? colon : NULL;
}

/* key: or key: value. */
static bool read_member(struct simple *s, const char *p, const char *line_end)
{
    const char *colon = find_colon(p, line_end);
    if (!colon || colon - p > KEY_MAX || *p == '-')
        return false;
    struct level *level = level_for(s, p, JSON_NODE_MAP);
    if (!level)
        return false;

    struct json_node *key = new_scalar(s, p, p, (size_t)(colon - p), JSON_NODE_PLAIN);
    key->text = json_yaml_key(s->arena, key, &key->len, NULL);
    if (!key->text)
        return false;
    json_node_append(level->node, key);
    if (ends_line(colon + 1, line_end)) {
        level->waiting = new_scalar(s, colon + 1, "", 0, JSON_NODE_PLAIN);
        json_node_append(level->node, level->waiting);
        return true;
    }
    p = colon + 2;
    while (*p == ' ')
        p++;
    struct json_node *value = read_value(s, p, line_end);
    if (value)
        json_node_append(level->node, value);
    return value;
}

static bool read_line(struct simple *s, const char *p, const char *line_end)
{
    while (p < line_end && *p == '-' && line_end - p > 2 && p[1] == ' ') {
        struct level *level = level_for(s, p, JSON_NODE_SEQUENCE);
        if (!level)
            return false;
        p += 2;
        while (p < line_end && *p == ' ')
            p++;
        if (p == line_end)
            return false;
        bool is_item = *p == '-' && line_end - p > 1 && p[1] == ' ';
        if (!is_item && !find_colon(p, line_end)) {
            struct json_node *value = read_value(s, p, line_end);
            if (value)
                json_node_append(level->node, value);
            return value;
        }
        level->waiting = new_scalar(s, p, "", 0, JSON_NODE_PLAIN);
        json_node_append(level->node, level->waiting);
    }
    return read_member(s, p, line_end);
}

struct json_node *json_yaml_read_simple(struct arena *a, const char *text, size_t len)
{
    struct simple s = {.arena = a, .at = text, .end = text + len};
    bool marked = false;
    while (s.at < s.end) {
        const char *line_end = memchr(s.at, '\n', (size_t)(s.end - s.at));
        if (!line_end)
            line_end = s.end;
        s.line = s.at;
        s.number++;
        const char *p = s.line;
        while (p < line_end && *p == ' ')
            p++;
        s.at = line_end + 1;
        if (p == line_end)
            continue;
        if (*p == '#') { /* what it says does not matter, what libyaml would not read does */
            for (; p < line_end; p++) {
                if (*p < ' ' || *p > '~')
                    return NULL;
            }
            continue;
        }
        if (!s.root && !marked && p == s.line && line_end - p >= 3 && memcmp(p, "---", 3) == 0 &&
            ends_line(p + 3, line_end)) {
            marked = true;
            continue;
        }
        if (!read_line(&s, p, line_end) || s.nodes > JSON_MAX_NODES)
            return NULL;
    }
    return s.root;
}
