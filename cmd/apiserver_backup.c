#include "cmd/apiserver_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/apiserver.h"
#include "k8s/apiserver/control.h"
#include "k8s/apiserver/store.h"

struct arguments {
    const char *file, *folder;
    bool force, quiet;
    const char *store;
};

/* Progress, in place on a terminal and nowhere else. */
static void show(void *context, enum apiserver_backup_step step, uint64_t done, uint64_t total)
{
    const struct arguments *a = context;
    if (a->quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s %3" PRIu64 " %%\033[K",
            step == APISERVER_BACKUP_COPYING ? "copying  " : "receiving",
            total ? done * 100 / total : 0);
}

static void show_end(const struct arguments *a)
{
    if (!a->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static int sync_folder(const char *path, struct err *e)
{
    _cleanup_free_ char *copy = mem_strdup(path);
    const char *folder = dirname(copy);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 || fsync(fd) < 0 ? err_errno(e, errno, "%s", folder) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* From the running server into FILE.part, which becomes FILE when it is complete and on disk. */
static int backup_online(struct arguments *a, uint64_t *ret_revision, struct err *e)
{
    _cleanup_free_ char *part = mem_printf("%s.part", a->file);
    unlink(part);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "%s", part);
    struct apiserver_backup_progress progress = {show, a};
    int status = apiserver_control_backup(a->folder, fd, &progress, ret_revision, e);
    show_end(a);
    if (status == 0 && fsync(fd) < 0)
        status = err_errno(e, errno, "%s", part);
    close(fd);
    if (status == 0 && rename(part, a->file) < 0)
        status = err_errno(e, errno, "%s", a->file);
    if (status == 0)
        return sync_folder(a->file, e);
    unlink(part);
    return status;
}

/* Nobody has the store: it is opened here, which also checks it. */
static int backup_offline(const struct arguments *a, uint64_t *ret_revision, struct err *e)
{
    _cleanup_free_ char *keys = mem_printf("%s/encryption.key", a->folder);
    struct apiserver_store_options settings = apiserver_store_settings(keys);
    struct apiserver_store *s;
    if (access(a->store, F_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "NotFound",
                       "there is no store in %s, and no server runs on it", a->folder);
    if (apiserver_store_open(a->store, &settings, &s, e) < 0)
        return -1;
    *ret_revision = apiserver_store_revision(s);
    int status = apiserver_store_backup(s, a->file, e);
    apiserver_store_close(s);
    return status;
}

static int backup(const struct cli_args *args, struct arguments *a)
{
    struct err e = {0};
    uint64_t revision = 0;
    int status = backup_online(a, &revision, &e);
    bool offline = status < 0 && str_eq(e.reason, "NotRunning");
    if (offline)
        status = backup_offline(a, &revision, &e);
    if (status < 0)
        return cli_fail(args, "%s", e.msg);
    struct stat st = {0};
    stat(a->file, &st);
    if (!a->quiet)
        printf("%s: %lld bytes, revision %" PRIu64 "%s\n", a->file, (long long)st.st_size, revision,
               offline ? ", of a store that is not in use" : "");
    return cli_finish(args);
}

static int restore(const struct cli_args *args, const struct arguments *a)
{
    struct err e = {0};
    _cleanup_free_ char *aside = NULL, *keys = mem_printf("%s/encryption.key", a->folder);
    struct apiserver_store_options settings = apiserver_store_settings(keys);
    if (!a->force && access(a->store, F_OK) == 0)
        return cli_fail(args,
                        "there is a store in %s already: --force puts the backup in its place, and "
                        "keeps it beside",
                        a->folder);
    if (file_make_dirs(a->folder, 0700, &e) < 0 ||
        apiserver_store_restore(a->file, a->store, &settings, &aside, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (!a->quiet && aside)
        printf("%s: restored; what was there is %s\n", a->store, aside);
    else if (!a->quiet)
        printf("%s: restored\n", a->store);
    return cli_finish(args);
}

static int run_with(const struct cli_args *args, bool restores)
{
    const struct backup_settings *s = args->settings;
    _cleanup_free_ char *store = mem_printf("%s/store.db", s->folder);
    struct arguments a = {args->words[0], s->folder, s->force, s->quiet, store};
    return restores ? restore(args, &a) : backup(args, &a);
}

int run_backup(const struct cli_args *args)
{
    return run_with(args, false);
}

int run_restore(const struct cli_args *args)
{
    return run_with(args, true);
}
