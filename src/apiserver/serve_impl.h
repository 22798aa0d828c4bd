/*
 * What the files that serve requests share.
 */
#pragma once

#include <pthread.h>

#include "api/selector.h"
#include "apiserver/follow.h"
#include "apiserver/path.h"
#include "apiserver/registry.h"
#include "apiserver/serve.h"
#include "apiserver/table.h"
#include "apiserver/token.h"
#include "base/list.h"
#include "base/map.h"
#include "http/server.h"

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
    struct str text;
};

struct apiserver {
    struct apiserver_registry registry;
    struct http_server *http;
    struct apiserver_follow *follow;
    pthread_mutex_t lock;
    struct map watches; /* those that are open: collection -> struct list_link */
    uint64_t announced; /* the last change that watches were told of */
    /* OpenAPI documents, made when they are first asked for: "group/version" -> struct str. */
    struct map documents;
    int64_t ticked_ns; /* the followers' thread's own: when watches were last looked through */
    pthread_mutex_t shared_lock;
    struct shared_text shared[SHARED_TEXTS];
};

/* One request and what is known of it. */
struct call {
    struct apiserver *server;
    struct http_request *http;
    const struct apiserver_user *user;
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
/* serve_form.c */

/* What the Accept header asks for. */
int call_form(struct call *c, struct form *ret_form);
/* Whether an object in this form is the bytes it is stored as. */
bool form_is_stored(const struct form *f);
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

/* serve_description.c: everything but objects. */
void call_description(struct call *c);

/* serve_objects.c, serve_list.c, serve_watch.c: each answers. */
void call_objects(struct call *c);
void call_list(struct call *c);
void call_watch(struct call *c);
/* Tells watches of changes, in the order of revisions. */
void watch_changed(struct apiserver *a, struct apiserver_object *const *objects, size_t n);
extern const struct apiserver_follower watch_follower;

/* serve_shared.c: form_append() once for all watches that want the same. */
void watch_append_shared(struct apiserver *a, const struct form *f,
                         const struct apiserver_object *o, bool headers, struct str *out);
