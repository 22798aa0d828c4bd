/*
 * The tree between libyaml's events and JSON values. It keeps what a value forgets: where each node
 * stands, how a scalar was written, which alias stands for what. It lives in the document's arena.
 *
 *     map ──first──> key ──next──> value ──next──> key ──next──> value
 *     sequence ──first──> item ──next──> item
 *     alias ──target──> the node that has the anchor
 *
 * Aliases are not expanded in the tree. While it is read, each node knows how many nodes, bytes and
 * levels it would be with all aliases expanded, and the reader refuses the alias that would go past
 * a limit, so whatever walks a finished tree, aliases included, is bounded. The reader of simple
 * text, which has no aliases, leaves those numbers alone.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "json/json.h"

enum json_node_kind { JSON_NODE_SCALAR, JSON_NODE_SEQUENCE, JSON_NODE_MAP, JSON_NODE_ALIAS };

/* How to read a scalar: by its text when plain, as a string when quoted, or as its tag says. */
enum json_node_tag {
    JSON_NODE_PLAIN,
    JSON_NODE_STR,
    JSON_NODE_INT,
    JSON_NODE_FLOAT,
    JSON_NODE_BOOL,
    JSON_NODE_NULL
};

struct json_node {
    enum json_node_kind kind : 8;
    enum json_node_tag tag : 8;
    bool open;           /* a container whose end has not been read */
    bool merge;          /* a key `<<`: the value's members are this map's unless it has its own */
    uint32_t height;     /* levels of containers, 0 for a scalar */
    struct json_pos pos; /* in the document's text */
    struct json_node *next;
    union {
        struct
        { /* a scalar's text; of a key, alias or not, the string it becomes: "true" for yes */
            const char *text;
            size_t len;
        };
        struct { /* a container's children */
            struct json_node *first, *last;
        };
    };
    struct json_node *target; /* of an alias */
    uint32_t count;           /* of children; keys and values both */
    uint32_t nodes, bytes;    /* with all aliases expanded; bytes of scalars' text */
};

/* Hangs a node into a container, behind its other children. */
static inline void json_node_append(struct json_node *parent, struct json_node *n)
{
    if (parent->last)
        parent->last->next = n;
    else
        parent->first = n;
    parent->last = n;
    parent->count++;
}

/* What a plain scalar is. */
enum json_scalar_type {
    JSON_SCALAR_STRING,
    JSON_SCALAR_NULL,
    JSON_SCALAR_BOOL,
    JSON_SCALAR_INT,
    JSON_SCALAR_REAL,
    JSON_SCALAR_NOT_FINITE /* .inf, .nan */
};

struct json_scalar {
    enum json_scalar_type type;
    bool boolean;
    int64_t integer;
    double real;
};

/* yaml_scalar.c */

struct json_scalar json_scalar_resolve(const char *text, size_t len);
/* Whether some reader of YAML 1.1 or 1.2 might take the plain text for something but a string. */
bool json_scalar_is_risky(const char *text, size_t len);

/*
 * In what follows `text` is terminated and `base` is where it starts in the stream, for messages
 * that name a second place. *ret_pos is relative to the text, and messages have no position.
 */

/* yaml_read.c: the nodes of one document; *ret_root is NULL when it is empty. */
int json_yaml_read(struct arena *a, const char *text, size_t len, struct json_pos base,
                   struct json_node **ret_root, struct json_pos *ret_pos, struct err *e);

/* yaml_simple.c: the same for simple text, many times faster; NULL when it is not sure. */
struct json_node *json_yaml_read_simple(struct arena *a, const char *text, size_t len);

/* yaml_value.c */

json_t *json_yaml_value(const struct json_node *root, struct json_pos base,
                        struct json_pos *ret_pos, struct err *e);
/* The string that a scalar becomes as a key; NULL and *e when it cannot be one. */
const char *json_yaml_key(struct arena *a, const struct json_node *n, size_t *ret_len,
                          struct err *e);
/* The node behind an alias, or itself. */
const struct json_node *json_node_real(const struct json_node *n);

/* yaml_hint.c: what libyaml could not read and why, in the words of whoever wrote it. */
struct yaml_parser_s; /* libyaml's yaml_parser_t */
void json_yaml_hint(const struct yaml_parser_s *parser, const char *text, size_t len,
                    struct json_pos base, struct json_pos *ret_pos, struct err *e);
