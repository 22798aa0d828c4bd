/*
 * orlop-node: flags, and the agent of a node until it is told to stop. It also runs itself as a child
 * for what touches a device: "probe PATH" and "wipe PATH".
 */
#include "node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/str.h"
#include "cmd/flags.h"
#include "k8s/kubelet/pods.h"
#include "k8s/kubelet/services.h"
#include "node/join.h"
#include "node/wipe.h"

enum { HEALTH_PORT = 10282, TEXT_MAX = 64 << 10 };

struct settings {
    struct node_options node;
    struct node_join_options join;
    const char *token_file, *ca_file;
    bool again; /* with other credentials */
    const char *kubeconfig, *context;
    bool run_pods;
    struct node_pods_options pods;
    const char *health_address;
    int health_port;
    enum log_format log_format;
    enum log_level log_level;
    bool paths_given;  /* --exclude-paths: in place of the usual ones */
    VEC(char *) texts; /* what flags were cut up into */
    char host[256], libexec[PATH_MAX];
};

/* A copy that may be cut up and lives as long as the program. */
static char *copy(struct settings *s, const char *text)
{
    vec_push(&s->texts, mem_strdup(text));
    return vec_last(&s->texts);
}

#define TAKE_TEXT(name, member)                                                                    \
    static int name(struct settings *s, const char *text, struct err *e)                           \
    {                                                                                              \
        (void)e;                                                                                   \
        s->member = text;                                                                          \
        return 0;                                                                                  \
    }
TAKE_TEXT(take_name, node.name)
TAKE_TEXT(take_kubeconfig, kubeconfig)
TAKE_TEXT(take_context, context)
TAKE_TEXT(take_data_dir, node.data_dir)
TAKE_TEXT(take_namespace, node.ns)
TAKE_TEXT(take_address, node.address)
TAKE_TEXT(take_pod_cidr, node.pod_cidr)
TAKE_TEXT(take_libexec, pods.libexec)
TAKE_TEXT(take_health_address, health_address)
TAKE_TEXT(take_join, join.url)
TAKE_TEXT(take_token, join.token)
TAKE_TEXT(take_token_file, token_file)
TAKE_TEXT(take_ca_file, ca_file)
TAKE_TEXT(take_ca_hash, join.ca_hash)
TAKE_TEXT(take_classes, node.lvs.classes_file)

static int take_run_pods(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->run_pods, e);
}

static int take_host_commands(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->pods.allow_host_commands, e);
}

static int take_stop_pods(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->pods.stop_on_exit, e);
}

static int take_sparse(struct settings *s, const char *text, struct err *e)
{
    return node_sparse_parse(text, &s->node.sparse, e);
}

static int take_vg_disks(struct settings *s, const char *text, struct err *e)
{
    return node_sparse_parse(text, &s->node.lvs.disks, e);
}

static int take_reclaim(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->node.lvs.reclaim_orphans, e);
}

static int take_orphan_grace(struct settings *s, const char *text, struct err *e)
{
    return flags_duration(text, &s->node.lvs.orphan_grace_ns, e);
}

static int take_audit(struct settings *s, const char *text, struct err *e)
{
    return flags_duration(text, &s->node.lvs.audit_ns, e);
}

/* Patterns with commas between them; they may be given several times. */
#define TAKE_LIST(name, member)                                                                    \
    static int name(struct settings *s, const char *text, struct err *e)                           \
    {                                                                                              \
        char *save = NULL;                                                                         \
        (void)e;                                                                                   \
        for (char *it = strtok_r(copy(s, text), ",", &save); it; it = strtok_r(NULL, ",", &save))  \
            vec_push(&s->node.filter.member, it);                                                  \
        return 0;                                                                                  \
    }
TAKE_LIST(take_include_paths, include_paths)
TAKE_LIST(add_exclude_paths, exclude_paths)
TAKE_LIST(take_include_vendors, include_vendors)
TAKE_LIST(take_exclude_vendors, exclude_vendors)

static int take_exclude_paths(struct settings *s, const char *text, struct err *e)
{
    s->paths_given = true;
    return add_exclude_paths(s, text, e);
}

static int take_labels(struct settings *s, const char *text, struct err *e)
{
    return node_labels_parse(copy(s, text), &s->node, e);
}

static int take_discover(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->node.discover, e);
}

static int take_register(struct settings *s, const char *text, struct err *e)
{
    return flags_bool(text, &s->node.register_node, e);
}

static int take_rescan(struct settings *s, const char *text, struct err *e)
{
    if (flags_duration(text, &s->node.rescan_ns, e) < 0)
        return -1;
    return s->node.rescan_ns >= CLOCK_SECOND
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write at least a second");
}

static int take_lease(struct settings *s, const char *text, struct err *e)
{
    if (flags_duration(text, &s->node.lease_ns, e) < 0)
        return -1;
    return s->node.lease_ns >= 4 * CLOCK_SECOND
               ? 0
               : err_set(e, ERR_INVALID_ARGUMENT, "Usage", "write at least 4s");
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

static int take_log_format(struct settings *s, const char *text, struct err *e)
{
    return log_format_parse(text, &s->log_format, e);
}

static int take_log_level(struct settings *s, const char *text, struct err *e)
{
    return log_level_parse(text, &s->log_level, e);
}

static const struct flag table[] = {
    {"name", "NAME", take_name, "name of the Node (the machine's)"},
    {"kubeconfig", "FILE", take_kubeconfig,
     "where the API is; else $KUBECONFIG, the Pod's own, ~/.kube/config"},
    {"context", "NAME", take_context, "the context of it to use; else its current one"},
    {"data-dir", "DIR", take_data_dir, "where the node keeps what is its own"},
    {"namespace", "NAME", take_namespace, "of BlockDevices and their claims (openebs)"},
    {"sparse-disks", "NxSIZE", take_sparse,
     "sparse files to offer as devices, such as 3x10Gi; they are never removed"},
    {"discover", "[=BOOL]", take_discover,
     "look for the machine's disks (true); of several nodes on one machine\n"
     "only one may"},
    {"include-paths", "GLOB,...", take_include_paths,
     "only disks with such a path or link, such as /dev/nvme*"},
    {"exclude-paths", "GLOB,...", take_exclude_paths,
     "no disks with such a path or link; in place of\n" NODE_EXCLUDED_PATHS},
    {"include-vendors", "GLOB,...", take_include_vendors, "only disks of these makers"},
    {"exclude-vendors", "GLOB,...", take_exclude_vendors, "no disks of these makers"},
    {"device-classes", "FILE", take_classes,
     "volume groups and thin pools for LogicalVolumes, as in TopoLVM's lvmd.yaml;\n"
     "without it the volume group orlop, if there is one"},
    {"vg-disks", "NxSIZE", take_vg_disks,
     "sparse files to make the volume group orlop of, such as 1x4Gi"},
    {"reclaim-orphans", "[=BOOL]", take_reclaim,
     "remove logical volumes of ours that belong to no object (false)"},
    {"orphan-grace", "TIME", take_orphan_grace, "but not before they were seen so long (600s)"},
    {"audit", "TIME", take_audit, "how often to compare LVM with the API (300s)"},
    {"rescan", "TIME", take_rescan, "how often to look for what the kernel did not tell of (60s)"},
    {"register-node", "[=BOOL]", take_register,
     "make the Node and renew its Lease (true); false where a kubelet does"},
    {"lease-duration", "TIME", take_lease,
     "how long the Lease tells of the node (40s); it is renewed four times as often"},
    {"address", "IP", take_address, "of the node (127.0.0.1)"},
    {"labels", "KEY=VALUE,...", take_labels, "more labels of the Node"},
    {"run-pods", "[=BOOL]", take_run_pods,
     "run the Pods of this node as processes (false): where there is no kubelet"},
    {"pod-cidr", "CIDR", take_pod_cidr, "addresses for its Pods; else they have the node's"},
    {"allow-host-commands", "[=BOOL]", take_host_commands,
     "let Pods that ask for it by annotation run commands of the machine (false)"},
    {"stop-pods-on-exit", "[=BOOL]", take_stop_pods,
     "end all containers when the agent stops (false)"},
    {"libexec", "DIR", take_libexec, "where orlop-shim and the programs of our images are"},
    {"join", "URL", take_join,
     "become a node of the cluster there; the credentials are kept in the data folder"},
    {"token", "TOKEN", take_token, "to join with, once: `orlop token create` makes one"},
    {"token-file", "FILE", take_token_file, "the same from a file, which others cannot see in ps"},
    {"ca-file", "FILE", take_ca_file,
     "whom to trust when joining; else the cluster proves by the token who it is"},
    {"ca-hash", "sha256:HEX", take_ca_hash, "and its authority must have this public key"},
    {"health-address", "IP", take_health_address,
     "where /healthz, /readyz and /metrics are served (127.0.0.1)"},
    {"health-port", "PORT", take_health_port, "and on which port (10282); 0 is any, off is none"},
    {"log-format", "FORMAT", take_log_format, "text or json, on standard error"},
    {"log-level", "LEVEL", take_log_level, "error, warn, info or debug"},
    {0},
};

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

static int run(struct settings *s, const struct kube_config *config, int stop_fd, struct err *e)
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
    s->pods.address = s->node.address ? s->node.address : "127.0.0.1";
    s->pods.pod_cidr = s->node.pod_cidr;
    s->pods.data_dir = s->node.data_dir;
    if (s->run_pods && (node_pods_setup(m, &s->pods, e) < 0 || node_services_setup(m, e) < 0))
        return -1;
    return kube_manager_run(m, stop_fd, e);
}

/* Makes the kubeconfig if there is none that is good, and has it kept so. */
static int join(struct settings *s, int stop_fd, struct node_keeper **ret_keeper, struct err *e)
{
    _cleanup_(str_done) struct str token = {0}, ca = {0};
    _cleanup_free_ char *path = mem_printf("%s/kubeconfig", s->node.data_dir);
    s->join.kubeconfig = s->kubeconfig = copy(s, path);
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

static int join_and_run(struct settings *s, int stop_fd, struct err *e)
{
    struct kube_config config = {0};
    struct node_keeper *keeper = NULL;
    if (s->join.url && join(s, stop_fd, &keeper, e) < 0)
        return -1;
    int status = kube_config_load(s->kubeconfig, s->context, &config, e);
    if (status == 0)
        status = run(s, &config, stop_fd, e);
    kube_config_done(&config);
    s->again = node_keeper_stop(keeper);
    return status;
}

static int serve(struct settings *s)
{
    struct err e = {0};
    int stop_fd;
    if (stop_catch(&stop_fd, &e) == 0 && lock_folder(s->node.data_dir, &e) == 0 &&
        join_and_run(s, stop_fd, &e) == 0)
        return 0;
    if (e.code == ERR_CANCELLED)
        return 0;
    fprintf(stderr, "orlop node: %s\n", e.msg);
    return 1;
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

static void fill_in(struct settings *s)
{
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
    if (!s->paths_given)
        add_exclude_paths(s, NODE_EXCLUDED_PATHS, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && str_eq(argv[1], "probe"))
        return probe_main(argv[2]);
    if (argc == 3 && str_eq(argv[1], "wipe"))
        return wipe_main(argv[2]);
    struct settings s = {
        .node = {.ns = "openebs",
                 .data_dir = "/var/lib/orlop",
                 .program = "/proc/self/exe",
                 .discover = true,
                 .register_node = true},
        .health_port = HEALTH_PORT,
        .log_format = LOG_FORMAT_TEXT,
        .log_level = LOG_LEVEL_INFO,
    };
    mallopt(M_ARENA_MAX, 1); /* many threads, of which few work at a time */
    const struct flags flags = {
        "orlop node",
        "Usage: orlop node [OPTION]...\n\n"
        "The agent of a node: finds its block devices, gives them to those\n"
        "who claim them, and says that the node is alive. With --join and a\n"
        "token a machine becomes a node of a cluster.\n\n",
        table};
    int status = 0;
    if (flags_parse(&flags, argc, argv, &s, &status)) {
        fill_in(&s);
        log_init(STDERR_FILENO, s.log_format, s.log_level);
        status = serve(&s);
        if (status == 0 && s.again)
            execv("/proc/self/exe", argv); /* the lock went with close-on-exec */
    }
    node_filter_done(&s.node.filter);
    vec_done(&s.node.labels);
    vec_for_each(&s.texts, it)
        free(*it);
    vec_done(&s.texts);
    return status;
}
