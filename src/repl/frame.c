#include "repl/frame.h"

#include "base/crc.h"
#include "base/le.h"
#include "base/mem.h"

static const uint8_t magic[4] = {'O', 'r', 'R', 'p'};

struct rule {
    const char *name;
    uint16_t flags;   /* that may be set */
    bool exact;       /* the payload is as long as count */
    bool range;       /* offset and count are a range of bytes */
    uint32_t payload; /* at most */
    uint64_t count;   /* at most */
};

static const struct rule rules[REPL_TYPES] = {
    [REPL_HELLO] = {"HELLO", .flags = REPL_BLANK | REPL_INTACT | REPL_LOST,
                    .payload = REPL_SUPER_SIZE},
    [REPL_PROMISE] = {"PROMISE"},
    [REPL_PROMISED] = {"PROMISED", .flags = REPL_BLANK | REPL_INTACT | REPL_LOST,
                       .payload = REPL_SUPER_SIZE},
    [REPL_REFUSE] = {"REFUSE"},
    [REPL_JOIN] = {"JOIN"},
    [REPL_DONE] = {"DONE", .payload = REPL_SUPER_SIZE},
    [REPL_DONE_OK] = {"DONE_OK"},
    [REPL_VIEW] = {"VIEW", .payload = REPL_SUPER_SIZE},
    [REPL_VIEW_OK] = {"VIEW_OK", .flags = REPL_FAILED},
    [REPL_WRITE] = {"WRITE", .flags = REPL_FUA, .exact = true, .range = true,
                    .payload = REPL_MAX_DATA, .count = REPL_MAX_DATA},
    [REPL_ZERO] = {"ZERO", .flags = REPL_FUA | REPL_UNMAP, .range = true, .count = REPL_MAX_ZERO},
    [REPL_ACK] = {"ACK"},
    [REPL_FLUSH] = {"FLUSH", .flags = REPL_MARK},
    [REPL_READ] = {"READ", .range = true, .payload = 8, .count = REPL_MAX_DATA},
    [REPL_READ_OK] = {"READ_OK", .flags = REPL_FAILED, .range = true, .payload = REPL_MAX_DATA,
                      .count = REPL_MAX_DATA},
    [REPL_MAP] = {"MAP", .count = REPL_PAGE_ENTRIES},
    [REPL_MAP_OK] = {"MAP_OK", .payload = REPL_PAGE_ENTRIES * 8, .count = REPL_PAGE_ENTRIES},
    [REPL_SUMS] = {"SUMS", .range = true, .payload = 8, .count = REPL_PIECE},
    [REPL_SUMS_OK] = {"SUMS_OK", .flags = REPL_FAILED | REPL_VOUCHED, .range = true,
                      .payload = REPL_PIECE / REPL_SECTOR * 8, .count = REPL_PIECE},
    [REPL_BEGIN] = {"BEGIN", .flags = REPL_PIECES - 1, .range = true, .count = REPL_PIECE},
    [REPL_DATA] = {"DATA", .flags = REPL_PIECES - 1, .exact = true, .range = true,
                   .payload = REPL_PIECE, .count = REPL_PIECE},
    [REPL_SNAP] = {"SNAP"},
    [REPL_SNAP_DROP] = {"SNAP_DROP"},
    [REPL_SNAP_OK] = {"SNAP_OK", .flags = REPL_FAILED},
    [REPL_PREPARE] = {"PREPARE"},
    [REPL_PREPARE_OK] = {"PREPARE_OK", .flags = REPL_FAILED},
    [REPL_PING] = {"PING"},
    [REPL_PONG] = {"PONG"},
    [REPL_BYE] = {"BYE"},
    [REPL_REVERT] = {"REVERT", .flags = REPL_FUA},
};

const char *repl_type_name(uint8_t type)
{
    return type < REPL_TYPES && rules[type].name ? rules[type].name : "?";
}

void repl_frame_encode(const struct repl_msg *m, uint8_t h[REPL_HEADER])
{
    memcpy(h, magic, 4);
    h[4] = REPL_FRAME_VERSION;
    h[5] = m->type;
    le_put16(h + 6, m->flags);
    le_put32(h + 8, 0);
    le_put32(h + 12, m->data_crc);
    memcpy(h + 16, m->volume.bytes, 16);
    le_put32(h + 32, m->epoch);
    le_put32(h + 36, m->length);
    le_put64(h + 40, m->seq);
    le_put64(h + 48, m->offset);
    le_put64(h + 56, m->count);
    le_put32(h + 8, crc_32c(h, REPL_HEADER));
}

static int bad(struct err *e, const struct repl_msg *m, const char *what)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "BadFrame", "%s frame: %s", repl_type_name(m->type),
                   what);
}

static int check(const struct repl_msg *m, struct err *e)
{
    if (m->type >= REPL_TYPES || !rules[m->type].name)
        return bad(e, m, "unknown type; the other side is of another version or not Orlop");
    const struct rule *r = &rules[m->type];
    if (m->epoch > REPL_EPOCH_LAST)
        return bad(e, m, "an epoch that cannot be");
    if (m->flags & ~r->flags)
        return bad(e, m, "unknown flags");
    if (m->length > r->payload)
        return bad(e, m, "the payload is longer than its type allows");
    if (r->count && m->count > r->count)
        return bad(e, m, "the range is longer than its type allows");
    if (r->range &&
        ((m->offset | m->count) % REPL_SECTOR || !m->count || m->offset > INT64_MAX - m->count))
        return bad(e, m, "the range is empty, too high, or not made of sectors");
    if (r->exact && m->length != m->count)
        return bad(e, m, "the payload is not as long as its range");
    return 0;
}

int repl_frame_decode(const uint8_t h[REPL_HEADER], const struct uuid *volume,
                      struct repl_msg *ret_m, struct err *e)
{
    struct repl_msg m = {.type = h[5],
                         .flags = le_get16(h + 6),
                         .epoch = le_get32(h + 32),
                         .length = le_get32(h + 36),
                         .data_crc = le_get32(h + 12),
                         .seq = le_get64(h + 40),
                         .offset = le_get64(h + 48),
                         .count = le_get64(h + 56)};
    memcpy(m.volume.bytes, h + 16, 16);
    if (memcmp(h, magic, 4) != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadFrame", "no frame of ours begins here");
    if (h[4] != REPL_FRAME_VERSION)
        return err_set(e, ERR_FAILED_PRECONDITION, "BadVersion",
                       "the other side speaks version %d of the protocol, this one %d", h[4],
                       REPL_FRAME_VERSION);
    static const uint8_t none[4];
    uint32_t crc = crc_32c_more(crc_32c_more(crc_32c(h, 8), none, 4), h + 12, REPL_HEADER - 12);
    if (crc != le_get32(h + 8))
        return bad(e, &m, "the header's checksum is wrong");
    if (!uuid_eq(&m.volume, volume))
        return err_set(e, ERR_FAILED_PRECONDITION, "OtherVolume",
                       "the other side is of another volume; check addresses and keys");
    if (check(&m, e) < 0)
        return -1;
    *ret_m = m;
    return 0;
}

uint32_t repl_iov_crc(const struct iovec *iov, int n)
{
    uint32_t crc = 0;
    for (int i = 0; i < n; i++)
        crc = crc_32c_more(crc, iov[i].iov_base, iov[i].iov_len);
    return crc;
}

int repl_iov_cut(const struct iovec *iov, int iov_n, size_t skip, size_t n, struct iovec *out,
                 int most)
{
    int count = 0;
    for (int i = 0; i < iov_n && n && count < most; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        size_t part = iov[i].iov_len - skip < n ? iov[i].iov_len - skip : n;
        out[count++] = (struct iovec){(uint8_t *)iov[i].iov_base + skip, part};
        skip = 0;
        n -= part;
    }
    return count;
}

void repl_iov_copy(const struct iovec *to, int to_n, const struct iovec *from, int from_n,
                   size_t skip, size_t n)
{
    size_t at = 0; /* in to[0] */
    for (struct iovec part; n && repl_iov_cut(from, from_n, skip, n, &part, 1); n -= part.iov_len) {
        while (to_n && at == to->iov_len) {
            to++;
            to_n--;
            at = 0;
        }
        if (!to_n)
            return;
        size_t room = to->iov_len - at;
        part.iov_len = part.iov_len < room ? part.iov_len : room;
        memcpy((uint8_t *)to->iov_base + at, part.iov_base, part.iov_len);
        at += part.iov_len;
        skip += part.iov_len;
    }
}

uint64_t repl_sum(const void *data, size_t size)
{
    return crc_64(data, size);
}
