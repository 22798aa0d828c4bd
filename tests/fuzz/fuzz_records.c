/*
 * Records of TLS between targets and replicas. The input says what is sent, in which pieces it arrives, and what an
 * attacker does to it. Whatever comes out is the beginning of what was sent, and all of it if nothing was changed.
 */
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "replio/record.h"

enum { WIRE = 1 << 17 };

static uint8_t wire[WIRE], data[40000];

static void take(void *context, struct io_slice *slice)
{
    str_append_n(context, slice->data, slice->length);
}

static size_t drain(struct io_queue *q)
{
    struct iovec iov;
    size_t n = 0;
    while (io_queue_peek(q, &iov, 1)) {
        CHECK(n + iov.iov_len <= sizeof(wire));
        memcpy(wire + n, iov.iov_base, iov.iov_len);
        n += iov.iov_len;
        io_queue_drop(q, iov.iov_len);
    }
    return n;
}

/* One message: how long, how it is cut, what is done to it. True: it was changed. */
static bool pass(struct replio_sealer *s, struct replio_opener *o, struct io_queue *q,
                 const uint8_t *p, struct str *sent, struct str *got, int *ret_status)
{
    size_t length = (size_t)(p[0] << 8 | p[1]) % sizeof(data), step = 1 + (size_t)p[2] * 97;
    struct err e = {0};
    if (p[3] == 1)
        CHECK(replio_seal_update(s, &e) == 0);
    CHECK(replio_seal(s, (struct iovec){data, length / 3},
                      &(struct iovec){data + length / 3, length - length / 3}, 1, &e) == 0);
    str_append_n(sent, data, length);
    size_t n = drain(q), at = 0;
    bool changed = n && p[3] > 200;
    if (changed)
        wire[(size_t)(p[4] << 8 | p[5]) % n] ^= (uint8_t)(1 << (p[3] & 7));
    *ret_status = 0;
    while (at < n && *ret_status == 0) {
        size_t part = step < n - at ? step : n - at;
        *ret_status = replio_open(o, wire + at, part, take, got, &e);
        at += part;
    }
    return changed;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const uint8_t secret[REPLIO_SECRET] = {1};
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    _cleanup_(str_done) struct str sent = {0}, got = {0};
    struct replio_sealer s = {0};
    struct replio_opener o = {0};
    struct io_queue q;
    struct err e = {0};
    bool changed = false;
    int status = 0;
    gnutls_cipher_algorithm_t cipher =
        n && p[0] & 1 ? GNUTLS_CIPHER_CHACHA20_POLY1305 : GNUTLS_CIPHER_AES_128_GCM;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    io_queue_init(&q, pool);
    CHECK(replio_sealer_init(&s, cipher, secret, &q, &e) == 0);
    CHECK(replio_opener_init(&o, cipher, secret, pool, &e) == 0);
    s.update_after = 5;
    for (size_t at = 1; at + 6 <= n && at < 200 && status == 0 && !changed; at += 6)
        changed = pass(&s, &o, &q, p + at, &sent, &got, &status);
    if (status == 0 && !changed && n) /* strangers' words end it, or are waited for */
        status = replio_open(&o, p, n, take, &got, &e);
    else
        CHECK(changed || status == 0);
    CHECK(got.len <= sent.len && (changed || got.len == sent.len));
    CHECK(!got.len || memcmp(got.p, sent.p, got.len) == 0);
    replio_sealer_done(&s);
    replio_opener_done(&o);
    io_queue_done(&q);
    return 0;
}
