/*
 * bench. The work is done by orlop-bench; here is what people see of it: help, completion and the
 * command line.
 */
#include "cli/commands.h"

static const struct cli_option options[] = {
    {"depth", 'q', "N", .doc = "I/Os under way on each session at a time; 1 without it."},
    {"sessions", 's', "N", .doc = "Sessions, each with a connection of its own; 1 without it."},
    {"block-size", 'b', "SIZE", .doc = "Bytes of one I/O; 4Ki without it."},
    {"read", 'r', "PERCENT",
     .doc = "How many of a hundred read, the others write; 100 without it."},
    {"pattern", 'p', "PATTERN", .choices = (const char *const[]){"random", "sequential", NULL},
     .doc = "random (the default) or sequential; then each session has a part of its own."},
    {"time", 't', "SECONDS",
     .doc = "How long; 10 without it, if --count does not say when to end."},
    {"warm-up", 'w', "SECONDS", .doc = "How long before it counts."},
    {"count", 'n', "N", .doc = "How many I/Os."},
    {"span", 0, "SIZE", .doc = "How much of the volume, from its beginning; all of it without it."},
    {"fua", 0, .doc = "Each write is durable before it is acknowledged."},
    {"flush-every", 0, "N", .doc = "A SYNCHRONIZE CACHE after so many writes of a session."},
    {"fill", 0, .doc = "Write every block of the span once."},
    {"verify", 'V',
     .doc = "Write blocks that say which they are, under a checksum, and check what is read: lost, "
            "torn, misplaced and corrupt blocks are counted."},
    {"save-map", 0, "FILE", .complete = CLI_FILES,
     .doc = "Keep what was written, acknowledged and flushed."},
    {"load-map", 0, "FILE", .complete = CLI_FILES, .doc = "Go on with what was kept."},
    {"check", 0, .doc = "Read every block that the map knows once, and check it."},
    {"expect", 0, "WHAT", .choices = (const char *const[]){"acknowledged", "flushed", NULL},
     .doc = "What --check insists on: all that was acknowledged (the default), or, after a loss of "
            "power, all that was flushed."},
    {"seed", 0, "N", .doc = "Of the random pattern and of the data."},
    {"reconnect", 0,
     .doc = "Connect anew when the connection is lost, and go on with what was under way."},
    {"reconnect-for", 0, "SECONDS",
     .doc = "With --reconnect: how long the target may be away (300); then the run ends, and has "
            "failed."},
    {"keep-going", 'k', .doc = "Count errors and go on; without it the first ends the run."},
    {"header-digest", 0, .doc = "Checksums over the headers of the protocol."},
    {"initiator", 0, "NAME", .doc = "The initiator's name."},
    {"output", 'o', "FORMAT", .choices = (const char *const[]){"table", "json", NULL},
     .doc = "table (the default) or json."},
    {0},
};

const struct cli_command cli_bench = {
    .name = "bench",
    .arguments = "iscsi URL",
    .least = 2,
    .most = 2,
    .summary = "Load a volume over iSCSI, measure it and check its data",
    .doc =
        "Reads and writes a volume over iSCSI and shows how many I/Os a second it does and how "
        "long "
        "they take. Writing destroys what the volume holds. URL is iscsi://HOST[:PORT]/TARGET/LUN; "
        "for CHAP set LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD.\n\n"
        "With --verify the data is checked too, and with --save-map it can be checked again later, "
        "by another run, after the target was killed, moved or rebuilt.\n\n"
        "An interrupt ends the run as if its time were over.\n\n"
        "The exit status is 1 when an I/O failed or a block was not what it had to be.",
    .options = options,
    .choices = (const char *const[]){"iscsi", NULL},
    .examples =
        (const char *const[][2]){
            {"orlop bench iscsi iscsi://127.0.0.1/iqn.2026-01.io.orlop:vol/0 -q 32",
             "Random reads of 4 KiB, 32 at a time."},
            {"orlop bench iscsi URL -b 128Ki -p sequential -r 0 -q 32 -o json",
             "Sequential writes, for a script."},
            {"orlop bench iscsi URL -r 0 -q 8 --flush-every 64 --save-map m --reconnect",
             "Write, and keep what has to be there."},
            {"orlop bench iscsi URL --load-map m --check", "Whether it is."},
            {NULL},
        },
    .program = "bench",
};
