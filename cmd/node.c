/*
 * orlop-node: the agent of a node until it is told to stop. It also runs itself as a child for what
 * touches a device: "probe PATH" and "wipe PATH".
 */
#include "cmd/node.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/str.h"
#include "k8s/kubelet/services.h"
#include "node/wipe.h"

enum { TEXT_MAX = 64 << 10 };

static char **own_argv; /* to start again with other credentials */

/* One agent for a folder; the lock goes with the process. */
static int lock_folder(const char *folder, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/node.lock", folder);
    if (file_make_dirs(folder, 0700, e) < 0)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "Locked",
                       "another orlop-node works in %s; give each node a --data-dir of its own",
                       folder);
    return 0;
}

static int manage(struct node_settings *s, const struct kube_config *config, int stop_fd,
                  struct err *e)
{
    const struct kube_manager_options o = {
        .config = config,
        .name = "orlop-node",
        .host = s->node.name,
        .health_address = s->health_address,
        .health_port = s->health_port,
    };
    _cleanup_(kube_manager_freep) struct kube_manager *m = kube_manager_new(&o, e);
    if (!m || node_setup(m, &s->node, e) < 0)
        return -1;
    s->pods.node = s->node.name;
    s->pods.address = s->node.address;
    s->pods.pod_cidr = s->node.pod_cidr;
    s->pods.data_dir = s->node.data_dir;
    if (s->run_pods && (node_pods_setup(m, &s->pods, e) < 0 || node_services_setup(m, e) < 0))
        return -1;
    return kube_manager_run(m, stop_fd, e);
}

/* Makes the kubeconfig if there is none that is good, and has it kept so. */
static int join(struct node_settings *s, int stop_fd, struct node_keeper **ret_keeper,
                struct err *e)
{
    _cleanup_(str_done) struct str token = {0}, ca = {0};
    snprintf(s->own_kubeconfig, sizeof(s->own_kubeconfig), "%s/kubeconfig", s->node.data_dir);
    s->join.kubeconfig = s->kubeconfig = s->own_kubeconfig;
    s->join.name = s->node.name;
    struct node_join_options o = s->join;
    if ((s->token_file && file_read(s->token_file, TEXT_MAX, &token, e) < 0) ||
        (s->ca_file && file_read(s->ca_file, TEXT_MAX, &ca, e) < 0))
        return -1;
    if (token.len) {
        token.p[strcspn(token.p, " \n")] = '\0';
        o.token = token.p;
    }
    o.ca = ca.len ? ca.p : NULL;
    if (node_join_wait(&o, stop_fd, e) < 0)
        return -1;
    return node_keeper_start(&s->join, stop_ask, ret_keeper, e);
}

static int join_and_run(struct node_settings *s, int stop_fd, struct err *e)
{
    struct kube_config config = {0};
    struct node_keeper *keeper = NULL;
    if (s->join.url && join(s, stop_fd, &keeper, e) < 0)
        return -1;
    int status = kube_config_load(s->kubeconfig, s->context, &config, e);
    if (status == 0)
        status = manage(s, &config, stop_fd, e);
    kube_config_done(&config);
    s->again = node_keeper_stop(keeper);
    return status;
}

static int serve(const struct cli_args *args)
{
    struct node_settings *s = args->settings;
    struct err e = {0};
    int stop_fd;
    if (stop_catch(&stop_fd, &e) == 0 && lock_folder(s->node.data_dir, &e) == 0 &&
        join_and_run(s, stop_fd, &e) == 0)
        return CLI_DONE;
    return e.code == ERR_CANCELLED ? CLI_DONE : cli_fail(args, "%s", e.msg);
}

/* The children. */

static int probe_main(const char *path)
{
    struct node_probe probe;
    node_probe_read(path, &probe);
    node_probe_format(&probe, stdout);
    node_probe_done(&probe);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int wipe_main(const char *path)
{
    struct err e = {0};
    if (node_wipe(path, &e) == 0)
        return 0;
    fprintf(stderr, "%s\n", e.msg);
    return 1;
}

/* Names and places that were not given. */
static void fill_in(struct node_settings *s)
{
    s->node.program = "/proc/self/exe";
    if (!s->node.name) {
        if (gethostname(s->host, sizeof(s->host) - 1) < 0)
            strcpy(s->host, "localhost");
        for (char *c = s->host; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        s->node.name = s->host;
    }
    if (!s->pods.libexec) { /* where this program is, so are the others */
        ssize_t n = readlink("/proc/self/exe", s->libexec, sizeof(s->libexec) - 1);
        char *slash = n > 0 ? strrchr(s->libexec, '/') : NULL;
        if (slash)
            *slash = '\0';
        s->pods.libexec = slash ? s->libexec : "/usr/libexec/orlop";
    }
}

/* What the table cannot say. */
static int take_values(const struct cli_args *args)
{
    struct node_settings *s = args->settings;
    struct node_filter *f = &s->node.filter;
    struct err e = {0};
    if (s->sparse && node_sparse_parse(s->sparse, &s->node.sparse, &e) < 0)
        return cli_misuse(args, "--sparse-disks: %s", e.msg);
    if (s->vg_disks && node_sparse_parse(s->vg_disks, &s->node.lvs.disks, &e) < 0)
        return cli_misuse(args, "--vg-disks: %s", e.msg);
    for (size_t i = 0; i < s->labels.len; i++) {
        if (node_labels_parse((char *)(uintptr_t)s->labels.p[i], &s->node, &e) < 0)
            return cli_misuse(args, "--labels: %s", e.msg);
    }
#define TAKE(list)                                                                                 \
    for (size_t i = 0; i < s->list.len; i++)                                                       \
    vec_push(&f->list, s->list.p[i])
    TAKE(include_paths);
    TAKE(exclude_paths);
    TAKE(include_vendors);
    TAKE(exclude_vendors);
#undef TAKE
    return CLI_DONE;
}

static int run(const struct cli_args *args)
{
    struct node_settings *s = args->settings;
    int status = take_values(args);
    if (status == CLI_DONE) {
        fill_in(s);
        cli_log_start(&s->log);
        status = serve(args);
    }
    node_filter_done(&s->node.filter);
    vec_done(&s->node.labels);
    if (status == CLI_DONE && s->again)
        execv("/proc/self/exe", own_argv); /* the lock went with close-on-exec */
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 3 && str_eq(argv[1], "probe"))
        return probe_main(argv[2]);
    if (argc == 3 && str_eq(argv[1], "wipe"))
        return wipe_main(argv[2]);
    own_argv = argv;
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    return cli_program_main(argc, argv, (const struct cli_handler[]){{&node_command, run}, {NULL}});
}
