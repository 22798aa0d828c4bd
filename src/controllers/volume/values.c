/*
 * What the children of a volume are made from: their templates, and the values that fill them,
 * which are functions of the volume and of nothing else. Paths in containers are below /run/orlop.
 */
#include "base/net.h"
#include "controllers/volume/volume.h"
#include "kinds/access.h"

extern const struct kube_template controllers_volume_account, controllers_volume_chap,
    controllers_volume_key, controllers_volume_role, controllers_volume_rolebinding;

void volume_set_text(json_t *values, const char *key, const char *text)
{
    json_object_set_new(values, key, json_string(text));
}

void volume_set_some(json_t *values, const char *key, const char *text)
{
    if (*text)
        volume_set_text(values, key, text);
}

void volume_set_value(json_t *values, const char *key, const json_t *value)
{
    if (value)
        json_object_set(values, key, (json_t *)(uintptr_t)value);
}

json_t *volume_values(const struct volume_engine *x, const json_t *volume)
{
    struct volume_view view;
    json_t *values = json_object();
    _cleanup_free_ char *account = mem_printf(API_ACCESS_VOLUME_PREFIX "%s", kube_name(volume));
    /* Below the folder that all have, and one of the node's. */
    _cleanup_free_ char *folder =
        mem_printf("%s.%s.%s", kube_namespace(volume), kube_name(volume), volume_id(x, volume));
    x->view(volume, &view);
    volume_set_text(values, "engine", x->name);
    volume_set_text(values, "group", x->group);
    volume_set_text(values, "plural", x->plural);
    volume_set_text(values, "name", kube_name(volume));
    volume_set_text(values, "namespace", kube_namespace(volume));
    volume_set_text(values, "account", account);
    volume_set_text(values, "id", volume_id(x, volume));
    volume_set_text(values, "folder", folder);
    volume_set_text(values, "version", ORLOP_VERSION);
    volume_set_text(values, "images", volume_settings.image_prefix);
    volume_set_text(values, "dir", volume_settings.dir);
    if (x->gate)
        volume_set_text(values, "gate", x->gate);
    json_object_set_new(values, "monitored", json_boolean(view.monitored));
    json_object_set_new(values, "chap", json_boolean(view.authenticated));
    return values;
}

static json_t *fill_template(const struct kube_template *template, json_t *values, struct err *e)
{
    json_auto_t *given = values;
    return kube_template_fill(template, given, e);
}

json_t *volume_child(const struct volume_engine *x, const json_t *volume, enum volume_child which,
                     struct err *e)
{
    static const struct kube_template *const templates[] = {
        [VOLUME_KEY] = &controllers_volume_key,
        [VOLUME_CHAP] = &controllers_volume_chap,
        [VOLUME_ACCOUNT] = &controllers_volume_account,
        [VOLUME_ROLE] = &controllers_volume_role,
        [VOLUME_ROLE_BINDING] = &controllers_volume_rolebinding,
    };
    return fill_template(templates[which], volume_values(x, volume), e);
}

json_t *volume_service(const struct volume_engine *x, const json_t *volume, const char *address,
                       struct err *e)
{
    json_t *values = volume_values(x, volume);
    if (address)
        volume_set_text(values, "clusterIP", address);
    return fill_template(x->service, values, e);
}

#define SESSION   "node.session.auth."
#define DISCOVERY "discovery.sendtargets.auth."
const char *const volume_chap_keys[] = {
    SESSION "username",      SESSION "password",      SESSION "username_in",
    SESSION "password_in",   DISCOVERY "username",    DISCOVERY "password",
    DISCOVERY "username_in", DISCOVERY "password_in", NULL};

json_t *volume_chap_data(const json_t *volume, const char *password, const char *target_password)
{
    _cleanup_free_ char *target = mem_printf("%s-target", kube_name(volume));
    const char *const words[] = {kube_name(volume), password, target, target_password};
    json_t *data = json_object();
    for (size_t i = 0; volume_chap_keys[i]; i++)
        volume_set_text(data, volume_chap_keys[i], words[i % ARRAY_SIZE(words)]);
    return data;
}

json_t *volume_target(const struct volume_engine *x, const json_t *volume, const char *address,
                      const struct volume_uids *uids, struct err *e)
{
    json_t *values = volume_values(x, volume);
    bool monitored = json_is_true(json_object_get(values, "monitored"));
    volume_set_text(values, "keyUid", uids->key);
    volume_set_text(values, "chapUid", uids->chap);
    volume_set_text(values, "accountUid", uids->account);
    /* On one machine a Service's address is this machine's, and the target is there itself. */
    volume_set_text(values, "listen", net_is_loopback(address) ? address : "$(POD_IP)");
    /* So that Prometheus finds it, where it goes by annotations. */
    volume_set_text(values, "scraped", monitored ? "true" : "false");
    if (monitored) {
        volume_set_text(values, "metricsPath", "/metrics");
        volume_set_text(values, "metricsPort", "9500");
    }
    x->target_values(volume, values);
    return fill_template(x->target, values, e);
}
