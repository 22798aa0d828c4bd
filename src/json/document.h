/*
 * A document's text and what is needed to find places in it. Shared by the stream that makes it and
 * by what looks places up.
 */
#pragma once

#include "base/arena.h"
#include "json/doc.h"
#include "json/node.h"

struct json_doc_impl {
    struct arena arena; /* owns all of this, itself too */
    const char *text;   /* from the end of the document before to the end of this; terminated */
    size_t len;
    struct json_pos base;   /* where text starts in the stream */
    size_t blanks;          /* in front of text, for what others have of its first line */
    size_t body;            /* of JSON: where in text the value starts */
    struct json_node *root; /* of YAML; NULL for JSON and for what did not parse */
    bool is_json;
};
