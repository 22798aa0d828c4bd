/*
 * What is on a device that is no pool's, by libblkid, which knows what people put on disks.
 */
#include <blkid/blkid.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zpool/impl.h"

enum { ROUNDS_MAX = 4096 };

static blkid_probe probe_new(int fd, bool tables)
{
    blkid_probe pr = blkid_new_probe();
    if (!pr)
        return NULL;
    if (blkid_probe_set_device(pr, fd, 0, 0) != 0) {
        blkid_free_probe(pr);
        return NULL;
    }
    blkid_probe_enable_superblocks(pr, !tables);
    blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC |
                                              BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(pr, tables);
    blkid_probe_set_partitions_flags(pr, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
    return pr;
}

int zpool_signature_read(int fd, char *ret_what, size_t size)
{
    ret_what[0] = '\0';
    for (int tables = 0; tables <= 1 && !ret_what[0]; tables++) {
        errno = 0;
        blkid_probe pr = probe_new(fd, tables);
        if (!pr)
            return errno ? errno : EIO;
        const char *value;
        int found = blkid_do_probe(pr);
        int error = found < 0 ? (errno ? errno : EIO) : 0;
        if (found == 0 &&
            blkid_probe_lookup_value(pr, tables ? "PTTYPE" : "TYPE", &value, NULL) == 0)
            snprintf(ret_what, size, "%s", value);
        else if (found == 0)
            snprintf(ret_what, size, "something");
        blkid_free_probe(pr);
        if (error)
            return error;
    }
    return 0;
}

int zpool_signature_wipe(const char *path)
{
    struct stat st;
    int pin = zpool_device_pin(path, &st), error = 0;
    if (pin < 0)
        return -pin;
    /* Not one that is mounted. */
    int fd = zpool_device_open(pin, O_RDWR | (S_ISBLK(st.st_mode) ? O_EXCL : 0));
    close(pin);
    if (fd < 0)
        return -fd;
    for (int tables = 0; tables <= 1 && !error; tables++) {
        blkid_probe pr = probe_new(fd, tables);
        error = pr ? 0 : EIO;
        int rounds = 0;
        while (!error && blkid_do_probe(pr) == 0) {
            if (rounds++ == ROUNDS_MAX || blkid_do_wipe(pr, 0) != 0)
                error = EIO;
        }
        if (pr)
            blkid_free_probe(pr);
    }
    if (!error && fdatasync(fd) < 0)
        error = errno;
    close(fd);
    return error;
}
