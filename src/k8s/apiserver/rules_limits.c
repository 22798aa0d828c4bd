#include "api/update.h"
#include "base/quantity.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"

static const char *text_of(const json_t *size)
{
    const char *text = json_string_value(size);
    return text ? text : "a number";
}

/* Adds what is wrong with the size of a claim by one limit. */
static void check(const json_t *limit, const json_t *size, struct str *wrong)
{
    const json_t *least = json_at(limit, "min", "storage");
    const json_t *most = json_at(limit, "max", "storage");
    if (least && api_quantity_cmp(size, least) < 0)
        str_appendf(wrong,
                    "%sminimum storage usage per PersistentVolumeClaim is %s, but request is %s",
                    wrong->len ? ", " : "", text_of(least), text_of(size));
    if (most && api_quantity_cmp(size, most) > 0)
        str_appendf(wrong,
                    "%smaximum storage usage per PersistentVolumeClaim is %s, but request is %s",
                    wrong->len ? ", " : "", text_of(most), text_of(size));
}

static void check_range(const struct apiserver_object *o, const json_t *size, struct str *wrong)
{
    json_auto_t *range = json_parse(o->bytes, o->size, NULL, NULL);
    size_t i;
    json_t *limit;
    json_array_foreach(json_at(range, "spec", "limits"), i, limit) {
        if (str_eq(json_text(limit, "type"), "PersistentVolumeClaim"))
            check(limit, size, wrong);
    }
}

int rules_limits_check(struct apiserver_admission *a, struct err *e)
{
    const json_t *size = json_at(a->object, "spec", "resources", "requests", "storage");
    const json_t *was = json_at(a->old, "spec", "resources", "requests", "storage");
    if (!rules_concern(a, &api_persistent_volume_claim) || !size ||
        (was && api_quantity_cmp(was, size) == 0))
        return 0;
    _cleanup_(str_done) struct str collection = {0}, prefix = {0}, wrong = {0};
    struct apiserver_list list;
    apiserver_collection(&api_limit_range, &collection);
    str_appendf(&prefix, "%s/", a->request->namespace);
    struct apiserver_list_options here = {.prefix = str_get(&prefix)};
    if (apiserver_store_list(a->registry->store, str_get(&collection), &here, &list, e) < 0)
        return -1;
    vec_for_each(&list.objects, o)
        check_range(*o, size, &wrong);
    apiserver_list_done(&list);
    return wrong.len ? err_set(e, ERR_PERMISSION_DENIED, "Forbidden", "%s", wrong.p) : 0;
}
