/*
 * The last report, and when to make another.
 *
 *     worker A   [lvcreate]. . . . . . . .[ report ]──> A, B and C go on
 *     worker B             [lvcreate]. . . .
 *     worker C                      [lvextend]
 *
 * Changes of a node are made one after the other, as LVM's lock would have it anyway. Who has made one
 * wants a report that began after it; while others are about to change something, it waits for them a
 * little, so that one report serves many.
 */
#include "node/lv_impl.h"

static const int64_t NEWS_NS = CLOCK_SECOND;

struct lvm_view *lv_view(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    struct lvm_view *v = lvm_view_ref(s->view);
    pthread_mutex_unlock(&s->lock);
    return v;
}

/* Locked. Which of what was given is in the new report. */
static void forget_given(struct node_lvs *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->given.len; i++) {
        if (s->given.p[i].change > s->seen)
            s->given.p[kept++] = s->given.p[i];
        else
            free(s->given.p[i].of);
    }
    s->given.len = kept;
}

/* Locked, and unlocked while lvm runs. */
static int look_now(struct node_lvs *s, struct err *e)
{
    struct lvm_view *v = NULL;
    uint64_t changes = s->changes;
    int64_t now = clock_mono_ns(s->n->clock);
    s->looking = true;
    pthread_mutex_unlock(&s->lock);
    int status = lvm_look(s->lvm, &v, e);
    pthread_mutex_lock(&s->lock);
    s->looking = false;
    if (status == 0) {
        lvm_view_unref(s->view);
        s->view = v;
        s->seen = changes;
        s->seen_at = now;
        s->oldest = s->changes > s->seen ? clock_mono_ns(s->n->clock) : 0;
        forget_given(s);
        kube_controller_add(s->keeper, "", LV_ANNOUNCE);
    }
    pthread_cond_broadcast(&s->news);
    return status;
}

int lv_look(struct node_lvs *s, int64_t patience_ns, struct lvm_view **ret_view, struct err *e)
{
    pthread_mutex_lock(&s->lock);
    uint64_t wanted = ++s->changes; /* as if one were made now */
    int status = 0;
    if (!s->oldest)
        s->oldest = clock_mono_ns(s->n->clock);
    while (status == 0 && s->seen < wanted) {
        int64_t until = s->oldest + patience_ns;
        if (s->looking)
            pthread_cond_wait(&s->news, &s->lock);
        else if (s->queued && clock_mono_ns(s->n->clock) < until)
            clock_wait(s->n->clock, &s->news, &s->lock, until);
        else
            status = look_now(s, e);
    }
    if (status == 0)
        *ret_view = lvm_view_ref(s->view);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void lv_change_begin(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    s->queued++;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->change);
}

/* To be freed. */
static char *room_of(const struct lvm_class *c)
{
    return mem_printf("%s/%s", c->vg, c->pool ? c->pool : "");
}

void lv_change_end(struct node_lvs *s, const struct lvm_class *class, uint64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->queued--;
    s->changes++;
    if (!s->oldest)
        s->oldest = clock_mono_ns(s->n->clock);
    if (!class)
        s->freed = s->changes;
    else if (bytes)
        vec_push(&s->given, (struct lv_given){room_of(class), bytes, s->changes});
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&s->change);
    kube_controller_add_after(s->keeper, "", LV_AUDIT, CLOCK_SECOND);
}

bool lv_view_is_news(struct node_lvs *s)
{
    pthread_mutex_lock(&s->lock);
    bool news =
        !s->given.len && s->freed <= s->seen && clock_mono_ns(s->n->clock) - s->seen_at < NEWS_NS;
    pthread_mutex_unlock(&s->lock);
    return news;
}

void lv_room(struct node_lvs *s, const struct lvm_view *v, const struct lvm_class *c,
             struct lvm_room *ret)
{
    uint64_t given = 0;
    _cleanup_free_ char *of = room_of(c);
    lvm_class_room(c, v, ret);
    pthread_mutex_lock(&s->lock);
    vec_for_each(&s->given, it)
        given += str_eq(it->of, of) ? it->bytes : 0;
    pthread_mutex_unlock(&s->lock);
    ret->free = ret->free > given ? ret->free - given : 0;
}
