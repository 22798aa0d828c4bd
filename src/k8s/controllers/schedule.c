#include "k8s/controllers/schedule.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/vec.h"
#include "k8s/controllers/pods.h"
#include "k8s/controllers/schedule_impl.h"
#include "kube/condition.h"
#include "kube/object.h"

enum { FULL = 100 };

void schedule_add_reason(struct schedule_reasons *r, const char *fmt, ...)
{
    va_list ap;
    if (r->n == ARRAY_SIZE(r->text))
        return;
    va_start(ap, fmt);
    vsnprintf(r->text[r->n++], sizeof(r->text[0]), fmt, ap);
    va_end(ap);
}

bool schedule_concerns(const json_t *pod)
{
    const char *scheduler = json_str(json_object_get(pod, "spec"), "schedulerName");
    return !*pods_node(pod) && pods_is_active(pod) &&
           (!scheduler || !*scheduler || str_eq(scheduler, "default-scheduler"));
}

bool schedule_tolerates(const json_t *tolerations, const json_t *taint, int64_t *ret_seconds)
{
    bool tolerated = false;
    size_t i;
    json_t *t;
    *ret_seconds = -1;
    json_array_foreach((json_t *)tolerations, i, t) {
        const char *effect = json_text(t, "effect"), *key = json_text(t, "key");
        bool exists = str_eq(json_text(t, "operator"), "Exists");
        if ((*effect && !str_eq(effect, json_text(taint, "effect"))) ||
            (*key && !str_eq(key, json_text(taint, "key"))) || (!*key && !exists) ||
            (!exists && !str_eq(json_text(t, "value"), json_text(taint, "value"))))
            continue;
        const json_t *seconds = json_object_get(t, "tolerationSeconds");
        int64_t n = json_is_integer(seconds) ? json_integer_value(seconds) : -1;
        if (n >= 0 && (*ret_seconds < 0 || n < *ret_seconds))
            *ret_seconds = n; /* of several the shortest counts */
        tolerated = true;
    }
    return tolerated;
}

static bool tolerates(const json_t *pod, const json_t *taint)
{
    int64_t seconds;
    return schedule_tolerates(json_at(pod, "spec", "tolerations"), taint, &seconds);
}

static void filter_taints(const json_t *pod, const json_t *node, struct schedule_reasons *r)
{
    json_auto_t *cordoned =
        json_pack("{s:s,s:s}", "key", "node.kubernetes.io/unschedulable", "effect", "NoSchedule");
    json_auto_t *not_ready =
        json_pack("{s:s,s:s}", "key", "node.kubernetes.io/not-ready", "effect", "NoSchedule");
    size_t i;
    json_t *taint;
    if (json_is_true(json_at(node, "spec", "unschedulable")) && !tolerates(pod, cordoned)) {
        schedule_add_reason(r, "node(s) were unschedulable");
        return;
    }
    json_array_foreach((json_t *)json_at(node, "spec", "taints"), i, taint) {
        if (str_eq(json_text(taint, "effect"), "PreferNoSchedule") || tolerates(pod, taint))
            continue;
        schedule_add_reason(r, "node(s) had untolerated taint {%.60s: %.20s}",
                            json_text(taint, "key"), json_text(taint, "value"));
        return;
    }
    /* Before somebody has put the taint on it. */
    if (!kube_condition_is_true(node, "Ready") && !tolerates(pod, not_ready))
        schedule_add_reason(r, "node(s) had untolerated taint {node.kubernetes.io/not-ready: }");
}

/* Whether a pod has a container that takes this port of the node. */
static bool takes_port(const json_t *pod, const json_t *port)
{
    size_t i, j;
    json_t *container, *own;
    json_array_foreach((json_t *)json_at(pod, "spec", "containers"), i, container) {
        json_array_foreach(json_object_get(container, "ports"), j, own) {
            const char *a = json_text(own, "hostIP"), *b = json_text(port, "hostIP");
            bool any = !*a || !*b || str_eq(a, "0.0.0.0") || str_eq(b, "0.0.0.0");
            if (json_integer_value(json_object_get(own, "hostPort")) ==
                    json_integer_value(json_object_get(port, "hostPort")) &&
                str_eq(json_text(own, "protocol"), json_text(port, "protocol")) &&
                (any || str_eq(a, b)))
                return true;
        }
    }
    return false;
}

static void filter_ports(const json_t *pod, const struct schedule_node *node,
                         struct schedule_reasons *r)
{
    size_t i, j, k;
    json_t *container, *port, *there;
    json_array_foreach((json_t *)json_at(pod, "spec", "containers"), i, container) {
        json_array_foreach(json_object_get(container, "ports"), j, port) {
            if (!json_integer_value(json_object_get(port, "hostPort")))
                continue;
            json_array_foreach((json_t *)node->pods, k, there) {
                if (takes_port(there, port)) {
                    schedule_add_reason(
                        r, "node(s) didn't have free ports for the requested pod ports");
                    return;
                }
            }
        }
    }
}

static void filter(const json_t *pod, const json_t *claims, const struct schedule_node *nodes,
                   size_t n, size_t node, struct schedule_reasons *ret_reasons)
{
    struct schedule_reasons *r = ret_reasons;
    const json_t *of = nodes[node].node;
    r->n = 0;
    filter_taints(pod, of, r);
    if (!r->n && !schedule_selects(pod, of))
        schedule_add_reason(r, "node(s) didn't match Pod's node affinity/selector");
    if (!r->n)
        filter_ports(pod, &nodes[node], r);
    if (!r->n)
        schedule_filter_resources(pod, &nodes[node], r);
    if (!r->n)
        schedule_filter_volumes(claims, of, r);
    if (!r->n)
        schedule_filter_pods(pod, nodes, n, node, r);
}

/* How many of its kind are there: of the same owner, or else with the same labels. */
static int64_t count_like(const json_t *pod, const struct schedule_node *node)
{
    const char *owner = kube_controller_uid(pod);
    int64_t like = 0;
    size_t i;
    json_t *there;
    json_array_foreach((json_t *)node->pods, i, there)
        like += *owner && str_eq(owner, kube_controller_uid(there));
    return like;
}

static int64_t disliked(const json_t *pod, const json_t *node)
{
    int64_t count = 0;
    size_t i;
    json_t *taint;
    json_array_foreach((json_t *)json_at(node, "spec", "taints"), i, taint)
        count += str_eq(json_text(taint, "effect"), "PreferNoSchedule") && !tolerates(pod, taint);
    return count;
}

/* What counts of a node that can have the pod. */
struct score {
    size_t node;
    int64_t like, affinity, disliked, room, pods;
};

/* A part of the best, out of 100. */
static int64_t share(int64_t value, int64_t low, int64_t high)
{
    return high > low ? (value - low) * FULL / (high - low) : FULL;
}

static int64_t total(const struct score *s, const struct score *low, const struct score *high)
{
    return 2 * (FULL - share(s->like, low->like, high->like)) * (high->like > low->like) +
           2 * share(s->affinity, low->affinity, high->affinity) +
           3 * (FULL - share(s->disliked, low->disliked, high->disliked)) *
               (high->disliked > low->disliked) +
           s->room;
}

static void widen(int64_t value, int64_t *low, int64_t *high)
{
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

/* The best of those that are left; of equals the one with the fewest pods, then the first. */
static size_t best_of(const struct score *scores, size_t n)
{
    struct score low = scores[0], high = scores[0];
    for (size_t i = 1; i < n; i++) {
        widen(scores[i].like, &low.like, &high.like);
        widen(scores[i].affinity, &low.affinity, &high.affinity);
        widen(scores[i].disliked, &low.disliked, &high.disliked);
    }
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        int64_t a = total(&scores[i], &low, &high), b = total(&scores[best], &low, &high);
        if (a > b || (a == b && scores[i].pods < scores[best].pods))
            best = i;
    }
    return scores[best].node;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." */
static void explain(json_t *counts, size_t n, struct str *out)
{
    VEC(char *) parts = {0};
    const char *reason;
    json_t *count;
    if (n == 0) {
        str_append(out, "no nodes available to schedule pods");
        return;
    }
    json_object_foreach(counts, reason, count)
        vec_push(&parts,
                 mem_printf("%" JSON_INTEGER_FORMAT " %s", json_integer_value(count), reason));
    if (parts.len)
        qsort(parts.p, parts.len, sizeof(*parts.p), by_text);
    str_appendf(out, "0/%zu nodes are available: ", n);
    for (size_t i = 0; i < parts.len; i++) {
        str_appendf(out, "%s%s", i ? ", " : "", parts.p[i]);
        free(parts.p[i]);
    }
    str_append_c(out, '.');
    vec_done(&parts);
}

size_t schedule_pick(const json_t *pod, const json_t *claims, const struct schedule_node *nodes,
                     size_t n, struct str *ret_why)
{
    VEC(struct score) scores = {0};
    json_auto_t *counts = json_object();
    for (size_t i = 0; i < n; i++) {
        struct schedule_reasons r = {0};
        filter(pod, claims, nodes, n, i, &r);
        for (size_t j = 0; j < r.n; j++) {
            json_int_t before = json_integer_value(json_object_get(counts, r.text[j]));
            json_object_set_new(counts, r.text[j], json_integer(before + 1));
        }
        if (r.n)
            continue;
        vec_push(&scores, (struct score){
                              .node = i,
                              .like = count_like(pod, &nodes[i]),
                              .affinity = schedule_score_affinity(pod, nodes, n, i),
                              .disliked = disliked(pod, nodes[i].node),
                              .room = schedule_score_room(pod, &nodes[i]),
                              .pods = (int64_t)json_array_size(nodes[i].pods),
                          });
    }
    size_t best = scores.len ? best_of(scores.p, scores.len) : n;
    if (best == n)
        explain(counts, n, ret_why);
    vec_done(&scores);
    return best;
}
