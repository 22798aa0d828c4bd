/*
 * The controllers of orlop-controller, as a table.
 *
 * Those that are embedded do what a real cluster has already (the life of nodes, scheduling, ...): "*"
 * is them too only beside the embedded API server. Elsewhere who wants one says its name.
 */
#pragma once

#include <stdbool.h>

#include "kube/manager.h"

struct controller {
    const char *name, *doc;
    bool embedded;
    /* Asks the manager for informers and a controller; what is its own it frees in an on_stop. */
    int (*setup)(struct kube_manager *m, struct err *e);
};

/* Of the program (cmd/controllers.c); ends with one without a name. */
enum { CONTROLLERS_MAX = 64 };
extern const struct controller controllers[];

/*
 * Whether a list in the syntax of kube-controller-manager asks for it: "*" is all, "name" this one,
 * "-name" not this one; the first that names it wins.
 */
bool controllers_asked(const char *list, const char *name);
/* Whether one of the table is to run: asked for, and if it is embedded, beside such a server or by name. */
bool controllers_runs(const char *list, const struct controller *it, bool embedded);
/* INVALID_ARGUMENT for a name that is no controller's, with the nearest that is. */
int controllers_check(const char *list, struct err *e);
/* Sets up those that are asked for, in the order of the table. */
int controllers_setup(struct kube_manager *m, const char *list, bool embedded, struct err *e);

/* devicelife.c */
int controllers_device_lifecycle(struct kube_manager *m, struct err *e);
/* cspc/ */
int controllers_cspc(struct kube_manager *m, struct err *e);
/* volume/ */
int controllers_cstor_volume(struct kube_manager *m, struct err *e);
int controllers_cvc(struct kube_manager *m, struct err *e);
int controllers_jiva_volume(struct kube_manager *m, struct err *e);
int controllers_jiva_resize(struct kube_manager *m, struct err *e);
/* topolvm/ */
int controllers_topolvm(struct kube_manager *m, struct err *e);
int controllers_topolvm_provisioner(struct kube_manager *m, struct err *e);
