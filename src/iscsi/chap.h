/*
 * CHAP (RFC 1994, RFC 7143 12.1.3), one way or both, with MD5 or SHA-256.
 *
 *     initiator                          target
 *     CHAP_A=7,5             ──>
 *                            <──         CHAP_A=7 CHAP_I CHAP_C
 *     CHAP_N CHAP_R          ──>         right? done: iscsi_chap_done
 *     [CHAP_I CHAP_C]        <──         [CHAP_N CHAP_R]
 *
 * Secrets are compared in constant time and appear in no message.
 */
#pragma once

#include "base/err.h"
#include "iscsi/text.h"

enum { ISCSI_SECRET_MIN = 12, ISCSI_SECRET_MAX = 255 };

/* Who may log in, and how the target proves itself. Strings are the owner's. */
struct iscsi_auth {
    const char *user, *secret;               /* NULL: anyone */
    const char *target_user, *target_secret; /* NULL: the target proves nothing */
};

enum iscsi_chap_state { ISCSI_CHAP_START, ISCSI_CHAP_ASKED, ISCSI_CHAP_DONE, ISCSI_CHAP_FAILED };

enum { ISCSI_CHALLENGE_MAX = 1024, ISCSI_HASH_MAX = 32 };

struct iscsi_chap {
    const struct iscsi_auth *auth;
    enum iscsi_chap_state state;
    unsigned algorithm;
    uint8_t id, challenge[32];
    /* What came in the PDU that is being read: */
    bool algorithm_offered, answered;
    char name[ISCSI_VALUE_MAX + 1];
    uint8_t answer[ISCSI_HASH_MAX];
    size_t answer_size;
    bool has_id;
    uint32_t their_id;
    uint8_t their_challenge[ISCSI_CHALLENGE_MAX];
    size_t their_challenge_size;
};

void iscsi_chap_init(struct iscsi_chap *c, const struct iscsi_auth *auth);
/* A key of the initiator's; false when it is none of CHAP's. */
bool iscsi_chap_key(struct iscsi_chap *c, const char *key, const char *value);
/* After the keys of a PDU: the state moves on, and what is to be answered is added. */
enum iscsi_chap_state iscsi_chap_step(struct iscsi_chap *c, struct str *out);
