/*
 * PDUs of RFC 7143 as bytes: a header of 48, more header segments, data; each part may have a digest.
 *
 *     [ header 48 ][ AHS 0..1020 ][ digest 0|4 ][ data 0..2^24-1 ][ padding 0..3 ][ digest 0|4 ]
 *
 * Numbers are big-endian. The offsets here are the RFC's; only what several kinds of PDU have in
 * common has names of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/be.h"

enum { ISCSI_HEADER = 48, ISCSI_AHS_MAX = 255 * 4, ISCSI_DIGEST = 4 };

enum iscsi_opcode {
    ISCSI_NOP_OUT = 0x00,
    ISCSI_COMMAND = 0x01,
    ISCSI_TASK_REQUEST = 0x02,
    ISCSI_LOGIN_REQUEST = 0x03,
    ISCSI_TEXT_REQUEST = 0x04,
    ISCSI_DATA_OUT = 0x05,
    ISCSI_LOGOUT_REQUEST = 0x06,
    ISCSI_SNACK = 0x10,
    ISCSI_NOP_IN = 0x20,
    ISCSI_RESPONSE = 0x21,
    ISCSI_TASK_RESPONSE = 0x22,
    ISCSI_LOGIN_RESPONSE = 0x23,
    ISCSI_TEXT_RESPONSE = 0x24,
    ISCSI_DATA_IN = 0x25,
    ISCSI_LOGOUT_RESPONSE = 0x26,
    ISCSI_R2T = 0x31,
    ISCSI_ASYNC = 0x32,
    ISCSI_REJECT = 0x3f,
};

enum {
    ISCSI_IMMEDIATE = 0x40, /* in the first byte */
    ISCSI_FINAL = 0x80,     /* in the second */
    ISCSI_CMD_READ = 0x40,
    ISCSI_CMD_WRITE = 0x20,
    ISCSI_CMD_ATTR = 0x07,
    ISCSI_ATTR_ORDERED = 2,
    ISCSI_DATA_STATUS = 0x01,
    ISCSI_UNDERFLOW = 0x02,
    ISCSI_OVERFLOW = 0x04,
    ISCSI_CONTINUE = 0x40, /* of text and login */
};

#define ISCSI_NO_TAG 0xffffffffu

enum iscsi_reject {
    ISCSI_REJECT_DATA_DIGEST = 0x02,
    ISCSI_REJECT_SNACK = 0x03,
    ISCSI_REJECT_PROTOCOL = 0x04,
    ISCSI_REJECT_UNSUPPORTED = 0x05,
    ISCSI_REJECT_IN_PROGRESS = 0x07,
    ISCSI_REJECT_FIELD = 0x09,
};

enum iscsi_task_function {
    ISCSI_ABORT_TASK = 1,
    ISCSI_ABORT_TASK_SET = 2,
    ISCSI_CLEAR_ACA = 3,
    ISCSI_CLEAR_TASK_SET = 4,
    ISCSI_LUN_RESET = 5,
    ISCSI_WARM_RESET = 6,
    ISCSI_COLD_RESET = 7,
    ISCSI_REASSIGN = 8,
};

enum iscsi_task_answer {
    ISCSI_TASK_COMPLETE = 0,
    ISCSI_TASK_UNKNOWN = 1,
    ISCSI_TASK_NO_LUN = 2,
    ISCSI_TASK_NO_REASSIGN = 4,
    ISCSI_TASK_UNSUPPORTED = 5,
    ISCSI_TASK_REJECTED = 255,
};

enum iscsi_async_event { ISCSI_ASYNC_LOGOUT = 1, ISCSI_ASYNC_DROP_ALL = 3 };

/* Fields that all headers have. */
static inline enum iscsi_opcode iscsi_opcode(const uint8_t *h)
{
    return (enum iscsi_opcode)(h[0] & 0x3f);
}

static inline bool iscsi_is_immediate(const uint8_t *h)
{
    return h[0] & ISCSI_IMMEDIATE;
}

static inline uint32_t iscsi_ahs_length(const uint8_t *h)
{
    return h[4] * 4u;
}

static inline uint32_t iscsi_data_length(const uint8_t *h)
{
    return be_get24(h + 5);
}

static inline uint32_t iscsi_itt(const uint8_t *h)
{
    return be_get32(h + 16);
}

static inline uint32_t iscsi_padding(uint32_t length)
{
    return -length & 3;
}

/* Sequence numbers wrap: a < b in the sense of RFC 1982. */
static inline bool iscsi_sn_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}
