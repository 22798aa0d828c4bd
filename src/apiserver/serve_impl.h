/*
 * What the files that serve requests share.
 */
#pragma once

#include <pthread.h>

#include "api/selector.h"
#include "apiserver/follow.h"
#include "apiserver/kinds.h"
#include "apiserver/path.h"
#include "apiserver/registry.h"
#include "apiserver/serve.h"
#include "base/list.h"
#include "base/map.h"
#include "http/server.h"

struct apiserver {
    struct apiserver_registry registry;
    struct http_server *http;
    struct apiserver_follow *follow;
    /* Watches that are open; they are woken after each change. */
    pthread_mutex_t lock;
    struct list_link watches;
    struct definitions *definitions; /* the follower's own; NULL: there are none */
};

/* One request and what is known of it. */
struct call {
    struct apiserver *server;
    struct http_request *http;
    const struct apiserver_user *user;
    struct apiserver_kinds *kinds; /* in service when the request came; path points into it */
    struct apiserver_path path;
    struct api_report report;
    struct err err;
};

/* serve.c */
/* Takes over the text. */
void call_reply_text(struct call *c, unsigned status, const char *type, struct str *text);
void call_reply_json(struct call *c, unsigned status, const json_t *value);
/* The error in c->err as a Status. */
void call_fail(struct call *c);
/* The collection that the path names, its objects' key prefix, or NULL for all. */
void call_collection(const struct call *c, struct str *ret_collection, struct str *ret_prefix);
/* Whether the bytes of objects as they are stored are what was asked for. */
bool call_is_as_stored(const struct call *c);
/* An object in the version that was asked for, for all others. NULL when it is damaged. */
json_t *call_object(const struct call *c, const struct apiserver_object *o);
/* Puts the warnings of the report, and of a version that is on its way out, into the reply. */
void call_add_warnings(struct call *c);
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

/* definitions.c: gives up what the follower of definitions has. */
void definitions_free(struct definitions *d);

/* serve_description.c: everything but objects. */
void call_description(struct call *c);

/* serve_objects.c, serve_list.c, serve_watch.c: each answers. */
void call_objects(struct call *c);
void call_list(struct call *c);
void call_watch(struct call *c);
/* Wakes every watch; the store calls it after changes. */
void watch_wake_all(void *server, uint64_t revision);
