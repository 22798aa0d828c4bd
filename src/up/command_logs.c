/*
 * Logs are files; following one is looking at its length again when inotify says that something was
 * written. A file that was replaced is read from its beginning.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "up/commands.h"
#include "up/place.h"

enum { BLOCK = 64 << 10, WATCH_BUFFER = 4096 };

struct log {
    char *name, *path; /* owned */
    int fd;
    ino_t inode;
    bool bol; /* the next byte begins a line */
};

struct logs {
    struct log *p;
    size_t len, cap;
};

static void logs_done(struct logs *l)
{
    vec_for_each(l, log) {
        if (log->fd >= 0)
            close(log->fd);
        free(log->name);
        free(log->path);
    }
    vec_done(l);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct log *)a)->name, ((const struct log *)b)->name);
}

/* Those in the folder: all, or the one of that name. */
static void find(const char *folder, const char *only, struct logs *ret_logs)
{
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        size_t n = strlen(d->d_name);
        if (n <= 4 || !str_eq(d->d_name + n - 4, ".log"))
            continue;
        char *name = mem_strndup(d->d_name, n - 4);
        if (only && !str_eq(name, only)) {
            free(name);
            continue;
        }
        struct log log = {.name = name, .path = mem_printf("%s/%s", folder, d->d_name), .fd = -1};
        vec_push(ret_logs, log);
    }
    if (dir)
        closedir(dir);
    if (ret_logs->len)
        qsort(ret_logs->p, ret_logs->len, sizeof(*ret_logs->p), by_name);
}

/* Where the last n lines begin; 0: at the start. */
static off_t tail_of(int fd, off_t size, unsigned long n)
{
    char block[BLOCK];
    off_t end = size;
    while (n && end > 0) {
        off_t start = end > BLOCK ? end - BLOCK : 0;
        ssize_t got = pread(fd, block, (size_t)(end - start), start);
        if (got <= 0)
            break;
        for (ssize_t i = got - 1; i >= 0; i--) {
            if (block[i] == '\n' && start + i + 1 < size && --n == 0)
                return start + i + 1;
        }
        end = start;
    }
    return 0;
}

/* What there is now, each line with whose it is if there are several. */
static void show(struct log *log, bool named)
{
    char block[BLOCK];
    ssize_t n;
    while ((n = read(log->fd, block, sizeof(block))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const char *end = memchr(block + at, '\n', (size_t)(n - at));
            ssize_t size = end ? end - (block + at) + 1 : n - at;
            if (named && log->bol)
                printf("%s: ", log->name);
            fwrite(block + at, 1, (size_t)size, stdout);
            log->bol = end;
            at += size;
        }
    }
    fflush(stdout);
}

/* Opens it, or the one that has taken its place. */
static void open_log(struct log *log)
{
    struct stat st;
    if (stat(log->path, &st) < 0 || (log->fd >= 0 && st.st_ino == log->inode))
        return;
    if (log->fd >= 0)
        close(log->fd);
    log->fd = open(log->path, O_RDONLY | O_CLOEXEC);
    log->inode = st.st_ino;
    log->bol = true;
}

static int follow(const struct cli_args *args, const char *folder, struct logs *logs)
{
    _Alignas(struct inotify_event) char events[WATCH_BUFFER];
    int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(fd, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        return cli_fail(args, "%s: %s", folder, strerror(errno));
    while (read(fd, events, sizeof(events)) > 0 && !ferror(stdout)) {
        vec_for_each(logs, log) {
            if (log->fd >= 0)
                show(log, logs->len > 1);
            open_log(log);
            if (log->fd >= 0)
                show(log, logs->len > 1);
        }
    }
    close(fd);
    return cli_finish(args);
}

static int run_logs(const struct cli_args *args)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    _cleanup_(logs_done) struct logs logs = {0};
    struct err e = {0};
    const char *only = args->count ? args->words[0] : NULL;
    unsigned lines = up_settings(args)->tail;
    if (up_place_open(up_settings(args)->data, &place, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    _cleanup_free_ char *folder = up_place_path(&place, "logs");
    find(folder, only, &logs);
    if (!logs.len)
        return cli_fail(args, "there is no log%s%s in %s", only ? " of " : "", only ? only : "",
                        folder);
    vec_for_each(&logs, log) {
        struct stat st;
        open_log(log);
        if (log->fd < 0 || fstat(log->fd, &st) < 0)
            continue;
        if (lines)
            lseek(log->fd, tail_of(log->fd, st.st_size, lines), SEEK_SET);
        show(log, logs.len > 1);
    }
    return up_settings(args)->follow ? follow(args, folder, &logs) : cli_finish(args);
}

static const struct cli_option options[] = {
    UP_DATA_OPTION,
    {"follow", 'f', NULL, CLI_SWITCH, UP_AT(follow),
     .doc = "Go on with what is written from now on, until Ctrl-C."},
    {"tail", 0, "N", CLI_INT, UP_AT(tail), .def = "100", .most = UINT32_MAX,
     .doc = "Show only the last N lines of each; 0 shows all."},
    {0},
};

CLI_COMMAND(logs_command) = {
    .name = "logs",
    .topic = CLI_MACHINE,
    .arguments = "[PROGRAM]",
    .most = 1,
    .summary = "Show the logs of the programs of `orlop up`",
    .doc =
        "Shows the log of one program (apiserver, controller, node-1, ...) or of all of them. Logs "
        "of Pods are shown by `kubectl logs`.",
    .settings = sizeof(struct up_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop logs node-1 -f", "Follow the log of a node."},
            {NULL},
        },
    .run = run_logs,
};
