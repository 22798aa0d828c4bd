/*
 * metadata.managedFields: who owns which fields of an object.
 *
 * Every write moves ownership. An update takes what it changed or added from everybody else, and
 * what it removed leaves everybody. An apply owns what its configuration says, no more and no less.
 * Managers are told apart by name, operation and subresource. Those of updates are kept to
 * MANAGED_MAX_UPDATERS; older ones are merged into "ancient-changes".
 *
 * In Kubernetes a manager's set is of the version that it wrote, and is converted when it is
 * compared with another. Here every object is kept in one version, the canonical one, whichever it
 * came in; so are the sets, and each entry's apiVersion says so.
 *
 * An object that has no entries stays without until it is applied: then what it has belongs to
 * "before-first-apply". So clients that clear managedFields (by sending [{}]) get rid of them.
 *
 * As JSON values the list costs more to read, copy and write than the object itself. So the server
 * has it as text: registry_read() cuts it out of a stored object, it is read from there into sets
 * only when something changes, and what comes of it is a string in the object until that is
 * encoded (registry_write()).
 */
#pragma once

#include "base/vec.h"
#include "k8s/apiserver/registry.h"
#include "k8s/apiserver/typed.h"

enum {
    MANAGED_MAX_UPDATERS = 10,
    /* Of the list as text: with it an object must still be within the limits of JSON. */
    MANAGED_MAX_BYTES = 2 * 1024 * 1024,
    /* Every write goes through all of them. */
    MANAGED_MAX_ENTRIES = 1000,
    MANAGED_NAME_MAX = 128,
};

struct managed_entry {
    const char *manager;
    const char *version;
    const char *subresource; /* "": the object itself */
    const char *time;        /* "": unknown */
    bool applied;            /* the operation is Apply */
    const struct fieldset *fields;
};

struct managed {
    VEC(struct managed_entry) entries;
    json_t *list; /* what they borrow from, if it is theirs to keep; NULL */
};

void managed_done(struct managed *m);
/* From the text of what is stored; what cannot be read is as if there were none. */
void managed_read(struct arena *a, const char *text, struct managed *ret_managed);
/* From managedFields of a client. Borrows from the list. */
int managed_decode(struct arena *a, const json_t *list, struct managed *ret_managed, struct err *e);
/* As JSON, in the order that Kubernetes has them; appended. RequestEntityTooLarge. */
int managed_encode(struct managed *m, struct str *out, struct err *e);
/* The entry of a request's manager with that operation; NULL. */
struct managed_entry *managed_find(struct managed *m, const struct apiserver_request *r,
                                   bool applied);
/* An entry of the request's manager, without fields. */
struct managed_entry managed_entry_of(struct arena *a, const struct apiserver_registry *g,
                                      const struct apiserver_request *r, bool applied);
void managed_drop_empty(struct managed *m);

/*
 * The list as it is put into an object that is about to be written, a new reference: its text, or
 * null when nobody owns anything. NULL and *e when it is too large.
 */
json_t *managed_value(struct managed *m, struct err *e);

/* A new object is all its creator's. */
int managed_create(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, struct err *e);
/* From where the list of an update starts. */
enum managed_start {
    MANAGED_STORED, /* as it is stored */
    MANAGED_CLIENT, /* as the client wants it; it is in the object */
    MANAGED_RESET,  /* nobody owns anything */
    MANAGED_DONE,   /* as an apply has found already */
};

/*
 * An update, in two steps; `list` is the text of what is stored, "" for none, and both objects are
 * without. First it is settled where the list starts from. If that is what is stored, and so is the
 * object, nothing changes. Else ownership moves.
 */
enum managed_start managed_begin_update(const struct apiserver_request *r, json_t *object,
                                        const char *list);
/* A list that differs only in times is what is stored. */
bool managed_is_stored(const struct apiserver_request *r, enum managed_start start,
                       const char *list);
int managed_update(const struct apiserver_registry *g, const struct apiserver_request *r,
                   json_t *object, const json_t *stored, enum managed_start start, const char *list,
                   struct err *e);
/* Puts the text of a list into an object as it is. */
void managed_keep(json_t *object, const char *list);
