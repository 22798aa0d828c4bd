/*
 * A disk that forgets: calls that change files are written down, and after the fact any moment of them can be made a
 * folder again, as a crash at that moment might have left it. What a sync had covered is there; of everything else
 * all, nothing, or any part. Names follow the order in which they were made, up to some point.
 *
 * The program is linked with --wrap for each call below (meson.build).
 */
#pragma once

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

enum { CRASH_FILES = 400, CRASH_FDS = 1024, CRASH_SECTOR = 512 };

struct crash_record {
    enum { R_WRITE, R_ZERO, R_SIZE, R_SYNC, R_NAME, R_RENAME, R_UNLINK, R_SYNC_NAMES } kind;
    int file, from;
    uint64_t offset, length;
    uint8_t *data;
    char name[64], to[64];
};

static struct {
    bool on;
    char folder[64];
    pthread_mutex_t lock;
    VEC(struct crash_record) log;
    int file_of[CRASH_FDS]; /* number of a file, from 1; -1: the folder */
    struct {
        char name[64];
        int file;
    } names[CRASH_FILES];
    int names_n, files;
} crash = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void crash_switch(bool on)
{
    pthread_mutex_lock(&crash.lock);
    crash.on = on;
    pthread_mutex_unlock(&crash.lock);
}

static const char *crash_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void crash_note(struct crash_record r)
{
    vec_push(&crash.log, r);
}

static int *crash_entry(const char *name)
{
    for (int i = 0; i < crash.names_n; i++)
        if (strcmp(crash.names[i].name, name) == 0)
            return &crash.names[i].file;
    assert(crash.names_n < CRASH_FILES);
    snprintf(crash.names[crash.names_n].name, 64, "%s", name);
    crash.names[crash.names_n].file = 0;
    return &crash.names[crash.names_n++].file;
}

static void crash_opened(int fd, const char *path, int flags)
{
    if (fd < 0 || fd >= CRASH_FDS)
        return;
    pthread_mutex_lock(&crash.lock);
    crash.file_of[fd] = 0;
    if (crash.on && flags & O_DIRECTORY) {
        crash.file_of[fd] = -1;
    } else if (crash.on && (flags & O_ACCMODE) != O_RDONLY) {
        int *file = crash_entry(crash_name(path));
        if (!*file) {
            *file = ++crash.files;
            struct crash_record r = {.kind = R_NAME, .file = *file};
            snprintf(r.name, sizeof(r.name), "%s", crash_name(path));
            crash_note(r);
        } else if (flags & O_TRUNC) {
            crash_note((struct crash_record){.kind = R_SIZE, .file = *file});
        }
        crash.file_of[fd] = *file;
    }
    pthread_mutex_unlock(&crash.lock);
}

static int crash_file(int fd)
{
    return crash.on && fd >= 0 && fd < CRASH_FDS ? crash.file_of[fd] : 0;
}

static void crash_wrote(int fd, const struct iovec *iov, int n, uint64_t offset, ssize_t done)
{
    pthread_mutex_lock(&crash.lock);
    if (crash_file(fd) > 0 && done > 0) {
        struct crash_record r = {.kind = R_WRITE,
                                 .file = crash_file(fd),
                                 .offset = offset,
                                 .length = (uint64_t)done,
                                 .data = mem_alloc((size_t)done)};
        size_t at = 0;
        for (int i = 0; i < n && at < (size_t)done; i++) {
            size_t part = iov[i].iov_len < (size_t)done - at ? iov[i].iov_len : (size_t)done - at;
            memcpy(r.data + at, iov[i].iov_base, part);
            at += part;
        }
        crash_note(r);
    }
    pthread_mutex_unlock(&crash.lock);
}

static void crash_synced(int fd)
{
    pthread_mutex_lock(&crash.lock);
    if (crash_file(fd) < 0)
        crash_note((struct crash_record){.kind = R_SYNC_NAMES});
    else if (crash_file(fd) > 0)
        crash_note((struct crash_record){.kind = R_SYNC, .file = crash_file(fd)});
    pthread_mutex_unlock(&crash.lock);
}

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __real_pwritev64(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_ftruncate(int fd, off_t size);
int __real_ftruncate64(int fd, off_t size);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_fallocate64(int fd, int mode, off_t offset, off_t length);
int __real_renameat(int a, const char *from, int b, const char *to);
int __real_unlink(const char *path);
int __real_unlinkat(int dir, const char *path, int flags);

#define CRASH_MODE(flags)                                                                          \
    ({                                                                                             \
        va_list ap_;                                                                               \
        va_start(ap_, flags);                                                                      \
        mode_t mode_ = (flags)&O_CREAT ? va_arg(ap_, mode_t) : 0;                                  \
        va_end(ap_);                                                                               \
        mode_;                                                                                     \
    })

#define CRASH_OPEN(name)                                                                           \
    int __wrap_##name(const char *path, int flags, ...);                                           \
    int __wrap_##name(const char *path, int flags, ...)                                            \
    {                                                                                              \
        int fd = __real_##name(path, flags, CRASH_MODE(flags));                                    \
        crash_opened(fd, path, flags);                                                             \
        return fd;                                                                                 \
    }
#define CRASH_OPENAT(name)                                                                         \
    int __wrap_##name(int dir, const char *path, int flags, ...);                                  \
    int __wrap_##name(int dir, const char *path, int flags, ...)                                   \
    {                                                                                              \
        int fd = __real_##name(dir, path, flags, CRASH_MODE(flags));                               \
        crash_opened(fd, path, flags);                                                             \
        return fd;                                                                                 \
    }
#define CRASH_PWRITE(name)                                                                         \
    ssize_t __wrap_##name(int fd, const void *data, size_t size, off_t offset);                    \
    ssize_t __wrap_##name(int fd, const void *data, size_t size, off_t offset)                     \
    {                                                                                              \
        ssize_t n = __real_##name(fd, data, size, offset);                                         \
        crash_wrote(fd, &(struct iovec){(void *)(uintptr_t)data, size}, 1, (uint64_t)offset, n);   \
        return n;                                                                                  \
    }
#define CRASH_PWRITEV(name)                                                                        \
    ssize_t __wrap_##name(int fd, const struct iovec *iov, int k, off_t offset);                   \
    ssize_t __wrap_##name(int fd, const struct iovec *iov, int k, off_t offset)                    \
    {                                                                                              \
        ssize_t n = __real_##name(fd, iov, k, offset);                                             \
        crash_wrote(fd, iov, k, (uint64_t)offset, n);                                              \
        return n;                                                                                  \
    }
#define CRASH_PWRITEV2(name)                                                                       \
    ssize_t __wrap_##name(int fd, const struct iovec *iov, int k, off_t offset, int flags);        \
    ssize_t __wrap_##name(int fd, const struct iovec *iov, int k, off_t offset, int flags)         \
    {                                                                                              \
        ssize_t n = __real_##name(fd, iov, k, offset, flags);                                      \
        crash_wrote(fd, iov, k, (uint64_t)offset, n);                                              \
        return n;                                                                                  \
    }
#define CRASH_SYNC(name)                                                                           \
    int __wrap_##name(int fd);                                                                     \
    int __wrap_##name(int fd)                                                                      \
    {                                                                                              \
        int status = __real_##name(fd);                                                            \
        crash_synced(fd);                                                                          \
        return status;                                                                             \
    }
#define CRASH_TRUNCATE(name)                                                                       \
    int __wrap_##name(int fd, off_t size);                                                         \
    int __wrap_##name(int fd, off_t size)                                                          \
    {                                                                                              \
        pthread_mutex_lock(&crash.lock);                                                           \
        if (crash_file(fd) > 0)                                                                    \
            crash_note((struct crash_record){                                                      \
                .kind = R_SIZE, .file = crash_file(fd), .length = (uint64_t)size});                \
        pthread_mutex_unlock(&crash.lock);                                                         \
        return __real_##name(fd, size);                                                            \
    }
#define CRASH_FALLOCATE(name)                                                                      \
    int __wrap_##name(int fd, int mode, off_t offset, off_t length);                               \
    int __wrap_##name(int fd, int mode, off_t offset, off_t length)                                \
    {                                                                                              \
        int status = __real_##name(fd, mode, offset, length);                                      \
        pthread_mutex_lock(&crash.lock);                                                           \
        if (crash_file(fd) > 0 && status == 0)                                                     \
            crash_note((struct crash_record){.kind = R_ZERO,                                       \
                                             .file = crash_file(fd),                               \
                                             .offset = (uint64_t)offset,                           \
                                             .length = (uint64_t)length});                         \
        pthread_mutex_unlock(&crash.lock);                                                         \
        return status;                                                                             \
    }

CRASH_OPEN(open)
CRASH_OPEN(open64)
CRASH_OPENAT(openat)
CRASH_OPENAT(openat64)
CRASH_PWRITE(pwrite)
CRASH_PWRITE(pwrite64)
CRASH_PWRITEV(pwritev)
CRASH_PWRITEV(pwritev64)
CRASH_PWRITEV2(pwritev2)
CRASH_PWRITEV2(pwritev64v2)
CRASH_SYNC(fsync)
CRASH_SYNC(fdatasync)
CRASH_TRUNCATE(ftruncate)
CRASH_TRUNCATE(ftruncate64)
CRASH_FALLOCATE(fallocate)
CRASH_FALLOCATE(fallocate64)

ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    pthread_mutex_lock(&crash.lock);
    off_t at = crash_file(fd) > 0 ? lseek(fd, 0, SEEK_CUR) : 0;
    pthread_mutex_unlock(&crash.lock);
    ssize_t n = __real_write(fd, data, size);
    crash_wrote(fd, &(struct iovec){(void *)(uintptr_t)data, size}, 1, (uint64_t)at, n);
    return n;
}

int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    int status = __real_renameat(a, from, b, to);
    pthread_mutex_lock(&crash.lock);
    if (crash.on && status == 0) {
        struct crash_record r = {.kind = R_RENAME, .file = *crash_entry(from)};
        snprintf(r.name, sizeof(r.name), "%s", from);
        snprintf(r.to, sizeof(r.to), "%s", to);
        *crash_entry(to) = r.file;
        *crash_entry(from) = 0;
        crash_note(r);
    }
    pthread_mutex_unlock(&crash.lock);
    return status;
}

static void crash_unlinked(const char *path, int status)
{
    pthread_mutex_lock(&crash.lock);
    if (crash.on && status == 0) {
        struct crash_record r = {.kind = R_UNLINK};
        snprintf(r.name, sizeof(r.name), "%s", crash_name(path));
        *crash_entry(r.name) = 0;
        crash_note(r);
    }
    pthread_mutex_unlock(&crash.lock);
}

int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    int status = __real_unlink(path);
    crash_unlinked(path, status);
    return status;
}

int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags)
{
    int status = __real_unlinkat(dir, path, flags);
    crash_unlinked(path, status);
    return status;
}

/* What a crash leaves. */

enum { CRASH_NOTHING, CRASH_ALL, CRASH_SOME, CRASH_WAYS };

struct crash_content {
    uint8_t *data;
    uint64_t size;
};

static void crash_resize(struct crash_content *c, uint64_t size)
{
    c->data = mem_realloc(c->data, size + 1);
    if (size > c->size)
        memset(c->data + c->size, 0, size - c->size);
    c->size = size;
}

static void crash_apply(struct crash_content *c, const struct crash_record *r, int way,
                        unsigned *seed)
{
    if (r->kind == R_SIZE) {
        if (way != CRASH_SOME || rand_r(seed) % 2)
            crash_resize(c, r->length);
        return;
    }
    uint64_t end = r->offset + r->length;
    if (r->kind == R_ZERO)
        end = end < c->size ? end : c->size;
    for (uint64_t at = r->offset; at < end;) {
        uint64_t part = CRASH_SECTOR - at % CRASH_SECTOR;
        part = part < end - at ? part : end - at;
        if (way != CRASH_SOME || rand_r(seed) % 2) {
            if (at + part > c->size)
                crash_resize(c, at + part);
            if (r->data)
                memcpy(c->data + at, r->data + (at - r->offset), part);
            else
                memset(c->data + at, 0, part);
        }
        at += part;
    }
}

static void crash_rename(struct crash_record names[CRASH_FILES], int *n,
                         const struct crash_record *r)
{
    const char *gone = r->kind == R_RENAME ? r->to : r->name;
    for (int i = 0; i < *n; i++)
        if (strcmp(names[i].name, gone) == 0 ||
            (r->kind == R_RENAME && strcmp(names[i].name, r->name) == 0))
            names[i--] = names[--*n];
    if (r->kind == R_UNLINK)
        return;
    names[*n] = *r;
    snprintf(names[(*n)++].name, 64, "%s", gone);
}

/* The first `count` calls have happened; what is left of them goes to a folder that is empty. */
static void crash_make(size_t count, int way, unsigned seed, const char *folder)
{
    struct crash_content files[CRASH_FILES] = {0};
    static struct crash_record names[CRASH_FILES];
    static bool sure[100000];
    int names_n = 0;
    size_t names_sure = 0;
    assert(count < sizeof(sure));
    memset(sure, 0, count);
    for (size_t i = 0; i < count; i++) {
        const struct crash_record *r = &crash.log.p[i];
        if (r->kind == R_SYNC_NAMES)
            names_sure = i;
        for (size_t k = 0; r->kind == R_SYNC && k < i; k++)
            sure[k] |= crash.log.p[k].kind <= R_SIZE && crash.log.p[k].file == r->file;
    }
    size_t names_end = way == CRASH_NOTHING ? names_sure : count;
    if (way == CRASH_SOME)
        names_end = names_sure + (size_t)rand_r(&seed) % (count - names_sure + 1);
    for (size_t i = 0; i < count; i++) {
        const struct crash_record *r = &crash.log.p[i];
        if (r->kind <= R_SIZE && (sure[i] || way != CRASH_NOTHING))
            crash_apply(&files[r->file], r, sure[i] ? CRASH_ALL : way, &seed);
        if (r->kind >= R_NAME && r->kind <= R_UNLINK && i < names_end)
            crash_rename(names, &names_n, r);
    }
    for (int i = 0; i < names_n; i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i].name);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const struct crash_content *c = &files[names[i].file];
        assert(fd >= 0 && ftruncate(fd, (off_t)c->size) == 0);
        for (uint64_t at = 0; at < c->size; at += 4096) {
            uint64_t part = c->size - at < 4096 ? c->size - at : 4096;
            if (c->data[at] || memcmp(c->data + at, c->data + at + 1, part - 1) != 0)
                assert(pwrite(fd, c->data + at, part, (off_t)at) == (ssize_t)part);
        }
        close(fd);
    }
    for (int i = 0; i < CRASH_FILES; i++)
        free(files[i].data);
}

static void crash_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *it;
    while (dir && (it = readdir(dir)))
        if (it->d_name[0] != '.' || (it->d_name[1] && it->d_name[1] != '.'))
            unlinkat(dirfd(dir), it->d_name, 0);
    if (dir)
        closedir(dir);
}
