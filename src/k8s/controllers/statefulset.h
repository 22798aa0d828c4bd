/*
 * StatefulSets as functions of JSON values: pods with a number, and claims that belong to it.
 */
#pragma once

#include "json/json.h"

#define STATEFULSET_HASH "controller-revision-hash"

/* The number at the end of the name of a pod of the set; -1: it has none. */
int64_t statefulset_ordinal(const json_t *set, const json_t *pod);
/* The pod of that number, of a revision's template; its name ends the revision's name. */
json_t *statefulset_pod(const json_t *set, const json_t *template, int64_t ordinal,
                        const char *revision);
/* The claims of that number, as an array. */
json_t *statefulset_claims(const json_t *set, int64_t ordinal);
/* The template as a ControllerRevision keeps it, and back. */
json_t *statefulset_revision(const json_t *set, int64_t number);
const json_t *statefulset_template(const json_t *revision);

/* What a pod is to the one who keeps it. */
struct statefulset_pod_state {
    bool there;     /* it exists */
    bool ending;    /* is being deleted */
    bool failed;    /* has ended and is to be made again */
    bool available; /* runs, and has been ready long enough */
    bool updated;   /* has the newest template */
};

enum statefulset_action {
    STATEFULSET_NOTHING, /* all is done, or something is waited for */
    STATEFULSET_CREATE,
    STATEFULSET_DELETE,
};

struct statefulset_step {
    enum statefulset_action action;
    size_t pod; /* place in the list */
};

/*
 * The next step for the pods in the list: the first `wanted` should be there, the rest not; of those
 * wanted only such from `partition` on are brought to the newest template. Unless `parallel`, each
 * waits for those before it, and the end of each for the end of those behind.
 */
struct statefulset_step statefulset_next(const struct statefulset_pod_state *pods, size_t n,
                                         size_t wanted, size_t partition, bool parallel,
                                         bool rolling);
