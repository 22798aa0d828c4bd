/*
 * Texts that end the names of objects: short, and made of letters and digits that spell no words.
 * The same input has the same text for ever, so that whoever makes an object again finds it.
 */
#pragma once

#include <stdint.h>

#include "json/json.h"

/* A text of ten for a value; values that differ in anything have another. */
enum { KUBE_HASH = 11 };
void kube_hash(const json_t *value, int64_t collisions, char ret_text[KUBE_HASH]);
/* A text of five for any text. */
void kube_suffix(const char *text, char ret_text[6]);
