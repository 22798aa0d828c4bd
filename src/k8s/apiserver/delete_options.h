/*
 * DeleteOptions: how to delete, from the body of a request or, without one, from its query.
 */
#pragma once

#include "http/server.h"
#include "k8s/apiserver/registry.h"

struct delete_options {
    json_t *body;  /* owns the uid that the request points to; NULL */
    bool accepted; /* orphanDependents: false, whose answer is 202 while dependents are left */
};

/* "DeleteOptions" of meta.k8s.io, for a Status about them. */
extern const struct api_kind delete_options_kind;

/*
 * Puts into the request what the options say. BadRequest when they cannot be read, Invalid with
 * problems in the report when they make no sense.
 */
int delete_options_parse(const struct http_request *http, struct apiserver_request *r,
                         struct delete_options *ret_options, struct api_report *report,
                         struct err *e);
void delete_options_done(struct delete_options *o);
