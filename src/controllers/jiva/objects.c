/*
 * What the children of a JivaVolume look like: functions of the volume and of nothing else. Their pods are in
 * pods.c.
 */
#include "controllers/jiva/objects.h"

#include "kinds/access.h"

json_t *jiva_named(const char *name, const char *suffix)
{
    _cleanup_free_ char *made = mem_printf("%s%s", name, suffix);
    return json_string(made);
}

json_t *jiva_labels(const json_t *volume, const char *component)
{
    return json_pack("{s:s,s:s,s:s}", "openebs.io/cas-type", "jiva", JIVA_COMPONENT, component,
                     JIVA_VOLUME_LABEL, kube_name(volume));
}

/* An object of the volume: it goes with it. */
json_t *jiva_child(const json_t *volume, const char *version, const char *kind, const char *suffix,
                   const char *component)
{
    return json_pack("{s:s,s:s,s:{s:o,s:s,s:o,s:[o]}}", "apiVersion", version, "kind", kind,
                     "metadata", "name", jiva_named(kube_name(volume), suffix), "namespace",
                     kube_namespace(volume), "labels", jiva_labels(volume, component),
                     "ownerReferences", kube_owner_reference(volume));
}

json_t *jiva_secret(const json_t *volume, const char *key)
{
    json_t *o = jiva_child(volume, "v1", "Secret", "-key", "jiva-key");
    json_object_set_new(o, "type", json_string("Opaque"));
    json_object_set_new(o, "stringData", json_pack("{s:s}", "key", key));
    return o;
}

bool jiva_has_chap(const json_t *volume)
{
    return !str_eq(api_jiva_authentication(volume), "None");
}

/* In the words of open-iscsi, as Kubernetes has them: its own volumes take the Secret as it is. */
json_t *jiva_chap(const json_t *volume, const char *password, const char *target_password)
{
    static const char *const prefixes[] = {"node.session", "discovery.sendtargets"};
    json_t *o = jiva_child(volume, "v1", "Secret", "-chap", "jiva-chap"), *data = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        const char *const words[][2] = {{"username", NULL},
                                        {"password", password},
                                        {"username_in", NULL},
                                        {"password_in", target_password}};
        for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
            _cleanup_free_ char *key = mem_printf("%s.auth.%s", prefixes[i], words[k][0]);
            json_object_set_new(data, key,
                                words[k][1] ? json_string(words[k][1])
                                            : jiva_named(kube_name(volume), k ? "-target" : ""));
        }
    }
    json_object_set_new(o, "type", json_string("kubernetes.io/iscsi-chap"));
    json_object_set_new(o, "stringData", data);
    return o;
}

json_t *jiva_account_name(const json_t *volume)
{
    return jiva_named(API_ACCESS_VOLUME_PREFIX, kube_name(volume));
}

json_t *jiva_account(const json_t *volume)
{
    json_t *o = jiva_child(volume, "v1", "ServiceAccount", "", "jiva-controller");
    json_object_set_new(json_object_get(o, "metadata"), "name", jiva_account_name(volume));
    json_object_set_new(o, "automountServiceAccountToken", json_false());
    return o;
}

/* orlop-volume reads its volume and says how it is; events have no names to be limited to. */
json_t *jiva_role(const json_t *volume)
{
    json_t *o =
        jiva_child(volume, "rbac.authorization.k8s.io/v1", "Role", "-ctrl", "jiva-controller");
    json_object_set_new(o, "rules",
                        json_pack("[{s:[s],s:[s],s:[s],s:[s,s,s]},{s:[s],s:[s],s:[s],s:[s,s,s]},"
                                  "{s:[s],s:[s],s:[s,s]}]",
                                  "apiGroups", "openebs.io", "resources", "jivavolumes",
                                  "resourceNames", kube_name(volume), "verbs", "get", "list",
                                  "watch", "apiGroups", "openebs.io", "resources",
                                  "jivavolumes/status", "resourceNames", kube_name(volume), "verbs",
                                  "get", "patch", "update", "apiGroups", "", "resources", "events",
                                  "verbs", "create", "patch"));
    return o;
}

json_t *jiva_role_binding(const json_t *volume)
{
    json_t *o = jiva_child(volume, "rbac.authorization.k8s.io/v1", "RoleBinding", "-ctrl",
                           "jiva-controller");
    json_object_set_new(o, "roleRef",
                        json_pack("{s:s,s:s,s:o}", "apiGroup", "rbac.authorization.k8s.io", "kind",
                                  "Role", "name", jiva_named(kube_name(volume), "-ctrl")));
    json_object_set_new(o, "subjects",
                        json_pack("[{s:s,s:o,s:s}]", "kind", "ServiceAccount", "name",
                                  jiva_account_name(volume), "namespace", kube_namespace(volume)));
    return o;
}

bool jiva_policy_says(const json_t *policy, const char *key, bool usually)
{
    const json_t *said = json_object_get(policy, key);
    return said ? json_is_true(said) : usually;
}

bool jiva_is_monitored(const json_t *volume)
{
    return !jiva_policy_says(json_at(volume, "spec", "policy", "target"), "disableMonitor", false);
}

static json_t *port_of(const char *name, int port)
{
    return json_pack("{s:s,s:i,s:i,s:s}", "name", name, "port", port, "targetPort", port,
                     "protocol", "TCP");
}

/* Replicas must reach a target that is not ready: it is they who make it so. */
json_t *jiva_service(const json_t *volume)
{
    json_t *o = jiva_child(volume, "v1", "Service", "-svc", "jiva-controller-service");
    json_object_set_new(json_object_get(o, "metadata"), "annotations",
                        json_pack("{s:s}", "orlop.io/forward", "false"));
    json_t *ports = json_pack("[o,o]", port_of("iscsi", JIVA_ISCSI_PORT),
                              port_of("replication", JIVA_REPLICA_PORT));
    if (jiva_is_monitored(volume))
        json_array_append_new(ports, port_of("metrics", JIVA_METRICS_PORT));
    json_object_set_new(o, "spec",
                        json_pack("{s:o,s:b,s:o}", "selector",
                                  jiva_labels(volume, "jiva-controller"),
                                  "publishNotReadyAddresses", 1, "ports", ports));
    return o;
}
