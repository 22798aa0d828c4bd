/*
 * What the children of a JivaVolume are made from: their templates, and the values that fill them, which are
 * functions of the volume and of nothing else. Paths in containers are below /run/orlop.
 */
#include "base/net.h"
#include "controllers/jiva/jiva.h"
#include "kinds/access.h"
#include "kube/template.h"

extern const struct kube_template controllers_volume_account, controllers_volume_chap,
    controllers_volume_jiva_eraser, controllers_volume_jiva_replicas,
    controllers_volume_jiva_target, controllers_volume_key, controllers_volume_role,
    controllers_volume_rolebinding, controllers_volume_service;

static void set_text(json_t *values, const char *key, const char *text)
{
    json_object_set_new(values, key, json_string(text));
}

/* A value that may be missing: then the template leaves it out. */
static void set_value(json_t *values, const char *key, const json_t *value)
{
    if (value)
        json_object_set(values, key, (json_t *)(uintptr_t)value);
}

/* A boolean of the policy, or what is usual. */
static bool policy_says(const json_t *policy, const char *key, bool usually)
{
    const json_t *said = json_object_get(policy, key);
    return said ? json_is_true(said) : usually;
}

bool jiva_has_chap(const json_t *volume)
{
    return !str_eq(api_jiva_authentication(volume), "None");
}

/* What all templates may name. */
static json_t *common_values(const json_t *volume)
{
    const json_t *target = json_at(volume, "spec", "policy", "target");
    json_t *values = json_object();
    _cleanup_free_ char *account = mem_printf(API_ACCESS_VOLUME_PREFIX "%s", kube_name(volume));
    /* Below the folder that all have, and one of the node's. */
    _cleanup_free_ char *folder =
        mem_printf("%s.%s.%s", kube_namespace(volume), kube_name(volume), jiva_id(volume));
    set_text(values, "engine", "jiva");
    set_text(values, "group", "openebs.io");
    set_text(values, "plural", "jivavolumes");
    set_text(values, "name", kube_name(volume));
    set_text(values, "namespace", kube_namespace(volume));
    set_text(values, "account", account);
    set_text(values, "id", jiva_id(volume));
    set_text(values, "folder", folder);
    set_text(values, "images", jiva_settings.image_prefix);
    set_text(values, "dir", jiva_settings.dir);
    set_text(values, "gate", JIVA_GATE);
    json_object_set_new(values, "monitored",
                        json_boolean(!policy_says(target, "disableMonitor", false)));
    json_object_set_new(values, "chap", json_boolean(jiva_has_chap(volume)));
    return values;
}

/* What the policy says of the pods of one part. */
static void set_policy(json_t *values, const json_t *volume, const char *part)
{
    const json_t *policy = json_at(volume, "spec", "policy"), *own = json_object_get(policy, part);
    const json_t *priority = json_object_get(own, "priorityClassName");
    set_value(values, "priorityClassName",
              priority ? priority : json_object_get(policy, "priorityClassName"));
    set_value(values, "nodeSelector", json_object_get(own, "nodeSelector"));
    set_value(values, "tolerations", json_object_get(own, "tolerations"));
    set_value(values, "resources", json_object_get(own, "resources"));
    set_value(values, "affinity", json_object_get(own, "affinity"));
    set_value(values, "nodeAffinity", json_at(own, "affinity", "nodeAffinity"));
    set_value(values, "podAffinity", json_at(own, "affinity", "podAffinity"));
}

static json_t *fill(const struct kube_template *template, json_t *values, struct err *e)
{
    json_auto_t *given = values;
    return kube_template_fill(template, given, e);
}

json_t *jiva_child(const json_t *volume, enum jiva_child which, struct err *e)
{
    static const struct kube_template *const templates[] = {
        [JIVA_KEY] = &controllers_volume_key,
        [JIVA_CHAP] = &controllers_volume_chap,
        [JIVA_ACCOUNT] = &controllers_volume_account,
        [JIVA_ROLE] = &controllers_volume_role,
        [JIVA_ROLE_BINDING] = &controllers_volume_rolebinding,
    };
    return fill(templates[which], common_values(volume), e);
}

json_t *jiva_service(const json_t *volume, const char *address, struct err *e)
{
    json_t *values = common_values(volume);
    if (address)
        set_text(values, "clusterIP", address);
    return fill(&controllers_volume_service, values, e);
}

json_t *jiva_chap_data(const json_t *volume, const char *password, const char *target_password)
{
    static const char *const prefixes[] = {"node.session", "discovery.sendtargets"};
    _cleanup_free_ char *target = mem_printf("%s-target", kube_name(volume));
    const char *const words[][2] = {{"username", kube_name(volume)},
                                    {"password", password},
                                    {"username_in", target},
                                    {"password_in", target_password}};
    json_t *data = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
            _cleanup_free_ char *key = mem_printf("%s.auth.%s", prefixes[i], words[k][0]);
            set_text(data, key, words[k][1]);
        }
    }
    return data;
}

json_t *jiva_target_deployment(const json_t *volume, const char *address,
                               const struct jiva_uids *uids, struct err *e)
{
    json_t *values = common_values(volume);
    bool monitored = json_is_true(json_object_get(values, "monitored"));
    _cleanup_free_ char *lun =
        mem_printf("%d", (int)json_integer_value(json_at(volume, "spec", "lun")));
    set_text(values, "keyUid", uids->key);
    set_text(values, "chapUid", uids->chap);
    set_text(values, "accountUid", uids->account);
    set_text(values, "iqn", jiva_text(volume, "iscsi", "iqn"));
    set_text(values, "lun", lun);
    /* On one machine a Service's address is this machine's, and the target is there itself. */
    set_text(values, "listen", net_is_loopback(address) ? address : "$(POD_IP)");
    /* So that Prometheus finds it, where it goes by annotations. */
    set_text(values, "scraped", monitored ? "true" : "false");
    if (monitored) {
        set_text(values, "metricsPath", "/metrics");
        set_text(values, "metricsPort", "9500");
    }
    set_policy(values, volume, "target");
    set_value(values, "auxResources", json_at(volume, "spec", "policy", "target", "auxResources"));
    return fill(&controllers_volume_jiva_target, values, e);
}

json_t *jiva_replica_deployment(const json_t *volume, const char *address, const char *key,
                                unsigned replicas, struct err *e)
{
    const json_t *policy = json_at(volume, "spec", "policy");
    json_t *values = common_values(volume);
    set_text(values, "keyUid", key);
    set_text(values, "address", address);
    json_object_set_new(values, "count", json_integer(replicas));
    json_object_set_new(values, "direct", json_boolean(!policy_says(policy, "enableBufio", true)));
    set_value(values, "serviceAccountName", json_object_get(policy, "serviceAccountName"));
    set_policy(values, volume, "replica");
    return fill(&controllers_volume_jiva_replicas, values, e);
}

json_t *jiva_eraser(const json_t *volume, const char *node, struct err *e)
{
    /* Whatever led here: who is a member is not erased while there is a volume. */
    _cleanup_(str_done) struct str members = {0};
    const json_t *it, *all = json_at(volume, "status", "replicaStatus");
    for (size_t i = 0; !kube_deleting(volume) && (it = json_array_get(all, i)); i++)
        str_appendf(&members, "%s%s", i ? "," : "", json_str(it, "replicaId"));
    json_t *values = common_values(volume);
    set_text(values, "node", node);
    set_text(values, "members", str_get(&members));
    return fill(&controllers_volume_jiva_eraser, values, e);
}
