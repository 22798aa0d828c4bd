/*
 * What a request asks for: its method and path, against the tables of kinds.
 *
 *     /healthz  /livez  /readyz  /version                          health, version
 *     /api  /apis  /apis/G  /api/v1  /apis/G/V                      discovery
 *     /openapi/v2  /openapi/v3  /openapi/v3/api/v1  .../apis/G/V    schemas
 *     /apis/G/V/plural                                              all objects of a kind
 *     /apis/G/V/namespaces/NS/plural[/name[/subresource]]           (core group: /api/v1/...)
 *     /apis/G/V/plural[/name[/subresource]]                         of kinds of the whole cluster
 *
 * Segments are decoded one by one after the path was split, so an escaped slash never makes a
 * segment more; what could be mistaken for something else where it is used (control characters,
 * broken UTF-8, "." and "..", a slash or a percent sign inside a name) is no path at all. The result
 * owns its texts and points to the tables only.
 */
#pragma once

#include "api/kind.h"
#include "base/err.h"

enum apiserver_asked {
    APISERVER_ASKED_ROOT,      /* / */
    APISERVER_ASKED_HEALTH,    /* name: healthz, livez or readyz; check: one of its checks, or "" */
    APISERVER_ASKED_VERSION,   /* /version */
    APISERVER_ASKED_METRICS,   /* /metrics */
    APISERVER_ASKED_CORE,      /* /api */
    APISERVER_ASKED_GROUPS,    /* /apis */
    APISERVER_ASKED_GROUP,     /* /apis/G */
    APISERVER_ASKED_RESOURCES, /* /api/v1, /apis/G/V */
    APISERVER_ASKED_OPENAPI_V2,
    APISERVER_ASKED_OPENAPI_V3, /* the index */
    APISERVER_ASKED_OPENAPI_V3_DOCUMENT,
    APISERVER_ASKED_OBJECTS, /* objects of a kind */
};

enum apiserver_verb {
    APISERVER_GET,
    APISERVER_LIST,
    APISERVER_WATCH,
    APISERVER_CREATE,
    APISERVER_UPDATE,
    APISERVER_PATCH,
    APISERVER_DELETE,
    APISERVER_DELETE_COLLECTION,
};

enum apiserver_subresource {
    APISERVER_MAIN,
    APISERVER_STATUS,
    APISERVER_SCALE,
    APISERVER_TOKEN,    /* of a service account: create one */
    APISERVER_LOG,      /* of a pod: read */
    APISERVER_FINALIZE, /* of a namespace: its spec.finalizers */
    APISERVER_APPROVAL, /* of a certificate request: its conditions */
    APISERVER_BINDING,  /* of a pod: create one */
    APISERVER_SUBRESOURCES
};

enum {
    APISERVER_PATH_MAX = 4096, /* bytes of a path */
    APISERVER_NAME_MAX = 253,
};

struct apiserver_path {
    enum apiserver_asked asked;
    enum apiserver_verb verb; /* get, for all that are not objects */
    /* Of a group's or version's discovery or schema; of a group only `group` is set. */
    const char *group;                  /* in the tables; "" for core */
    const struct api_group_version *gv; /* in the tables: the version asked for */
    const struct api_kind *kind;        /* of objects */
    enum apiserver_subresource subresource;
    bool all_namespaces;                    /* objects of every namespace */
    char namespace[APISERVER_NAME_MAX + 1]; /* "": none */
    char name[APISERVER_NAME_MAX + 1];      /* "": the collection */
    char check[APISERVER_NAME_MAX + 1];     /* of a health check */
};

/*
 * `path` is as it came, without the query; `watch`: the query says watch=true. NotFound for what
 * there is not, MethodNotAllowed for what one cannot do with it, BadRequest for what is no path.
 * On failure *ret_path has kind and version where they were found, for the Status to name them.
 */
int apiserver_path_parse(const struct api_kind *const *kinds, const char *method, const char *path,
                         size_t size, bool watch, struct apiserver_path *ret_path, struct err *e);

/* "deletecollection" */
const char *apiserver_verb_text(enum apiserver_verb verb);
/* "status"; "" for the object itself */
const char *apiserver_subresource_text(enum apiserver_subresource subresource);
/* Whether a subresource is the status of the object, or a part of it, and leaves the rest alone. */
static inline bool apiserver_is_status(enum apiserver_subresource subresource)
{
    return subresource == APISERVER_STATUS || subresource == APISERVER_APPROVAL;
}
/* Whether a kind, or a subresource of it, has the verb at all: what discovery shows. */
bool apiserver_allows(const struct api_kind *kind, enum apiserver_subresource subresource,
                      enum apiserver_verb verb);
bool apiserver_has_subresource(const struct api_kind *kind, enum apiserver_subresource subresource);
