/*
 * What the files of scheduling share.
 */
#pragma once

#include "base/quantity.h"
#include "embedded/schedule.h"

void schedule_add_reason(struct schedule_reasons *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* schedule_resources.c */
/* What a pod asks for of a resource, in nano-units. */
__int128 schedule_request(const json_t *pod, const char *resource);
void schedule_filter_resources(const json_t *pod, const struct schedule_node *node,
                               struct schedule_reasons *r);
/* How much of cpu and memory would be free after it, 0 to 100. */
int64_t schedule_score_room(const json_t *pod, const struct schedule_node *node);

/* schedule_affinity.c */
bool schedule_term_matches(const json_t *term, const json_t *node); /* of a NodeSelector */
int64_t schedule_score_affinity(const json_t *pod, const struct schedule_node *nodes, size_t n,
                                size_t node);
void schedule_filter_pods(const json_t *pod, const struct schedule_node *nodes, size_t n,
                          size_t node, struct schedule_reasons *r);
