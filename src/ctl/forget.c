/*
 * node forget: somebody says that a node will not be back.
 *
 * Order: every LogicalVolume and every pool of the node is marked first, then the Node object goes; cut off
 * in between, the same command goes on where it was. topolvm-controller acts on the marks (lifecycle.c), and
 * cspc-operator (forget.c).
 */
#include "base/rfc3339.h"
#include "ctl/ctl.h"
#include "kube/condition.h"
#include "kube/event.h"

struct forget {
    struct kube_client *client;
    struct kube_recorder *recorder;
    const char *name;
    bool force;
    json_t *who; /* the mark: {"by", "at", "force"} */
    size_t volumes, pools;
};

/* Who we are to the server, for those who ask later; to be freed. NULL with an error. */
static char *find_user(struct kube_client *client, struct err *e)
{
    _cleanup_(str_done) struct str answer = {0};
    json_auto_t *review = json_pack("{s:s,s:s}", "apiVersion", "authentication.k8s.io/v1", "kind",
                                    "SelfSubjectReview");
    if (kube_raw(client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review,
                 &answer, e) < 0)
        return NULL;
    json_auto_t *value = json_parse(str_get(&answer), answer.len, NULL, e);
    const char *name = json_str(json_at(value, "status", "userInfo"), "username");
    return mem_strdup(name ? name : "somebody");
}

json_t *ctl_forget_word(struct kube_client *client, bool force, struct err *e)
{
    char now[RFC3339_MAX];
    rfc3339_format(rfc3339_from_ns(clock_real_ns(clock_system())), RFC3339_SECONDS, now);
    _cleanup_free_ char *user = find_user(client, e);
    return user ? json_pack("{s:s,s:s,s:b}", "by", user, "at", now, "force", force) : NULL;
}

int64_t ctl_lease_age(struct kube_client *client, const char *ns, const char *name, struct err *e)
{
    enum { USUAL_SECONDS = 40 };
    const struct kube_resource leases = kube_resource("coordination.k8s.io/v1", "Lease");
    struct err why = {0};
    json_auto_t *lease = kube_get(client, &leases, ns, name, &why);
    const char *renewed = json_str(json_object_get(lease, "spec"), "renewTime");
    json_int_t seconds = json_integer_value(json_at(lease, "spec", "leaseDurationSeconds"));
    struct timespec at;
    if (!lease && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -2;
    }
    if (!renewed || rfc3339_parse(renewed, &at, NULL) < 0)
        return -1;
    int64_t age = (clock_real_ns(clock_system()) - rfc3339_to_ns(at)) / CLOCK_SECOND;
    return age > (seconds ? seconds : USUAL_SECONDS) ? -1 : age > 0 ? age : 0;
}

/*
 * Whether the node has said that it lives within the time that it promised to: by this machine's clock, which
 * may be wrong, and by the controllers, which watch it.
 */
static int check_alive(const struct forget *f, const json_t *node, struct err *e)
{
    int64_t age = ctl_lease_age(f->client, "kube-node-lease", f->name, e);
    if (age == -2)
        return -1;
    if (f->force || (age < 0 && !kube_condition_is_true(node, "Ready")))
        return 0;
    _cleanup_free_ char *why = age >= 0
                                   ? mem_printf("it renewed its lease %lld s ago", (long long)age)
                                   : mem_strdup("it is Ready");
    return err_set(e, ERR_FAILED_PRECONDITION, "Alive",
                   "node %s lives: %s. Stop it first, or say --force if you know better", f->name,
                   why);
}

/* `what` is it: "volume", "pool". 1: marked; 0: it is gone. */
static int mark(struct forget *f, const json_t *object, const char *what, struct err *e)
{
    const struct kube_resource r = kube_resource_of(object);
    const char *ns = kube_namespace(object);
    _cleanup_(str_done) struct str text = {0};
    json_format(f->who, &text);
    json_auto_t *patch =
        json_pack("{s:{s:{s:s}}}", "metadata", "annotations", TOPOLVM_FORGOTTEN, str_get(&text));
    struct err why = {0};
    json_auto_t *now = kube_patch(f->client, &r, *ns ? ns : NULL, kube_name(object),
                                  KUBE_MERGE_PATCH, patch, NULL, &why);
    if (!now && why.code != ERR_NOT_FOUND) {
        *e = why;
        return err_prefix(e, "%s %s", r.kind, kube_name(object));
    }
    if (now)
        kube_event_warning(f->recorder, now, "NodeForgotten",
                           "Node %s was forgotten by %s: the %s will not wait for it", f->name,
                           json_str(f->who, "by"), what);
    return now != NULL;
}

/* All of a kind that are the node's, whose name they have at `key` of their spec. */
static int mark_all(struct forget *f, const struct api_kind *kind, const char *key,
                    const char *what, size_t *ret_count, struct err *e)
{
    struct err why = {0};
    json_auto_t *all = kube_list_any(f->client, kind, NULL, NULL, &why);
    size_t i;
    json_t *it;
    if (!all && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    json_array_foreach(all, i, it) {
        const char *node = json_str(json_object_get(it, "spec"), key);
        int marked = node && str_eq(node, f->name) ? mark(f, it, what, e) : 0;
        if (marked < 0)
            return -1;
        *ret_count += (size_t)marked;
    }
    return 0;
}

static int forget(struct forget *f, struct err *e)
{
    const struct kube_resource nodes = kube_resource("v1", "Node");
    struct err why = {0};
    json_auto_t *node = kube_get(f->client, &nodes, NULL, f->name, &why);
    if (!node && why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    if (check_alive(f, node, e) < 0)
        return -1;
    if (mark_all(f, &api_logical_volume, "nodeName", "volume", &f->volumes, e) < 0 ||
        mark_all(f, &api_cstor_pool_instance, "hostName", "pool", &f->pools, e) < 0)
        return -1;
    if (!node)
        return f->volumes || f->pools
                   ? 0
                   : err_set(e, ERR_NOT_FOUND, "NotFound",
                             "there is no node %s, and no LogicalVolume or pool of it", f->name);
    kube_event_warning(
        f->recorder, node, "NodeForgotten",
        "The node was forgotten by %s; %zu LogicalVolumes and %zu pools will not wait for it",
        json_str(f->who, "by"), f->volumes, f->pools);
    const struct kube_delete o = {.uid = kube_uid(node), .grace_seconds = -1};
    return kube_delete(f->client, &nodes, NULL, f->name, &o, e);
}

static int run_forget(const struct cli_args *args)
{
    struct err e = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    struct forget f = {
        .client = client, .name = args->words[0], .force = ctl_settings(args)->force};
    f.who = client ? ctl_forget_word(client, f.force, &e) : NULL;
    if (!f.who)
        return cli_fail(args, "%s", e.msg);
    f.recorder = kube_recorder_new(client, "orlop", NULL, NULL, &e);
    int status = f.recorder ? forget(&f, &e) : -1;
    if (f.recorder)
        kube_recorder_free(f.recorder);
    json_decref(f.who);
    if (status < 0)
        return cli_fail(args, "%s", e.msg);
    printf("node/%s forgotten, %zu logical volumes and %zu pools do not wait for it any more\n",
           f.name, f.volumes, f.pools);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    {"force", 0, NULL, CLI_SWITCH, CTL_AT(force),
     .doc = "Forget it even if it has renewed its Lease in time."},
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(node_forget) = {
    .name = "node forget",
    .topic = CLI_STORAGE,
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Stop waiting for a node that will not come back",
    .doc = "Declares that a node is gone for good. LogicalVolumes and pools of that node that are "
           "deleted, now or later, no longer wait for it, and its Node object is deleted. Each of "
           "them, and an Event, records who said so and when. If the node comes back after all, "
           "what it still has is shown as orphans: `orlop lv audit`.\n\n"
           "Nothing else is deleted: claims of lost volumes are for their users to delete.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop node forget node-3", "The machine is gone."},
            {NULL},
        },
    .run = run_forget,
};
