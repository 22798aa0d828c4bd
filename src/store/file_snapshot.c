/*
 * Snapshots of a file: PATH@NAME, a file that shares its blocks (reflink), which takes no time and no room
 * whatever the size. File systems that cannot (ext4) say so: a copy of everything would stall the volume.
 *
 *     PATH@NAME.part ── clone, sync ──> PATH@NAME     a crash leaves the first, which means nothing
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "store/file.h"

struct snapshot {
    struct io_request request;
    int fd; /* of the file */
    char *path, *part, *folder;
    void (*done)(void *context, int error);
    void *context;
};

static int sync_folder(const struct snapshot *s)
{
    int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

static int clone_file(void *context)
{
    const struct snapshot *s = context;
    int fd = open(s->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int status = ioctl(fd, FICLONE, s->fd) < 0 || fsync(fd) < 0 ? -errno : 0;
    close(fd);
    if (status == -EOPNOTSUPP || status == -EXDEV || status == -EINVAL || status == -ENOTTY)
        status = -ENOTSUP;
    if (status == 0 && rename(s->part, s->path) < 0)
        status = -errno;
    if (status < 0)
        unlink(s->part);
    return status < 0 ? status : sync_folder(s);
}

static int remove_file(void *context)
{
    const struct snapshot *s = context;
    if (unlink(s->path) < 0 && errno != ENOENT)
        return -errno;
    return sync_folder(s);
}

static void ended(struct io_request *request, int64_t result)
{
    struct snapshot *s = container_of(request, struct snapshot, request);
    s->done(s->context, (int)-result);
    free(s->path);
    free(s->part);
    free(s->folder);
    free(s);
}

static void begin(struct file *f, const char *name, int (*call)(void *context),
                  void (*done)(void *context, int error), void *context)
{
    if (!*name || strchr(name, '/')) {
        done(context, EINVAL);
        return;
    }
    struct snapshot *s = NEW(struct snapshot);
    _cleanup_free_ char *copy = mem_strdup(f->path);
    *s = (struct snapshot){
        .request = {.op = IO_CALL, .call = call, .context = s, .done = ended},
        .fd = f->fd,
        .path = mem_printf("%s@%s", f->path, name),
        .part = mem_printf("%s@%s.part", f->path, name),
        .folder = mem_strdup(dirname(copy)),
        .done = done,
        .context = context,
    };
    io_submit(f->loop, &s->request);
}

void file_snapshot(struct store *s, const char *name, void (*done)(void *context, int error),
                   void *context)
{
    begin(file_of(s), name, clone_file, done, context);
}

void file_snapshot_drop(struct store *s, const char *name, void (*done)(void *context, int error),
                        void *context)
{
    begin(file_of(s), name, remove_file, done, context);
}
