#include "iscsi/stats.h"

uint64_t iscsi_stats_quantile(const struct iscsi_class_stats *s, unsigned permille)
{
    uint64_t all = atomic_load(&s->count), below = 0;
    for (unsigned i = 0; i < ISCSI_BUCKETS; i++) {
        below += atomic_load(&s->buckets[i]);
        if (all && below * 1000 >= all * permille)
            return (uint64_t)1 << i;
    }
    return 0;
}
