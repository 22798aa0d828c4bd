/*
 * What the files that serve requests share.
 */
#pragma once

#include <pthread.h>

#include "api/selector.h"
#include "apiserver/audit.h"
#include "apiserver/authn.h"
#include "apiserver/certificates.h"
#include "apiserver/control.h"
#include "apiserver/follow.h"
#include "apiserver/health.h"
#include "apiserver/kinds.h"
#include "apiserver/limit.h"
#include "apiserver/managed.h"
#include "apiserver/metrics.h"
#include "apiserver/path.h"
#include "apiserver/pod_log.h"
#include "apiserver/registry.h"
#include "apiserver/serve.h"
#include "base/list.h"
#include "base/map.h"
#include "http/server.h"

struct apiserver {
    struct apiserver_registry registry;
    struct http_server *http;
    struct apiserver_audit *audit;
    struct apiserver_limits *limits;
    struct apiserver_follow *follow;
    bool roles_changed; /* aggregated ones may be out of date; the followers' thread's own */
    struct apiserver_certificates *certificates;
    struct apiserver_token_file *token_file; /* NULL: none */
    bool plain_http;
    /* What serviceaccounts.c knows; of the followers' thread. */
    struct {
        uint64_t generation; /* of the authorities that all namespaces have */
        bool pending;        /* something could not be written */
    } accounts;
    /* Watches that are open; they are woken after each change. */
    pthread_mutex_t lock;
    struct list_link watches;
    /* What followers keep; only their thread touches it. */
    struct gc *gc;
    struct namespaces *namespaces;
    struct protection *protection;
    struct quota_status *quotas;
    struct event_ttl *events;
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
/* Takes over the text. */
void call_reply_text(struct call *c, unsigned status, const char *type, struct str *text);
void call_reply_json(struct call *c, unsigned status, const json_t *value);
/* The error in c->err as a Status. */
void call_fail(struct call *c);

/* serve_body.c */
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
/* Whether the bytes of objects as they are stored are what was asked for. */
bool call_is_as_stored(const struct call *c);
/* An object in the version that was asked for, for all others. NULL when it is damaged. */
json_t *call_object(const struct call *c, const struct apiserver_object *o);
/* Whether the client wants a Table. */
bool call_wants_table(const struct call *c);
/* Answers with a Table of these objects. */
void call_reply_table(struct call *c, struct apiserver_object *const *objects, size_t n,
                      uint64_t revision, const char *continue_token, size_t remaining);
/* An object's JSON in the version that was asked for, appended. */
void call_append_object(const struct call *c, const struct apiserver_object *o, struct str *out);

/* What labelSelector and fieldSelector say. */
struct selection {
    struct api_selector labels;
    struct api_field_selector fields;
    bool any; /* there is one */
};

int call_selection(struct call *c, struct selection *ret_selection);
void selection_done(struct selection *s);
bool selection_matches(const struct selection *s, const struct apiserver_object *o);

/* serve_manager.c: who owns what a request changes, from fieldManager or User-Agent. */
int call_manager(struct call *c);
/* What an apply must and only an apply may say. */
int call_check_apply(struct call *c, bool apply, bool *ret_force);
/* definitions.c: gives up what the follower of definitions has. */
void definitions_free(struct definitions *d);

/* serve_description.c: everything but objects. */
void call_description(struct call *c);

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
/* scale.c, finalize.c, pod_log.c: subresources. */
void call_scale(struct call *c);
void call_finalize(struct call *c);
void call_log(struct call *c);

/* serve_token.c: /token of a service account. */
void call_token(struct call *c);

/* Wakes every watch; the store calls it after changes. */
void watch_wake_all(void *server, uint64_t revision);
