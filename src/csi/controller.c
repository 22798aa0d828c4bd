/*
 * The controller's RPCs: what is the same for all engines. Requests are checked first; then the operation has the
 * volume for itself.
 */
#include <stdlib.h>

#include "base/str.h"
#include "csi/csi.h"

enum { TEXT_MAX = 128 }; /* bytes of names, by the specification */

static int check_id(const char *id, const char *what, struct err *e)
{
    return *id ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "Missing", "%s is missing", what);
}

int csi_controller_get_capabilities(struct csi_call *c,
                                    const Csi__V1__ControllerGetCapabilitiesRequest *q,
                                    Csi__V1__ControllerGetCapabilitiesResponse *r, struct err *e)
{
#define CAN(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
    static const Csi__V1__ControllerServiceCapability__RPC__Type types[] = {
        CAN(CREATE_DELETE_VOLUME), CAN(LIST_VOLUMES),       CAN(EXPAND_VOLUME),
        CAN(GET_VOLUME),           CAN(VOLUME_CONDITION),   CAN(SINGLE_NODE_MULTI_WRITER),
        CAN(GET_VOLUME_HEALTH),    CAN(LIST_VOLUME_HEALTH),
    };
#undef CAN
    (void)q;
    (void)e;
    r->capabilities = arena_alloc(c->arena, ARRAY_SIZE(types) * sizeof(*r->capabilities));
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        Csi__V1__ControllerServiceCapability *m =
            arena_new(c->arena, Csi__V1__ControllerServiceCapability);
        csi__v1__controller_service_capability__init(m);
        m->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
        m->rpc = arena_new(c->arena, Csi__V1__ControllerServiceCapability__RPC);
        csi__v1__controller_service_capability__rpc__init(m->rpc);
        m->rpc->type = types[i];
        r->capabilities[r->n_capabilities++] = m;
    }
    return 0;
}

/* Creation. */

static int check_creation(struct csi_call *c, const Csi__V1__CreateVolumeRequest *q,
                          struct csi_wish *ret, struct err *e)
{
    const struct csi_engine *x = c->driver->engine;
    if (check_id(q->name, "name", e) < 0 ||
        csi_check_capabilities(q->volume_capabilities, q->n_volume_capabilities, e) < 0)
        return -1;
    if (strlen(q->name) > TEXT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "LongName", "a name has at most %d bytes",
                       TEXT_MAX);
    if (q->n_mutable_parameters)
        return err_set(e, ERR_INVALID_ARGUMENT, "MutableParameters",
                       "there is no mutable parameter \"%s\"", q->mutable_parameters[0]->key);
    if (q->volume_content_source)
        return err_set(e, ERR_INVALID_ARGUMENT, "ContentSource",
                       "volumes of this driver cannot be made from other volumes or snapshots");
    *ret = (struct csi_wish){.name = q->name, .request = q};
    if (q->capacity_range)
        ret->limit = q->capacity_range->limit_bytes;
    return csi_pick_size(q->capacity_range, x->default_size, x->granule, &ret->size, e);
}

int csi_create_volume(struct csi_call *c, const Csi__V1__CreateVolumeRequest *q,
                      Csi__V1__CreateVolumeResponse *r, struct err *e)
{
    struct csi_wish wish;
    struct csi_volume made = {0};
    if (check_creation(c, q, &wish, e) < 0)
        return -1;
    const char *key = csi_object_name(c, q->name);
    if (csi_begin(c->driver->csi, key, e) < 0)
        return -1;
    int status = c->driver->engine->create(c, &wish, &made, e);
    csi_end(c->driver->csi, key);
    if (status == 0)
        r->volume = csi_volume_message(c, &made);
    return status;
}

int csi_delete_volume(struct csi_call *c, const Csi__V1__DeleteVolumeRequest *q,
                      Csi__V1__DeleteVolumeResponse *r, struct err *e)
{
    (void)r;
    if (check_id(q->volume_id, "volume_id", e) < 0 ||
        csi_begin(c->driver->csi, q->volume_id, e) < 0)
        return -1;
    int status = c->driver->engine->remove(c, q->volume_id, e);
    csi_end(c->driver->csi, q->volume_id);
    return status;
}

/* Questions. */

int csi_validate_volume_capabilities(struct csi_call *c,
                                     const Csi__V1__ValidateVolumeCapabilitiesRequest *q,
                                     Csi__V1__ValidateVolumeCapabilitiesResponse *r, struct err *e)
{
    struct csi_volume v;
    struct err why = {0};
    if (check_id(q->volume_id, "volume_id", e) < 0)
        return -1;
    if (!q->n_volume_capabilities)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoCapabilities", "capabilities are missing");
    if (c->driver->engine->find(c, q->volume_id, &v, e) < 0)
        return -1;
    if (csi_check_capabilities(q->volume_capabilities, q->n_volume_capabilities, &why) < 0) {
        r->message = arena_strdup(c->arena, why.msg);
        return 0;
    }
    r->confirmed = arena_new(c->arena, Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed);
    csi__v1__validate_volume_capabilities_response__confirmed__init(r->confirmed);
    r->confirmed->n_volume_capabilities = q->n_volume_capabilities;
    r->confirmed->volume_capabilities = q->volume_capabilities;
    return 0;
}

static Csi__V1__VolumeCondition *condition_of(struct csi_call *c, const struct csi_volume *v)
{
    Csi__V1__VolumeCondition *m = arena_new(c->arena, Csi__V1__VolumeCondition);
    csi__v1__volume_condition__init(m);
    m->abnormal = v->problem != NULL;
    m->message = csi_text(v->problem ? v->problem : "the volume is well");
    return m;
}

static void set_published(const struct csi_volume *v, char ***ret, size_t *ret_n)
{
    *ret = (char **)(uintptr_t)v->published;
    while (v->published && v->published[*ret_n])
        (*ret_n)++;
}

static Csi__V1__ListVolumesResponse__Entry *entry_of(struct csi_call *c, const struct csi_volume *v)
{
    Csi__V1__ListVolumesResponse__Entry *m =
        arena_new(c->arena, Csi__V1__ListVolumesResponse__Entry);
    csi__v1__list_volumes_response__entry__init(m);
    m->volume = csi_volume_message(c, v);
    m->status = arena_new(c->arena, Csi__V1__ListVolumesResponse__VolumeStatus);
    csi__v1__list_volumes_response__volume_status__init(m->status);
    set_published(v, &m->status->published_node_ids, &m->status->n_published_node_ids);
    m->status->volume_condition = condition_of(c, v);
    return m;
}

/*
 * Pages: a token is the id of the last volume of the page before, so that volumes that come and go
 * meanwhile neither hide others nor show them twice.
 */
static int find_page(const struct csi_volume *all, size_t n, int32_t most, const char *token,
                     size_t *ret_from, size_t *ret_to, struct err *e)
{
    size_t from = 0;
    if (most < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "MaxEntries", "max_entries is %d", most);
    if (*token && !str_starts_with(token, "after:"))
        return err_set(e, ERR_ABORTED, "BadToken",
                       "\"%s\" is no starting_token: list from the beginning", token);
    while (*token && from < n && strcmp(all[from].id, token + 6) <= 0)
        from++;
    *ret_from = from;
    *ret_to = most && n - from > (size_t)most ? from + (size_t)most : n;
    return 0;
}

static char *next_token(struct csi_call *c, const struct csi_volume *all, size_t n, size_t to)
{
    return csi_text(to < n ? arena_printf(c->arena, "after:%s", all[to - 1].id) : "");
}

int csi_list_volumes(struct csi_call *c, const Csi__V1__ListVolumesRequest *q,
                     Csi__V1__ListVolumesResponse *r, struct err *e)
{
    struct csi_volume *all;
    size_t n, from, to;
    if (c->driver->engine->list(c, &all, &n, e) < 0 ||
        find_page(all, n, q->max_entries, q->starting_token, &from, &to, e) < 0)
        return -1;
    r->entries = arena_alloc(c->arena, (to - from + 1) * sizeof(*r->entries));
    for (size_t i = from; i < to; i++)
        r->entries[r->n_entries++] = entry_of(c, &all[i]);
    r->next_token = next_token(c, all, n, to);
    return 0;
}

int csi_controller_get_volume(struct csi_call *c, const Csi__V1__ControllerGetVolumeRequest *q,
                              Csi__V1__ControllerGetVolumeResponse *r, struct err *e)
{
    struct csi_volume v;
    if (check_id(q->volume_id, "volume_id", e) < 0 ||
        c->driver->engine->find(c, q->volume_id, &v, e) < 0)
        return -1;
    r->volume = csi_volume_message(c, &v);
    r->status = arena_new(c->arena, Csi__V1__ControllerGetVolumeResponse__VolumeStatus);
    csi__v1__controller_get_volume_response__volume_status__init(r->status);
    set_published(&v, &r->status->published_node_ids, &r->status->n_published_node_ids);
    r->status->volume_condition = condition_of(c, &v);
    return 0;
}

/* Health. */

static Csi__V1__VolumeHealth *health_of(struct csi_call *c, const struct csi_volume *v)
{
    Csi__V1__VolumeHealth *m = arena_new(c->arena, Csi__V1__VolumeHealth);
    csi__v1__volume_health__init(m);
    m->volume_id = csi_text(v->id);
    if (!v->problem)
        return m;
    Csi__V1__VolumeHealth__VolumeHealthEntry *entry =
        arena_new(c->arena, Csi__V1__VolumeHealth__VolumeHealthEntry);
    csi__v1__volume_health__volume_health_entry__init(entry);
    entry->status = v->health;
    entry->reason = csi_text(v->problem_reason);
    entry->message = csi_text(v->problem);
    m->health_statuses = arena_alloc(c->arena, sizeof(*m->health_statuses));
    m->health_statuses[m->n_health_statuses++] = entry;
    return m;
}

int csi_controller_get_volume_health(struct csi_call *c,
                                     const Csi__V1__ControllerGetVolumeHealthRequest *q,
                                     Csi__V1__ControllerGetVolumeHealthResponse *r, struct err *e)
{
    struct csi_volume v;
    if (check_id(q->volume_id, "volume_id", e) < 0 ||
        c->driver->engine->find(c, q->volume_id, &v, e) < 0)
        return -1;
    r->volume_health = health_of(c, &v);
    return 0;
}

/* Only volumes with which something is wrong. */
int csi_controller_list_volume_health(struct csi_call *c,
                                      const Csi__V1__ControllerListVolumeHealthRequest *q,
                                      Csi__V1__ControllerListVolumeHealthResponse *r, struct err *e)
{
    struct csi_volume *all;
    size_t n, ill = 0, from, to;
    if (c->driver->engine->list(c, &all, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (all[i].problem)
            all[ill++] = all[i];
    }
    if (find_page(all, ill, q->max_entries, q->starting_token, &from, &to, e) < 0)
        return -1;
    r->entries = arena_alloc(c->arena, (to - from + 1) * sizeof(*r->entries));
    for (size_t i = from; i < to; i++)
        r->entries[r->n_entries++] = health_of(c, &all[i]);
    r->next_token = next_token(c, all, ill, to);
    return 0;
}

/* Growth. */

int csi_controller_expand_volume(struct csi_call *c,
                                 const Csi__V1__ControllerExpandVolumeRequest *q,
                                 Csi__V1__ControllerExpandVolumeResponse *r, struct err *e)
{
    struct csi_volume v;
    int64_t size;
    if (check_id(q->volume_id, "volume_id", e) < 0)
        return -1;
    if (!q->capacity_range)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoSize", "capacity_range is missing");
    if (q->volume_capability && csi_check_capability(q->volume_capability, e) < 0)
        return -1;
    if (c->driver->engine->find(c, q->volume_id, &v, e) < 0 ||
        csi_pick_size(q->capacity_range, v.size, c->driver->engine->granule, &size, e) < 0)
        return -1;
    if (q->capacity_range->limit_bytes && v.size > q->capacity_range->limit_bytes)
        return err_set(e, ERR_OUT_OF_RANGE, "TooSmall",
                       "volume %s has %lld bytes already: a volume cannot shrink", q->volume_id,
                       (long long)v.size);
    if (csi_begin(c->driver->csi, q->volume_id, e) < 0)
        return -1;
    int status = v.size < size ? c->driver->engine->grow(c, q->volume_id, size, &v, e) : 0;
    csi_end(c->driver->csi, q->volume_id);
    r->capacity_bytes = v.size;
    r->node_expansion_required =
        !q->volume_capability ||
        q->volume_capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    return status;
}
