/*
 * What the parts of src/lvm share.
 */
#pragma once

#include "base/str.h"
#include "lvm/lvm.h"

struct lvm {
    char *folder, *device_dir;
    bool has_dm;
    char *env[6]; /* "NAME=value", ends with NULL */
};

/* What a failure means depends on what was asked for. */
enum lvm_intent { LVM_TO_READ, LVM_TO_CREATE, LVM_TO_GROW, LVM_TO_REMOVE, LVM_TO_CHANGE };

/* Runs lvm with these words, which end with NULL; ret_out may be NULL. */
int lvm_run(struct lvm *l, enum lvm_intent intent, const char *const *words, struct str *ret_out,
            struct err *e);
/* The error for what lvm wrote on standard error; ERR_OK when it says that it is already so. */
int lvm_classify(enum lvm_intent intent, int status, const char *text, struct err *e);
