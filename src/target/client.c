/*
 * show, grow and drain: what asks a target over its control socket.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/ask.h"
#include "base/quantity.h"
#include "base/str.h"
#include "json/json.h"
#include "target/target.h"

static const int64_t PATIENCE_NS = 30 * CLOCK_SECOND;

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static void print_class(const json_t *statistics, const char *name)
{
    const json_t *c = json_object_get(statistics, name);
    printf("  %-8s %12" PRIu64 " %16" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", name,
           number(c, "count"), number(c, "bytes"), number(c, "errors"),
           number(c, "p50Microseconds"), number(c, "p99Microseconds"));
}

static void print_statistics(const json_t *statistics)
{
    printf("  %-8s %12s %16s %8s %10s %10s\n", "", "COUNT", "BYTES", "ERRORS", "P50 us", "P99 us");
    static const char *const names[] = {"reads", "writes", "flushes", "others"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        print_class(statistics, names[i]);
}

static void print_volume(const json_t *v)
{
    const json_t *r;
    size_t i;
    printf("volume %s: %s, epoch %" PRIu64 ", acknowledged by %" PRIu64 " of %" PRIu64 "\n",
           json_str(v, "name"), json_str(v, "status"), number(v, "epoch"),
           number(v, "consistencyFactor"), number(v, "replicationFactor"));
    json_array_foreach(json_object_get(v, "replicaStatus"), i, r) {
        printf("  %s  %-24s  up %" PRIu64 " s, durable up to %s", json_str(r, "replicaId"),
               json_str(r, "mode"), number(r, "upTime"), json_str(r, "checkpointedIOSeq"));
        if (number(r, "rebuildPercent"))
            printf(", %" PRIu64 " %%, %" PRIu64 " s left", number(r, "rebuildPercent"),
                   number(r, "rebuildSecondsLeft"));
        if (number(r, "snapshotsMissing"))
            printf(", lacks %" PRIu64 " snapshots", number(r, "snapshotsMissing"));
        printf("\n");
    }
}

static void print_status(const json_t *o)
{
    char size[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)number(o, "size"), QUANTITY_BINARY_SI);
    const json_t *sessions = json_object_get(o, "sessions"), *s;
    size_t i;
    printf("%s  %s  %s:%" PRIu64 "%s%s\n", json_str(o, "iqn"), quantity_format(&q, size),
           json_str(o, "address"), number(o, "port"),
           json_is_true(json_object_get(o, "readOnly")) ? "  read-only" : "",
           json_is_true(json_object_get(o, "draining")) ? "  draining" : "");
    if (json_str(o, "doing") && *json_str(o, "doing"))
        printf("%s is under way\n", json_str(o, "doing"));
    if (json_array_size(json_object_get(o, "snapshots")))
        printf("%zu snapshots\n", json_array_size(json_object_get(o, "snapshots")));
    if (json_object_get(o, "volumeStatus"))
        print_volume(json_array_get(json_object_get(o, "volumeStatus"), 0));
    else
        printf("store %s, %" PRIu64 " bytes used, blocks of %" PRIu64 ", %s\n",
               json_str(o, "store"), number(o, "used"), number(o, "blockSize"), json_str(o, "io"));
    printf("%zu sessions, %" PRIu64 " commands under way; %" PRIu64 " logins, %" PRIu64
           " refused\n",
           json_array_size(sessions), number(o, "commands"), number(o, "logins"),
           number(o, "loginFailures"));
    print_statistics(json_object_get(o, "statistics"));
    json_array_foreach(sessions, i, s) {
        printf("\n%s  %s  %" PRIu64 " s, %" PRIu64 " under way, at most %" PRIu64 "\n",
               json_str(s, "initiator"), json_str(s, "address"), number(s, "seconds"),
               number(s, "commands"), number(json_object_get(s, "statistics"), "deepestQueue"));
        print_statistics(json_object_get(s, "statistics"));
    }
}

int target_ask(const struct cli_args *args, const char *verb)
{
    const char *path = cli_get(args, "control"), *size_text = cli_get(args, "size"),
               *rate_text = cli_get(args, "rebuild-rate"), *name = cli_get(args, "name");
    _cleanup_(str_done) struct str request = {0}, answer = {0};
    json_auto_t *o = json_object();
    struct err e = {0};
    uint64_t size = 0;
    if (!path)
        return cli_misuse(args, "--control PATH is missing: the socket that `serve` was given");
    json_object_set_new(o, "command", json_string(verb));
    if (str_eq(verb, "grow")) {
        if (!size_text || quantity_parse_bytes(size_text, &size, &e) < 0)
            return cli_misuse(args, "grow needs --size, such as 20Gi");
        json_object_set_new(o, "size", json_integer((json_int_t)size));
    }
    if (str_eq(verb, "rate")) {
        if (!rate_text || quantity_parse_bytes(rate_text, &size, &e) < 0)
            return cli_misuse(args, "rate needs --rebuild-rate, such as 100Mi, or 0 for no limit");
        json_object_set_new(o, "bytes", json_integer((json_int_t)size));
    }
    if (!name &&
        (str_eq(verb, "snapshot") || str_eq(verb, "snapshot-delete") || str_eq(verb, "revert")))
        return cli_misuse(args, "%s needs --name, the snapshot's", verb);
    if (name)
        json_object_set_new(o, "name", json_string(name));
    if (cli_get(args, "replica"))
        json_object_set_new(o, "replica", json_string(cli_get(args, "replica")));
    if (cli_get(args, "force"))
        json_object_set_new(o, "force", json_true());
    if (cli_get(args, "instead"))
        json_object_set_new(o, "instead", json_string(cli_get(args, "instead")));
    json_format(o, &request);
    str_append_c(&request, '\n');
    if (ask_unix(path, &request, PATIENCE_NS, &answer, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    json_auto_t *got = json_parse(str_get(&answer), answer.len, NULL, &e);
    if (!got)
        return cli_fail(args, "%s", e.msg);
    if (json_str(got, "error"))
        return cli_fail(args, "%s", json_str(got, "error"));
    const char *output = cli_get(args, "output");
    if (output && str_eq(output, "json"))
        puts(answer.p);
    else if (str_eq(verb, "snapshots"))
        target_snapshots_print(json_object_get(got, "snapshots"));
    else
        print_status(got);
    return cli_finish(args);
}
