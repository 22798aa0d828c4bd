#include "replio/record.h"

#include <gnutls/crypto.h>
#include <string.h>

#include "base/be.h"

enum {
    ALERT = 21,
    HANDSHAKE = 22,
    DATA = 23,
    KEY_UPDATE = 24,
    EXPANSION_MOST = 256,
    PIECES = 16, /* of a record, and its type */
    INFO_MOST = 32,
};

static const uint64_t UPDATE_AFTER = 1 << 24;
static const uint8_t IS_DATA = DATA, IS_HANDSHAKE = HANDSHAKE;

/* Keys. */

/* HKDF-Expand-Label() of section 7.1, without a context. */
static bool expand(const uint8_t *secret, const char *label, uint8_t *out, size_t n)
{
    uint8_t info[INFO_MOST];
    size_t length = strlen(label), at = 0;
    be_put16(info, (uint16_t)n);
    info[2] = (uint8_t)(6 + length);
    memcpy(info + 3, "tls13 ", 6);
    memcpy(info + 9, label, length);
    at = 9 + length;
    info[at++] = 0;
    const gnutls_datum_t key = {(void *)(uintptr_t)secret, REPLIO_SECRET},
                         about = {info, (unsigned)at};
    return gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &key, &about, out, n) >= 0;
}

static void key_done(struct replio_record_key *k)
{
    replio_aead_free(k->aead);
    explicit_bzero(k, sizeof(*k));
}

/* Key and initial vector of the secret (section 7.3); numbers begin anew. */
static int derive_key(struct replio_record_key *k, struct err *e)
{
    uint8_t key[REPLIO_AEAD_KEY_MOST];
    replio_aead_free(k->aead);
    k->aead = NULL;
    k->number = 0;
    if (expand(k->secret, "key", key, gnutls_cipher_get_key_size(k->algorithm)) &&
        expand(k->secret, "iv", k->iv, sizeof(k->iv)))
        k->aead = replio_aead_new(k->algorithm, key);
    explicit_bzero(key, sizeof(key));
    return k->aead ? 0 : err_set(e, ERR_INTERNAL, "TlsFailed", "TLS: no key can be derived");
}

static int next_key(struct replio_record_key *k, struct err *e)
{
    uint8_t next[REPLIO_SECRET];
    if (!expand(k->secret, "traffic upd", next, sizeof(next)))
        return err_set(e, ERR_INTERNAL, "TlsFailed", "TLS: no key can be derived");
    memcpy(k->secret, next, sizeof(next));
    explicit_bzero(next, sizeof(next));
    return derive_key(k, e);
}

static int key_init(struct replio_record_key *k, gnutls_cipher_algorithm_t algorithm,
                    const uint8_t *secret, struct err *e)
{
    k->algorithm = algorithm;
    memcpy(k->secret, secret, sizeof(k->secret));
    return derive_key(k, e);
}

static void take_nonce(struct replio_record_key *k, uint8_t nonce[REPLIO_NONCE])
{
    uint8_t number[8];
    be_put64(number, k->number++);
    memcpy(nonce, k->iv, REPLIO_NONCE);
    for (int i = 0; i < 8; i++)
        nonce[REPLIO_NONCE - 8 + i] ^= number[i];
}

/* Sending. */

int replio_sealer_init(struct replio_sealer *s, gnutls_cipher_algorithm_t algorithm,
                       const uint8_t *secret, struct io_queue *out, struct err *e)
{
    s->out = out;
    s->update_after = UPDATE_AFTER;
    return key_init(&s->key, algorithm, secret, e);
}

void replio_sealer_done(struct replio_sealer *s)
{
    io_buf_unref(s->buf);
    s->buf = NULL;
    key_done(&s->key);
}

/* Room for a record; again from the start of the buffer when all that was in it has left. */
static uint8_t *make_room(struct replio_sealer *s, uint32_t n)
{
    if (s->buf && s->buf->refs == 1)
        s->used = 0;
    if (s->buf && s->buf->size - s->used < n) {
        io_buf_unref(s->buf);
        s->buf = NULL;
    }
    if (!s->buf) {
        s->buf = io_buf_new(s->out->pool, IO_LARGE);
        s->used = 0;
    }
    return s->buf->data + s->used;
}

/* iov has room for one more, the type. */
static int seal_record(struct replio_sealer *s, const uint8_t *type, struct iovec *iov, unsigned n,
                       uint32_t length, struct err *e)
{
    uint32_t inside = length + 1 + REPLIO_TAG;
    uint8_t *to = make_room(s, REPLIO_RECORD_HEADER + inside), nonce[REPLIO_NONCE];
    to[0] = DATA;
    be_put16(to + 1, 0x0303);
    be_put16(to + 3, (uint16_t)inside);
    iov[n] = (struct iovec){(void *)(uintptr_t)type, 1};
    take_nonce(&s->key, nonce);
    if (!replio_aead_seal(s->key.aead, nonce, (struct iovec){to, REPLIO_RECORD_HEADER}, iov, n + 1,
                          to + REPLIO_RECORD_HEADER))
        return err_set(e, ERR_INTERNAL, "TlsFailed", "TLS: a record cannot be encrypted");
    io_queue_add(s->out, s->buf, to, REPLIO_RECORD_HEADER + inside);
    s->used += REPLIO_RECORD_HEADER + inside;
    return 0;
}

int replio_seal_update(struct replio_sealer *s, struct err *e)
{
    uint8_t message[] = {KEY_UPDATE, 0, 0, 1, 0};
    struct iovec iov[2] = {{message, sizeof(message)}};
    if (seal_record(s, &IS_HANDSHAKE, iov, 1, sizeof(message), e) < 0)
        return -1;
    return next_key(&s->key, e);
}

int replio_seal(struct replio_sealer *s, struct iovec head, const struct iovec *iov, unsigned n,
                struct err *e)
{
    struct iovec left = head;
    for (;;) {
        struct iovec record[PIECES + 1];
        unsigned pieces = 0;
        uint32_t length = 0;
        while (pieces < PIECES && length < REPLIO_RECORD_DATA) {
            if (!left.iov_len) {
                if (!n)
                    break;
                left = *iov++;
                n--;
                continue;
            }
            uint32_t room = REPLIO_RECORD_DATA - length,
                     take = left.iov_len < room ? (uint32_t)left.iov_len : room;
            record[pieces++] = (struct iovec){left.iov_base, take};
            left = (struct iovec){(uint8_t *)left.iov_base + take, left.iov_len - take};
            length += take;
        }
        if (!length)
            return 0;
        if ((s->key.number >= s->update_after && replio_seal_update(s, e) < 0) ||
            seal_record(s, &IS_DATA, record, pieces, length, e) < 0)
            return -1;
    }
}

/* Receiving. */

int replio_opener_init(struct replio_opener *o, gnutls_cipher_algorithm_t algorithm,
                       const uint8_t *secret, struct io_pool *pool, struct err *e)
{
    o->pool = pool;
    return key_init(&o->key, algorithm, secret, e);
}

void replio_opener_done(struct replio_opener *o)
{
    io_buf_unref(o->plain);
    io_buf_unref(o->partial);
    o->plain = o->partial = NULL;
    key_done(&o->key);
}

static uint8_t *make_plain(struct replio_opener *o, uint32_t n)
{
    if (o->plain && o->plain->refs == 1)
        o->used = 0;
    if (o->plain && o->plain->size - o->used < n) {
        io_buf_unref(o->plain);
        o->plain = NULL;
    }
    if (!o->plain) {
        o->plain = io_buf_new(o->pool, IO_LARGE);
        o->used = 0;
    }
    return o->plain->data + o->used;
}

/* A record's bytes with its header, or 0: that is not known yet. */
static int measure_record(const uint8_t *p, size_t n, uint32_t *ret_size, struct err *e)
{
    *ret_size = 0;
    if (n < REPLIO_RECORD_HEADER)
        return 0;
    uint32_t inside = be_get16(p + 3);
    if (p[0] != DATA || inside <= REPLIO_TAG || inside > REPLIO_RECORD_SIZE + EXPANSION_MOST)
        return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "TLS: a record is malformed");
    *ret_size = REPLIO_RECORD_HEADER + inside;
    return 0;
}

static int take_message(struct replio_opener *o, uint8_t type, const uint8_t *p, uint32_t n,
                        struct err *e)
{
    if (type == ALERT && n == 2)
        return err_set(e, ERR_UNAVAILABLE, "Closed", "the peer ended it (TLS alert %u)",
                       (unsigned)p[1]);
    if (type != HANDSHAKE || n != 5 || p[0] != KEY_UPDATE || be_get16(p + 1) != 0 || p[3] != 1 ||
        p[4] > 1)
        return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "TLS: a message is out of place");
    o->wants_update |= p[4] == 1;
    return next_key(&o->key, e);
}

static int open_record(struct replio_opener *o, const uint8_t *p, uint32_t size,
                       void (*plain)(void *context, struct io_slice *slice), void *context,
                       struct err *e)
{
    uint32_t n = size - REPLIO_RECORD_HEADER - REPLIO_TAG;
    uint8_t *to = make_plain(o, n), nonce[REPLIO_NONCE];
    take_nonce(&o->key, nonce);
    if (!replio_aead_open(o->key.aead, nonce,
                          (struct iovec){(void *)(uintptr_t)p, REPLIO_RECORD_HEADER},
                          p + REPLIO_RECORD_HEADER, size - REPLIO_RECORD_HEADER, to))
        return err_set(e, ERR_UNAUTHENTICATED, "TlsFailed",
                       "TLS: a record was changed on the way, or is not the peer's");
    while (n && to[n - 1] == 0) /* padding */
        n--;
    if (!n)
        return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "TLS: a record has no type");
    uint8_t type = to[--n];
    if (type != DATA)
        return take_message(o, type, to, n, e);
    struct io_slice slice = {o->plain, to, n};
    o->used += n;
    if (n)
        plain(context, &slice);
    return 0;
}

/* As much of a record as is known to belong to it: its header first, then the rest. */
static uint32_t keep_partial(struct replio_opener *o, const uint8_t *data, size_t n, uint32_t size)
{
    uint32_t want = (size ? size : REPLIO_RECORD_HEADER) - o->partial_used;
    want = n < want ? (uint32_t)n : want;
    if (!o->partial)
        o->partial = io_buf_new(o->pool, IO_LARGE);
    memcpy(o->partial->data + o->partial_used, data, want);
    o->partial_used += want;
    return want;
}

int replio_open(struct replio_opener *o, const uint8_t *data, size_t n,
                void (*plain)(void *context, struct io_slice *slice), void *context, struct err *e)
{
    while (n) {
        const uint8_t *from = o->partial ? o->partial->data : data;
        size_t have = o->partial ? o->partial_used : n;
        uint32_t size, taken;
        if (measure_record(from, have, &size, e) < 0)
            return -1;
        if (!o->partial && size && size <= n) {
            if (open_record(o, data, size, plain, context, e) < 0)
                return -1;
            taken = size;
        } else {
            taken = keep_partial(o, data, n, size);
            if (size && o->partial_used == size) {
                struct io_buf *whole = o->partial;
                o->partial = NULL;
                o->partial_used = 0;
                int status = open_record(o, whole->data, size, plain, context, e);
                io_buf_unref(whole);
                if (status < 0)
                    return -1;
            }
        }
        data += taken;
        n -= taken;
    }
    return 0;
}
