/*
 * The last look at the machine's devices, shared by those who ask.
 */
#pragma once

#include <pthread.h>

#include "node/device.h"

struct node_inventory {
    struct node_scan_options options;
    struct node_filter filter;
    struct node_prober prober;
    pthread_mutex_t scanning; /* one scan at a time; taken before the other */
    pthread_mutex_t lock;     /* of the scan */
    struct node_scan scan;
    bool known; /* there was one */
};

void node_inventory_init(struct node_inventory *i);
void node_inventory_done(struct node_inventory *i);
/* Looks again. On failure what is known stays. */
int node_inventory_refresh(struct node_inventory *i, struct err *e);
/* The device, and the inventory locked until the release; NULL when it is not there. */
const struct node_device *node_inventory_hold(struct node_inventory *i, const char *object);
void node_inventory_release(struct node_inventory *i);
/* Whether there was a scan: before it nothing can be said to be gone. */
bool node_inventory_known(struct node_inventory *i);

enum node_check {
    NODE_CHECK_FREE,   /* nobody uses it and nothing is on it: it may be claimed */
    NODE_CHECK_UNUSED, /* nobody uses it, whatever is on it: it may be wiped */
};
/*
 * Looks at the device itself, now, without what was remembered: is it still this one and is it free?
 * 0 and the path, which is the caller's; NOT_FOUND, or FAILED_PRECONDITION with the reason.
 */
int node_inventory_check(struct node_inventory *i, const char *object, enum node_check check,
                         char **ret_path, struct err *e);
/* Whether the kernel gives it exclusively: FAILED_PRECONDITION, "Busy". */
int node_inventory_check_path(const char *path, struct err *e);
