/*
 * The match conditions of webhooks: what their expressions can look at.
 */
#pragma once

#include "k8s/cel/cel.h"

enum api_match_variable {
    API_MATCH_OBJECT,
    API_MATCH_OLD,
    API_MATCH_REQUEST,
    API_MATCH_AUTHORIZER
};

/* object, oldObject, request and authorizer; ends with an empty one. */
extern const struct cel_variable api_match_variables[];
