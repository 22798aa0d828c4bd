/*
 * libcurl owns connections and protocol; this file owns the pool and the clock.
 *
 * A slot is a curl "multi" with one "easy" handle: the multi keeps the connections between requests
 * and can be woken by another thread, which the easy interface alone cannot. A request takes the
 * slot that was used last, since its connections are the freshest, and gives it back; there are as
 * many slots as there were requests at one time, and at most SPARE stay.
 *
 * This flavour of libcurl reads certificates from files only. They live in memory, in files without
 * a name, which are named by descriptor: no copy of a key ever touches a disk.
 */
#include "http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "http/curl.h"

enum {
    SPARE = 16,
    DEFAULT_LIMIT = 4 << 20,
    CONNECT_MS = 10000,
    KEEP_IDLE_SECONDS = 30,
    LONGEST_WAIT_MS = 60000,
};

struct slot {
    CURLM *multi;
    CURL *easy;
    char why[CURL_ERROR_SIZE];
};

/* A file in memory; fd -1: none. */
struct memory_file {
    int fd;
    char path[32];
};

struct http_client {
    struct memory_file ca, certificate, key;
    char *token, *user_agent, *unix_socket;
    pthread_mutex_t lock;
    VEC(struct slot *) spare;
};

struct http_cancel {
    pthread_mutex_t lock;
    bool fired;
    CURLM *multi; /* of the request that is under way; else NULL */
};

/* What one request knows while it runs. */
struct run {
    const struct http_exchange *x;
    struct http_response *response;
    struct slot *slot;
    size_t limit;
    int64_t deadline, heard; /* monotonic; deadline 0: none */
    struct err err;          /* from a callback */
    bool failed;
};

static const struct http_curl *curl; /* once there is a client */

static int memory_file_open(struct memory_file *f, const char *text, struct err *e)
{
    f->fd = -1;
    if (!text)
        return 0;
    size_t size = strlen(text), done = 0;
    f->fd = memfd_create("pem", MFD_CLOEXEC);
    while (f->fd >= 0 && done < size) {
        ssize_t n = write(f->fd, text + done, size - done);
        if (n < 0)
            return err_errno(e, errno, "cannot keep a certificate in memory");
        done += (size_t)n;
    }
    if (f->fd < 0)
        return err_errno(e, errno, "cannot keep a certificate in memory");
    snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
    return 0;
}

static void memory_file_done(struct memory_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
}

static char *copy(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

struct http_client *http_client_new(const struct http_client_options *o, struct err *e)
{
    const struct http_curl *library = http_curl_load(e);
    if (!library)
        return NULL;
    __atomic_store_n(&curl, library, __ATOMIC_RELEASE); /* always the same */
    struct http_client *c = NEW(struct http_client);
    pthread_mutex_init(&c->lock, NULL);
    c->token = o->token ? mem_printf("Authorization: Bearer %s", o->token) : NULL;
    c->user_agent = mem_strdup(o->user_agent ? o->user_agent : "orlop/" ORLOP_VERSION);
    c->unix_socket = copy(o->unix_socket);
    c->ca.fd = c->certificate.fd = c->key.fd = -1;
    if (memory_file_open(&c->ca, o->ca, e) < 0 ||
        memory_file_open(&c->certificate, o->certificate, e) < 0 ||
        memory_file_open(&c->key, o->key, e) < 0) {
        http_client_free(c);
        return NULL;
    }
    return c;
}

static void slot_free(struct slot *s)
{
    if (s->easy)
        curl->easy_cleanup(s->easy);
    if (s->multi)
        curl->multi_cleanup(s->multi);
    free(s);
}

void http_client_free(struct http_client *c)
{
    vec_for_each(&c->spare, s)
        slot_free(*s);
    vec_done(&c->spare);
    memory_file_done(&c->ca);
    memory_file_done(&c->certificate);
    memory_file_done(&c->key);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    free(c->user_agent);
    free(c->unix_socket);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct slot *slot_take(struct http_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct slot *s = c->spare.len ? vec_pop(&c->spare) : NULL;
    pthread_mutex_unlock(&c->lock);
    if (s)
        return s;
    s = NEW(struct slot);
    s->multi = curl->multi_init();
    s->easy = curl->easy_init();
    if (!s->multi || !s->easy)
        abort(); /* like running out of memory */
    return s;
}

static void slot_give(struct http_client *c, struct slot *s)
{
    curl->easy_reset(s->easy);
    pthread_mutex_lock(&c->lock);
    bool keep = c->spare.len < SPARE;
    if (keep)
        vec_push(&c->spare, s);
    pthread_mutex_unlock(&c->lock);
    if (!keep)
        slot_free(s);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *context)
{
    struct run *r = context;
    const struct http_exchange *x = r->x;
    long status = 0;
    n *= size;
    r->heard = clock_mono_ns(clock_system());
    curl->easy_getinfo(r->slot->easy, CURLINFO_RESPONSE_CODE, &status);
    if (x->receive && status / 100 == 2) {
        r->failed = x->receive(x->context, bytes, n, &r->err) < 0;
    } else if (n > r->limit - r->response->body.len) {
        r->failed = true;
        err_set(&r->err, ERR_RESOURCE_EXHAUSTED, "ResponseTooLarge",
                "the answer of %s is longer than %zu bytes", x->url, r->limit);
    } else {
        str_append_n(&r->response->body, bytes, n);
    }
    return r->failed ? 0 : n;
}

static void set_timeouts(struct run *r)
{
    r->heard = clock_mono_ns(clock_system());
    r->deadline = r->x->timeout_ns ? r->heard + r->x->timeout_ns : 0;
    curl->easy_setopt(r->slot->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl->easy_setopt(r->slot->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(r->slot->easy, CURLOPT_TCP_KEEPIDLE, (long)KEEP_IDLE_SECONDS);
    curl->easy_setopt(r->slot->easy, CURLOPT_TCP_KEEPINTVL, (long)KEEP_IDLE_SECONDS);
}

static void set_security(const struct http_client *c, CURL *easy)
{
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(easy, CURLOPT_PROXY, ""); /* none, and none from the environment */
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (c->ca.fd >= 0) {
        curl->easy_setopt(easy, CURLOPT_CAINFO, c->ca.path);
        curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (c->certificate.fd >= 0)
        curl->easy_setopt(easy, CURLOPT_SSLCERT, c->certificate.path);
    if (c->key.fd >= 0)
        curl->easy_setopt(easy, CURLOPT_SSLKEY, c->key.path);
    if (c->unix_socket)
        curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, c->unix_socket);
}

static void set_body(const struct http_exchange *x, CURL *easy)
{
    const char *method = x->method ? x->method : "GET";
    if (x->body) {
        curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_size);
        curl->easy_setopt(easy, CURLOPT_POSTFIELDS, x->body);
    }
    if (str_eq(method, "HEAD"))
        curl->easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

static bool has_control(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return true;
    }
    return false;
}

/* Headers of the request, to be freed; NULL when one is none. */
static struct curl_slist *make_headers(const struct http_client *c, const struct http_exchange *x,
                                       struct err *e)
{
    /* Never wait for a "100 Continue". */
    struct curl_slist *list = curl->slist_append(NULL, "Expect:");
    if (c->token)
        list = curl->slist_append(list, c->token);
    for (const char *const *h = x->headers; h && *h; h++) {
        if (!strchr(*h, ':') || has_control(*h)) {
            err_set(e, ERR_INVALID_ARGUMENT, "InvalidHeader",
                    "a header for %s is none: write 'Name: value'", x->url);
            curl->slist_free_all(list);
            return NULL;
        }
        list = curl->slist_append(list, *h);
    }
    if (!list)
        abort(); /* like running out of memory */
    return list;
}

/* "::ADDRESS:PORT": for any host and port of the URL. To be freed; NULL: as the URL says. */
static struct curl_slist *make_target(const struct http_exchange *x)
{
    if (!x->address)
        return NULL;
    bool v6 = strchr(x->address, ':');
    _cleanup_free_ char *text =
        mem_printf("::%s%s%s:%u", v6 ? "[" : "", x->address, v6 ? "]" : "", (unsigned)x->port);
    return curl->slist_append(NULL, text);
}

static int timed_out(const struct run *r, int64_t now, struct err *e)
{
    bool idle = r->x->idle_ns && now - r->heard >= r->x->idle_ns;
    if (!idle && (!r->deadline || now < r->deadline))
        return 0;
    return err_set(e, ERR_DEADLINE_EXCEEDED, "Timeout", "no answer from %s within %.3g s",
                   r->x->url, (double)(idle ? r->x->idle_ns : r->x->timeout_ns) / CLOCK_SECOND);
}

/* How long to sleep at most. */
static int wait_ms(const struct run *r, int64_t now)
{
    int64_t ns = (int64_t)LONGEST_WAIT_MS * 1000000;
    if (r->deadline && r->deadline - now < ns)
        ns = r->deadline - now;
    if (r->x->idle_ns && r->heard + r->x->idle_ns - now < ns)
        ns = r->heard + r->x->idle_ns - now;
    return ns > 0 ? (int)(ns / 1000000) + 1 : 0;
}

static bool is_cancelled(struct http_cancel *cancel)
{
    if (!cancel)
        return false;
    pthread_mutex_lock(&cancel->lock);
    bool fired = cancel->fired;
    pthread_mutex_unlock(&cancel->lock);
    return fired;
}

static void cancel_attach(struct http_cancel *cancel, CURLM *multi)
{
    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    cancel->multi = multi;
    pthread_mutex_unlock(&cancel->lock);
}

static int curl_failed(const struct run *r, CURLcode code, struct err *e)
{
    static const struct {
        CURLcode curl;
        enum err_code code;
        const char *reason;
    } table[] = {
        {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID_ARGUMENT, "InvalidURL"},
        {CURLE_URL_MALFORMAT, ERR_INVALID_ARGUMENT, "InvalidURL"},
        {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, "UnknownHost"},
        {CURLE_COULDNT_CONNECT, ERR_UNAVAILABLE, "NoConnection"},
        {CURLE_OPERATION_TIMEDOUT, ERR_DEADLINE_EXCEEDED, "Timeout"},
        {CURLE_PEER_FAILED_VERIFICATION, ERR_UNAUTHENTICATED, "UntrustedServer"},
        {CURLE_SSL_CACERT_BADFILE, ERR_UNAUTHENTICATED, "InvalidCertificate"},
        {CURLE_SSL_CERTPROBLEM, ERR_UNAUTHENTICATED, "InvalidCertificate"},
        {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE, "TLSFailed"},
    };
    size_t i = 0;
    while (i < ARRAY_SIZE(table) && table[i].curl != code)
        i++;
    bool known = i < ARRAY_SIZE(table);
    const char *why = *r->slot->why ? r->slot->why : curl->easy_strerror(code);
    return err_set(e, known ? table[i].code : ERR_UNAVAILABLE,
                   known ? table[i].reason : "ConnectionLost", "%s: %s", r->x->url, why);
}

/* Until the transfer is over, or its time is. */
static int drive(struct run *r, struct err *e)
{
    CURLM *multi = r->slot->multi;
    for (;;) {
        int running = 0, left;
        if (curl->multi_perform(multi, &running) != CURLM_OK)
            return err_set(e, ERR_INTERNAL, "HTTPClientFailed", "cannot talk to %s", r->x->url);
        CURLMsg *message = curl->multi_info_read(multi, &left);
        if (r->failed) {
            *e = r->err;
            return -1;
        }
        if (message && message->msg == CURLMSG_DONE)
            return message->data.result == CURLE_OK ? 0 : curl_failed(r, message->data.result, e);
        if (is_cancelled(r->x->cancel))
            return err_set(e, ERR_CANCELLED, "Cancelled", "the request to %s was given up",
                           r->x->url);
        int64_t now = clock_mono_ns(clock_system());
        if (timed_out(r, now, e) < 0)
            return -1;
        curl->multi_poll(multi, NULL, 0, wait_ms(r, now), NULL);
    }
}

static void read_head(struct run *r)
{
    long status = 0;
    const char *type = NULL;
    curl_off_t retry = 0;
    curl->easy_getinfo(r->slot->easy, CURLINFO_RESPONSE_CODE, &status);
    curl->easy_getinfo(r->slot->easy, CURLINFO_CONTENT_TYPE, &type);
    curl->easy_getinfo(r->slot->easy, CURLINFO_RETRY_AFTER, &retry);
    r->response->status = (unsigned)status;
    snprintf(r->response->content_type, sizeof(r->response->content_type), "%s", type ? type : "");
    r->response->retry_after = retry > 0 && retry < 3600 ? (unsigned)retry : 0;
}

static int run(struct http_client *c, struct run *r, struct err *e)
{
    CURL *easy = r->slot->easy;
    struct curl_slist *headers = make_headers(c, r->x, e), *target = make_target(r->x);
    if (!headers)
        return -1;
    *r->slot->why = '\0';
    curl->easy_setopt(easy, CURLOPT_URL, r->x->url);
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, r->slot->why);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, c->user_agent);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, r);
    if (target)
        curl->easy_setopt(easy, CURLOPT_CONNECT_TO, target);
    set_security(c, easy);
    set_body(r->x, easy);
    set_timeouts(r);
    curl->multi_add_handle(r->slot->multi, easy);
    cancel_attach(r->x->cancel, r->slot->multi);
    int status = drive(r, e);
    cancel_attach(r->x->cancel, NULL);
    if (status == 0)
        read_head(r);
    curl->multi_remove_handle(r->slot->multi, easy);
    curl->slist_free_all(headers);
    curl->slist_free_all(target);
    return status;
}

int http_client_send(struct http_client *c, const struct http_exchange *x,
                     struct http_response *ret_response, struct err *e)
{
    struct err ignored;
    struct run r = {.x = x,
                    .response = ret_response,
                    .slot = slot_take(c),
                    .limit = x->limit ? x->limit : DEFAULT_LIMIT};
    str_clear(&ret_response->body);
    ret_response->status = ret_response->retry_after = 0;
    ret_response->content_type[0] = '\0';
    int status = run(c, &r, e ? e : &ignored);
    slot_give(c, r.slot);
    return status;
}

void http_response_done(struct http_response *r)
{
    str_done(&r->body);
}

struct http_cancel *http_cancel_new(void)
{
    struct http_cancel *c = NEW(struct http_cancel);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void http_cancel_free(struct http_cancel *c)
{
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void http_cancel_fire(struct http_cancel *c)
{
    pthread_mutex_lock(&c->lock);
    c->fired = true;
    if (c->multi)
        curl->multi_wakeup(c->multi);
    pthread_mutex_unlock(&c->lock);
}
