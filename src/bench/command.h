/*
 * `orlop bench`: its command line.
 */
#pragma once

#include "base/clock.h"
#include "bench/bench.h"
#include "cli/cli.h"

struct bench_settings {
    struct bench_options o;
    int64_t reconnect_for;
    bool fill, check, reconnect;
    const char *expect, *output;
};

#define BENCH_AT(member) CLI_AT(struct bench_settings, member)

static const struct cli_option bench_cli_options[] = {
    {"depth", 'q', "N", CLI_INT, BENCH_AT(o.depth), .def = "1", .least = 1, .most = 1024,
     .doc = "I/Os in flight on each session."},
    {"sessions", 's', "N", CLI_INT, BENCH_AT(o.sessions), .def = "1", .least = 1, .most = 64,
     .doc = "Sessions, each with a connection of its own."},
    {"block-size", 'b', "SIZE", CLI_SIZE, BENCH_AT(o.block_size), .def = "4Ki", .least = 1,
     .doc = "Bytes of one I/O: a multiple of 512, up to 8Mi."},
    {"read", 'r', "PERCENT", CLI_INT, BENCH_AT(o.read_percent), .def = "100", .most = 100,
     .doc = "How many of a hundred I/Os read; the others write."},
    {"pattern", 'p', "PATTERN", CLI_ENUM, BENCH_AT(o.pattern), .def = "random",
     .choices = CLI_WORDS("random", "sequential"),
     .doc = "Order of the blocks. With sequential each session has a part of its own."},
    {"time", 't', "TIME", CLI_SECONDS, BENCH_AT(o.time_ns),
     .doc = "How long to run; a number without a unit counts seconds. Without it 10s, unless "
            "--count says when to end."},
    {"warm-up", 'w', "TIME", CLI_SECONDS, BENCH_AT(o.warm_up_ns),
     .doc = "How long to run before measuring."},
    {"count", 'n', "N", CLI_INT, BENCH_AT(o.count), .least = 1, .most = UINT64_MAX,
     .doc = "How many I/Os to do."},
    {"span", 0, "SIZE", CLI_SIZE, BENCH_AT(o.span), .least = 1,
     .doc = "How much of the volume to use, from its beginning; without it all."},
    {"fua", 0, NULL, CLI_SWITCH, BENCH_AT(o.fua),
     .doc = "Make each write durable before it is acknowledged."},
    {"flush-every", 0, "N", CLI_INT, BENCH_AT(o.flush_every), .least = 1, .most = UINT32_MAX,
     .doc = "Send a SYNCHRONIZE CACHE after so many writes of a session."},
    {"fill", 0, NULL, CLI_SWITCH, BENCH_AT(fill), .doc = "Write every block of the span once."},
    {"verify", 'V', NULL, CLI_SWITCH, BENCH_AT(o.verify),
     .doc = "Write blocks that carry their address and a checksum, and check what is read: lost, "
            "torn, misplaced and corrupt blocks are counted."},
    {"save-map", 0, "FILE", CLI_FILE, BENCH_AT(o.save_map),
     .doc = "Save what was written, acknowledged and flushed."},
    {"load-map", 0, "FILE", CLI_FILE, BENCH_AT(o.load_map), .doc = "Continue with what was saved."},
    {"check", 0, NULL, CLI_SWITCH, BENCH_AT(check),
     .doc = "Read every block that the map knows once, and check it."},
    {"expect", 0, "WHAT", CLI_ENUM, BENCH_AT(expect), .def = "acknowledged",
     .choices = CLI_WORDS("acknowledged", "flushed"),
     .doc = "What --check insists on: all that was acknowledged, or, after a loss of power, all "
            "that was flushed."},
    {"seed", 0, "N", CLI_INT, BENCH_AT(o.seed), .most = UINT64_MAX,
     .doc = "Seed of the random pattern and of the data."},
    {"reconnect", 0, NULL, CLI_SWITCH, BENCH_AT(reconnect),
     .doc = "Connect again when the connection is lost, and continue with what was in flight."},
    {"reconnect-for", 0, "TIME", CLI_SECONDS, BENCH_AT(reconnect_for), .def = "300",
     .doc = "With --reconnect: how long the target may be away before the run fails."},
    {"keep-going", 'k', NULL, CLI_SWITCH, BENCH_AT(o.keep_going),
     .doc = "Count errors and go on; without it the first ends the run."},
    {"header-digest", 0, NULL, CLI_SWITCH, BENCH_AT(o.header_digest),
     .doc = "Use checksums for the headers of the protocol."},
    {"initiator", 0, "NAME", CLI_STRING, BENCH_AT(o.initiator), .def = "iqn.2026-01.io.orlop:bench",
     .doc = "The initiator's name."},
    {"output", 'o', "FORMAT", CLI_ENUM, BENCH_AT(output), .def = "table",
     .choices = CLI_WORDS("table", "json"), .doc = "Output format."},
    {0},
};

static const struct cli_command bench_row = {
    .name = "bench",
    .topic = CLI_OTHER,
    .arguments = "iscsi URL",
    .least = 2,
    .most = 2,
    .summary = "Load a volume over iSCSI, measure it and check its data",
    .doc = "Reads and writes a volume over iSCSI and shows how many I/Os a second it does and how "
           "long they take. Writing destroys what the volume holds. URL is "
           "iscsi://HOST[:PORT]/TARGET/LUN; for CHAP set LIBISCSI_CHAP_USERNAME and "
           "LIBISCSI_CHAP_PASSWORD.\n\n"
           "With --verify the data is checked, too, and with --save-map it can be checked again "
           "later, by another run, after the target was killed, moved or rebuilt.\n\n"
           "An interrupt ends the run as if its time were over.\n\n"
           "The exit status is 1 when an I/O failed or a block was not what it had to be.",
    .settings = sizeof(struct bench_settings),
    .options = bench_cli_options,
    .choices = CLI_WORDS("iscsi"),
    .examples =
        (const char *const[][2]){
            {"orlop bench iscsi iscsi://127.0.0.1/iqn.2026-01.io.orlop:vol/0 -q 32",
             "Random reads of 4 KiB, 32 at a time."},
            {"orlop bench iscsi URL -b 128Ki -p sequential -r 0 -q 32 -o json",
             "Sequential writes, for a script."},
            {"orlop bench iscsi URL -r 0 -q 8 --flush-every 64 --save-map m --reconnect",
             "Write, and save what has to be there."},
            {"orlop bench iscsi URL --load-map m --check", "Check that it is there."},
            {NULL},
        },
    .program = "bench",
};

int bench_command(const struct cli_args *args);
