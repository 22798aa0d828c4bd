/*
 * `orlop target VERB`: the command line.
 */
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/net.h"
#include "base/quantity.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "cli/serving.h"
#include "target/target.h"

enum {
    PORT = 3260,
    REPLICA_PORT = 6060,
    METRICS_PORT = 9500,
    REPLICAS_MOST = REPL_MEMBERS,
    SCRUB_DAYS = 7,
    SECRET_FILE_MAX = 4096,
    DRAIN_SECONDS = 5
};

/* What options point into. */
struct memory {
    char *address, *metrics_address, *replica_address;
    struct str secret, target_secret;
    struct replio_key *key;
    VEC(char *) initiators;
};

static void memory_done(struct memory *m)
{
    struct str *secrets[] = {&m->secret, &m->target_secret};
    for (size_t i = 0; i < 2; i++) {
        if (secrets[i]->p)
            explicit_bzero(secrets[i]->p, secrets[i]->len);
        str_done(secrets[i]);
    }
    vec_for_each(&m->initiators, it)
        free(*it);
    vec_done(&m->initiators);
    free(m->address);
    free(m->metrics_address);
    free(m->replica_address);
    replio_key_free(m->key);
}

static int read_secret(const char *path, struct str *out, struct err *e)
{
    if (file_read(path, SECRET_FILE_MAX, out, e) < 0)
        return -1;
    out->p[strcspn(out->p, "\r\n")] = '\0';
    return 0;
}

static int take_auth(const struct cli_args *args, struct target_options *o, struct memory *m,
                     struct err *e)
{
    const char *user = cli_get(args, "chap-user"), *file = cli_get(args, "chap-secret-file");
    const char *target_user = cli_get(args, "mutual-user"),
               *target_file = cli_get(args, "mutual-secret-file");
    if (!user != !file || !target_user != !target_file)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "a CHAP user and a file with the secret go together");
    if ((file && read_secret(file, &m->secret, e) < 0) ||
        (target_file && read_secret(target_file, &m->target_secret, e) < 0))
        return -1;
    o->auth = (struct iscsi_auth){
        .user = user,
        .secret = file ? m->secret.p : NULL,
        .target_user = target_user,
        .target_secret = target_file ? m->target_secret.p : NULL,
    };
    return 0;
}

static int take_number(const struct cli_args *args, const char *name, unsigned most,
                       unsigned *ret_n, struct err *e)
{
    const char *text = cli_get(args, name);
    char *end;
    if (!text)
        return 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > most)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "--%s takes a number up to %u, not '%s'",
                       name, most, text);
    *ret_n = (unsigned)n;
    return 0;
}

static void take_initiators(const char *text, struct target_options *o, struct memory *m)
{
    if (!text)
        return;
    _cleanup_free_ char *copy = mem_strdup(text);
    char *save = NULL;
    for (char *it = strtok_r(copy, ",", &save); it; it = strtok_r(NULL, ",", &save))
        vec_push(&m->initiators, mem_strdup(it));
    vec_push(&m->initiators, NULL);
    o->initiators = (const char *const *)m->initiators.p;
}

/* Of whom the volume is made. */
static int take_first(const char *text, struct target_options *o, struct err *e)
{
    if (!text)
        return 0;
    _cleanup_free_ char *copy = mem_strdup(text);
    char *save = NULL;
    for (char *it = strtok_r(copy, ",", &save); it; it = strtok_r(NULL, ",", &save)) {
        struct uuid id = uuid_of_name(it);
        for (unsigned i = 0; i < o->first_n; i++)
            if (uuid_eq(&id, &o->first[i]))
                return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "--replica-ids names '%s' twice",
                               it);
        if (o->first_n == REPLICAS_MOST)
            break;
        o->first[o->first_n++] = id;
    }
    return o->create && o->first_n == o->replicas
               ? 0
               : err_set(
                     e, ERR_INVALID_ARGUMENT, "Usage",
                     "--replica-ids names %u replicas: with --create, and as many as --replicas "
                     "says",
                     o->first_n);
}

/* What makes a volume a replicated one. */
static int take_replication(const struct cli_args *args, struct target_options *o, struct memory *m,
                            struct err *e)
{
    const char *listen = cli_get(args, "replica-listen"), *rate = cli_get(args, "rebuild-rate");
    o->volume = cli_get(args, "volume");
    o->create = cli_get(args, "create") != NULL;
    o->scrub_days = SCRUB_DAYS;
    if (take_number(args, "replicas", REPLICAS_MOST, &o->replicas, e) < 0 ||
        take_number(args, "consistency", REPLICAS_MOST, &o->consistency, e) < 0 ||
        take_number(args, "fail-seconds", 86400, &o->fail_seconds, e) < 0 ||
        take_number(args, "scrub-days", 3650, &o->scrub_days, e) < 0 ||
        (rate && quantity_parse_bytes(rate, &o->rebuild_rate, e) < 0) ||
        net_parse(listen ? listen : "127.0.0.1", REPLICA_PORT, &m->replica_address,
                  &o->replica_port, e) < 0)
        return -1;
    o->replica_address = m->replica_address;
    const char *key = cli_get(args, "key-file");
    if (key && replio_key_read(key, &m->key, e) < 0)
        return -1;
    o->key = m->key;
    if (!o->volume == !o->store)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "serve needs --store for a local volume or --volume for a replicated one");
    if (o->volume && !o->key)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "a replicated volume needs --key-file: a file with the volume's key, which "
                       "its replicas get, too. Make one with `head -c 32 /dev/urandom | base64`");
    if (o->create && (!o->volume || !o->replicas || !o->size))
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "--create needs --volume, --replicas and --size");
    if (take_first(cli_get(args, "replica-ids"), o, e) < 0)
        return -1;
    unsigned majority = o->replicas / 2 + 1;
    if (!o->consistency)
        o->consistency = majority;
    if (o->create && (o->consistency < majority || o->consistency > o->replicas))
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "--consistency must be from %u, more than half, to %u, all", majority,
                       o->replicas);
    return 0;
}

static int take_options(const struct cli_args *args, struct target_options *o, struct memory *m,
                        struct err *e)
{
    const char *size = cli_get(args, "size"), *portal = cli_get(args, "portal"),
               *metrics = cli_get(args, "metrics"), *io = cli_get(args, "io");
    *o = (struct target_options){
        .store = cli_get(args, "store"),
        .iqn = cli_get(args, "iqn"),
        .alias = cli_get(args, "alias"),
        .serial = cli_get(args, "serial"),
        .block_size = 512,
        .read_only = cli_get(args, "read-only") != NULL,
        .removable = cli_get(args, "removable") != NULL,
        .control = cli_get(args, "control"),
        .state_dir = cli_get(args, "state-dir"),
        .drain_seconds = DRAIN_SECONDS,
    };
    if (!o->iqn)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "serve needs --iqn");
    if (size && quantity_parse_bytes(size, &o->size, e) < 0)
        return err_prefix(e, "--size");
    if (take_number(args, "block-size", 4096, &o->block_size, e) < 0 ||
        take_number(args, "drain-seconds", 3600, &o->drain_seconds, e) < 0 ||
        take_number(args, "lun", 255, &o->lun, e) < 0 ||
        (io && io_backend_parse(io, &o->io, e) < 0) ||
        net_parse(portal ? portal : "127.0.0.1", PORT, &m->address, &o->port, e) < 0 ||
        (metrics && net_parse(metrics, METRICS_PORT, &m->metrics_address, &o->metrics_port, e) < 0))
        return -1;
    o->address = m->address;
    o->metrics_address = m->metrics_address;
    take_initiators(cli_get(args, "initiators"), o, m);
    return take_replication(args, o, m, e) < 0 ? -1 : take_auth(args, o, m, e);
}

static int serve(const struct cli_args *args)
{
    struct memory m = {0};
    struct target_options o;
    struct err e = {0};
    int stop_fd, status = CLI_DONE;
    if (take_options(args, &o, &m, &e) < 0 || cli_log_init(args, &e) < 0)
        status = cli_misuse(args, "%s", e.msg);
    else if (stop_catch(&stop_fd, &e) < 0 || target_serve(&o, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    memory_done(&m);
    return status;
}

int target_command(const struct cli_args *args)
{
    const char *verb = args->words[0];
    if (str_eq(verb, "serve"))
        return serve(args);
    if (str_in(verb, cli_target.choices))
        return target_ask(args, verb);
    return cli_misuse(args, "'%s' is none of %s", verb, cli_target.arguments);
}
