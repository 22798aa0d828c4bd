/*
 * The tree between libyaml's events and JSON values. It keeps what a value forgets: where each node
 * stands, how a scalar was written, which alias stands for what. It lives in the document's arena.
 *
 *     map ──first──> key ──next──> value ──next──> key ──next──> value
 *     sequence ──first──> item ──next──> item
 *     alias ──target──> the node that has the anchor
 *
 * Aliases are not expanded in the tree. Each node knows how many nodes, bytes and levels it would
 * be with all aliases expanded, and the reader refuses the alias that would go past a limit, so
 * whatever walks a finished tree, aliases included, is bounded.
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
    enum json_node_kind kind;
    enum json_node_tag tag;
    struct json_pos pos; /* in the document's text */
    struct json_node *next;
    const char *text; /* of a scalar; of a map's key the key it becomes: "true" for yes */
    size_t len;
    struct json_node *first, *last, *target;
    size_t count;    /* of children; keys and values both */
    unsigned height; /* levels of containers, 0 for a scalar */
    bool open;       /* its end has not been read */
    bool merge;      /* a key `<<`: the value's members are this map's unless it has its own */
    size_t nodes, bytes;
};

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

/* yaml_value.c */

json_t *json_yaml_value(const struct json_node *root, struct json_pos base,
                        struct json_pos *ret_pos, struct err *e);
/* The string that a scalar becomes as a key; NULL and *e when it cannot be one. */
const char *json_yaml_key(struct arena *a, const struct json_node *scalar, size_t *ret_len,
                          struct err *e);
/* The node behind an alias, or itself. */
const struct json_node *json_node_real(const struct json_node *n);

/* yaml_hint.c: what libyaml could not read and why, in the words of whoever wrote it. */
struct yaml_parser_s; /* libyaml's yaml_parser_t */
void json_yaml_hint(const struct yaml_parser_s *parser, const char *text, size_t len,
                    struct json_pos base, struct json_pos *ret_pos, struct err *e);
