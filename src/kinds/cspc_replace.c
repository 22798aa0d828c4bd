/*
 * A device that takes the place of another in a group with redundancy. That only one does, that it
 * is used nowhere else in the cluster and that the group has redundancy are rules of the table
 * (pool_update.c); these need the claims.
 *
 *     CStorPoolCluster     mirror: old, x  ──edit──>  mirror: new, x
 *     claim of new         made, or changed: openebs.io/bd-predecessor: old
 *                          the annotation goes when `new` has everything; until then the group is busy
 */
#include "api/update.h"
#include "kinds/blockdevice.h"
#include "kinds/cspc.h"
#include "kinds/pool.h"

static const char *predecessor_of(const struct api_cspc_view *v, const char *device)
{
    return api_cspc_annotation(map_get(&v->claim_of, device), API_POOL_PREDECESSOR);
}

/* Replacement validation 3. */
static bool is_group_busy(const struct api_cspc_view *v, const json_t *old, const char *name,
                          const struct api_path *at)
{
    raid_each_device(old, it) {
        const char *before = predecessor_of(v, it.name);
        if (!*before)
            continue;
        api_problem(v->a->report, at, API_FORBIDDEN, NULL,
                    "\"%s\" must wait: in this group \"%s\" is still taking the place of \"%s\"; "
                    "`orlop pool show` says how far it is [replacement-under-way]",
                    name, it.name, before);
        return true;
    }
    return false;
}

/* Replacement validation 4.3. */
static bool is_being_replaced(const struct api_cspc_view *v, const char *name,
                              const struct api_path *at)
{
    size_t i;
    json_t *claim;
    json_array_foreach(v->claims, i, claim) {
        if (!str_eq(api_cspc_label(claim, API_POOL_CLUSTER), v->name) ||
            !str_eq(api_cspc_annotation(claim, API_POOL_PREDECESSOR), name))
            continue;
        api_problem(v->a->report, at, API_FORBIDDEN, NULL,
                    "\"%s\" is itself being replaced by \"%s\" at this moment; use another device "
                    "[replacement-predecessor]",
                    name, block_device_claim_of(claim).spec.device);
        return true;
    }
    return false;
}

/* The size of a device: what it says itself, or what the cluster remembers of it. NULL: unknown. */
static const json_t *size_of(const json_t *bd, const json_t *device)
{
    const json_t *size = json_at(bd, "spec", "capacity", "storage");
    return size ? size : json_object_get(device, "capacity");
}

static void check_size(const struct api_cspc_view *v, const json_t *lost, const json_t *lost_bd,
                       const json_t *gained, const json_t *gained_bd, const struct api_path *at)
{
    const json_t *was = size_of(lost_bd, lost), *is = size_of(gained_bd, gained);
    if (!was || !is || api_quantity_cmp(is, was) >= 0)
        return;
    _cleanup_(str_done) struct str before = {0}, after = {0};
    json_format(was, &before);
    json_format(is, &after);
    api_problem(v->a->report, at, API_FORBIDDEN, NULL,
                "\"%s\" has %s bytes and is smaller than \"%s\" with %s, which it replaces; use a "
                "device of at least the same size [replacement-size]",
                api_raid_device(gained), str_get(&after), api_raid_device(lost), str_get(&before));
}

/* Steps 5 and 6: the claim of the new device, which names the old one. */
static void wish_claim(const struct api_cspc_view *v, const json_t *bd, const char *name,
                       const char *before)
{
    const json_t *is = map_get(&v->claim_of, name);
    if (!v->a->wishes || (is && str_eq(api_cspc_annotation(is, API_POOL_PREDECESSOR), before)))
        return;
    json_t *claim = is ? json_deep_copy(is) : api_pool_claim(v->a->object, bd, NULL);
    json_t *metadata = json_object_get(claim, "metadata");
    if (!json_is_object(json_object_get(metadata, "annotations")))
        json_object_set_new(metadata, "annotations", json_object());
    json_object_set_new(json_object_get(metadata, "annotations"), API_POOL_PREDECESSOR,
                        json_string(before));
    json_array_append_new(v->a->wishes, claim);
}

/* The device that a has and b has not; there is at most one. */
static const json_t *only_in(const json_t *a, const json_t *b, size_t *ret_index)
{
    raid_each_device(a, it) {
        *ret_index = it.device;
        if (!api_raid_group_has(b, it.name))
            return it.json;
    }
    return NULL;
}

int api_cspc_check_replaced(const struct api_cspc_view *v, const json_t *old, const json_t *group,
                            const struct api_path *at, struct err *e)
{
    size_t was = 0, is = 0;
    const json_t *lost = only_in(old, group, &was), *gained = only_in(group, old, &is);
    if (!lost || !gained)
        return 0;
    const char *name = api_raid_device(gained);
    const struct api_path *device_at = API_AT(API_KEY(at, "blockDevices"), is);
    unsigned before = v->a->report->errors;
    if (is_group_busy(v, old, name, device_at) || is_being_replaced(v, name, device_at))
        return 0;
    json_auto_t *lost_bd = NULL, *gained_bd = NULL;
    if (api_cspc_block_device(v, api_raid_device(lost), &lost_bd, e) < 0 ||
        api_cspc_block_device(v, name, &gained_bd, e) < 0)
        return -1;
    check_size(v, lost, lost_bd, gained, gained_bd, device_at);
    if (gained_bd && v->a->report->errors == before)
        wish_claim(v, gained_bd, name, api_raid_device(lost));
    return 0;
}
