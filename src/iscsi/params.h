/*
 * What a session negotiates. The table in params.c says for each key how two values become one.
 */
#pragma once

#include "iscsi/text.h"

struct iscsi_params {
    bool header_digest, data_digest;
    bool initial_r2t, immediate_data;
    bool discovery;    /* SessionType */
    uint32_t max_recv; /* what we take in one PDU */
    uint32_t max_send; /* what the initiator takes */
    uint32_t max_burst, first_burst;
    uint32_t max_outstanding_r2t;
};

enum {
    ISCSI_MAX_RECV = 256 << 10,
    ISCSI_MAX_BURST = 1 << 20,
    ISCSI_FIRST_BURST = 256 << 10,
    ISCSI_LOGIN_RECV = 8192, /* until the session says otherwise */
};

/* What holds before anything is negotiated. */
void iscsi_params_init(struct iscsi_params *p);

enum iscsi_key_result {
    ISCSI_KEY_DONE,    /* answered in `out`, if it has an answer */
    ISCSI_KEY_UNKNOWN, /* not in this table: the caller's */
    ISCSI_KEY_TWICE,   /* a mistake that ends the login */
};

/* One offer of the initiator. seen has a bit for each key. */
enum iscsi_key_result iscsi_params_offer(struct iscsi_params *p, uint64_t *seen, const char *key,
                                         const char *value, struct str *out);
/* After the last: values that depend on each other. */
void iscsi_params_settle(struct iscsi_params *p);
