/*
 * This file owns the connections that are kept and the course of a request; link.c what a connection
 * is, response.c what an answer means, wait.c how time passes.
 *
 *     take a kept connection, or open one --> write and read --> keep the connection, or close it
 *             ^                                     |
 *             '--- once, when a kept one is dead ---'
 *
 * While a request runs its connection is its own. Kept ones are under the lock, newest last; the
 * newest is taken first, since the server is least likely to have closed it.
 */
#include "http/client.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/vec.h"
#include "http/link.h"
#include "http/response.h"
#include "http/target.h"

enum {
    SPARE = 16,
    SPARE_SECONDS = 60,
    DEFAULT_LIMIT = 4 << 20,
    PIECE = 16 << 10,  /* read at a time */
    JOINED = 32 << 10, /* a body up to this size is sent along with the head */
};

struct spare {
    struct http_link *link;
    char *key; /* where it leads */
    int64_t since;
};

struct http_client {
    struct http_trust *trust;
    char *user_agent, *unix_socket;
    pthread_mutex_t lock; /* of what follows */
    char *token;
    VEC(struct spare) spare;
};

/* What one request knows while it runs. */
struct run {
    struct http_client *client;
    const struct http_exchange *x;
    struct http_url url;
    char *key;
    struct str head; /* of the request, perhaps with its body */
    size_t total;    /* bytes to send */
    struct http_wait wait;
    struct http_link *link;
    struct http_reader reader;
    char *piece; /* while there is something to read */
    size_t sent;
    bool mute;    /* nothing more can be sent */
    bool heard;   /* something of an answer has come */
    bool surplus; /* and more than that */
    bool refused; /* by receive(), with an error of its own */
};

static char *copy(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static void free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

struct http_client *http_client_new(const struct http_client_options *o, struct err *e)
{
    _cleanup_(http_client_freep) struct http_client *c = NEW(struct http_client);
    pthread_mutex_init(&c->lock, NULL);
    c->user_agent = mem_strdup(o->user_agent ? o->user_agent : "orlop/" ORLOP_VERSION);
    c->unix_socket = copy(o->unix_socket);
    if (http_client_set_token(c, o->token, e) < 0 ||
        http_trust_new(o->ca, o->certificate, o->key, o->any_server, &c->trust, e) < 0)
        return NULL;
    return TAKE_PTR(c);
}

static void spare_done(struct spare *s)
{
    http_link_free(s->link);
    free(s->key);
}

void http_client_free(struct http_client *c)
{
    vec_for_each(&c->spare, s)
        spare_done(s);
    vec_done(&c->spare);
    if (c->trust)
        http_trust_free(c->trust);
    free_secret(c->token);
    free(c->user_agent);
    free(c->unix_socket);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int http_client_set_token(struct http_client *c, const char *token, struct err *e)
{
    if (token && http_has_control(token))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidToken",
                       "there is a line end or another control character in a token");
    char *next = copy(token);
    pthread_mutex_lock(&c->lock);
    char *last = c->token;
    c->token = next;
    pthread_mutex_unlock(&c->lock);
    free_secret(last);
    return 0;
}

/* Takes one out of the row; the lock is held. */
static struct spare spare_pick(struct http_client *c, size_t i)
{
    struct spare s = c->spare.p[i];
    c->spare.len--;
    memmove(&c->spare.p[i], &c->spare.p[i + 1], (c->spare.len - i) * sizeof(s));
    return s;
}

/* Nothing was to come on it: whatever can be read now is its end. */
static bool is_alive(struct http_link *l)
{
    char byte;
    size_t n;
    return http_link_read(l, &byte, 1, &n, NULL) == HTTP_IO_WAIT;
}

/* A kept connection that leads there, or NULL. Closes all that are too old, or dead. */
static struct http_link *spare_take(struct http_client *c, const char *key)
{
    int64_t oldest = clock_mono_ns(clock_system()) - SPARE_SECONDS * CLOCK_SECOND;
    struct http_link *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = c->spare.len; i-- > 0;) {
        bool fits = !found && str_eq(c->spare.p[i].key, key);
        bool good = c->spare.p[i].since >= oldest;
        if (good && !fits)
            continue;
        struct spare s = spare_pick(c, i);
        if (good && is_alive(s.link))
            found = TAKE_PTR(s.link);
        if (s.link)
            http_link_free(s.link);
        free(s.key);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void spare_give(struct run *r)
{
    struct http_client *c = r->client;
    struct spare s = {r->link, mem_strdup(r->key), clock_mono_ns(clock_system())};
    r->link = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->spare.len == SPARE) {
        struct spare old = spare_pick(c, 0);
        spare_done(&old);
    }
    vec_push(&c->spare, s);
    pthread_mutex_unlock(&c->lock);
}

static int add_header(struct str *head, const char *line, struct err *e)
{
    static const char *const own[] = {"Connection", "Content-Length", "Host", "Transfer-Encoding"};
    size_t n = strcspn(line, ":");
    _cleanup_free_ char *name = mem_strndup(line, n);
    if (!line[n] || !http_is_token(name) || http_has_control(line))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidHeader",
                       "a header is none: write 'Name: value'");
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (strcasecmp(name, own[i]) == 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "InvalidHeader",
                           "the header %s is the client's own: leave it out", own[i]);
    }
    str_appendf(head, "%s\r\n", line);
    return 0;
}

static void add_token(struct http_client *c, struct str *head)
{
    pthread_mutex_lock(&c->lock);
    if (c->token)
        str_appendf(head, "Authorization: Bearer %s\r\n", c->token);
    pthread_mutex_unlock(&c->lock);
}

static void add_host(const struct http_url *u, struct str *head)
{
    bool six = strchr(u->host, ':');
    str_appendf(head, "Host: %s%s%s", six ? "[" : "", u->host, six ? "]" : "");
    if (u->port != (u->tls ? 443 : 80))
        str_appendf(head, ":%u", (unsigned)u->port);
    str_append(head, "\r\n");
}

static const char *method_of(const struct http_exchange *x)
{
    return x->method ? x->method : "GET";
}

/* The request as it goes over the wire; a long body stays where it is. */
static int write_head(struct run *r, struct err *e)
{
    const struct http_exchange *x = r->x;
    const char *method = method_of(x);
    struct str *head = &r->head;
    if (!http_is_token(method))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidMethod", "the method is none");
    str_appendf(head, "%s %s", method, r->url.target_size && *r->url.target == '/' ? "" : "/");
    str_append_n(head, r->url.target, r->url.target_size);
    str_append(head, " HTTP/1.1\r\n");
    add_host(&r->url, head);
    str_appendf(head, "User-Agent: %s\r\n", r->client->user_agent);
    add_token(r->client, head);
    for (const char *const *h = x->headers; h && *h; h++) {
        if (add_header(head, *h, e) < 0)
            return -1;
    }
    if (x->body || str_eq(method, "POST") || str_eq(method, "PUT") || str_eq(method, "PATCH"))
        str_appendf(head, "Content-Length: %zu\r\n", x->body ? x->body_size : 0);
    str_append(head, "\r\n");
    r->total = head->len + (x->body ? x->body_size : 0);
    if (x->body && x->body_size <= JOINED)
        str_append_n(head, x->body, x->body_size);
    return 0;
}

static int take_body(struct run *r, const char *bytes, size_t n, struct err *e)
{
    const struct http_exchange *x = r->x;
    struct http_response *response = r->reader.response;
    if (x->receive && response->status / 100 == 2) {
        r->refused = x->receive(x->context, bytes, n, e) < 0;
        return r->refused ? -1 : 0;
    }
    size_t limit = x->limit ? x->limit : DEFAULT_LIMIT;
    if (n > limit - response->body.len)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "ResponseTooLarge",
                       "the answer is longer than %zu bytes", limit);
    str_append_n(&response->body, bytes, n);
    return 0;
}

static int take_piece(struct run *r, const char *bytes, size_t n, struct err *e)
{
    while (n > 0 && !http_reader_complete(&r->reader)) {
        const char *body;
        size_t used, body_size;
        if (http_reader_feed(&r->reader, bytes, n, &used, &body, &body_size, e) < 0 ||
            (body_size && take_body(r, body, body_size, e) < 0))
            return -1;
        bytes += used;
        n -= used;
    }
    r->surplus = n > 0;
    return 0;
}

static enum http_io write_some(struct run *r, struct err *e)
{
    size_t n = 0;
    bool in_head = r->sent < r->head.len;
    const char *from = in_head
                           ? r->head.p + r->sent
                           : (const char *)r->x->body + (r->sent - (r->total - r->x->body_size));
    size_t left = (in_head ? r->head.len : r->total) - r->sent;
    enum http_io io = http_link_write(r->link, from, left, &n, e);
    r->sent += n;
    return io;
}

static enum http_io read_some(struct run *r, struct err *e)
{
    size_t n = 0;
    if (!r->piece)
        r->piece = mem_alloc(PIECE);
    enum http_io io = http_link_read(r->link, r->piece, PIECE, &n, e);
    r->heard |= n > 0;
    if ((n > 0 && take_piece(r, r->piece, n, e) < 0) ||
        (io == HTTP_IO_END && http_reader_end(&r->reader, e) < 0))
        return HTTP_IO_FAILED;
    return io;
}

/*
 * Writes the request and reads the answer, both at once: a server may answer before it has read all,
 * and close. So what cannot be written is no failure until there is no answer either.
 */
static int talk(struct run *r, struct err *e)
{
    struct err unsent;
    while (!http_reader_complete(&r->reader)) {
        bool writing = !r->mute && r->sent < r->total;
        enum http_io out = writing ? write_some(r, &unsent) : HTTP_IO_WAIT;
        r->mute |= out == HTTP_IO_FAILED;
        enum http_io in = read_some(r, e);
        if (in == HTTP_IO_FAILED) {
            if (r->mute && !r->heard)
                *e = unsent;
            return -1;
        }
        if (in == HTTP_IO_SOME || out == HTTP_IO_SOME) {
            http_wait_heard(&r->wait);
            if (!http_reader_complete(&r->reader) && http_wait_check(&r->wait, e) < 0)
                return -1;
        } else if (in == HTTP_IO_WAIT) {
            mem_freep(&r->piece); /* what waits for days waits without */
            r->piece = NULL;
            if (http_link_wait(r->link, &r->wait, writing && !r->mute, e) < 0)
                return -1;
        }
    }
    return 0;
}

/* On one connection. *ret_dead: it was a kept one that had died before it carried anything. */
static int attempt(struct run *r, bool fresh, bool *ret_dead, struct err *e)
{
    struct http_client *c = r->client;
    const struct http_place to = {c->unix_socket, r->x->address, r->x->port, &r->url};
    r->link = fresh ? NULL : spare_take(c, r->key);
    bool reused = r->link;
    *ret_dead = false;
    if (!r->link && http_link_open(&to, c->trust, &r->wait, &r->link, e) < 0)
        return -1;
    r->sent = 0;
    int status = talk(r, e);
    *ret_dead = status < 0 && reused && !r->heard && e->code == ERR_UNAVAILABLE;
    if (status == 0 && r->reader.keep && !r->surplus && r->sent == r->total)
        spare_give(r);
    if (r->link)
        http_link_free(TAKE_PTR(r->link));
    return status;
}

/* Requests that change nothing may arrive twice; so may those that cannot have arrived. */
static bool may_repeat(const struct run *r)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", NULL};
    return r->sent == 0 || str_in(method_of(r->x), safe);
}

static int run(struct run *r, struct err *e)
{
    const struct http_exchange *x = r->x;
    bool dead;
    if (http_url_parse(x->url, &r->url, e) < 0 || write_head(r, e) < 0)
        return -1;
    r->key = mem_printf("%d %s %u %s %u", r->url.tls, r->url.host, (unsigned)r->url.port,
                        x->address ? x->address : "", (unsigned)x->port);
    if (http_wait_check(&r->wait, e) < 0)
        return -1;
    int status = attempt(r, false, &dead, e);
    if (dead && may_repeat(r)) {
        r->mute = false;
        status = attempt(r, true, &dead, e);
    }
    return status;
}

int http_client_send(struct http_client *c, const struct http_exchange *x,
                     struct http_response *ret_response, struct err *e)
{
    struct err ignored = {0};
    struct run r = {.client = c, .x = x};
    e = e ? e : &ignored;
    str_clear(&ret_response->body);
    http_reader_init(&r.reader, str_eq(method_of(x), "HEAD"), ret_response);
    http_wait_begin(&r.wait, x->timeout_ns, x->idle_ns, x->cancel);
    int status = run(&r, e);
    if (status < 0 && !r.refused && e->code != ERR_INVALID_ARGUMENT)
        err_prefix(e, "%s", x->url);
    http_reader_done(&r.reader);
    if (r.head.p)
        explicit_bzero(r.head.p, r.head.len); /* it has the token */
    str_done(&r.head);
    free(r.piece);
    free(r.key);
    return status;
}

void http_response_done(struct http_response *r)
{
    str_done(&r->body);
    str_done(&r->warnings);
}
