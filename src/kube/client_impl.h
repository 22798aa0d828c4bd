/*
 * The parts of the client, private to client*.c and reflector.c.
 *
 *     kube_get() ... -> request -> attempts: a token of the bucket, http, again? -> Status or JSON
 *     reflector      -> watch   -> one attempt, lines as they come
 *
 * Whatever may wait does so on behalf of a call: a place in the client's list, by which another
 * thread can end it, and where it leaves what went wrong last.
 */
#pragma once

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "http/client.h"
#include "kube/client.h"
#include "metrics/metrics.h"

struct kube_call {
    struct list_link link; /* in the client's calls or its spare ones */
    struct http_cancel *cancel;
    bool cancelled;  /* under the client's lock, like what follows */
    struct err last; /* of an attempt; code OK: none */
};

/* client_token.c: what is sent as a bearer token, and the file that it comes from. */
struct kube_token {
    pthread_mutex_t lock;
    char *path;      /* NULL: it never changes */
    char *header;    /* "Authorization: Bearer ..."; NULL: none */
    int64_t read_ns; /* when, monotonic */
};

/* client_warning.c: which warnings were logged. */
struct kube_warnings {
    pthread_mutex_t lock;
    struct map seen;
};

struct kube_client {
    char *server, *address, *ns, *manager, *host;
    uint16_t port; /* of the server, for the address */
    struct http_client *http;
    struct kube_token token;
    struct kube_warnings warnings;
    const struct clock *clock;
    int64_t deadline_ns;

    pthread_mutex_t lock;
    pthread_cond_t woken; /* a call was cancelled; monotonic */
    bool stopped;
    struct list_link calls, spare; /* under way; for the next */
    int64_t interval_ns, burst_ns; /* of the bucket: what a token takes, what all do */
    int64_t full_ns;               /* when the bucket is full again, monotonic */

    struct metrics *metrics; /* NULL: none; and then no family either */
    struct metrics_family *requests, *durations;
};

/* client.c */

/* Borrows a call; kube_call_end() gives it back. */
struct kube_call *kube_call_begin(struct kube_client *c);
void kube_call_end(struct kube_client *c, struct kube_call *call);
/* Ends what it is at and all that comes. */
void kube_call_cancel(struct kube_client *c, struct kube_call *call);
/* Sleeps; -1 with CANCELLED. */
int kube_call_sleep(struct kube_client *c, struct kube_call *call, int64_t ns, struct err *e);
bool kube_call_is_cancelled(struct kube_client *c, struct kube_call *call);
/* Leaves and reads what was wrong last. */
void kube_call_note(struct kube_client *c, struct kube_call *call, const struct err *e);
void kube_call_last(struct kube_client *c, struct kube_call *call, struct err *ret_e);

/* client_send.c */

struct kube_request {
    const char *method; /* a literal */
    const char *path;   /* from the server's root, with the query */
    const json_t *body; /* NULL: none */
    const char *content_type;
    size_t limit; /* of the answer; 0: 16 MiB */
};

/* Until there is an answer that counts: 0 with a 2xx, else -1 with the Status' error. */
int kube_send(struct kube_client *c, struct kube_call *call, const struct kube_request *q,
              struct http_response *ret_response, struct err *e);
/* The same with a call of its own, and the answer as an object. */
json_t *kube_send_json(struct kube_client *c, const struct kube_request *q, struct err *e);

struct kube_stream {
    const char *path;
    int64_t timeout_ns, idle_ns;
    int (*receive)(void *context, const char *bytes, size_t n, struct err *e);
    void *context;
};

struct kube_answer {
    unsigned status;      /* 0: there was none, or it broke off */
    unsigned retry_after; /* seconds; 0: it did not say */
};

/* One attempt at a watch. 0: it ended in order. */
int kube_stream(struct kube_client *c, struct kube_call *call, const struct kube_stream *s,
                struct kube_answer *ret_answer, struct err *e);

/* client_status.c */

/* The error of an answer that is not 2xx. */
int kube_status_error(unsigned status, const char *body, size_t size, struct err *e);
/* The same for a Status that came in another way: an event of a watch. */
int kube_status_json_error(const json_t *status, unsigned code, struct err *e);

/* client_path.c */

/* "/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUB"; ns, name, sub may be NULL. */
void kube_path_append(struct str *path, const struct kube_resource *r, const char *ns,
                      const char *name, const char *sub);
/* "?key=value" or "&key=value", encoded; nothing for a NULL. */
void kube_path_query(struct str *path, const char *key, const char *value);

/* client_list.c */

/* kube_list_pages() on behalf of a call. page() may change the items. */
int kube_list_each(struct kube_client *c, struct kube_call *call, const struct kube_resource *r,
                   const char *ns, const struct kube_query *q,
                   int (*page)(void *context, const json_t *items, struct err *e), void *context,
                   struct str *ret_version, struct err *e);

/* client_token.c */
void kube_token_init(struct kube_token *t, const struct kube_config *config, int64_t now);
void kube_token_done(struct kube_token *t);
/* The header, to be freed; NULL without a token. Reads the file again when that was a minute ago. */
char *kube_token_get(struct kube_token *t, int64_t now);
/* The server did not take `sent`. Whether there is another by now. */
bool kube_token_refused(struct kube_token *t, const char *sent, int64_t now);

/* client_warning.c */
void kube_warnings_init(struct kube_warnings *w);
void kube_warnings_done(struct kube_warnings *w);
/* Values of Warning headers, each with a line end. */
void kube_warnings_log(struct kube_warnings *w, const char *lines, const char *url);
