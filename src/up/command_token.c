#include "base/str.h"
#include "kube/client.h"
#include "pki/cert.h"
#include "up/commands.h"
#include "up/place.h"
#include "up/token.h"

/* The administrator's config of a system that runs. */
static int load_config(const struct cli_args *args, struct kube_config *ret_config, struct err *e)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    if (up_place_open(up_settings(args)->data, &place, e) < 0)
        return -1;
    _cleanup_free_ char *path = up_place_path(&place, "kubeconfig");
    if (kube_config_load(path, NULL, ret_config, e) < 0)
        return err_prefix(e, "there is no system in %s", place.folder);
    return 0;
}

static int create(const struct kube_config *config, const char *server, const char *description,
                  unsigned seconds, struct err *e)
{
    struct kube_client_options o = {.config = config, .field_manager = "orlop"};
    _cleanup_(kube_client_freep) struct kube_client *client = kube_client_new(&o, e);
    _cleanup_(str_done) struct str pin = {0};
    char token[UP_TOKEN_MAX];
    if (!client || up_token_create(client, description, seconds, token, e) < 0 ||
        pki_cert_pin(config->ca, &pin, e) < 0)
        return -1;
    printf("orlop node --join %s --token %s --ca-hash %s\n", server ? server : config->server,
           token, pin.p);
    return 0;
}

static int run_token(const struct cli_args *args)
{
    struct err e = {0};
    struct kube_config config = {0};
    const struct up_settings *s = args->settings;
    int status = load_config(args, &config, &e);
    if (status == 0)
        status = create(&config, s->server, s->description, (unsigned)(s->ttl / CLOCK_SECOND), &e);
    kube_config_done(&config);
    return status < 0 ? cli_fail(args, "%s", e.msg) : cli_finish(args);
}

static const struct cli_option options[] = {
    UP_DATA_OPTION,
    {"ttl", 0, "TIME", CLI_SECONDS, UP_AT(ttl), .def = "24h", .least = CLOCK_SECOND,
     .doc = "How long the token is valid; a number without a unit counts seconds."},
    {"server", 0, "URL", CLI_STRING, UP_AT(server),
     .doc = "The URL at which the other machine reaches the API; without it the one that this "
            "machine uses."},
    {"description", 0, "TEXT", CLI_STRING, UP_AT(description), .def = "orlop token",
     .doc = "What the token is for, as `kubectl get secrets` shows it."},
    {0},
};

CLI_COMMAND(token_command) = {
    .name = "token",
    .topic = CLI_MACHINE,
    .arguments = "create",
    .least = 1,
    .most = 1,
    .choices = CLI_WORDS("create"),
    .summary = "Create a token with which another machine can join",
    .doc =
        "Creates a bootstrap token and prints the command to run on the other machine. Whoever has "
        "the token can join a node while it is valid. The API must listen where that machine can "
        "reach it: see --listen of `orlop up`.",
    .settings = sizeof(struct up_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop token create --ttl 600", "One for the next ten minutes."},
            {NULL},
        },
    .run = run_token,
};
