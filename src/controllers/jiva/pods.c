/*
 * The pods of a JivaVolume: of its target, of its replicas, and those that erase a folder.
 *
 * Templates say nothing of the volume's size: a target learns it from its replicas, so growing restarts
 * nobody. Paths in containers are below /run/orlop.
 */
#include "base/net.h"
#include "controllers/jiva/objects.h"

#define RUN     "/run/orlop"
#define CONTROL RUN "/control/target.sock"
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { TARGET_GRACE = 20, TARGET_MOVES_AFTER = 30 };

static json_t *image(const char *program)
{
    return jiva_named(jiva_settings.image_prefix, program);
}

static json_t *env_of(const char *name, const char *path)
{
    return json_pack("{s:s,s:{s:{s:s}}}", "name", name, "valueFrom", "fieldRef", "fieldPath", path);
}

static json_t *mount_at(const char *name, const char *path)
{
    return json_pack("{s:s,s:s}", "name", name, "mountPath", path);
}

static json_t *secret_volume(const json_t *volume, const char *name)
{
    _cleanup_free_ char *suffix = mem_printf("-%s", name);
    return json_pack("{s:s,s:{s:o,s:i}}", "name", name, "secret", "secretName",
                     jiva_named(kube_name(volume), suffix), "defaultMode", 0400);
}

/* Who logs in proves that it was given the volume's Secret; the target does too, to those who ask. */
static void ask_for_chap(const json_t *volume, json_t *pod, json_t *target)
{
    _cleanup_free_ char *own = mem_printf("%s-target", kube_name(volume));
    const char *const words[] = {"--chap-user",          kube_name(volume),
                                 "--chap-secret-file",   RUN "/chap/node.session.auth.password",
                                 "--mutual-user",        own,
                                 "--mutual-secret-file", RUN "/chap/node.session.auth.password_in"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        json_array_append_new(json_object_get(target, "args"), json_string(words[i]));
    json_array_append_new(json_object_get(target, "volumeMounts"), mount_at("chap", RUN "/chap"));
    json_array_append_new(json_object_get(pod, "volumes"), secret_volume(volume, "chap"));
}

/* The account's token, for one container only. */
static json_t *account_volume(void)
{
    return json_pack("{s:s,s:{s:[{s:{s:s,s:i}},{s:{s:s,s:[{s:s,s:s}]}},{s:{s:[{s:s,s:{s:s}}]}}]}}",
                     "name", "account", "projected", "sources", "serviceAccountToken", "path",
                     "token", "expirationSeconds", 3607, "configMap", "name", "kube-root-ca.crt",
                     "items", "key", "ca.crt", "path", "ca.crt", "downwardAPI", "items", "path",
                     "namespace", "fieldRef", "fieldPath", "metadata.namespace");
}

/* What the policy says of the pods of one part, over what is usual. */
static void apply_policy(const json_t *volume, const char *part, json_t *pod, json_t *container)
{
    static const char *const of_pod[] = {"nodeSelector", "priorityClassName", NULL};
    const json_t *policy = json_at(volume, "spec", "policy");
    const json_t *own = json_object_get(policy, part);
    const json_t *priority = json_object_get(policy, "priorityClassName");
    const json_t *resources = json_object_get(own, "resources");
    size_t i;
    json_t *toleration;
    if (priority)
        json_object_set(pod, "priorityClassName", (json_t *)(uintptr_t)priority);
    for (const char *const *key = of_pod; *key; key++) {
        const json_t *value = json_object_get(own, *key);
        if (value)
            json_object_set(pod, *key, (json_t *)(uintptr_t)value);
    }
    json_array_foreach(json_object_get(own, "tolerations"), i, toleration)
        json_array_append(json_object_get(pod, "tolerations"), toleration);
    const char *key;
    json_t *value;
    json_t *affinity = json_object_get(pod, "affinity");
    json_object_foreach((json_t *)(uintptr_t)json_object_get(own, "affinity"), key, value) {
        if (!affinity) {
            affinity = json_object();
            json_object_set_new(pod, "affinity", affinity);
        }
        if (!json_object_get(affinity, key)) /* one replica a node is not for others to say */
            json_object_set(affinity, key, value);
    }
    if (resources)
        json_object_set(container, "resources", (json_t *)(uintptr_t)resources);
}

/* A toleration of a node that is lost; seconds < 0: for ever. */
static json_t *tolerate(const char *taint, int seconds)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s}", "key", taint, "operator", "Exists", "effect", "NoExecute");
    if (seconds >= 0)
        json_object_set_new(o, "tolerationSeconds", json_integer(seconds));
    return o;
}

static json_t *tolerations(int seconds)
{
    return json_pack("[o,o]", tolerate("node.kubernetes.io/not-ready", seconds),
                     tolerate("node.kubernetes.io/unreachable", seconds));
}

static json_t *deployment(const json_t *volume, const char *suffix, const char *component,
                          unsigned replicas, json_t *strategy, const char *key, json_t *pod)
{
    json_t *o = jiva_child(volume, "apps/v1", "Deployment", suffix, component);
    json_object_set_new(o, "spec",
                        json_pack("{s:i,s:o,s:{s:o},s:{s:{s:o,s:{s:s}},s:o}}", "replicas",
                                  (int)replicas, "strategy", strategy, "selector", "matchLabels",
                                  jiva_labels(volume, component), "template", "metadata", "labels",
                                  jiva_labels(volume, component), "annotations", "orlop.io/key",
                                  key, "spec", pod));
    return o;
}

static void serve_metrics(json_t *target, const char *address)
{
    _cleanup_free_ char *at = mem_printf("%s:%d", address, JIVA_METRICS_PORT);
    json_t *args = json_object_get(target, "args"), *ports = json_object_get(target, "ports");
    json_array_append_new(args, json_string("--metrics"));
    json_array_append_new(args, json_string(at));
    json_array_append_new(
        ports, json_pack("{s:s,s:i}", "name", "metrics", "containerPort", JIVA_METRICS_PORT));
}

/* So that Prometheus finds it, where it goes by annotations. */
static json_t *scraping(bool monitored)
{
    _cleanup_free_ char *port = mem_printf("%d", JIVA_METRICS_PORT);
    return monitored ? json_pack("{s:s,s:s,s:s}", "prometheus.io/scrape", "true",
                                 "prometheus.io/path", "/metrics", "prometheus.io/port", port)
                     : json_pack("{s:s}", "prometheus.io/scrape", "false");
}

json_t *jiva_target_deployment(const json_t *volume, const char *address,
                               const struct jiva_uids *uids)
{
    /* On one machine a Service's address is this machine's, and the target is there itself. */
    const char *at = net_is_loopback(address) ? address : "$(POD_IP)";
    _cleanup_free_ char *portal = mem_printf("%s:%d", at, JIVA_ISCSI_PORT);
    _cleanup_free_ char *listen = mem_printf("%s:%d", at, JIVA_REPLICA_PORT);
    _cleanup_free_ char *lun =
        mem_printf("%d", (int)json_integer_value(json_at(volume, "spec", "lun")));
    json_t *target = json_pack(
        "{s:s,s:o,s:[s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s],s:[o],s:[o,o],s:[{s:s,s:i},{s:s,s:i}]"
        "}",
        "name", "target", "image", image("orlop-target"), "args", "target", "serve", "--volume",
        jiva_id(volume), "--iqn", jiva_text(volume, "iscsi", "iqn"), "--portal", portal,
        "--replica-listen", listen, "--key-file", RUN "/key/key", "--control", CONTROL,
        "--state-dir", RUN "/control", "--drain-seconds", "1", "--lun", lun, "env",
        env_of("POD_IP", "status.podIP"), "volumeMounts", mount_at("control", RUN "/control"),
        mount_at("key", RUN "/key"), "ports", "name", "iscsi", "containerPort", JIVA_ISCSI_PORT,
        "name", "replication", "containerPort", JIVA_REPLICA_PORT);
    if (jiva_is_monitored(volume))
        serve_metrics(target, at);
    json_t *manager = json_pack("{s:s,s:o,s:[s,s,s,s,s,s,s,s],s:[o,o]}", "name", "manager", "image",
                                image("orlop-volume"), "args", "--kind", "JivaVolume",
                                "--namespace", kube_namespace(volume), "--name", kube_name(volume),
                                "--control", CONTROL, "volumeMounts",
                                mount_at("control", RUN "/control"), mount_at("account", ACCOUNT));
    const json_t *aux = json_at(volume, "spec", "policy", "target", "auxResources");
    if (aux)
        json_object_set(manager, "resources", (json_t *)(uintptr_t)aux);
    json_t *pod =
        json_pack("{s:o,s:b,s:i,s:o,s:[O,o],s:[{s:s,s:{}},o,o]}", "serviceAccountName",
                  jiva_account_name(volume), "automountServiceAccountToken", 0,
                  "terminationGracePeriodSeconds", TARGET_GRACE, "tolerations",
                  tolerations(TARGET_MOVES_AFTER), "containers", target, manager, "volumes", "name",
                  "control", "emptyDir", secret_volume(volume, "key"), account_volume());
    if (jiva_has_chap(volume))
        ask_for_chap(volume, pod, target);
    apply_policy(volume, "target", pod, target);
    json_decref(target);
    json_t *o = deployment(volume, "-ctrl", "jiva-controller", 1,
                           json_pack("{s:s}", "type", "Recreate"), uids->key, pod);
    /* Tokens of an account that was made anew are not those of the old one. */
    json_t *meta =
        json_object_get(json_object_get(json_object_get(o, "spec"), "template"), "metadata");
    json_t *notes = json_object_get(meta, "annotations");
    json_object_set_new(notes, "orlop.io/account", json_string(uids->account));
    json_object_set_new(notes, "orlop.io/chap", json_string(uids->chap));
    json_object_update_new(notes, scraping(jiva_is_monitored(volume)));
    return o;
}

/* The folder of a replica below the one that all have; the node's name is put in by itself. */
static char *folder_of(const json_t *volume, const char *node)
{
    return mem_printf("%s/%s.%s.%s", node, kube_namespace(volume), kube_name(volume),
                      jiva_id(volume));
}

static json_t *data_volume(void)
{
    return json_pack("{s:s,s:{s:s,s:s}}", "name", "data", "hostPath", "path", jiva_settings.dir,
                     "type", "DirectoryOrCreate");
}

json_t *jiva_replica_deployment(const json_t *volume, const char *address, const char *key,
                                unsigned replicas)
{
    _cleanup_free_ char *target = mem_printf("%s:%d", address, JIVA_REPLICA_PORT);
    _cleanup_free_ char *folder = folder_of(volume, "$(NODE_NAME)");
    json_t *replica = json_pack(
        "{s:s,s:o,s:[s,s,s,s,s,s,s,s,s,s,s,s],s:[o,o],s:[{s:s,s:s,s:s},o]}", "name", "replica",
        "image", image("orlop-replica"), "args", "replica", "serve", "--dir", RUN "/data",
        "--target", target, "--source", "$(POD_IP)", "--volume", jiva_id(volume), "--key-file",
        RUN "/key/key", "env", env_of("POD_IP", "status.podIP"),
        env_of("NODE_NAME", "spec.nodeName"), "volumeMounts", "name", "data", "mountPath",
        RUN "/data", "subPathExpr", folder, mount_at("key", RUN "/key"));
    if (!jiva_policy_says(json_at(volume, "spec", "policy"), "enableBufio", true))
        json_array_append_new(json_object_get(replica, "args"), json_string("--direct"));
    json_t *anti = json_pack("{s:{s:[{s:s,s:{s:o}}]}}", "podAntiAffinity",
                             "requiredDuringSchedulingIgnoredDuringExecution", "topologyKey",
                             "kubernetes.io/hostname", "labelSelector", "matchLabels",
                             jiva_labels(volume, "jiva-replica"));
    json_t *pod = json_pack("{s:b,s:[{s:s}],s:o,s:o,s:[O],s:[o,o]}", "automountServiceAccountToken",
                            0, "schedulingGates", "name", JIVA_GATE, "affinity", anti,
                            "tolerations", tolerations(-1), "containers", replica, "volumes",
                            data_volume(), secret_volume(volume, "key"));
    apply_policy(volume, "replica", pod, replica);
    json_decref(replica);
    const json_t *account = json_at(volume, "spec", "policy", "serviceAccountName");
    if (account)
        json_object_set(pod, "serviceAccountName", (json_t *)(uintptr_t)account);
    return deployment(volume, "-rep", "jiva-replica", replicas,
                      json_pack("{s:s,s:{s:i,s:i}}", "type", "RollingUpdate", "rollingUpdate",
                                "maxSurge", 0, "maxUnavailable", 1),
                      key, pod);
}

json_t *jiva_eraser(const json_t *volume, const char *node)
{
    _cleanup_free_ char *suffix = mem_printf("-erase-%s", node);
    _cleanup_free_ char *folder = folder_of(volume, node);
    _cleanup_free_ char *path = mem_printf(RUN "/data/%s", folder);
    /* Whatever led here: who is a member is not erased while there is a volume. */
    _cleanup_(str_done) struct str members = {0};
    const json_t *it, *all = json_at(volume, "status", "replicaStatus");
    for (size_t i = 0; !kube_deleting(volume) && (it = json_array_get(all, i)); i++)
        str_appendf(&members, "%s%s", i ? "," : "", json_str(it, "replicaId"));
    json_t *o = jiva_child(volume, "v1", "Pod", suffix, "jiva-eraser");
    json_object_set_new(
        o, "spec",
        json_pack("{s:b,s:s,s:{s:s},s:[o,o],s:[{s:s,s:o,s:[s,s,s,s,s,s,s,s,s,s],s:[o]}],s:[o]}",
                  "automountServiceAccountToken", 0, "restartPolicy", "OnFailure", "nodeSelector",
                  "kubernetes.io/hostname", node, "tolerations",
                  json_pack("{s:s,s:s}", "operator", "Exists", "effect", "NoSchedule"),
                  json_pack("{s:s,s:s}", "operator", "Exists", "effect", "NoExecute"), "containers",
                  "name", "erase", "image", image("orlop-replica"), "args", "replica", "erase",
                  "--beneath", RUN "/data", "--dir", path, "--volume", jiva_id(volume), "--except",
                  str_get(&members), "volumeMounts", mount_at("data", RUN "/data"), "volumes",
                  data_volume()));
    return o;
}
