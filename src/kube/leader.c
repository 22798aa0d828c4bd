/*
 * One thread tries, or renews, and waits. `until` is the promise: who finds it ahead of the clock
 * leads. It is set only from the time before a write that then succeeded, so it ends before the
 * others, who count the whole duration from when they first saw that write, may think of taking over.
 *
 *                      free, given back, or unchanged for its duration
 *     candidate  ------------------------------------------------------> write ---> leader
 *         ^ '--- retry                                       conflict |              | renews
 *         '------------------------------------------------------------'              |
 *                                  not renewed in time, or taken by somebody: lost, for good
 */
#include "kube/leader.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rfc3339.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/uuid.h"
#include "kube/backoff.h"
#include "kube/informer.h"
#include "metrics/metrics.h"

static const int64_t lease_default = 15 * CLOCK_SECOND;

struct kube_leader {
    struct kube_client *client;
    struct kube_resource resource;
    char *ns, *name, *identity;
    int64_t lease_ns, renew_ns, retry_ns;
    void (*elected)(void *context);
    void (*lost)(void *context);
    void *context;
    const struct clock *clock;
    struct metrics_series *status;
    _Atomic int64_t until; /* leads until then, by the clock that never sleeps */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping, changes; /* it is time to stop; the lease has changed, somebody says */
    /* The thread's own. */
    struct kube_informer *informer; /* tells candidates of changes; NULL: they look now and then */
    json_t *lease;                  /* as we wrote or read it; NULL: to be read again */
    json_t *seen;                   /* the last spec of others that we saw, */
    int64_t seen_at;                /* and since when it is like that */
    bool wrote, leads;              /* a write was sent; one succeeded */
};

static int64_t now_ns(const struct kube_leader *l)
{
    return clock_boot_ns(l->clock);
}

bool kube_leader_is(const struct kube_leader *l)
{
    return atomic_load(&l->until) > now_ns(l);
}

static double ask_status(void *context)
{
    return kube_leader_is(context) ? 1 : 0;
}

static char *make_identity(void)
{
    char host[HOST_NAME_MAX + 1] = "", text[UUID_TEXT_MAX];
    gethostname(host, sizeof(host) - 1);
    struct uuid u = uuid_random();
    return mem_printf("%s_%s", host, uuid_format(&u, text));
}

struct kube_leader *kube_leader_new(const struct kube_leader_options *o, struct err *e)
{
    int64_t lease = o->lease_ns ? o->lease_ns : lease_default;
    int64_t renew = o->renew_ns ? o->renew_ns : lease / 3 * 2;
    int64_t retry = o->retry_ns ? o->retry_ns : lease / 15 * 2;
    if (lease % CLOCK_SECOND || lease / CLOCK_SECOND > INT_MAX || retry <= 0 || renew <= retry ||
        lease <= renew) {
        err_set(e, ERR_INVALID_ARGUMENT, "LeaseDuration",
                "lease %s: its duration must be in whole seconds, longer than the time to renew "
                "it, and that longer than the time between two tries",
                o->name);
        return NULL;
    }
    struct kube_leader *l = NEW(struct kube_leader);
    l->client = o->client;
    l->resource = kube_resource("coordination.k8s.io/v1", "Lease");
    l->ns = mem_strdup(o->ns);
    l->name = mem_strdup(o->name);
    l->identity = o->identity ? mem_strdup(o->identity) : make_identity();
    l->lease_ns = lease;
    l->renew_ns = renew;
    l->retry_ns = retry;
    l->elected = o->elected;
    l->lost = o->lost;
    l->context = o->context;
    l->clock = o->clock ? o->clock : clock_system();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (o->metrics) {
        struct metrics_family *f =
            metrics_gauge(o->metrics, "leader_election_master_status",
                          "Gauge of if the reporting system is master of the relevant lease, 0 "
                          "indicates backup, 1 indicates master. 'name' is the string used to "
                          "identify the lease.",
                          METRICS_LABELS("name"));
        l->status = metrics_at(f, METRICS_VALUES(l->name));
        metrics_ask(l->status, ask_status, l);
    }
    return l;
}

void kube_leader_free(struct kube_leader *l)
{
    if (l->status)
        metrics_ask(l->status, NULL, NULL);
    json_decref(l->lease);
    json_decref(l->seen);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l->ns);
    free(l->name);
    free(l->identity);
    free(l);
}

/* The Lease. */

static const char *holder(const json_t *spec)
{
    return json_text(spec, "holderIdentity");
}

static bool is_ours(const struct kube_leader *l, const json_t *spec)
{
    /* What an earlier process of the same name left is not ours: it may still run. */
    return l->wrote && str_eq(holder(spec), l->identity);
}

static void forget(struct kube_leader *l)
{
    json_decref(l->lease);
    l->lease = NULL;
}

static int read_lease(struct kube_leader *l, struct err *e)
{
    forget(l);
    l->lease = kube_get(l->client, &l->resource, l->ns, l->name, e);
    if (!l->lease)
        return -1;
    json_t *spec = json_object_get(l->lease, "spec");
    if (!l->seen || !json_equal(spec, l->seen)) {
        json_decref(l->seen);
        l->seen = spec ? json_incref(spec) : json_object();
        l->seen_at = now_ns(l); /* later than it was written, so it lasts rather longer */
    }
    return 0;
}

/* When somebody else's lease is over. */
static int64_t expiry(const struct kube_leader *l)
{
    json_int_t seconds = json_integer_value(json_object_get(l->seen, "leaseDurationSeconds"));
    int64_t lasts = seconds > 0 && seconds <= INT_MAX ? seconds * CLOCK_SECOND : l->lease_ns;
    return l->seen_at + lasts;
}

/* A lease that somebody removed is still that of whom we saw. */
static bool is_free(const struct kube_leader *l)
{
    return !l->seen || !*holder(l->seen) || is_ours(l, l->seen) || now_ns(l) >= expiry(l);
}

/* Who leads only renews: what is free again was somebody else's meanwhile. */
static bool may_write(const struct kube_leader *l)
{
    if (!l->leads)
        return is_free(l);
    return !l->lease || is_ours(l, json_object_get(l->lease, "spec"));
}

/* What the lease shall be: ours, or given back. */
static json_t *make_lease(const struct kube_leader *l, bool ours)
{
    json_t *lease =
        l->lease ? json_deep_copy(l->lease)
                 : json_pack("{s:s,s:s,s:{s:s,s:s}}", "apiVersion", l->resource.api_version, "kind",
                             l->resource.kind, "metadata", "name", l->name, "namespace", l->ns);
    json_t *spec = json_object_at(lease, "spec");
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(l->clock)), RFC3339_MICRO, now);
    bool changes = !l->lease || !str_eq(holder(json_object_get(l->lease, "spec")), l->identity);
    if (ours && changes) {
        json_int_t n = json_integer_value(json_object_get(spec, "leaseTransitions"));
        json_object_set_new(spec, "leaseTransitions", json_integer(l->lease ? n + 1 : 0));
    }
    if (!ours || changes)
        json_object_set_new(spec, "acquireTime", json_string(now));
    json_object_set_new(spec, "renewTime", json_string(now));
    json_object_set_new(spec, "holderIdentity", json_string(ours ? l->identity : ""));
    json_object_set_new(spec, "leaseDurationSeconds",
                        json_integer(ours ? l->lease_ns / CLOCK_SECOND : 1));
    return lease;
}

static int write_lease(struct kube_leader *l, bool ours, struct err *e)
{
    json_auto_t *lease = make_lease(l, ours);
    int64_t sent = now_ns(l);
    l->wrote = true;
    json_t *now = l->lease ? kube_update(l->client, &l->resource, lease, NULL, e)
                           : kube_create(l->client, &l->resource, lease, NULL, e);
    forget(l);
    if (!now)
        return -1; /* or it was written and we do not know it: the next read will tell */
    l->lease = now;
    if (ours)
        atomic_store(&l->until, sent + l->renew_ns);
    return 0;
}

/* News of the lease, so that one that is given back is taken at once; nothing depends on them. */

static void on_change(void *context, const struct kube_object *old, const struct kube_object *now)
{
    struct kube_leader *l = context;
    (void)old, (void)now;
    pthread_mutex_lock(&l->lock);
    l->changes = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void listen_up(struct kube_leader *l)
{
    _cleanup_free_ char *fields = mem_printf("metadata.name=%s", l->name);
    const struct kube_informer_options o = {
        .client = l->client,
        .resource = l->resource,
        .ns = l->ns,
        .fields = fields,
        .clock = l->clock,
    };
    l->informer = kube_informer_new(&o, NULL);
    if (!l->informer)
        return;
    kube_informer_add_handler(l->informer, (struct kube_handler){on_change, l});
    kube_informer_start(l->informer, NULL);
}

static void listen_no_more(struct kube_leader *l)
{
    if (!l->informer)
        return;
    kube_informer_stop(l->informer);
    kube_informer_free(l->informer);
    l->informer = NULL;
}

/* The loop. */

/* Takes the lease or renews it, if that is possible; -1 with why not. */
static int attempt(struct kube_leader *l, struct err *e)
{
    if (!l->lease && read_lease(l, e) < 0 && e->code != ERR_NOT_FOUND)
        return -1;
    if (may_write(l))
        return write_lease(l, true, e);
    err_set(e, ERR_FAILED_PRECONDITION, "Held", "held by %s", holder(l->seen));
    forget(l);
    if (l->leads)
        atomic_store(&l->until, 0); /* it says that we do not, whoever did that */
    return -1;
}

static void try(struct kube_leader *l)
{
    struct err e = {0};
    int status = attempt(l, &e);
    if (status < 0 && (e.code == ERR_ABORTED || e.code == ERR_ALREADY_EXISTS)) {
        e = (struct err){0};
        status = attempt(l, &e); /* somebody changed it, perhaps only a label */
    }
    if (status < 0 && !str_eq(e.reason, "Held"))
        log_warn("cannot get the lease", LOG_S("lease", l->name), LOG_ERR(&e));
    if (status == 0 && !l->leads && kube_leader_is(l)) {
        l->leads = true;
        log_info("leads", LOG_S("lease", l->name), LOG_S("identity", l->identity));
        if (l->elected)
            l->elected(l->context);
        listen_no_more(l);
    }
}

/* How long to wait: until the next try, but not beyond the moment at which something changes. */
static int64_t pause_ns(const struct kube_leader *l)
{
    int64_t pause = l->retry_ns, now = now_ns(l), change = atomic_load(&l->until);
    if (!l->leads) {
        pause += (int64_t)kube_random((uint64_t)pause / 5 + 1);
        change = l->seen ? expiry(l) : INT64_MAX;
    }
    return change > now && change - now < pause ? change - now : pause;
}

/* False when it is time to stop. */
static bool rest(struct kube_leader *l)
{
    int64_t until = clock_mono_ns(l->clock) + pause_ns(l);
    pthread_mutex_lock(&l->lock);
    while (!l->stopping && !l->changes && clock_mono_ns(l->clock) < until)
        clock_wait(l->clock, &l->changed, &l->lock, until);
    l->changes = false;
    bool go_on = !l->stopping;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static void *run(void *context)
{
    struct kube_leader *l = context;
    do {
        try(l);
        if (l->leads && !kube_leader_is(l)) {
            l->leads = false;
            log_error("does not lead any more", LOG_S("lease", l->name),
                      LOG_S("identity", l->identity));
            if (l->lost)
                l->lost(l->context);
            break;
        }
        if (!l->leads && !l->informer)
            listen_up(l);
    } while (rest(l));
    listen_no_more(l);
    return NULL;
}

int kube_leader_start(struct kube_leader *l, struct err *e)
{
    if (thread_start(&l->thread, "leader", run, l, e) < 0)
        return -1;
    l->started = true;
    return 0;
}

void kube_leader_stop(struct kube_leader *l)
{
    if (!l->started)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->started = false;
    atomic_store(&l->until, 0); /* before anybody else can have it */
    struct err e = {0};
    if (!l->wrote || (!l->lease && read_lease(l, &e) < 0) ||
        !is_ours(l, json_object_get(l->lease, "spec")))
        return;
    if (write_lease(l, false, &e) < 0)
        log_warn("cannot give the lease back", LOG_S("lease", l->name), LOG_ERR(&e));
    else
        log_info("gave the lease back", LOG_S("lease", l->name));
}
