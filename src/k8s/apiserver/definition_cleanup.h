/*
 * The end of a CustomResourceDefinition: its objects are deleted first, then the finalizer that holds
 * it is taken off.
 */
#pragma once

#include "k8s/apiserver/registry.h"

/* Whether the server has yet to clean up behind a definition. */
bool definition_has_cleanup(const json_t *definition);
/*
 * Deletes what there is of a kind; how many objects are left, because their finalizers hold them or
 * because they could not be deleted now. `kind` is NULL when it is not in service.
 */
size_t definition_delete_objects(struct apiserver_registry *g, const struct api_kind *kind,
                                 const char *group, const char *plural);
/* Takes off the finalizer; if it was the last the definition is gone. */
void definition_release(struct apiserver_registry *g, const char *name);
