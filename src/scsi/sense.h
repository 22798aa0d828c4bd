/*
 * Sense data: why a command was not done. A code is its key, additional code and qualifier in one
 * number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scsi_task;

enum scsi_sense {
    SENSE_NONE = 0x000000,
    SENSE_SANITIZING = 0x02041b,
    SENSE_NO_MEDIUM = 0x023a00,
    SENSE_SANITIZE_FAILED = 0x033103,
    SENSE_WRITE_ERROR = 0x030c00,
    SENSE_READ_ERROR = 0x031100,
    SENSE_NOT_RESPONDING = 0x040800, /* communication with the store */
    SENSE_INTERNAL = 0x044400,
    SENSE_LIST_LENGTH = 0x051a00,
    SENSE_BAD_OPCODE = 0x052000,
    SENSE_LBA = 0x052100,
    SENSE_BAD_FIELD = 0x052400,
    SENSE_BAD_LUN = 0x052500,
    SENSE_BAD_LIST = 0x052600,
    SENSE_BAD_RELEASE = 0x052604,
    SENSE_TOO_MANY_TARGETS = 0x052606,
    SENSE_BAD_TARGET_TYPE = 0x052607,
    SENSE_TOO_MANY_SEGMENTS = 0x052608,
    SENSE_BAD_SEGMENT_TYPE = 0x052609,
    SENSE_SAVING = 0x053900,
    SENSE_REMOVAL_PREVENTED = 0x055302,
    SENSE_NO_ROOM_FOR_KEYS = 0x055504,
    SENSE_PROTECTED = 0x072700,
    SENSE_PROTECTED_BY_SOFTWARE = 0x072702,
    SENSE_NO_SPACE = 0x072707,
    SENSE_COPY_UNREACHABLE = 0x0a0d02, /* copy target device not reachable */
    SENSE_COPY_RANGE = 0x0a0000,
    SENSE_COPY_FAILED = 0x0a0d01,
    SENSE_DATA_PHASE = 0x0b4b00,
    SENSE_MISCOMPARE = 0x0e1d00,
    /* Unit attentions: */
    SENSE_MEDIUM_CHANGED = 0x062800,
    SENSE_POWER_ON = 0x062900,
    SENSE_RESET = 0x062903,
    SENSE_MODE_CHANGED = 0x062a01,
    SENSE_RESERVATIONS_PREEMPTED = 0x062a03,
    SENSE_RESERVATIONS_RELEASED = 0x062a04,
    SENSE_REGISTRATIONS_PREEMPTED = 0x062a05,
    SENSE_CAPACITY_CHANGED = 0x062a09,
    SENSE_COMMANDS_CLEARED = 0x062f00, /* by another initiator */
};

/* What else sense data can say. */
struct scsi_sense_more {
    bool has_information, has_field, in_cdb, has_progress;
    uint64_t information; /* an LBA, or how far a comparison was */
    uint16_t field;       /* a byte of the CDB or the parameter list */
    uint16_t progress;    /* of 65536 */
};

enum { SENSE_BYTES = 40 };

/* Writes sense data of either format; returns its length, at most SENSE_BYTES. */
uint8_t scsi_sense_write(uint8_t *p, bool descriptor, enum scsi_sense code,
                         const struct scsi_sense_more *more);
/* CHECK CONDITION with it, in the format that the unit is set to. */
void scsi_sense_set(struct scsi_task *t, enum scsi_sense code, const struct scsi_sense_more *more);
