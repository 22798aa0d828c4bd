/*
 * Becoming another program: as a container, or beside one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "k8s/shim/shim.h"

enum { ENVIRON_MOST = 4 << 20 };

void shim_exec(const char *const *argv, const char *const *env)
{
    const char *dirs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if (strchr(argv[0], '/')) {
        execve(argv[0], (char *const *)argv, (char *const *)env);
        return;
    }
    for (const char *const *it = env; *it; it++) {
        if (str_starts_with(*it, "PATH="))
            dirs = *it + strlen("PATH=");
    }
    int errnum = ENOENT;
    while (*(dirs += strspn(dirs, ":"))) {
        char path[4096];
        size_t n = strcspn(dirs, ":");
        if (snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs, argv[0]) < (int)sizeof(path))
            execve(path, (char *const *)argv, (char *const *)env);
        if (errno != ENOENT && errno != ENOTDIR)
            errnum = errno;
        dirs += n;
    }
    errno = errnum;
}

/* What is needed of a process before we leave our own mounts; -1 with errno. */
struct place {
    int root, cwd, mounts; /* descriptors */
    bool elsewhere;        /* its mounts are not ours */
};

static int look_at(pid_t pid, struct place *ret)
{
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    ret->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    ret->cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    ret->mounts = open(path, O_RDONLY | O_CLOEXEC);
    if (ret->root < 0 || ret->cwd < 0 || ret->mounts < 0 || fstat(ret->mounts, &theirs) < 0 ||
        stat("/proc/self/ns/mnt", &ours) < 0)
        return -1;
    ret->elsewhere = theirs.st_ino != ours.st_ino;
    return 0;
}

int shim_enter(pid_t pid, const char *const *argv, struct err *e)
{
    char path[64];
    struct place place;
    _cleanup_(str_done) struct str text = {0};
    VEC(const char *) env = {0};
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (look_at(pid, &place) < 0)
        return err_errno(e, errno, "cannot look into process %d", (int)pid);
    if (file_read(path, ENVIRON_MOST, &text, e) < 0)
        return -1;
    if (place.elsewhere &&
        (setns(place.mounts, CLONE_NEWNS) < 0 || fchdir(place.root) < 0 || chroot(".") < 0))
        return err_errno(e, errno, "cannot enter the mounts of process %d", (int)pid);
    if (fchdir(place.cwd) < 0)
        return err_errno(e, errno, "cannot enter the folder of process %d", (int)pid);
    for (size_t at = 0; at < text.len; at += strlen(text.p + at) + 1)
        vec_push(&env, text.p + at);
    vec_push(&env, NULL);
    shim_exec(argv, env.p);
    err_errno(e, errno, "cannot run %s", argv[0]);
    vec_done(&env);
    return -1;
}
