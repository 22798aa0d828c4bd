#include "replio/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

enum { KEY_LEAST = 16, KEY_MOST = 4096, RECORD = 16384, EARLY_MOST = 1 << 20 };

static const char PRIORITY[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:+DHE-PSK";
static const char USER[] = "orlop";

struct replio_key {
    struct str text;
    gnutls_psk_server_credentials_t server;
    gnutls_psk_client_credentials_t client;
};

struct replio_tls {
    gnutls_session_t session;
    const struct replio_key *key;
    struct io_queue *out;
    const struct replio_tls_ops *ops;
    void *context;
    bool ready;
    struct str early;  /* plain text that waits for the handshake */
    const uint8_t *in; /* ciphertext that came; the caller's, during a call */
    uint32_t in_left;
    struct io_buf *plain; /* plain text goes here */
    uint32_t plain_used;
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

int replio_key_read(const char *path, struct replio_key **ret_key, struct err *e)
{
    struct replio_key *key = NEW(struct replio_key);
    int status = file_read(path, KEY_MOST, &key->text, e);
    if (status == 0) {
        key->text.len = strcspn(str_get(&key->text), "\r\n");
        if (key->text.len < KEY_LEAST)
            status = err_set(e, ERR_INVALID_ARGUMENT, "WeakKey",
                             "%s: the first line must be a key of %d characters or more: make one "
                             "with `head -c 32 /dev/urandom | base64`",
                             path, KEY_LEAST);
    }
    const gnutls_datum_t datum = {(void *)key->text.p, (unsigned)key->text.len};
    if (status == 0 &&
        (gnutls_psk_allocate_server_credentials(&key->server) < 0 ||
         gnutls_psk_allocate_client_credentials(&key->client) < 0 ||
         gnutls_psk_set_client_credentials(key->client, USER, &datum, GNUTLS_PSK_KEY_RAW) < 0))
        status = err_set(e, ERR_INTERNAL, "NoKey", "%s: the key cannot be used", path);
    if (status < 0) {
        replio_key_free(key);
        return -1;
    }
    gnutls_psk_set_server_credentials_function(key->server, tell_key);
    *ret_key = key;
    return 0;
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
        code = gnutls_priority_set_direct(t->session, PRIORITY, NULL);
    if (code >= 0)
        code = gnutls_credentials_set(t->session, GNUTLS_CRD_PSK,
                                      server ? (void *)key->server : (void *)key->client);
    if (code < 0) {
        failed(code, e);
        replio_tls_free(t);
        return NULL;
    }
    gnutls_session_set_ptr(t->session, t);
    gnutls_transport_set_ptr(t->session, t);
    gnutls_transport_set_push_function(t->session, push);
    gnutls_transport_set_pull_function(t->session, pull);
    gnutls_transport_set_pull_timeout_function(t->session, never_wait);
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
    io_buf_unref(t->plain);
    str_done(&t->early);
    free(t);
}

static int send_all(struct replio_tls *t, const void *data, size_t n, struct err *e)
{
    const uint8_t *p = data;
    while (n) {
        ssize_t sent = gnutls_record_send(t->session, p, n < RECORD ? n : RECORD);
        if (sent < 0)
            return failed((int)sent, e);
        p += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int handshake(struct replio_tls *t, struct err *e)
{
    int code = gnutls_handshake(t->session);
    if (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED)
        return 0;
    if (code < 0)
        return failed(code, e);
    t->ready = true;
    int status = send_all(t, t->early.p, t->early.len, e);
    str_done(&t->early);
    t->early = (struct str){0};
    return status;
}

/* Plain text as far as there is any; records are read into one large buffer after the other. */
static int read_plain(struct replio_tls *t, struct err *e)
{
    for (;;) {
        if (t->plain && (t->plain->size - t->plain_used < RECORD || t->plain->refs == 1)) {
            if (t->plain->refs > 1) {
                io_buf_unref(t->plain);
                t->plain = NULL;
            }
            t->plain_used = 0;
        }
        if (!t->plain) {
            t->plain = io_buf_new(t->out->pool, IO_LARGE);
            t->plain_used = 0;
        }
        ssize_t n = gnutls_record_recv(t->session, t->plain->data + t->plain_used,
                                       t->plain->size - t->plain_used);
        if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
            return 0;
        if (n == 0)
            return err_set(e, ERR_UNAVAILABLE, "Closed", "the peer ended it");
        if (n < 0)
            return failed((int)n, e);
        struct io_slice slice = {t->plain, t->plain->data + t->plain_used, (uint32_t)n};
        t->plain_used += (uint32_t)n;
        t->ops->plain(t->context, &slice);
    }
}

int replio_tls_received(struct replio_tls *t, const uint8_t *data, uint32_t n, struct err *e)
{
    t->in = data;
    t->in_left = n;
    int status = t->ready ? 0 : handshake(t, e);
    return status == 0 && t->ready ? read_plain(t, e) : status;
}

int replio_tls_send(struct replio_tls *t, const struct iovec *iov, unsigned n, struct err *e)
{
    for (unsigned i = 0; i < n; i++) {
        if (t->ready) {
            if (send_all(t, iov[i].iov_base, iov[i].iov_len, e) < 0)
                return -1;
        } else if (t->early.len + iov[i].iov_len > EARLY_MOST) {
            return err_set(e, ERR_UNAVAILABLE, "TlsFailed", "the handshake takes too long");
        } else {
            str_append_n(&t->early, iov[i].iov_base, iov[i].iov_len);
        }
    }
    return 0;
}
