/*
 * `orlop bench`: from its settings to what it prints at the end.
 */
#include "bench/command.h"

#include <signal.h>
#include <unistd.h>

#include "base/str.h"

#define TIME_NS (10 * CLOCK_SECOND)

static int take_options(const struct cli_args *args)
{
    struct bench_settings *s = args->settings;
    struct bench_options *o = &s->o;
    o->work = s->fill ? BENCH_FILL : s->check ? BENCH_CHECK : BENCH_MIX;
    o->expect_flushed = str_eq(s->expect, "flushed");
    o->verify |= s->check || o->save_map || o->load_map;
    o->reconnect_ns = s->reconnect ? s->reconnect_for : 0;
    o->progress = isatty(STDERR_FILENO);
    o->url = args->words[1];
    if (!cli_given(args, &o->seed))
        o->seed = (uint64_t)getpid();
    if (!cli_given(args, &o->time_ns) && !o->count && o->work == BENCH_MIX)
        o->time_ns = TIME_NS;
    if (s->fill && s->check)
        return cli_misuse(args, "--fill writes and --check reads; run one after the other");
    if (s->check && !o->load_map)
        return cli_misuse(args, "--check needs --load-map FILE, to know what has to be there");
    if (o->block_size % BENCH_SECTOR || o->block_size > (8 << 20))
        return cli_misuse(args, "--block-size: write a multiple of 512 bytes, up to 8Mi");
    return CLI_DONE;
}

int bench_command(const struct cli_args *args)
{
    struct bench_settings *s = args->settings;
    static struct bench_result r;
    struct err e;
    signal(SIGPIPE, SIG_IGN); /* a target that dies is an error, and the map is still to be saved */
    int status = take_options(args);
    if (status != CLI_DONE)
        return status;
    if (bench_run(&s->o, &r, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (str_eq(s->output, "json"))
        bench_report_json(&s->o, &r);
    else
        bench_report_text(&s->o, &r);
    if (r.first_finding[0])
        cli_fail(args, "%s", r.first_finding);
    if (r.first_error[0])
        cli_fail(args, "%s", r.first_error);
    status = cli_finish(args);
    return r.first_finding[0] || r.errors ? CLI_FAILED : status;
}
