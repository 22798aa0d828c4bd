/*
 * Quantities: canonical text reads back as the same number and is canonical itself; comparing and
 * adding agree.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quantity.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = mem_strndup((const char *)data, size);
    struct quantity q, again, sum;
    struct err e = {0};
    if (quantity_parse(text, &q, &e) < 0) {
        CHECK(e.code == ERR_INVALID_ARGUMENT || e.code == ERR_OUT_OF_RANGE);
        CHECK(e.msg[0]);
        return 0;
    }
    char canonical[QUANTITY_TEXT_MAX], twice[QUANTITY_TEXT_MAX];
    quantity_format(&q, canonical);
    CHECK(quantity_parse(canonical, &again, &e) == 0);
    CHECK(quantity_cmp(&q, &again) == 0);
    /* A binary quantity that needs no suffix is read back as a decimal one. */
    if (again.format == q.format)
        CHECK(strcmp(quantity_format(&again, twice), canonical) == 0);
    if (quantity_add(&q, &q, &sum, NULL) == 0) {
        CHECK(quantity_sub(&sum, &q, &again, NULL) == 0);
        CHECK(quantity_cmp(&again, &q) == 0);
        CHECK(quantity_cmp(&sum, &q) * quantity_sign(&q) >= 0);
    }
    uint64_t bytes;
    if (quantity_parse_bytes(text, &bytes, NULL) == 0)
        CHECK(quantity_is_whole(&q) && (uint64_t)quantity_to_int(&q) == bytes);
    return 0;
}
