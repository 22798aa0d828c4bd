/*
 * Damage: what ZFS cannot read, because it does not match its checksum and there is no other copy in the pool.
 *
 *     read fails ──> piece of 128 KiB ──read again──> fails: damaged     its owner reads elsewhere and writes it anew
 *                                          │             │
 *                                   can be read:         └──written──> read again ──> can be read: mended
 *                                   it was none
 *
 * Only what is known by reading is counted.
 */
#include <errno.h>
#include <stdlib.h>

#include "pool/zvol_impl.h"

enum { PIECE = 128 * 1024, MOST = 256 };

struct damage {
    struct store_io io; /* that reads it again */
    struct iovec iov;
    struct zvol *z;
    struct list_link link;
    uint64_t offset, length;
    bool reading, again; /* again: it was written meanwhile */
    bool known;          /* it was counted */
    uint8_t *data;
};

static void drop_damage(struct damage *d)
{
    list_unlink(&d->link);
    d->z->damage_n--;
    free(d->data);
    free(d);
}

static void read_again(struct damage *d);

static void was_read(struct store_io *io, int error)
{
    struct damage *d = container_of(io, struct damage, io);
    struct zvol *z = d->z;
    d->reading = false;
    z->rereads--;
    if (d->again && !z->closing) {
        d->again = false;
        read_again(d);
        return;
    }
    bool suspended = zpool_is_suspended(z->pool);
    if (!error)
        z->mended += d->known;
    else if (!d->known && !suspended)
        z->damaged++;
    if (!error || suspended || z->closing) {
        drop_damage(d);
        pool_zvol_quiet(z);
        return;
    }
    d->known = true;
    free(d->data);
    d->data = NULL;
}

static void read_again(struct damage *d)
{
    if (!d->data)
        d->data = mem_alloc(d->length);
    d->reading = true;
    d->z->rereads++;
    d->iov = (struct iovec){d->data, d->length};
    d->io = (struct store_io){.op = STORE_READ,
                              .store = &d->z->store,
                              .offset = d->offset,
                              .length = d->length,
                              .iov = &d->iov,
                              .iovs = 1,
                              .done = was_read};
    list_init(&d->io.link);
    pool_zvol_start(d->z, &d->io);
}

static bool is_noted(const struct zvol *z, uint64_t offset)
{
    list_for_each(&z->damage, d, struct damage, link)
        if (d->offset == offset)
            return true;
    return false;
}

static void note_damage(struct zvol *z, uint64_t offset)
{
    if (z->damage_n == MOST || is_noted(z, offset))
        return;
    struct damage *d = NEW(struct damage);
    uint64_t left = z->store.size - offset;
    d->z = z;
    d->offset = offset;
    d->length = left < PIECE ? left : PIECE;
    list_push(&z->damage, &d->link);
    z->damage_n++;
    read_again(d);
}

static bool is_own(const struct store_io *io)
{
    return io->done == was_read;
}

void pool_zvol_note(struct zvol *z, const struct store_io *io, int error)
{
    uint64_t end = io->offset + io->length;
    if (io->op == STORE_READ && error == EIO && !io->snapshot && !is_own(io) && !z->closing) {
        for (uint64_t at = io->offset - io->offset % PIECE; at < end; at += PIECE)
            note_damage(z, at);
        return;
    }
    if (list_empty(&z->damage) || io->op == STORE_READ || io->op == STORE_FLUSH || error)
        return;
    list_for_each_safe(&z->damage, d, struct damage, link) {
        if (io->offset >= d->offset + d->length || d->offset >= end)
            continue;
        d->again = d->reading;
        if (!d->reading)
            read_again(d);
    }
}

void pool_zvol_damage_done(struct zvol *z)
{
    list_for_each_safe(&z->damage, d, struct damage, link)
        drop_damage(d);
}
