/*
 * Reservations: who may do what to a unit while others share it. SPC-2's RESERVE and RELEASE (one
 * holder, gone with its session) and SPC-4's persistent ones (keys that name I_T nexuses, which stay
 * when sessions end, and with APTPL when the power goes).
 *
 * Persistent state is changed as a whole: a command works on a copy (`next`), which becomes the
 * state once it is on disk, if it is to be there. So it is never half changed, in memory or on disk.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct scsi_unit;
struct scsi_nexus;
struct scsi_task;

enum { SCSI_PORT_NAME = 256, SCSI_REGISTRATIONS = 128 };

/* What a reservation that somebody else holds means for a command. */
enum scsi_guard {
    GUARD_FREE,   /* nothing */
    GUARD_PUBLIC, /* nothing, but SPC-2 reservations forbid it */
    GUARD_READ,   /* exclusive access forbids it */
    GUARD_WRITE,  /* every kind forbids it */
    GUARD_SELF,   /* it looks for itself */
};

/* An I_T nexus by name. */
struct scsi_port {
    char initiator[SCSI_PORT_NAME];
    uint16_t target; /* relative port identifier */
};

/* Numbers of the wire. */
enum scsi_pr_type {
    PR_NONE = 0,
    PR_WRITE_EXCLUSIVE = 1,
    PR_EXCLUSIVE = 3,
    PR_WRITE_EXCLUSIVE_REGISTRANTS = 5,
    PR_EXCLUSIVE_REGISTRANTS = 6,
    PR_WRITE_EXCLUSIVE_ALL = 7,
    PR_EXCLUSIVE_ALL = 8,
};

struct scsi_registration {
    uint64_t key;
    struct scsi_port port;
};

struct scsi_pr {
    enum scsi_pr_type type; /* PR_NONE: nothing is reserved */
    int holder;             /* of registrations; -1 for the types that all registrants hold */
    unsigned count;
    bool survives; /* APTPL */
    struct scsi_registration registrations[SCSI_REGISTRATIONS];
};

struct scsi_reserve {
    struct scsi_nexus *holder; /* by RESERVE(6) */
    uint32_t generation;
    struct scsi_pr *pr, *next; /* owned */
    char *path, *volume;       /* owned; path NULL: nothing survives */
};

int scsi_reserve_init(struct scsi_reserve *r, const char *state_dir, const char *volume,
                      struct err *e);
void scsi_reserve_done(struct scsi_reserve *r);
/* Whether a reservation is held at all. */
bool scsi_reserve_any(const struct scsi_reserve *r);
/* Whether the task's nexus may do that now. */
bool scsi_reserve_allows(struct scsi_task *t, enum scsi_guard guard);
void scsi_reserve_nexus_lost(struct scsi_unit *u, struct scsi_nexus *n);
void scsi_reserve_reset(struct scsi_unit *u);

/* -1: not registered. */
int scsi_pr_find(const struct scsi_pr *pr, const struct scsi_port *port);
bool scsi_pr_is_all(enum scsi_pr_type type);
bool scsi_pr_holds(const struct scsi_pr *pr, int registration);

/* The state on disk. */
int scsi_pr_save(const struct scsi_reserve *r, const struct scsi_pr *pr, struct err *e);
int scsi_pr_load(struct scsi_reserve *r, struct scsi_pr *pr, struct err *e);

/* The commands. */
void scsi_run_reserve(struct scsi_task *t);
void scsi_run_release(struct scsi_task *t);
void scsi_run_pr_in(struct scsi_task *t);
void scsi_run_pr_out(struct scsi_task *t);
