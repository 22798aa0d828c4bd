/*
 * What others call: wishes are taken, views handed out, the pool attached and detached. See replicas_impl.h.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "pool/replicas_impl.h"

enum { THREADS = 4 };

/* Wishes. */

struct replica_wish *replica_wish_copy(const struct pool_replica_wish *w)
{
    struct replica_wish *c = NEW(struct replica_wish);
    c->w = *w;
    c->w.name = c->name = mem_strdup(w->name);
    c->w.zvol = c->zvol = mem_strdup(w->zvol);
    c->w.volume_name = c->volume_name = mem_strdup(w->volume_name ? w->volume_name : "");
    c->w.compression = c->compression = mem_strdup(w->compression ? w->compression : "");
    c->w.target = c->target = mem_strdup(w->target ? w->target : "");
    c->key = w->key ? mem_alloc(w->key_size + 1) : NULL;
    if (c->key)
        memcpy(c->key, w->key, w->key_size);
    c->w.key = c->key;
    return c;
}

void replica_wish_free(struct replica_wish *w)
{
    if (!w)
        return;
    if (w->key)
        explicit_bzero(w->key, w->w.key_size);
    free(w->name);
    free(w->zvol);
    free(w->volume_name);
    free(w->compression);
    free(w->target);
    free(w->key);
    free(w);
}

static bool same_key(const struct pool_replica_wish *a, const struct pool_replica_wish *b)
{
    return !a->key == !b->key &&
           (!a->key || (a->key_size == b->key_size && memcmp(a->key, b->key, a->key_size) == 0));
}

bool replica_wish_fits(const struct pool_replica_wish *a, const struct pool_replica_wish *b)
{
    return str_eq(a->zvol, b->zvol) && uuid_eq(&a->volume, &b->volume) &&
           a->replicaid == b->replicaid && a->guid == b->guid && a->workers == b->workers &&
           str_eq(a->target, b->target) && a->port == b->port && same_key(a, b);
}

bool replica_wish_same(const struct pool_replica_wish *a, const struct pool_replica_wish *b)
{
    return replica_wish_fits(a, b) && a->want == b->want && a->size == b->size &&
           a->block_size == b->block_size && a->thick == b->thick &&
           str_eq(a->compression, b->compression) && str_eq(a->volume_name, b->volume_name);
}

static struct replica *find(struct pool_replicas *all, const char *name)
{
    list_for_each(&all->replicas, r, struct replica, link)
        if (str_eq(r->name, name))
            return r;
    return NULL;
}

static struct replica *add_replica(struct pool_replicas *all, const char *name)
{
    struct replica *r = NEW(struct replica);
    r->all = all;
    r->name = mem_strdup(name);
    list_push(&all->replicas, &r->link);
    return r;
}

void replicas_kick(struct pool_replicas *all)
{
    if (!atomic_exchange(&all->kicked, true) && !io_loop_post(all->loop, &all->kick))
        atomic_store(&all->kicked, false); /* with the next tick then */
}

void pool_replicas_wish(struct pool_replicas *all, const struct pool_replica_wish *w)
{
    struct replica_wish *copy = replica_wish_copy(w);
    pthread_mutex_lock(&all->lock);
    struct replica *r = find(all, w->name);
    if (!r)
        r = add_replica(all, w->name);
    const struct replica_wish *last = r->news ? r->news : r->wish;
    bool same = last && !r->forget && replica_wish_same(&last->w, &copy->w);
    if (!same) {
        struct replica_wish *old = r->news;
        r->news = copy;
        r->forget = false;
        r->shown.known = false; /* of this wish nothing is known yet */
        copy = old;
    }
    pthread_mutex_unlock(&all->lock);
    replica_wish_free(copy);
    if (!same)
        replicas_kick(all);
}

void pool_replicas_forget(struct pool_replicas *all, const char *name)
{
    pthread_mutex_lock(&all->lock);
    struct replica *r = find(all, name);
    if (r)
        r->forget = true;
    pthread_mutex_unlock(&all->lock);
    replicas_kick(all);
}

/* Views. */

bool pool_replicas_view(struct pool_replicas *all, const char *name, struct pool_replica_view *ret)
{
    *ret = (struct pool_replica_view){0};
    pthread_mutex_lock(&all->lock);
    const struct replica *r = find(all, name);
    bool found = r && !r->forget;
    if (found)
        *ret = r->shown;
    pthread_mutex_unlock(&all->lock);
    return found;
}

void pool_replicas_watch(struct pool_replicas *all,
                         void (*changed)(void *context, const char *name), void *context)
{
    pthread_mutex_lock(&all->lock);
    all->tell = changed;
    all->tell_context = context;
    pthread_mutex_unlock(&all->lock);
}

void pool_replicas_count(struct pool_replicas *all, struct pool_replica_counts *ret)
{
    *ret = (struct pool_replica_counts){0};
    pthread_mutex_lock(&all->lock);
    list_for_each(&all->replicas, r, struct replica, link) {
        ret->wished += !r->forget;
        ret->healthy += !r->forget && r->shown.complete && r->shown.connected;
    }
    pthread_mutex_unlock(&all->lock);
}

static bool is_wished(struct pool_replicas *all, const char *zvol)
{
    list_for_each(&all->replicas, r, struct replica, link) {
        const struct replica_wish *w = r->news ? r->news : r->wish;
        if (!r->forget && w && str_eq(w->zvol, zvol))
            return true;
    }
    return false;
}

size_t pool_replicas_list(struct pool_replicas *all, struct pool_replica_row **ret_rows)
{
    pthread_mutex_lock(&all->lock);
    size_t n = all->rows.len;
    *ret_rows = mem_alloc((n + 1) * sizeof(**ret_rows));
    for (size_t i = 0; i < n; i++) {
        (*ret_rows)[i] = all->rows.p[i];
        (*ret_rows)[i].wished = is_wished(all, all->rows.p[i].zvol);
    }
    pthread_mutex_unlock(&all->lock);
    return n;
}

/* The pool. */

void pool_replicas_attach(struct pool_replicas *all, struct zpool *pool)
{
    pthread_mutex_lock(&all->lock);
    bool news = all->pool != pool;
    all->pool = pool;
    all->detaching = false;
    pthread_mutex_unlock(&all->lock);
    if (news)
        replicas_kick(all);
}

void pool_replicas_detach(struct pool_replicas *all)
{
    pthread_mutex_lock(&all->lock);
    all->detaching = true;
    pthread_mutex_unlock(&all->lock);
    replicas_kick(all);
    for (bool open = true; open;) {
        pool_replicas_serve(all);
        pthread_mutex_lock(&all->lock);
        while (all->open && list_empty(&all->jobs))
            pthread_cond_wait(&all->changed, &all->lock);
        open = all->open || !list_empty(&all->jobs);
        if (!open)
            all->pool = NULL;
        pthread_mutex_unlock(&all->lock);
    }
    replicas_kick(all);
}

bool pool_replicas_busy(struct pool_replicas *all)
{
    pthread_mutex_lock(&all->lock);
    bool busy = all->open > 0;
    pthread_mutex_unlock(&all->lock);
    return busy;
}

void pool_replicas_full(struct pool_replicas *all, bool full)
{
    atomic_store(&all->nearly_full, full);
}

/* Beginning and end. */

struct pool_replicas *pool_replicas_new(const struct pool_replicas_options *o, struct err *e)
{
    struct pool_replicas *all = NEW(struct pool_replicas);
    all->wake = o->wake;
    all->wake_context = o->context;
    list_init(&all->replicas);
    list_init(&all->jobs);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    all->loop = io_loop_new(IO_AUTO, e);
    all->zvols = all->loop ? pool_zvols_new(all->loop, o->threads ? o->threads : THREADS, e) : NULL;
    if (!all->zvols || thread_start(&all->thread, "replicas", replicas_thread, all, e) < 0)
        return NULL; /* the program ends */
    return all;
}

void pool_replicas_free(struct pool_replicas *all)
{
    atomic_store(&all->stop, true);
    while (!io_loop_post(all->loop, &all->kick))
        ;
    pthread_join(all->thread, NULL);
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->changed);
    vec_done(&all->rows);
    free(all);
}
