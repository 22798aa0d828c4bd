/*
 * orlop-controller: flags, and the controllers until it is told to stop.
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "admission/admission.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/str.h"
#include "cmd/flags.h"
#include "controllers/controllers.h"
#include "controllers/jiva/jiva.h"
#include "k8s/controllers/embedded.h"

enum { HEALTH_PORT = 10281, WEBHOOK_PORT = 9443, QPS = 500, BURST = 1000, RATE_MAX = 100000 };

enum elect { ELECT_AUTO, ELECT_YES, ELECT_NO };

struct settings {
    const char *controllers, *kubeconfig, *context, *ns, *lease_name;
    bool embedded;
    enum elect elect;
    int64_t lease_ns;
    const char *health_address;
    int health_port;
    unsigned qps, burst;
    bool webhook, webhook_remove;
    struct admission_options admission;
    enum log_format log_format;
    enum log_level log_level;
};

static int take_controllers(struct settings *s, const char *text, struct err *e)
{
    s->controllers = text;
    return controllers_check(text, e);
}

static int take_embedded(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->embedded, e);
}

static int take_kubeconfig(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->kubeconfig = text;
    return 0;
}

static int take_context(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->context = text;
    return 0;
}

static int take_namespace(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->ns = text;
    return 0;
}

static int take_elect(struct settings *s, const char *text, struct err *e)
{
    bool yes = true;
    if (text && str_eq(text, "auto"))
        s->elect = ELECT_AUTO;
    else if (flags_bool(text, &yes, NULL) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write true, false or auto, not \"%s\"",
                       text);
    else
        s->elect = yes ? ELECT_YES : ELECT_NO;
    return 0;
}

static int take_lease_name(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->lease_name = text;
    return 0;
}

static int take_lease_duration(struct settings *s, const char *text, struct err *e)
{
    if (flags_duration(text, &s->lease_ns, e) < 0)
        return -1;
    return s->lease_ns > 0 && s->lease_ns % CLOCK_SECOND == 0
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write whole seconds, at least one");
}

static int take_health_address(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->health_address = text;
    return 0;
}

static int take_health_port(struct settings *s, const char *text, struct err *e)
{
    unsigned port = 0;
    s->health_port = -1;
    if (str_eq(text, "off"))
        return 0;
    int status = flags_number(text, UINT16_MAX, &port, e);
    s->health_port = (int)port;
    return status;
}

static int take_qps(struct settings *s, const char *text, struct err *e)
{
    return flags_number(text, RATE_MAX, &s->qps, e);
}

static int take_burst(struct settings *s, const char *text, struct err *e)
{
    return flags_number(text, RATE_MAX, &s->burst, e);
}

static int take_webhook(struct settings *s, const char *text, struct err *e)
{
    s->webhook_remove = text && str_eq(text, "remove");
    return s->webhook_remove ? 0 : flags_bool(text, &s->webhook, e);
}

static int take_webhook_address(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->admission.address = text;
    return 0;
}

static int take_webhook_port(struct settings *s, const char *text, struct err *e)
{
    unsigned port = 0;
    int status = flags_number(text, UINT16_MAX, &port, e);
    s->admission.port = (int)port;
    return status;
}

static int take_webhook_service(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->admission.service = text;
    return 0;
}

static int take_webhook_url(struct settings *s, const char *text, struct err *e)
{
    s->admission.url = text;
    return str_starts_with(text, "https://")
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write https://HOST:PORT");
}

static int take_webhook_lifetime(struct settings *s, const char *text, struct err *e)
{
    return flags_duration(text, &s->admission.lifetime_ns, e);
}

static int take_webhook_check(struct settings *s, const char *text, struct err *e)
{
    return flags_duration(text, &s->admission.tick_ns, e);
}

static int take_webhook_on_stop(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->admission.remove_on_stop, e);
}

static int take_node_grace(struct settings *s, const char *text, struct err *e)
{
    (void)s;
    int64_t ns = 0;
    if (flags_duration(text, &ns, e) < 0)
        return -1;
    embedded_node_grace(ns);
    return 0;
}

static int take_jiva_dir(struct settings *s, const char *text, struct err *e)
{
    (void)s;
    jiva_settings.dir = text;
    return *text == '/' ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write a path from /");
}

static int take_image_prefix(struct settings *s, const char *text, struct err *e)
{
    (void)s;
    (void)e;
    jiva_settings.image_prefix = text;
    return 0;
}

static int take_rehome_after(struct settings *s, const char *text, struct err *e)
{
    (void)s;
    return flags_duration(text, &jiva_settings.rehome_ns, e);
}

static int take_rehome_most(struct settings *s, const char *text, struct err *e)
{
    (void)s;
    return flags_number(text, 1000, &jiva_settings.rehome_most, e);
}

static int take_log_format(struct settings *s, const char *text, struct err *e)
{
    return log_format_parse(text, &s->log_format, e);
}

static int take_log_level(struct settings *s, const char *text, struct err *e)
{
    return log_level_parse(text, &s->log_level, e);
}

static const struct flag table[] = {
    {"controllers", "LIST", take_controllers,
     "which controllers run: * is all of them, \"foo\" is foo, \"-foo\" all but it (*)"},
    {"embedded", "[=BOOL]", take_embedded,
     "also those that a cluster brings itself: beside orlop-apiserver only"},
    {"kubeconfig", "FILE", take_kubeconfig,
     "where the API is; else $KUBECONFIG, the Pod's own, ~/.kube/config"},
    {"context", "NAME", take_context, "the context of it to use; else its current one"},
    {"namespace", "NAME", take_namespace, "where the lease is; else the context's, or the Pod's"},
    {"leader-elect", "[=true|false|auto]", take_elect,
     "of several processes only one acts (auto: yes, unless it is --embedded\n"
     "and so alone)"},
    {"leader-elect-lease-name", "NAME", take_lease_name,
     "the Lease they agree with (orlop-controller)"},
    {"lease-duration", "TIME", take_lease_duration,
     "after which silence of the one another takes over (15s)"},
    {"health-address", "IP", take_health_address,
     "where /healthz, /readyz and /metrics are served (127.0.0.1)"},
    {"health-port", "PORT", take_health_port, "and on which port (10281); 0 is any, off is none"},
    {"webhook", "[=true|false|remove]", take_webhook,
     "also serve admission of our kinds; remove: take it out of the cluster, and end"},
    {"webhook-address", "IP", take_webhook_address, "where it listens (all addresses)"},
    {"webhook-port", "PORT", take_webhook_port, "and on which port (9443)"},
    {"webhook-service", "NAME", take_webhook_service,
     "the Service in --namespace by which it is reached (orlop-webhook)"},
    {"webhook-url", "URL", take_webhook_url,
     "in place of a Service: https://HOST:PORT, outside of a cluster"},
    {"webhook-certificate-lifetime", "TIME", take_webhook_lifetime,
     "of its certificate (8760h), which is renewed when a third is left"},
    {"webhook-check-period", "TIME", take_webhook_check,
     "how often certificates and configuration are looked at (10s)"},
    {"webhook-remove-on-stop", "[=BOOL]", take_webhook_on_stop,
     "when it ends, nobody is to ask it any more: its configuration goes, too"},
    {"node-monitor-grace-period", "TIME", take_node_grace,
     "how long a node may be silent (40s); node-lifecycle"},
    {"kube-api-qps", "NUMBER", take_qps, "requests a second to the API, at most (500)"},
    {"kube-api-burst", "NUMBER", take_burst, "and that many at once (1000)"},
    {"image-prefix", "TEXT", take_image_prefix,
     "in front of the images of pods that controllers make: host/path/"},
    {"jiva-dir", "DIR", take_jiva_dir,
     "on the nodes, where replicas of JivaVolumes have their folders\n"
     "(/var/lib/orlop/jiva)"},
    {"jiva-rehome-after", "TIME", take_rehome_after,
     "how long a node is silent before its replicas go to another (5m)"},
    {"jiva-rehome-most", "N", take_rehome_most,
     "volumes that are being re-homed at a time at most (2)"},
    {"log-format", "FORMAT", take_log_format, "text or json, on standard error"},
    {"log-level", "LEVEL", take_log_level, "error, warn, info or debug"},
    {0},
};

static int remove_webhook(const struct admission_options *o, struct err *e)
{
    const struct kube_client_options client = {.config = o->config,
                                               .field_manager = "orlop-webhook"};
    _cleanup_(kube_client_freep) struct kube_client *c = kube_client_new(&client, e);
    return c ? admission_remove(c, o, e) : -1;
}

static int run(const struct settings *s, const struct kube_config *config, int stop_fd,
               struct err *e)
{
    const struct kube_manager_options o = {
        .config = config,
        .name = "orlop-controller",
        .health_address = s->health_address,
        .health_port = s->health_port,
        .elect = s->elect == ELECT_YES || (s->elect == ELECT_AUTO && !s->embedded),
        .lease_ns = s->ns,
        .lease_name = s->lease_name,
        .lease_duration_ns = s->lease_ns,
        .qps = s->qps,
        .burst = s->burst,
    };
    struct admission_options admission = s->admission;
    admission.config = config;
    admission.ns = s->ns ? s->ns : config->ns;
    if (s->webhook_remove)
        return remove_webhook(&admission, e);
    _cleanup_(kube_manager_freep) struct kube_manager *m = kube_manager_new(&o, e);
    if (!m || controllers_setup(m, s->controllers, s->embedded, e) < 0 ||
        (s->webhook && admission_start(m, &admission, e) < 0))
        return -1;
    return kube_manager_run(m, stop_fd, e);
}

static void append_controllers(struct str *out)
{
    str_append(out,
               "Usage: orlop controller [OPTION]...\n\n"
               "Reconciles what the API says with what there is, in any Kubernetes cluster or\n"
               "beside orlop-apiserver. Controllers (* only with --embedded, or by name):\n\n");
    for (const struct controller *it = controllers; it->name; it++)
        str_appendf(out, "  %-28s %s %s\n", it->name, it->embedded ? "*" : " ", it->doc);
}

int main(int argc, char **argv)
{
    struct settings s = {
        .controllers = "*",
        .health_port = HEALTH_PORT,
        .qps = QPS,
        .burst = BURST,
        .admission = {.port = WEBHOOK_PORT},
        .log_format = LOG_FORMAT_TEXT,
        .log_level = LOG_LEVEL_INFO,
    };
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    _cleanup_(str_done) struct str usage = {0};
    append_controllers(&usage);
    const struct flags flags = {"orlop controller", str_get(&usage), table};
    int status = 0;
    if (!flags_parse(&flags, argc, argv, &s, &status))
        return status;
    log_init(STDERR_FILENO, s.log_format, s.log_level);
    struct err e = {0};
    struct kube_config config = {0};
    int stop_fd;
    if (stop_catch(&stop_fd, &e) < 0 ||
        kube_config_load(s.kubeconfig, s.context, &config, &e) < 0 ||
        run(&s, &config, stop_fd, &e) < 0) {
        fprintf(stderr, "orlop controller: %s\n", e.msg);
        status = 1;
    }
    kube_config_done(&config);
    return status;
}
