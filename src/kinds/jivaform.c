/*
 * Where a JivaVolume is, in both forms that people know. Every version of the kind has both, and on a stock API server
 * nobody converts between them, so whoever looks after the volume writes both, at once and from one value.
 *
 *     ours                       published
 *     iscsi.iqn                  spec.iscsiSpec.iqn
 *     iscsi.targetPortal         spec.iscsiSpec.targetIP, targetPort
 */
#include <stdlib.h>

#include "kinds/jiva.h"
#include "kinds/kinds.h"

/* What the published form makes a portal of; NULL: it says none. */
static json_t *published_portal(const char *ip, int64_t port)
{
    if (api_ip.check(ip) || port < 1 || port > UINT16_MAX)
        return NULL;
    return json_sprintf(strchr(ip, ':') ? "[%s]:%lld" : "%s:%lld", ip, (long long)port);
}

json_t *api_jiva_iscsi(const json_t *volume)
{
    const struct jiva_volume v = jiva_volume_of(volume, NULL);
    const char *iqn = *v.iscsi.iqn ? v.iscsi.iqn : v.spec.iscsi.iqn;
    const char *name = json_str(json_object_get(volume, "metadata"), "name");
    json_t *iscsi = json_object();
    json_object_set_new(iscsi, "iqn",
                        *iqn ? json_string(iqn)
                             : json_sprintf("iqn.2016-09.com.openebs.jiva:%s", name));
    json_t *at = *v.iscsi.portal ? json_string(v.iscsi.portal)
                                 : published_portal(v.spec.iscsi.ip, v.spec.iscsi.port);
    if (at)
        json_object_set_new(iscsi, "targetPortal", at);
    return iscsi;
}

json_t *api_jiva_iscsi_published(const json_t *iscsi)
{
    const char *portal = json_str(iscsi, "targetPortal"),
               *colon = portal ? strrchr(portal, ':') : NULL;
    json_t *published = json_pack("{s:O}", "iqn", json_object_get(iscsi, "iqn"));
    if (!colon)
        return published;
    size_t brackets = portal[0] == '[', n = (size_t)(colon - portal) - 2 * brackets;
    json_object_set_new(published, "targetIP", json_stringn(portal + brackets, n));
    json_object_set_new(published, "targetPort", json_integer(strtoll(colon + 1, NULL, 10)));
    return published;
}
