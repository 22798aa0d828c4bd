#include "store/manifest.h"

#include <string.h>

#include "base/crc.h"
#include "base/le.h"

enum { MAGIC = 0x6e68436f, VERSION = 2, SECTOR = 512 }; /* "oChn" */

static uint32_t sum(const uint8_t *p, size_t size)
{
    static const uint8_t none[4];
    return crc_32c_more(crc_32c_more(crc_32c(p, 4), none, 4), p + 8, size - 8);
}

size_t manifest_encode(const struct manifest *m, uint8_t out[MANIFEST_MAX])
{
    size_t size = MANIFEST_HEAD + (size_t)m->n * MANIFEST_ENTRY;
    memset(out, 0, size);
    le_put32(out, MAGIC);
    le_put32(out + 8, m->next);
    le_put32(out + 12, m->n);
    le_put64(out + 16, VERSION);
    le_put64(out + 24, m->revision);
    memcpy(out + 32, m->identity.bytes, sizeof(m->identity.bytes));
    for (uint32_t i = 0; i < m->n; i++) {
        uint8_t *p = out + MANIFEST_HEAD + (size_t)i * MANIFEST_ENTRY;
        le_put64(p, m->layer[i].number);
        le_put64(p + 8, m->layer[i].snapshot);
        le_put64(p + 16, m->layer[i].size);
        le_put64(p + 24, m->layer[i].merged);
    }
    le_put32(out + 4, sum(out, size));
    return size;
}

/* What a chain of ours can never be. */
static const char *unsound(const struct manifest *m)
{
    if (m->layer[0].number != 0 || m->layer[m->n - 1].snapshot != 0)
        return "its ends are not those of a chain";
    for (uint32_t i = 0; i < m->n; i++) {
        const struct manifest_layer *a = &m->layer[i];
        if (a->number >= m->next || a->size % SECTOR || a->size > INT64_MAX ||
            a->merged > INT64_MAX)
            return "a layer has an impossible number or size";
        for (uint32_t k = 0; k < i; k++)
            if (m->layer[k].number == a->number ||
                (a->snapshot && m->layer[k].snapshot == a->snapshot))
                return "two layers are the same";
    }
    return NULL;
}

int manifest_decode(const uint8_t *in, size_t size, struct manifest *ret_m, struct err *e)
{
    struct manifest m = {0};
    if (size < MANIFEST_HEAD + MANIFEST_ENTRY || size > MANIFEST_MAX || le_get32(in) != MAGIC ||
        le_get32(in + 4) != sum(in, size))
        return err_set(e, ERR_DATA_LOSS, "BadChain",
                       "the list of snapshots is damaged, or none of ours");
    if (le_get64(in + 16) != VERSION)
        return err_set(e, ERR_FAILED_PRECONDITION, "BadVersion",
                       "the list of snapshots is of version %llu, this program knows %d",
                       (unsigned long long)le_get64(in + 16), VERSION);
    m.next = le_get32(in + 8);
    m.n = le_get32(in + 12);
    m.revision = le_get64(in + 24);
    memcpy(m.identity.bytes, in + 32, sizeof(m.identity.bytes));
    if (!m.n || m.n > MANIFEST_LAYERS || size != MANIFEST_HEAD + (size_t)m.n * MANIFEST_ENTRY)
        return err_set(e, ERR_DATA_LOSS, "BadChain", "a list of %u snapshots in %zu bytes", m.n,
                       size);
    for (uint32_t i = 0; i < m.n; i++) {
        const uint8_t *p = in + MANIFEST_HEAD + (size_t)i * MANIFEST_ENTRY;
        uint64_t number = le_get64(p);
        m.layer[i] = (struct manifest_layer){
            .number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX,
            .snapshot = le_get64(p + 8),
            .size = le_get64(p + 16),
            .merged = le_get64(p + 24),
        };
    }
    const char *why = unsound(&m);
    if (why)
        return err_set(e, ERR_DATA_LOSS, "BadChain", "the list of snapshots makes no sense: %s",
                       why);
    *ret_m = m;
    return 0;
}
