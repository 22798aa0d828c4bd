/*
 * How the lists of a few built-in Kubernetes kinds merge: Pod, Deployment, StatefulSet, Service,
 * PersistentVolumeClaim and ServiceAccount. Stands in for the kinds' tables of src/api, so that
 * strategic merge can be compared with kubectl, which knows exactly these.
 */
#pragma once

#include "json/patch.h"

bool smp_schema_find(const char *apiVersion, const char *kind, struct json_smp_schema *ret,
                     const void **ret_root);
