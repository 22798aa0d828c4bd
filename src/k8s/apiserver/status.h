/*
 * A metav1.Status: how the API says that something failed, or that a deletion is done.
 *
 * The reason of an error decides: those that the API knows map to its HTTP codes, for all others the
 * gRPC code does. Where Kubernetes' clients and people expect certain words ("gadgets.example.test
 * "x" not found") they get these, whatever the layers below called it.
 *
 * Two reasons are ours and say more than the API's: NamespaceNotFound is NotFound of the namespace
 * instead of the object, NamespaceTerminating is Forbidden with that cause.
 */
#pragma once

#include "api/kind.h"
#include "api/report.h"
#include "base/err.h"

/* What a request was about, as far as is known. */
struct apiserver_about {
    const struct api_kind *kind;
    const struct api_group_version *gv; /* as asked for; NULL: the canonical one */
    const char *name;
    const char *namespace; /* NULL: none */
};

/*
 * The Status of an error. `report`, if given, has the causes of an Invalid one; unknown fields in it
 * make it the BadRequest that strict decoding answers. `about` may be NULL. *ret_code is the HTTP
 * status.
 */
json_t *apiserver_status(const struct err *error, const struct api_report *report,
                         const struct apiserver_about *about, unsigned *ret_code);
/* The Status of a deletion that is done; uid may be NULL: of a collection. */
json_t *apiserver_status_deleted(const struct apiserver_about *about, const char *uid);

/* The HTTP status and, if asked for, the API's reason for an error. */
unsigned apiserver_status_code(const struct err *error, const char **ret_reason);
