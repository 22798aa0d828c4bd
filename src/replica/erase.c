/*
 * `orlop replica erase`: removes the folder of a replica, if it is one of that volume and nobody uses it.
 *
 * What says whose it is, the metadata, goes last: an erasure that was interrupted is taken up again by
 * the next. A folder without metadata is erased only if it has nothing but what a replica makes before it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "repl/meta.h"
#include "replica/replica.h"

/* Locks the metadata and looks whose it is; *ret_fd -1: there is none. */
static int check_owner(const char *dir, const struct uuid *volume, int *ret_fd, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/meta", dir);
    uint8_t blocks[2][REPL_SUPER_SLOT];
    struct repl_super super;
    memset(blocks, 0, sizeof(blocks));
    *ret_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, errno, "cannot open %s", path);
    if (file_lock(*ret_fd, false) < 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse", "%s is in use by a replica", dir);
    if (pread(*ret_fd, blocks, sizeof(blocks), 0) < 0)
        return err_errno(e, errno, "cannot read %s", path);
    if (repl_super_choose(blocks[0], blocks[1], &super) == REPL_FOUND_BAD)
        return err_set(
            e, ERR_DATA_LOSS, "BadSuperblock",
            "%s: both superblocks are damaged, so nobody can say whose it is; if it is this "
            "volume's, remove the folder by hand",
            path);
    if (super.generation && !uuid_eq(&super.volume, volume)) {
        char id[UUID_TEXT_MAX];
        return err_set(e, ERR_FAILED_PRECONDITION, "NotOurs",
                       "%s is a replica of another volume, %s: it stays", dir,
                       uuid_format(&super.volume, id));
    }
    return 0;
}

/* Everything but the metadata. */
static int remove_data(const char *dir, bool known, struct err *e)
{
    static const char *const early[] = {".", "..", "id", "data", "data.sums", "meta", NULL};
    DIR *d = opendir(dir);
    int status = 0;
    if (!d)
        return err_errno(e, errno, "cannot read %s", dir);
    for (struct dirent *it; status == 0 && (it = readdir(d));) {
        _cleanup_free_ char *path = mem_printf("%s/%s", dir, it->d_name);
        if (!known && !str_in(it->d_name, early) && !str_starts_with(it->d_name, ".replace-"))
            status = err_set(e, ERR_FAILED_PRECONDITION, "NotOurs",
                             "%s is no replica's folder: it has %s, and stays", dir, it->d_name);
        else if (known && !str_in(it->d_name, (const char *const[]){".", "..", "meta", NULL}))
            status = file_remove_tree(path, e);
    }
    closedir(d);
    return status;
}

/* Whether it is one that must stay. */
static int check_name(const char *dir, const char *except, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/id", dir);
    _cleanup_(str_done) struct str id = {0};
    if (file_read(path, 100, &id, NULL) < 0 || !id.len)
        return 0;
    id.p[strcspn(id.p, "\n")] = '\0';
    return strstr(except, id.p) ? err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                                          "%s is replica %s, which is in use", dir, id.p)
                                : 0;
}

int replica_erase(const char *dir, const struct uuid *volume, const char *except, struct err *e)
{
    int fd = -1, status = 0;
    if (access(dir, F_OK) < 0 && errno == ENOENT)
        return 0;
    status = check_owner(dir, volume, &fd, e);
    if (status == 0)
        status = check_name(dir, except, e);
    if (status == 0)
        status = remove_data(dir, fd >= 0, e);
    if (status == 0)
        status = file_remove_tree(dir, e);
    if (fd >= 0)
        close(fd);
    return status;
}
