#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "replio/record.h"
#include "replio/tls.h"
#include "unit.h"

static const char KEY[] = "0123456789abcdef0123456789abcdef";

static struct replio_key *make_key(const char *text)
{
    char path[] = "/tmp/orlop-test-key-XXXXXX";
    struct replio_key *key = NULL;
    struct err e = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(replio_key_read(path, &key, &e), 0);
    unlink(path);
    return key;
}

/* One side: what it has to send, and what it was sent. */
struct side {
    struct replio_tls *tls;
    struct io_queue out;
    struct str got;
    int ready;
};

static void take_plain(void *context, struct io_slice *slice)
{
    struct side *s = context;
    str_append_n(&s->got, slice->data, slice->length);
}

static void count_ready(void *context)
{
    struct side *s = context;
    s->ready++;
    assert_int_equal(s->got.len, 0);
}

static const struct replio_tls_ops ops = {.ready = count_ready, .plain = take_plain};

static void side_init(struct side *s, struct io_pool *pool, const struct replio_key *key,
                      bool server)
{
    struct err e = {0};
    *s = (struct side){0};
    io_queue_init(&s->out, pool);
    s->tls = replio_tls_new(key, server, &s->out, &ops, s, &e);
    assert_non_null(s->tls);
}

static void side_done(struct side *s)
{
    replio_tls_free(s->tls);
    io_queue_done(&s->out);
    str_done(&s->got);
}

/* Bytes that wait to be sent, at most so many; how many. */
static size_t take_bytes(struct io_queue *q, uint8_t *to, size_t most)
{
    struct iovec iov;
    size_t n = 0;
    while (n < most && io_queue_peek(q, &iov, 1)) {
        size_t part = iov.iov_len < most - n ? iov.iov_len : most - n;
        memcpy(to + n, iov.iov_base, part);
        io_queue_drop(q, part);
        n += part;
    }
    return n;
}

/* Carries all that waits, in pieces of up to `most` bytes. */
static int carry(struct side *from, struct side *to, size_t most, struct err *e)
{
    uint8_t bytes[70000];
    for (size_t n; (n = take_bytes(&from->out, bytes, most)) > 0;) {
        if (replio_tls_received(to->tls, bytes, (uint32_t)n, e) < 0)
            return -1;
    }
    return 0;
}

static void shake_hands(struct side *a, struct side *b)
{
    struct err e = {0};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(carry(a, b, 70000, &e), 0);
        assert_int_equal(carry(b, a, 70000, &e), 0);
    }
    assert_true(replio_tls_ready(a->tls) && replio_tls_ready(b->tls));
    assert_int_equal(a->ready, 1);
    assert_int_equal(b->ready, 1);
}

static int send_text(struct side *s, const void *text, size_t n)
{
    struct err e = {0};
    return replio_tls_send(s->tls, (struct iovec){(void *)(uintptr_t)text, n}, NULL, 0, &e);
}

static void test_the_measured_fastest_cipher_is_used(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct replio_key *key = make_key(KEY);
    struct side client, server;
    side_init(&server, pool, key, true);
    side_init(&client, pool, key, false);
    shake_hands(&client, &server);
    unsigned n;
    const struct replio_cipher *ciphers = replio_ciphers(&n);
    assert_true(n >= 2);
    for (unsigned i = 0; i < n; i++) {
        printf("# %s by %s: %lld us for 256 KiB\n", ciphers[i].name, ciphers[i].by,
               (long long)ciphers[i].ns / 1000);
        assert_true(i == 0 || ciphers[i - 1].ns <= ciphers[i].ns);
    }
    assert_string_equal(replio_tls_cipher(client.tls), ciphers[0].name);
    assert_string_equal(replio_tls_cipher(server.tls), ciphers[0].name);
    side_done(&client);
    side_done(&server);
    replio_key_free(key);
}

/* What comes out is what went in, whatever the pieces on either side; also what was sent before the handshake. */
static void test_data_in_any_pieces(void **state)
{
    (void)state;
    enum { MOST = 200000 };
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    _cleanup_free_ uint8_t *data = malloc(MOST);
    struct replio_key *key = make_key(KEY);
    struct side client, server;
    struct err e = {0};
    side_init(&server, pool, key, true);
    side_init(&client, pool, key, false);
    assert_int_equal(send_text(&client, "early", 5), 0);
    shake_hands(&client, &server);
    assert_string_equal(str_get(&server.got), "early");
    srand(7);
    for (size_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)rand();
    for (int round = 0; round < 60; round++) {
        struct side *from = round % 2 ? &client : &server, *to = round % 2 ? &server : &client;
        struct iovec pieces[40];
        size_t total = (size_t)rand() % MOST, at = 64 < total ? 64 : total, head = at;
        unsigned n = 0;
        for (; at < total && n < ARRAY_SIZE(pieces); n++) {
            size_t length = (size_t)rand() % (n % 3 ? 20000 : 3);
            length = length < total - at ? length : total - at;
            pieces[n] = (struct iovec){data + at, length};
            at += length;
        }
        to->got.len = 0;
        assert_int_equal(replio_tls_send(from->tls, (struct iovec){data, head}, pieces, n, &e), 0);
        assert_int_equal(carry(from, to, 1 + (size_t)rand() % 60000, &e), 0);
        assert_int_equal(to->got.len, at);
        assert_memory_equal(to->got.len ? to->got.p : "", data, at);
    }
    side_done(&client);
    side_done(&server);
    replio_key_free(key);
}

static void test_a_side_with_another_key_is_refused(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct replio_key *key = make_key(KEY), *other = make_key("another key of some length");
    struct side client, server;
    struct err e = {0};
    side_init(&server, pool, key, true);
    side_init(&client, pool, other, false);
    assert_int_equal(carry(&client, &server, 70000, &e), -1);
    assert_string_equal(e.reason, "WrongKey");
    assert_false(replio_tls_ready(server.tls));
    assert_int_equal(server.ready, 0);
    side_done(&client);
    side_done(&server);
    replio_key_free(key);
    replio_key_free(other);
}

/* Each way to disturb a stream of records ends it, and nothing of the record is given up. */
static void test_changed_records_are_refused(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct replio_key *key = make_key(KEY);
    enum { FLIP_LENGTH, FLIP_DATA, FLIP_TAG, TWICE, LEFT_OUT, CLEAR, WAYS };
    for (int way = 0; way < WAYS; way++) {
        struct side client, server;
        struct err e = {0};
        uint8_t bytes[4096];
        side_init(&server, pool, key, true);
        side_init(&client, pool, key, false);
        shake_hands(&client, &server);
        send_text(&client, "first", 5);
        size_t n = take_bytes(&client.out, bytes, sizeof(bytes));
        if (way == TWICE)
            assert_int_equal(replio_tls_received(server.tls, bytes, (uint32_t)n, &e), 0);
        if (way == LEFT_OUT) {
            send_text(&client, "second", 6);
            n = take_bytes(&client.out, bytes, sizeof(bytes));
        }
        if (way == FLIP_LENGTH)
            bytes[4]--;
        if (way == FLIP_DATA)
            bytes[6] ^= 1;
        if (way == FLIP_TAG)
            bytes[n - 1] ^= 0x80;
        if (way == CLEAR)
            bytes[0] = 22;
        server.got.len = 0;
        assert_int_equal(replio_tls_received(server.tls, bytes, (uint32_t)n, &e), -1);
        assert_int_equal(server.got.len, 0);
        side_done(&client);
        side_done(&server);
    }
    replio_key_free(key);
}

/* A peer that is GnuTLS alone. */

struct peer {
    gnutls_session_t session;
    struct side *ours;
};

static ssize_t push(gnutls_transport_ptr_t context, const void *data, size_t n)
{
    struct peer *p = context;
    struct err e = {0};
    return replio_tls_received(p->ours->tls, data, (uint32_t)n, &e) < 0 ? -1 : (ssize_t)n;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *data, size_t most)
{
    struct peer *p = context;
    size_t n = take_bytes(&p->ours->out, data, most);
    if (n)
        return (ssize_t)n;
    gnutls_transport_set_errno(p->session, EAGAIN);
    return -1;
}

static int can_pull(gnutls_transport_ptr_t context, unsigned ms)
{
    const struct peer *p = context;
    (void)ms;
    return p->ours->out.bytes != 0;
}

static int tell_key(gnutls_session_t session, const char *user, gnutls_datum_t *ret_key)
{
    (void)session;
    (void)user;
    ret_key->size = sizeof(KEY) - 1;
    ret_key->data = gnutls_malloc(ret_key->size);
    memcpy(ret_key->data, KEY, ret_key->size);
    return 0;
}

static void expect(struct peer *p, const char *text)
{
    char got[100] = "";
    assert_int_equal(send_text(p->ours, text, strlen(text)), 0);
    ssize_t n = GNUTLS_E_AGAIN;
    for (int i = 0; i < 3 && n == GNUTLS_E_AGAIN; i++) /* so it says after a change of keys */
        n = gnutls_record_recv(p->session, got, sizeof(got));
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
    p->ours->got.len = 0;
    assert_int_equal(gnutls_record_send(p->session, text, strlen(text)), strlen(text));
    assert_string_equal(str_get(&p->ours->got), text);
}

static void test_records_are_those_of_gnutls(void **state)
{
    (void)state;
    static const char *const names[] = {"AES-128-GCM", "CHACHA20-POLY1305"};
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    struct replio_key *key = make_key(KEY);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct side client;
        struct peer p = {.ours = &client};
        gnutls_psk_server_credentials_t credentials;
        _cleanup_free_ char *priority = mem_printf(
            "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:-CIPHER-ALL:+%s", names[i]);
        gnutls_psk_allocate_server_credentials(&credentials);
        gnutls_psk_set_server_credentials_function(credentials, tell_key);
        gnutls_init(&p.session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_TICKETS);
        assert_int_equal(gnutls_priority_set_direct(p.session, priority, NULL), 0);
        gnutls_credentials_set(p.session, GNUTLS_CRD_PSK, credentials);
        gnutls_transport_set_ptr(p.session, &p);
        gnutls_transport_set_push_function(p.session, push);
        gnutls_transport_set_pull_function(p.session, pull);
        gnutls_transport_set_pull_timeout_function(p.session, can_pull);
        side_init(&client, pool, key, false);
        int code = GNUTLS_E_AGAIN;
        for (int n = 0; n < 10 && code == GNUTLS_E_AGAIN; n++)
            code = gnutls_handshake(p.session);
        assert_int_equal(code, 0);
        assert_true(replio_tls_ready(client.tls));
        assert_string_equal(replio_tls_cipher(client.tls), names[i]);
        assert_true(gnutls_group_get(p.session) != GNUTLS_GROUP_INVALID); /* not the key alone */
        expect(&p, "hello");
        /* Keys change: the peer's, and on its demand ours. */
        assert_int_equal(gnutls_session_key_update(p.session, GNUTLS_KU_PEER), 0);
        expect(&p, "under the next keys");
        assert_int_equal(gnutls_session_key_update(p.session, 0), 0);
        expect(&p, "and its next");
        gnutls_deinit(p.session);
        gnutls_psk_free_server_credentials(credentials);
        side_done(&client);
    }
    replio_key_free(key);
}

/* What one implementation seals, another of the same cipher opens, whatever the pieces. */
static void test_implementations_agree(void **state)
{
    (void)state;
    enum { MOST = 20000 };
    static const uint8_t key[REPLIO_AEAD_KEY_MOST] = {5}, nonce[REPLIO_NONCE] = {6};
    static uint8_t data[MOST], sealed[MOST + REPLIO_TAG], opened[MOST];
    struct iovec aad = {(char[]){"header"}, 5};
    unsigned n;
    const struct replio_cipher *ciphers = replio_ciphers(&n);
    srand(11);
    for (size_t i = 0; i < MOST; i++)
        data[i] = (uint8_t)rand();
    for (unsigned i = 0; i < n * n; i++) {
        const struct replio_cipher *from = &ciphers[i / n], *to = &ciphers[i % n];
        if (from->algorithm != to->algorithm)
            continue;
        struct replio_aead *a = replio_aead_by(from, key), *b = replio_aead_by(to, key);
        for (int round = 0; round < 50; round++) {
            struct iovec iov[5];
            size_t total = 0;
            for (size_t k = 0; k < ARRAY_SIZE(iov); k++) {
                iov[k] = (struct iovec){data + total, (size_t)rand() % (k % 2 ? 4000 : 70)};
                total += iov[k].iov_len;
            }
            assert_true(replio_aead_seal(a, nonce, aad, iov, ARRAY_SIZE(iov), sealed));
            assert_true(replio_aead_open(b, nonce, aad, sealed, total + REPLIO_TAG, opened));
            assert_memory_equal(opened, data, total);
            sealed[(size_t)rand() % (total + REPLIO_TAG)] ^= 1;
            assert_false(replio_aead_open(b, nonce, aad, sealed, total + REPLIO_TAG, opened));
        }
        replio_aead_free(a);
        replio_aead_free(b);
    }
}

/* A sender changes its key by itself, in time. */
static void test_keys_change_after_many_records(void **state)
{
    (void)state;
    _cleanup_(io_pool_freep) struct io_pool *pool = io_pool_new();
    static const uint8_t secret[REPLIO_SECRET] = {1, 2, 3};
    struct replio_sealer sealer = {0};
    struct replio_opener opener = {0};
    struct side side = {0};
    struct err e = {0};
    uint8_t bytes[4096];
    io_queue_init(&side.out, pool);
    assert_int_equal(replio_sealer_init(&sealer, GNUTLS_CIPHER_AES_128_GCM, secret, &side.out, &e),
                     0);
    assert_int_equal(replio_opener_init(&opener, GNUTLS_CIPHER_AES_128_GCM, secret, pool, &e), 0);
    assert_true(sealer.update_after <= 1 << 24); /* RFC 8446, 5.5: 2^24.5 */
    sealer.update_after = 3;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(replio_seal(&sealer, (struct iovec){(char[]){"x"}, 1}, NULL, 0, &e), 0);
        size_t n = take_bytes(&side.out, bytes, sizeof(bytes));
        assert_int_equal(replio_open(&opener, bytes, n, take_plain, &side, &e), 0);
        assert_true(sealer.key.number <= 3);
    }
    assert_string_equal(str_get(&side.got), "xxxxxxxxxx");
    assert_memory_not_equal(sealer.key.secret, secret, sizeof(secret));
    replio_sealer_done(&sealer);
    replio_opener_done(&opener);
    io_queue_done(&side.out);
    str_done(&side.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_measured_fastest_cipher_is_used),
        cmocka_unit_test(test_data_in_any_pieces),
        cmocka_unit_test(test_a_side_with_another_key_is_refused),
        cmocka_unit_test(test_changed_records_are_refused),
        cmocka_unit_test(test_records_are_those_of_gnutls),
        cmocka_unit_test(test_implementations_agree),
        cmocka_unit_test(test_keys_change_after_many_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
