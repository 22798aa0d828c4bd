#include "store/page.h"

#include "base/crc.h"
#include "base/le.h"

enum {
    AT_SEQUENCE = PAGE_ROOM,
    AT_CRC = PAGE_ROOM + 8,
    MAGIC = 0x70614d6f,
    VERSION = 1
}; /* "oMap" */

static uint32_t sum(const uint8_t *page, const struct page_place *place)
{
    uint8_t whose[28];
    memcpy(whose, place->identity.bytes, 16);
    le_put32(whose + 16, place->layer);
    le_put64(whose + 20, place->index);
    uint32_t crc = crc_32c_more(crc_32c(whose, sizeof(whose)), page, AT_CRC);
    return crc_32c_more(crc, page + AT_CRC + 4, PAGE_SIZE - AT_CRC - 4);
}

void page_seal(uint8_t page[PAGE_SIZE], const struct page_place *place, uint64_t sequence)
{
    memset(page + PAGE_ROOM, 0, PAGE_SIZE - PAGE_ROOM);
    le_put64(page + AT_SEQUENCE, sequence);
    le_put32(page + AT_CRC, sum(page, place));
}

int page_choose(const uint8_t pair[PAGE_PAIR], const struct page_place *place,
                uint64_t *ret_sequence, bool *ret_both)
{
    int best = -1;
    uint64_t sequence[2];
    *ret_both = true;
    for (int i = 0; i < 2; i++) {
        const uint8_t *page = pair + (size_t)i * PAGE_SIZE;
        sequence[i] = le_get64(page + AT_SEQUENCE);
        /* Sequences begin at 1: zeroes are no page, whatever their checksum. */
        bool whole = sequence[i] && le_get32(page + AT_CRC) == sum(page, place);
        if (whole && (best < 0 || sequence[i] > sequence[best]))
            best = i;
        *ret_both = *ret_both && whole;
    }
    *ret_both = *ret_both && sequence[0] == sequence[1];
    if (best >= 0)
        *ret_sequence = sequence[best];
    return best;
}

void page_header_put(uint8_t page[PAGE_SIZE], const struct page_header *h)
{
    memset(page, 0, PAGE_ROOM);
    le_put32(page, MAGIC);
    le_put32(page + 4, VERSION);
    le_put64(page + 8, h->version);
    le_put64(page + 16, h->written);
}

bool page_header_get(const uint8_t page[PAGE_SIZE], struct page_header *ret_h)
{
    *ret_h = (struct page_header){le_get64(page + 8), le_get64(page + 16)};
    return le_get32(page) == MAGIC && le_get32(page + 4) == VERSION;
}
