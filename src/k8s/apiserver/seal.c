#include "k8s/apiserver/seal.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/vec.h"

enum {
    MARK = 1,
    ID = 4,
    NONCE = 12,
    TAG = 16,
    HEADER = 1 + ID + NONCE,
    KEY = 32,
    FILE_MAX = 64 << 10,
};

struct key {
    unsigned char id[ID];
    gnutls_aead_cipher_hd_t cipher; /* thread-safe for these calls */
};

struct apiserver_keys {
    VEC(struct key) list;
};

static int crypto_failed(struct err *e, const char *what, int code)
{
    return err_set(e, ERR_INTERNAL, "EncryptionFailed", "%s: %s", what, gnutls_strerror(code));
}

static void wipe(void *p, size_t n)
{
    explicit_bzero(p, n);
}

static int add_key(struct apiserver_keys *k, unsigned char bytes[KEY], struct err *e)
{
    unsigned char digest[32];
    struct key key;
    gnutls_datum_t datum = {bytes, KEY};
    int code = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, KEY, digest);
    if (code == 0)
        code = gnutls_aead_cipher_init(&key.cipher, GNUTLS_CIPHER_AES_256_GCM, &datum);
    if (code < 0)
        return crypto_failed(e, "cannot use an encryption key", code);
    memcpy(key.id, digest, ID);
    vec_push(&k->list, key);
    return 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_key(const char *line, size_t n, unsigned char ret_bytes[KEY])
{
    if (n != 2 * (size_t)KEY)
        return false;
    for (size_t i = 0; i < KEY; i++) {
        int high = hex_value(line[2 * i]), low = hex_value(line[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static int parse_keys(struct apiserver_keys *k, const char *path, const char *text, struct err *e)
{
    unsigned number = 0;
    while (*text) {
        size_t n = strcspn(text, "\n"), used = n;
        const char *line = text;
        text += n + (text[n] == '\n');
        number++;
        while (used && (line[used - 1] == ' ' || line[used - 1] == '\r'))
            used--;
        if (!used || *line == '#')
            continue;
        unsigned char bytes[KEY];
        if (!parse_key(line, used, bytes))
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidKeyFile",
                           "%s, line %u: this is no key; write %d hexadecimal digits", path, number,
                           2 * KEY);
        int status = add_key(k, bytes, e);
        wipe(bytes, sizeof(bytes));
        if (status < 0)
            return -1;
    }
    if (k->list.len)
        return 0;
    return err_set(e, ERR_INVALID_ARGUMENT, "InvalidKeyFile",
                   "%s has no key in it: put the right file back, or remove it if nothing is "
                   "encrypted yet",
                   path);
}

int apiserver_keys_load(const char *path, struct apiserver_keys **ret_keys, struct err *e)
{
    _cleanup_(apiserver_keys_freep) struct apiserver_keys *k = NEW(struct apiserver_keys);
    struct stat st;
    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return err_errno(e, errno, "%s", path);
        *ret_keys = TAKE_PTR(k);
        return 0;
    }
    if (st.st_mode & 077)
        return err_set(
            e, ERR_FAILED_PRECONDITION, "KeyFileMode",
            "%s can be read by others (mode %03o): it must be the server's alone, so run "
            "chmod 600, and think about a new key",
            path, (unsigned)st.st_mode & 0777U);
    struct str text = {0};
    int status = file_read(path, FILE_MAX, &text, e);
    if (status == 0)
        status = parse_keys(k, path, str_get(&text), e);
    if (text.p)
        wipe(text.p, text.len);
    str_done(&text);
    if (status == 0)
        *ret_keys = TAKE_PTR(k);
    return status;
}

int apiserver_keys_create(const char *path, struct apiserver_keys **ret_keys, struct err *e)
{
    static const char comment[] = "# With the first of these keys Secrets are encrypted; all of "
                                  "them decrypt. Keep a copy of\n"
                                  "# this file apart from the backups: without it they are lost.\n";
    unsigned char bytes[KEY];
    char line[2 * KEY + 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort();
    for (size_t i = 0; i < KEY; i++)
        snprintf(line + 2 * i, 3, "%02x", bytes[i]);
    line[sizeof(line) - 2] = '\n';
    line[sizeof(line) - 1] = '\0';
    struct str text = {0};
    str_append(&text, comment);
    str_append(&text, line);
    int status = file_replace(path, text.p, text.len, 0600, e);
    wipe(bytes, sizeof(bytes));
    wipe(line, sizeof(line));
    wipe(text.p, text.len);
    str_done(&text);
    return status < 0 ? -1 : apiserver_keys_load(path, ret_keys, e);
}

void apiserver_keys_free(struct apiserver_keys *k)
{
    if (!k)
        return;
    vec_for_each(&k->list, key)
        gnutls_aead_cipher_deinit(key->cipher);
    vec_done(&k->list);
    free(k);
}

size_t apiserver_keys_count(const struct apiserver_keys *k)
{
    return k->list.len;
}

bool apiserver_is_sealed(const void *bytes, size_t size)
{
    return size >= HEADER + TAG && *(const unsigned char *)bytes == MARK;
}

bool apiserver_is_current(const struct apiserver_keys *k, const void *bytes, size_t size)
{
    return apiserver_is_sealed(bytes, size) && k->list.len &&
           memcmp((const char *)bytes + 1, k->list.p[0].id, ID) == 0;
}

size_t apiserver_seal_overhead(void)
{
    return HEADER + TAG;
}

int apiserver_seal(const struct apiserver_keys *k, const struct str *as, const void *bytes,
                   size_t size, struct str *out, struct err *e)
{
    unsigned char header[HEADER] = {MARK};
    if (!k->list.len)
        return err_set(e, ERR_INTERNAL, "EncryptionFailed", "there is no key to encrypt with");
    const struct key *key = &k->list.p[0];
    memcpy(header + 1, key->id, ID);
    if (getrandom(header + 1 + ID, NONCE, 0) != NONCE)
        abort();
    _cleanup_free_ char *sealed = mem_alloc(size + TAG);
    size_t n = size + TAG;
    int code = gnutls_aead_cipher_encrypt(key->cipher, header + 1 + ID, NONCE, as->p, as->len, TAG,
                                          bytes, size, sealed, &n);
    if (code < 0)
        return crypto_failed(e, "cannot encrypt", code);
    str_clear(out);
    str_append_n(out, header, sizeof(header));
    str_append_n(out, sealed, n);
    return 0;
}

int apiserver_unseal(const struct apiserver_keys *k, const struct str *as, const void *bytes,
                     size_t size, char *out, struct err *e)
{
    const unsigned char *sealed = bytes;
    const struct key *key = NULL;
    for (size_t i = 0; i < k->list.len && !key; i++) {
        if (memcmp(sealed + 1, k->list.p[i].id, ID) == 0)
            key = &k->list.p[i];
    }
    if (!key)
        return err_set(e, ERR_FAILED_PRECONDITION, "KeyMissing",
                       "it is encrypted with key %02x%02x%02x%02x, which is not in the key file",
                       sealed[1], sealed[2], sealed[3], sealed[4]);
    size_t n = size - HEADER - TAG;
    int code = gnutls_aead_cipher_decrypt(key->cipher, sealed + 1 + ID, NONCE, as->p, as->len, TAG,
                                          sealed + HEADER, size - HEADER, out, &n);
    if (code < 0 || n != size - HEADER - TAG)
        return err_set(e, ERR_DATA_LOSS, "Damaged",
                       "it cannot be decrypted: it was changed after it was written");
    return 0;
}
