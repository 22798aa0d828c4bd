/*
 * PERSISTENT RESERVE IN: what is registered and reserved.
 */
#include "scsi/impl.h"

enum { READ_KEYS, READ_RESERVATION, REPORT_CAPABILITIES, READ_FULL_STATUS };
enum { HEADER = 8, FULL_MAX = 24 + 4 + SCSI_PORT_NAME };

static uint64_t holder_key(const struct scsi_pr *pr)
{
    return scsi_pr_is_all(pr->type) ? 0 : pr->registrations[pr->holder].key;
}

static size_t put_keys(const struct scsi_pr *pr, uint8_t *p)
{
    size_t at = 0;
    for (unsigned i = 0; i < pr->count; i++, at += 8)
        be_put64(p + at, pr->registrations[i].key);
    return at;
}

static size_t put_reservation(const struct scsi_pr *pr, uint8_t *p)
{
    if (pr->type == PR_NONE)
        return 0;
    be_put64(p, holder_key(pr));
    p[13] = (uint8_t)pr->type; /* scope: the unit */
    return 16;
}

/* An iSCSI TransportID: the name of the initiator's port, with its ISID, padded with zeroes. */
static size_t put_transport(const struct scsi_port *port, uint8_t *p)
{
    size_t n = (strlen(port->initiator) + 1 + 3) & ~(size_t)3;
    n = n < 20 ? 20 : n;
    p[0] = 0x45; /* format 01b, protocol 5h */
    be_put16(p + 2, n);
    memcpy(p + 4, port->initiator, strlen(port->initiator));
    return 4 + n;
}

static size_t put_full(const struct scsi_pr *pr, uint8_t *p)
{
    size_t at = 0;
    for (unsigned i = 0; i < pr->count; i++) {
        const struct scsi_registration *r = &pr->registrations[i];
        uint8_t *d = p + at;
        bool holds = scsi_pr_holds(pr, (int)i);
        be_put64(d, r->key);
        d[12] = holds ? 1 : 0;
        d[13] = holds ? (uint8_t)pr->type : 0;
        be_put16(d + 18, r->port.target);
        size_t n = put_transport(&r->port, d + 24);
        be_put32(d + 20, n);
        at += 24 + n;
    }
    return at;
}

static void give_capabilities(struct scsi_task *t)
{
    const struct scsi_reserve *r = &t->unit->reserve;
    uint8_t p[8] = {0};
    be_put16(p, sizeof(p));
    p[2] = (uint8_t)(0x10 | (r->path ? 0x01 : 0));         /* CRH; PTPL_C */
    p[3] = (uint8_t)(0x80 | (r->pr->survives ? 0x01 : 0)); /* the mask below counts; PTPL_A */
    p[4] = 0xea;                                           /* every type: WE_AR EA_RO WE_RO EA WE */
    p[5] = 0x01;                                           /* EA_AR */
    scsi_give(t, p, sizeof(p));
}

void scsi_run_pr_in(struct scsi_task *t)
{
    static size_t (*const writers[])(const struct scsi_pr *pr, uint8_t *p) = {
        [READ_KEYS] = put_keys,
        [READ_RESERVATION] = put_reservation,
        [READ_FULL_STATUS] = put_full,
    };
    const struct scsi_reserve *r = &t->unit->reserve;
    uint8_t action = t->command->action;
    if (action == REPORT_CAPABILITIES) {
        give_capabilities(t);
        return;
    }
    _cleanup_free_ uint8_t *p = mem_zalloc(HEADER + SCSI_REGISTRATIONS * FULL_MAX);
    size_t n = writers[action](r->pr, p + HEADER);
    be_put32(p, r->generation);
    be_put32(p + 4, n);
    scsi_give(t, p, HEADER + n);
}
