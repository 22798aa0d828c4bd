/*
 * SCSI without any network: a logical unit over a store, and the commands it obeys.
 *
 *   transport                         scsi                                 store
 *   ---------                         ----                                 -----
 *   command arrives  ── scsi_task_begin() ──> decoded: how much data-out it wants,
 *                                              how much data-in it may give
 *   data-out arrives, buffers found
 *                    ── scsi_task_run() ────> checks, reservations ──────> store_submit()
 *   answer is sent  <── task->done() ───────  status, sense, data-in  <─── done()
 *
 * Invariants:
 *   - A task is the transport's memory: nothing is allocated for a command that reads, writes or
 *     flushes. From scsi_task_run() to done() it belongs to the unit; done() may be called before
 *     scsi_task_run() returns. Commands with large parameter data (MODE SENSE, PERSISTENT RESERVE IN,
 *     ...) are answered into the data-in buffer that the transport gives.
 *   - Everything of a unit happens on one thread, that of its store's loop.
 *   - A nexus is one initiator port seen through one target port: it has its own unit attentions and
 *     its own name in reservations. One that ends (session closed, reinstated) releases what SPC says
 *     it releases.
 *   - A unit never trusts a length: data-out shorter than the CDB asks for, CDBs of any bytes, LBAs
 *     beyond the end and parameter lists cut anywhere get CHECK CONDITION with the right sense, and
 *     change nothing.
 *   - Tasks that overlap run as the initiator sent them only where SCSI demands it: COMPARE AND WRITE,
 *     ORWRITE and reservations are atomic against each other and against overlapping writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/list.h"
#include "store/store.h"

enum scsi_status {
    SCSI_GOOD = 0x00,
    SCSI_CHECK_CONDITION = 0x02,
    SCSI_CONDITION_MET = 0x04,
    SCSI_BUSY = 0x08,
    SCSI_RESERVATION_CONFLICT = 0x18,
    SCSI_TASK_SET_FULL = 0x28,
    SCSI_TASK_ABORTED = 0x40,
};

enum {
    SCSI_CDB_MAX = 32,
    SCSI_SENSE_MAX = 64,
    SCSI_TRANSFER_MAX = 8 << 20, /* bytes of one command, in or out: in_wanted, out_wanted */
};

struct scsi_unit;
struct scsi_nexus;
struct scsi_command; /* a row of the table of commands */

struct scsi_task {
    /* Set by the transport before scsi_task_begin(): */
    struct scsi_nexus *nexus;
    uint64_t lun; /* as on the wire: eight bytes, big-endian, read into a number */
    uint8_t cdb[SCSI_CDB_MAX];
    uint8_t cdb_length;
    uint32_t out_offered; /* how much data-out the initiator says it has, whatever the CDB says */

    /* Set by scsi_task_begin(): what the command itself asks for, whatever the transport expects. */
    uint32_t out_wanted;
    uint32_t in_wanted;

    /* Set by the transport before scsi_task_run(). Data-out is what arrived, at most out_wanted; data-in
     * has room for what the transport can pass on, at most in_wanted. */
    struct iovec *out;
    unsigned outs;
    struct io_buf *const *out_bufs; /* that they lie in, for stores; NULL: not known */
    uint32_t out_length;
    struct iovec *in;
    unsigned ins;
    uint32_t in_room;
    void (*done)(struct scsi_task *task);

    /* Set before done(): */
    enum scsi_status status;
    uint8_t sense[SCSI_SENSE_MAX];
    uint8_t sense_length;
    uint32_t in_length; /* bytes of data-in that are valid; the transport works out residuals */

    /* The unit's, from scsi_task_begin() on: */
    struct scsi_unit *unit;
    const struct scsi_command *command;
    struct list_link link;                /* among those that run, or that wait for a range */
    uint64_t lba, blocks;                 /* what it touches; blocks == 0: nothing of the medium */
    bool running, aborted;                /* between run and done; asked to end */
    bool exclusive, waiting;              /* nothing else may touch the range; it waits for that */
    bool fua;                             /* what it writes is durable when it is done */
    bool stepping, stepped;               /* inside step(); its I/O was done already */
    int error;                            /* of the last I/O */
    bool (*step)(struct scsi_task *task); /* of a command that is a series of I/Os */
    uint8_t *memory; /* what such a command works in; NULL for reads, writes and flushes */
    struct iovec piece[1];
    uint64_t at; /* how far it is */
    uint32_t phase, size;
    struct store_io io;
};

struct scsi_unit_config {
    struct store *store;
    uint32_t block_size;  /* 512 or 4096; a multiple of the store's */
    const char *vendor;   /* up to 8 characters */
    const char *product;  /* up to 16 */
    const char *revision; /* up to 4 */
    const char
        *serial; /* of the volume: the unit serial number and the designators follow from it */
    uint8_t lun; /* its number */
    bool read_only;
    bool thin;      /* UNMAP and provisioning pages */
    bool removable; /* the medium can be ejected */
    const char *
        state_dir; /* where reservations that survive a loss of power are kept; NULL: they do not */
};

struct scsi_unit *scsi_unit_new(const struct scsi_unit_config *config, struct err *e);
/* Ends what a unit does by itself, a SANITIZE. False: an I/O is under way, ask again. */
bool scsi_unit_stop(struct scsi_unit *unit);
/* With no task under way, no nexus left, and stopped. */
void scsi_unit_free(struct scsi_unit *unit);
/* Whether it is meant by a LUN as on the wire. */
bool scsi_unit_is(const struct scsi_unit *unit, uint64_t lun);
/* After the store grew: initiators are told by unit attention. */
void scsi_unit_resized(struct scsi_unit *unit);
/* What is on the medium is not what it was: initiators are told to forget what they know. */
void scsi_unit_changed(struct scsi_unit *unit);

/* A nexus begins and ends. The names are iSCSI's: "iqn...,i,0x..." and "iqn...,t,0x0001". */
struct scsi_nexus *scsi_nexus_new(struct scsi_unit *unit, const char *initiator_port,
                                  const char *target_port, uint16_t target_port_id);
/* Another initiator had tasks of this one aborted, which have no answer: it is told that. */
void scsi_nexus_cleared(struct scsi_nexus *n);
void scsi_nexus_free(struct scsi_nexus *nexus);

/* False: the CDB is refused; task holds the answer already and done() is not called. */
bool scsi_task_begin(struct scsi_task *task);
void scsi_task_run(struct scsi_task *task);
/* In place of run: data-out did not arrive as it should have. The task holds the answer. */
void scsi_task_broken(struct scsi_task *task);

/* Task management. A task that is aborted while the store works on it is done() all the same, in its
 * time, with status SCSI_TASK_ABORTED: its buffers are in use until then. */
void scsi_task_abort(struct scsi_task *task);
void scsi_unit_reset(struct scsi_unit *unit, struct scsi_nexus *by);
/* The same for all tasks of one nexus: ABORT TASK SET. */
void scsi_nexus_abort(struct scsi_nexus *nexus);
