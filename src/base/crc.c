#include "base/crc.h"

#include <isa-l/crc.h>
#include <isa-l/crc64.h>

uint32_t crc_32c_more(uint32_t crc, const void *data, size_t size)
{
    /* ISA-L counts in int, does not write through its pointer, and leaves both inversions to us. */
    unsigned char *p = (unsigned char *)data;
    enum { CHUNK = 1 << 30 };
    crc = ~crc;
    for (; size > CHUNK; p += CHUNK, size -= CHUNK)
        crc = crc32_iscsi(p, CHUNK, crc);
    return ~crc32_iscsi(p, (int)size, crc);
}

uint32_t crc_32c(const void *data, size_t size)
{
    return crc_32c_more(0, data, size);
}

uint64_t crc_64(const void *data, size_t size)
{
    return crc64_ecma_refl(0, data, size);
}
