#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

int file_read(const char *path, size_t limit, struct str *s, struct err *e)
{
    /* Without O_NONBLOCK, opening a FIFO would wait for somebody to write to it. */
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, errno, "cannot read %s", path);
    if (S_ISDIR(st.st_mode))
        return err_errno(e, EISDIR, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED_PRECONDITION, "NotAFile",
                       "cannot read %s: it is a device, pipe or socket, not a file", path);

    size_t before = s->len;
    for (;;) {
        char buf[16 * 1024];
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            str_truncate(s, before);
            return err_errno(e, errno, "cannot read %s", path);
        }
        if (n == 0)
            return 0;
        if ((size_t)n > limit - (s->len - before)) {
            str_truncate(s, before);
            return err_set(e, ERR_OUT_OF_RANGE, "FileTooLarge",
                           "%s is longer than the %zu bytes that are read at most", path, limit);
        }
        str_append_n(s, buf, (size_t)n);
    }
}

/*
 * Opens the directory that holds path's last component, which may be a link or missing, and says
 * where in path that component begins.
 */
static int open_parent(const char *path, const char **ret_name, struct err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (*name == '\0' || str_eq(name, ".") || str_eq(name, "..")) {
        err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                "\"%s\" does not end with a name: write the path without a final / or .", path);
        return -1;
    }

    /* What is in front of the name, with its slash so that the root stays the root. */
    _cleanup_free_ char *dir = slash ? mem_strndup(path, (size_t)(name - path)) : mem_strdup(".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        err_errno(e, errno, "cannot open the directory of %s", path);
    *ret_name = name;
    return fd;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A new empty file in dir under a name of its own. */
static int create_temporary(int dir, char name[NAME_MAX + 1])
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t random;
        if (getentropy(&random, sizeof(random)) < 0)
            return -1;
        snprintf(name, NAME_MAX + 1, ".replace-%016llx", (unsigned long long)random);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int file_replace(const char *path, const void *data, size_t size, mode_t mode, struct err *e)
{
    const char *name;
    _cleanup_(closep) int dir = open_parent(path, &name, e);
    if (dir < 0)
        return -1;

    char temporary[NAME_MAX + 1];
    _cleanup_(closep) int fd = create_temporary(dir, temporary);
    if (fd < 0)
        return err_errno(e, errno, "cannot write %s", path);
    if (write_all(fd, data, size) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
        renameat(dir, temporary, dir, name) < 0) {
        int errnum = errno;
        unlinkat(dir, temporary, 0);
        return err_errno(e, errnum, "cannot write %s", path);
    }
    if (fsync(dir) < 0)
        return err_errno(e, errno, "cannot sync the directory of %s", path);
    return 0;
}

int file_make_dirs(const char *path, mode_t mode, struct err *e)
{
    _cleanup_free_ char *copy = mem_strdup(path);
    for (char *p = copy; *p;) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        char after = *p;
        *p = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return err_errno(e, errno, "cannot make the directory %s", copy);
        *p = after;
    }
    struct stat st;
    if (stat(path, &st) < 0)
        return err_errno(e, errno, "cannot make the directory %s", path);
    if (!S_ISDIR(st.st_mode))
        return err_errno(e, ENOTDIR, "cannot make the directory %s", path);
    return 0;
}

/*
 * The walk that removes a tree goes down through file descriptors and back up through "..", so that
 * it holds two descriptors however deep the tree is. `above` remembers what each directory was
 * called and which directory must lie above it: if somebody moves a part of the tree away
 * meanwhile, the walk notices and stops instead of removing what is there.
 */
struct above {
    char *name; /* of the child that was entered, owned */
    dev_t dev;
    ino_t ino;
};

struct walk {
    int dir; /* owned */
    VEC(struct above) above;
};

static void walk_done(struct walk *w)
{
    vec_for_each(&w->above, it)
        free(it->name);
    vec_done(&w->above);
    close(w->dir);
}

/* A directory of dir itself: no link, nothing that is mounted there. */
static int open_child(int dir, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
    };
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static int walk_down(struct walk *w, const char *name)
{
    struct stat st;
    if (fstat(w->dir, &st) < 0)
        return -1;
    int child = open_child(w->dir, name);
    if (child < 0)
        return -1;
    vec_push(&w->above, (struct above){mem_strdup(name), st.st_dev, st.st_ino});
    close(w->dir);
    w->dir = child;
    return 0;
}

/* Leaves the directory, which is empty now, and removes it. */
static int walk_up(struct walk *w)
{
    struct above *above = &vec_last(&w->above);
    int parent = open_child(w->dir, "..");
    if (parent < 0)
        return -1;
    close(w->dir);
    w->dir = parent;

    struct stat st;
    if (fstat(parent, &st) < 0)
        return -1;
    if (st.st_dev != above->dev || st.st_ino != above->ino) {
        errno = EBUSY;
        return -1;
    }
    if (unlinkat(parent, above->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -1;
    free(above->name);
    (void)vec_pop(&w->above);
    return 0;
}

/*
 * Removes what is no directory; EISDIR for one. A file that something is mounted on, as block
 * volumes are published, is busy to the kernel: EXDEV, as a directory's is when it is entered.
 */
static int remove_file(int dir, const char *name)
{
    int r = unlinkat(dir, name, 0);
    if (r < 0 && errno == EBUSY)
        errno = EXDEV;
    return r;
}

/* Removes what is in the directory up to the first directory in it, whose name it returns. */
static int remove_entries(int fd, char ret_name[NAME_MAX + 1])
{
    *ret_name = '\0';
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (!dir) {
        closep(&again);
        return -1;
    }
    int r = 0;
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir))) {
        if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
            continue;
        if (remove_file(fd, entry->d_name) == 0 || errno == ENOENT)
            continue;
        if (errno == EISDIR)
            snprintf(ret_name, NAME_MAX + 1, "%s", entry->d_name);
        else
            r = -1;
        break;
    }
    if (!entry && errno != 0)
        r = -1;
    int errnum = errno;
    closedir(dir);
    errno = errnum;
    return r;
}

/* Removes the directory that was entered, with everything below it. */
static int remove_entered(struct walk *w)
{
    while (w->above.len > 0) {
        char name[NAME_MAX + 1];
        if (remove_entries(w->dir, name) < 0)
            return -1;
        if (*name ? walk_down(w, name) < 0 && errno != ENOENT : walk_up(w) < 0)
            return -1;
    }
    return 0;
}

int file_remove_tree(const char *path, struct err *e)
{
    const char *name;
    struct err why;
    int parent = open_parent(path, &name, &why);
    if (parent < 0 && why.code == ERR_NOT_FOUND)
        return 0;
    if (parent < 0)
        return e ? (*e = why, -1) : -1;

    _cleanup_(walk_done) struct walk w = {.dir = parent};
    if (remove_file(parent, name) == 0 || errno == ENOENT)
        return 0;
    if (errno == EISDIR && walk_down(&w, name) == 0 && remove_entered(&w) == 0)
        return 0;
    if (errno == EXDEV)
        return err_set(e, ERR_FAILED_PRECONDITION, "MountPoint",
                       "cannot remove %s: something is mounted on it or below it; unmount it first",
                       path);
    return err_errno(e, errno, "cannot remove %s", path);
}

int file_lock(int fd, bool shared)
{
    enum { TRIES = 500, PAUSE_NS = 10 * 1000 * 1000 };
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return -1;
}
