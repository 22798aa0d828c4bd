/* Properties of JSON values and of the documents they come from. */
#pragma once

#include "json/doc.h"

/* Written as JSON and as YAML, it reads back equal, and is written the same again. */
void check_value(const json_t *value);
/* Each value of a document is where json_doc_locate() says, as far as can be told. */
void check_document(const struct json_doc *doc);
/* A text of one JSON value reads the same as a stream, and has places for all of it. */
void check_places(const char *text, size_t len);
/* Fit to be printed and to be put into JSON. */
void check_message(const struct err *e);
