/*
 * The library's start: its version, its limits, and those of its functions that are replaced.
 *
 * libzpool is made for ZFS's own tests, and some of what it does in place of a kernel is there to
 * provoke mistakes. A function that a program defines takes the place of the library's own of that
 * name, which is how these, and those of device.c, are replaced.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zpool/impl.h"

extern unsigned long zfs_dirty_data_max;
extern unsigned int zfetch_max_distance;
extern int dbuf_cache_shift;
extern char *spa_config_path;
/* Declared by headers that cannot be included beside the others. */
unsigned long get_system_hostid(void);
int64_t arc_available_memory(void);

static uint32_t host_id;

unsigned long get_system_hostid(void)
{
    return host_id;
}

uint32_t zpool_host_id(void)
{
    return host_id;
}

/* The library's own says at random that memory is short. */
int64_t arc_available_memory(void)
{
    return 1LL << 30;
}

/* The library's own reads a file for each number. */
int random_get_pseudo_bytes(uint8_t *p, size_t n)
{
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
    return 0;
}

/*
 * The ABI is private and changes with every version, so the library must be the one that this was
 * built for. It has no function that says its version, but the text is in it.
 */
static int check_version(struct err *e)
{
    static const char wanted[] = "zfs-" ZPOOL_ZFS_VERSION "-";
    Dl_info library;
    if (!dladdr((void *)(uintptr_t)kernel_init, &library))
        return err_set(e, ERR_INTERNAL, "LibraryUnknown", "cannot find libzpool's file");
    int fd = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0) {
        if (fd >= 0)
            close(fd);
        return err_errno(e, errno, "cannot read %s", library.dli_fname);
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return err_errno(e, errno, "cannot read %s", library.dli_fname);
    bool same = memmem(bytes, (size_t)st.st_size, wanted, sizeof(wanted) - 1) != NULL;
    munmap(bytes, (size_t)st.st_size);
    if (!same)
        return err_set(e, ERR_FAILED_PRECONDITION, "WrongLibrary",
                       "%s is not OpenZFS " ZPOOL_ZFS_VERSION
                       ", for which this program was built: install that version of libzpool, or "
                       "build again",
                       library.dli_fname);
    return 0;
}

int zpool_start(const struct zpool_options *o, struct err *e)
{
    static atomic_flag started = ATOMIC_FLAG_INIT;
    /* libzpool takes no less, and without a word takes half of the memory instead. */
    enum { DEFAULT_BYTES = 64 << 20, CACHE_LEAST = 64 << 20, CACHE_FLOOR = 32 << 20 };
    enum { TAKE_OVER_INTERVALS = 10, SIGN_MS = 1000 };
    if (!o->host_id)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoHostID",
                       "the host id is 0: give the node's own");
    if (check_version(e) < 0 || zpool_open_files(o->files, e) < 0)
        return -1;
    if (atomic_flag_test_and_set(&started))
        return err_set(e, ERR_FAILED_PRECONDITION, "Started", "the pool engine runs already");

    host_id = o->host_id;
    zfs_arc_max = o->cache_bytes ? o->cache_bytes : DEFAULT_BYTES;
    if (zfs_arc_max < CACHE_LEAST)
        zfs_arc_max = CACHE_LEAST;
    zfs_arc_min = CACHE_FLOOR;
    zfs_dirty_data_max = o->dirty_bytes ? o->dirty_bytes : DEFAULT_BYTES;
    zfetch_max_distance = 2 << 20;
    dbuf_cache_shift = 1;        /* half of the cache is of blocks that zpool_io_try_read() finds */
    zfs_abd_scatter_enabled = 0; /* device.c then gets what is to be written in one piece */
    /*
     * A pool says every so often on its devices that it is in use (the property multihost). Whoever takes one
     * over watches for twice as many such times first. That such a write is late suspends no pool: a machine
     * may be slow.
     */
    zfs_multihost_fail_intervals = 0;
    zfs_multihost_interval = o->sign_ms ? o->sign_ms : SIGN_MS;
    zfs_multihost_import_intervals = TAKE_OVER_INTERVALS;
    zfs_flags = 0;                                /* the checks of ZFS's tests */
    spa_config_path = (char *)(uintptr_t) "none"; /* no cache file, and not the system's */
    random_path = "/dev/urandom";
    zpool_device_direct(o->direct);
    kernel_init((int)(SPA_MODE_READ | SPA_MODE_WRITE));
    if (arc_stats.arcstat_c_max.value.ui64 != zfs_arc_max)
        return err_set(e, ERR_INTERNAL, "CacheLimit", "libzpool took %llu bytes of cache, not %lu",
                       (unsigned long long)arc_stats.arcstat_c_max.value.ui64, zfs_arc_max);
    return 0;
}
