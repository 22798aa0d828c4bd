/*
 * What the files of the registry share.
 */
#pragma once

#include "apiserver/registry.h"
#include "base/rfc3339.h"
#include "base/str.h"

/* The time as Kubernetes stamps it. */
void registry_now(const struct apiserver_registry *g, char buf[RFC3339_MAX]);
/* The stored object that a request names; NULL with NotFound. */
struct apiserver_object *registry_current(struct apiserver_registry *g,
                                          const struct apiserver_request *r, struct err *e);
/* A stored object without managedFields, and these as text, "" for none; NULL. */
json_t *registry_read(const struct apiserver_object *o, struct str *ret_managed, struct err *e);
/* "Invalid", with what the report says first; returns -1. */
int registry_invalid(const struct apiserver_request *r, const json_t *object,
                     const struct api_report *report, struct err *e);
void registry_bump_generation(json_t *metadata);
/* Encodes an object and makes the change, or only says what it would be. */
struct apiserver_object *registry_write(struct apiserver_registry *g,
                                        const struct apiserver_request *r,
                                        enum apiserver_change change, const char *name,
                                        uint64_t expected, const json_t *object, struct err *e);
