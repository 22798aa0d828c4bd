/*
 * The intent log of a volume, in the form that a kernel's zvol gives it.
 *
 * A write leaves a record in memory; a flush puts on the devices those records that the pool's tree
 * does not have yet. What stands in a record of a write:
 *
 *     WR_COPIED      the data, copied when it was written: a write that is flushed at once
 *     WR_NEED_COPY   the data, asked for when the log is written: most are never asked for
 *     WR_INDIRECT    where the block is that was written in place: large blocks, so that they are not
 *                    written twice, unless there is a log device, which is faster
 *
 * After a crash zil_replay() hands the records back in order when the volume is opened.
 */
#include "zpool/impl.h"

enum { INDIRECT_LEAST = 32768 };

static itx_wr_state_t choose(const struct zpool_volume *v, uint64_t length, bool sync)
{
    if (v->block > INDIRECT_LEAST && length >= v->block && !spa_has_slogs(v->pool->spa))
        return WR_INDIRECT;
    return sync ? WR_COPIED : WR_NEED_COPY;
}

void zpool_intent_write(struct zpool_volume *v, dmu_tx_t *tx, uint64_t offset, uint64_t length,
                        bool sync)
{
    if (zil_replaying(dmu_objset_zil(v->os), tx))
        return;
    itx_wr_state_t want = choose(v, length, sync);
    while (length) {
        itx_wr_state_t how = want;
        uint64_t n = length;
        if (how == WR_INDIRECT)
            n = MIN(n, v->block - offset % v->block);
        if (how == WR_INDIRECT && n < v->block) /* an end that is no whole block */
            how = WR_NEED_COPY;
        if (how == WR_COPIED && n > zil_max_copied_data(v->log))
            how = WR_NEED_COPY;
        itx_t *itx = zil_itx_create(TX_WRITE, sizeof(lr_write_t) + (how == WR_COPIED ? n : 0));
        lr_write_t *lr = (lr_write_t *)(void *)&itx->itx_lr;
        if (how == WR_COPIED &&
            dmu_read_by_dnode(v->dn, offset, n, lr + 1, DMU_READ_NO_PREFETCH) != 0) {
            zil_itx_destroy(itx);
            itx = zil_itx_create(TX_WRITE, sizeof(lr_write_t));
            lr = (lr_write_t *)(void *)&itx->itx_lr;
            how = WR_NEED_COPY;
        }
        itx->itx_wr_state = how;
        itx->itx_private = v;
        itx->itx_sync = sync;
        lr->lr_foid = VOLUME_OBJECT;
        lr->lr_offset = offset;
        lr->lr_length = n;
        lr->lr_blkoff = 0;
        BP_ZERO(&lr->lr_blkptr);
        zil_itx_assign(v->log, itx, tx);
        offset += n;
        length -= n;
    }
}

void zpool_intent_unmap(struct zpool_volume *v, dmu_tx_t *tx, uint64_t offset, uint64_t length,
                        bool sync)
{
    if (zil_replaying(dmu_objset_zil(v->os), tx))
        return;
    itx_t *itx = zil_itx_create(TX_TRUNCATE, sizeof(lr_truncate_t));
    lr_truncate_t *lr = (lr_truncate_t *)(void *)&itx->itx_lr;
    lr->lr_foid = VOLUME_OBJECT;
    lr->lr_offset = offset;
    lr->lr_length = length;
    itx->itx_sync = sync;
    zil_itx_assign(v->log, itx, tx);
}

/* Called when nothing needs the block of an indirect record any more. */
static void block_done(zgd_t *zgd, int error)
{
    (void)error;
    if (zgd->zgd_db)
        dmu_buf_rele(zgd->zgd_db, zgd);
    zfs_rangelock_exit(zgd->zgd_lr);
    free(zgd);
}

/*
 * The log asks for the data of a record: into p, or, where p is NULL, to have it written in place. It
 * knows EIO, and ends the process on other errors.
 */
int zpool_intent_data(void *context, uint64_t generation, lr_write_t *lr, char *p, struct lwb *lwb,
                      zio_t *zio)
{
    (void)generation;
    struct zpool_volume *v = context;
    uint64_t offset = lr->lr_offset, n = lr->lr_length;
    if (p) {
        zfs_locked_range_t *range = zfs_rangelock_enter(&v->ranges, offset, n, RL_READER);
        int error = dmu_read_by_dnode(v->dn, offset, n, p, DMU_READ_NO_PREFETCH);
        zfs_rangelock_exit(range);
        return error ? EIO : 0;
    }
    zgd_t *zgd = NEW(zgd_t);
    zgd->zgd_lwb = lwb;
    offset -= offset % v->block;
    zgd->zgd_lr = zfs_rangelock_enter(&v->ranges, offset, v->block, RL_READER);
    int error = dmu_buf_hold_by_dnode(v->dn, offset, zgd, &zgd->zgd_db, DMU_READ_NO_PREFETCH);
    if (error) {
        block_done(zgd, error);
        return EIO;
    }
    zgd->zgd_bp = &lr->lr_blkptr;
    error = dmu_sync(zio, lr->lr_common.lrc_txg, block_done, zgd);
    if (error == 0)
        return 0; /* block_done() will be called */
    block_done(zgd, error);
    return error == EALREADY || error == ENOENT || error == EEXIST ? error : EIO;
}

static int replay(struct zpool_volume *v, int error)
{
    /* Tried once more by zil_replay(), then given up: the volume remembers. */
    if (error)
        v->replay_error = error;
    return error;
}

static int replay_write(void *context, void *record, boolean_t swap)
{
    struct zpool_volume *v = context;
    lr_write_t *lr = record;
    if (swap)
        byteswap_uint64_array(lr, sizeof(*lr));
    uint64_t offset = lr->lr_offset, n = lr->lr_length;
    /* An indirect record comes with the block that it names. */
    if (lr->lr_common.lrc_reclen == sizeof(*lr) && n < v->block) {
        offset -= offset % v->block;
        n = v->block;
    }
    if (n > v->size || offset > v->size - n)
        return 0; /* as a kernel does: beyond the end of what was rolled back or made anew */
    struct iovec iov = {lr + 1, n};
    return replay(v, zpool_volume_write_locked(v, offset, n, &iov, false));
}

static int replay_unmap(void *context, void *record, boolean_t swap)
{
    struct zpool_volume *v = context;
    lr_truncate_t *lr = record;
    if (swap)
        byteswap_uint64_array(lr, sizeof(*lr));
    return replay(v, zpool_volume_unmap_locked(v, lr->lr_offset, lr->lr_length, false));
}

static int replay_unknown(void *context, void *record, boolean_t swap)
{
    (void)record, (void)swap;
    return replay(context, ENOTSUP);
}

int zpool_intent_replay(struct zpool_volume *v)
{
    zil_replay_func_t *table[TX_MAX_TYPE];
    for (size_t i = 0; i < TX_MAX_TYPE; i++)
        table[i] = replay_unknown;
    table[TX_WRITE] = replay_write;
    table[TX_TRUNCATE] = replay_unmap;
    v->replaying = true;
    zil_replay(v->os, v, table);
    v->replaying = false;
    return v->replay_error;
}
