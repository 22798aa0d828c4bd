/*
 * /log of a pod: which container is meant, what of its log, and the stream of it.
 */
#include "k8s/apiserver/pod_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rfc3339.h"
#include "k8s/apiserver/serve_impl.h"
#include "k8s/kinds/kinds.h"

/* For a Status about the parameters. */
static const struct api_kind options_kind = {
    .kind = "PodLogOptions",
    .plural = "podlogoptions",
    .singular = "podlogoptions",
    .versions = API_VERSION("", "v1"),
};

int pod_log_open_file(void *folder, const char *node, const char *namespace, const char *pod,
                      const char *container, bool previous, struct err *e)
{
    static const char mark[] = "{node}";
    const char *before = folder, *at = strstr(before, mark);
    int size = (int)(at ? (size_t)(at - before) : strlen(before));
    _cleanup_free_ char *path = mem_printf("%.*s%s%s/%s/%s/%s%s.log", size, before, at ? node : "",
                                           at ? at + strlen(mark) : "", namespace, pod, container,
                                           previous ? ".previous" : "");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return err_errno(e, errno, "%s", path);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return err_set(e, ERR_NOT_FOUND, "NotFound", "%s is no file", path);
}

static bool is_true(const struct call *c, const char *parameter)
{
    const char *value = http_request_query(c->http, parameter);
    return value && (str_eq(value, "true") || str_eq(value, "1"));
}

/* A number that must be at least `least`; *ret as it was when it is not given. */
static int parse_number(struct call *c, const char *parameter, int64_t least, int64_t *ret)
{
    const char *text = http_request_query(c->http, parameter);
    if (!text || !*text)
        return 0;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*end || errno)
        return err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                       "%s must be an integer, not \"%.40s\"", parameter, text);
    *ret = number;
    if (number < least) {
        json_auto_t *value = json_integer(number);
        api_problem(&c->report, API_KEY(NULL, parameter), API_INVALID, value,
                    "must be greater than or equal to %lld", (long long)least);
    }
    return 0;
}

static int parse_since(struct call *c, struct pod_log_options *o)
{
    int64_t seconds = 0, now = clock_real_ns(c->server->registry.clock);
    const char *time = http_request_query(c->http, "sinceTime");
    o->since_ns = INT64_MIN;
    if (parse_number(c, "sinceSeconds", 1, &seconds) < 0)
        return -1;
    if (seconds > 0 && seconds < now / CLOCK_SECOND)
        o->since_ns = now - seconds * CLOCK_SECOND;
    if (!time || !*time)
        return 0;
    struct timespec t;
    if (rfc3339_parse(time, &t, &c->err) < 0) {
        c->err.reason = "BadRequest";
        return -1;
    }
    o->since_ns = rfc3339_to_ns(t);
    if (seconds)
        api_problem(&c->report, API_KEY(NULL, "sinceSeconds"), API_FORBIDDEN, NULL,
                    "at most one of `sinceTime` or `sinceSeconds` may be specified");
    return 0;
}

static int parse_options(struct call *c, struct pod_log_options *o)
{
    *o = (struct pod_log_options){
        .follow = is_true(c, "follow"),
        .timestamps = is_true(c, "timestamps"),
        .tail = -1,
        .limit = -1,
    };
    if (parse_number(c, "tailLines", 0, &o->tail) < 0 ||
        parse_number(c, "limitBytes", 1, &o->limit) < 0 || parse_since(c, o) < 0)
        return -1;
    if (!c->report.errors)
        return 0;
    c->path.kind = &options_kind;
    c->path.gv = options_kind.versions;
    return err_set(&c->err, ERR_INVALID_ARGUMENT, "Invalid", "the parameters are invalid");
}

/* "a b"; whether the wanted one is there. */
static bool list_names(const json_t *pod, const char *member, const char *wanted, struct str *names)
{
    bool found = false;
    size_t i;
    json_t *container;
    json_array_foreach(json_at(pod, "spec", member), i, container) {
        const char *name = json_str(container, "name");
        str_appendf(names, "%s%s", names->len ? " " : "", name ? name : "");
        found |= name && str_eq(name, wanted);
    }
    return found;
}

/* The container that is meant: the one that is named, or the only one. NULL with BadRequest. */
static const char *choose_container(struct call *c, const json_t *pod)
{
    const char *wanted = http_request_query(c->http, "container");
    const json_t *containers = json_at(pod, "spec", "containers");
    _cleanup_(str_done) struct str names = {0}, inits = {0}, others = {0};
    const char *name = wanted ? wanted : "";
    bool found = list_names(pod, "containers", name, &names);
    found |= list_names(pod, "initContainers", name, &inits);
    found |= list_names(pod, "ephemeralContainers", name, &others);
    if (*name && found && !api_dns_label.check(name))
        return name;
    const char *only = json_str(json_array_get(containers, 0), "name");
    if (!*name && json_array_size(containers) == 1 && !inits.len && only &&
        !api_dns_label.check(only))
        return only;
    if (*name)
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest", "container %s is not valid for pod %s",
                name, c->path.name);
    else
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                "a container name must be specified for pod %s, choose one of: [%s]%s%s%s",
                c->path.name, str_get(&names), inits.len ? " or one of the init containers: [" : "",
                str_get(&inits), inits.len ? "]" : "");
    return NULL;
}

/* What the status says of the container; NULL: nothing. */
static const json_t *container_status(const json_t *pod, const char *container)
{
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses",
                                        "ephemeralContainerStatuses", NULL};
    const json_t *found = NULL;
    for (const char *const *list = lists; *list && !found; list++)
        found = json_find(json_at(pod, "status", *list), "name", container);
    return found;
}

static const json_t *container_state(const json_t *pod, const char *container, const char *state)
{
    return json_at(container_status(pod, container), "state", state);
}

struct log_stream {
    struct pod_log_reader *reader;
    struct pod_log_follow *follow; /* NULL: as it is now, and no more */
    struct pod_log_watch *watch;
};

static struct apiserver_object *find_pod(struct apiserver *a, const char *key)
{
    _cleanup_(str_done) struct str collection = {0};
    apiserver_collection(&api_pod, &collection);
    return apiserver_store_get(a->registry.store, str_get(&collection), key);
}

static ssize_t read_log(void *context, char *buf, size_t max)
{
    struct log_stream *s = context;
    bool ended = !s->follow || !pod_log_is_written(s->reader);
    return pod_log_read(s->reader, ended, buf, max);
}

static void log_done(void *context)
{
    struct log_stream *s = context;
    pod_log_unwatch(s->follow, s->watch);
    pod_log_reader_free(s->reader);
    free(s);
}

static struct pod_log_follow *follow_of(struct apiserver *a)
{
    pthread_mutex_lock(&a->lock);
    if (!a->log_follow)
        a->log_follow = pod_log_follow_new();
    struct pod_log_follow *f = a->log_follow;
    pthread_mutex_unlock(&a->lock);
    return f;
}

static void stream_log(struct call *c, int fd, const struct pod_log_options *o)
{
    static const struct http_stream_ops ops = {read_log, log_done};
    struct log_stream *s = NEW(struct log_stream);
    s->reader = pod_log_reader_new(fd, o);
    s->follow = o->follow ? follow_of(c->server) : NULL;
    struct http_stream *stream = http_reply_stream(c->http, 200, "text/plain", &ops, s);
    if (!stream)
        return;    /* log_done() has been called */
    if (o->follow) /* read() is not called before this returns */
        s->watch = pod_log_watch(s->follow, fd, stream);
    http_stream_unref(stream);
}

/* There is no log: it says why, or is empty for a pod that nobody runs yet. */
static void no_log(struct call *c, const json_t *pod, const char *container, bool previous)
{
    const char *node = json_str(json_object_get(pod, "spec"), "nodeName");
    const char *reason = json_str(container_state(pod, container, "waiting"), "reason");
    if (!previous && !(node && *node)) {
        http_reply(c->http, 200, "text/plain", "", 0, NULL, NULL);
        return;
    }
    if (previous)
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                "previous terminated container \"%s\" in pod \"%s\" not found", container,
                c->path.name);
    else
        err_set(&c->err, ERR_INVALID_ARGUMENT, "BadRequest",
                "container \"%s\" in pod \"%s\" is waiting to start: %s", container, c->path.name,
                reason ? reason : "ContainerCreating");
    call_fail(c);
}

/* A single path segment; "" when there is none. */
static const char *node_of(const json_t *pod)
{
    const char *node = json_str(json_object_get(pod, "spec"), "nodeName");
    return node && !api_dns_subdomain.check(node) ? node : "";
}

void call_log(struct call *c)
{
    const char *namespace = c->path.namespace;
    _cleanup_free_ char *key = mem_printf("%s/%s", namespace, c->path.name);
    _cleanup_(apiserver_object_unrefp) struct apiserver_object *o = find_pod(c->server, key);
    json_auto_t *pod = o ? json_parse(o->bytes, o->size, NULL, NULL) : NULL;
    struct pod_log_options options;
    bool previous = is_true(c, "previous");
    const char *container = NULL;
    if (!pod || api_dns_label.check(namespace) || api_dns_subdomain.check(c->path.name))
        err_set(&c->err, ERR_NOT_FOUND, "NotFound", "not found");
    else if (parse_options(c, &options) == 0)
        container = choose_container(c, pod);
    if (!container) {
        call_fail(c);
        return;
    }
    struct err e = {0};
    struct pod_log_source *source = &c->server->logs;
    int fd = source->open ? source->open(source->context, node_of(pod), namespace, c->path.name,
                                         container, previous, &e)
                          : -1;
    if (fd >= 0) {
        stream_log(c, fd, &options);
    } else if (e.code == ERR_OK || e.code == ERR_NOT_FOUND) {
        no_log(c, pod, container, previous);
    } else {
        c->err = e;
        call_fail(c);
    }
}
