/*
 * What the files of scheduling share.
 */
#pragma once

#include "base/quantity.h"
#include "k8s/controllers/schedule.h"

void schedule_add_reason(struct schedule_reasons *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* schedule_volumes.c */
void schedule_filter_volumes(const json_t *claims, const json_t *node, struct schedule_reasons *r);

/* schedule_resources.c */
/* A quantity in nano-units. */
__int128 schedule_amount(const json_t *value);
void schedule_filter_resources(const json_t *pod, const struct schedule_node *node,
                               struct schedule_reasons *r);
/* How much of cpu and memory would be free after it, 0 to 100. */
int64_t schedule_score_room(const json_t *pod, const struct schedule_node *node);

/* schedule_affinity.c */
int64_t schedule_score_affinity(const json_t *pod, const struct schedule_node *nodes, size_t n,
                                size_t node);
void schedule_filter_pods(const json_t *pod, const struct schedule_node *nodes, size_t n,
                          size_t node, struct schedule_reasons *r);
