/*
 * What may change in a pool that exists.
 *
 *     stripe            devices may be added; none may go or be replaced: it has no redundancy
 *     mirror, raidz*    one device at a time may be replaced; the number of devices is fixed
 *     any               groups may be added; none may go, change its layout or its purpose
 *
 * A group is the same group as before when it still has one of its devices. Order does not matter.
 */
#include "api/update.h"
#include "base/map.h"
#include "kinds/pool.h"

const char *api_raid_device(const json_t *device)
{
    return json_text(device, "blockDeviceName");
}

bool api_raid_group_has(const json_t *group, const char *name)
{
    raid_each_device(group, it) {
        if (str_eq(it.name, name))
            return true;
    }
    return false;
}

bool api_pool_has(const json_t *pool, const char *name)
{
    pool_each_device(pool, it) {
        if (str_eq(it.name, name))
            return true;
    }
    return false;
}

struct api_raid_difference api_raid_compare(const json_t *old, const json_t *group)
{
    struct api_raid_difference d = {0};
    raid_each_device(old, it) {
        if (!api_raid_group_has(group, it.name)) {
            d.removed++;
            d.lost = it.json;
        }
    }
    raid_each_device(group, it) {
        if (!api_raid_group_has(old, it.name)) {
            d.added++;
            d.gained = it.json;
            d.gained_index = it.device;
        }
    }
    return d;
}

static void check_replacement(const struct api_raid_difference *d,
                              const struct api_path *devices_at, struct api_report *report)
{
    const struct api_path *at = API_AT(devices_at, d->gained_index);
    const json_t *was = json_object_get(d->lost, "capacity");
    const json_t *is = json_object_get(d->gained, "capacity");
    if (was && is && api_quantity_cmp(is, was) < 0)
        api_problem(report, API_KEY(at, "capacity"), API_INVALID, is,
                    "\"%s\" is smaller than \"%s\", which it replaces; use a device of at least "
                    "the same size [replacement-size]",
                    api_raid_device(d->gained), api_raid_device(d->lost));
}

static void check_devices(const json_t *old, const json_t *group, const char *type,
                          const struct api_path *at, struct api_report *report)
{
    struct api_raid_difference d = api_raid_compare(old, group);
    const struct api_path *devices_at = API_KEY(at, "blockDevices");
    if (str_eq(type, "stripe")) {
        if (d.removed && d.added)
            api_problem(report, devices_at, API_FORBIDDEN, NULL,
                        "\"%s\" cannot be replaced: a stripe has no second copy of its data; add "
                        "the new device beside it, or use a mirror or raidz group "
                        "[replacement-needs-redundancy]",
                        api_raid_device(d.lost));
        else if (d.removed)
            api_problem(report, devices_at, API_FORBIDDEN, NULL,
                        "\"%s\" cannot be removed: devices of a pool stay in it; put it back "
                        "[no-device-removal]",
                        api_raid_device(d.lost));
    } else if (d.removed > d.added) {
        api_problem(report, devices_at, API_FORBIDDEN, NULL,
                    "\"%s\" cannot be removed, only replaced by another device; put one in its "
                    "place [no-device-removal]",
                    api_raid_device(d.lost));
    } else if (d.added > d.removed) {
        api_problem(report, devices_at, API_FORBIDDEN, NULL,
                    "\"%s\" cannot be added to a %s group; add a new group to grow the pool "
                    "[group-width]",
                    api_raid_device(d.gained), type);
    } else if (d.removed > 1) {
        api_problem(report, devices_at, API_FORBIDDEN, NULL,
                    "%zu devices are replaced at once; replace one, wait until it is resilvered, "
                    "then the next [one-replacement-per-group]",
                    d.removed);
    } else if (d.removed == 1) {
        check_replacement(&d, devices_at, report);
    }
}

static void check_same_group(const json_t *old_pool, const json_t *old, const json_t *pool,
                             const json_t *group, const struct api_path *at,
                             struct api_report *report)
{
    const char *was = api_raid_type(old_pool, old), *is = api_raid_type(pool, group);
    enum api_raid_role was_role = api_raid_role_of(old), is_role = api_raid_role_of(group);
    if (was && is && !str_eq(was, is)) {
        api_problem(report, API_KEY(at, "type"), API_FORBIDDEN, NULL,
                    "the layout of a group cannot change from %s to %s; add a new group "
                    "[no-raid-type-change]",
                    was, is);
    } else if (was_role != is_role) {
        api_problem(report, at, API_FORBIDDEN, NULL,
                    "the purpose of a group cannot change from %s to %s; add a new group "
                    "[no-purpose-change]",
                    api_raid_role_text(was_role), api_raid_role_text(is_role));
    } else if (is) {
        check_devices(old, group, is, at, report);
    }
}

/*
 * The old group, by index + 1, that the group continues; 0: a new group. The devices of a group stay
 * together: it is an error when they come from two groups, or when a group has been continued.
 */
static size_t find_old_group(const struct map *owners, bool *continued, const json_t *group,
                             const struct api_path *at, struct api_report *report)
{
    size_t match = 0;
    raid_each_device(group, it) {
        size_t owner = (size_t)map_get(owners, it.name);
        if (!owner || owner == match)
            continue;
        if (match || continued[owner]) {
            const struct api_path *device_at = API_AT(API_KEY(at, "blockDevices"), it.device);
            api_problem(
                report, API_KEY(device_at, "blockDeviceName"), API_FORBIDDEN,
                json_object_get(it.json, "blockDeviceName"),
                "is in use by another group of this pool; use a free device [device-one-group]");
            break;
        }
        match = owner;
    }
    continued[match] = true;
    return match;
}

void api_pool_validate_update(const json_t *old, const json_t *pool, const struct api_path *at,
                              struct api_report *report)
{
    const json_t *old_groups = json_object_get(old, "raidGroups");
    const json_t *groups = json_object_get(pool, "raidGroups");
    const struct api_path *groups_at = API_KEY(at, "raidGroups");
    _cleanup_free_ bool *continued = mem_zalloc(json_array_size(old_groups) + 1);
    _cleanup_free_ size_t *match = mem_zalloc((json_array_size(groups) + 1) * sizeof(size_t));
    struct map owners = {0}; /* which old group, by index + 1, has each device */
    pool_each_device(old, it)
        map_set(&owners, it.name, (void *)(it.group + 1));

    unsigned before = report->errors;
    size_t i;
    json_t *group;
    json_array_foreach(groups, i, group)
        match[i] = find_old_group(&owners, continued, group, API_AT(groups_at, i), report);
    map_done(&owners);
    if (report->errors > before)
        return; /* what follows would only repeat it */
    json_array_foreach(groups, i, group) {
        if (match[i])
            check_same_group(old, json_array_get(old_groups, match[i] - 1), pool, group,
                             API_AT(groups_at, i), report);
    }
    json_array_foreach(old_groups, i, group) {
        if (!continued[i + 1])
            api_problem(report, groups_at, API_FORBIDDEN, NULL,
                        "the group with device \"%s\" is gone; a group can neither be removed nor "
                        "have all its devices replaced at once; put it back [no-group-removal]",
                        api_raid_device(json_array_get(json_object_get(group, "blockDevices"), 0)));
    }
}
