#include "replio/aead.h"

#include <gnutls/crypto.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#ifdef ORLOP_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

enum { PIECE = 16384, PIECES = 16, ROUNDS = 3 };

struct implementation {
    struct replio_cipher cipher;
    struct replio_aead *(*start)(const struct implementation *of, const uint8_t *key);
    bool (*seal)(struct replio_aead *a, const uint8_t *nonce, struct iovec aad,
                 const struct iovec *iov, unsigned n, uint8_t *out);
    bool (*open)(struct replio_aead *a, const uint8_t *nonce, struct iovec aad, const uint8_t *in,
                 size_t n, uint8_t *out);
    void (*end)(struct replio_aead *a);
};

struct replio_aead {
    const struct implementation *of;
};

/* GnuTLS. */

struct gnutls_aead {
    struct replio_aead aead;
    gnutls_aead_cipher_hd_t handle;
};

static struct replio_aead *start_gnutls(const struct implementation *of, const uint8_t *key)
{
    const gnutls_datum_t datum = {(void *)(uintptr_t)key,
                                  (unsigned)gnutls_cipher_get_key_size(of->cipher.algorithm)};
    struct gnutls_aead *a = NEW(struct gnutls_aead);
    if (gnutls_aead_cipher_init(&a->handle, of->cipher.algorithm, &datum) < 0) {
        free(a);
        return NULL;
    }
    return &a->aead;
}

static bool seal_gnutls(struct replio_aead *aead, const uint8_t *nonce, struct iovec aad,
                        const struct iovec *iov, unsigned n, uint8_t *out)
{
    struct gnutls_aead *a = (struct gnutls_aead *)aead;
    size_t size = REPLIO_TAG;
    for (unsigned i = 0; i < n; i++)
        size += iov[i].iov_len;
    return gnutls_aead_cipher_encryptv(a->handle, nonce, REPLIO_NONCE, &aad, 1, REPLIO_TAG, iov,
                                       (int)n, out, &size) >= 0;
}

static bool open_gnutls(struct replio_aead *aead, const uint8_t *nonce, struct iovec aad,
                        const uint8_t *in, size_t n, uint8_t *out)
{
    struct gnutls_aead *a = (struct gnutls_aead *)aead;
    size_t size = n - REPLIO_TAG;
    return gnutls_aead_cipher_decrypt(a->handle, nonce, REPLIO_NONCE, aad.iov_base, aad.iov_len,
                                      REPLIO_TAG, in, n, out, &size) >= 0;
}

static void end_gnutls(struct replio_aead *aead)
{
    struct gnutls_aead *a = (struct gnutls_aead *)aead;
    gnutls_aead_cipher_deinit(a->handle);
    free(a);
}

/* IPSec_MB. Its functions for one buffer keep nothing in the manager, which is only a table of them. */

#ifdef ORLOP_IPSEC_MB
static IMB_MGR *manager;

struct mb_aead {
    struct replio_aead aead;
    struct gcm_key_data *key; /* aligned, owned */
};

static struct replio_aead *start_mb(const struct implementation *of, const uint8_t *key)
{
    (void)of;
    if (!manager) {
        manager = alloc_mb_mgr(0);
        if (manager)
            init_mb_mgr_auto(manager, NULL);
    }
    struct gcm_key_data *data;
    if (!manager || imb_get_errno(manager) ||
        posix_memalign((void **)&data, 64, sizeof(*data)) != 0)
        return NULL;
    struct mb_aead *a = NEW(struct mb_aead);
    a->key = data;
    IMB_AES128_GCM_PRE(manager, key, a->key);
    return &a->aead;
}

static bool seal_mb(struct replio_aead *aead, const uint8_t *nonce, struct iovec aad,
                    const struct iovec *iov, unsigned n, uint8_t *out)
{
    const struct gcm_key_data *key = ((struct mb_aead *)aead)->key;
    struct gcm_context_data context;
    IMB_AES128_GCM_INIT(manager, key, &context, nonce, aad.iov_base, aad.iov_len);
    for (unsigned i = 0; i < n; i++) {
        IMB_AES128_GCM_ENC_UPDATE(manager, key, &context, out, iov[i].iov_base, iov[i].iov_len);
        out += iov[i].iov_len;
    }
    IMB_AES128_GCM_ENC_FINALIZE(manager, key, &context, out, REPLIO_TAG);
    return true;
}

static bool open_mb(struct replio_aead *aead, const uint8_t *nonce, struct iovec aad,
                    const uint8_t *in, size_t n, uint8_t *out)
{
    const struct gcm_key_data *key = ((struct mb_aead *)aead)->key;
    struct gcm_context_data context;
    uint8_t tag[REPLIO_TAG];
    n -= REPLIO_TAG;
    IMB_AES128_GCM_DEC(manager, key, &context, out, in, n, nonce, aad.iov_base, aad.iov_len, tag,
                       REPLIO_TAG);
    if (gnutls_memcmp(tag, in + n, REPLIO_TAG) == 0)
        return true;
    explicit_bzero(out, n); /* nobody sees what nobody vouches for */
    return false;
}

static void end_mb(struct replio_aead *aead)
{
    struct mb_aead *a = (struct mb_aead *)aead;
    explicit_bzero(a->key, sizeof(*a->key));
    free(a->key);
    free(a);
}
#endif

/* Measuring. */

static const struct implementation implementations[] = {
#ifdef ORLOP_IPSEC_MB
    {{"AES-128-GCM", "IPSec_MB", GNUTLS_CIPHER_AES_128_GCM, 0}, start_mb, seal_mb, open_mb, end_mb},
#endif
    {{"AES-128-GCM", "GnuTLS", GNUTLS_CIPHER_AES_128_GCM, 0},
     start_gnutls,
     seal_gnutls,
     open_gnutls,
     end_gnutls},
    {{"CHACHA20-POLY1305", "GnuTLS", GNUTLS_CIPHER_CHACHA20_POLY1305, 0},
     start_gnutls,
     seal_gnutls,
     open_gnutls,
     end_gnutls},
};

static struct replio_cipher ciphers[ARRAY_SIZE(implementations)];
static const struct implementation *by_speed[ARRAY_SIZE(implementations)];
static unsigned measured;

/* The best of a few rounds: what else the machine does makes some of them slow, and none fast. */
static int64_t time_rounds(struct replio_aead *a, uint8_t *from, uint8_t *to)
{
    static const uint8_t nonce[REPLIO_NONCE];
    const struct iovec iov = {from, PIECE};
    int64_t best = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t began = clock_mono_ns(clock_system());
        for (int i = 0; i < PIECES; i++) {
            if (!a->of->seal(a, nonce, (struct iovec){from, 5}, &iov, 1, to))
                return INT64_MAX;
        }
        int64_t took = clock_mono_ns(clock_system()) - began;
        best = took < best ? took : best;
    }
    return best;
}

static void insert(const struct implementation *of, int64_t ns)
{
    unsigned at = measured++;
    for (; at > 0 && ciphers[at - 1].ns > ns; at--) {
        ciphers[at] = ciphers[at - 1];
        by_speed[at] = by_speed[at - 1];
    }
    ciphers[at] = of->cipher;
    ciphers[at].ns = ns;
    by_speed[at] = of;
}

static struct replio_aead *start(const struct implementation *of, const uint8_t *key)
{
    struct replio_aead *a = of->start(of, key);
    if (a)
        a->of = of;
    return a;
}

static void measure(void)
{
    static const uint8_t key[REPLIO_AEAD_KEY_MOST];
    _cleanup_free_ uint8_t *memory = mem_zalloc(2 * PIECE + REPLIO_TAG);
    for (size_t i = 0; i < ARRAY_SIZE(implementations); i++) {
        struct replio_aead *a = start(&implementations[i], key);
        int64_t ns = a ? time_rounds(a, memory, memory + PIECE) : INT64_MAX;
        if (ns < INT64_MAX)
            insert(&implementations[i], ns);
        replio_aead_free(a);
    }
}

const struct replio_cipher *replio_ciphers(unsigned *ret_n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, measure);
    *ret_n = measured;
    return ciphers;
}

struct replio_aead *replio_aead_by(const struct replio_cipher *cipher, const uint8_t *key)
{
    return start(by_speed[cipher - ciphers], key);
}

struct replio_aead *replio_aead_new(gnutls_cipher_algorithm_t algorithm, const uint8_t *key)
{
    unsigned n;
    replio_ciphers(&n);
    for (unsigned i = 0; i < n; i++) {
        if (ciphers[i].algorithm == algorithm)
            return replio_aead_by(&ciphers[i], key);
    }
    return NULL;
}

void replio_aead_free(struct replio_aead *a)
{
    if (a)
        a->of->end(a);
}

bool replio_aead_seal(struct replio_aead *a, const uint8_t *nonce, struct iovec aad,
                      const struct iovec *iov, unsigned n, uint8_t *out)
{
    return a->of->seal(a, nonce, aad, iov, n, out);
}

bool replio_aead_open(struct replio_aead *a, const uint8_t *nonce, struct iovec aad,
                      const uint8_t *in, size_t n, uint8_t *out)
{
    return a->of->open(a, nonce, aad, in, n, out);
}
