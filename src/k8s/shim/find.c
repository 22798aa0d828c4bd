/*
 * Finding shims and the processes of containers, by what the kernel says of them and nothing else.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "k8s/shim/shim.h"

enum { ENVIRON_MOST = 4 << 20 };

char *shim_lock_path(const char *folder)
{
    return mem_printf("%s/lock", folder);
}

char *shim_status_path(const char *folder, unsigned number)
{
    return mem_printf("%s/%u.status", folder, number);
}

pid_t shim_owner(const char *folder)
{
    _cleanup_free_ char *path = shim_lock_path(folder);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held ? lock.l_pid : 0;
}

uint64_t shim_ticks(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    /* The name, in parentheses, may hold anything; the start is the 20th word behind it. */
    char *at = strrchr(text, ')');
    for (int words = 0; at && words < 20; words++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static bool has_mark(pid_t pid, const char *value, bool prefix)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    _cleanup_(str_done) struct str text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char buf[4096];
    ssize_t n = 0;
    while (fd >= 0 && text.len < ENVIRON_MOST && (n = read(fd, buf, sizeof(buf))) > 0)
        str_append_n(&text, buf, (size_t)n);
    if (fd >= 0)
        close(fd);
    for (size_t at = 0; at < text.len; at += strlen(text.p + at) + 1) {
        const char *entry = text.p + at;
        if (!str_starts_with(entry, SHIM_MARK "="))
            continue;
        entry += strlen(SHIM_MARK "=");
        return prefix ? str_starts_with(entry, value) : str_eq(entry, value);
    }
    return false;
}

unsigned shim_signal_marked(const char *value, bool prefix, int signum)
{
    unsigned found = 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        /* The descriptor first: then it is the process that was looked at which gets the signal. */
        int fd = pid > 0 && pid != getpid() ? pidfd_open(pid, 0) : -1;
        if (fd < 0)
            continue;
        if (has_mark(pid, value, prefix)) {
            found++;
            pidfd_send_signal(fd, signum, NULL, 0);
        }
        close(fd);
    }
    if (proc)
        closedir(proc);
    return found;
}
