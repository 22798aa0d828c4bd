/*
 * libyaml's events to nodes. libyaml checks the syntax; this file holds the limits, resolves keys
 * and aliases, and refuses the YAML that JSON cannot express.
 */
#include <stdio.h>
#include <yaml.h>

#include "base/map.h"
#include "json/internal.h"
#include "json/node.h"

enum { TAGS_MAX = 64 }; /* %TAG directives of one document */

struct reader {
    struct arena *arena;
    yaml_parser_t parser;
    struct map anchors; /* name -> struct json_node */
    struct json_node *open[JSON_MAX_DEPTH];
    unsigned depth;
    struct json_node *root;
    size_t nodes;       /* so far, aliases expanded */
    size_t alias_bytes; /* of text that aliases repeat */
    unsigned documents;
    struct json_pos base;
    struct json_pos *pos;
    struct err *e;
};

static struct json_pos pos_of(yaml_mark_t mark)
{
    return (struct json_pos){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

static int refuse(struct reader *r, struct json_pos pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(struct reader *r, struct json_pos pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err_vset(r->e, ERR_INVALID_ARGUMENT, "InvalidYAML", fmt, ap);
    va_end(ap);
    *r->pos = pos;
    return -1;
}

static struct json_node *new_node(struct reader *r, enum json_node_kind kind,
                                  const yaml_event_t *event)
{
    struct json_node *n = arena_new(r->arena, struct json_node);
    n->kind = kind;
    n->pos = pos_of(event->start_mark);
    n->nodes = 1;
    return n;
}

/* A key becomes its string here, so that positions can be found by it later. */
static int make_key(struct reader *r, struct json_node *key)
{
    const struct json_node *real = json_node_real(key);
    if (real->kind != JSON_NODE_SCALAR)
        return refuse(r, key->pos,
                      "a key must be a single value; if this is a template such as {{ .Name }}, or "
                      "text that starts with \"%s\", put it in quotes",
                      real->kind == JSON_NODE_MAP ? "{" : "[");
    if (real->kind == key->kind && key->tag == JSON_NODE_PLAIN && key->len == 2 &&
        memcmp(key->text, "<<", 2) == 0) {
        key->merge = true;
        return 0;
    }
    size_t len;
    const char *text = json_yaml_key(r->arena, real, &len, r->e);
    if (!text) {
        *r->pos = key->pos;
        return -1;
    }
    key->text = text;
    key->len = len;
    return 0;
}

/* Hangs a node into the container that is open; n's own numbers are final unless it is open. */
static int attach(struct reader *r, struct json_node *n)
{
    struct json_node *parent = r->depth ? r->open[r->depth - 1] : NULL;
    bool key = parent && parent->kind == JSON_NODE_MAP && parent->count % 2 == 0;
    if (key && !n->open)
        n->nodes = 0; /* a key is part of its member */
    r->nodes += n->nodes;
    if (r->nodes > JSON_MAX_NODES)
        return refuse(r, n->pos, "more than %d values%s; split the document", JSON_MAX_NODES,
                      n->kind == JSON_NODE_ALIAS ? ", with the aliases expanded" : "");
    if (!parent) {
        r->root = n;
        return 0;
    }
    json_node_append(parent, n);
    /* A container that is a key is refused as soon as it closes. */
    return key && !n->open ? make_key(r, n) : 0;
}

/* Adds a finished child's numbers to the container around it. */
static void account(struct reader *r, const struct json_node *n)
{
    if (!r->depth)
        return;
    struct json_node *parent = r->open[r->depth - 1];
    parent->nodes += n->nodes;
    parent->bytes += n->bytes;
    if (parent->height < n->height + 1)
        parent->height = n->height + 1;
}

static void set_anchor(struct reader *r, struct json_node *n, const yaml_char_t *anchor)
{
    if (anchor)
        map_set(&r->anchors, (const char *)anchor, n);
}

static int set_tag(struct reader *r, struct json_node *n, const yaml_char_t *tag)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    static const char *const names[] = {
        [JSON_NODE_PLAIN] = "",      [JSON_NODE_STR] = "str",   [JSON_NODE_INT] = "int",
        [JSON_NODE_FLOAT] = "float", [JSON_NODE_BOOL] = "bool", [JSON_NODE_NULL] = "null",
    };
    const char *name = (const char *)tag;

    if (!tag)
        return 0;
    if (str_eq(name, "!")) {
        n->tag = JSON_NODE_STR;
        return 0;
    }
    if (str_starts_with(name, prefix)) {
        name += sizeof(prefix) - 1;
        if (n->kind == JSON_NODE_MAP && str_eq(name, "map"))
            return 0;
        if (n->kind == JSON_NODE_SEQUENCE && str_eq(name, "seq"))
            return 0;
        for (unsigned i = JSON_NODE_STR; n->kind == JSON_NODE_SCALAR && i <= JSON_NODE_NULL; i++) {
            if (str_eq(name, names[i])) {
                n->tag = (enum json_node_tag)i;
                return 0;
            }
        }
        return refuse(r, n->pos, "the tag \"!!%.60s\" has no meaning here; remove it", name);
    }
    return refuse(r, n->pos, "the tag \"%.60s\" has no meaning here; remove it", name);
}

static int on_scalar(struct reader *r, const yaml_event_t *event)
{
    struct json_node *n = new_node(r, JSON_NODE_SCALAR, event);
    n->len = event->data.scalar.length;
    n->bytes = (uint32_t)n->len;
    n->text = arena_copy(r->arena, (const char *)event->data.scalar.value, n->len);
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        n->tag = JSON_NODE_STR;
    set_anchor(r, n, event->data.scalar.anchor);
    if (set_tag(r, n, event->data.scalar.tag) < 0 || attach(r, n) < 0)
        return -1;
    account(r, n);
    return 0;
}

static int on_alias(struct reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct json_node *n = new_node(r, JSON_NODE_ALIAS, event);
    struct json_node *target = map_get(&r->anchors, name);

    if (!target)
        return refuse(
            r, n->pos,
            "nothing before this has the anchor \"&%.60s\"; if \"*%.60s\" is text, put it "
            "in quotes",
            name, name);
    if (target->open)
        return refuse(r, n->pos,
                      "\"*%.60s\" stands inside the value it names; name a value that ends before "
                      "it",
                      name);
    n->target = target;
    n->nodes = target->nodes;
    n->bytes = target->bytes;
    n->height = target->height;
    if (r->depth + n->height > JSON_MAX_DEPTH)
        return refuse(r, n->pos,
                      "nested too deeply with the aliases expanded; at most %d levels "
                      "are allowed",
                      JSON_MAX_DEPTH);
    r->alias_bytes += n->bytes;
    if (r->alias_bytes > JSON_MAX_BYTES)
        return refuse(r, n->pos,
                      "the aliases repeat more than %d bytes of text; use fewer, or split the "
                      "document",
                      JSON_MAX_BYTES);
    if (attach(r, n) < 0)
        return -1;
    account(r, n);
    return 0;
}

static int on_open(struct reader *r, enum json_node_kind kind, const yaml_event_t *event,
                   const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct json_node *n = new_node(r, kind, event);
    n->open = true;
    n->height = 1;
    if (r->depth == JSON_MAX_DEPTH)
        return refuse(r, n->pos, "nested too deeply; at most %d levels are allowed",
                      JSON_MAX_DEPTH);
    set_anchor(r, n, anchor);
    if (set_tag(r, n, tag) < 0 || attach(r, n) < 0)
        return -1;
    r->open[r->depth++] = n;
    return 0;
}

static int on_close(struct reader *r)
{
    struct json_node *n = r->open[--r->depth];
    n->open = false;
    account(r, n);
    if (r->depth) {
        const struct json_node *parent = r->open[r->depth - 1];
        if (parent->kind == JSON_NODE_MAP && parent->count % 2 == 1)
            return make_key(r, n);
    }
    return 0;
}

static int on_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->documents++)
            return refuse(r, pos_of(event->start_mark),
                          "a second document starts here; put \"---\" on a line of its own");
        return 0;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_ALIAS_EVENT:
        return on_alias(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(r, JSON_NODE_SEQUENCE, event, event->data.sequence_start.anchor,
                       event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return on_open(r, JSON_NODE_MAP, event, event->data.mapping_start.anchor,
                       event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(r);
    default:
        return 0;
    }
}

static int read_events(struct reader *r, const char *text, size_t len)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            json_yaml_hint(&r->parser, text, len, r->base, r->pos, r->e);
            return -1;
        }
        bool end = event.type == YAML_STREAM_END_EVENT;
        int result = on_event(r, &event);
        yaml_event_delete(&event);
        if (result < 0 || end)
            return result;
    }
}

/* libyaml compares each %TAG with all before it, so there must not be many. */
static int check_directives(struct reader *r, const char *text, size_t len)
{
    const char *end = text + len, *p = text;
    for (unsigned n = 0; (p = memmem(p, (size_t)(end - p), "%TAG", 4)); p += 4) {
        /* A directive starts its line; the breaks that only YAML knows end with such a byte. */
        bool starts = p == text || json_is_one_of(p[-1], "\r\n") || (p[-1] & 0x80);
        if (starts && ++n > TAGS_MAX)
            return refuse(r, json_pos_at(text, len, (size_t)(p - text)),
                          "more than %d \"%%TAG\" directives; remove those that no tag needs",
                          TAGS_MAX);
    }
    return 0;
}

int json_yaml_read(struct arena *a, const char *text, size_t len, struct json_pos base,
                   struct json_node **ret_root, struct json_pos *ret_pos, struct err *e)
{
    struct reader r = {.arena = a, .base = base, .pos = ret_pos, .e = e};

    *ret_pos = (struct json_pos){1, 1};
    if (!yaml_parser_initialize(&r.parser))
        abort();
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int result = check_directives(&r, text, len);
    if (result == 0)
        result = read_events(&r, text, len);
    yaml_parser_delete(&r.parser);
    map_done(&r.anchors);

    *ret_root = result < 0 ? NULL : r.root;
    return result;
}
