/*
 * DaemonSets as functions of JSON values.
 */
#pragma once

#include "json/json.h"

#define DAEMONSET_HASH "controller-revision-hash"

/* Whether a node should get a pod; *ret_keeps: whether one that is there may stay. */
bool daemonset_wants(const json_t *set, const json_t *node, bool *ret_keeps);
