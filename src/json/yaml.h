/*
 * YAML out: block style, two spaces, keys in the order of the value, strings plain where every YAML
 * 1.1 reader takes them for strings and quoted elsewhere, multi-line strings as literal blocks.
 * What is written reads back equal, and the same value always gives the same text.
 */
#pragma once

#include "json/json.h"

/* Appends one document, without a `---` line. */
void json_yaml_format(const json_t *value, struct str *out);
