/*
 * Text of login and text PDUs: "key=value" pairs, each ended by a NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { ISCSI_KEY_MAX = 63, ISCSI_VALUE_MAX = 255, ISCSI_TEXT_MAX = 16384, ISCSI_NAME_MAX = 223 };

/*
 * The next pair at *at of the n bytes, behind which there is a NUL; *at moves behind it, the '='
 * becomes a NUL. False at the end
 * and, with *ret_bad, for what is no text: no '=', a key that is too long or has wrong letters.
 */
bool iscsi_text_next(char *text, size_t n, size_t *at, const char **ret_key, const char **ret_value,
                     bool *ret_bad);
void iscsi_text_add(struct str *out, const char *key, const char *value);
void iscsi_text_add_number(struct str *out, const char *key, uint32_t value);

/* The word in a list with commas; false when it is not there. */
bool iscsi_text_has(const char *list, const char *word);
/* Decimal or 0x hexadecimal, within bounds. */
bool iscsi_text_number(const char *text, uint32_t least, uint32_t most, uint32_t *ret);
/* Bytes as 0x hexadecimal or 0b base64; how many, 0 when it is neither or too long. */
size_t iscsi_text_binary(const char *text, uint8_t *out, size_t room);
void iscsi_text_add_binary(struct str *out, const char *key, const uint8_t *bytes, size_t n);

/* An iqn., eui. or naa. name in normal form. */
bool iscsi_name_valid(const char *name);
