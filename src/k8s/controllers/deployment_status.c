/*
 * What a Deployment says of itself: counts, and the conditions Available and Progressing by which
 * `kubectl rollout status` knows that it is done, or that it never will be.
 */
#include <inttypes.h>

#include "base/rfc3339.h"
#include "k8s/controllers/deployment_impl.h"

static int64_t sum(const struct deploying *g, const char *part, const char *key)
{
    int64_t n = 0;
    size_t i;
    json_t *set;
    json_array_foreach(g->sets, i, set)
        n += pods_integer(set, part, key, 0);
    return n;
}

static void drop(json_t *status, const char *type)
{
    json_t *list = json_object_get(status, "conditions"), *it;
    size_t i;
    json_array_foreach(list, i, it) {
        const char *is = json_str(it, "type");
        if (is && str_eq(is, type)) {
            json_array_remove(list, i);
            return;
        }
    }
}

/*
 * Sets a condition, unless one with that status and reason is there; `always`: also then, since
 * lastUpdateTime says when it last moved.
 */
static void set(const struct deploying *g, json_t *status, const struct kube_condition *c,
                bool always)
{
    const json_t *is = json_find(json_object_get(status, "conditions"), "type", c->type);
    const char *before = json_str(is, "status"), *reason = json_str(is, "reason");
    bool same = before && str_eq(before, c->status);
    if (!always && same && reason && str_eq(reason, c->reason))
        return;
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(g->d->clock)), RFC3339_SECONDS, now);
    const char *since = same ? json_str(is, "lastTransitionTime") : NULL;
    json_t *made = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "type", c->type, "status", c->status,
                             "lastUpdateTime", now, "lastTransitionTime", since ? since : now,
                             "reason", c->reason, "message", c->message);
    drop(status, c->type);
    json_t *list = json_array_at(status, "conditions");
    json_array_append_new(list, made);
}

static bool complete(const struct deploying *g, const json_t *status)
{
    int64_t wanted = pods_integer(g->deployment, "spec", "replicas", 1);
    return json_integer_value(json_object_get(status, "updatedReplicas")) == wanted &&
           json_integer_value(json_object_get(status, "replicas")) == wanted &&
           json_integer_value(json_object_get(status, "availableReplicas")) == wanted;
}

static void put(json_t *status, const char *key, int64_t n)
{
    if (n)
        json_object_set_new(status, key, json_integer(n));
    else
        json_object_del(status, key);
}

static json_t *count(const struct deploying *g)
{
    json_t *status = kube_status_copy(g->deployment);
    int64_t available = sum(g, "status", "availableReplicas");
    int64_t missing = sum(g, "spec", "replicas") - available;
    put(status, "observedGeneration", kube_generation(g->deployment));
    put(status, "replicas", sum(g, "status", "replicas"));
    put(status, "updatedReplicas", pods_integer(deploying_new(g), "status", "replicas", 0));
    put(status, "readyReplicas", sum(g, "status", "readyReplicas"));
    put(status, "availableReplicas", available);
    put(status, "unavailableReplicas", missing > 0 ? missing : 0);
    put(status, "collisionCount", g->collisions);
    return status;
}

bool deploying_is_complete(const struct deploying *g)
{
    json_auto_t *status = count(g);
    return complete(g, status);
}

static int64_t number(const json_t *status, const char *key)
{
    return json_integer_value(json_object_get(status, key));
}

/* Whether pods of the new set became more, or better, or those of old ones less. */
static bool moved(const json_t *before, const json_t *now)
{
    return number(now, "updatedReplicas") > number(before, "updatedReplicas") ||
           number(now, "readyReplicas") > number(before, "readyReplicas") ||
           number(now, "availableReplicas") > number(before, "availableReplicas") ||
           number(now, "replicas") - number(now, "updatedReplicas") <
               number(before, "replicas") - number(before, "updatedReplicas");
}

/* How long it may still stand still, in ns; 0: too long already; < 0: there is no limit. */
static int64_t patience(const struct deploying *g, const json_t *progressing)
{
    int64_t seconds = pods_integer(g->deployment, "spec", "progressDeadlineSeconds", INT32_MAX);
    const char *since = json_str(progressing, "lastUpdateTime");
    struct timespec t;
    if (seconds == INT32_MAX || !since || rfc3339_parse(since, &t, NULL) < 0)
        return -1;
    _cleanup_free_ char *key = mem_printf("progress %s", kube_uid(g->deployment));
    int64_t left = seconds * CLOCK_SECOND + rfc3339_to_ns(t) -
                   kube_ages_now(g->d->ages, key, rfc3339_to_ns(t));
    return left > 0 ? left : 0;
}

static void set_progressing(const struct deploying *g, json_t *status, int64_t *ret_again_ns)
{
    const json_t *before = json_object_get(g->deployment, "status");
    const json_t *is = json_find(json_object_get(status, "conditions"), "type", "Progressing");
    const char *reason = json_str(is, "reason");
    const json_t *new = deploying_new(g);
    const char *name = new ? kube_name(new) : kube_name(g->deployment);
    const char *what = new ? "ReplicaSet" : "Deployment";
    if (g->progress) {
        const struct kube_condition news = {.type = "Progressing",
                                            .status = "True",
                                            .reason = json_str(g->progress, "reason"),
                                            .message = json_str(g->progress, "message")};
        set(g, status, &news, true);
        reason = json_str(g->progress, "reason");
    }
    bool done = reason && str_eq(reason, "NewReplicaSetAvailable") &&
                number(status, "replicas") == number(status, "updatedReplicas");
    if (done)
        return;
    _cleanup_free_ char *text = NULL;
    if (complete(g, status)) {
        text = mem_printf("%s \"%s\" has successfully progressed.", what, name);
        set(g, status,
            &(struct kube_condition){.type = "Progressing",
                                     .status = "True",
                                     .reason = "NewReplicaSetAvailable",
                                     .message = text},
            false);
        return;
    }
    int64_t left =
        patience(g, json_find(json_object_get(status, "conditions"), "type", "Progressing"));
    if (moved(before, status)) {
        text = mem_printf("%s \"%s\" is progressing.", what, name);
        set(g, status,
            &(struct kube_condition){.type = "Progressing",
                                     .status = "True",
                                     .reason = "ReplicaSetUpdated",
                                     .message = text},
            true);
    } else if (left == 0) {
        text = mem_printf("%s \"%s\" has timed out progressing.", what, name);
        set(g, status,
            &(struct kube_condition){.type = "Progressing",
                                     .status = "False",
                                     .reason = "ProgressDeadlineExceeded",
                                     .message = text},
            false);
    } else if (left > 0) {
        *ret_again_ns = left;
    }
}

static void set_available(const struct deploying *g, json_t *status)
{
    struct rollout r = rollout_of(g->deployment);
    bool enough = number(status, "availableReplicas") >= r.wanted - r.unavailable;
    const struct kube_condition available = {
        .type = "Available",
        .status = enough ? "True" : "False",
        .reason = enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
        .message = enough ? "Deployment has minimum availability."
                          : "Deployment does not have minimum availability.",
    };
    set(g, status, &available, false);
}

/* What a set could not do, the Deployment says as well. */
static void set_failure(const struct deploying *g, json_t *status)
{
    const json_t *failure = NULL;
    size_t i;
    json_t *it;
    json_array_foreach(g->sets, i, it) {
        if (!failure || i == g->new)
            failure = kube_condition_is_true(it, "ReplicaFailure")
                          ? kube_condition_get(it, "ReplicaFailure")
                          : failure;
    }
    if (!failure) {
        drop(status, "ReplicaFailure");
        return;
    }
    const char *reason = json_str(failure, "reason"), *message = json_str(failure, "message");
    set(g, status,
        &(struct kube_condition){.type = "ReplicaFailure",
                                 .status = "True",
                                 .reason = reason ? reason : "",
                                 .message = message ? message : ""},
        false);
}

/* Whether changes wait stands in Progressing as well, and the time does not run meanwhile. */
static void set_paused(const struct deploying *g, json_t *status)
{
    const char *reason =
        json_str(json_find(json_object_get(status, "conditions"), "type", "Progressing"), "reason");
    bool paused = json_is_true(json_at(g->deployment, "spec", "paused"));
    bool was = reason && str_eq(reason, "DeploymentPaused");
    if (reason && str_eq(reason, "ProgressDeadlineExceeded"))
        return;
    if (paused != was)
        set(g, status,
            &(struct kube_condition){.type = "Progressing",
                                     .status = "Unknown",
                                     .reason = paused ? "DeploymentPaused" : "DeploymentResumed",
                                     .message =
                                         paused ? "Deployment is paused" : "Deployment is resumed"},
            false);
}

int deploying_write_status(struct deploying *g, struct kube_result *ret, struct err *e)
{
    json_auto_t *status = count(g);
    bool paused = json_is_true(json_at(g->deployment, "spec", "paused"));
    if (pods_integer(g->deployment, "spec", "progressDeadlineSeconds", INT32_MAX) != INT32_MAX) {
        set_paused(g, status);
        if (!paused)
            set_progressing(g, status, &ret->again_ns);
    }
    set_available(g, status);
    set_failure(g, status);
    return kube_status_write(g->d->client, &g->d->deployments_r, &g->deployment, status, e);
}
