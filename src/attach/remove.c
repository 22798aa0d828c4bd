/*
 * The end of an attached volume, and the list of all. The order of the end is what keeps data: flush, take
 * the device away, so that nobody can write any more, and only then end the process.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "attach/impl.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

enum { END_MS = 8000, KILL_MS = 2000, GONE_MS = 1000, LOOK_MS = 10 };

/* The lock goes with the last of its processes: the supervisor, or a worker that outlived it. */
static bool gone_within(const struct attach_place *p, int fd, int ms)
{
    int64_t until = clock_mono_ns(clock_system()) + (int64_t)ms * 1000000;
    struct pollfd end = {.fd = fd, .events = POLLIN};
    pid_t pid;
    while (attach_place_alive(p, &pid)) {
        if (clock_mono_ns(clock_system()) > until)
            return false;
        if (poll(&end, 1, LOOK_MS) > 0)
            poll(NULL, 0, LOOK_MS);
    }
    return true;
}

/* The pid is the lock's, and the lock is asked again once the process is held: it is no other's pid. */
static int end_process(const struct attach_place *p, struct err *e)
{
    pid_t pid, again;
    if (!attach_place_alive(p, &pid))
        return 0;
    int fd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (fd >= 0 && attach_place_alive(p, &again) && again == pid) {
        pidfd_send_signal(fd, SIGTERM, NULL, 0);
        if (!gone_within(p, fd, END_MS))
            pidfd_send_signal(fd, SIGKILL, NULL, 0);
    }
    bool gone = gone_within(p, fd, KILL_MS);
    if (fd >= 0)
        close(fd);
    return gone ? 0
                : err_set(e, ERR_DEADLINE_EXCEEDED, "ProcessStays",
                          "process %d, which serves the volume, does not end", (int)pid);
}

static int flush_device(const struct attach_volume *v, int64_t flush_ns, struct err *e)
{
    if (!v->device[0])
        return 0;
    if (attach_loop_in_use(v->device))
        return err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                       "%s is in use: unmount what is on it first", v->device);
    return attach_loop_flush(v->device, flush_ns, e);
}

/* A device goes with its last user: one whose I/O has just failed needs a moment, a mount needs an umount. */
static int devices_gone(const struct attach_place *p, struct err *e)
{
    int64_t until = clock_mono_ns(clock_system()) + GONE_MS * 1000000LL;
    for (;;) {
        struct attach_loop *loops;
        size_t count;
        if (attach_loop_list(p->label, &loops, &count, e) < 0)
            return -1;
        if (count && clock_mono_ns(clock_system()) > until)
            err_set(e, ERR_FAILED_PRECONDITION, "InUse",
                    "%s is dead now, and still in use: unmount what is on it, and detach again",
                    loops[0].path);
        free(loops);
        if (!count)
            return 0;
        if (clock_mono_ns(clock_system()) > until)
            return -1;
        poll(NULL, 0, LOOK_MS);
    }
}

static int remove_locked(const struct attach_place *p, const char *id, int64_t flush_ns, bool force,
                         struct err *e)
{
    struct attach_volume v;
    if (attach_inspect(p, id, &v, e) < 0 || (!force && flush_device(&v, flush_ns, e) < 0))
        return -1;
    if (force && end_process(p, e) < 0)
        return -1;
    if (attach_drop_loops(p, 0, e) < 0 || end_process(p, e) < 0 || devices_gone(p, e) < 0)
        return -1;
    while (umount2(p->mount, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    return file_remove_tree(p->folder, e);
}

int attach_remove(const struct attach_node *n, const char *id, int64_t flush_ns, bool force,
                  struct err *e)
{
    struct attach_place p;
    int result = attach_place_init(&p, n, id, e);
    if (result == 0 && !attach_place_exists(&p)) {
        result = attach_drop_loops(&p, 0, e);
    } else if (result == 0) {
        result = attach_place_lock(&p, e);
        if (result == 0)
            result = remove_locked(&p, id, flush_ns, force, e);
    }
    attach_place_done(&p);
    return result;
}

static struct attach_volume *more(struct attach_volume **list, size_t *count)
{
    *list = mem_realloc_array(*list, *count + 1, sizeof(**list));
    struct attach_volume *v = &(*list)[(*count)++];
    *v = (struct attach_volume){0};
    return v;
}

/* Devices that no volume of the list accounts for. */
static int count_strays(const char *node, struct attach_volume **list, size_t *count, struct err *e)
{
    char prefix[ATTACH_LABEL_SIZE], label[ATTACH_LABEL_SIZE];
    struct attach_loop *loops;
    size_t n, known = *count;
    unsigned strays = 0;
    attach_loop_prefix(node, prefix);
    if (attach_loop_list(prefix, &loops, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        bool ours = false;
        for (size_t j = 0; j < known && !ours; j++) {
            attach_loop_label(node, (*list)[j].id, label);
            ours = strcmp(label, loops[i].label) == 0;
        }
        strays += !ours;
    }
    free(loops);
    if (strays)
        more(list, count)->stale = strays;
    return 0;
}

int attach_audit(const struct attach_node *n, struct attach_volume **ret, size_t *ret_count,
                 struct err *e)
{
    *ret = NULL;
    *ret_count = 0;
    if (file_make_dirs(n->folder, 0700, e) < 0)
        return -1;
    _cleanup_free_ char *node = realpath(n->folder, NULL);
    DIR *dir = node ? opendir(node) : NULL;
    if (!dir)
        return err_errno(e, errno, "%s", n->folder);
    int result = 0;
    for (struct dirent *d; result == 0 && (d = readdir(dir));) {
        struct attach_place p;
        struct err no_volume;
        if (d->d_name[0] == '.')
            continue;
        if (attach_place_init(&p, n, d->d_name, &no_volume) == 0)
            result = attach_inspect(&p, d->d_name, more(ret, ret_count), e);
        attach_place_done(&p);
    }
    closedir(dir);
    if (result == 0)
        result = count_strays(node, ret, ret_count, e);
    if (result < 0) {
        free(*ret);
        *ret = NULL;
        *ret_count = 0;
    }
    return result;
}
