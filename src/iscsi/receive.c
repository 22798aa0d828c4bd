/*
 * Bytes to PDUs, and PDUs to whoever handles them.
 *
 *     header 48 ─> AHS, digest ─> [begin: where does the data go?] ─> data ─> padding, digest ─> [end]
 *
 * A header is copied together (48 bytes); data stays in the buffers it came in.
 */
#include "base/crc.h"
#include "base/log.h"
#include "iscsi/impl.h"

/* PDUs that wait for their turn by CmdSN; immediate ones carry it too. */
static bool in_turn(struct iscsi_conn *c)
{
    bool ignore = false;
    return iscsi_session_take_cmdsn(c, &ignore) && !ignore;
}

/* The header is complete: is it one that may come now, and where does its data go? */
static void begin_full(struct iscsi_conn *c)
{
    c->sink = SINK_TEXT;
    switch (iscsi_opcode(c->header)) {
    case ISCSI_COMMAND:
        iscsi_command_begin(c);
        break;
    case ISCSI_DATA_OUT:
        iscsi_data_out_begin(c);
        break;
    default:
        break;
    }
}

static void end_full(struct iscsi_conn *c)
{
    switch (iscsi_opcode(c->header)) {
    case ISCSI_COMMAND:
        iscsi_command_data(c);
        break;
    case ISCSI_DATA_OUT:
        iscsi_data_out_end(c);
        break;
    case ISCSI_NOP_OUT:
        if (iscsi_itt(c->header) == ISCSI_NO_TAG || in_turn(c))
            iscsi_nop_out(c);
        break;
    case ISCSI_TASK_REQUEST:
        if (in_turn(c))
            iscsi_manage_request(c);
        break;
    case ISCSI_TEXT_REQUEST:
        if (in_turn(c))
            iscsi_text_request(c);
        break;
    case ISCSI_LOGOUT_REQUEST:
        if (in_turn(c))
            iscsi_logout(c);
        break;
    case ISCSI_SNACK:
        iscsi_conn_reject(c, ISCSI_REJECT_SNACK);
        break;
    case ISCSI_LOGIN_REQUEST:
        iscsi_conn_violated(c, "a login request in full feature phase");
        break;
    default:
        iscsi_conn_reject(c, ISCSI_REJECT_UNSUPPORTED);
        break;
    }
}

static bool check_header(struct iscsi_conn *c)
{
    uint32_t most = c->phase == PHASE_FULL ? c->params.max_recv : ISCSI_LOGIN_RECV;
    if (c->header_digest) {
        uint32_t is, size = c->header_size - ISCSI_DIGEST;
        memcpy(&is, c->header + size, sizeof(is));
        if (is != crc_32c(c->header, size)) {
            iscsi_count(&c->node->stats.digest_errors, 1);
            log_warn("iscsi header digest wrong", LOG_S("peer", c->peer));
            iscsi_conn_close(c, true); /* where the next PDU begins is not known any more */
            return false;
        }
    }
    if (iscsi_data_length(c->header) > most) {
        iscsi_conn_violated(c, "a data segment longer than MaxRecvDataSegmentLength");
        return false;
    }
    return true;
}

static void begin_pdu(struct iscsi_conn *c)
{
    if (!check_header(c))
        return;
    uint32_t length = iscsi_data_length(c->header);
    c->data_left = length;
    c->data_tail = length ? iscsi_padding(length) + (c->data_digest ? ISCSI_DIGEST : 0) : 0;
    c->tail_used = 0;
    c->crc = 0;
    c->task = NULL;
    str_clear(&c->text);
    if (c->phase == PHASE_FULL)
        begin_full(c);
    else if (iscsi_opcode(c->header) == ISCSI_LOGIN_REQUEST)
        c->sink = SINK_TEXT;
    else
        iscsi_conn_violated(c, "not a login request, before the login");
}

static bool check_data(struct iscsi_conn *c)
{
    if (!c->data_digest || !iscsi_data_length(c->header))
        return true;
    uint32_t padding = c->data_tail - ISCSI_DIGEST, is;
    memcpy(&is, c->tail + padding, sizeof(is));
    if (is == crc_32c_more(c->crc, c->tail, padding))
        return true;
    iscsi_count(&c->node->stats.digest_errors, 1);
    log_warn("iscsi data digest wrong", LOG_S("peer", c->peer));
    iscsi_conn_reject(c, ISCSI_REJECT_DATA_DIGEST);
    iscsi_conn_close(c, false);
    return false;
}

static void end_pdu(struct iscsi_conn *c)
{
    if (!check_data(c))
        return;
    if (c->phase == PHASE_FULL)
        end_full(c);
    else
        iscsi_login_request(c);
    c->header_used = 0;
    c->header_size = ISCSI_HEADER;
}

static void take_data(struct iscsi_conn *c, struct io_buf *buf, const uint8_t *data, uint32_t n)
{
    if (c->data_digest)
        c->crc = crc_32c_more(c->crc, data, n);
    if (c->sink == SINK_TASK)
        iscsi_task_keep(c->task, buf, data, n);
    else if (c->sink == SINK_TEXT)
        str_append_n(&c->text, data, n);
}

static uint32_t least(uint32_t a, size_t b)
{
    return b < a ? (uint32_t)b : a;
}

/* True when the header has become complete. */
static bool take_header(struct iscsi_conn *c, const uint8_t **data, size_t *n)
{
    uint32_t part = least(c->header_size - c->header_used, *n);
    memcpy(c->header + c->header_used, *data, part);
    *data += part;
    *n -= part;
    c->header_used += part;
    if (c->header_used == ISCSI_HEADER)
        c->header_size =
            ISCSI_HEADER + iscsi_ahs_length(c->header) + (c->header_digest ? ISCSI_DIGEST : 0);
    return c->header_used == c->header_size;
}

void iscsi_conn_received(struct iscsi_conn *c, struct io_buf *buf, const uint8_t *data, size_t n)
{
    while (n && !c->closing) {
        if (c->header_used < c->header_size) {
            if (!take_header(c, &data, &n))
                continue;
            begin_pdu(c);
        } else if (c->data_left) {
            uint32_t part = least(c->data_left, n);
            take_data(c, buf, data, part);
            c->data_left -= part;
            data += part;
            n -= part;
        } else {
            uint32_t part = least(c->data_tail - c->tail_used, n);
            memcpy(c->tail + c->tail_used, data, part);
            c->tail_used += part;
            data += part;
            n -= part;
        }
        if (!c->closing && c->header_used == c->header_size && !c->data_left &&
            c->tail_used == c->data_tail)
            end_pdu(c);
    }
}
