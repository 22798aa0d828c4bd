/*
 * Who the driver is and what it can do.
 */
#include "csi/csi.h"

int csi_get_plugin_info(struct csi_call *c, const Csi__V1__GetPluginInfoRequest *q,
                        Csi__V1__GetPluginInfoResponse *r, struct err *e)
{
    (void)q;
    (void)e;
    r->name = csi_text(c->driver->name);
    r->vendor_version = csi_text(ORLOP_VERSION);
    return 0;
}

static Csi__V1__PluginCapability *add_capability(struct csi_call *c,
                                                 Csi__V1__GetPluginCapabilitiesResponse *r)
{
    enum { MOST = 8 };
    if (!r->capabilities)
        r->capabilities = arena_alloc(c->arena, MOST * sizeof(*r->capabilities));
    Csi__V1__PluginCapability *m = arena_new(c->arena, Csi__V1__PluginCapability);
    csi__v1__plugin_capability__init(m);
    r->capabilities[r->n_capabilities++] = m;
    return m;
}

static void add_service(struct csi_call *c, Csi__V1__GetPluginCapabilitiesResponse *r,
                        Csi__V1__PluginCapability__Service__Type type)
{
    Csi__V1__PluginCapability *m = add_capability(c, r);
    m->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
    m->service = arena_new(c->arena, Csi__V1__PluginCapability__Service);
    csi__v1__plugin_capability__service__init(m->service);
    m->service->type = type;
}

int csi_get_plugin_capabilities(struct csi_call *c, const Csi__V1__GetPluginCapabilitiesRequest *q,
                                Csi__V1__GetPluginCapabilitiesResponse *r, struct err *e)
{
    (void)q;
    (void)e;
    if (c->driver->csi->controller)
        add_service(c, r, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE);
    if (c->driver->engine->topology)
        add_service(c, r,
                    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS);
    Csi__V1__PluginCapability *m = add_capability(c, r);
    m->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
    m->volume_expansion = arena_new(c->arena, Csi__V1__PluginCapability__VolumeExpansion);
    csi__v1__plugin_capability__volume_expansion__init(m->volume_expansion);
    m->volume_expansion->type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
    return 0;
}

/* It must not wait for the API: whether that was reached lately is all that is said. */
int csi_probe(struct csi_call *c, const Csi__V1__ProbeRequest *q, Csi__V1__ProbeResponse *r,
              struct err *e)
{
    (void)q;
    (void)e;
    r->ready = arena_new(c->arena, Csi__V1__BoolValue);
    csi__v1__bool_value__init(r->ready);
    r->ready->value = c->driver->csi->ready;
    return 0;
}
