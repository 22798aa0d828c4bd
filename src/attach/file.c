/*
 * Invariants: a request that libfuse handed us is answered exactly once, when its I/O is done. I/O that is
 * not made of whole blocks, or that leaves the volume, is refused here, so the session sees only what the
 * target can do. The file is never in the page cache: what it says is what the target says.
 *
 * Memory: a request is read into a buffer that has room for the largest. A large write keeps that buffer
 * until it is done; a small one is copied, so that 256 small writes do not hold 256 large buffers.
 */
#include "attach/file.h"

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "attach/loop.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    VOLUME = 2, /* inode; the folder is FUSE_ROOT_ID */
    TRANSFER_MOST = 256 << 10,
    SMALL = 16 << 10,
    IN_FLIGHT = 256,
    SPARE_BUFFERS = 32,
    TURN_MOST = 64,       /* requests read before answers are looked for */
    FUSE_RESEND_CODE = 7, /* FUSE_NOTIFY_RESEND of Linux 6.9 */
};

#define NAME "volume"

struct request {
    struct attach_io io; /* first: it is found by it */
    fuse_req_t req;
    struct attach_file *file;
    void *large;    /* owned while the request is; NULL: the bytes are in `small` */
    uint8_t *small; /* owned for ever */
    struct request *next_free;
};

struct pool {
    void *spare[SPARE_BUFFERS];
    unsigned count;
};

struct attach_file {
    struct fuse_session *fuse;
    struct attach_session *session;
    struct attach_greeting *greeting;
    int fd;
    struct fuse_buf received;
    struct request *free_requests;
    struct pool reads;  /* of TRANSFER_MOST */
    struct pool writes; /* as large as libfuse makes them */
};

/* Buffers */

static void keep(struct pool *p, void *buffer)
{
    if (buffer && p->count < SPARE_BUFFERS)
        p->spare[p->count++] = buffer;
    else
        free(buffer);
}

static void *spare(struct pool *p)
{
    return p->count ? p->spare[--p->count] : NULL;
}

static struct request *take_request(fuse_req_t req)
{
    struct attach_file *f = fuse_req_userdata(req);
    struct request *r = f->free_requests;
    if (r)
        f->free_requests = r->next_free;
    else
        r = NEW(struct request);
    r->file = f;
    r->req = req;
    r->large = NULL;
    return r;
}

static void give_request(struct request *r)
{
    struct attach_file *f = r->file;
    keep(r->io.op == ATTACH_READ ? &f->reads : &f->writes, r->large);
    r->next_free = f->free_requests;
    f->free_requests = r;
}

static uint8_t *small_buffer(struct request *r)
{
    if (!r->small)
        r->small = mem_alloc(SMALL);
    return r->small;
}

/* I/O */

static void answer(struct attach_io *io, int error)
{
    struct request *r = container_of(io, struct request, io);
    if (error)
        fuse_reply_err(r->req, error);
    else if (io->op == ATTACH_READ)
        fuse_reply_buf(r->req, (char *)io->data, io->length);
    else if (io->op == ATTACH_WRITE)
        fuse_reply_write(r->req, io->length);
    else
        fuse_reply_err(r->req, 0);
    give_request(r);
}

static void submit(struct request *r, enum attach_op op, uint64_t offset, uint64_t length)
{
    r->io.op = op;
    r->io.offset = offset;
    r->io.length = length;
    r->io.done = answer;
    attach_session_submit(r->file->session, &r->io);
}

/* Refuses what is not made of whole blocks; *length is cut at the end of the volume. */
static bool whole_blocks(fuse_req_t req, off_t offset, uint64_t *length)
{
    struct attach_file *f = fuse_req_userdata(req);
    const struct attach_facts *facts = attach_session_facts(f->session);
    if (offset < 0 || offset % facts->block_size || *length % facts->block_size) {
        fuse_reply_err(req, EINVAL);
        return false;
    }
    if ((uint64_t)offset >= facts->size)
        *length = 0;
    else if (*length > facts->size - (uint64_t)offset)
        *length = facts->size - (uint64_t)offset;
    return true;
}

static void on_read(fuse_req_t req, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    (void)inode, (void)info;
    struct attach_file *f = fuse_req_userdata(req);
    uint64_t length = size;
    if (!whole_blocks(req, offset, &length))
        return;
    if (!length || length > TRANSFER_MOST) {
        fuse_reply_err(req, length ? EINVAL : 0);
        return;
    }
    struct request *r = take_request(req);
    if (length > SMALL && !(r->large = spare(&f->reads)))
        r->large = mem_alloc(TRANSFER_MOST);
    r->io.data = r->large ? r->large : small_buffer(r);
    submit(r, ATTACH_READ, (uint64_t)offset, length);
}

static void on_write(fuse_req_t req, fuse_ino_t inode, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *info)
{
    (void)inode;
    struct attach_file *f = fuse_req_userdata(req);
    uint64_t length = size;
    if (!whole_blocks(req, offset, &length))
        return;
    if (length < size || !size) {
        fuse_reply_err(req, size ? ENOSPC : 0);
        return;
    }
    struct request *r = take_request(req);
    r->io.fua = info->flags & O_DSYNC;
    if (length > SMALL) {
        r->large = f->received.mem; /* the bytes lie in it, behind the header */
        r->io.data = (uint8_t *)(uintptr_t)data;
        f->received.mem = spare(&f->writes);
    } else {
        r->io.data = memcpy(small_buffer(r), data, length);
    }
    submit(r, ATTACH_WRITE, (uint64_t)offset, length);
}

static void on_fsync(fuse_req_t req, fuse_ino_t inode, int data_only, struct fuse_file_info *info)
{
    (void)inode, (void)data_only, (void)info;
    submit(take_request(req), ATTACH_FLUSH, 0, 0);
}

static void on_fallocate(fuse_req_t req, fuse_ino_t inode, int mode, off_t offset, off_t size,
                         struct fuse_file_info *info)
{
    (void)inode, (void)info;
    bool punch = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    bool zero =
        mode == FALLOC_FL_ZERO_RANGE || mode == (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
    uint64_t length = size > 0 ? (uint64_t)size : 0;
    if (!punch && !zero) {
        fuse_reply_err(req, EOPNOTSUPP);
        return;
    }
    if (!whole_blocks(req, offset, &length))
        return;
    if (!length) {
        fuse_reply_err(req, 0);
        return;
    }
    struct request *r = take_request(req);
    r->io.data = NULL;
    submit(r, punch ? ATTACH_UNMAP : ATTACH_ZERO, (uint64_t)offset, length);
}

/* What the file and its folder are */

static void describe(struct attach_file *f, fuse_ino_t inode, struct stat *st)
{
    const struct attach_facts *facts = attach_session_facts(f->session);
    *st = (struct stat){.st_ino = inode, .st_mode = S_IFDIR | 0500, .st_nlink = 2};
    if (inode != VOLUME)
        return;
    st->st_mode = S_IFREG | 0600;
    st->st_nlink = 1;
    st->st_size = (off_t)facts->size;
    st->st_blksize = TRANSFER_MOST;
    st->st_blocks = (blkcnt_t)(facts->size / 512);
}

static void on_getattr(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)info;
    struct stat st;
    describe(fuse_req_userdata(req), inode, &st);
    fuse_reply_attr(req, &st, 0);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    bool known = str_eq(name, NAME) || str_starts_with(name, ATTACH_LABEL_BEGIN);
    if (parent != FUSE_ROOT_ID || !known) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    struct fuse_entry_param entry = {.ino = VOLUME, .generation = 1};
    describe(fuse_req_userdata(req), VOLUME, &entry.attr);
    fuse_reply_entry(req, &entry);
}

static void on_open(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
    if (inode != VOLUME) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    info->direct_io = 1;
    info->noflush = 1;
    fuse_reply_open(req, info);
}

static void on_readdir(fuse_req_t req, fuse_ino_t inode, size_t size, off_t offset,
                       struct fuse_file_info *info)
{
    static const char *const names[] = {".", "..", NAME};
    (void)inode, (void)info;
    char text[512];
    size_t used = 0;
    for (off_t i = offset; i >= 0 && i < (off_t)ARRAY_SIZE(names); i++) {
        struct stat st = {.st_ino = i == 2 ? VOLUME : FUSE_ROOT_ID,
                          .st_mode = i == 2 ? S_IFREG : S_IFDIR};
        size_t need =
            fuse_add_direntry(req, text + used, sizeof(text) - used, names[i], &st, i + 1);
        if (used + need > size || used + need > sizeof(text))
            break;
        used += need;
    }
    fuse_reply_buf(req, text, used);
}

/* The loop device takes its granularity of discard from the block size here. */
static void on_statfs(fuse_req_t req, fuse_ino_t inode)
{
    (void)inode;
    struct attach_file *f = fuse_req_userdata(req);
    const struct attach_facts *facts = attach_session_facts(f->session);
    struct statvfs v = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255, .f_files = 1};
    v.f_blocks = facts->size / v.f_frsize;
    fuse_reply_statfs(req, &v);
}

static void on_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS);
    conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO);
    conn->max_write = TRANSFER_MOST;
    conn->max_background = IN_FLIGHT;
    conn->congestion_threshold = IN_FLIGHT * 3 / 4;
}

static const struct fuse_lowlevel_ops operations = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .open = on_open,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
    .fallocate = on_fallocate,
    .readdir = on_readdir,
    .statfs = on_statfs,
};

/* The session */

/* The greeting of the kernel is kept for a successor. */
static void hear(struct attach_file *f)
{
    const struct fuse_in_header *header = f->received.mem;
    if (f->greeting->length || f->received.size < sizeof(*header) ||
        f->received.size > ATTACH_GREETING_MOST || header->opcode != FUSE_INIT)
        return;
    memcpy(f->greeting->bytes, f->received.mem, f->received.size);
    f->greeting->length = (uint32_t)f->received.size;
}

/*
 * libfuse hears the greeting again; its answer finds nobody who waits for it. Then the kernel is asked for
 * what the predecessor had read and not answered. Where it cannot do that those who wait would wait for
 * ever: the mount is to end.
 */
static int take_over(struct attach_file *f, struct err *e)
{
    struct fuse_buf greeting = {.mem = f->greeting->bytes, .size = f->greeting->length};
    struct fuse_out_header again = {.len = sizeof(again), .error = FUSE_RESEND_CODE};
    fuse_session_process_buf(f->fuse, &greeting);
    if (write(f->fd, &again, sizeof(again)) < 0)
        return err_errno(e, errno, "the kernel does not send requests again");
    return 0;
}

struct attach_file *attach_file_new(int fuse, struct attach_greeting *greeting,
                                    struct attach_session *session, struct err *e)
{
    char name[] = "orlop-attach", *argv[] = {name, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct attach_file *f = NEW(struct attach_file);
    f->session = session;
    f->greeting = greeting;
    f->fd = fuse;
    f->fuse = fuse_session_new(&args, &operations, sizeof(operations), f);
    fuse_opt_free_args(&args);
    _cleanup_free_ char *place = mem_printf("/dev/fd/%d", fuse);
    if (!f->fuse || fuse_session_mount(f->fuse, place) < 0)
        err_set(e, ERR_INTERNAL, "FuseFailed", "libfuse cannot serve the mount");
    else if (!greeting->length || take_over(f, e) == 0)
        return f;
    attach_file_free(f);
    return NULL;
}

void attach_file_free(struct attach_file *f)
{
    if (!f)
        return;
    if (f->fuse)
        fuse_session_destroy(f->fuse);
    while (f->free_requests) {
        struct request *r = f->free_requests;
        f->free_requests = r->next_free;
        free(r->small);
        free(r);
    }
    while (f->reads.count)
        free(spare(&f->reads));
    while (f->writes.count)
        free(spare(&f->writes));
    free(f->received.mem);
    free(f);
}

bool attach_file_service(struct attach_file *f)
{
    for (int i = 0; i < TURN_MOST && !fuse_session_exited(f->fuse); i++) {
        int n = fuse_session_receive_buf(f->fuse, &f->received);
        if (n <= 0)
            break;
        hear(f);
        fuse_session_process_buf(f->fuse, &f->received);
    }
    return !fuse_session_exited(f->fuse);
}

void attach_file_changed(struct attach_file *f)
{
    fuse_lowlevel_notify_inval_inode(f->fuse, VOLUME, -1, 0);
}
