/*
 * Volumes that are attached to this node without the kernel's iSCSI initiator: a process for each
 * (`orlop attach serve`), a FUSE mount with one file, and a loop device on it.
 *
 * A node keeps a folder for each volume, which is all that there is to know of it:
 *
 *     FOLDER/ID/volume.json      what was asked for; written before anything is started
 *     FOLDER/ID/busy             locked while an operation on the volume runs
 *     FOLDER/ID/chap, mutual     secrets, for root alone
 *     FOLDER/ID/control          the socket of the process
 *     FOLDER/ID/control.lock     locked as long as the process lives, with its pid
 *     FOLDER/ID/log
 *     FOLDER/ID/mount/volume     the file
 *
 * Nothing else is believed: whether the process lives, the lock says; which loop device is the volume's,
 * the devices say by their labels; whether a device is of this mount or of an earlier one, the number of
 * the file system says. So every function may be called after any crash, by another process, and again.
 * What an earlier attempt left is cleaned up by the next attach or detach.
 *
 * Invariants: a volume has at most one live process, because of the lock; a device that is returned is
 * backed by the live mount, and has the size and block size of the volume; detach returns 0 only when
 * process, mount, device and folder are gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/loop.h"
#include "base/err.h"

/* A process that cannot begin exits with this and the code of its error. */
enum { ATTACH_EXIT_BASE = 64 };

struct attach_node {
    const char *folder;  /* of all volumes; made if it is missing */
    const char *program; /* orlop-attach */
};

struct attach_request {
    const char *id;     /* up to 128 letters, digits and ".", "_", "-", ":" */
    const char *portal; /* ADDRESS[:PORT], numeric */
    const char *iqn;
    const char *initiator;
    unsigned lun;
    const char *chap_user, *chap_secret, *mutual_user, *mutual_secret; /* NULL: none */
    int64_t fail_after_ns; /* I/O fails when the target is away for so long; 0: never */
    int64_t within_ns;     /* for the first login; 0: 10 s */
};

struct attach_volume {
    char id[129];
    bool alive;     /* its process runs */
    bool mounted;   /* the file is there */
    bool connected; /* the session stands; I/O waits otherwise */
    pid_t pid;
    uint64_t size; /* of the volume, as the target said last */
    uint32_t block_size;
    char device[ATTACH_DEVICE_SIZE]; /* "": there is none on the live mount */
    unsigned stale;                  /* loop devices on mounts that are dead */
};

/* Whether everything is there and works together. */
static inline bool attach_is_whole(const struct attach_volume *v)
{
    return v->alive && v->mounted && v->device[0];
}

/*
 * Attaches, or finds what is attached already. Errors: INVALID_ARGUMENT; PERMISSION_DENIED, the target
 * refuses; UNAVAILABLE, it does not answer; FAILED_PRECONDITION, it is attached from another place;
 * ABORTED, another operation on the volume runs.
 */
int attach_add(const struct attach_node *n, const struct attach_request *r,
               struct attach_volume *ret, struct err *e);
/* NOT_FOUND when there is nothing of it. */
int attach_find(const struct attach_node *n, const char *id, struct attach_volume *ret,
                struct err *e);
/* Asks the target for the size and gives it to the device; *ret_size is what the device then says. */
int attach_grow(const struct attach_node *n, const char *id, uint64_t *ret_size, struct err *e);
/*
 * Flushes, then removes everything. FAILED_PRECONDITION while the device is mounted or otherwise in use;
 * DEADLINE_EXCEEDED when it cannot be flushed in that time. With force neither counts: the process ends and
 * I/O that waits fails, so that a file system on a volume whose target is gone can be unmounted; as long as
 * it is not, that too is FAILED_PRECONDITION, and another call does the rest. That there is nothing is
 * success.
 */
int attach_remove(const struct attach_node *n, const char *id, int64_t flush_ns, bool force,
                  struct err *e);
/*
 * Everything of ours in this folder, whole or not; *ret is to be freed. Loop devices whose volume has no
 * folder any more are in one more entry, without an id.
 */
int attach_audit(const struct attach_node *n, struct attach_volume **ret, size_t *ret_count,
                 struct err *e);
