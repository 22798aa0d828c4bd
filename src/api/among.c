#include "api/among.h"

bool api_among_concerns(const struct api_kind *kind, const json_t *old, const json_t *object)
{
    if (!kind->among)
        return false;
    if (!object) /* said a second time, a deletion is no other */
        return !json_at(old, "metadata", "deletionTimestamp");
    const json_t *was = json_object_get(old, "spec"), *is = json_object_get(object, "spec");
    return !old || !was || !is || !json_equal(was, is);
}

int api_check_among(const struct api_kind *kind, const struct api_among *a, struct err *e)
{
    return api_among_concerns(kind, a->old, a->object) ? kind->among(a, e) : 0;
}
