/*
 * Admission: what may stop or change a write beside the rules of its kind, because it needs to look
 * at other objects, at who asks, or at what somebody else says.
 *
 *     request ─> mutate ─> the kind's table: defaults, structure, rules ─> validate ─> hold ─> store
 *                                                                                   ^         │
 *                                                                                   └ release ┘
 *
 * Each step is a list of functions in admission.c, called in order until one fails. They see every
 * write, also those of dry runs and those that the server makes itself (request->user is NULL
 * then), and decide for themselves which concern them. They keep nothing of a dry run.
 *
 * What must still be true when the object is written, though others write at the same time, is
 * asked by the last list: its functions take hold of what they looked at (a namespace that may not
 * go, room in a quota), and it is released when the write is visible or has failed. They must be
 * quick.
 */
#pragma once

#include "k8s/apiserver/registry.h"

enum apiserver_operation { APISERVER_OP_CREATE, APISERVER_OP_UPDATE, APISERVER_OP_DELETE };

struct apiserver_admission {
    struct apiserver_registry *registry;
    const struct apiserver_request *request;
    enum apiserver_operation operation;
    json_t *object;            /* NULL of a deletion; only `mutate` functions may change it */
    const json_t *old;         /* as stored; NULL of a create */
    struct api_report *report; /* for problems with fields; NULL of a deletion */
    /* What `hold` functions hold. */
    bool namespaces_held;
    struct rules_reservation *reservation;
    struct rules_address *address; /* of a service; held from `mutate` on */
    struct rules_flight *flight; /* of a kind with rules that look at others; from `validate` on */
    json_t *wishes;              /* what is to be written after it; NULL: nothing */
    /* As it is stored, where that is another version and a webhook converts; NULL: as it is. */
    json_t *converted;
    int64_t deadline; /* monotonic; set by the first step that waits for others; 0: none */
};

/* Fail with the error that the client gets; "Invalid" where there are problems in the report. */
int apiserver_admission_mutate(struct apiserver_admission *a, struct err *e);
int apiserver_admission_validate(struct apiserver_admission *a, struct err *e);
int apiserver_admission_hold(struct apiserver_admission *a, struct err *e);
/* Due at the end, however it went, also when nothing is held. */
void apiserver_admission_release(struct apiserver_admission *a);
/* After a write that is visible: releases, and makes what it leads to. */
void apiserver_admission_follow(struct apiserver_admission *a);

/* definitions.c: nothing is created of a kind whose definition is being deleted. */
int apiserver_definitions_admit(struct apiserver_admission *a, struct err *e);
