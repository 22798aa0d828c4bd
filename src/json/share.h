/*
 * Copy on write, private to this module. A patched document is built on a copy of each container
 * that changes; everything else is shared with the original by reference.
 *
 * A container may be changed in place when nobody else can see it: its only reference is held by a
 * variable of ours or by a container of which the same is true. The copy of a container adds a
 * reference to each of its children, so what is shared always counts at least two.
 */
#pragma once

#include "json/json.h"

static inline bool json_is_sole(const json_t *value)
{
    /* Another thread may just have dropped its reference: what it read must be over by now. */
    return __atomic_load_n(&value->refcount, __ATOMIC_ACQUIRE) == 1;
}

/* jansson walks a container through pointers that are not const; here nothing is changed. */
static inline json_t *json_unconst(const json_t *value)
{
    return (json_t *)value;
}

/* Another reference to a value that its holder shows as const. */
static inline json_t *json_share(const json_t *value)
{
    return json_incref(json_unconst(value));
}

/* Makes the container in *slot, a reference of ours, one that may be changed. */
static inline void json_own(json_t **slot)
{
    if (json_is_sole(*slot))
        return;
    json_t *copy = json_copy(*slot);
    json_decref(*slot);
    *slot = copy;
}
