/*
 * What the files of the registry share.
 */
#pragma once

#include "base/rfc3339.h"
#include "base/str.h"
#include "k8s/apiserver/registry.h"

/*
 * How often a change that names no revision is made anew because somebody was faster. Each time
 * somebody else got on, so it is only a bound on how unlucky one can be.
 */
enum { REGISTRY_RACES = 100 };

/* The time as Kubernetes stamps it. */
void registry_now(const struct apiserver_registry *g, char buf[RFC3339_MAX]);
/* The stored object that a request names; NULL with NotFound. */
struct apiserver_object *registry_current(struct apiserver_registry *g,
                                          const struct apiserver_request *r, struct err *e);
/* Conflict: somebody was faster. */
int registry_outdated(const struct apiserver_request *r, const char *name, struct err *e);
/* A stored object without managedFields, and these as text, "" for none; NULL. */
json_t *registry_load(const struct apiserver_object *o, struct str *ret_managed, struct err *e);
/* "Invalid", with what the report says first; returns -1. */
int registry_invalid(const struct apiserver_request *r, const json_t *object,
                     const struct api_report *report, struct err *e);
/* The same as the kind's schema has it; of a kind without one, as it is. */
json_t *registry_read(const struct api_kind *kind, const struct apiserver_object *o,
                      struct str *ret_managed, struct err *e);
void registry_bump_generation(json_t *metadata);
/* Whether finalizers keep a deleted object. */
bool registry_is_held(const struct api_kind *kind, const json_t *object);
bool registry_has_finalizer(const json_t *metadata, const char *finalizer);
void registry_remove_finalizer(json_t *metadata, const char *finalizer);
/* The text of an object before and behind the digits of its revision. */
void registry_encode(const json_t *object, struct str *head, struct str *tail);
/* Encodes an object and makes the change, or only says what it would be. */
struct apiserver_object *registry_write(struct apiserver_registry *g,
                                        const struct apiserver_request *r,
                                        enum apiserver_change change, const char *name,
                                        uint64_t expected, const json_t *object, struct err *e);
/*
 * The end of an object that nothing holds any longer. Who watches sees it as it last was, `stored`;
 * the result is what the update made of it.
 */
struct apiserver_object *registry_write_end(struct apiserver_registry *g,
                                            const struct apiserver_request *r,
                                            const struct apiserver_object *there,
                                            const json_t *object, const json_t *stored,
                                            struct err *e);
