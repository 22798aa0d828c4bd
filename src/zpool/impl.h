/*
 * What the files of the engine share. The only place that includes libzpool's headers; base headers
 * come first, since libzpool's define many plain words.
 */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/vec.h"
#include "zpool/volume.h"
#include "zpool/zpool.h"

/* clang-format off */
#include <sys/zfs_context.h>
#include <sys/spa.h>
#include <sys/spa_impl.h>
#include <sys/arc.h>
#include <sys/arc_impl.h>
#include <sys/dbuf.h>
#include <sys/dmu.h>
#include <sys/dmu_objset.h>
#include <sys/dmu_recv.h>
#include <sys/dmu_send.h>
#include <sys/dmu_tx.h>
#include <sys/dnode.h>
#include <sys/dsl_dataset.h>
#include <sys/dsl_destroy.h>
#include <sys/dsl_dir.h>
#include <sys/dsl_pool.h>
#include <sys/dsl_prop.h>
#include <sys/dsl_scan.h>
#include <sys/mmp.h>
#include <sys/txg.h>
#include <sys/uberblock_impl.h>
#include <sys/vdev.h>
#include <sys/vdev_impl.h>
#include <sys/zap.h>
#include <sys/zfs_file.h>
#include <sys/zfs_rlock.h>
#include <sys/zil.h>
#include <sys/zio.h>
#include <sys/zio_checksum.h>
#include <zfeature_common.h>
#include <zfs_namecheck.h>
#include <zfs_prop.h>
/* clang-format on */

struct zpool {
    char name[ZFS_MAX_DATASET_NAME_LEN];
    spa_t *spa;            /* held; NULL while it is being made or imported */
    struct list_link link; /* device.c's, as is the next */
    VEC(char *) paths;     /* that may be opened; owned */
};

/* The numbers and names that a kernel's zvol has. */
enum { VOLUME_OBJECT = 1, VOLUME_PROPERTIES = 2 };
#define VOLUME_SIZE "size"
#define VOLUME_MARK "orlop:mark"

struct zpool_volume {
    struct zpool *pool;
    objset_t *os; /* owned by it */
    dnode_t *dn;  /* of VOLUME_OBJECT; held */
    zilog_t *log; /* NULL: open for reading alone */
    zfs_rangelock_t ranges;
    uint64_t size; /* grows; atomic */
    uint32_t block;
    bool replaying;
    int replay_error;
    char name[ZFS_MAX_DATASET_NAME_LEN]; /* "pool/vol" */
};

/* err_errno() for what ZFS returns, whose words for some numbers are its own. */
int zpool_errno(struct err *e, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A number of a list, 0 where there is none. */
static inline uint64_t zpool_number(nvlist_t *nv, const char *name)
{
    uint64_t n = 0;
    (void)nvlist_lookup_uint64(nv, name, &n);
    return n;
}

/* pool.c */
/* ZFS's number for "lz4". */
int zpool_compression_parse(const char *word, uint64_t *ret_value, struct err *e);
/* A handle without a pool yet, and its end, which also forgets the paths. */
struct zpool *zpool_new(const char *name);
void zpool_free(struct zpool *p);
/* The pool, which is there, for the handle. Frees the handle on failure. */
struct zpool *zpool_hold(struct zpool *p, struct err *e);
/* Of every pool, whether it is made or imported; for nvlist_free(). */
nvlist_t *zpool_properties(void);

/* The error of what zpool_doubt() finds; returns -1. */
int zpool_in_doubt(const struct zpool *p, struct err *e);
/* UNAVAILABLE when the pool is suspended: what would wait for ever is refused. */
int zpool_ready(struct zpool *p, struct err *e);

/* open.c */
/* Files of this folder may be devices; NULL: only block devices. */
int zpool_open_files(const char *folder, struct err *e);
/* A descriptor of what is there (O_PATH), or -errno; -ENOTBLK for what may not be a device. */
int zpool_device_pin(const char *path, struct stat *ret_st);
/* Opens what is pinned; -errno. */
int zpool_device_open(int pin, int flags);

/* claim.c */
/* libzpool may open this path for this pool; all that were not allowed are ENOENT to it. */
void zpool_device_allow(struct zpool *p, const char *path);
void zpool_device_forget(struct zpool *p);
/* What its devices lost is no longer held against them. */
void zpool_device_trust(struct zpool *p);
/* The last transaction group on disk of the pool that may open this path; 0: none, or not yet. */
uint64_t zpool_device_txg(const char *path);
/* EBUSY when another process has it. */
int zpool_device_is_free(int fd);
/* The right to open a device; errno values: ENOENT, not allowed; EBUSY, somebody else has it. */
struct zpool_claim;
int zpool_claim_take(const char *path, int pin, const struct stat *st,
                     struct zpool_claim **ret_claim);
void zpool_claim_drop(struct zpool_claim *c);

/* device.c */
void zpool_device_direct(bool yes);
/* Devices whose sync failed may be written again. */
void zpool_device_forgive(void);
/* The age of the oldest request under way of the device at path, in ms. */
uint64_t zpool_device_stuck_ms(const char *path);
/* For dmu_recv_begin(): fd as libzpool wants files; it stays the caller's. */
struct zfs_file *zpool_device_wrap(int fd);
void zpool_device_unwrap(struct zfs_file *file);

/* doubt.c */
/* A sync of the device failed, and there were writes that no other sync had made durable. */
void zpool_doubt_add(const char *path);
bool zpool_doubt_has(const char *path);
/* Its pool was closed, or has copies and will make it whole: it is trusted again. */
void zpool_doubt_remove(const char *path);
/* Whether something that was written may be on no device: from then on nothing can be called durable. */
bool zpool_doubt(struct zpool *p);
/* What devices lost is in the pool's books after this. */
void zpool_doubt_note(struct zpool *p);

/* fault.c: a request to a device, done as the rules say; as pread(), pwrite(), fdatasync(). */
struct zpool_target {
    const char *path;
    int fd;
};
ssize_t zpool_fault_pread(const struct zpool_target *t, void *p, size_t n, off_t at);
ssize_t zpool_fault_pwrite(const struct zpool_target *t, const void *p, size_t n, off_t at);
int zpool_fault_sync(const struct zpool_target *t);

/* engine.c */
uint32_t zpool_host_id(void);

/* signature.c: what libblkid sees. Both return an errno value. */
int zpool_signature_read(int fd, char *ret_what, size_t size);
int zpool_signature_wipe(const char *path);

/* label.c */
/*
 * Fills *ret from a device. With ret_label only labels count: *ret_label is the device's, for nvlist_free(),
 * or NULL, and what else may be on it is not looked for.
 */
void zpool_label_look(const char *path, struct zpool_found *ret, nvlist_t **ret_label);

/* layout.c */
/*
 * The nvlist that libzpool makes vdevs of, from groups that are sound and devices that may be used (and
 * have been wiped where overwrite says so), which may be opened for p from then on; for nvlist_free().
 */
nvlist_t *zpool_layout_build(struct zpool *p, const struct zpool_layout *layout, struct err *e);
/* The same for one device, to attach or to replace by. A spare of the pool may be used. */
nvlist_t *zpool_layout_leaf(struct zpool *p, const struct zpool_device *device, unsigned ashift,
                            struct err *e);

/* vdev.c */
struct zpool_member {
    uint64_t guid;
    enum zpool_role role;
    unsigned ashift; /* of its group */
    bool in_use;     /* of a spare */
};
bool zpool_member_find(struct zpool *p, const char *device, struct zpool_member *ret);

/* volume.c */
enum zpool_name_kind { NAME_VOLUME, NAME_SNAPSHOT, NAME_EITHER };
/* "pool/volume" or "pool/volume@snap" of at most ZFS_MAX_DATASET_NAME_LEN, when the name is one. */
int zpool_volume_path(struct zpool *p, const char *name, enum zpool_name_kind kind, char *ret_path,
                      struct err *e);

/* volume_io.c: with the range locked; errno values. */
int zpool_volume_write_locked(struct zpool_volume *v, uint64_t offset, uint64_t length,
                              const struct iovec *iov, bool sync);
int zpool_volume_unmap_locked(struct zpool_volume *v, uint64_t offset, uint64_t length, bool sync);

/* intent.c: the log. */
void zpool_intent_write(struct zpool_volume *v, dmu_tx_t *tx, uint64_t offset, uint64_t length,
                        bool sync);
void zpool_intent_unmap(struct zpool_volume *v, dmu_tx_t *tx, uint64_t offset, uint64_t length,
                        bool sync);
zil_get_data_t zpool_intent_data;
/* Plays what is in the log; an errno value. */
int zpool_intent_replay(struct zpool_volume *v);
