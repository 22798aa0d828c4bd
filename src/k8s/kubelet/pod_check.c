/*
 * One try: a command beside the container, a request, a connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/spawn.h"
#include "http/client.h"
#include "k8s/kubelet/pod_impl.h"

enum { OUTPUT_MOST = 10 * 1024, MESSAGE_MOST = 300 };

const char *pod_action_problem(enum pod_means means, const json_t *json)
{
    const char *scheme = json_str(json_object_get(json, "httpGet"), "scheme");
    if (means == POD_GRPC)
        return "probes by grpc are not supported here; use exec, httpGet or tcpSocket";
    if (means == POD_HTTP && scheme && strcasecmp(scheme, "HTTPS") == 0)
        return "httpGet with scheme HTTPS is not supported here; use HTTP, tcpSocket or exec";
    return NULL;
}

struct pod_words {
    VEC(char *) p; /* owned */
};

static void words_done(struct pod_words *w)
{
    vec_for_each(&w->p, it)
        free(*it);
    vec_done(&w->p);
}

static int run_exec(const struct pod_action *a, int64_t timeout_ns, struct err *e)
{
    VEC(const char *) argv = {0};
    char pid[16];
    size_t i;
    json_t *word;
    snprintf(pid, sizeof(pid), "%d", (int)a->pid);
    vec_push(&argv, a->shim);
    vec_push(&argv, "--enter");
    vec_push(&argv, pid);
    json_array_foreach(json_at(a->json, "exec", "command"), i, word)
        vec_push(&argv, json_is_string(word) ? json_string_value(word) : "");
    vec_push(&argv, NULL);
    struct spawn s = {
        .argv = argv.p, .limit = OUTPUT_MOST, .timeout_ms = (int)(timeout_ns / 1000000)};
    struct spawn_result result = {0};
    int r = argv.len < 5 ? err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "exec has no command")
                         : spawn_run(&s, &result, e);
    vec_done(&argv);
    if (r < 0 && e && e->code == ERR_DEADLINE_EXCEEDED)
        return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout", "command timed out after %lld seconds",
                       (long long)(timeout_ns / CLOCK_SECOND));
    if (r < 0)
        return -1;
    if (result.status != 0) {
        const char *text = result.out.len ? str_get(&result.out) : str_get(&result.err);
        r = err_set(e, ERR_INTERNAL, "CommandFailed", "%.*s", (int)str_cut(text, MESSAGE_MOST),
                    text);
        if (!*text)
            r = err_set(e, ERR_INTERNAL, "CommandFailed", "command terminated with exit code %d",
                        result.status);
    }
    spawn_result_done(&result);
    return r;
}

/* The headers of the probe; Host among them is returned and not kept: it belongs in the URL. */
static const char *take_headers(const json_t *get, struct pod_words *headers)
{
    const char *host = NULL;
    size_t i;
    json_t *header;
    json_array_foreach(json_object_get(get, "httpHeaders"), i, header) {
        const char *name = json_str(header, "name"), *value = json_str(header, "value");
        if (name && strcasecmp(name, "Host") == 0)
            host = value;
        else
            vec_push(&headers->p, mem_printf("%s: %s", name ? name : "", value ? value : ""));
    }
    vec_push(&headers->p, NULL);
    return host;
}

static int run_http(const struct pod_action *a, int64_t timeout_ns, struct err *e)
{
    const json_t *get = json_object_get(a->json, "httpGet");
    const char *host = json_str(get, "host"), *path = json_str(get, "path");
    unsigned port = pod_port(a->container, json_object_get(get, "port"));
    _cleanup_(words_done) struct pod_words headers = {0};
    const char *name = take_headers(get, &headers);
    host = host && *host ? host : a->host;
    bool v6 = strchr(name ? name : host, ':') && !strchr(name ? name : host, '[');
    _cleanup_free_ char *url =
        mem_printf("http://%s%s%s:%u%s%s", v6 ? "[" : "", name ? name : host, v6 ? "]" : "", port,
                   path && *path == '/' ? "" : "/", path ? path : "");
    struct http_client_options options = {.user_agent = "kube-probe/orlop"};
    _cleanup_(http_client_freep) struct http_client *client = http_client_new(&options, e);
    _cleanup_(http_response_done) struct http_response response = {0};
    struct http_exchange x = {.url = url,
                              .headers = (const char *const *)headers.p.p,
                              .timeout_ns = timeout_ns,
                              .limit = OUTPUT_MOST,
                              .address = name ? host : NULL,
                              .port = (uint16_t)port};
    int r = client ? http_client_send(client, &x, &response, e) : -1;
    if (r < 0 && e && e->code == ERR_RESOURCE_EXHAUSTED)
        r = 0; /* a long answer is an answer */
    if (r == 0 && (response.status < 200 || response.status >= 400))
        return err_set(e, ERR_UNAVAILABLE, "Unhealthy", "HTTP probe failed with statuscode: %u",
                       response.status);
    return r;
}

static int connect_to(const struct addrinfo *info, int64_t timeout_ns)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), errnum = 0;
    socklen_t size = sizeof(errnum);
    if (fd < 0)
        return errno;
    if (connect(fd, info->ai_addr, info->ai_addrlen) < 0)
        errnum = errno;
    if (errnum == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int n = poll(&p, 1, (int)(timeout_ns / 1000000));
        if (n <= 0)
            errnum = n == 0 ? ETIMEDOUT : errno;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size);
    }
    close(fd);
    return errnum;
}

static int run_tcp(const struct pod_action *a, int64_t timeout_ns, struct err *e)
{
    const json_t *socket = json_object_get(a->json, "tcpSocket");
    const char *host = json_str(socket, "host");
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    snprintf(port, sizeof(port), "%u", pod_port(a->container, json_object_get(socket, "port")));
    host = host && *host ? host : a->host;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed)
        return err_set(e, ERR_UNAVAILABLE, "Unhealthy", "%s: %s", host, gai_strerror(failed));
    int errnum = connect_to(found, timeout_ns);
    freeaddrinfo(found);
    return errnum ? err_errno(e, errnum, "dial tcp %s:%s", host, port) : 0;
}

int pod_action_run(const struct pod_action *a, int64_t timeout_ns, struct err *e)
{
    switch (a->means) {
    case POD_EXEC:
        return run_exec(a, timeout_ns, e);
    case POD_HTTP:
        return run_http(a, timeout_ns, e);
    case POD_TCP:
        return run_tcp(a, timeout_ns, e);
    case POD_GRPC:
    case POD_NO_PROBE:
        break;
    }
    return err_set(e, ERR_UNIMPLEMENTED, "NotSupported", "it cannot be asked in this way here");
}
