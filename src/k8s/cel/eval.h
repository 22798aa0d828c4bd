/*
 * What the files of the evaluation share.
 */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "k8s/cel/impl.h"

/* eval.c: 1, 0, or -1 for an error. */
int eval_truth(struct cel_run *r, const struct cel_node *n);
/* eval_loop.c */
bool eval_loop(struct cel_run *r, const struct cel_node *n, struct cel_value *ret);
bool eval_opt_map(struct cel_run *r, const struct cel_node *n, struct cel_value *ret);
/* authorizer.c: authorizer.requestResource */
bool eval_request_resource(struct cel_run *r, const struct cel_value *authorizer,
                           struct cel_value *ret);
