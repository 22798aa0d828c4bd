/*
 * What the functions of attach.h share: the folder of a volume, and what is really there.
 */
#pragma once

#include "attach/attach.h"
#include "json/json.h"

enum { ATTACH_ID_MOST = 128 };

struct attach_place {
    char *node;   /* the real path of the node's folder */
    char *folder; /* NODE/ID */
    char *mount, *file, *control, *request;
    char label[ATTACH_LABEL_SIZE];
    int busy; /* -1: not locked */
};

/* Checks the id; makes the node's folder, not the volume's. */
int attach_place_init(struct attach_place *p, const struct attach_node *n, const char *id,
                      struct err *e);
void attach_place_done(struct attach_place *p);
bool attach_place_exists(const struct attach_place *p);
/* Makes the volume's folder and locks it; ABORTED when somebody else has it. */
int attach_place_lock(struct attach_place *p, struct err *e);
/* Whether the process lives, and who it is. */
bool attach_place_alive(const struct attach_place *p, pid_t *ret_pid);

/* What is there. Asks the process only if it lives, and never waits for a target. */
int attach_inspect(const struct attach_place *p, const char *id, struct attach_volume *ret,
                   struct err *e);
/* The loop devices of the volume on other file systems than `keep`, 0 is none, are removed. */
int attach_drop_loops(const struct attach_place *p, dev_t keep, struct err *e);
