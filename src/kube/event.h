/*
 * Events about objects, for people who ask `kubectl describe`.
 *
 * Recording never waits and never fails: a bounded queue, a thread that writes. The same event about
 * the same object again raises its count in place of making another; many of one reason that differ
 * only in the message are combined; one object may make only so many in a time.
 */
#pragma once

#include "kube/client.h"
#include "kube/object.h"

struct kube_recorder;

/* component: "orlop-controller"; host: where it runs, NULL: this machine. */
struct kube_recorder *kube_recorder_new(struct kube_client *client, const char *component,
                                        const char *host, const struct clock *clock, struct err *e);
/* Writes what is waiting, for at most a second: what the client is at then, it is told to stop. */
void kube_recorder_free(struct kube_recorder *r);
DEFINE_CLEANUP(struct kube_recorder *, kube_recorder_free)

/*
 * r may be NULL: then nothing is recorded. `about` is the object, with its kind, or an ObjectReference.
 * Reasons are CamelCase; messages are cut at 1024 bytes, as the API would refuse longer ones.
 */
void kube_event_normal(struct kube_recorder *r, const json_t *about, const char *reason,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void kube_event_warning(struct kube_recorder *r, const json_t *about, const char *reason,
                        const char *fmt, ...) __attribute__((format(printf, 4, 5)));
