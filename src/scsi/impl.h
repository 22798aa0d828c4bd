/*
 * What the files of this module share: the unit, the nexus, a row of the table of commands, and the
 * words in which commands are written.
 *
 *   begin ──> refused                                   (CHECK CONDITION in hand)
 *     │
 *    run ──> gate ──> claim ──> the command's run() ──> finish ──> done()
 *             │         │              │
 *             │         │              └─ nothing, one I/O, or a series of them (scsi_steps)
 *             │         └─ waits while an exclusive task holds an overlapping range
 *             └─ unit attention, reservation, no medium, write protection
 *
 * Invariants:
 *   - A task that runs is on unit->running or unit->waiting, never on both; finish takes it off.
 *   - unit->exclusives counts the exclusive tasks on both lists: while it is 0 nobody looks at ranges.
 *   - unit->special is set while any of the gate's questions about the unit could be answered no.
 */
#pragma once

#include <string.h>

#include "base/be.h"
#include "base/mem.h"
#include "scsi/reserve.h"
#include "scsi/scsi.h"
#include "scsi/sense.h"

enum {
    PHYSICAL_BLOCK = 4096,  /* bytes; what is smaller is read, changed and written by the store */
    WORK_BYTES = 256 << 10, /* how much a series of I/Os does at a time */
    LIST_BYTES = 64 << 10,  /* the longest parameter list; as long as a 16-bit length */
};

/* ---- commands ---- */

/* Where the LBA and the number of blocks stand in a CDB. */
enum scsi_shape { SHAPE_NONE, SHAPE_6, SHAPE_10, SHAPE_12, SHAPE_16, SHAPE_SHAPES };

/* What data goes with a command, and how much the CDB says that is. */
enum scsi_data {
    DATA_NONE,
    DATA_IN,         /* parameter data: the allocation length stands at `at`, in `width` bytes;
                      * of 0 bytes: it is `at` */
    DATA_OUT,        /* a parameter list: its length stands there */
    DATA_IN_BLOCKS,  /* the blocks of the range */
    DATA_OUT_BLOCKS, /* the same */
    DATA_OUT_BLOCK,  /* one block, whatever the range */
    DATA_OUT_TWICE,  /* the range to compare with, then the range to write */
    DATA_OUT_CHECK,  /* as BYTCHK says: none, the range, or one block */
};

enum scsi_flags {
    FLAG_ANY_TIME = 1 << 0,  /* unit attentions do not hold it up */
    FLAG_ANY_LUN = 1 << 1,   /* also where there is no unit */
    FLAG_MEDIUM = 1 << 2,    /* needs one that is there and not being sanitized */
    FLAG_WRITES = 1 << 3,    /* refused while writing is forbidden */
    FLAG_EXCLUSIVE = 1 << 4, /* nothing else touches its range meanwhile */
    FLAG_THIN = 1 << 5,      /* there only on thin units */
    FLAG_ATOMIC = 1 << 6,    /* there only on units whose store can */
    FLAG_SANITIZE = 1 << 7,  /* answered while a sanitize is going on, as if it were not */
};

struct scsi_command {
    const char *name;  /* NULL: there is no such command */
    const char *usage; /* hex: the bits of the CDB that mean something, opcode first */
    const struct scsi_command
        *actions; /* service actions, in place of all below; ends without name */
    uint8_t action;
    uint8_t shape, data, at, width;
    uint8_t
        refused; /* bits of CDB byte 1 that have to be zero: there is no protection information */
    uint8_t flags;
    enum scsi_guard guard;
    uint16_t seconds;                   /* how long it may well take */
    bool (*check)(struct scsi_task *t); /* more of the CDB; false: refused */
    void (*run)(struct scsi_task *t);
};

extern const struct scsi_command scsi_commands[256];
/* NULL: there is none on this unit. */
const struct scsi_command *scsi_command_find(const struct scsi_unit *u, uint8_t opcode,
                                             uint16_t action, bool *ret_has_actions);

/* ---- unit and nexus ---- */

/* In the order in which they are told. */
enum scsi_attention {
    ATTENTION_POWER_ON,
    ATTENTION_RESET,
    ATTENTION_MEDIUM,
    ATTENTION_CAPACITY,
    ATTENTION_MODE,
    ATTENTION_PREEMPTED,
    ATTENTION_REGISTRATIONS,
    ATTENTION_RELEASED,
    ATTENTION_CLEARED,
    ATTENTIONS,
};

struct scsi_nexus {
    struct scsi_unit *unit;
    struct list_link link;
    struct scsi_port port; /* its name in reservations */
    uint64_t client;       /* the initiator, whatever its port: for the store */
    char *target_port;
    uint32_t attentions; /* bits: those not yet told */
    bool prevents;       /* removal of the medium */
    struct {
        uint8_t list;  /* the identifier of the last EXTENDED COPY */
        uint8_t state; /* its COPY COMMAND STATUS, 0xff: there was none */
        uint16_t segments;
        uint32_t kilobytes;
    } copied;
};

/* Values of mode pages that can be changed. */
struct scsi_mode {
    bool write_cache, descriptor_sense, write_protect;
};

struct scsi_sanitize {
    struct scsi_task *task; /* waits for the end; NULL: told at once, or aborted */
    bool going, failed;
    enum store_op op;
    uint64_t at; /* bytes done */
    uint8_t *pattern;
    struct iovec iov;
    unsigned passes;
    bool invert, stepping, stepped, stopping;
    char
        *path; /* a file that is there while one goes on or has failed; NULL: none is kept. Owned */
    struct store_io io;
};

struct scsi_unit {
    struct store *store; /* the caller's */
    uint64_t blocks;     /* capacity */
    uint32_t block_size;
    uint8_t shift; /* block_size == 1 << shift */
    uint8_t lun;
    bool special;
    bool read_only, thin, removable, ejected;
    uint32_t atomic_blocks;
    struct list_link running, waiting; /* of tasks */
    unsigned exclusives;
    bool waking;
    struct list_link nexuses;
    struct scsi_mode mode;
    struct scsi_reserve reserve;
    struct scsi_sanitize sanitize;
    uint8_t naa[8];
    char vendor[9], product[17], revision[5], *serial;
};

/* Unit attentions: of everybody but one (who may be NULL). */
void scsi_attention_all(struct scsi_unit *u, const struct scsi_nexus *but, enum scsi_attention a);
/* The first of those not yet told, which now is; there has to be one. */
enum scsi_sense scsi_attention_take(struct scsi_nexus *n);
/* Whether the gate has to look; after each change of what it looks at. */
void scsi_unit_review(struct scsi_unit *u);
bool scsi_is_protected(const struct scsi_unit *u);
uint64_t scsi_write_same_most(const struct scsi_unit *u); /* limits, in blocks */
uint32_t scsi_unmap_blocks(const struct scsi_unit *u);
extern const uint32_t scsi_unmap_descriptors;
/* How far a sanitize is, of 65536. */
uint16_t scsi_sanitize_progress(const struct scsi_unit *u);
/* One that did not get to its end before the program ended has failed. */
void scsi_sanitize_init(struct scsi_unit *u, const char *state_dir);
/* True: the task waited for a sanitize, and has ended. */
bool scsi_sanitize_forget(struct scsi_unit *u, const struct scsi_task *t);
void scsi_mode_reset(struct scsi_unit *u);

/* ---- what commands are written with ---- */

/* Sets the answer and returns false, for check(). */
bool scsi_refuse(struct scsi_task *t, enum scsi_sense code);
bool scsi_refuse_field(struct scsi_task *t, unsigned byte); /* INVALID FIELD IN CDB */
/* Ends the task. It is the transport's again. */
void scsi_finish(struct scsi_task *t);
void scsi_good(struct scsi_task *t);
void scsi_fail(struct scsi_task *t, enum scsi_sense code);
void scsi_fail_field(struct scsi_task *t, unsigned byte); /* INVALID FIELD IN PARAMETER LIST */
/* The store said errno. */
void scsi_fail_io(struct scsi_task *t, int error);
/* Parameter data: as much as fits is passed on; ends the task. */
void scsi_give(struct scsi_task *t, const void *data, size_t size);
/* The parameter list in one piece, or NULL when less than `least` bytes came: the task is ended then.
 * It is in t->memory. */
const uint8_t *scsi_list(struct scsi_task *t, uint32_t least);
/* Copies between data-in or data-out and memory, from a place in it. */
size_t scsi_copy_in(struct scsi_task *t, size_t at, const void *data, size_t size);
size_t scsi_copy_out(struct scsi_task *t, size_t at, void *data, size_t size);

static inline bool scsi_in_range(const struct scsi_unit *u, uint64_t lba, uint64_t blocks)
{
    return lba <= u->blocks && blocks <= u->blocks - lba;
}

/*
 * A command that is a series of I/Os: step() either prepares and submits exactly one with
 * scsi_step_io() and returns true, or ends the task and returns false. It is called again when the
 * I/O is done, with t->error; never inside itself, however quick the store is.
 */
void scsi_steps(struct scsi_task *t, bool (*step)(struct scsi_task *t));
bool scsi_step_io(struct scsi_task *t, enum store_op op, uint64_t offset, uint64_t length,
                  struct iovec *iov, unsigned iovs);
/* For step(): the task ends, with t->error or without; false. */
bool scsi_step_failed(struct scsi_task *t);
bool scsi_step_good(struct scsi_task *t);
/* The same with MISCOMPARE and how far they were equal, from `at` on. */
bool scsi_step_differ(struct scsi_task *t, uint64_t at, const uint8_t *a, const uint8_t *b,
                      size_t size);
