#include "iscsi/chap.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

#include "base/mem.h"

static const struct algorithm {
    unsigned number;
    gnutls_digest_algorithm_t digest;
    size_t size;
} algorithms[] = {{7, GNUTLS_DIG_SHA256, 32}, {5, GNUTLS_DIG_MD5, 16}}; /* the stronger first */

static const struct algorithm *algorithm_of(unsigned number)
{
    for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++) {
        if (algorithms[i].number == number)
            return &algorithms[i];
    }
    return NULL;
}

void iscsi_chap_init(struct iscsi_chap *c, const struct iscsi_auth *auth)
{
    *c = (struct iscsi_chap){.auth = auth};
}

bool iscsi_chap_key(struct iscsi_chap *c, const char *key, const char *value)
{
    if (str_eq(key, "CHAP_A")) {
        c->algorithm_offered = true;
        for (size_t i = 0; i < ARRAY_SIZE(algorithms) && !c->algorithm; i++) {
            char number[4] = {(char)('0' + algorithms[i].number)};
            if (iscsi_text_has(value, number))
                c->algorithm = algorithms[i].number;
        }
    } else if (str_eq(key, "CHAP_N")) {
        snprintf(c->name, sizeof(c->name), "%s", value); /* what is cut is nobody's name */
    } else if (str_eq(key, "CHAP_R")) {
        c->answered = true;
        c->answer_size = iscsi_text_binary(value, c->answer, sizeof(c->answer));
    } else if (str_eq(key, "CHAP_I")) {
        c->has_id = iscsi_text_number(value, 0, 255, &c->their_id);
    } else if (str_eq(key, "CHAP_C")) {
        c->their_challenge_size =
            iscsi_text_binary(value, c->their_challenge, sizeof(c->their_challenge));
    } else {
        return false;
    }
    return true;
}

static bool respond(unsigned algorithm, uint8_t id, const char *secret, const uint8_t *challenge,
                    size_t n, uint8_t *out)
{
    gnutls_hash_hd_t hash;
    if (gnutls_hash_init(&hash, algorithm_of(algorithm)->digest) < 0)
        return false;
    gnutls_hash(hash, &id, 1);
    gnutls_hash(hash, secret, strlen(secret));
    gnutls_hash(hash, challenge, n);
    gnutls_hash_deinit(hash, out);
    return true;
}

static enum iscsi_chap_state ask(struct iscsi_chap *c, struct str *out)
{
    if (!c->algorithm || gnutls_rnd(GNUTLS_RND_NONCE, &c->id, 1) < 0 ||
        gnutls_rnd(GNUTLS_RND_NONCE, c->challenge, sizeof(c->challenge)) < 0)
        return ISCSI_CHAP_FAILED;
    iscsi_text_add_number(out, "CHAP_A", c->algorithm);
    iscsi_text_add_number(out, "CHAP_I", c->id);
    iscsi_text_add_binary(out, "CHAP_C", c->challenge, sizeof(c->challenge));
    return ISCSI_CHAP_ASKED;
}

/* A peer that only sends our own challenge back has no secret: refused (reflection). */
static bool prove(struct iscsi_chap *c, struct str *out)
{
    uint8_t answer[ISCSI_HASH_MAX];
    if (!c->auth->target_secret || !c->their_challenge_size ||
        (c->their_challenge_size == sizeof(c->challenge) &&
         memcmp(c->their_challenge, c->challenge, sizeof(c->challenge)) == 0) ||
        !respond(c->algorithm, (uint8_t)c->their_id, c->auth->target_secret, c->their_challenge,
                 c->their_challenge_size, answer))
        return false;
    iscsi_text_add(out, "CHAP_N", c->auth->target_user);
    iscsi_text_add_binary(out, "CHAP_R", answer, algorithm_of(c->algorithm)->size);
    return true;
}

static enum iscsi_chap_state check(struct iscsi_chap *c, struct str *out)
{
    uint8_t expected[ISCSI_HASH_MAX];
    size_t size = algorithm_of(c->algorithm)->size;
    if (!c->answered || c->answer_size != size ||
        !respond(c->algorithm, c->id, c->auth->secret, c->challenge, sizeof(c->challenge),
                 expected) ||
        !str_eq(c->name, c->auth->user) || gnutls_memcmp(expected, c->answer, size) != 0)
        return ISCSI_CHAP_FAILED;
    if ((c->has_id || c->their_challenge_size) && !prove(c, out))
        return ISCSI_CHAP_FAILED;
    return ISCSI_CHAP_DONE;
}

enum iscsi_chap_state iscsi_chap_step(struct iscsi_chap *c, struct str *out)
{
    if (c->state == ISCSI_CHAP_START && c->algorithm_offered)
        c->state = ask(c, out);
    else if (c->state == ISCSI_CHAP_ASKED)
        c->state = check(c, out);
    return c->state;
}
