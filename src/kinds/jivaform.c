/*
 * The two forms of a JivaVolume, and the way between them.
 *
 *     ours                       published
 *     iscsi.iqn                  spec.iscsiSpec.iqn
 *     iscsi.targetPortal         spec.iscsiSpec.targetIP, targetPort
 *     spec.capacity: 6           spec.capacity: "6Gi"
 */
#include "kinds/jiva.h"
#include "kinds/kinds.h"

static const struct api_path *const spec_at = API_KEY(NULL, "spec");

/* Moves one text into iscsi, unless another is there: then it is left to be refused. */
static void fold_text(json_t *object, const char *name, const char *text, const char *from,
                      struct api_report *report)
{
    const struct api_path *source = API_KEY(API_KEY(spec_at, "iscsiSpec"), from);
    json_t *normal = json_object_get(object, "iscsi");
    const char *own = json_str(normal, name);
    if (own && *own && !str_eq(own, text)) {
        api_problem(report, source, API_FORBIDDEN, NULL,
                    "contradicts iscsi.%s (%s); keep one of them", name, own);
        return;
    }
    json_object_set_new(normal, name, json_string(text));
    api_report_renamed(report, API_KEY(API_KEY(NULL, "iscsi"), name), source);
}

/*
 * spec.iscsiSpec becomes iscsi. Members that have not the expected type, or that make no portal,
 * stay where they are, for the check of structure to find them there.
 */
static void fold_iscsi(json_t *object, struct api_report *report)
{
    json_t *volume = json_object_get(object, "spec");
    json_t *published = json_object_get(volume, "iscsiSpec"),
           *iscsi_now = json_object_get(object, "iscsi");
    if (!json_is_object(published) || (iscsi_now && !json_is_object(iscsi_now)))
        return;
    if (!iscsi_now)
        json_object_set_new(object, "iscsi", json_object());
    const char *ip = json_str(published, "targetIP"), *iqn = json_str(published, "iqn");
    const json_t *port = json_object_get(published, "targetPort");
    json_int_t number = json_integer_value(port);
    if (iqn) {
        if (*iqn)
            fold_text(object, "iqn", iqn, "iqn", report);
        json_object_del(published, "iqn");
    }
    if (ip && !api_ip.check(ip) && number >= 1 && number <= UINT16_MAX) {
        _cleanup_free_ char *portal =
            mem_printf(strchr(ip, ':') ? "[%s]:%lld" : "%s:%lld", ip, (long long)number);
        fold_text(object, "targetPortal", portal, "targetIP", report);
        json_object_del(published, "targetIP");
        json_object_del(published, "targetPort");
    }
    if (json_object_size(published) == 0)
        json_object_del(volume, "iscsiSpec");
}

void api_jiva_normalize(json_t *object, struct api_report *report)
{
    api_jiva_capacity(object, report);
    fold_iscsi(object, report);
}

/* iscsi as spec.iscsiSpec. */
void api_jiva_publish(json_t *object, struct api_report *report)
{
    static const char *const ours[] = {"service", "targetDeployment", "replicaDeployment", NULL};
    for (const char *const *name = ours; *name; name++) {
        if (json_object_get(object, *name))
            api_warn(report, API_KEY(NULL, *name),
                     "kept as it is: the published form finds the object by the volume's name");
    }
    if (json_integer_value(json_at(object, "spec", "lun")))
        api_warn(report, API_KEY(spec_at, "lun"),
                 "kept as it is: the published form knows no logical unit but 0");
    const char *portal = json_str(json_object_get(object, "iscsi"), "targetPortal");
    const json_t *iqn = json_at(object, "iscsi", "iqn");
    const json_t *rest = json_at(object, "spec", "iscsiSpec"); /* what made no portal */
    json_t *published = rest ? json_copy((json_t *)rest) : json_object();
    if (iqn)
        json_object_set(published, "iqn", (json_t *)iqn);
    const char *colon = portal ? strrchr(portal, ':') : NULL;
    if (colon) {
        size_t brackets = portal[0] == '[', n = (size_t)(colon - portal) - 2 * brackets;
        json_object_set_new(published, "targetIP", json_stringn(portal + brackets, n));
        json_object_set_new(published, "targetPort", json_integer(strtoll(colon + 1, NULL, 10)));
    }
    if (json_object_size(published))
        json_object_set(json_object_get(object, "spec"), "iscsiSpec", published);
    json_decref(published);
    json_object_del(object, "iscsi");
}
