#include "k8s/apiserver/health.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "k8s/apiserver/serve_impl.h"

enum { LEAST_FREE = 1 << 20, STUCK_SECONDS = 30 };

enum { LIVE = 1, READY = 2, BOTH = LIVE | READY };

void apiserver_health_init(struct apiserver_health *h)
{
    pthread_mutex_init(&h->lock, NULL);
}

void apiserver_health_done(struct apiserver_health *h)
{
    pthread_mutex_destroy(&h->lock);
}

void apiserver_health_commit(struct apiserver_health *h, const struct err *error)
{
    pthread_mutex_lock(&h->lock);
    h->failing = error != NULL;
    if (error)
        h->err = *error;
    pthread_mutex_unlock(&h->lock);
}

void apiserver_health_started(struct apiserver_health *h)
{
    pthread_mutex_lock(&h->lock);
    h->started = true;
    pthread_mutex_unlock(&h->lock);
}

void apiserver_health_stopping(struct apiserver_health *h)
{
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_mutex_unlock(&h->lock);
}

static int check_ping(struct apiserver *a, struct err *e)
{
    (void)a, (void)e;
    return 0;
}

/* What the file system says before anybody has tried. */
static int check_disk(const struct apiserver *a, struct err *e)
{
    struct statvfs fs;
    if (statvfs(a->store_path, &fs) < 0)
        return err_errno(e, errno, "%s", a->store_path);
    if (fs.f_flag & ST_RDONLY)
        return err_set(e, ERR_UNAVAILABLE, "ReadOnly", "the disk takes no writes");
    if ((uint64_t)fs.f_bavail * fs.f_frsize < LEAST_FREE)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "NoSpace", "the disk is full");
    return 0;
}

/* After a failure nobody may write any more because of it: so a trial, at most once a second. */
static int check_store(struct apiserver *a, struct err *e)
{
    struct apiserver_health *h = &a->health;
    int64_t now = clock_mono_ns(clock_system());
    pthread_mutex_lock(&h->lock);
    bool failing = h->failing, due = now - h->probed >= CLOCK_SECOND;
    if (failing && due)
        h->probed = now;
    if (failing)
        *e = h->err;
    pthread_mutex_unlock(&h->lock);
    if (failing && due) {
        failing = apiserver_store_probe(a->registry.store, e) < 0;
        apiserver_health_commit(h, failing ? e : NULL);
    }
    return failing ? -1 : check_disk(a, e);
}

static int check_followers(struct apiserver *a, struct err *e)
{
    int64_t seconds = apiserver_follow_behind_ns(a->follow) / CLOCK_SECOND;
    if (seconds < STUCK_SECONDS)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "Stuck", "no round was finished for %lld s",
                   (long long)seconds);
}

static int check_startup(struct apiserver *a, struct err *e)
{
    pthread_mutex_lock(&a->health.lock);
    bool started = a->health.started;
    pthread_mutex_unlock(&a->health.lock);
    return started ? 0 : err_set(e, ERR_UNAVAILABLE, "Starting", "the server is starting");
}

static int check_shutdown(struct apiserver *a, struct err *e)
{
    pthread_mutex_lock(&a->health.lock);
    bool stopping = a->health.stopping;
    pthread_mutex_unlock(&a->health.lock);
    return stopping ? err_set(e, ERR_UNAVAILABLE, "Stopping", "the server is stopping") : 0;
}

static const struct check {
    const char *name;
    int (*run)(struct apiserver *a, struct err *e);
    unsigned of;
} checks[] = {
    {"ping", check_ping, BOTH},           {"store", check_store, READY},
    {"followers", check_followers, BOTH}, {"startup", check_startup, READY},
    {"shutdown", check_shutdown, READY},
};

static bool is_excluded(const struct call *c, const char *name)
{
    const char *value;
    for (size_t i = 0; (value = http_request_query_at(c->http, "exclude", i)); i++) {
        if (str_eq(value, name))
            return true;
    }
    return false;
}

/* Names to exclude that are no checks: worth a word, as a misspelt one excludes nothing. */
static void append_unmatched(const struct call *c, unsigned which, struct str *out)
{
    const char *value;
    for (size_t i = 0; (value = http_request_query_at(c->http, "exclude", i)); i++) {
        size_t k = 0;
        while (k < ARRAY_SIZE(checks) && !(checks[k].of & which && str_eq(checks[k].name, value)))
            k++;
        if (k == ARRAY_SIZE(checks))
            str_appendf(out,
                        "warn: some health checks cannot be excluded: no matches for \"%.100s\"\n",
                        value);
    }
}

static void reply(struct call *c, unsigned status, struct str *text)
{
    http_reply_header(c->http, "X-Content-Type-Options", "nosniff");
    call_reply_text(c, status, "text/plain; charset=utf-8", text);
}

static void reply_one(struct call *c, const struct check *check)
{
    struct err e = {0};
    struct str text = {0};
    bool good = check->run(c->server, &e) == 0;
    if (good)
        str_append(&text, "ok");
    else
        str_appendf(&text, "internal server error: %s\n", e.msg);
    reply(c, good ? 200 : 503, &text);
}

void call_health(struct call *c)
{
    const char *endpoint = c->path.name;
    unsigned which = str_eq(endpoint, "livez") ? LIVE : READY;
    struct str text = {0};
    bool good = true;
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        const struct check *check = &checks[i];
        struct err e = {0};
        if (!(check->of & which))
            continue;
        if (*c->path.check) {
            if (!str_eq(check->name, c->path.check))
                continue;
            reply_one(c, check);
            return;
        }
        if (is_excluded(c, check->name)) {
            str_appendf(&text, "[+]%s excluded: ok\n", check->name);
        } else if (check->run(c->server, &e) == 0) {
            str_appendf(&text, "[+]%s ok\n", check->name);
        } else {
            str_appendf(&text, "[-]%s failed: %s\n", check->name, e.msg);
            good = false;
        }
    }
    if (*c->path.check) {
        str_append(&text, "404 page not found\n");
        reply(c, 404, &text);
        return;
    }
    append_unmatched(c, which, &text);
    if (good && !http_request_query(c->http, "verbose")) {
        str_clear(&text);
        str_append(&text, "ok");
    } else {
        str_appendf(&text, "%s check %s\n", endpoint, good ? "passed" : "failed");
    }
    reply(c, good ? 200 : 503, &text);
}
