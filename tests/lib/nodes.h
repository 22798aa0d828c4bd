/*
 * The short way through YAML against the long one: both must see the same nodes at the same places.
 */
#pragma once

#include "json/node.h"

/* The first node that differs, or NULL. */
static inline const struct json_node *nodes_differ(const struct json_node *a,
                                                   const struct json_node *b)
{
    for (; a && b; a = a->next, b = b->next) {
        if (a->kind != b->kind || a->tag != b->tag || a->count != b->count ||
            a->pos.line != b->pos.line || a->pos.column != b->pos.column)
            return a;
        if (a->kind == JSON_NODE_SCALAR) {
            if (a->len != b->len || memcmp(a->text, b->text, a->len) != 0)
                return a;
            continue;
        }
        const struct json_node *below = nodes_differ(a->first, b->first);
        if (below)
            return below;
    }
    return a ? a : b;
}
