/*
 * lv audit: what nodes have and what the API says, compared both ways.
 *
 *     Orphan     a node has a volume of ours, and there is no object (it says so on its Node)
 *     Lost       there is an object, and its node says that the volume is gone
 *     NodeGone   there is an object of a node that is no more
 */
#include "ctl/ctl.h"

static json_t *finding(const char *what, const char *node, const char *name, const json_t *size,
                       const char *message)
{
    json_t *it = json_pack("{s:s,s:s,s:s,s:s}", "finding", what, "node", node, "name", name,
                           "message", message);
    if (size)
        json_object_set(it, "size", (json_t *)(uintptr_t)size);
    return it;
}

static void add_orphans(const json_t *node, json_t *found)
{
    const char *text = topolvm_value(json_at(node, "metadata", "annotations"), "orphans");
    json_auto_t *orphans = text ? json_parse(text, strlen(text), NULL, NULL) : NULL;
    size_t i;
    json_t *it;
    json_array_foreach(orphans, i, it) {
        const char *vg = json_str(it, "vg"), *lv = json_str(it, "lv"), *of = json_str(it, "owner");
        char size[TOPOLVM_SIZE_MAX];
        json_auto_t *bytes =
            json_string(topolvm_size(json_integer_value(json_object_get(it, "sizeBytes")), size));
        _cleanup_free_ char *name = mem_printf("%s/%s", vg ? vg : "", lv ? lv : "");
        _cleanup_free_ char *message = mem_printf("it belonged to %s; remove it there: lvremove %s",
                                                  of && *of ? of : "nobody", name);
        json_array_append_new(found, finding("Orphan", kube_name(node), name, bytes, message));
    }
}

static void add_object(const json_t *lv, const json_t *nodes, json_t *found)
{
    const struct logical_volume v = logical_volume_of(lv);
    const char *node = v.spec.node_name;
    const json_t *size = json_at(lv, "spec", "size");
    if (!json_object_get(nodes, node)) {
        _cleanup_free_ char *text = mem_printf(
            "%s; if node %s will not be back: orlop node forget %s",
            kube_annotation(lv, TOPOLVM_FORGOTTEN) ? "its node was forgotten" : "its node is gone",
            node, node);
        json_array_append_new(found, finding("NodeGone", node, kube_name(lv), size, text));
    } else if (*v.status.volume_id && v.status.code == ERR_NOT_FOUND) {
        json_array_append_new(found, finding("Lost", node, kube_name(lv), size, v.status.message));
    }
}

static json_t *audit(struct kube_client *client, struct err *e)
{
    const struct kube_resource nodes_r = kube_resource("v1", "Node");
    json_auto_t *nodes = kube_list(client, &nodes_r, NULL, NULL, e);
    json_auto_t *lvs = nodes ? kube_list_any(client, &api_logical_volume, NULL, NULL, e) : NULL;
    if (!lvs)
        return NULL;
    json_t *found = json_array(), *it;
    json_auto_t *names = json_object();
    size_t i;
    json_array_foreach(nodes, i, it) {
        json_object_set_new(names, kube_name(it), json_true());
        add_orphans(it, found);
    }
    json_array_foreach(lvs, i, it)
        add_object(it, names, found);
    return found;
}

static void print_table(const json_t *found)
{
    struct ctl_table t;
    size_t i;
    json_t *it;
    ctl_table_init(&t, (const char *const[]){"FINDING", "NODE", "NAME", "SIZE", "MESSAGE", NULL});
    json_array_foreach((json_t *)found, i, it)
        ctl_table_add(&t, (const char *const[]){json_str(it, "finding"), json_str(it, "node"),
                                                json_str(it, "name"), json_str(it, "size"),
                                                json_str(it, "message")});
    ctl_table_print(&t, stdout);
    ctl_table_done(&t);
}

static int run_audit(const struct cli_args *args)
{
    struct err e = {0};
    const char *output = ctl_settings(args)->output;
    _cleanup_(kube_client_freep) struct kube_client *client = ctl_connect(args, &e);
    json_auto_t *found = client ? audit(client, &e) : NULL;
    if (!found)
        return cli_fail(args, "%s", e.msg);
    if (output && !str_eq(output, "table"))
        ctl_print(found, output);
    else if (json_array_size(found))
        print_table(found);
    else
        puts("Nodes and objects say the same.");
    int status = cli_finish(args);
    return status == CLI_DONE && json_array_size(found) ? CLI_FAILED : status;
}

static const struct cli_option options[] = {
    {"output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output), .def = "table",
     .choices = CLI_WORDS("table", "json", "yaml"), .doc = "Output format."},
    CTL_API_OPTIONS,
    {0},
};

CLI_COMMAND(lv_audit) = {
    .name = "lv audit",
    .topic = CLI_STORAGE,
    .summary = "Compare logical volumes with what nodes have",
    .doc =
        "Shows, both ways, what does not fit together: volumes on nodes that belong to no object "
        "(Orphan), objects whose volume is gone from its node (Lost), and objects of nodes that "
        "no longer exist (NodeGone). The exit status is 0 when it finds nothing, 1 otherwise. It "
        "changes nothing.",
    .settings = sizeof(struct ctl_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop lv audit", "Check all nodes."},
            {NULL},
        },
    .run = run_audit,
};
