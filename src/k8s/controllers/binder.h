/*
 * Which volume a claim should have: functions of JSON values.
 */
#pragma once

#include "json/json.h"

/* Whether the volume's claimRef names the claim; one without a uid is kept for whoever has the name. */
bool binder_is_for(const json_t *volume, const json_t *claim);
/* The smallest of those (an array) that fit; NULL. Borrowed. */
const json_t *binder_best(const json_t *volumes, const json_t *claim);
