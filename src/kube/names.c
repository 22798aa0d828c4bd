#include "kube/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t hash_text(const char *text, uint64_t hash)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static const uint64_t hash_start = UINT64_C(14695981039346656037);

/* Letters and digits that cannot spell anything. */
static void write_letters(uint64_t hash, size_t n, char *ret_text)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    for (size_t i = 0; i < n; i++, hash /= sizeof(alphabet) - 1)
        ret_text[i] = alphabet[hash % (sizeof(alphabet) - 1)];
    ret_text[n] = '\0';
}

void kube_hash(const json_t *value, int64_t collisions, char ret_text[KUBE_HASH])
{
    char number[32];
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t hash = hash_text(text ? text : "", hash_start);
    free(text);
    snprintf(number, sizeof(number), "%" PRId64, collisions);
    write_letters(collisions ? hash_text(number, hash) : hash, KUBE_HASH - 1, ret_text);
}

void kube_suffix(const char *text, char ret_text[6])
{
    write_letters(hash_text(text, hash_start), 5, ret_text);
}
