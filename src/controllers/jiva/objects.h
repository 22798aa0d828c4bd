/*
 * What the files that describe a volume's children share.
 */
#pragma once

#include "controllers/jiva/jiva.h"

json_t *jiva_named(const char *name, const char *suffix);
json_t *jiva_labels(const json_t *volume, const char *component);
/* An object of the volume: it goes with it. */
json_t *jiva_child(const json_t *volume, const char *version, const char *kind, const char *suffix,
                   const char *component);
/* The account of the volume's sidecar: by this name admission knows whose it is (api/access.h). */
json_t *jiva_account_name(const json_t *volume);
/* A boolean of the policy, or what is usual. */
bool jiva_policy_says(const json_t *policy, const char *key, bool usually);
/* Whether the target serves metrics. */
bool jiva_is_monitored(const json_t *volume);
