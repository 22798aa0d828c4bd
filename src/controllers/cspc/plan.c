#include "controllers/cspc/plan.h"

#include <stdlib.h>

#include "base/map.h"
#include "kube/names.h"
#include "kube/object.h"

static const json_t *groups_of(const json_t *pool)
{
    return json_object_get(pool, "raidGroups");
}

/* The plan */

static void own_devices(const json_t *pool, size_t number, struct map *owners)
{
    pool_each_device(pool, it) {
        if (!map_has(owners, it.name))
            map_set(owners, it.name, (void *)number);
    }
}

static size_t owner_of(const struct map *owners, const json_t *pool)
{
    size_t found = 0;
    pool_each_device(pool, it) {
        if (!found)
            found = (size_t)map_get(owners, it.name);
    }
    return found;
}

/* Those that stay, or those that are on their way out. */
static void map_instances(const json_t *instances, bool deleting, struct map *owners)
{
    size_t i;
    json_t *instance;
    json_array_foreach((json_t *)instances, i, instance) {
        if (kube_deleting(instance) == deleting)
            own_devices(json_object_get(instance, "spec"), i + 1, owners);
    }
}

void cspc_plan_make(const json_t *cluster, const json_t *instances, struct cspc_plan *ret_plan)
{
    struct map staying = {0}, going = {0}, recorded = {0};
    const struct pool_cluster its = pool_cluster_of(cluster);
    size_t n = json_array_size(instances), i;
    _cleanup_free_ bool *continued = mem_zalloc(n + 1);
    json_t *pool, *instance, *known;
    *ret_plan = (struct cspc_plan){0};
    map_instances(instances, false, &staying);
    map_instances(instances, true, &going);
    json_array_foreach((json_t *)its.records, i, known)
        own_devices(known, i + 1, &recorded);
    json_array_foreach((json_t *)its.pools, i, pool) {
        struct cspc_pool p = {.spec = pool};
        size_t at = owner_of(&staying, pool), record = owner_of(&recorded, pool);
        if (!at)
            at = owner_of(&going, pool);
        if (at && !continued[at]) {
            p.instance = json_array_get(instances, at - 1);
            continued[at] = true;
        }
        if (record)
            p.record = json_array_get(its.records, record - 1);
        vec_push(&ret_plan->pools, p);
    }
    json_array_foreach((json_t *)instances, i, instance) {
        if (!continued[i + 1])
            vec_push(&ret_plan->unwanted, instance);
    }
    map_done(&staying);
    map_done(&going);
    map_done(&recorded);
}

void cspc_plan_done(struct cspc_plan *p)
{
    vec_done(&p->pools);
    vec_done(&p->unwanted);
}

/* Instances */

char *cspc_instance_name(const json_t *cluster, const struct cspc_pool *pool,
                         const json_t *instances)
{
    const char *before = pool_record_of(pool->record).name;
    if (*before && !kube_find(instances, before))
        return mem_strdup(before);
    _cleanup_free_ char *selector =
        json_dumps(json_object_get(pool->spec, "nodeSelector"), JSON_SORT_KEYS | JSON_COMPACT);
    for (unsigned attempt = 0;; attempt++) {
        char suffix[CSPC_SUFFIX];
        _cleanup_free_ char *text =
            mem_printf("%s %s %u", kube_uid(cluster), selector ? selector : "", attempt);
        kube_suffix(text, suffix);
        char *name = mem_printf("%s-%s", kube_name(cluster), suffix);
        if (!kube_find(instances, name))
            return name;
        free(name);
    }
}

/* A group of the instance: as the pool spec has it, with its type said. */
static json_t *group_new(const json_t *pool, const json_t *group)
{
    json_t *made = json_deep_copy(group);
    const char *type = api_raid_type(pool, group);
    if (type)
        json_object_set_new(made, "type", json_string(type));
    return made;
}

const json_t *cspc_groups_from(const struct cspc_pool *p)
{
    return *pool_record_of(p->record).guid && json_array_size(groups_of(p->record)) ? p->record
                                                                                    : p->spec;
}

json_t *cspc_instance_spec(const struct cspc_pool *p, const char *node)
{
    const json_t *pool = p->spec;
    json_t *groups = json_array(), *config = json_object_get(pool, "poolConfig");
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)groups_of(cspc_groups_from(p)), i, group)
        json_array_append_new(groups, group_new(pool, group));
    return json_pack("{s:s,s:O,s:o,s:o}", "hostName", node, "nodeSelector",
                     json_object_get(pool, "nodeSelector"), "poolConfig",
                     config ? json_deep_copy(config) : json_object(), "raidGroups", groups);
}

/* Changes */

static void add(struct cspc_changes *c, struct cspc_change change)
{
    vec_push(c, change);
}

static const char *what_forbids(const json_t *pool, const json_t *instance, const json_t *was,
                                const json_t *wanted, const struct api_raid_difference *d)
{
    const char *type = api_raid_type(pool, wanted), *old_type = api_raid_type(instance, was);
    bool stripe = type && str_eq(type, "stripe");
    if (api_raid_role_of(was) != api_raid_role_of(wanted))
        return "the purpose of a group cannot change; put it back";
    if (type && old_type && !str_eq(type, old_type))
        return "the layout of a group cannot change; put it back";
    if (stripe && d->removed)
        return "a device of a stripe can neither be removed nor replaced; put it back";
    if (!stripe && d->removed > d->added)
        return "a device can only be replaced by another, not removed; put one in its place";
    if (!stripe && d->added > d->removed)
        return "devices are added to a stripe only; add a new group";
    if (!stripe && d->added > 1)
        return "one device of a group is replaced at a time; put the others back until it is done";
    return NULL;
}

static void compare_groups(const json_t *pool, const json_t *instance, size_t at,
                           const json_t *wanted, bool replacements, struct cspc_changes *ret)
{
    const json_t *was = json_array_get(groups_of(instance), at);
    struct api_raid_difference d = api_raid_compare(was, wanted);
    const char *why = what_forbids(pool, instance, was, wanted, &d);
    if (why) {
        if (!replacements) /* said once */
            add(ret, (struct cspc_change){.kind = CSPC_NOT_POSSIBLE,
                                          .group = at,
                                          .wanted = wanted,
                                          .device = api_raid_device(d.lost ? d.lost : d.gained),
                                          .why = why});
        return;
    }
    if (replacements && d.removed == 1)
        add(ret, (struct cspc_change){CSPC_REPLACE_DEVICE, at, wanted, api_raid_device(d.gained),
                                      api_raid_device(d.lost), .why = NULL});
    raid_each_device(wanted, it) {
        if (!replacements && !d.removed && !api_raid_group_has(was, it.name))
            add(ret, (struct cspc_change){CSPC_ADD_DEVICE, at, wanted, .device = it.name});
    }
}

/* Which group of the instance a wanted one continues, + 1; 0: it is new. */
static size_t continues(const json_t *instance, const json_t *wanted)
{
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)groups_of(instance), i, group) {
        raid_each_device(wanted, it) {
            if (api_raid_group_has(group, it.name))
                return i + 1;
        }
    }
    return 0;
}

static void find_lost(const json_t *instance, const bool *continued, struct cspc_changes *ret)
{
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)groups_of(instance), i, group) {
        const json_t *first = json_array_get(json_object_get(group, "blockDevices"), 0);
        if (!continued[i + 1])
            add(ret, (struct cspc_change){.kind = CSPC_NOT_POSSIBLE,
                                          .group = i,
                                          .device = api_raid_device(first),
                                          .why = "a group cannot be removed; put it back"});
    }
}

void cspc_changes_find(const json_t *pool, const json_t *instance, struct cspc_changes *ret_changes)
{
    const json_t *spec = json_object_get(instance, "spec");
    _cleanup_free_ bool *continued = mem_zalloc(json_array_size(groups_of(spec)) + 1);
    for (int replacements = 0; replacements < 2; replacements++) {
        size_t i;
        json_t *group;
        json_array_foreach((json_t *)groups_of(pool), i, group) {
            size_t at = continues(spec, group);
            continued[at] = true;
            if (at)
                compare_groups(pool, spec, at - 1, group, replacements == 1, ret_changes);
            else if (!replacements)
                add(ret_changes, (struct cspc_change){CSPC_NEW_GROUP, i, group, .why = NULL});
        }
    }
    find_lost(spec, continued, ret_changes);
}

void cspc_change_apply(json_t *spec, const json_t *pool, const struct cspc_change *change)
{
    json_t *groups = json_object_get(spec, "raidGroups");
    json_t *devices = json_object_get(json_array_get(groups, change->group), "blockDevices");
    size_t i;
    json_t *device;
    switch (change->kind) {
    case CSPC_NEW_GROUP:
        json_array_append_new(groups, group_new(pool, change->wanted));
        break;
    case CSPC_ADD_DEVICE:
        json_array_append_new(devices, json_pack("{s:s}", "blockDeviceName", change->device));
        break;
    case CSPC_REPLACE_DEVICE:
        json_array_foreach(devices, i, device) {
            if (str_eq(api_raid_device(device), change->old))
                json_array_set_new(devices, i,
                                   json_pack("{s:s}", "blockDeviceName", change->device));
        }
        break;
    case CSPC_NOT_POSSIBLE:
        break;
    }
}
