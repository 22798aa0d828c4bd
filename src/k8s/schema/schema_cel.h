/*
 * What the files about rules in CEL (x-kubernetes-validations) share: the compiled rules of a node.
 */
#pragma once

#include "k8s/cel/cel.h"
#include "k8s/schema/schema_impl.h"

enum { SCHEMA_CEL_SELF, SCHEMA_CEL_OLD }; /* places of the variables */

enum { SCHEMA_CEL_STEPS = 32 }; /* of a fieldPath */

struct schema_cel_rule {
    struct cel_program *program;    /* owned by the set */
    struct cel_program *expression; /* messageExpression; NULL: none */
    const char *rule, *message;     /* trimmed; message "" for none */
    enum api_cause cause;
    bool optional_old;        /* it is evaluated without an old value too */
    const char *const *steps; /* of fieldPath; ends with NULL; NULL: none */
};

struct schema_cel {
    struct schema_cel_rule *rules;
    size_t n;
};
