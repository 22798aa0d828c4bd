#include "replio/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "replio/record.h"

enum { KEY_LEAST = 16, KEY_MOST = 4096, EARLY_MOST = 1 << 20, HANDSHAKE_MOST = 16384 };

/* Ciphers follow, in the order of their speed here; of those that both have the target's fastest is taken. */
static const char PRIORITY[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:+DHE-PSK:"
                               "%SERVER_PRECEDENCE:-CIPHER-ALL";
static const char USER[] = "orlop";

struct replio_key {
    struct str text, priority;
    gnutls_psk_server_credentials_t server;
    gnutls_psk_client_credentials_t client;
};

struct replio_tls {
    gnutls_session_t session; /* for the handshake; NULL: that is done */
    const struct replio_key *key;
    struct io_queue *out;
    const struct replio_tls_ops *ops;
    void *context;
    struct str early;  /* plain text that waits for the handshake */
    const uint8_t *in; /* what came of it; the caller's, during a call */
    uint32_t in_left;
    uint8_t read_secret[REPLIO_SECRET], write_secret[REPLIO_SECRET];
    struct replio_opener opener;
    struct replio_sealer sealer;
};

/* Keys. */

static int tell_key(gnutls_session_t session, const char *user, gnutls_datum_t *ret_key)
{
    const struct replio_tls *t = gnutls_session_get_ptr(session);
    if (!str_eq(user, USER))
        return -1;
    ret_key->size = (unsigned)t->key->text.len;
    ret_key->data = gnutls_malloc(ret_key->size);
    if (!ret_key->data)
        return -1;
    memcpy(ret_key->data, t->key->text.p, ret_key->size);
    return 0;
}

const char *replio_fastest_cipher(void)
{
    static _Thread_local char text[64];
    unsigned n;
    const struct replio_cipher *ciphers = replio_ciphers(&n);
    snprintf(text, sizeof(text), "%s by %s", n ? ciphers[0].name : "none",
             n ? ciphers[0].by : "none");
    return text;
}

static void order_ciphers(struct str *priority)
{
    unsigned n;
    const struct replio_cipher *ciphers = replio_ciphers(&n);
    str_append(priority, PRIORITY);
    for (unsigned i = 0; i < n; i++) /* one that has two implementations is named twice: no harm */
        str_appendf(priority, ":+%s", ciphers[i].name);
}

int replio_key_new(const void *text, size_t n, const char *where, struct replio_key **ret_key,
                   struct err *e)
{
    struct replio_key *key = NEW(struct replio_key);
    int status = 0;
    str_append_n(&key->text, text, n);
    key->text.len = strcspn(str_get(&key->text), "\r\n");
    if (key->text.len < KEY_LEAST)
        status = err_set(e, ERR_INVALID_ARGUMENT, "WeakKey",
                         "%s: the first line must be a key of %d characters or more: make one "
                         "with `head -c 32 /dev/urandom | base64`",
                         where, KEY_LEAST);
    const gnutls_datum_t datum = {(void *)key->text.p, (unsigned)key->text.len};
    if (status == 0 &&
        (gnutls_psk_allocate_server_credentials(&key->server) < 0 ||
         gnutls_psk_allocate_client_credentials(&key->client) < 0 ||
         gnutls_psk_set_client_credentials(key->client, USER, &datum, GNUTLS_PSK_KEY_RAW) < 0))
        status = err_set(e, ERR_INTERNAL, "NoKey", "%s: the key cannot be used", where);
    if (status < 0) {
        replio_key_free(key);
        return -1;
    }
    gnutls_psk_set_server_credentials_function(key->server, tell_key);
    order_ciphers(&key->priority);
    *ret_key = key;
    return 0;
}

int replio_key_read(const char *path, struct replio_key **ret_key, struct err *e)
{
    struct str text = {0};
    int status = file_read(path, KEY_MOST, &text, e);
    if (status == 0)
        status = replio_key_new(str_get(&text), text.len, path, ret_key, e);
    if (text.p)
        explicit_bzero(text.p, text.len);
    str_done(&text);
    return status;
}

void replio_key_free(struct replio_key *key)
{
    if (!key)
        return;
    if (key->server)
        gnutls_psk_free_server_credentials(key->server);
    if (key->client)
        gnutls_psk_free_client_credentials(key->client);
    if (key->text.p)
        explicit_bzero(key->text.p, key->text.len);
    str_done(&key->text);
    str_done(&key->priority);
    free(key);
}

/* What GnuTLS takes for a network. */

static ssize_t push(gnutls_transport_ptr_t context, const void *data, size_t n)
{
    struct replio_tls *t = context;
    io_queue_copy(t->out, data, n);
    return (ssize_t)n;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *data, size_t most)
{
    struct replio_tls *t = context;
    if (!t->in_left) {
        gnutls_transport_set_errno(t->session, EAGAIN);
        return -1;
    }
    uint32_t n = most < t->in_left ? (uint32_t)most : t->in_left;
    memcpy(data, t->in, n);
    t->in += n;
    t->in_left -= n;
    return (ssize_t)n;
}

static int never_wait(gnutls_transport_ptr_t context, unsigned ms)
{
    const struct replio_tls *t = context;
    (void)ms;
    return t->in_left != 0;
}

/* Each may come alone. */
static int keep_secrets(gnutls_session_t session, gnutls_record_encryption_level_t level,
                        const void *read, const void *write, size_t size)
{
    struct replio_tls *t = gnutls_session_get_ptr(session);
    if (level != GNUTLS_ENCRYPTION_LEVEL_APPLICATION)
        return 0;
    if (size != REPLIO_SECRET)
        return -1;
    if (read)
        memcpy(t->read_secret, read, size);
    if (write)
        memcpy(t->write_secret, write, size);
    return 0;
}

static int failed(int code, struct err *e)
{
    if (code == GNUTLS_E_DECRYPTION_FAILED || code == GNUTLS_E_FATAL_ALERT_RECEIVED ||
        code == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER || code == GNUTLS_E_INSUFFICIENT_CREDENTIALS)
        return err_set(e, ERR_UNAUTHENTICATED, "WrongKey",
                       "the other side does not know the volume's key, or has another");
    return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "TLS: %s", gnutls_strerror(code));
}

struct replio_tls *replio_tls_new(const struct replio_key *key, bool server, struct io_queue *out,
                                  const struct replio_tls_ops *ops, void *context, struct err *e)
{
    struct replio_tls *t = NEW(struct replio_tls);
    *t = (struct replio_tls){.key = key, .out = out, .ops = ops, .context = context};
    int code = gnutls_init(&t->session, (server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK |
                                            GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
    if (code >= 0)
        code = gnutls_priority_set_direct(t->session, str_get(&key->priority), NULL);
    if (code >= 0)
        code = gnutls_credentials_set(t->session, GNUTLS_CRD_PSK,
                                      server ? (void *)key->server : (void *)key->client);
    if (code < 0) {
        failed(code, e);
        replio_tls_free(t);
        return NULL;
    }
    gnutls_session_set_ptr(t->session, t);
    gnutls_handshake_set_max_packet_length(t->session, HANDSHAKE_MOST);
    gnutls_transport_set_ptr(t->session, t);
    gnutls_transport_set_push_function(t->session, push);
    gnutls_transport_set_pull_function(t->session, pull);
    gnutls_transport_set_pull_timeout_function(t->session, never_wait);
    gnutls_handshake_set_secret_function(t->session, keep_secrets);
    if (!server && replio_tls_received(t, NULL, 0, e) < 0) { /* the client speaks first */
        replio_tls_free(t);
        return NULL;
    }
    return t;
}

void replio_tls_free(struct replio_tls *t)
{
    if (!t)
        return;
    if (t->session)
        gnutls_deinit(t->session);
    replio_opener_done(&t->opener);
    replio_sealer_done(&t->sealer);
    str_done(&t->early);
    explicit_bzero(t, sizeof(*t));
    free(t);
}

bool replio_tls_ready(const struct replio_tls *t)
{
    return !t->session;
}

const char *replio_tls_cipher(const struct replio_tls *t)
{
    return t->session ? "" : gnutls_cipher_get_name(t->sealer.key.algorithm);
}

/* What GnuTLS was needed for is done: from here on records are made and read here. */
static int start_records(struct replio_tls *t, struct err *e)
{
    gnutls_cipher_algorithm_t cipher = gnutls_cipher_get(t->session);
    gnutls_deinit(t->session);
    t->session = NULL;
    if (replio_opener_init(&t->opener, cipher, t->read_secret, t->out->pool, e) < 0 ||
        replio_sealer_init(&t->sealer, cipher, t->write_secret, t->out, e) < 0)
        return -1;
    explicit_bzero(t->read_secret, sizeof(t->read_secret));
    explicit_bzero(t->write_secret, sizeof(t->write_secret));
    int status = replio_seal(&t->sealer, (struct iovec){t->early.p, t->early.len}, NULL, 0, e);
    str_done(&t->early);
    t->early = (struct str){0};
    if (status == 0)
        t->ops->ready(t->context);
    return status;
}

static int handshake(struct replio_tls *t, struct err *e)
{
    int code = gnutls_handshake(t->session);
    if (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED)
        return 0;
    return code < 0 ? failed(code, e) : start_records(t, e);
}

int replio_tls_received(struct replio_tls *t, const uint8_t *data, uint32_t n, struct err *e)
{
    t->in = data;
    t->in_left = n;
    if (t->session && handshake(t, e) < 0)
        return -1;
    if (t->session)
        return 0;
    if (replio_open(&t->opener, t->in, t->in_left, t->ops->plain, t->context, e) < 0)
        return -1;
    if (!t->opener.wants_update)
        return 0;
    t->opener.wants_update = false;
    return replio_seal_update(&t->sealer, e);
}

static int keep_early(struct replio_tls *t, struct iovec piece, struct err *e)
{
    if (t->early.len + piece.iov_len > EARLY_MOST)
        return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "the handshake takes too long");
    str_append_n(&t->early, piece.iov_base, piece.iov_len);
    return 0;
}

int replio_tls_send(struct replio_tls *t, struct iovec head, const struct iovec *iov, unsigned n,
                    struct err *e)
{
    if (!t->session)
        return replio_seal(&t->sealer, head, iov, n, e);
    int status = keep_early(t, head, e);
    for (unsigned i = 0; i < n && status == 0; i++)
        status = keep_early(t, iov[i], e);
    return status;
}
