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
static json_t *published_portal(const json_t *published)
{
    const char *ip = json_str(published, "targetIP");
    json_int_t port = json_integer_value(json_object_get(published, "targetPort"));
    if (!ip || api_ip.check(ip) || port < 1 || port > UINT16_MAX)
        return NULL;
    return json_sprintf(strchr(ip, ':') ? "[%s]:%lld" : "%s:%lld", ip, (long long)port);
}

json_t *api_jiva_iscsi(const json_t *volume)
{
    const json_t *own = json_object_get(volume, "iscsi"),
                 *published = json_at(volume, "spec", "iscsiSpec");
    const char *iqn = json_str(own, "iqn"), *portal = json_str(own, "targetPortal");
    const char *name = json_str(json_object_get(volume, "metadata"), "name");
    if (!iqn || !*iqn)
        iqn = json_str(published, "iqn");
    json_t *iscsi = json_object();
    json_object_set_new(iscsi, "iqn",
                        iqn && *iqn ? json_string(iqn)
                                    : json_sprintf("iqn.2016-09.com.openebs.jiva:%s", name));
    json_t *at = portal && *portal ? json_string(portal) : published_portal(published);
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
