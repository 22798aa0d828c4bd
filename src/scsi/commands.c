/*
 * The table of commands: all that is known of each without running it. Decoding, the gate (unit
 * attentions, reservations, medium, write protection), directions and lengths of data, and REPORT
 * SUPPORTED OPERATION CODES read it, so they cannot disagree.
 */
#include "scsi/inquiry.h"
#include "scsi/rw.h"

#define PROTECT                                                                                    \
    0xe0 /* RDPROTECT, WRPROTECT, VRPROTECT, ORPROTECT: there is no protection information */

/* ---- service actions ---- */

static const struct scsi_command service_in_16[] = {
    {"READ CAPACITY(16)", "9e 10 0000000000000000 ffffffff 00 07", .action = 0x10,
     .shape = SHAPE_16, .data = DATA_IN, .at = 10, .width = 4, .flags = FLAG_MEDIUM,
     .guard = GUARD_PUBLIC, .seconds = 10, .check = scsi_check_capacity,
     .run = scsi_run_read_capacity_16},
    {"GET LBA STATUS", "9e 12 ffffffffffffffff ffffffff 00 07", .action = 0x12, .shape = SHAPE_16,
     .data = DATA_IN, .at = 10, .width = 4, .flags = FLAG_MEDIUM | FLAG_THIN, .guard = GUARD_READ,
     .seconds = 10, .check = scsi_check_lba_status, .run = scsi_run_lba_status},
    {0},
};

static const struct scsi_command maintenance_in[] = {
    {"REPORT SUPPORTED OPERATION CODES", "a3 0c 87 ff ffff ffffffff 00 07", .action = 0x0c,
     .data = DATA_IN, .at = 6, .width = 4, .guard = GUARD_PUBLIC, .flags = FLAG_SANITIZE,
     .seconds = 10, .run = scsi_run_report_opcodes},
    {"REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", "a3 0d 80 000000 ffffffff 00 07", .action = 0x0d,
     .data = DATA_IN, .at = 6, .width = 4, .guard = GUARD_PUBLIC, .flags = FLAG_SANITIZE,
     .seconds = 10, .run = scsi_run_report_management},
    {0},
};

#define PR_IN(name_, action_)                                                                      \
    {                                                                                              \
        name_, "5e 1f 0000000000 ffff 07",                                                         \
            .action = action_, .data = DATA_IN, .at = 7, .width = 2, .flags = FLAG_SANITIZE,       \
            .guard = GUARD_PUBLIC, .seconds = 10, .run = scsi_run_pr_in                            \
    }
#define PR_OUT(name_, action_)                                                                     \
    {                                                                                              \
        name_, "5f 1f ff 0000 ffffffff 07",                                                        \
            .action = action_, .data = DATA_OUT, .at = 5, .width = 4, .flags = FLAG_SANITIZE,      \
            .guard = GUARD_SELF, .seconds = 30, .run = scsi_run_pr_out                             \
    }

static const struct scsi_command pr_in[] = {
    PR_IN("PERSISTENT RESERVE IN: READ KEYS", 0),
    PR_IN("PERSISTENT RESERVE IN: READ RESERVATION", 1),
    PR_IN("PERSISTENT RESERVE IN: REPORT CAPABILITIES", 2),
    PR_IN("PERSISTENT RESERVE IN: READ FULL STATUS", 3),
    {0},
};

static const struct scsi_command pr_out[] = {
    PR_OUT("PERSISTENT RESERVE OUT: REGISTER", 0),
    PR_OUT("PERSISTENT RESERVE OUT: RESERVE", 1),
    PR_OUT("PERSISTENT RESERVE OUT: RELEASE", 2),
    PR_OUT("PERSISTENT RESERVE OUT: CLEAR", 3),
    PR_OUT("PERSISTENT RESERVE OUT: PREEMPT", 4),
    PR_OUT("PERSISTENT RESERVE OUT: PREEMPT AND ABORT", 5),
    PR_OUT("PERSISTENT RESERVE OUT: REGISTER AND IGNORE EXISTING KEY", 6),
    PR_OUT("PERSISTENT RESERVE OUT: REGISTER AND MOVE", 7),
    {0},
};

#define SANITIZE(name_, action_, usage_)                                                           \
    {                                                                                              \
        name_, usage_, .action = action_, .data = DATA_OUT, .at = 7, .width = 2,                   \
                       .flags = FLAG_MEDIUM | FLAG_WRITES | FLAG_SANITIZE, .guard = GUARD_WRITE,   \
                       .seconds = 43200, .check = scsi_check_sanitize, .run = scsi_run_sanitize    \
    }

static const struct scsi_command sanitize[] = {
    SANITIZE("SANITIZE: OVERWRITE", 0x01, "48 bf 0000000000 ffff 07"),
    SANITIZE("SANITIZE: BLOCK ERASE", 0x02, "48 bf 0000000000 ffff 07"),
    SANITIZE("SANITIZE: EXIT FAILURE MODE", 0x1f, "48 bf 0000000000 ffff 07"),
    {0},
};

static const struct scsi_command copy_out[] = {
    {"EXTENDED COPY(LID1)", "83 00 0000000000000000 ffffffff 00 07", .data = DATA_OUT, .at = 10,
     .width = 4, .flags = FLAG_MEDIUM | FLAG_WRITES, .guard = GUARD_WRITE, .seconds = 600,
     .check = scsi_check_copy, .run = scsi_run_copy},
    {0},
};

#define COPY_RESULTS(name_, action_)                                                               \
    {                                                                                              \
        name_, "84 1f ff 00000000000000 ffffffff 00 07",                                           \
            .action = action_, .data = DATA_IN, .at = 10, .width = 4, .guard = GUARD_READ,         \
            .seconds = 10, .run = scsi_run_copy_results                                            \
    }

static const struct scsi_command copy_in[] = {
    COPY_RESULTS("RECEIVE COPY STATUS(LID1)", 0),
    COPY_RESULTS("RECEIVE COPY OPERATING PARAMETERS", 3),
    COPY_RESULTS("RECEIVE COPY FAILURE DETAILS(LID1)", 4),
    {0},
};

/* ---- everything ---- */

#define READ(name_, shape_, usage_)                                                                \
    {                                                                                              \
        name_, usage_, .shape = shape_, .data = DATA_IN_BLOCKS,                                    \
                       .refused = shape_ == SHAPE_6 ? 0 : PROTECT, .flags = FLAG_MEDIUM,           \
                       .guard = GUARD_READ, .seconds = 60, .run = scsi_run_read                    \
    }
#define WRITE(name_, shape_, usage_)                                                               \
    {                                                                                              \
        name_, usage_, .shape = shape_, .data = DATA_OUT_BLOCKS,                                   \
                       .refused = shape_ == SHAPE_6 ? 0 : PROTECT,                                 \
                       .flags = FLAG_MEDIUM | FLAG_WRITES, .guard = GUARD_WRITE, .seconds = 60,    \
                       .run = scsi_run_write                                                       \
    }
#define VERIFY(name_, shape_, usage_)                                                              \
    {                                                                                              \
        name_, usage_, .shape = shape_, .data = DATA_OUT_CHECK, .refused = PROTECT,                \
                       .flags = FLAG_MEDIUM, .guard = GUARD_READ, .seconds = 300,                  \
                       .check = scsi_check_verify, .run = scsi_run_verify                          \
    }
#define WRITE_VERIFY(name_, shape_, usage_)                                                        \
    {                                                                                              \
        name_, usage_, .shape = shape_, .data = DATA_OUT_BLOCKS, .refused = PROTECT,               \
                       .flags = FLAG_MEDIUM | FLAG_WRITES, .guard = GUARD_WRITE, .seconds = 60,    \
                       .check = scsi_check_verify, .run = scsi_run_write_verify                    \
    }
#define WRITE_SAME(name_, shape_, usage_)                                                          \
    {                                                                                              \
        name_, usage_, .shape = shape_, .data = DATA_OUT_BLOCK, .refused = PROTECT,                \
                       .flags = FLAG_MEDIUM | FLAG_WRITES, .guard = GUARD_WRITE, .seconds = 600,   \
                       .check = scsi_check_write_same, .run = scsi_run_write_same                  \
    }
#define SYNCHRONIZE(name_, shape_, usage_)                                                         \
    {                                                                                              \
        name_, usage_, .shape = shape_, .flags = FLAG_MEDIUM, .guard = GUARD_WRITE, .seconds = 60, \
                       .run = scsi_run_synchronize                                                 \
    }
#define PREFETCH(name_, shape_, usage_)                                                            \
    {                                                                                              \
        name_, usage_, .shape = shape_, .flags = FLAG_MEDIUM, .guard = GUARD_READ, .seconds = 60,  \
                       .run = scsi_run_prefetch                                                    \
    }
#define MODE(name_, usage_, data_, at_, width_, run_)                                              \
    {                                                                                              \
        name_, usage_, .data = data_, .at = at_, .width = width_, .guard = GUARD_WRITE,            \
                       .seconds = 10, .run = run_                                                  \
    }

const struct scsi_command scsi_commands[256] = {
    [0x00] = {"TEST UNIT READY", "00 00000000 07", .flags = FLAG_MEDIUM, .guard = GUARD_PUBLIC,
              .seconds = 10, .run = scsi_run_test_unit_ready},
    [0x03] = {"REQUEST SENSE", "03 01 0000 ff 07", .data = DATA_IN, .at = 4, .width = 1,
              .flags = FLAG_ANY_TIME | FLAG_ANY_LUN, .guard = GUARD_FREE, .seconds = 10,
              .run = scsi_run_request_sense},
    [0x08] = READ("READ(6)", SHAPE_6, "08 1f ffff ff 07"),
    [0x0a] = WRITE("WRITE(6)", SHAPE_6, "0a 1f ffff ff 07"),
    [0x12] = {"INQUIRY", "12 01 ff ffff 07", .data = DATA_IN, .at = 3, .width = 2,
              .flags = FLAG_ANY_TIME | FLAG_ANY_LUN, .guard = GUARD_FREE, .seconds = 10,
              .run = scsi_run_inquiry},
    [0x15] = MODE("MODE SELECT(6)", "15 11 0000 ff 07", DATA_OUT, 4, 1, scsi_run_mode_select),
    [0x16] = {"RESERVE(6)", "16 00000000 07", .guard = GUARD_SELF, .seconds = 10,
              .run = scsi_run_reserve},
    [0x17] = {"RELEASE(6)", "17 00000000 07", .guard = GUARD_FREE, .seconds = 10,
              .run = scsi_run_release},
    [0x1a] = MODE("MODE SENSE(6)", "1a 08 ff ff ff 07", DATA_IN, 4, 1, scsi_run_mode_sense),
    [0x1b] = {"START STOP UNIT", "1b 01 00 0f f7 07", .guard = GUARD_WRITE, .seconds = 60,
              .check = scsi_check_start_stop, .run = scsi_run_start_stop},
    [0x1e] = {"PREVENT ALLOW MEDIUM REMOVAL", "1e 000000 03 07", .guard = GUARD_PUBLIC,
              .seconds = 10, .run = scsi_run_prevent_allow},
    [0x25] = {"READ CAPACITY(10)", "25 00 00000000 0000 00 07", .shape = SHAPE_10,
              .flags = FLAG_MEDIUM, .data = DATA_IN, .at = 8, .guard = GUARD_PUBLIC, .seconds = 10,
              .check = scsi_check_capacity, .run = scsi_run_read_capacity_10},
    [0x28] = READ("READ(10)", SHAPE_10, "28 18 ffffffff 1f ffff 07"),
    [0x2a] = WRITE("WRITE(10)", SHAPE_10, "2a 18 ffffffff 1f ffff 07"),
    [0x2e] = WRITE_VERIFY("WRITE AND VERIFY(10)", SHAPE_10, "2e 16 ffffffff 1f ffff 07"),
    [0x2f] = VERIFY("VERIFY(10)", SHAPE_10, "2f 16 ffffffff 1f ffff 07"),
    [0x34] = PREFETCH("PRE-FETCH(10)", SHAPE_10, "34 02 ffffffff 1f ffff 07"),
    [0x35] = SYNCHRONIZE("SYNCHRONIZE CACHE(10)", SHAPE_10, "35 06 ffffffff 1f ffff 07"),
    [0x37] = {"READ DEFECT DATA(10)", "37 00 1f 00000000 ffff 07", .data = DATA_IN, .at = 7,
              .width = 2, .flags = FLAG_MEDIUM, .guard = GUARD_READ, .seconds = 10,
              .run = scsi_run_read_defects},
    [0x41] = WRITE_SAME("WRITE SAME(10)", SHAPE_10, "41 18 ffffffff 1f ffff 07"),
    [0x42] = {"UNMAP", "42 01 00000000 1f ffff 07", .data = DATA_OUT, .at = 7, .width = 2,
              .flags = FLAG_MEDIUM | FLAG_WRITES | FLAG_THIN, .guard = GUARD_WRITE, .seconds = 60,
              .check = scsi_check_unmap, .run = scsi_run_unmap},
    [0x48] = {.actions = sanitize},
    [0x55] =
        MODE("MODE SELECT(10)", "55 11 0000000000 ffff 07", DATA_OUT, 7, 2, scsi_run_mode_select),
    [0x5a] =
        MODE("MODE SENSE(10)", "5a 18 ff ff 000000 ffff 07", DATA_IN, 7, 2, scsi_run_mode_sense),
    [0x5e] = {.actions = pr_in},
    [0x5f] = {.actions = pr_out},
    [0x83] = {.actions = copy_out},
    [0x84] = {.actions = copy_in},
    [0x88] = READ("READ(16)", SHAPE_16, "88 18 ffffffffffffffff ffffffff 1f 07"),
    [0x89] = {"COMPARE AND WRITE", "89 18 ffffffffffffffff 000000 ff 1f 07", .shape = SHAPE_16,
              .data = DATA_OUT_TWICE, .refused = PROTECT,
              .flags = FLAG_MEDIUM | FLAG_WRITES | FLAG_EXCLUSIVE, .guard = GUARD_WRITE,
              .seconds = 60, .check = scsi_check_compare, .run = scsi_run_compare_and_write},
    [0x8a] = WRITE("WRITE(16)", SHAPE_16, "8a 18 ffffffffffffffff ffffffff 1f 07"),
    [0x8b] = {"ORWRITE(16)", "8b 18 ffffffffffffffff ffffffff 1f 07", .shape = SHAPE_16,
              .data = DATA_OUT_BLOCKS, .refused = PROTECT,
              .flags = FLAG_MEDIUM | FLAG_WRITES | FLAG_EXCLUSIVE, .guard = GUARD_WRITE,
              .seconds = 60, .run = scsi_run_orwrite},
    [0x8e] =
        WRITE_VERIFY("WRITE AND VERIFY(16)", SHAPE_16, "8e 16 ffffffffffffffff ffffffff 1f 07"),
    [0x8f] = VERIFY("VERIFY(16)", SHAPE_16, "8f 16 ffffffffffffffff ffffffff 1f 07"),
    [0x90] = PREFETCH("PRE-FETCH(16)", SHAPE_16, "90 02 ffffffffffffffff ffffffff 1f 07"),
    [0x91] =
        SYNCHRONIZE("SYNCHRONIZE CACHE(16)", SHAPE_16, "91 06 ffffffffffffffff ffffffff 1f 07"),
    [0x93] = WRITE_SAME("WRITE SAME(16)", SHAPE_16, "93 19 ffffffffffffffff ffffffff 1f 07"),
    [0x9c] = {"WRITE ATOMIC(16)", "9c 18 ffffffffffffffff ffff ffff 1f 07", .shape = SHAPE_16,
              .data = DATA_OUT_BLOCKS, .refused = PROTECT,
              .flags = FLAG_MEDIUM | FLAG_WRITES | FLAG_EXCLUSIVE | FLAG_ATOMIC,
              .guard = GUARD_WRITE, .seconds = 60, .check = scsi_check_atomic,
              .run = scsi_run_write_atomic},
    [0x9e] = {.actions = service_in_16},
    [0xa0] = {"REPORT LUNS", "a0 00 ff 000000 ffffffff 00 07", .data = DATA_IN, .at = 6, .width = 4,
              .flags = FLAG_ANY_TIME | FLAG_ANY_LUN, .guard = GUARD_FREE, .seconds = 10,
              .run = scsi_run_report_luns},
    [0xa3] = {.actions = maintenance_in},
    [0xa8] = READ("READ(12)", SHAPE_12, "a8 18 ffffffff ffffffff 1f 07"),
    [0xaa] = WRITE("WRITE(12)", SHAPE_12, "aa 18 ffffffff ffffffff 1f 07"),
    [0xae] = WRITE_VERIFY("WRITE AND VERIFY(12)", SHAPE_12, "ae 16 ffffffff ffffffff 1f 07"),
    [0xaf] = VERIFY("VERIFY(12)", SHAPE_12, "af 16 ffffffff ffffffff 1f 07"),
    [0xb7] = {"READ DEFECT DATA(12)", "b7 1f ffffffff ffffffff 00 07", .data = DATA_IN, .at = 6,
              .width = 4, .flags = FLAG_MEDIUM, .guard = GUARD_READ, .seconds = 10,
              .run = scsi_run_read_defects},
};

const struct scsi_command *scsi_command_find(const struct scsi_unit *u, uint8_t opcode,
                                             uint16_t action, bool *ret_has_actions)
{
    const struct scsi_command *c = &scsi_commands[opcode];
    *ret_has_actions = c->actions;
    if (c->actions) {
        for (c = c->actions; c->name && c->action != action; c++)
            ;
    }
    if (!c->name || (c->flags & FLAG_THIN && !u->thin) ||
        (c->flags & FLAG_ATOMIC && !u->atomic_blocks))
        return NULL;
    return c;
}
