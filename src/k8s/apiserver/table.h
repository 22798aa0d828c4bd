/*
 * Tables: what `kubectl get` shows. The server picks the cells, by the columns of the kind's table;
 * the client only lays them out.
 *
 * A table is written straight to bytes, one row at a time, so that a list of many objects needs no
 * tree of them all; objects go in as the bytes they are stored as.
 */
#pragma once

#include "api/kind.h"
#include "base/clock.h"
#include "k8s/apiserver/store.h"

/* What each row carries beside its cells. */
enum apiserver_include {
    APISERVER_INCLUDE_METADATA, /* a PartialObjectMetadata */
    APISERVER_INCLUDE_OBJECT,   /* all of it */
    APISERVER_INCLUDE_NONE,
};

struct apiserver_table {
    const struct api_kind *kind;
    const struct clock *clock; /* of ages */
    enum apiserver_include include;
    bool no_headers;            /* later events of a watch: the columns are known by then */
    uint64_t revision;          /* of the list, or of the one object; 0: not said */
    const char *continue_token; /* of a list that goes on; NULL */
    size_t remaining;           /* how many more there are; 0: not said */
};

/* The value of the query parameter includeObject; NULL or "" is the default. BadRequest. */
int apiserver_include_parse(const char *text, enum apiserver_include *ret_include, struct err *e);

/* The whole table, appended. DATA_LOSS when an object is no JSON; *out is as it was then. */
int apiserver_table(const struct apiserver_table *t, struct apiserver_object *const *objects,
                    size_t n, struct str *out, struct err *e);

/*
 * The same in steps, for objects that are not as they are stored: begin, rows with a comma between
 * them, end. `object` is in normal form, for the cells; `shown` is what the row carries, of which
 * NULL is the object itself.
 */
void apiserver_table_begin(const struct apiserver_table *t, struct str *out);
void apiserver_table_row(const struct apiserver_table *t, const json_t *object, const json_t *shown,
                         struct str *out);
void apiserver_table_end(struct str *out);
/* A row up to where its object stands, {"cells":[...]; the rest is the caller's. */
void apiserver_table_cells(const struct apiserver_table *t, const json_t *object, struct str *out);
