/*
 * A claim that grows, and what is written of it. Private to resize.c and growth.c.
 */
#pragma once

#include "controllers/topolvm/topolvm.h"
#include "kube/condition.h"

#define GROWTH_STORAGE     "storage"
#define GROWTH_IN_PROGRESS "ControllerResizeInProgress"
#define GROWTH_INFEASIBLE  "ControllerResizeInfeasible"
#define GROWTH_PENDING     "NodeResizePending"

struct growth {
    struct topolvm *t;
    json_t *claim, *volume, *lv; /* owned; lv may be NULL */
    struct logical_volume v;     /* what `lv` says */
    int64_t wanted;              /* bytes */
    json_t *wanted_text;         /* as it was written; borrowed */
    struct kube_result *result;
};

void growth_done(struct growth *g);
/* How far it is, in the words of now; "". */
const char *growth_progress(const json_t *claim);
/* Takes the volume as it is now, and owns it. */
void growth_take(struct growth *g, json_t *lv);

/*
 * One write of all that the claim says: how far it is (NULL: done), what was asked for and what there
 * is (NULL: as it was), and the one condition that tells of it (NULL: none).
 */
int growth_write(struct growth *g, const char *progress, const json_t *allocated,
                 const json_t *capacity, const struct kube_condition *condition, struct err *e);
/* It did not work: said once, in the claim, in an event and in a metric. */
int growth_failed(struct growth *g, const char *progress, enum err_code code, const char *why,
                  struct err *e);
/* Under the ledger's lock: asks the node. 1; 0: there is no room, ret_why says how much; -1. */
int growth_promise(struct growth *g, struct str *ret_why, struct err *e);
/* The node refused: nothing more is promised to the volume than it has. */
int growth_withdraw(struct growth *g, enum err_code code, struct err *e);
