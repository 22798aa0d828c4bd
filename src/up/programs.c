#include "up/programs.h"

#include <dirent.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "k8s/kubelet/pods.h"
#include "up/cluster.h"

#define GRACE (5 * CLOCK_SECOND)

/* A command line that is put together: its words, owned. */
struct words {
    char **p;
    size_t len, cap;
};

static void add(struct words *w, char *word)
{
    vec_push(w, word);
}

static void add_flag(struct words *w, const char *name, char *value)
{
    add(w, mem_printf("--%s", name));
    add(w, value);
}

/*
 * Addresses on the loopback are the machine's: systems in different folders have ranges of their own, which
 * their folder's name gives, so that they seldom meet.
 *
 *     127.(10 + n).NODE.0/24                          pods
 *     127.(96 + n / 4).(64 * (n % 4)).0/18            services
 */
static unsigned own_range(const struct up_options *o)
{
    const char *folder = o->place->folder;
    return crc_32c(folder, strlen(folder)) % 64;
}

/* Makes the child and forgets the words. */
static void add_child(const struct up_options *o, const char *name, struct words *w,
                      struct up_child **children, size_t *n)
{
    _cleanup_free_ char *log = mem_printf("%s/logs/%s.log", o->place->folder, name);
    *children = mem_realloc_array(*children, *n + 1, sizeof(**children));
    add(w, NULL);
    up_child_init(&(*children)[(*n)++], name, (const char *const *)w->p, log);
    vec_for_each(w, word)
        free(*word);
    vec_done(w);
}

void up_programs_server(const struct up_options *o, struct up_child **children, size_t *n)
{
    struct words w = {0};
    add(&w, mem_printf("%s/orlop-apiserver", o->libexec));
    add_flag(&w, "data-dir", up_place_path(o->place, "apiserver"));
    add_flag(&w, "address", mem_strdup(o->address));
    add_flag(&w, "port", mem_printf("%u", o->port));
    add_flag(&w, "pod-logs", up_place_path(o->place, "nodes/{node}/pods"));
    add_flag(&w, "service-cluster-ip-range",
             mem_printf("127.%u.%u.0/18", 96 + own_range(o) / 4, own_range(o) % 4 * 64));
    add_child(o, "apiserver", &w, children, n);
    (*children)[*n - 1].wants_line = true;
}

void up_programs_stay(struct up_child *server, const char *url)
{
    const char *port = strrchr(url, ':');
    for (char **word = server->argv; port && *word; word++) {
        if (!str_eq(*word, "--port"))
            continue;
        free(word[1]);
        word[1] = mem_strdup(port + 1);
        return;
    }
}

static void add_controller(const struct up_options *o, struct up_child **children, size_t *n)
{
    struct words w = {0};
    add(&w, mem_printf("%s/orlop-controller", o->libexec));
    add_flag(&w, "kubeconfig", up_place_path(o->place, "apiserver/controller.kubeconfig"));
    add(&w, mem_strdup("--embedded"));
    add(&w, mem_strdup("--leader-elect=false"));
    add_flag(&w, "health-port", mem_strdup("0"));
    if (o->lost_after)
        add_flag(&w, "node-monitor-grace-period", mem_strdup(o->lost_after));
    if (o->rehome_after)
        add_flag(&w, "rehome-after", mem_strdup(o->rehome_after));
    add_flag(&w, "jiva-dir", up_place_path(o->place, "jiva"));
    add_child(o, "controller", &w, children, n);
}

static int add_node(const struct up_options *o, unsigned number, const char *url, const char *token,
                    struct up_child **children, size_t *n, struct err *e)
{
    struct words w = {0};
    char name[UP_NODE_NAME];
    up_node_name(number, name);
    _cleanup_free_ char *folder = mem_printf("%s/nodes/%s", o->place->folder, name);
    _cleanup_free_ char *token_file = mem_printf("%s/join-token", folder); /* others see words */
    if (file_make_dirs(folder, 0700, e) < 0 ||
        file_replace(token_file, token, strlen(token), 0600, e) < 0)
        return -1;
    add(&w, mem_printf("%s/orlop-node", o->libexec));
    add_flag(&w, "name", mem_strdup(name));
    add_flag(&w, "data-dir", mem_strdup(folder));
    add_flag(&w, "join", mem_strdup(url));
    add_flag(&w, "token-file", mem_strdup(token_file));
    add_flag(&w, "ca-file", up_place_path(o->place, "apiserver/pki/ca.crt"));
    add_flag(&w, "namespace", mem_strdup(UP_NAMESPACE));
    add_flag(&w, "address", mem_strdup("127.0.0.1"));
    add_flag(&w, "pod-cidr", mem_printf("127.%u.%u.0/24", 10 + own_range(o), number));
    add(&w, mem_strdup("--discover=false")); /* the machine's disks are not each node's */
    add(&w, mem_strdup("--run-pods"));
    add(&w, mem_strdup("--allow-host-commands"));
    add(&w, mem_strdup("--stop-pods-on-exit"));
    if (o->lost_after)
        add_flag(&w, "lease-duration", mem_strdup(o->lost_after));
    if (o->sparse_disks)
        add_flag(&w, "sparse-disks", mem_strdup(o->sparse_disks));
    if (o->vg_disks)
        add_flag(&w, "vg-disks", mem_strdup(o->vg_disks));
    add_flag(&w, "health-port", mem_strdup("0"));
    add_child(o, name, &w, children, n);
    return 0;
}

int up_programs_add(const struct up_options *o, const char *url, const char *token,
                    struct up_child **children, size_t *n, struct err *e)
{
    add_controller(o, children, n);
    for (unsigned i = 1; i <= o->nodes; i++) {
        if (add_node(o, i, url, token, children, n, e) < 0)
            return -1;
    }
    return 0;
}

void up_programs_clean(const struct up_options *o)
{
    _cleanup_free_ char *nodes = up_place_path(o->place, "nodes");
    DIR *dir = opendir(nodes);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        struct err e = {0};
        _cleanup_free_ char *folder = mem_printf("%s/%s", nodes, d->d_name);
        if (d->d_name[0] != '.' && node_pods_stop_all(folder, GRACE, &e) < 0)
            log_warn("what a node has left runs on", LOG_S("node", d->d_name), LOG_ERR(&e));
    }
    if (dir)
        closedir(dir);
}
