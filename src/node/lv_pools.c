/*
 * Thin pools that fill up. A volume of a full pool fails in the middle of a write, so it is said before, once
 * for each level that is passed on the way up.
 */
#include "base/log.h"
#include "node/lv_impl.h"

static const double levels[] = {80, 90, 95, 99};

static size_t level_of(double percent)
{
    size_t n = 0;
    while (n < ARRAY_SIZE(levels) && percent >= levels[n])
        n++;
    return n;
}

void lv_pools_warn(struct node_lvs *s, const struct lvm_view *v)
{
    json_auto_t *node = kube_informer_json(s->n->nodes, NULL, s->n->name.node, NULL);
    vec_for_each(&v->lvs, lv) {
        if (!node || !lvm_lv_is_thin_pool(lv))
            continue;
        _cleanup_free_ char *name = mem_printf("%s/%s", lv->vg, lv->name);
        bool data = lv->data_percent >= lv->metadata_percent;
        double percent = data ? lv->data_percent : lv->metadata_percent;
        size_t level = level_of(percent), before = (size_t)(uintptr_t)map_get(&s->pools, name);
        map_set(&s->pools, name, (void *)(uintptr_t)level);
        if (level <= before)
            continue;
        log_warn("a thin pool fills up", LOG_S("pool", name), LOG_I("percent", (int64_t)percent));
        kube_event_warning(s->n->recorder, node, "ThinPoolFilling",
                           "%.0f %% of the %s of the thin pool %s are used; when it is full, "
                           "writes to its volumes fail: lvextend %s%s, or delete some",
                           percent, data ? "data" : "metadata", name,
                           data ? "-L+SIZE " : "--poolmetadatasize +SIZE ", name);
    }
}
