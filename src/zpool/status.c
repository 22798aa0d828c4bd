/*
 * What a pool is doing, as it is at this moment: read from libzpool, nothing is kept here.
 */
#include <time.h>

#include "zpool/impl.h"

static const char *const state_names[] = {
    [ZPOOL_ONLINE] = "ONLINE",   [ZPOOL_DEGRADED] = "DEGRADED", [ZPOOL_FAULTED] = "FAULTED",
    [ZPOOL_OFFLINE] = "OFFLINE", [ZPOOL_REMOVED] = "REMOVED",   [ZPOOL_UNAVAILABLE] = "UNAVAIL",
};

static const enum zpool_state states[] = {
    [VDEV_STATE_UNKNOWN] = ZPOOL_UNAVAILABLE,   [VDEV_STATE_CLOSED] = ZPOOL_UNAVAILABLE,
    [VDEV_STATE_OFFLINE] = ZPOOL_OFFLINE,       [VDEV_STATE_REMOVED] = ZPOOL_REMOVED,
    [VDEV_STATE_CANT_OPEN] = ZPOOL_UNAVAILABLE, [VDEV_STATE_FAULTED] = ZPOOL_FAULTED,
    [VDEV_STATE_DEGRADED] = ZPOOL_DEGRADED,     [VDEV_STATE_HEALTHY] = ZPOOL_ONLINE,
};

static const char *const reasons[] = {
    [VDEV_AUX_OPEN_FAILED] = "it cannot be opened",
    [VDEV_AUX_CORRUPT_DATA] = "its label or data is damaged",
    [VDEV_AUX_NO_REPLICAS] = "too few of its devices work",
    [VDEV_AUX_BAD_GUID_SUM] = "devices of the pool are missing",
    [VDEV_AUX_TOO_SMALL] = "it is smaller than it was",
    [VDEV_AUX_BAD_LABEL] = "it has another label: another device may be at its path",
    [VDEV_AUX_VERSION_NEWER] = "it was written by a newer version",
    [VDEV_AUX_VERSION_OLDER] = "it was written by an older version",
    [VDEV_AUX_UNSUP_FEAT] = "it uses features that this version does not have",
    [VDEV_AUX_SPARED] = "the spare is in use by another pool",
    [VDEV_AUX_ERR_EXCEEDED] = "it had too many errors",
    [VDEV_AUX_IO_FAILURE] = "it failed reads or writes",
    [VDEV_AUX_BAD_LOG] = "its log cannot be read",
    [VDEV_AUX_EXTERNAL] = "it was declared faulted",
    [VDEV_AUX_BAD_ASHIFT] = "its sectors are larger than the pool's",
    [VDEV_AUX_EXTERNAL_PERSIST] = "it was declared faulted",
    [VDEV_AUX_ACTIVE] = "another host uses it",
    [VDEV_AUX_CHILDREN_OFFLINE] = "all its devices are offline",
};

const char *zpool_state_name(enum zpool_state state)
{
    return (unsigned)state < ARRAY_SIZE(state_names) ? state_names[state] : "UNKNOWN";
}

typedef VEC(struct zpool_vdev) rows;

static const vdev_stat_t *stat_of(nvlist_t *nv)
{
    uint64_t *words;
    uint_t n;
    if (nvlist_lookup_uint64_array(nv, ZPOOL_CONFIG_VDEV_STATS, &words, &n) != 0 ||
        n * sizeof(*words) < sizeof(vdev_stat_t))
        return NULL;
    return (const vdev_stat_t *)(void *)words;
}

static void fill(struct zpool_vdev *v, nvlist_t *nv, const vdev_stat_t *vs)
{
    char *text;
    if (nvlist_lookup_string(nv, ZPOOL_CONFIG_TYPE, &text) == 0)
        snprintf(v->type, sizeof(v->type), "%s", text);
    if (nvlist_lookup_string(nv, ZPOOL_CONFIG_PATH, &text) == 0) {
        snprintf(v->path, sizeof(v->path), "%s", text);
        v->stuck_ms = zpool_device_stuck_ms(text);
    }
    (void)nvlist_lookup_uint64(nv, ZPOOL_CONFIG_GUID, &v->guid);
    uint64_t log = 0;
    if (nvlist_lookup_uint64(nv, ZPOOL_CONFIG_IS_LOG, &log) == 0 && log)
        v->role = ZPOOL_ROLE_LOG;
    v->state = ZPOOL_UNAVAILABLE;
    if (!vs)
        return;
    v->state = states[vs->vs_state % ARRAY_SIZE(states)];
    v->why = vs->vs_aux < ARRAY_SIZE(reasons) ? reasons[vs->vs_aux] : "unknown";
    v->size = vs->vs_space ? vs->vs_space : vs->vs_rsize;
    v->allocated = vs->vs_alloc;
    v->read_errors = vs->vs_read_errors;
    v->write_errors = vs->vs_write_errors;
    v->checksum_errors = vs->vs_checksum_errors;
    v->repaired_bytes = vs->vs_self_healed;
    v->expandable = vs->vs_esize;
}

/* Depth is bounded: root, group, replacing or spare, device. */
static void add_tree(rows *to, nvlist_t *nv, int parent, enum zpool_role role)
{
    struct zpool_vdev v = {.parent = parent, .role = role};
    v.depth = parent < 0 ? 0 : to->p[parent].depth + 1;
    fill(&v, nv, stat_of(nv));
    vec_push(to, v);
    int self = (int)to->len - 1;
    nvlist_t **children;
    uint_t n;
    if (v.depth < 8 && nvlist_lookup_nvlist_array(nv, ZPOOL_CONFIG_CHILDREN, &children, &n) == 0)
        for (uint_t i = 0; i < n; i++)
            add_tree(to, children[i], self, v.role);
}

/* Which devices lack data, with the configuration held. */
static void mark_behind(rows *v, spa_t *spa)
{
    vec_for_each(v, row) {
        vdev_t *vd = vdev_lookup_by_guid(spa->spa_root_vdev, row->guid);
        if (vd && vd->vdev_ops->vdev_op_leaf)
            row->behind = !vdev_dtl_empty(vd, DTL_MISSING);
    }
}

/* Spares and caches, with the configuration held. */
static void add_aux(rows *to, spa_t *spa, const spa_aux_vdev_t *aux, enum zpool_role role)
{
    for (int i = 0; i < aux->sav_count; i++) {
        vdev_config_flag_t flag =
            role == ZPOOL_ROLE_SPARE ? VDEV_CONFIG_SPARE : VDEV_CONFIG_L2CACHE;
        nvlist_t *nv = vdev_config_generate(spa, aux->sav_vdevs[i], B_TRUE, flag);
        add_tree(to, nv, -1, role);
        nvlist_free(nv);
        uint64_t pool;
        struct zpool_vdev *v = &vec_last(to);
        v->spare_in_use =
            role == ZPOOL_ROLE_SPARE && spa_spare_exists(v->guid, &pool, NULL) && pool;
    }
}

static const enum zpool_scan_state scan_states[] = {
    [DSS_NONE] = ZPOOL_SCAN_IDLE,
    [DSS_SCANNING] = ZPOOL_SCAN_RUNNING,
    [DSS_FINISHED] = ZPOOL_SCAN_DONE,
    [DSS_CANCELED] = ZPOOL_SCAN_STOPPED,
};

static void estimate(struct zpool_progress *r, uint64_t done_now, int64_t since)
{
    r->eta_s = -1;
    r->percent = r->total ? 100.0 * (double)r->done / (double)r->total : 0;
    if (r->percent > 100)
        r->percent = 100;
    if (r->state == ZPOOL_SCAN_DONE)
        r->percent = 100;
    int64_t took = (int64_t)time(NULL) - since;
    if (r->state == ZPOOL_SCAN_RUNNING && done_now && took > 0 && r->total >= r->done)
        r->eta_s = (int64_t)((double)(r->total - r->done) / ((double)done_now / (double)took));
}

static void read_scan(nvlist_t *root, struct zpool_progress *r)
{
    uint64_t *words;
    uint_t n;
    r->eta_s = -1;
    if (nvlist_lookup_uint64_array(root, ZPOOL_CONFIG_SCAN_STATS, &words, &n) != 0 ||
        n * sizeof(*words) < sizeof(pool_scan_stat_t))
        return;
    const pool_scan_stat_t *ps = (const pool_scan_stat_t *)(void *)words;
    r->kind = ps->pss_func == POOL_SCAN_SCRUB      ? ZPOOL_SCAN_SCRUB
              : ps->pss_func == POOL_SCAN_RESILVER ? ZPOOL_SCAN_RESILVER
                                                   : ZPOOL_SCAN_NONE;
    r->state = scan_states[ps->pss_state % ARRAY_SIZE(scan_states)];
    r->total = ps->pss_to_examine;
    r->done = ps->pss_issued;
    r->repaired = ps->pss_processed;
    r->errors = ps->pss_errors;
    r->started = (int64_t)ps->pss_start_time;
    r->ended = r->state == ZPOOL_SCAN_RUNNING ? 0 : (int64_t)ps->pss_end_time;
    estimate(r, ps->pss_pass_issued,
             (int64_t)(ps->pss_pass_start + ps->pss_pass_scrub_spent_paused));
}

static void read_removal(nvlist_t *root, struct zpool_progress *r)
{
    uint64_t *words;
    uint_t n;
    r->eta_s = -1;
    if (nvlist_lookup_uint64_array(root, ZPOOL_CONFIG_REMOVAL_STATS, &words, &n) != 0 ||
        n * sizeof(*words) < sizeof(pool_removal_stat_t))
        return;
    const pool_removal_stat_t *ps = (const pool_removal_stat_t *)(void *)words;
    r->state = scan_states[ps->prs_state % ARRAY_SIZE(scan_states)];
    r->total = ps->prs_to_copy;
    r->done = ps->prs_copied;
    r->started = (int64_t)ps->prs_start_time;
    r->ended = r->state == ZPOOL_SCAN_RUNNING ? 0 : (int64_t)ps->prs_end_time;
    estimate(r, r->done, r->started);
}

/* As volumes see it. */
static void read_space(struct zpool *p, struct zpool_status *s)
{
    dsl_pool_t *dp = spa_get_dsl(p->spa);
    dsl_pool_config_enter(dp, FTAG);
    s->used = dsl_dir_get_used(dp->dp_root_dir);
    s->logical = dsl_dir_phys(dp->dp_root_dir)->dd_uncompressed_bytes;
    s->available = dsl_dir_space_available(dp->dp_root_dir, NULL, 0, TRUE);
    dsl_pool_config_exit(dp, FTAG);
}

int zpool_status_read(struct zpool *p, struct zpool_status *ret, struct err *e)
{
    zpool_doubt_note(p);
    *ret = (struct zpool_status){.suspended = spa_suspended(p->spa)};
    nvlist_t *config = spa_config_generate(p->spa, NULL, UINT64_MAX, 1), *root;
    if (!config || nvlist_lookup_nvlist(config, ZPOOL_CONFIG_VDEV_TREE, &root) != 0) {
        nvlist_free(config);
        return err_set(e, ERR_INTERNAL, "NoStatus", "pool %s does not say what it is", p->name);
    }
    rows v = {0};
    add_tree(&v, root, -1, ZPOOL_ROLE_DATA);
    read_scan(root, &ret->scan);
    read_removal(root, &ret->removal);
    nvlist_free(config);

    spa_config_enter(p->spa, SCL_CONFIG | SCL_STATE, FTAG, RW_READER);
    mark_behind(&v, p->spa);
    add_aux(&v, p->spa, &p->spa->spa_spares, ZPOOL_ROLE_SPARE);
    add_aux(&v, p->spa, &p->spa->spa_l2cache, ZPOOL_ROLE_CACHE);
    spa_config_exit(p->spa, SCL_CONFIG | SCL_STATE, FTAG);

    ret->vdevs = v.p;
    ret->n_vdevs = v.len;
    ret->state = v.p[0].state;
    ret->errors = spa_get_errlog_size(p->spa);
    ret->size = metaslab_class_get_space(spa_normal_class(p->spa));
    ret->allocated = metaslab_class_get_alloc(spa_normal_class(p->spa));
    ret->free = ret->size - ret->allocated;
    uint64_t fragmentation = metaslab_class_fragmentation(spa_normal_class(p->spa));
    ret->fragmentation = fragmentation <= 100 ? (unsigned)fragmentation : 0;
    read_space(p, ret);
    return 0;
}

void zpool_status_done(struct zpool_status *s)
{
    free(s->vdevs);
    s->vdevs = NULL;
    s->n_vdevs = 0;
}
