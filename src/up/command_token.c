#include <stdlib.h>

#include "base/str.h"
#include "kube/client.h"
#include "pki/cert.h"
#include "up/commands.h"
#include "up/place.h"
#include "up/token.h"

enum { DAY = 86400, MOST = 366 * DAY };

/* The administrator's config of a system that runs. */
static int load_config(const struct cli_args *args, struct kube_config *ret_config, struct err *e)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    if (up_place_open(cli_get(args, "data"), &place, e) < 0)
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

int up_command_token(const struct cli_args *args)
{
    struct err e = {0};
    struct kube_config config = {0};
    const char *ttl = cli_get(args, "ttl"), *description = cli_get(args, "description");
    char *end = NULL;
    unsigned long seconds = ttl ? strtoul(ttl, &end, 10) : DAY;
    if (!str_eq(args->words[0], "create"))
        return cli_misuse(args, "'%s' is not create", args->words[0]);
    if (ttl && (*ttl < '0' || *ttl > '9' || *end || !seconds || seconds > MOST))
        return cli_misuse(args, "--ttl takes seconds, from 1 to %d, not '%s'", MOST, ttl);
    int status = load_config(args, &config, &e);
    if (status == 0)
        status = create(&config, cli_get(args, "server"), description ? description : "orlop token",
                        (unsigned)seconds, &e);
    kube_config_done(&config);
    return status < 0 ? cli_fail(args, "%s", e.msg) : cli_finish(args);
}
