#include "base/age.h"
#include "ctl/ctl.h"

/* What there is to say of it. */
static const char *state_of(const struct logical_volume *lv)
{
    if (kube_deleting(lv->json))
        return kube_annotation(lv->json, TOPOLVM_FORGOTTEN) ? "Forgotten" : "Deleting";
    if (lv->status.code)
        return "Failed";
    if (!*lv->status.volume_id)
        return "Pending";
    return lv->spec.size > lv->status.current_size ? "Growing" : "Ready";
}

/* "NAMESPACE/NAME" of the claim whose volume it is; "". To be freed. */
static char *claim_of(const struct logical_volume *lv, const json_t *volumes)
{
    const char *name = lv->spec.name, *mark = kube_annotation(lv->json, TOPOLVM_CLAIM);
    size_t i;
    json_t *volume;
    json_array_foreach((json_t *)volumes, i, volume) {
        const json_t *claim = json_at(volume, "spec", "claimRef");
        const char *ns = json_str(claim, "namespace"), *its = json_str(claim, "name");
        if (ns && its && str_eq(kube_name(volume), name))
            return mem_printf("%s/%s", ns, its);
    }
    return mark && strrchr(mark, '/') ? mem_strndup(mark, (size_t)(strrchr(mark, '/') - mark))
                                      : mem_strdup("");
}

static void add_row(struct ctl_table *t, const json_t *lv, const json_t *volumes)
{
    char age[AGE_MAX];
    age_since(json_text(lv, "metadata", "creationTimestamp"), clock_real_ns(clock_system()), age);
    struct logical_volume v = logical_volume_of(lv);
    _cleanup_free_ char *claim = claim_of(&v, volumes);
    char size[TOPOLVM_SIZE_MAX], current[TOPOLVM_SIZE_MAX];
    ctl_table_add(t, (const char *const[]){
                         kube_name(lv), v.spec.node_name, v.spec.class_name,
                         topolvm_size(v.spec.size, size),
                         v.status.current_size ? topolvm_size(v.status.current_size, current) : "",
                         state_of(&v), v.status.message, age, claim, v.status.volume_id});
}

static void print_table(const json_t *lvs, const json_t *volumes, bool wide)
{
    static const char *const titles[] = {"NAME",    "NODE",      "CLASS",   "SIZE",
                                         "CURRENT", "STATE",     "MESSAGE", "AGE",
                                         "CLAIM",   "VOLUME ID", NULL};
    static const char *const narrow[] = {"NAME",  "NODE",    "CLASS", "SIZE", "CURRENT",
                                         "STATE", "MESSAGE", "AGE",   NULL};
    struct ctl_table t;
    ctl_table_init(&t, wide ? titles : narrow);
    size_t i;
    json_t *lv;
    json_array_foreach((json_t *)lvs, i, lv)
        add_row(&t, lv, volumes);
    ctl_table_print(&t, stdout);
    ctl_table_done(&t);
}

static bool is_wanted(const struct cli_args *args, const json_t *lv)
{
    const char *node = ctl_settings(args)->node;
    return !node || str_eq(logical_volume_of(lv).spec.node_name, node);
}

/* Those that were named, or all; NULL with an error. */
static json_t *find(const struct cli_args *args, struct kube_client *client, struct err *e)
{
    json_auto_t *all =
        args->count ? json_array() : kube_list_any(client, &api_logical_volume, NULL, NULL, e);
    if (!all)
        return NULL;
    for (int i = 0; i < args->count; i++) {
        json_t *lv = kube_get_any(client, &api_logical_volume, NULL, args->words[i], e);
        if (!lv)
            return NULL;
        json_array_append_new(all, lv);
    }
    json_t *wanted = json_array(), *lv;
    size_t i;
    json_array_foreach(all, i, lv) {
        if (is_wanted(args, lv))
            json_array_append(wanted, lv);
    }
    return wanted;
}

static int show(const struct cli_args *args, struct kube_client *client, const json_t *lvs,
                struct err *e)
{
    const char *output = ctl_settings(args)->output;
    bool wide = output && str_eq(output, "wide");
    size_t i;
    json_t *lv;
    if (output && str_eq(output, "name")) {
        json_array_foreach((json_t *)lvs, i, lv)
            printf(CTL_LV "/%s\n", CTL_LV_GROUP(lv), kube_name(lv));
    } else if (output && !wide && !str_eq(output, "table")) {
        json_auto_t *list = args->count == 1 ? json_incref(json_array_get(lvs, 0)) : ctl_list(lvs);
        ctl_print(list, output);
    } else if (!json_array_size(lvs)) {
        fputs("No resources found\n", stderr);
    } else {
        const struct kube_resource r = kube_resource("v1", "PersistentVolume");
        json_auto_t *volumes = wide ? kube_list(client, &r, NULL, NULL, e) : json_array();
        if (!volumes)
            return -1;
        print_table(lvs, volumes, wide);
    }
    return 0;
}

static int run_list(const struct cli_args *args)
{
    struct err e = {0};
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    json_auto_t *lvs = client ? find(args, client, &e) : NULL;
    if (!lvs || show(args, client, lvs, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    CTL_LIST_OPTION("claims and volume ids"),
    {"node", 'n', "NODE", CLI_STRING, CTL_AT(node), .doc = "Show only those of this node."},
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(lv_list) = {
    .name = "lv list",
    .topic = CLI_STORAGE,
    .arguments = "[NAME]...",
    .most = -1,
    .summary = "Show logical volumes",
    .doc = "Shows LogicalVolumes: where they are, how large they are and should be, and what is "
           "wrong with them.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop lv list -o wide", "Show all, with their claims."},
            {"orlop lv list --node node-1 -o name", "Print names, for a script."},
            {NULL},
        },
    .run = run_list,
};
