/*
 * The addresses behind a service, as functions of the Service and the Pods.
 */
#pragma once

#include "json/json.h"

/* Whether a service has endpoints that follow from its selector. */
bool endpoints_concern(const json_t *service);
bool endpoints_select(const json_t *service, const json_t *pod);
/* The Endpoints object; `pods` is an array of those that are selected. */
json_t *endpoints_object(const json_t *service, const json_t *pods);
/* The EndpointSlices, as an array: one for each set of ports. */
json_t *endpoints_slices(const json_t *service, const json_t *pods);
