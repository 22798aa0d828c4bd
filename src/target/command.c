/*
 * `orlop target VERB`: the command line.
 */
#include "target/command.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/net.h"
#include "base/stop.h"
#include "base/str.h"

enum {
    PORT = 3260,
    REPLICA_PORT = 6060,
    METRICS_PORT = 9500,
    REPLICAS_MOST = REPL_MEMBERS,
    SECRET_FILE_MAX = 4096,
};

/* What options point into. */
struct memory {
    char *address, *metrics_address, *replica_address;
    struct str secret, target_secret;
    struct replio_key *key;
};

static void memory_done(struct memory *m)
{
    struct str *secrets[] = {&m->secret, &m->target_secret};
    for (size_t i = 0; i < 2; i++) {
        if (secrets[i]->p)
            explicit_bzero(secrets[i]->p, secrets[i]->len);
        str_done(secrets[i]);
    }
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

static int take_auth(struct target_settings *s, struct memory *m, struct err *e)
{
    const char *user = s->chap_user, *file = s->chap_secret;
    const char *target_user = s->mutual_user, *target_file = s->mutual_secret;
    if (!user != !file || !target_user != !target_file)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "a CHAP user and a file with the secret go together");
    if ((file && read_secret(file, &m->secret, e) < 0) ||
        (target_file && read_secret(target_file, &m->target_secret, e) < 0))
        return -1;
    s->o.auth = (struct iscsi_auth){
        .user = user,
        .secret = file ? m->secret.p : NULL,
        .target_user = target_user,
        .target_secret = target_file ? m->target_secret.p : NULL,
    };
    return 0;
}

/* Of whom the volume is made. */
static int take_first(const struct cli_list *names, struct target_options *o, struct err *e)
{
    for (size_t i = 0; i < names->len && i < REPLICAS_MOST; i++) {
        struct uuid id = uuid_of_name(names->p[i]);
        for (unsigned j = 0; j < o->first_n; j++)
            if (uuid_eq(&id, &o->first[j]))
                return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "--replica-ids names '%s' twice",
                               names->p[i]);
        o->first[o->first_n++] = id;
    }
    if (!names->len)
        return 0;
    return o->create && o->first_n == o->replicas
               ? 0
               : err_set(
                     e, ERR_INVALID_ARGUMENT, "Usage",
                     "--replica-ids names %u replicas: with --create, and as many as --replicas "
                     "says",
                     o->first_n);
}

/* What makes a volume a replicated one. */
static int take_replication(struct target_settings *s, struct memory *m, struct err *e)
{
    struct target_options *o = &s->o;
    if (net_parse(s->replica_listen, REPLICA_PORT, &m->replica_address, &o->replica_port, e) < 0)
        return -1;
    o->replica_address = m->replica_address;
    if (s->key_file && replio_key_read(s->key_file, &m->key, e) < 0)
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
    if (take_first(&s->replica_ids, o, e) < 0)
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

static int take_options(struct target_settings *s, struct memory *m, struct err *e)
{
    struct target_options *o = &s->o;
    o->io = s->io;
    o->block_size = str_eq(s->block_size, "4096") ? 4096 : 512;
    o->initiators = s->initiators.p;
    if (!o->iqn)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "serve needs --iqn");
    if (net_parse(s->portal, PORT, &m->address, &o->port, e) < 0 ||
        (s->metrics &&
         net_parse(s->metrics, METRICS_PORT, &m->metrics_address, &o->metrics_port, e) < 0))
        return -1;
    o->address = m->address;
    o->metrics_address = m->metrics_address;
    return take_replication(s, m, e) < 0 ? -1 : take_auth(s, m, e);
}

static int serve(const struct cli_args *args)
{
    struct target_settings *s = args->settings;
    struct memory m = {0};
    struct err e = {0};
    int stop_fd, status = CLI_DONE;
    cli_log_start(&s->log);
    if (take_options(s, &m, &e) < 0)
        status = cli_misuse(args, "%s", e.msg);
    else if (stop_catch(&stop_fd, &e) < 0 || target_serve(&s->o, stop_fd, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    memory_done(&m);
    return status;
}

int target_command(const struct cli_args *args)
{
    const char *verb = args->words[0];
    return str_eq(verb, "serve") ? serve(args) : target_ask(args, verb);
}
