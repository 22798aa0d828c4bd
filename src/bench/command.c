/*
 * `orlop bench`: its command line, and what it says at the end.
 */
#include "bench/command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/quantity.h"
#include "base/str.h"
#include "bench/bench.h"

enum { RECONNECT_SECONDS = 300 }; /* the help says it too */

/* A number between two bounds; the default when it was not given. */
static bool take_number(const struct cli_args *args, const char *name, uint64_t otherwise,
                        uint64_t least, uint64_t most, uint64_t *ret)
{
    const char *text = cli_get(args, name);
    char *end;
    *ret = otherwise;
    if (!text)
        return true;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *ret >= least && *ret <= most)
        return true;
    cli_misuse(args, "--%s %s: a number from %llu to %llu is wanted", name, text,
               (unsigned long long)least, (unsigned long long)most);
    return false;
}

/* "4Ki", "1Gi", "512" */
static bool take_size(const struct cli_args *args, const char *name, uint64_t otherwise,
                      uint64_t *ret)
{
    const __int128 giga = 1000000000;
    const char *text = cli_get(args, name);
    struct quantity q;
    struct err e;
    *ret = otherwise;
    if (!text)
        return true;
    if (quantity_parse(text, &q, &e) < 0 || q.nano <= 0 || q.nano % giga) {
        cli_misuse(args, "--%s %s: a size such as 4Ki or 1Gi is wanted", name, text);
        return false;
    }
    *ret = (uint64_t)(q.nano / giga);
    return true;
}

/* Seconds, with a fraction if need be. */
static bool take_seconds(const struct cli_args *args, const char *name, double otherwise,
                         int64_t *ret_ns)
{
    const char *text = cli_get(args, name);
    char *end;
    double seconds = text ? strtod(text, &end) : otherwise;
    *ret_ns = (int64_t)(seconds * 1e9);
    if (!text || (*text && !*end && seconds >= 0 && seconds < 1e8))
        return true;
    cli_misuse(args, "--%s %s: a number of seconds is wanted", name, text);
    return false;
}

static bool take_work(const struct cli_args *args, struct bench_options *o)
{
    const char *expect = cli_get(args, "expect");
    bool fill = cli_get(args, "fill"), check = cli_get(args, "check");
    o->work = fill ? BENCH_FILL : check ? BENCH_CHECK : BENCH_MIX;
    o->expect_flushed = expect && str_eq(expect, "flushed");
    o->save_map = cli_get(args, "save-map");
    o->load_map = cli_get(args, "load-map");
    o->verify = cli_get(args, "verify") || check || o->save_map || o->load_map;
    if (fill && check)
        cli_misuse(args, "--fill writes and --check reads; run one after the other");
    else if (check && !o->load_map)
        cli_misuse(args, "--check needs --load-map FILE, to know what has to be there");
    else
        return true;
    return false;
}

static bool take_options(const struct cli_args *args, struct bench_options *o)
{
    uint64_t sessions, depth, reads, flush, block;
    const char *pattern = cli_get(args, "pattern"), *initiator = cli_get(args, "initiator");
    if (!take_number(args, "sessions", 1, 1, 64, &sessions) ||
        !take_number(args, "depth", 1, 1, 1024, &depth) ||
        !take_number(args, "read", 100, 0, 100, &reads) ||
        !take_number(args, "flush-every", 0, 1, UINT32_MAX, &flush) ||
        !take_number(args, "count", 0, 1, UINT64_MAX, &o->count) ||
        !take_number(args, "seed", (uint64_t)getpid(), 0, UINT64_MAX, &o->seed) ||
        !take_size(args, "block-size", 4096, &block) || !take_size(args, "span", 0, &o->span) ||
        !take_work(args, o))
        return false;
    bool unbounded = o->count || o->work != BENCH_MIX;
    if (!take_seconds(args, "time", unbounded ? 0 : 10, &o->time_ns) ||
        !take_seconds(args, "warm-up", 0, &o->warm_up_ns) ||
        !take_seconds(args, "reconnect-for", RECONNECT_SECONDS, &o->reconnect_ns))
        return false;
    if (!cli_get(args, "reconnect"))
        o->reconnect_ns = 0;
    if (block % BENCH_SECTOR || block > (8 << 20)) {
        cli_misuse(args, "--block-size: a multiple of 512 bytes is wanted, up to 8Mi");
        return false;
    }
    o->sessions = (unsigned)sessions;
    o->depth = (unsigned)depth;
    o->read_percent = (unsigned)reads;
    o->flush_every = (unsigned)flush;
    o->block_size = (uint32_t)block;
    o->pattern = pattern && str_eq(pattern, "sequential") ? BENCH_SEQUENTIAL : BENCH_RANDOM;
    o->initiator = initiator ? initiator : "iqn.2026-01.io.orlop:bench";
    o->fua = cli_get(args, "fua");
    o->header_digest = cli_get(args, "header-digest");
    o->keep_going = cli_get(args, "keep-going");
    o->progress = isatty(STDERR_FILENO);
    o->url = args->words[1];
    return true;
}

int bench_command(const struct cli_args *args)
{
    struct bench_options o = {0};
    static struct bench_result r;
    struct err e;
    const char *format = cli_get(args, "output");
    signal(SIGPIPE, SIG_IGN); /* a target that dies is an error, and the map is still to be saved */
    if (!str_eq(args->words[0], "iscsi"))
        return cli_misuse(args, "'%s' cannot be measured; write iscsi", args->words[0]);
    if (!take_options(args, &o))
        return CLI_USAGE;
    if (bench_run(&o, &r, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (format && str_eq(format, "json"))
        bench_report_json(&o, &r);
    else
        bench_report_text(&o, &r);
    if (r.first_finding[0])
        cli_fail(args, "%s", r.first_finding);
    if (r.first_error[0])
        cli_fail(args, "%s", r.first_error);
    int status = cli_finish(args);
    return r.first_finding[0] || r.errors ? CLI_FAILED : status;
}
