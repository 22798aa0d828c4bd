/*
 * The objects that a controller keeps for an object of its own: a volume's Service, a pool's
 * Deployment.
 *
 *     template ──fill──> wanted ──> the same hash, and the cache has all of it: nothing is sent
 *                                └─> else: server-side apply with our field manager, by force
 *
 * Invariants:
 * - What is wanted is there in the end: a field of ours that somebody changed is put right, one
 *   that is no longer wanted is taken out. What others add beside stays theirs.
 * - A child carries the hash of what it was made from. One that is as wanted costs no request. Which
 *   lists may have items of others only the server knows: where a list has other items than wanted,
 *   it is asked to apply, and a child that stays at its version by that was as wanted.
 * - An object of that name that is not ours is never written. Ours is what our owner controls, or
 *   what nobody controls and has our hash: somebody took the owner off, and it comes back.
 * - What a child has from its birth (a key) is made when it is created, and written by whoever
 *   creates it; creating is what the server lets one do: no second key takes the place of the first.
 * - No value of a Secret is in a hash, an error or a log.
 */
#pragma once

#include "kube/informer.h"

/* The annotation that has the hash. */
#define KUBE_CHILD_HASH "orlop.io/template-hash"

/* A kind of children, and where they are cached; without an informer the server is asked. */
struct kube_children {
    struct kube_resource r;
    struct kube_informer *informer;
};

/* What a Secret has from its birth. */
struct kube_birth {
    const char *const *keys; /* of its data, none of which may be empty; ends with NULL */
    json_t *(*make)(const json_t *owner, struct err *e); /* their values, as its stringData */
};

struct kube_child {
    const struct kube_children *of;
    const json_t *owner;            /* who controls it; NULL: nobody, it is shared */
    const json_t *wanted;           /* without owner and hash */
    const struct kube_birth *birth; /* NULL: none */
};

enum kube_applied {
    KUBE_CHILD_KEPT,     /* it was as wanted, or it is going */
    KUBE_CHILD_CREATED,  /* there was none */
    KUBE_CHILD_CHANGED,  /* another thing is wanted than before */
    KUBE_CHILD_REPAIRED, /* somebody had changed it */
};

/*
 * Makes the child what is wanted: the object as it is now, and what was done in *ret_applied, if
 * given. FAILED_PRECONDITION, NotOurs: the name is taken. UNAVAILABLE, Leftover: by a child of an
 * owner of the same name that was deleted; it is about to go.
 */
json_t *kube_apply_child(struct kube_client *c, const struct kube_child *child,
                         enum kube_applied *ret_applied, struct err *e);
/*
 * Deletes the owner's children of a kind that are in the cache and not named here; names ends with
 * NULL. The informer has the index kube_children_by_owner.
 */
int kube_prune_children(struct kube_client *c, const struct kube_children *of, const json_t *owner,
                        const char *const *names, struct err *e);
extern const struct kube_index kube_children_by_owner;
/* Whether an object has all of what is wanted, in the sense of an apply. */
bool kube_child_has(const json_t *live, const json_t *wanted);
