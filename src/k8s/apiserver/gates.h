/*
 * Feature gates: what can be switched on and off by name. Zeroed is as they are by default.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct apiserver_features {
    bool fixed_claim_templates; /* StatefulSetVolumeExpansion=false */
    /* OrlopAdmission=false: the rules of our own kinds are left to a webhook, as in other clusters. */
    bool no_rules;
};

/* "Name=true,Other=false" */
int apiserver_features_parse(const char *text, struct apiserver_features *features, struct err *e);
