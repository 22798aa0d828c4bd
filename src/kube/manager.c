/*
 * The main thread starts everything, waits, and stops everything. The elector's thread only notes
 * what happened and wakes it, except that a leadership that was lost ends all requests at once.
 */
#include "kube/manager.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "kube/manager_impl.h"

enum { WATCHDOG_MS = 10000, PATIENCE_MS = 4000 };
static const int64_t lease_default = 15 * CLOCK_SECOND;

static void wake(struct kube_manager *m)
{
    uint64_t one = 1;
    if (write(m->wake, &one, sizeof(one)) < 0)
        log_error("cannot wake the manager", LOG_I("errno", errno));
}

static void on_elected(void *context)
{
    struct kube_manager *m = context;
    atomic_store(&m->elected, true);
    wake(m);
}

static void on_lost(void *context)
{
    struct kube_manager *m = context;
    kube_client_stop(m->client); /* whoever is in the middle of something must not go on */
    atomic_store(&m->lost, true);
    wake(m);
}

/* Checks. */

static int check_ping(void *context, struct err *e)
{
    (void)context, (void)e;
    return 0;
}

static int check_leader(void *context, struct err *e)
{
    struct kube_manager *m = context;
    if (!atomic_load(&m->elected) || kube_leader_is(m->leader))
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "LeaseExpired", "the lease was not renewed in time");
}

static int check_informers(void *context, struct err *e)
{
    struct kube_manager *m = context;
    vec_for_each(&m->informers, it) {
        if (!kube_informer_synced(it->informer))
            return err_set(e, ERR_UNAVAILABLE, "NotSynced", "%s is not in the cache yet", it->key);
    }
    return 0;
}

static void add_check(struct kube_manager *m, const char *name,
                      int (*check)(void *context, struct err *e), void *context, bool alive)
{
    vec_push(&m->checks, (struct manager_check){name, check, context, alive});
}

void kube_manager_add_check(struct kube_manager *m, const char *name,
                            int (*check)(void *context, struct err *e), void *context)
{
    add_check(m, name, check, context, false);
}

/* Life. */

static struct kube_client *new_client(struct kube_manager *m, const struct kube_manager_options *mo,
                                      int64_t deadline_ns, struct err *e)
{
    const struct kube_client_options o = {
        .config = mo->config,
        .field_manager = m->name,
        .qps = mo->qps,
        .burst = mo->burst,
        .deadline_ns = deadline_ns,
        .clock = m->clock,
        .metrics = m->metrics,
    };
    return kube_client_new(&o, e);
}

static int init_leader(struct kube_manager *m, const struct kube_manager_options *o, struct err *e)
{
    int64_t lease = o->lease_duration_ns ? o->lease_duration_ns : lease_default;
    m->leader_client = new_client(m, o, lease / 3, e);
    if (!m->leader_client)
        return -1;
    const struct kube_leader_options l = {
        .client = m->leader_client,
        .ns = o->lease_ns ? o->lease_ns : kube_client_namespace(m->leader_client),
        .name = o->lease_name ? o->lease_name : m->name,
        .identity = o->identity,
        .lease_ns = lease,
        .elected = on_elected,
        .lost = on_lost,
        .context = m,
        .clock = m->clock,
        .metrics = m->metrics,
    };
    m->leader = kube_leader_new(&l, e);
    if (!m->leader)
        return -1;
    add_check(m, "leaderElection", check_leader, m, true);
    return 0;
}

static int init(struct kube_manager *m, const struct kube_manager_options *o, struct err *e)
{
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->stopped = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->wake < 0 || m->stopped < 0)
        return err_errno(e, errno, "eventfd");
    m->metrics = metrics_new();
    metrics_process(m->metrics);
    add_check(m, "ping", check_ping, m, true);
    add_check(m, "informers", check_informers, m, false);
    m->client = new_client(m, o, 0, e);
    if (!m->client || (o->elect && init_leader(m, o, e) < 0))
        return -1;
    m->recorder = kube_recorder_new(m->client, m->name, o->host, m->clock, e);
    return m->recorder ? 0 : -1;
}

struct kube_manager *kube_manager_new(const struct kube_manager_options *o, struct err *e)
{
    struct kube_manager *m = NEW(struct kube_manager);
    m->name = mem_strdup(o->name);
    m->health_address = o->health_address ? mem_strdup(o->health_address) : NULL;
    m->health_port = o->health_port;
    m->clock = o->clock ? o->clock : clock_system();
    m->ages = kube_ages_new(m->clock);
    if (init(m, o, e) == 0)
        return m;
    kube_manager_free(m);
    return NULL;
}

void kube_manager_free(struct kube_manager *m)
{
    vec_for_each(&m->stops, it)
        it->fn(it->context);
    vec_for_each(&m->controllers, it)
        kube_controller_free(*it);
    vec_for_each(&m->informers, it) {
        kube_informer_free(it->informer);
        free(it->key);
    }
    if (m->recorder)
        kube_recorder_free(m->recorder);
    if (m->leader)
        kube_leader_free(m->leader);
    if (m->leader_client)
        kube_client_free(m->leader_client);
    if (m->client)
        kube_client_free(m->client);
    if (m->metrics)
        metrics_free(m->metrics);
    if (m->wake >= 0)
        close(m->wake);
    if (m->stopped >= 0)
        close(m->stopped);
    vec_done(&m->stops);
    vec_done(&m->ends);
    vec_done(&m->controllers);
    vec_done(&m->informers);
    vec_done(&m->checks);
    free(m->name);
    free(m->health_address);
    kube_ages_free(m->ages);
    free(m);
}

struct kube_client *kube_manager_client(struct kube_manager *m)
{
    return m->client;
}

struct kube_recorder *kube_manager_recorder(struct kube_manager *m)
{
    return m->recorder;
}

struct metrics *kube_manager_metrics(struct kube_manager *m)
{
    return m->metrics;
}

struct kube_ages *kube_manager_ages(struct kube_manager *m)
{
    return m->ages;
}

const struct clock *kube_manager_clock(struct kube_manager *m)
{
    return m->clock;
}

void kube_manager_on_stop(struct kube_manager *m, void (*fn)(void *context), void *context)
{
    vec_push(&m->stops, (struct manager_stop){fn, context});
}

void kube_manager_before_end(struct kube_manager *m, void (*fn)(void *context), void *context)
{
    vec_push(&m->ends, (struct manager_stop){fn, context});
}

/* What controllers ask for. */

struct kube_informer *kube_manager_informer(struct kube_manager *m, struct kube_resource resource,
                                            const char *ns, const char *labels, const char *fields)
{
    _cleanup_free_ char *key =
        mem_printf("%s %s%s%s%s%s%s%s", resource.api_version, resource.plural, ns ? " in " : "",
                   ns ? ns : "", labels ? " labels " : "", labels ? labels : "",
                   fields ? " fields " : "", fields ? fields : "");
    vec_for_each(&m->informers, it) {
        if (str_eq(it->key, key))
            return it->informer;
    }
    const struct kube_informer_options o = {
        .client = m->client,
        .resource = resource,
        .ns = ns,
        .labels = labels,
        .fields = fields,
        .clock = m->clock,
        .metrics = m->metrics,
    };
    struct err e = {0};
    struct kube_informer *informer = kube_informer_new(&o, &e);
    if (!informer) {
        log_error("cannot make an informer", LOG_S("of", key), LOG_ERR(&e));
        abort(); /* a mistake in the program: a selector that is none */
    }
    vec_push(&m->informers, (struct manager_informer){informer, TAKE_PTR(key)});
    return informer;
}

struct kube_controller *kube_manager_controller(struct kube_manager *m,
                                                const struct kube_controller_options *o,
                                                struct err *e)
{
    struct kube_controller_options with = *o;
    with.clock = m->clock;
    with.metrics = m->metrics;
    with.leader = m->leader;
    struct kube_controller *c = kube_controller_new(&with, e);
    if (c)
        vec_push(&m->controllers, c);
    return c;
}

/* Start, wait, stop. */

static int start_controllers(struct kube_manager *m, struct err *e)
{
    m->controllers_run = true;
    vec_for_each(&m->controllers, it) {
        if (kube_controller_start(*it, e) < 0)
            return -1;
    }
    log_info("controllers run", LOG_U("count", m->controllers.len));
    return 0;
}

static int start(struct kube_manager *m, struct err *e)
{
    if (manager_health_start(m, e) < 0)
        return -1;
    if (m->health)
        log_info("serves health and metrics", LOG_U("port", http_server_port(m->health)));
    vec_for_each(&m->informers, it) {
        if (kube_informer_start(it->informer, e) < 0)
            return -1;
    }
    return m->leader ? kube_leader_start(m->leader, e) : start_controllers(m, e);
}

static int wait_for_stop(struct kube_manager *m, int stop_fd, struct err *e)
{
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = m->wake, .events = POLLIN}};
    bool trimmed = false;
    for (;;) {
        int n = poll(fds, ARRAY_SIZE(fds), WATCHDOG_MS);
        if (n < 0 && errno != EINTR)
            return err_errno(e, errno, "poll");
        if (n > 0 && fds[0].revents)
            return 0;
        uint64_t count;
        if (n > 0 && read(m->wake, &count, sizeof(count)) < 0 && errno != EAGAIN)
            return err_errno(e, errno, "eventfd");
        if (atomic_load(&m->lost))
            return err_set(e, ERR_ABORTED, "LeadershipLost",
                           "another process leads, or the lease could not be renewed in time");
        if (atomic_load(&m->elected) && !m->controllers_run && start_controllers(m, e) < 0)
            return -1;
        vec_for_each(&m->controllers, it)
            kube_controller_watchdog(*it);
        if (n == 0 && !trimmed) {
            mem_trim(); /* by now it mostly waits */
            trimmed = true;
        }
    }
}

/* What a server that is away would hold up is cut off after a while. */
static void *lose_patience(void *context)
{
    struct kube_manager *m = context;
    struct pollfd stopped = {.fd = m->stopped, .events = POLLIN};
    if (poll(&stopped, 1, PATIENCE_MS) == 0)
        kube_client_stop(m->client);
    return NULL;
}

static void stop_controllers(struct kube_manager *m)
{
    pthread_t patience;
    struct err e = {0};
    bool started = thread_start(&patience, "patience", lose_patience, m, &e) == 0;
    if (!started)
        kube_client_stop(m->client);
    vec_for_each(&m->controllers,
                 it) /* all at once, so that there is only the slowest to wait for */
        kube_controller_quiesce(*it);
    vec_for_each(&m->controllers, it)
        kube_controller_stop(*it);
    vec_for_each(&m->ends, it)
        it->fn(it->context);
    eventfd_write(m->stopped, 1);
    if (started)
        pthread_join(patience, NULL);
}

static void stop(struct kube_manager *m)
{
    stop_controllers(m);
    if (m->leader)
        kube_leader_stop(m->leader);
    kube_recorder_free(m->recorder);
    m->recorder = NULL;
    kube_client_stop(m->client);
    vec_for_each(&m->informers, it)
        kube_informer_stop(it->informer);
    http_server_stop(m->health);
    m->health = NULL;
}

int kube_manager_run(struct kube_manager *m, int stop_fd, struct err *e)
{
    int status = start(m, e);
    if (status == 0)
        status = wait_for_stop(m, stop_fd, e);
    log_info("stops");
    stop(m);
    return status;
}
