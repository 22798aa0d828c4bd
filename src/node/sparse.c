#include "node/sparse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "base/uuid.h"
#include "node/device.h"
#include "node/sysfs.h"

enum { SECTOR = 512, BLOCK = 4096, SIZE_MIN = 1 << 20 };

int node_sparse_parse(const char *text, struct node_sparse *ret, struct err *e)
{
    char *x;
    unsigned long count = strtoul(text, &x, 10);
    struct node_sparse s = {.count = (unsigned)count};
    if (x == text || *x != 'x' || text[0] < '0' || text[0] > '9' || count > NODE_SPARSE_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage",
                       "write how many and how large, such as 3x10Gi, not \"%s\"", text);
    if (quantity_parse_bytes(x + 1, &s.size, e) < 0)
        return -1;
    if (s.size < SIZE_MIN || s.size > INT64_MAX - BLOCK)
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "a device of %s: write at least 1Mi",
                       x + 1);
    s.size = s.size / BLOCK * BLOCK;
    *ret = s;
    return 0;
}

/* The index and uuid that a file's name says; false for a file that is none of ours. */
static bool parse_name(const char *name, unsigned *ret_index, char ret_uuid[UUID_TEXT_MAX])
{
    size_t digits = strspn(name, "0123456789");
    struct uuid uuid;
    if (!digits || digits > 4 || name[digits] != '-' ||
        strlen(name + digits + 1) != UUID_TEXT_MAX - 1 + strlen(".img") ||
        !str_ends_with(name, ".img"))
        return false;
    memcpy(ret_uuid, name + digits + 1, UUID_TEXT_MAX - 1);
    ret_uuid[UUID_TEXT_MAX - 1] = '\0';
    *ret_index = (unsigned)strtoul(name, NULL, 10);
    return uuid_from_text(ret_uuid, &uuid, NULL) == 0;
}

static int resize(const char *path, uint64_t size, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "cannot open %s", path);
    struct stat st;
    int status = fstat(fd, &st);
    if (status == 0 && (uint64_t)st.st_size < size)
        status = ftruncate(fd, (off_t)size) < 0 ? -1 : fsync(fd);
    int number = errno;
    close(fd);
    return status < 0 ? err_errno(e, number, "cannot make %s as large as %llu bytes", path,
                                  (unsigned long long)size)
                      : 0;
}

static int sync_folder(const char *folder, struct err *e)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 ? -1 : fsync(fd);
    int number = errno;
    if (fd >= 0)
        close(fd);
    return status < 0 ? err_errno(e, number, "cannot sync %s", folder) : 0;
}

/* First under a name that means nothing, so that a crash leaves a whole one or none. */
static int make_one(const char *folder, unsigned index, uint64_t size, struct err *e)
{
    char text[UUID_TEXT_MAX];
    struct uuid uuid = uuid_random();
    _cleanup_free_ char *fresh = mem_printf("%s/.new", folder);
    _cleanup_free_ char *path = mem_printf("%s/%u-%s.img", folder, index, uuid_format(&uuid, text));
    if (unlink(fresh) < 0 && errno != ENOENT)
        return err_errno(e, errno, "cannot remove %s", fresh);
    if (resize(fresh, size, e) < 0)
        return -1;
    if (rename(fresh, path) < 0)
        return err_errno(e, errno, "cannot name %s", path);
    return sync_folder(folder, e);
}

int node_sparse_make(const char *folder, const struct node_sparse *want, struct err *e)
{
    if (file_make_dirs(folder, 0700, e) < 0)
        return -1;
    _cleanup_free_ bool *have = mem_zalloc(want->count + 1);
    DIR *dir = opendir(folder);
    if (!dir)
        return err_errno(e, errno, "cannot list %s", folder);
    int status = 0;
    for (struct dirent *entry; status == 0 && (entry = readdir(dir));) {
        unsigned index;
        char uuid[UUID_TEXT_MAX];
        if (!parse_name(entry->d_name, &index, uuid) || index >= want->count)
            continue;
        _cleanup_free_ char *path = mem_printf("%s/%s", folder, entry->d_name);
        have[index] = true;
        status = resize(path, want->size, e);
    }
    closedir(dir);
    for (unsigned i = 0; status == 0 && i < want->count; i++) {
        if (!have[i])
            status = make_one(folder, i, want->size, e);
    }
    return status;
}

/* The loop device that somebody attached to the file; NULL. */
static const char *loop_of(struct node_scan *s, const char *path)
{
    vec_for_each(&s->devices, d) {
        const char *file =
            d->type == NODE_LOOP ? node_sysfs_text(&s->arena, d->sysfs, "loop/backing_file") : NULL;
        if (file && str_eq(file, path))
            return d->name;
    }
    return NULL;
}

static void add_file(struct node_scan *s, const char *folder, const char *name)
{
    struct arena *a = &s->arena;
    unsigned index;
    char uuid[UUID_TEXT_MAX], real[PATH_MAX];
    struct stat st;
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    if (!parse_name(name, &index, uuid) || !realpath(path, real) || lstat(path, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return;
    struct node_device d = {
        .name = arena_strdup(a, name),
        .path = arena_strdup(a, real),
        .sysfs = "",
        .sequence = "",
        .type = NODE_SPARSE,
        .size = (uint64_t)st.st_size / SECTOR * SECTOR,
        .logical_sector = BLOCK,
        .physical_sector = BLOCK,
        .hardware_sector = BLOCK,
        .vendor = "",
        .model = "",
        .firmware = "",
        .wwn = "",
        .serial = arena_strdup(a, uuid),
        .why = "",
    };
    /* In place of a device's number: changes when it is written to. */
    d.number = arena_printf(a, "%lld %lld.%09ld", (long long)st.st_size,
                            (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    d.holders = loop_of(s, real);
    d.read_only = access(real, W_OK) != 0;
    vec_push(&s->devices, d);
}

int device_list_sparse(struct node_scan *s, const char *folder, const struct node_places *p,
                       struct err *e)
{
    (void)p;
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? 0 : err_errno(e, errno, "cannot list %s", folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        add_file(s, folder, entry->d_name);
    closedir(dir);
    return 0;
}

uint64_t node_sparse_overcommitted(const char *folder)
{
    struct statvfs fs;
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    uint64_t promised = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        unsigned index;
        char uuid[UUID_TEXT_MAX];
        struct stat st;
        if (parse_name(entry->d_name, &index, uuid) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            uint64_t size = (uint64_t)st.st_size, used = (uint64_t)st.st_blocks * 512;
            promised += size > used ? size - used : 0;
        }
    }
    bool known = fstatvfs(dirfd(dir), &fs) == 0;
    closedir(dir);
    uint64_t left = known ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
    return known && promised > left ? promised - left : 0;
}
