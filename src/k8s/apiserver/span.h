/*
 * Parts of JSON text by their place, without building values. For text that was checked before,
 * such as stored objects; of any other the answer is some part of it, or none, and nothing worse.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct apiserver_span {
    const char *p; /* NULL: there is none */
    size_t size;
};

/* The value of an object's member; keys with escapes are not found. */
struct apiserver_span apiserver_span_member(const char *text, size_t size, const char *key);
