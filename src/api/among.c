#include "api/among.h"

#include "api/structure.h"

bool api_among_concerns(const struct api_kind *kind, const json_t *old, const json_t *object)
{
    if (!kind->among)
        return false;
    if (!object) /* said a second time, a deletion is no other */
        return !json_at(old, "metadata", "deletionTimestamp");
    const json_t *was = json_object_get(old, "spec"), *is = json_object_get(object, "spec");
    return !old || !was || !is || !json_equal(was, is);
}

/* An old object without the structure of its kind cannot be compared: then only the new one counts. */
static bool is_sound(const struct api_kind *kind, const json_t *old)
{
    struct api_report of_old = {0};
    api_check_structure(kind, old, API_UNKNOWN_IGNORE, &of_old);
    bool sound = !of_old.errors;
    api_report_done(&of_old);
    return sound;
}

int api_check_among(const struct api_kind *kind, const struct api_among *a, struct err *e)
{
    struct api_among own = *a;
    if (!api_among_concerns(kind, a->old, a->object))
        return 0;
    if (a->object && a->old && !is_sound(kind, a->old))
        own.old = NULL;
    return kind->among(&own, e);
}
