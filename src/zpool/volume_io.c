/*
 * Reading and writing of volumes.
 *
 * A range is locked for the time of an I/O, so that writes are whole to each other and the log can
 * read what it logs. A write is cut into transactions of at most TRANSACTION bytes:
 *
 *     hold the blocks ── read those that are only partly written ── assign a transaction ── copy ── log
 *
 * dmu_write() is not used: it ends the process when a block of the tree above the data is damaged. What
 * is used here returns an error instead; and a block that is partly written is read, and stays in
 * memory, before the transaction begins, since from there on a failed read could not be answered.
 */
#include "zpool/impl.h"

enum {
    TRY_BLOCKS = 32, /* read at once by who must not wait */
    TRANSACTION = 1 << 20,
    READ_CHUNK = 1 << 20,
    UNMAP_BLOCKS = 16384, /* freed in one transaction: as many as 16 blocks of pointers hold */
};

/* A place in an iovec. */
struct cursor {
    const struct iovec *iov; /* NULL: zeroes */
    size_t at;
};

enum direction { TO_IOV, FROM_IOV };

static void copy(struct cursor *c, char *p, size_t n, enum direction d)
{
    if (!c->iov) {
        memset(p, 0, n);
        return;
    }
    while (n) {
        while (c->at == c->iov->iov_len) {
            c->iov++;
            c->at = 0;
        }
        size_t k = MIN(n, c->iov->iov_len - c->at);
        char *q = (char *)c->iov->iov_base + c->at;
        if (d == TO_IOV)
            memcpy(q, p, k);
        else
            memcpy(p, q, k);
        c->at += k;
        p += k;
        n -= k;
    }
}

/* The numbers that ZFS has for damage are EIO to everybody else. */
static int plain(int error)
{
    return error == ECKSUM || error == EFRAGS || error == ENXIO ? EIO
           : error == EDQUOT                                    ? ENOSPC
                                                                : error;
}

static int read_locked(struct zpool_volume *v, uint64_t offset, uint64_t length, struct cursor *c)
{
    while (length) {
        uint64_t n = MIN(length, READ_CHUNK);
        dmu_buf_t **bufs;
        int n_bufs;
        int error = dmu_buf_hold_array_by_dnode(v->dn, offset, n, B_TRUE, FTAG, &n_bufs, &bufs,
                                                DMU_READ_PREFETCH);
        if (error)
            return error;
        for (int i = 0; i < n_bufs; i++) {
            uint64_t skip = offset - bufs[i]->db_offset;
            uint64_t k = MIN(n, bufs[i]->db_size - skip);
            copy(c, (char *)bufs[i]->db_data + skip, k, TO_IOV);
            offset += k;
            length -= k;
            n -= k;
        }
        dmu_buf_rele_array(bufs, n_bufs, FTAG);
    }
    return 0;
}

/* The blocks at both ends, read and held where they are written in part. */
struct ends {
    dmu_buf_t *first, *last;
};

static void ends_rele(struct ends *x)
{
    if (x->first)
        dmu_buf_rele(x->first, x);
    if (x->last)
        dmu_buf_rele(x->last, x);
}

static int ends_hold(struct zpool_volume *v, uint64_t offset, uint64_t length, struct ends *x)
{
    uint64_t end = offset + length, block = v->block;
    int error = 0;
    *x = (struct ends){0};
    if (offset % block || length < block)
        error = dmu_buf_hold_by_dnode(v->dn, offset, x, &x->first, DMU_READ_NO_PREFETCH);
    if (!error && end % block && end / block != offset / block)
        error = dmu_buf_hold_by_dnode(v->dn, end, x, &x->last, DMU_READ_NO_PREFETCH);
    if (error)
        ends_rele(x);
    return error;
}

static void fill(dmu_buf_t **bufs, int n_bufs, uint64_t offset, uint64_t length, struct cursor *c,
                 dmu_tx_t *tx)
{
    for (int i = 0; i < n_bufs; i++) {
        uint64_t skip = offset - bufs[i]->db_offset;
        uint64_t k = MIN(length, bufs[i]->db_size - skip);
        bool whole = k == bufs[i]->db_size;
        if (whole)
            dmu_buf_will_fill(bufs[i], tx);
        else
            dmu_buf_will_dirty(bufs[i], tx);
        copy(c, (char *)bufs[i]->db_data + skip, k, FROM_IOV);
        if (whole)
            dmu_buf_fill_done(bufs[i], tx);
        offset += k;
        length -= k;
    }
}

/* One transaction. */
static int write_piece(struct zpool_volume *v, uint64_t offset, uint64_t length, struct cursor *c,
                       bool sync)
{
    if (spa_suspended(v->pool->spa))
        return EIO;
    struct ends ends;
    int error = ends_hold(v, offset, length, &ends);
    if (error)
        return error;
    dmu_buf_t **bufs;
    int n_bufs;
    error = dmu_buf_hold_array_by_dnode(v->dn, offset, length, B_FALSE, FTAG, &n_bufs, &bufs,
                                        DMU_READ_NO_PREFETCH);
    if (error == 0) {
        dmu_tx_t *tx = dmu_tx_create(v->os);
        dmu_tx_hold_write_by_dnode(tx, v->dn, offset, (int)length);
        error = dmu_tx_assign(tx, TXG_WAIT);
        if (error == 0) {
            fill(bufs, n_bufs, offset, length, c, tx);
            zpool_intent_write(v, tx, offset, length, sync);
            dmu_tx_commit(tx);
        } else {
            dmu_tx_abort(tx);
        }
        dmu_buf_rele_array(bufs, n_bufs, FTAG);
    }
    ends_rele(&ends);
    return error;
}

int zpool_volume_write_locked(struct zpool_volume *v, uint64_t offset, uint64_t length,
                              const struct iovec *iov, bool sync)
{
    struct cursor c = {.iov = iov};
    int error = 0;
    while (length && !error) {
        /* To the next multiple, so that no block is in two transactions. A record of the log is played
         * in one: were it two, a crash between them would leave the second undone. */
        uint64_t n = v->replaying ? length : MIN(length, TRANSACTION - offset % TRANSACTION);
        error = write_piece(v, offset, n, &c, sync);
        offset += n;
        length -= n;
    }
    return error;
}

/* Whole blocks, in the transaction that logs it: a flush behind it then finds one or the other. */
static int free_blocks(struct zpool_volume *v, uint64_t offset, uint64_t length, bool sync)
{
    if (spa_suspended(v->pool->spa))
        return EIO;
    dmu_tx_t *tx = dmu_tx_create(v->os);
    dmu_tx_mark_netfree(tx);
    dmu_tx_hold_free_by_dnode(tx, v->dn, offset, length);
    int error = dmu_tx_assign(tx, TXG_WAIT);
    if (error) {
        dmu_tx_abort(tx);
        return error;
    }
    error = dmu_free_range(v->os, VOLUME_OBJECT, offset, length, tx);
    if (error == 0)
        zpool_intent_unmap(v, tx, offset, length, sync);
    dmu_tx_commit(tx);
    return error;
}

int zpool_volume_unmap_locked(struct zpool_volume *v, uint64_t offset, uint64_t length, bool sync)
{
    uint64_t end = offset + length, block = v->block, step = UNMAP_BLOCKS * block;
    uint64_t first = (offset + block - 1) / block * block, last = end / block * block;
    if (first >= last) /* no whole block */
        return zpool_volume_write_locked(v, offset, length, NULL, sync);
    int error = zpool_volume_write_locked(v, offset, first - offset, NULL, sync);
    while (!error && first < last) {
        uint64_t n = MIN(last - first, step - first % step);
        error = free_blocks(v, first, n, sync);
        first += n;
    }
    return error ? error : zpool_volume_write_locked(v, last, end - last, NULL, sync);
}

static int flush(struct zpool_volume *v)
{
    if (!v->log)
        return 0;
    if (spa_suspended(v->pool->spa))
        return EIO;
    zil_commit(v->log, VOLUME_OBJECT);
    return zpool_doubt(v->pool) ? EIO : 0;
}

static int check(const struct zpool_io *io)
{
    uint64_t size = zpool_volume_size(io->volume);
    if (io->op == ZPOOL_FLUSH)
        return 0;
    if (io->op != ZPOOL_READ && !io->volume->log)
        return EROFS;
    return io->length > size || io->offset > size - io->length ? EINVAL : 0;
}

int zpool_io_run(const struct zpool_io *io)
{
    struct zpool_volume *v = io->volume;
    int error = check(io);
    if (error || io->op == ZPOOL_FLUSH)
        return error ? error : flush(v);
    if (io->length == 0)
        return 0;
    zfs_locked_range_t *range = zfs_rangelock_enter(&v->ranges, io->offset, io->length,
                                                    io->op == ZPOOL_READ ? RL_READER : RL_WRITER);
    struct cursor c = {.iov = io->iov};
    switch (io->op) {
    case ZPOOL_READ:
        error = read_locked(v, io->offset, io->length, &c);
        break;
    case ZPOOL_WRITE:
        error = zpool_volume_write_locked(v, io->offset, io->length, io->iov, io->fua);
        break;
    case ZPOOL_UNMAP:
        error = zpool_volume_unmap_locked(v, io->offset, io->length, io->fua);
        break;
    case ZPOOL_FLUSH:
        break;
    }
    zfs_rangelock_exit(range);
    if (!error && io->fua && io->op != ZPOOL_READ)
        error = flush(v);
    return plain(error);
}

/* Of blocks first to last those that are in memory, held; how many until the first that is not. */
static int hold_cached(struct zpool_volume *v, uint64_t first, uint64_t last, dmu_buf_impl_t **ret)
{
    int n = 0;
    if (!rw_tryenter(&v->dn->dn_struct_rwlock, RW_READER))
        return 0;
    for (uint64_t block = first; block <= last; block++) {
        if (dbuf_hold_impl(v->dn, 0, block, B_FALSE, B_TRUE, FTAG, &ret[n]) != 0)
            break;
        n++;
    }
    rw_exit(&v->dn->dn_struct_rwlock);
    return n;
}

bool zpool_io_try_read(const struct zpool_io *io)
{
    struct zpool_volume *v = io->volume;
    dmu_buf_impl_t *held[TRY_BLOCKS];
    if (check(io) != 0 || io->length == 0)
        return false;
    uint64_t first = io->offset / v->block, last = (io->offset + io->length - 1) / v->block;
    if (last - first >= TRY_BLOCKS)
        return false;
    zfs_locked_range_t *range =
        zfs_rangelock_tryenter(&v->ranges, io->offset, io->length, RL_READER);
    if (!range)
        return false;
    int n = hold_cached(v, first, last, held);
    bool all = (uint64_t)n == last - first + 1;
    struct cursor c = {.iov = io->iov};
    uint64_t offset = io->offset, left = io->length;
    for (int i = 0; i < n; i++) {
        uint64_t skip = offset - held[i]->db.db_offset, k = MIN(left, held[i]->db.db_size - skip);
        if (all)
            copy(&c, (char *)held[i]->db.db_data + skip, k, TO_IOV);
        offset += k;
        left -= k;
        dbuf_rele(held[i], FTAG);
    }
    zfs_rangelock_exit(range);
    return all;
}
