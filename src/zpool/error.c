/*
 * ZFS's error numbers as errors.
 */
#include <stdio.h>

#include "zpool/impl.h"

static const struct {
    int errnum;
    enum err_code code;
    const char *reason, *text;
} words[] = {
    {ECKSUM, ERR_DATA_LOSS, "Corrupted", "the data does not match its checksum"},
    {EFRAGS, ERR_DATA_LOSS, "Corrupted", "the data is too fragmented to be read"},
    {EIO, ERR_DATA_LOSS, "InputOutputError", "a device failed, or what it returned is damaged"},
    {EBUSY, ERR_FAILED_PRECONDITION, "Busy", "it is in use"},
    {EOVERFLOW, ERR_FAILED_PRECONDITION, "DeviceTooSmall", "the device is too small"},
    {EDOM, ERR_FAILED_PRECONDITION, "SectorsTooLarge",
     "the device's sectors are larger than the pool's"},
    {ENOTSUP, ERR_FAILED_PRECONDITION, "NotSupported", "that is not possible with this group"},
    {ENXIO, ERR_UNAVAILABLE, "DevicesMissing", "too many devices are missing or damaged"},
    {EDQUOT, ERR_RESOURCE_EXHAUSTED, "NoSpace", "the pool has no space for it"},
    {ENOSPC, ERR_RESOURCE_EXHAUSTED, "NoSpace", "the pool has no space for it"},
    {EBADF, ERR_FAILED_PRECONDITION, "OtherHost", "the pool belongs to another host"},
    {EREMOTEIO, ERR_FAILED_PRECONDITION, "InUseElsewhere",
     "another host is using it at this moment: stop it there"},
    {ETXTBSY, ERR_FAILED_PRECONDITION, "Busy", "the volume was changed since its snapshot"},
    {ECANCELED, ERR_FAILED_PRECONDITION, "NotRunning", "nothing of the kind is under way"},
};

int zpool_errno(struct err *e, int errnum, const char *fmt, ...)
{
    char what[sizeof(e->msg)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (words[i].errnum == errnum)
            return err_set(e, words[i].code, words[i].reason, "%s: %s", what, words[i].text);
    return err_errno(e, errnum, "%s", what);
}

int zpool_in_doubt(const struct zpool *p, struct err *e)
{
    return err_set(e, ERR_DATA_LOSS, "InDoubt",
                   "a device of pool %s failed to sync, so that what was written last may be on no "
                   "device: end this process and import the pool anew; it is then as it was at the "
                   "last flush that succeeded",
                   p->name);
}

int zpool_ready(struct zpool *p, struct err *e)
{
    if (!spa_suspended(p->spa))
        return 0;
    return err_set(
        e, ERR_UNAVAILABLE, "PoolSuspended",
        "pool %s is suspended, as too many of its devices fail: see to them, then clear it",
        p->name);
}
