#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/ask.h"
#include "attach/impl.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define ANSWER_NS (2 * CLOCK_SECOND)

static int check_id(const char *id, struct err *e)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:";
    size_t n = strlen(id);
    if (n == 0 || n > ATTACH_ID_MOST || strspn(id, good) != n || id[0] == '.')
        return err_set(
            e, ERR_INVALID_ARGUMENT, "InvalidVolumeID",
            "a volume's id is up to %d letters, digits, '.', '_', '-' and ':', and does not "
            "begin with '.'",
            ATTACH_ID_MOST);
    return 0;
}

int attach_place_init(struct attach_place *p, const struct attach_node *n, const char *id,
                      struct err *e)
{
    *p = (struct attach_place){.busy = -1};
    if (check_id(id, e) < 0 || file_make_dirs(n->folder, 0700, e) < 0)
        return -1;
    p->node = realpath(n->folder, NULL);
    if (!p->node)
        return err_errno(e, errno, "%s", n->folder);
    p->folder = mem_printf("%s/%s", p->node, id);
    p->mount = mem_printf("%s/mount", p->folder);
    p->file = mem_printf("%s/volume", p->mount);
    p->control = mem_printf("%s/control", p->folder);
    p->request = mem_printf("%s/volume.json", p->folder);
    attach_loop_label(p->node, id, p->label);
    return 0;
}

void attach_place_done(struct attach_place *p)
{
    if (p->busy >= 0)
        close(p->busy);
    free(p->node);
    free(p->folder);
    free(p->mount);
    free(p->file);
    free(p->control);
    free(p->request);
}

bool attach_place_exists(const struct attach_place *p)
{
    return access(p->folder, F_OK) == 0;
}

/* The folder may be removed between open and lock: then the lock is of a file that nobody else sees. */
int attach_place_lock(struct attach_place *p, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/busy", p->folder);
    for (;;) {
        struct stat ours, now;
        if (file_make_dirs(p->folder, 0700, e) < 0)
            return -1;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            return err_errno(e, errno, "%s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            close(fd);
            return err_set(e, ERR_ABORTED, "OperationPending",
                           "another operation on the volume is under way");
        }
        if (fstat(fd, &ours) == 0 && stat(path, &now) == 0 && ours.st_ino == now.st_ino) {
            p->busy = fd;
            return 0;
        }
        close(fd);
    }
}

bool attach_place_alive(const struct attach_place *p, pid_t *ret_pid)
{
    _cleanup_free_ char *path = mem_printf("%s.lock", p->control);
    char text[32] = "";
    *ret_pid = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool alive = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (alive && read(fd, text, sizeof(text) - 1) > 0)
        *ret_pid = (pid_t)strtol(text, NULL, 10);
    close(fd);
    return alive;
}

/* The folder is on another file system than the mount in it. statx does not ask the process for more. */
static bool mounted(const struct attach_place *p, struct stat *ret)
{
    struct stat folder;
    return stat(p->folder, &folder) == 0 && stat(p->mount, ret) == 0 &&
           ret->st_dev != folder.st_dev;
}

int attach_inspect(const struct attach_place *p, const char *id, struct attach_volume *ret,
                   struct err *e)
{
    *ret = (struct attach_volume){0};
    snprintf(ret->id, sizeof(ret->id), "%s", id);
    ret->alive = attach_place_alive(p, &ret->pid);
    struct stat st = {0};
    json_t *said = NULL;
    struct err unheard;
    if (ret->alive && attach_ask(p->control, "status", ANSWER_NS, &said, &unheard) == 0) {
        ret->connected = json_is_true(json_object_get(said, "connected"));
        ret->size = (uint64_t)json_integer_value(json_object_get(said, "size"));
        ret->block_size = (uint32_t)json_integer_value(json_object_get(said, "blockSize"));
        ret->mounted = ret->size && mounted(p, &st); /* a process without a size answers no stat */
    }
    json_decref(said);
    struct attach_loop *loops;
    size_t count;
    if (attach_loop_list(p->label, &loops, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (ret->mounted && loops[i].file_system == st.st_dev && !ret->device[0])
            snprintf(ret->device, sizeof(ret->device), "%s", loops[i].path);
        else
            ret->stale++;
    }
    free(loops);
    return 0;
}

int attach_drop_loops(const struct attach_place *p, dev_t keep, struct err *e)
{
    struct attach_loop *loops;
    size_t count;
    if (attach_loop_list(p->label, &loops, &count, e) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        if (!keep || loops[i].file_system != keep)
            result = attach_loop_remove(loops[i].path, e);
    free(loops);
    return result;
}
