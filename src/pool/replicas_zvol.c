/*
 * The zvols of a replica: found, made, opened, destroyed. On the thread that may change the pool.
 *
 *     NAME         the data; its notes say whose it is
 *     NAME:orlop   the metadata: thin, with some space set aside, so that a pool that is full of data can still
 *                  note that some was given back. No name of a Kubernetes object has a colon.
 *
 * The metadata is made before the data and destroyed after it. So metadata without data is what is left of making or
 * of destroying; data without metadata has lost it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/be.h"
#include "base/crash.h"
#include "base/str.h"
#include "pool/replicas_impl.h"
#include "pool/zvol_impl.h"
#include "repl/meta.h"

enum { SECTOR = 512, BLOCK = 4096, REGION = 65536, UNREADABLE = 0xdb, STEP = 4096 };

/* As cStor called them, and ours. */
static const char NOTE_NAME[] = "io.openebs:volname", NOTE_ID[] = "io.openebs:zvol_replica_id",
                  NOTE_VOLUME[] = "io.orlop:volume-id";

static char *meta_name(const struct pool_replica_wish *w)
{
    return mem_printf("%s" REPLICA_META, w->zvol);
}

/* Finding. */

static uint64_t read_id(struct zpool *p, const char *zvol)
{
    char text[32];
    zpool_volume_read_note(p, zvol, NOTE_ID, text, sizeof(text));
    return strtoull(text, NULL, 10);
}

void replica_find(struct replica *r, struct zpool *p)
{
    const struct pool_replica_wish *w = &r->wish->w;
    _cleanup_free_ char *meta = meta_name(w);
    struct zpool_volume_info info;
    struct replica_found f = {0};
    if (zpool_volume_read_info(p, w->zvol, &info, NULL) == 0) {
        uint64_t id = read_id(p, w->zvol);
        f.data = true;
        f.guid = info.guid;
        f.data_ours = id && id == w->replicaid;
        f.data_other = id && id != w->replicaid;
    }
    if (zpool_volume_read_info(p, meta, &info, NULL) == 0) {
        uint64_t id = read_id(p, meta);
        f.meta = true;
        f.meta_ours = id == w->replicaid;
        f.meta_other = !f.meta_ours;
    }
    r->found = f;
}

/* Making. */

static int make_zvol(struct zpool *p, const struct pool_replica_wish *w, const char *name,
                     struct zpool_volume_spec *spec, struct err *e)
{
    char id[32];
    snprintf(id, sizeof(id), "%" PRIu64, w->replicaid);
    const struct zpool_note notes[] = {
        {NOTE_NAME, w->name}, {NOTE_ID, id}, {NOTE_VOLUME, w->volume_name}};
    spec->notes = notes;
    spec->n_notes = ARRAY_SIZE(notes);
    int status = zpool_volume_create(p, name, spec, e);
    spec->notes = NULL;
    return status;
}

/* One that may become as large as a volume can: it takes no space for that. */
static int make_meta(struct zpool *p, const struct pool_replica_wish *w, struct err *e)
{
    _cleanup_free_ char *name = meta_name(w);
    uint64_t regions = w->size / REGION, room = regions / REPL_PAGE_ENTRIES * REPL_SUPER_SIZE;
    struct zpool_volume_spec spec = {
        .size = repl_page_offset(REPL_REGIONS / REPL_PAGE_ENTRIES + 1),
        .block_size = BLOCK,
        .compression = "off",
        .reserve = 8 * REPL_META_HEAD + 2 * room,
    };
    return make_zvol(p, w, name, &spec, e);
}

int replica_make(struct replica *r, struct zpool *p, struct err *e)
{
    const struct pool_replica_wish *w = &r->wish->w;
    _cleanup_free_ char *meta = meta_name(w);
    uint32_t block = w->block_size ? w->block_size : BLOCK;
    struct zpool_volume_spec spec = {
        .size = pool_zvol_round(w->size, block),
        .block_size = block,
        .compression = *w->compression ? w->compression : NULL,
        .thick = w->thick,
    };
    if (r->found.meta && zpool_volume_destroy(p, meta, e) < 0)
        return -1;
    crash_point("before the metadata is made");
    if (make_meta(p, w, e) < 0)
        return -1;
    crash_point("before the data is made");
    if (make_zvol(p, w, w->zvol, &spec, e) < 0)
        return -1;
    crash_point("after the data was made");
    return 0;
}

/* Opening. */

/* Who the replica is: so a new zvol is a new replica. */
static struct uuid identity(const struct pool_replica_wish *w)
{
    struct uuid id;
    be_put64(id.bytes, w->replicaid);
    be_put64(id.bytes + 8, w->guid);
    return id;
}

/* What a log could not bring back is lost: *ret_lost. The second try takes it as it is. */
static struct store *open_zvol(const struct pool_zvol_options *o, char *lost, size_t size,
                               struct err *e)
{
    struct err why = {0};
    struct store *s = pool_zvol_open(o, &why);
    if (!s && why.code == ERR_DATA_LOSS && str_eq(why.reason, "LogNotPlayed")) {
        snprintf(lost, size, "%s", why.msg);
        s = pool_zvol_open(o, &why);
    }
    if (!s)
        *e = why;
    return s;
}

/* What cannot be read is filled with something that is no metadata. */
static void read_part(struct store *s, uint8_t *image, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += STEP) {
        size_t n = to - at < STEP ? to - at : STEP;
        if (pool_zvol_read(s, at, image + at, n) != 0)
            memset(image + at, UNREADABLE, n);
    }
}

static void read_image(struct replica *r)
{
    uint8_t *image = mem_alloc(REPLIO_META_HEAD);
    read_part(r->meta, image, 0, REPLIO_META_HEAD);
    size_t size = replio_meta_size(image, r->data->size);
    image = mem_realloc_array(image, size, 1);
    read_part(r->meta, image, REPLIO_META_HEAD, size);
    r->image = image;
    r->image_size = size;
}

int replica_open_zvols(struct replica *r, struct zpool *p, struct err *e)
{
    const struct pool_replica_wish *w = &r->running->w;
    _cleanup_free_ char *meta = meta_name(w);
    struct pool_zvol_options o = {.zvols = r->all->zvols,
                                  .pool = p,
                                  .name = w->zvol,
                                  .block_size = SECTOR,
                                  .identity = identity(w),
                                  .most = w->workers,
                                  .nearly_full = &r->all->nearly_full,
                                  .patient = true,
                                  .run = replicas_run_sync,
                                  .engine = r->all};
    r->lost[0] = '\0';
    if (!r->found.meta && make_meta(p, w, e) < 0)
        return -1;
    r->data = open_zvol(&o, r->lost, sizeof(r->lost), e);
    if (!r->data)
        return -1;
    o.name = meta;
    o.most = 0;
    o.nearly_full = NULL;
    r->meta = open_zvol(&o, r->lost, sizeof(r->lost), e);
    if (!r->meta) {
        store_close(r->data);
        r->data = NULL;
        return -1;
    }
    read_image(r);
    return 0;
}

/* Destroying. */

static int destroy_snapshots(struct zpool *p, const char *zvol, struct err *e)
{
    struct zpool_volume_info *list;
    size_t n;
    _cleanup_free_ char *prefix = mem_printf("%s@", zvol);
    if (zpool_volume_list(p, &list, &n, e) < 0)
        return -1;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++)
        if (list[i].snapshot && str_starts_with(list[i].name, prefix))
            status = zpool_volume_destroy(p, list[i].name, e);
    free(list);
    return status;
}

int replica_destroy(struct replica *r, struct zpool *p, struct err *e)
{
    const struct pool_replica_wish *w = &r->wish->w;
    const struct replica_found *f = &r->found;
    _cleanup_free_ char *meta = meta_name(w);
    bool data = replica_is_own(w, f);
    crash_point("before the data is destroyed");
    if (data && (destroy_snapshots(p, w->zvol, e) < 0 || zpool_volume_destroy(p, w->zvol, e) < 0))
        return -1;
    crash_point("before the metadata is destroyed");
    if (f->meta_ours && zpool_volume_destroy(p, meta, e) < 0)
        return -1;
    crash_point("after the metadata was destroyed");
    return 0;
}

/* The list. */

static const struct pool_replica_row *known_row(const struct pool_replicas *all, uint64_t guid)
{
    vec_for_each(&all->rows, row)
        if (row->guid == guid)
            return row;
    return NULL;
}

void replicas_list(struct pool_replicas *all, struct zpool *p)
{
    if (zpool_volume_list(p, &all->infos, &all->n_infos, NULL) < 0)
        all->n_infos = 0;
    for (size_t i = 0; i < all->n_infos; i++) {
        const struct zpool_volume_info *info = &all->infos[i];
        if (info->snapshot || str_ends_with(info->name, REPLICA_META))
            continue;
        struct pool_replica_row row = {.guid = info->guid,
                                       .size = info->size,
                                       .used = info->used,
                                       .block_size = info->block_size};
        snprintf(row.zvol, sizeof(row.zvol), "%s", info->name);
        const struct pool_replica_row *known = known_row(all, info->guid); /* notes stay */
        if (known) {
            memcpy(row.name, known->name, sizeof(row.name));
            memcpy(row.volume_id, known->volume_id, sizeof(row.volume_id));
            row.replicaid = known->replicaid;
        } else {
            zpool_volume_read_note(p, info->name, NOTE_NAME, row.name, sizeof(row.name));
            zpool_volume_read_note(p, info->name, NOTE_VOLUME, row.volume_id,
                                   sizeof(row.volume_id));
            row.replicaid = read_id(p, info->name);
        }
        vec_push(&all->listed, row);
    }
}
