#include "controllers/topolvm/capacity.h"

#include "api/decode.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "kube/condition.h"

bool topolvm_is_ours(const char *driver)
{
    return driver && (str_eq(driver, TOPOLVM_GROUP) || str_eq(driver, TOPOLVM_LEGACY));
}

const char *topolvm_value(const json_t *map, const char *name)
{
    static const char *const groups[] = {TOPOLVM_GROUP, TOPOLVM_LEGACY};
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        _cleanup_free_ char *key = mem_printf("%s/%s", groups[i], name);
        const char *value = json_str(map, key);
        if (value)
            return value;
    }
    return NULL;
}

const char *topolvm_retry_key(const json_t *lv)
{
    return kube_finalizer_has(lv, TOPOLVM_GROUP "/logicalvolume")
               ? TOPOLVM_GROUP "/resize-requested-at"
               : TOPOLVM_LEGACY "/resize-requested-at";
}

const char *topolvm_size(int64_t bytes, char buf[TOPOLVM_SIZE_MAX])
{
    struct quantity q = quantity_from_int(bytes, QUANTITY_BINARY_SI);
    _Static_assert((int)TOPOLVM_SIZE_MAX >= (int)QUANTITY_TEXT_MAX, "a quantity must fit");
    return quantity_format(&q, buf);
}

int64_t topolvm_round(int64_t bytes)
{
    if (bytes <= 0)
        return 0;
    if (bytes > INT64_MAX - TOPOLVM_EXTENT)
        return INT64_MAX;
    return (bytes + TOPOLVM_EXTENT - 1) / TOPOLVM_EXTENT * TOPOLVM_EXTENT;
}

const char *topolvm_class_of(const json_t *storage_class)
{
    const json_t *parameters = json_object_get(storage_class, "parameters");
    const char *name = topolvm_value(parameters, "device-class");
    if (!name)
        name = topolvm_value(parameters, "volume-group"); /* what it was called once */
    return name ? name : "";
}

json_t *topolvm_classes(const json_t *node)
{
    const char *text = topolvm_value(json_at(node, "metadata", "annotations"), "device-classes");
    json_t *classes = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
    if (json_is_array(classes))
        return classes;
    json_decref(classes);
    return NULL;
}

static bool says_free(const json_t *node, const char *class, int64_t *ret_bytes)
{
    static const char *const prefixes[] = {"capacity." TOPOLVM_GROUP, "capacity." TOPOLVM_LEGACY};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        _cleanup_free_ char *key = mem_printf("%s/%s", prefixes[i], class);
        const char *text = kube_annotation(node, key);
        uint64_t bytes;
        if (text && quantity_parse_bytes(text, &bytes, NULL) == 0) {
            *ret_bytes = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
            return true;
        }
    }
    return false;
}

const char *topolvm_class_at(const json_t *node, const json_t *classes, const char *wanted)
{
    const char *of_vg = NULL;
    int64_t bytes;
    size_t i;
    json_t *class;
    json_array_foreach((json_t *)classes, i, class) {
        const char *name = json_str(class, "name"), *vg = json_str(class, "vg");
        if (!name)
            continue;
        if (str_eq(name, wanted) || (!*wanted && json_is_true(json_object_get(class, "default"))))
            return name;
        if (vg && str_eq(vg, wanted) && !of_vg)
            of_vg = name;
    }
    if (of_vg && !says_free(node, wanted, &bytes))
        return of_vg;
    return *wanted ? wanted : "00default";
}

bool topolvm_free(const json_t *node, const char *class, int64_t *ret_bytes)
{
    json_auto_t *classes = topolvm_classes(node);
    return says_free(node, topolvm_class_at(node, classes, class), ret_bytes);
}

/* Whether the node's last try was refused, so that it does nothing until it is asked again. */
static bool was_refused(const struct logical_volume *lv)
{
    enum err_code code = (enum err_code)lv->status.code;
    return code == ERR_RESOURCE_EXHAUSTED || (code && err_is_infeasible(code));
}

int64_t topolvm_pending(const struct logical_volume *lv)
{
    if (was_refused(lv))
        return 0; /* what it has is no longer free, and it will take no more unless it is asked */
    int64_t wanted = topolvm_round(lv->spec.size);
    int64_t has = *lv->status.volume_id ? lv->status.current_size : 0;
    return wanted > has ? wanted - has : 0;
}
