/*
 * One operation at a time on a volume: by its id, and by its name while it has none.
 */
#include "base/mem.h"
#include "csi/csi.h"

int csi_begin(struct csi *s, const char *key, struct err *e)
{
    pthread_mutex_lock(&s->lock);
    bool busy = map_get(&s->busy, key);
    if (!busy)
        map_set(&s->busy, key, s);
    pthread_mutex_unlock(&s->lock);
    return busy ? err_set(e, ERR_ABORTED, "Busy",
                          "another operation on volume %s is under way: try again", key)
                : 0;
}

void csi_end(struct csi *s, const char *key)
{
    pthread_mutex_lock(&s->lock);
    map_remove(&s->busy, key);
    pthread_mutex_unlock(&s->lock);
}

void csi_init(struct csi *s)
{
    pthread_mutex_init(&s->lock, NULL);
}

void csi_done(struct csi *s)
{
    pthread_mutex_destroy(&s->lock);
    map_done(&s->busy);
}
