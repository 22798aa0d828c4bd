/*
 * Which device of the wish is which row of the pool: by the GUID that the object remembers, else by path.
 */
#include "base/str.h"
#include "pool/impl.h"

/* The device that the object remembers to have this GUID; NULL. */
static const struct pool_device *owner_of(const struct pool_wish *w, uint64_t guid)
{
    for (size_t i = 0; i < w->n_devices; i++)
        if (w->devices[i].guid == guid)
            return &w->devices[i];
    for (size_t i = 0; i < w->n_others; i++)
        if (w->others[i].guid == guid)
            return &w->others[i];
    return NULL;
}

/* A row that is remembered as another device's is not this one's, though it is at its path now. */
static bool is_row(const struct pool_wish *w, const struct pool_device *d,
                   const struct zpool_vdev *v)
{
    if (!v->path[0])
        return false;
    const struct pool_device *owner = owner_of(w, v->guid);
    return owner ? owner == d : *d->path && str_eq(d->path, v->path);
}

int pool_wish_row(const struct pool_wish *w, const struct pool_device *d,
                  const struct zpool_status *s)
{
    for (size_t i = 0; i < s->n_vdevs; i++)
        if (is_row(w, d, &s->vdevs[i]))
            return (int)i;
    return -1;
}

const struct pool_device *pool_wish_device(const struct pool_wish *w, const struct zpool_status *s,
                                           size_t row)
{
    for (size_t i = 0; i < w->n_devices; i++)
        if (is_row(w, &w->devices[i], &s->vdevs[row]))
            return &w->devices[i];
    for (size_t i = 0; i < w->n_others; i++)
        if (is_row(w, &w->others[i], &s->vdevs[row]))
            return &w->others[i];
    return NULL;
}
