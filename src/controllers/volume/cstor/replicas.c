/*
 * The replicas of a volume: objects that are made, kept as they should be, and deleted.
 *
 *     what there is ─> plan ─> places ─> rights ─> who leaves ─> objects ─> who goes
 *
 * When one is missing the server is asked what there is, since the cache may not have what was just
 * made. The rights come before the objects: a pool that sees its replica may read the key. Who
 * leaves is said before another is made in its place.
 */
#include "controllers/volume/cstor/cstor.h"
#include "kinds/cvc.h"
#include "kinds/pool_names.h"

extern const struct kube_template controllers_volume_cstor_keyrole,
    controllers_volume_cstor_keyrolebinding, controllers_volume_cstor_replica;

static const int64_t LOOK_AGAIN = 10 * CLOCK_SECOND;

/* One pass over the replicas. */
struct pass {
    struct volume_work *w;
    const char *address;
    struct arena arena;
    struct cstor_volume volume; /* as decoded at the begin of the pass */
    struct volume_view view;
    struct cstor_world world;
    struct cstor_wish wish;
    struct cstor_plan plan;
    size_t chosen[CSTOR_MEMBERS]; /* pools that get a replica */
    unsigned chosen_n;
    json_t *leaving; /* the ids that spec.leavingReplicas should have */
};

static void pass_done(struct pass *p)
{
    cstor_world_done(&p->world);
    json_decref(p->leaving);
    free((void *)(uintptr_t)p->wish.named);
    arena_done(&p->arena);
}

static int pass_begin(struct pass *p, struct volume_work *w, struct err *e)
{
    *p = (struct pass){.w = w, .view = volume_look(w)};
    p->volume = cstor_volume_of(w->volume, &p->arena);
    const char *cluster = kube_label(w->volume, API_POOL_CLUSTER);
    const char **named =
        p->volume.spec.pools.len ? mem_zalloc(p->volume.spec.pools.len * sizeof(*named)) : NULL;
    for (size_t i = 0; i < p->volume.spec.pools.len; i++)
        named[i] = p->volume.spec.pools.p[i].name;
    p->wish = (struct cstor_wish){
        .cluster = cluster ? cluster : "",
        .capacity = p->view.capacity,
        .size = p->view.size,
        .near = volume_annotation(w->volume, API_CSTOR_NODE),
        .named = named,
        .named_n = p->volume.spec.pools.len,
    };
    if (!*p->wish.cluster)
        return err_set(e, ERR_FAILED_PRECONDITION, "NoPoolCluster",
                       "the volume has no label " API_POOL_CLUSTER
                       ", which names the CStorPoolCluster that its replicas are in");
    return cstor_world_read(w, false, &p->world, e);
}

/* Who is to go elsewhere. */

static bool is_named(const struct pass *p, const char *pool)
{
    for (size_t i = 0; i < p->wish.named_n; i++) {
        if (str_eq(p->wish.named[i], pool))
            return true;
    }
    return !p->wish.named;
}

static bool could_place(struct pass *p)
{
    size_t chosen[1];
    struct err why = {0};
    pthread_mutex_lock(&p->w->c->lock);
    cstor_world_count(p->w, &p->world);
    pthread_mutex_unlock(&p->w->c->lock);
    return cstor_place(&p->wish, p->world.pools, p->world.pools_n, 1, chosen, &why) == 0;
}

/*
 * A pool that is lost is waited for, and its replica is given up only while the volume serves
 * without it; so there is always somebody to copy from.
 */
static bool is_given_up(struct pass *p, const struct cstor_replica *r)
{
    int64_t ns = r->at < 0 ? INT64_MAX : p->world.pools[r->at].lost_ns;
    if (!ns || r->healthy || r->leaving || r->deleting)
        return false;
    if (ns < volume_settings.rehome_ns) {
        volume_again(p->w, volume_settings.rehome_ns - ns);
        return false;
    }
    if (!p->view.made)
        return true;
    volume_again(p->w, LOOK_AGAIN);
    return volume_misses_replica(&p->view) && could_place(p) && volume_take_place(p->w);
}

static void find_unwanted(struct pass *p)
{
    bool given_up = false; /* one at a time */
    for (size_t i = 0; i < p->world.replicas_n; i++) {
        struct cstor_replica *r = &p->world.replicas[i];
        const struct cstor_pool *pool = r->at < 0 ? NULL : &p->world.pools[r->at];
        r->unwanted = !is_named(p, r->pool) || (pool && pool->evacuated);
        if (r->unwanted || given_up || !is_given_up(p, r))
            continue;
        r->unwanted = given_up = true;
        kube_event_warning(p->w->c->recorder, p->w->volume, "ReplicaRehomed",
                           "Pool %s is away for too long: its replica is made anew in another",
                           r->pool);
    }
}

static void make_plan(struct pass *p)
{
    find_unwanted(p);
    cstor_plan(p->world.replicas, p->world.replicas_n, p->view.factor, p->view.made, &p->plan);
    /* Who leaves does not keep its node from another. */
    for (size_t i = 0; i < p->world.replicas_n; i++) {
        const struct cstor_replica *r = &p->world.replicas[i];
        if (r->at >= 0 && (p->plan.leave[i] || p->plan.remove[i]))
            p->world.pools[r->at].mine = false;
        if (r->at >= 0 && p->plan.stay[i])
            p->world.pools[r->at].mine = true;
    }
}

/* Places. */

/* A member whose object is gone is made again where it was, and is the same to the target. */
static void choose_known(struct pass *p)
{
    for (size_t i = 0; i < p->world.pools_n && p->chosen_n < p->plan.add; i++) {
        struct cstor_pool *pool = &p->world.pools[i];
        _cleanup_free_ char *id = cstor_replica_id(kube_uid(p->w->volume), pool->uid);
        if (!json_object_get(p->volume.status.known, id) || volume_listed(p->leaving, id) ||
            !cstor_pool_is_fit(&p->wish, pool))
            continue;
        pool->used = pool->mine = true;
        p->chosen[p->chosen_n++] = i;
    }
}

/* A pool from which a member has yet to go takes no other replica of the volume. */
static void bar_leavers(struct pass *p)
{
    for (size_t i = 0; i < p->world.pools_n; i++) {
        _cleanup_free_ char *id = cstor_replica_id(kube_uid(p->w->volume), p->world.pools[i].uid);
        p->world.pools[i].used |= volume_listed(p->leaving, id);
    }
}

static int choose_pools(struct pass *p, struct err *e)
{
    struct volume_controller *v = p->w->c;
    pthread_mutex_lock(&v->lock);
    cstor_world_count(p->w, &p->world);
    bar_leavers(p);
    choose_known(p);
    unsigned rest = p->plan.add - p->chosen_n;
    int status =
        cstor_place(&p->wish, p->world.pools, p->world.pools_n, rest, p->chosen + p->chosen_n, e);
    if (status == 0)
        p->chosen_n += rest;
    for (unsigned i = 0; i < p->chosen_n && p->address; i++) {
        json_auto_t *replica = cstor_replica_object(p->w->volume, &p->world.pools[p->chosen[i]],
                                                    p->address, p->view.capacity, NULL);
        if (replica)
            cstor_world_note(v, replica);
    }
    pthread_mutex_unlock(&v->lock);
    return status;
}

int cstor_check(struct volume_work *w, struct err *e)
{
    struct pass p;
    int status = pass_begin(&p, w, e);
    if (status == 0 && !p.world.replicas_n && !p.view.made) {
        make_plan(&p);
        status = choose_pools(&p, e);
    }
    pass_done(&p);
    return status;
}

/* Objects. */

static void set_policy(const json_t *volume, json_t *values)
{
    struct arena arena = {0};
    const struct cstor_policy p = cstor_policy_of(json_at(volume, "spec", "policy"), &arena);
    volume_set_some(values, "compression", p.replica.compression);
    volume_set_some(values, "zvolWorkers", p.replica.workers);
    if (p.block_size)
        json_object_set_new(values, "blockSize", json_integer(p.block_size));
    arena_done(&arena);
}

json_t *cstor_replica_object(const json_t *volume, const struct cstor_pool *pool,
                             const char *address, const char *capacity, struct err *e)
{
    json_auto_t *values = volume_values(&volume_cstor, volume);
    _cleanup_free_ char *id = cstor_replica_id(kube_uid(volume), pool->uid);
    const char *apart = kube_label(volume, API_CSTOR_APART),
               *rather = kube_label(volume, API_CSTOR_RATHER_APART);
    struct err ignored = {0};
    volume_set_text(values, "pool", pool->name);
    volume_set_text(values, "poolUid", pool->uid);
    volume_set_text(values, "node", pool->node);
    volume_set_text(values, "address", address);
    volume_set_text(values, "capacity", capacity);
    volume_set_text(values, "replicaid", id);
    json_object_set_new(values, "thick", json_boolean(pool->thick));
    set_policy(volume, values);
    if (apart)
        volume_set_text(values, "apart", apart);
    if (rather)
        volume_set_text(values, "ratherApart", rather);
    return kube_template_fill(&controllers_volume_cstor_replica, values, e ? e : &ignored);
}

/* A replica that is there keeps what its pool was like when it was made. */
static int keep_object(struct volume_work *w, const struct cstor_replica *r,
                       const struct cstor_pool *pool, const char *address, const char *capacity,
                       struct err *e)
{
    struct cstor_pool as_made = *pool;
    const char *has = volume_text(r->object, "spec", "capacity");
    as_made.thick = json_is_true(json_at(r->object, "spec", "thick"));
    json_auto_t *wanted = json_string(capacity);
    bool larger = volume_bytes(json_at(r->object, "spec", "capacity")) >= volume_bytes(wanted);
    json_t *object = cstor_replica_object(w->volume, &as_made, address, larger ? has : capacity, e);
    if (object) /* the size of its blocks too */
        json_object_set(json_object_get(object, "spec"), "blockSize",
                        (json_t *)(uintptr_t)json_at(r->object, "spec", "blockSize"));
    return volume_apply_child(w, &w->c->replicas, object, NULL, NULL, e);
}

int cstor_raise_replicas(struct volume_work *w, const struct cstor_world *world,
                         const char *capacity, struct err *e)
{
    for (size_t i = 0; i < world->replicas_n; i++) {
        const struct cstor_replica *r = &world->replicas[i];
        if (r->at >= 0 && !r->deleting &&
            keep_object(w, r, &world->pools[r->at], volume_text(r->object, "spec", "targetIP"),
                        capacity, e) < 0)
            return -1;
    }
    return 0;
}

static int keep_objects(struct pass *p, struct err *e)
{
    /* A size that was not granted is none. */
    const char *capacity =
        p->view.made ? volume_text(p->w->volume, "status", "capacity") : p->view.capacity;
    for (size_t i = 0; i < p->world.replicas_n; i++) {
        const struct cstor_replica *r = &p->world.replicas[i];
        if (r->at >= 0 && !r->deleting && !p->plan.remove[i] &&
            keep_object(p->w, r, &p->world.pools[r->at], p->address, capacity, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < p->chosen_n; i++) {
        const struct cstor_pool *pool = &p->world.pools[p->chosen[i]];
        if (volume_apply_child(p->w, &p->w->c->replicas,
                               cstor_replica_object(p->w->volume, pool, p->address, capacity, e),
                               NULL, NULL, e) < 0)
            return -1;
        kube_event_normal(p->w->c->recorder, p->w->volume, "ReplicaPlaced",
                          "Pool %s on node %s gets a replica", pool->name, pool->node);
    }
    return 0;
}

/* The accounts of the pools that have a replica or get one. */
static int keep_rights(struct pass *p, struct err *e)
{
    json_auto_t *values = volume_values(&volume_cstor, p->w->volume), *subjects = json_array();
    for (size_t i = 0; i < p->world.pools_n; i++) {
        const struct cstor_pool *pool = &p->world.pools[i];
        bool has = pool->used;
        for (unsigned k = 0; k < p->chosen_n; k++)
            has |= p->chosen[k] == i;
        _cleanup_free_ char *account = api_pool_account(pool->name);
        if (has)
            json_array_append_new(subjects, json_pack("{s:s,s:s,s:s}", "kind", "ServiceAccount",
                                                      "name", account, "namespace", p->w->ns));
    }
    json_object_set(values, "subjects", subjects);
    if (volume_apply_child(p->w, &p->w->c->roles,
                           kube_template_fill(&controllers_volume_cstor_keyrole, values, e), NULL,
                           NULL, e) < 0)
        return -1;
    return volume_apply_child(
        p->w, &p->w->c->bindings,
        kube_template_fill(&controllers_volume_cstor_keyrolebinding, values, e), NULL, NULL, e);
}

/* Who leaves. */

static const struct cstor_replica *find_replica(const struct pass *p, const char *id, size_t *ret_i)
{
    for (size_t i = 0; i < p->world.replicas_n; i++) {
        if (str_eq(p->world.replicas[i].id, id)) {
            *ret_i = i;
            return &p->world.replicas[i];
        }
    }
    return NULL;
}

static bool is_chosen(const struct pass *p, const char *id)
{
    for (unsigned i = 0; i < p->chosen_n; i++) {
        _cleanup_free_ char *its =
            cstor_replica_id(kube_uid(p->w->volume), p->world.pools[p->chosen[i]].uid);
        if (str_eq(its, id))
            return true;
    }
    return false;
}

/* Those that left and are gone are forgotten; those that are to leave are added. */
static json_t *list_leaving(const struct pass *p)
{
    json_t *list = json_array();
    size_t i;
    for (size_t k = 0; k < p->volume.spec.leaving.len; k++) {
        const char *id = p->volume.spec.leaving.p[k];
        const struct cstor_replica *r = find_replica(p, id, &i);
        bool stays = r && p->plan.stay[i];
        bool gone = !r && !json_object_get(p->volume.status.known, id);
        if (!stays && !gone)
            json_array_append_new(list, json_string(id));
    }
    for (i = 0; i < p->world.replicas_n; i++) {
        if (p->plan.leave[i])
            json_array_append_new(list, json_string(p->world.replicas[i].id));
    }
    return list;
}

/* A member whose object is gone, and that is not made again where it was, leaves too. */
static void add_orphans(struct pass *p)
{
    const char *id;
    json_t *guid;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)p->volume.status.known, id, guid) {
        if (p->view.serving && !find_replica(p, id, &i) && !volume_listed(p->leaving, id) &&
            !is_chosen(p, id))
            json_array_append_new(p->leaving, json_string(id));
    }
}

static int write_leaving(struct pass *p, struct err *e)
{
    const json_t *said = json_at(p->w->volume, "spec", "leavingReplicas");
    if (said ? json_equal(said, p->leaving) : !json_array_size(p->leaving))
        return 0;
    json_auto_t *patch = json_pack("{s:{s:O}}", "spec", "leavingReplicas", p->leaving);
    if (!json_array_size(p->leaving))
        json_object_set_new(json_object_get(patch, "spec"), "leavingReplicas", json_null());
    return volume_patch(p->w, patch, "leaving", e);
}

/* Of a pool that is gone, or was forgotten, nobody else would ever say that the data is gone. */
static int release(struct volume_work *w, const struct cstor_world *world,
                   const struct cstor_replica *r, struct err *e)
{
    bool gone = r->at < 0 || world->pools[r->at].lost_ns == INT64_MAX;
    if (!r->deleting || !gone || !kube_finalizer_has(r->object, API_CSTOR_FINALIZER))
        return 0;
    kube_event_warning(w->c->recorder, w->volume, "PoolGone",
                       "Pool %s is gone, so the replica in it is forgotten", r->pool);
    struct err why = {0};
    json_t *copy = json_deep_copy(r->object);
    int status = volume_hold(w->c, &w->c->replicas.r, &copy, API_CSTOR_FINALIZER, false, &why);
    json_decref(copy);
    if (status < 0 && why.code != ERR_NOT_FOUND)
        *e = why;
    return status < 0 && why.code != ERR_NOT_FOUND ? -1 : 0;
}

static int remove_objects(struct pass *p, struct err *e)
{
    for (size_t i = 0; i < p->world.replicas_n; i++) {
        const struct cstor_replica *r = &p->world.replicas[i];
        if (p->plan.remove[i] &&
            volume_delete(p->w->c, &p->w->c->replicas.r, r->object, false, e) < 0)
            return -1;
        if (release(p->w, &p->world, r, e) < 0)
            return -1;
    }
    return 0;
}

static int plan_afresh(struct pass *p, struct err *e)
{
    cstor_world_done(&p->world);
    if (cstor_world_read(p->w, true, &p->world, e) < 0)
        return -1;
    make_plan(p);
    json_decref(p->leaving);
    p->leaving = list_leaving(p);
    return 0;
}

static int carry_out(struct pass *p, struct err *e)
{
    make_plan(p);
    p->leaving = list_leaving(p);
    if (p->plan.add && plan_afresh(p, e) < 0)
        return -1;
    struct err why = {0};
    bool placed = !p->plan.add || choose_pools(p, &why) == 0;
    if (!placed && !p->world.replicas_n) {
        *e = why;
        return -1;
    }
    if (placed)
        add_orphans(p);
    else
        p->w->later = why;
    if (keep_rights(p, e) < 0 || write_leaving(p, e) < 0 || keep_objects(p, e) < 0)
        return -1;
    return remove_objects(p, e);
}

int cstor_apply_replicas(struct volume_work *w, const char *address, const struct volume_uids *uids,
                         struct err *e)
{
    struct pass p;
    (void)uids;
    int status = pass_begin(&p, w, e);
    p.address = address;
    if (status == 0)
        status = carry_out(&p, e);
    pass_done(&p);
    return status;
}

/* Silence. */

int cstor_tell_silent(struct volume_work *w, const struct cstor_world *world, struct err *e)
{
    static const char *const silent[] = {"", "Init", "Offline", "Error", "DeletionFailed", NULL};
    for (size_t i = 0; i < world->replicas_n; i++) {
        const struct cstor_replica *r = &world->replicas[i];
        const char *phase = volume_text(r->object, "status", "phase");
        if (r->at < 0 || !world->pools[r->at].lost_ns || str_in(phase, silent))
            continue;
        json_auto_t *status = json_deep_copy(json_object_get(r->object, "status"));
        json_t *object = json_deep_copy(r->object);
        json_object_set_new(status, "phase", json_string("Offline"));
        json_object_set_new(status, "message",
                            json_sprintf("Pool %s is %s: nothing is known of the replica", r->pool,
                                         world->pools[r->at].phase));
        struct err why = {0};
        int done = volume_write_status(w->c, &w->c->replicas.r, &object, status, &why);
        json_decref(object);
        if (done < 0 && why.code != ERR_NOT_FOUND && why.code != ERR_ABORTED) {
            *e = why;
            return -1;
        }
    }
    return 0;
}

/* The end. */

static int wait_for_pools(struct volume_work *w, const struct cstor_world *world, struct err *e)
{
    for (size_t i = 0; i < world->replicas_n; i++) {
        const struct cstor_replica *r = &world->replicas[i];
        if (r->at < 0 || !world->pools[r->at].lost_ns)
            continue;
        _cleanup_free_ char *text =
            mem_printf("The replicas end; waits for pool %s, which is %s, to remove its data. If "
                       "it will not be back, run: orlop pool forget %s",
                       r->pool, world->pools[r->at].phase, r->pool);
        return volume_say_ending(w, "PoolUnavailable", text, e);
    }
    return volume_say_ending(w, "ReplicasEnd", "The pools remove the replicas and their data", e);
}

int cstor_end_replicas(struct volume_work *w, struct err *e)
{
    struct cstor_world world;
    int status = cstor_world_read(w, true, &world, e);
    for (size_t i = 0; status == 0 && i < world.replicas_n; i++) {
        const struct cstor_replica *r = &world.replicas[i];
        status = r->deleting ? release(w, &world, r, e)
                             : volume_delete(w->c, &w->c->replicas.r, r->object, false, e);
    }
    bool none = status == 0 && !world.replicas_n;
    if (status == 0 && !none)
        status = wait_for_pools(w, &world, e);
    cstor_world_done(&world);
    return none ? 1 : status;
}
