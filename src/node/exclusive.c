#include "node/exclusive.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a file the kernel gives a write lease only to the one who alone has it open. Not every file
 * system has leases: then a lock, which at least our own programs respect, must do. */
static bool is_alone(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        fcntl(fd, F_SETLEASE, F_UNLCK);
        return true;
    }
    return errno != EAGAIN;
}

int node_open_exclusive(const char *path, int flags, struct err *e)
{
    struct stat st;
    int fd = open(path, flags | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int number = errno;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (!is_alone(fd) || flock(fd, LOCK_EX | LOCK_NB) < 0)) {
        close(fd);
        fd = -1;
        number = EBUSY;
    }
    if (fd >= 0)
        return fd;
    return number == EBUSY
               ? err_set(e, ERR_FAILED_PRECONDITION, "Busy", "%s: somebody uses it", path)
               : err_errno(e, number, "cannot open %s", path);
}
