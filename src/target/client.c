/*
 * What asks a target over its control socket, and prints what it says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ask.h"
#include "base/quantity.h"
#include "base/str.h"
#include "json/json.h"
#include "json/yaml.h"
#include "target/command.h"

/* What takes as long as it takes ends with the answer; who does not want to wait can interrupt, and it goes on. */
static const int64_t PATIENCE_NS = 30 * CLOCK_SECOND, FOR_EVER_NS = 31536000 * CLOCK_SECOND;

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

/* A position as people read it: epoch and count. */
static void print_position(const char *text)
{
    uint64_t pos = text ? strtoull(text, NULL, 10) : 0;
    printf("up to %" PRIu32 ":%" PRIu64, repl_pos_epoch(pos), repl_pos_count(pos));
}

static void print_replica(const json_t *r)
{
    const char *mode = json_str(r, "mode");
    printf("  %s  %-24s  %-15s  ", json_str(r, "replicaId"), mode,
           *json_str(r, "address") ? json_str(r, "address") : "-");
    if (str_eq(mode, "Offline"))
        printf("durable at least ");
    else
        printf("up %" PRIu64 " s, durable ", number(r, "upTime"));
    print_position(json_str(r, "checkpointedIOSeq"));
    if (str_eq(mode, "Rebuilding") || str_eq(mode, "ReconstructingNewReplica"))
        printf(", %" PRIu64 " %%, %" PRIu64 " s left", number(r, "rebuildPercent"),
               number(r, "rebuildSecondsLeft"));
    if (number(r, "snapshotsMissing"))
        printf(", lacks %" PRIu64 " of the snapshots", number(r, "snapshotsMissing"));
    if (number(r, "scrubErrors"))
        printf(", differed in %" PRIu64 " places", number(r, "scrubErrors"));
    printf("\n");
}

static void print_volume(const json_t *v)
{
    const json_t *replicas = json_object_get(v, "replicaStatus"),
                 *guests = json_object_get(v, "guests"), *it;
    uint64_t cf = number(v, "consistencyFactor"), rf = number(v, "replicationFactor");
    size_t i;
    printf("volume %s: %s", json_str(v, "name"), json_str(v, "status"));
    if (!json_array_size(replicas))
        printf(", waits for replicas at %s:%" PRIu64, json_str(v, "replicaAddress"),
               number(v, "replicaPort"));
    else
        printf(", epoch %" PRIu64 ", ", number(v, "epoch"));
    if (json_array_size(replicas) && json_is_true(json_object_get(v, "serving")))
        printf("writes are acknowledged by %" PRIu64 " of %" PRIu64, cf, rf);
    else if (json_array_size(replicas))
        printf("I/O waits until %" PRIu64 " of %" PRIu64 " are in sync", cf, rf);
    printf("\n");
    json_array_foreach(replicas, i, it)
        print_replica(it);
    json_array_foreach(guests, i, it)
        printf("  %s  %-24s  %s\n", json_str(it, "replicaId"),
               json_is_true(json_object_get(it, "blank")) ? "blank, no member" : "no member",
               json_str(it, "address"));
}

static void print_status(const json_t *o)
{
    char size[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)number(o, "size"), QUANTITY_BINARY_SI);
    const json_t *sessions = json_object_get(o, "sessions"), *s;
    size_t i;
    char portal[80] = "not served yet";
    if (json_is_true(json_object_get(o, "ready")))
        snprintf(portal, sizeof(portal), "%s:%" PRIu64, json_str(o, "address"), number(o, "port"));
    printf("%s  %s  %s%s%s\n", json_str(o, "iqn"), quantity_format(&q, size), portal,
           json_is_true(json_object_get(o, "readOnly")) ? "  read-only" : "",
           json_is_true(json_object_get(o, "draining")) ? "  draining" : "");
    if (json_str(o, "doing") && *json_str(o, "doing"))
        printf("%s is under way\n", json_str(o, "doing"));
    size_t snapshots = json_array_size(json_object_get(o, "snapshots"));
    if (snapshots)
        printf("%zu snapshot%s\n", snapshots, snapshots == 1 ? "" : "s");
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

/* Puts an option's text into the request. */
static void pass(json_t *o, const char *key, const char *text)
{
    if (text)
        json_object_set_new(o, key, json_string(text));
}

/* What the verbs need, and what is told of it. */
static int make_request(const struct cli_args *args, const char *verb, json_t *o)
{
    const struct target_settings *s = args->settings;
    const struct {
        const char *verb, *option, *what;
        bool given;
    } needs[] = {
        {"grow", "size", "such as 20Gi", cli_given(args, &s->o.size)},
        {"rate", "rebuild-rate", "such as 100Mi, or 0 for no limit",
         cli_given(args, &s->o.rebuild_rate)},
        {"snapshot", "name", "a name for the snapshot", s->name},
        {"snapshot-delete", "name", "the snapshot's name", s->name},
        {"revert", "name", "the snapshot's name", s->name},
        {"add", "replica", "the UUID in the file `id` of its folder", s->replica},
        {"remove", "replica", "its UUID, as `show` has it", s->replica},
    };
    for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
        if (str_eq(verb, needs[i].verb) && !needs[i].given)
            return cli_misuse(args, "%s needs --%s, %s", verb, needs[i].option, needs[i].what);
    json_object_set_new(o, "command", json_string(verb));
    if (str_eq(verb, "grow"))
        json_object_set_new(o, "size", json_integer((json_int_t)s->o.size));
    if (str_eq(verb, "rate"))
        json_object_set_new(o, "bytes", json_integer((json_int_t)s->o.rebuild_rate));
    pass(o, "name", s->name);
    pass(o, "replica", s->replica);
    pass(o, "instead", s->instead);
    if (s->force)
        json_object_set_new(o, "force", json_true());
    return CLI_DONE;
}

static void print_answer(const struct cli_args *args, const char *verb, const json_t *got)
{
    const struct target_settings *s = args->settings;
    _cleanup_(str_done) struct str text = {0};
    if (str_eq(s->output, "json"))
        json_format(got, &text);
    else if (str_eq(s->output, "yaml"))
        json_yaml_format(got, &text);
    else if (str_eq(verb, "snapshots"))
        target_snapshots_print(json_object_get(got, "snapshots"));
    else
        print_status(got);
    if (text.len)
        printf("%s%s", text.p, text.p[text.len - 1] == '\n' ? "" : "\n");
}

int target_ask(const struct cli_args *args, const char *verb)
{
    static const char *const quick[] = {"show", "snapshots", "rate", "drain", NULL};
    const struct target_settings *s = args->settings;
    const char *path = s->o.control;
    _cleanup_(str_done) struct str request = {0}, answer = {0};
    json_auto_t *o = json_object();
    struct err e = {0};
    if (!path)
        return cli_misuse(args, "--control PATH is missing: the socket that `serve` was given");
    int status = make_request(args, verb, o);
    if (status != CLI_DONE)
        return status;
    json_format(o, &request);
    str_append_c(&request, '\n');
    if (ask_unix(path, &request, str_in(verb, quick) ? PATIENCE_NS : FOR_EVER_NS, &answer, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    json_auto_t *got = json_parse(str_get(&answer), answer.len, NULL, &e);
    if (!got)
        return cli_fail(args, "%s", e.msg);
    if (json_str(got, "error"))
        return cli_fail(args, "%s", json_str(got, "error"));
    print_answer(args, verb, got);
    return cli_finish(args);
}
