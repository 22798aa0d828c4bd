/*
 * orlop-sidecar: flags, and looking after one volume's target until it is told to stop.
 */
#include "sidecar/sidecar.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cmd/flags.h"

struct settings {
    struct sidecar_options o;
    const char *kubeconfig;
    enum log_format log_format;
    enum log_level log_level;
};

static int take_kind(struct settings *s, const char *text, struct err *e)
{
    s->o.kind = sidecar_kind_find(text);
    return s->o.kind
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write JivaVolume, not \"%s\"", text);
}

static int take_namespace(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->o.ns = text;
    return 0;
}

static int take_name(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->o.name = text;
    return 0;
}

static int take_control(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->o.control = text;
    return 0;
}

static int take_kubeconfig(struct settings *s, const char *text, struct err *e)
{
    (void)e;
    s->kubeconfig = text;
    return 0;
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
    {"kind", "KIND", take_kind, "of the volume's object: JivaVolume"},
    {"namespace", "NAME", take_namespace, "where the object is"},
    {"name", "NAME", take_name, "what it is called"},
    {"control", "PATH", take_control, "the control socket of its target"},
    {"kubeconfig", "FILE", take_kubeconfig,
     "where the API is; else $KUBECONFIG, the Pod's own, ~/.kube/config"},
    {"log-format", "FORMAT", take_log_format, "text or json, on standard error"},
    {"log-level", "LEVEL", take_log_level, "error, warn, info or debug"},
    {0},
};

int main(int argc, char **argv)
{
    struct settings s = {.log_format = LOG_FORMAT_TEXT, .log_level = LOG_LEVEL_INFO};
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    const struct flags flags = {
        "orlop-sidecar",
        "Usage: orlop-sidecar --kind KIND --namespace NAME --name NAME --control PATH\n\n"
        "Runs beside the target of a volume: says in the volume's object how the target is,\n"
        "and tells the target what the object asks for.\n\n",
        table};
    int status = 0;
    if (!flags_parse(&flags, argc, argv, &s, &status))
        return status;
    if (!s.o.kind || !s.o.ns || !s.o.name || !s.o.control)
        return flags_usage(&flags, stderr);
    log_init(STDERR_FILENO, s.log_format, s.log_level);
    struct err e = {0};
    struct kube_config config = {0};
    int stop_fd;
    s.o.config = &config;
    if (stop_catch(&stop_fd, &e) < 0 || kube_config_load(s.kubeconfig, NULL, &config, &e) < 0 ||
        sidecar_run(&s.o, stop_fd, &e) < 0) {
        fprintf(stderr, "orlop-sidecar: %s\n", e.msg);
        status = 1;
    }
    kube_config_done(&config);
    return status;
}
