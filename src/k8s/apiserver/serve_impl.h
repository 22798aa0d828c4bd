/*
 * What the files that serve requests share.
 */
#pragma once

#include <pthread.h>

#include "api/selector.h"
#include "base/list.h"
#include "base/map.h"
#include "http/pool.h"
#include "http/server.h"
#include "k8s/apiserver/audit.h"
#include "k8s/apiserver/authn.h"
#include "k8s/apiserver/certificates.h"
#include "k8s/apiserver/control.h"
#include "k8s/apiserver/follow.h"
#include "k8s/apiserver/health.h"
#include "k8s/apiserver/jwt_cache.h"
#include "k8s/apiserver/kinds.h"
#include "k8s/apiserver/limit.h"
#include "k8s/apiserver/managed.h"
#include "k8s/apiserver/metrics.h"
#include "k8s/apiserver/path.h"
#include "k8s/apiserver/pieces.h"
#include "k8s/apiserver/pod_log.h"
#include "k8s/apiserver/registry.h"
#include "k8s/apiserver/serve.h"
#include "k8s/apiserver/table.h"
#include "k8s/apiserver/token.h"

/* What a client wants to see of objects. */
enum form_what { FORM_OBJECT, FORM_TABLE, FORM_METADATA };

struct form {
    enum form_what what;
    const struct api_group_version *gv; /* of objects */
    struct apiserver_table table;       /* kind and clock, and of a Table what its rows carry */
};

enum { SHARED_TEXTS = 16, SHARED_TEXT_BYTES = 64 << 10 };

/* An event of an object in a form, encoded. */
struct shared_text {
    uint64_t revision; /* 0: none */
    struct form form;
    bool headers;
    struct pieces_text *text; /* NULL: none */
};

struct apiserver {
    struct apiserver_registry registry;
    struct http_server *http;
    struct http_pool *converters; /* threads that make what watches of converted kinds send */
    struct apiserver_audit *audit;
    struct apiserver_limits *limits;
    struct apiserver_follow *follow;
    bool roles_changed; /* aggregated ones may be out of date; the followers' thread's own */
    struct apiserver_certificates *certificates;
    struct apiserver_jwt_cache tokens;
    struct apiserver_token_file *token_file; /* NULL: none */
    bool plain_http;
    /* What serviceaccounts.c knows; of the followers' thread. */
    struct {
        uint64_t generation; /* of the authorities that all namespaces have */
        bool pending;        /* something could not be written */
    } accounts;
    /* What followers keep; only their thread touches it. */
    struct gc *gc;
    struct namespaces *namespaces;
    struct protection *protection;
    struct quota_status *quotas;
    struct event_ttl *events;
    struct {
        bool pending;    /* something could not be written */
        int64_t cleaned; /* when old requests were last looked for, monotonic */
    } requests;
    struct {
        bool stale;      /* what it is made of may be different */
        int64_t checked; /* when it was last compared, monotonic */
    } cluster_info;
    int64_t event_ttl_ns;
    /* Logs of containers; the thread that follows them is started by the first who asks. */
    struct pod_log_source logs;
    char *pods; /* the folder that the default source reads; NULL: none */
    struct pod_log_follow *log_follow;
    char *store_path;
    struct apiserver_metrics *metrics;
    struct apiserver_health health;
    struct apiserver_control *control;
    struct {
        _Atomic int64_t second; /* in which lines are counted */
        _Atomic unsigned lines, dropped;
    } log;
    struct definitions *definitions; /* the follower's own; NULL: there are none */
    pthread_mutex_t lock;
    struct map watches; /* those that are open: collection -> struct list_link */
    uint64_t announced; /* the last change that watches were told of */
    int64_t ticked_ns;  /* the followers' thread's own: when watches were last looked through */
    int64_t trimmed_ns; /* the same: when memory was last given back */
    _Atomic unsigned watches_ended; /* since then */
    pthread_mutex_t shared_lock;
    struct shared_text shared[SHARED_TEXTS];
};

/* One request and what is known of it. */
struct call {
    struct apiserver *server;
    struct http_request *http;
    const struct apiserver_user *user; /* a reference */
    const struct apiserver_user *real; /* who acts as the user; a reference, NULL: nobody else */
    struct apiserver_kinds *kinds;     /* in service when the request came; path points into it */
    struct apiserver_path path;
    char manager[MANAGED_NAME_MAX + 1]; /* of the fields that a write changes */
    bool known;                         /* the path leads somewhere */
    bool decided;                       /* authorization has spoken */
    bool allowed;                       /* and said yes */
    struct str reason;                  /* why, as far as there is something to say */
    struct apiserver_audit_call audit;
    struct api_report report;
    struct apiserver_notes notes;
    struct err err;
    int64_t start;  /* monotonic */
    bool streaming; /* answered by a stream, which says itself when it is over */
};

/* serve.c */
/* Answers that are longer are compressed for clients that take it, as in Kubernetes. */
enum { CALL_GZIP_BYTES = 128 << 10 };
/* Like http_reply(). */
void call_reply_bytes(struct call *c, unsigned status, const char *type, const void *bytes,
                      size_t size, void (*free_fn)(void *context), void *context);
/* Takes over the text. */
void call_reply_text(struct call *c, unsigned status, const char *type, struct str *text);
void call_reply_json(struct call *c, unsigned status, const json_t *value);
/* The error in c->err as a Status. */
void call_fail(struct call *c);

/* serve_body.c */
int call_bad_request(struct call *c, const char *message);
/* Whether it can be taken for a list of strings: one, or nothing. */
bool call_is_list_of_strings(const json_t *value);
/* The body, which must be JSON; what it has twice is for fieldValidation. NULL with BadRequest. */
json_t *call_json(struct call *c, const char *what);
/* The body, JSON or protobuf; NULL with BadRequest or UnsupportedMediaType. */
json_t *call_body(struct call *c);
/* An object of the kind that the path names, a new reference; NULL with BadRequest. */
json_t *call_typed_object(struct call *c, json_t *object);
/* The body as an object of the kind that the path names. */
json_t *call_body_object(struct call *c);
/* Answers with an object, in protobuf for clients that take nothing else. */
void call_reply_value(struct call *c, unsigned status, const json_t *object);
/* Whether the client takes protobuf and nothing else, and the kind can be had in it. */
bool call_wants_protobuf(const struct call *c);

/* serve_audit.c */
void call_audit_begin(struct call *c);
void call_audit_end(struct call *c); /* after the answer */

/* review.c: answers a question that was posted. */
void call_review(struct call *c);
/* review_access.c: each fills in the status of a review; -1 with c->err or problems in c->report. */
int review_self_access(struct call *c, json_t *object);
int review_access(struct call *c, json_t *object);
int review_local_access(struct call *c, json_t *object);
int review_self_rules(struct call *c, json_t *object);
/* review_token.c: each fills in the status of a review; -1 with c->err or problems in c->report. */
int review_self(struct call *c, json_t *object);
int review_token(struct call *c, json_t *object);

/* serve.c, again */
/* The collection that the path names, its objects' key prefix, or NULL for all. */
void call_collection(const struct call *c, struct str *ret_collection, struct str *ret_prefix);
/* serve_form.c */

/* What the Accept header asks for. */
int call_form(struct call *c, struct form *ret_form);
/* Whether an object in this form is the bytes it is stored as. */
bool form_is_stored(const struct form *f, const struct apiserver_object *o);
/* One object as an answer or event of its own; `headers`: with a Table's columns. */
void form_append(const struct form *f, const struct apiserver_object *o, bool headers,
                 struct str *out);
/* A list in steps: begin, items with a comma between them, end. The token is NULL at the end. */
void form_append_begin(const struct form *f, const struct apiserver_list *list, const char *token,
                       struct str *out);
void form_append_item(const struct form *f, const struct apiserver_object *o, struct str *out);
void form_append_end(const struct form *f, struct str *out);
/* An object that only says how far a watch is. */
void form_append_bookmark(const struct form *f, uint64_t revision, bool initial_end, bool headers,
                          struct str *out);

/* serve_options.c: the query of lists and watches. */
enum match { MATCH_UNSET, MATCH_EXACT, MATCH_NOT_OLDER };
enum initial { INITIAL_UNSET, INITIAL_SEND, INITIAL_SKIP };

struct list_options {
    bool watch;
    bool given;        /* a resourceVersion */
    uint64_t revision; /* that one */
    enum match match;
    size_t limit; /* 0: none */
    bool continued;
    struct apiserver_token token; /* to be done by the caller */
    /* Of a watch. */
    bool bookmarks;
    enum initial initial;
    uint64_t timeout_seconds; /* 0: not said */
};

/* BadRequest, or Invalid for what does not go together. */
int call_list_options(struct call *c, bool watch, struct list_options *ret_options);

/* What labelSelector and fieldSelector say. */
struct selection {
    struct api_selector labels;
    struct api_field_selector fields;
    bool any;              /* there is one */
    bool by_label;         /* labels decide something */
    bool by_value;         /* fields beside name and namespace do */
    const char *name;      /* must be this; NULL: any */
    const char *namespace; /* the same */
};

int call_selection(struct call *c, struct selection *ret_selection);
void selection_done(struct selection *s);
bool selection_matches(const struct selection *s, const struct apiserver_object *o);
/* False when no object of that key can ever match. */
bool selection_may_match(const struct selection *s, const struct apiserver_object *o);

/* serve_manager.c: who owns what a request changes, from fieldManager or User-Agent. */
int call_manager(struct call *c);
/* What an apply must and only an apply may say. */
int call_check_apply(struct call *c, bool apply, bool *ret_force);
/* definitions.c: gives up what the follower of definitions has. */
void definitions_free(struct definitions *d);

/* serve_description.c: everything but objects. */
void call_description(struct call *c);
/* serve_openapi.c: the document of a version, of NULL the index; and the one of v2. */
void call_openapi_v3(struct call *c, const struct api_group_version *gv);
void call_openapi_v2(struct call *c);

/* serve_log.c: what is counted and written down of each request. */

/* What is known of a request after it is gone. */
struct call_record {
    struct apiserver *server;
    const struct apiserver_path *path;
    bool known, apply, dry_run;
    const char *method, *uri, *user, *agent;
    char peer[HTTP_PEER_MAX], id[APISERVER_AUDIT_ID_MAX];
    int64_t start;
    unsigned status;
    uint64_t bytes; /* of the answer */
    bool owned;     /* the texts */
};

/* At the start of a request: its time. */
void call_begin(struct call *c);
/* When the handler has answered. */
void call_end(struct call *c);
/* Borrows the call's texts and path. */
struct call_record call_record(const struct call *c);
/* Copies the texts, for a record that outlives its call. */
void call_record_own(struct call_record *r);
/* Counts it, writes it down, frees what it owns. */
void call_record_finish(struct call_record *r);
/* Headers that every answer has: warnings. */
void call_headers(struct call *c);

/* serve_objects.c, serve_list.c, serve_watch.c: each answers. */
void call_objects(struct call *c);
/* What the path and the query say of a request for objects. */
struct apiserver_request call_request(struct call *c);
/* Answers with the object and gives up the reference; with c->err when it is NULL. */
void call_reply_object(struct call *c, unsigned status, struct apiserver_object *o);
void call_list(struct call *c);
void call_watch(struct call *c);
/* scale.c, finalize.c, pod_log.c, binding.c: subresources. */
void call_scale(struct call *c);
void call_finalize(struct call *c);
void call_log(struct call *c);
void call_binding(struct call *c);

/* serve_token.c: /token of a service account. */
void call_token(struct call *c);

/* Tells watches of changes, in the order of revisions. */
void watch_changed(struct apiserver *a, struct apiserver_object *const *objects, size_t n);
/* Wakes every watch: the kinds in service are others. */
void watch_wake_all(struct apiserver *a);
extern const struct apiserver_follower watch_follower;

/* serve_shared.c: form_append() once for all watches that want the same; a new reference. */
struct pieces_text *watch_shared(struct apiserver *a, const struct form *f,
                                 const struct apiserver_object *o, bool headers);
/* Forgets those that are large; who sends them keeps them for as long as that takes. */
void watch_shared_trim(struct apiserver *a);
