/*
 * What LogicalVolumes, classes and nodes say of room: functions of JSON values, which know no server.
 *
 *     room for more = what the node says is free        (annotation capacity.topolvm.io/CLASS)
 *                   - what its volumes will yet take     (those that are not made, or not yet grown)
 *
 * All sizes are bytes. What a volume will take is rounded up to an extent, as LVM does. Every name of
 * the group topolvm.io is also read in its legacy form, topolvm.cybozu.com.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/decode.h"
#include "kinds/logicalvolume.h"

#define TOPOLVM_GROUP     "topolvm.io"
#define TOPOLVM_LEGACY    "topolvm.cybozu.com"
/* On a LogicalVolume that no PersistentVolume stands for yet: "NAMESPACE/NAME/UID" of its claim. */
#define TOPOLVM_CLAIM     "orlop.io/claim"
/* On a LogicalVolume whose node was forgotten: {"by", "at", "force"}. */
#define TOPOLVM_FORGOTTEN "orlop.io/forgotten"

enum { TOPOLVM_EXTENT = 4 << 20 };

/* Whether a driver or provisioner of that name is this one; NULL is not. */
bool topolvm_is_ours(const char *driver);
/* The value of GROUP/name, or else of LEGACY/name, of a map; NULL. Borrowed. */
const char *topolvm_value(const json_t *map, const char *name);
/* The annotation that asks a node to try again, in the words that the volume's finalizer has. */
const char *topolvm_retry_key(const json_t *lv);

/* What people read: "1536Mi". */
enum { TOPOLVM_SIZE_MAX = 48 };
const char *topolvm_size(int64_t bytes, char buf[TOPOLVM_SIZE_MAX]);
int64_t topolvm_round(int64_t bytes);

/* The device class that a StorageClass asks for; "" is each node's default. Borrowed. */
const char *topolvm_class_of(const json_t *storage_class);
/*
 * What the node calls the class that is meant by a class, a volume group or "" (its default). What the
 * node does not know is returned as it is. Borrowed, from node or from wanted.
 */
const char *topolvm_class_at(const json_t *node, const json_t *classes, const char *wanted);
/* What the node says of its classes, an array; to be freed; NULL when it says nothing. */
json_t *topolvm_classes(const json_t *node);

/* What is free of the class there, as the node says; false when it says nothing of such a class. */
bool topolvm_free(const json_t *node, const char *class, int64_t *ret_bytes);
/*
 * What the volume will yet take of what its node says is free. One that is being deleted too: its node
 * may be making it at this moment, and then take a while to remove it.
 */
int64_t topolvm_pending(const struct logical_volume *lv);
