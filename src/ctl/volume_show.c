/*
 * volume list and show.
 */
#include "ctl/volume.h"
#include "ui/term.h"

/* List. */

static void add_row(struct ctl_table *t, const json_t *volume, bool with_ns)
{
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_volume v = jiva_volume_of(volume, &arena);
    size_t all;
    unsigned healthy = ctl_volume_healthy(&v, &all);
    const json_t *trouble = ctl_volume_trouble(volume);
    const char *resize = kube_annotation(volume, API_JIVA_RESIZE_LOCK);
    _cleanup_free_ char *replicas = mem_printf("%u/%zu", healthy, all);
    char age[AGE_MAX];
    ctl_age(volume, age);
    const char *cells[] = {kube_namespace(volume),
                           kube_name(volume),
                           v.spec.capacity.text,
                           v.status.phase,
                           v.status.status,
                           replicas,
                           age,
                           v.iscsi.portal,
                           *v.status.operation ? v.status.operation
                           : resize            ? resize
                                               : "",
                           trouble ? json_str(trouble, "message") : ""};
    ctl_table_add(t, cells + !with_ns);
}

static void print_table(const json_t *volumes, bool with_ns, bool wide)
{
    static const char *const titles[] = {"NAMESPACE", "NAME",     "SIZE", "PHASE",
                                         "STATUS",    "REPLICAS", "AGE",  "PORTAL",
                                         "OPERATION", "MESSAGE",  NULL};
    static const char *const narrow[] = {"NAMESPACE", "NAME",     "SIZE", "PHASE",
                                         "STATUS",    "REPLICAS", "AGE",  NULL};
    struct ctl_table t;
    ctl_table_init(&t, (wide ? titles : narrow) + !with_ns);
    size_t i;
    json_t *volume;
    json_array_foreach((json_t *)volumes, i, volume)
        add_row(&t, volume, with_ns);
    ctl_table_print(&t, stdout);
    ctl_table_done(&t);
}

static json_t *find(struct ctl_volume *v, struct err *e)
{
    bool all = ctl_settings(v->args)->all_namespaces;
    if (!v->args->count)
        return kube_list(v->client, &v->volumes, all ? NULL : v->ns, NULL, e);
    json_t *found = json_array();
    for (int i = 0; i < v->args->count; i++) {
        json_t *volume = kube_get(v->client, &v->volumes, v->ns, v->args->words[i], e);
        if (!volume) {
            json_decref(found);
            return NULL;
        }
        json_array_append_new(found, volume);
    }
    return found;
}

static int run_list(const struct cli_args *args)
{
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    int status = ctl_volume_open(args, &v);
    if (status != CLI_DONE)
        return status;
    struct err e = {0};
    json_auto_t *volumes = find(&v, &e);
    if (!volumes)
        return cli_fail(args, "%s", e.msg);
    const char *output = ctl_settings(args)->output;
    if (ctl_print_objects(args, volumes, "jivavolume.openebs.io"))
        return cli_finish(args);
    if (!json_array_size(volumes)) {
        fputs("No resources found\n", stderr);
    } else {
        print_table(volumes, ctl_settings(args)->all_namespaces, output && str_eq(output, "wide"));
    }
    return cli_finish(args);
}

static const struct cli_option list_options[] = {
    CTL_LIST_OPTION("portals and what is going on"),
    {"all-namespaces", 'A', NULL, CLI_SWITCH, CTL_AT(all_namespaces),
     .doc = "Show those of all namespaces."},
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_list) = {
    .name = "volume list",
    .topic = CLI_STORAGE,
    .arguments = "[NAME]...",
    .most = -1,
    .summary = "Show replicated volumes",
    .doc = "Shows JivaVolumes: how large they are, whether they take writes, and how many of their "
           "replicas are complete.",
    .settings = sizeof(struct ctl_settings),
    .options = list_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume list -A", "Show all."},
            {NULL},
        },
    .run = run_list,
};

/* Show. */

static void put(const char *text)
{
    ui_text(stdout, text, strlen(text));
}

/* The pod at an address, or of a component; NULL. Borrowed. */
static const json_t *pod_at(const json_t *pods, const char *component, const char *ip)
{
    size_t i;
    json_t *pod;
    json_array_foreach((json_t *)pods, i, pod) {
        const char *its = kube_label(pod, "openebs.io/component");
        if (its && str_eq(its, component) && !kube_deleting(pod) &&
            (!ip || str_eq(json_text(pod, "status", "podIP"), ip)))
            return pod;
    }
    return NULL;
}

static void print_bar(int64_t percent)
{
    enum { WIDTH = 20 };
    putchar('[');
    for (int i = 0; i < WIDTH; i++)
        putchar(i < percent * WIDTH / 100 ? '#' : '-');
    printf("] %lld %%", (long long)percent);
}

static enum ui_colour colour_of(const char *mode)
{
    return str_eq(mode, "RW") ? UI_GREEN : str_eq(mode, "WO") ? UI_YELLOW : UI_RED;
}

static void print_replica(const struct jiva_replica *r, const json_t *pods, bool last)
{
    const json_t *pod = pod_at(pods, "jiva-replica", r->address);
    printf("  %s ", last ? "└──" : "├──");
    put(*r->address ? r->address : "(no address)");
    printf("  ");
    put(pod ? json_text(pod, "spec", "nodeName") : "(no pod)");
    printf("  %s", ui_colour(stdout, colour_of(r->mode)));
    put(r->mode);
    printf(" ");
    put(r->state);
    printf("%s", ui_colour(stdout, UI_PLAIN));
    if (r->percent != JIVA_NOT_SAID) {
        printf("  ");
        print_bar(r->percent);
        printf(", %lld s left, %lld writes behind", (long long)r->seconds_left, (long long)r->lag);
    }
    putchar('\n');
}

static void print_target(const struct jiva_volume *v, const json_t *pods)
{
    const json_t *pod = pod_at(pods, "jiva-controller", NULL);
    for (size_t i = 0; i < v->status.initiators.len; i++) {
        put(v->status.initiators.p[i].name);
        printf(" at ");
        put(v->status.initiators.p[i].address);
        putchar('\n');
    }
    printf("%s\n", v->status.initiators.len ? "  │" : "(nobody is logged in)\n  │");
    put(*v->iscsi.portal ? v->iscsi.portal : "(no portal yet)");
    printf("  ");
    put(pod ? json_text(pod, "spec", "nodeName") : "(no pod)");
    printf("  ");
    put(v->status.status);
    printf("  ");
    put(v->iscsi.iqn);
    putchar('\n');
}

static void print_more(const struct jiva_volume *v)
{
    const json_t *it, *conditions = json_at(v->json, "status", "conditions");
    const char *lock = kube_annotation(v->json, API_JIVA_RESIZE_LOCK);
    for (size_t i = 0; i < v->status.snapshots.len; i++) {
        printf("%s", i ? " " : "\nsnapshots: ");
        put(v->status.snapshots.p[i].name);
    }
    if (v->status.snapshots.len)
        putchar('\n');
    if (*v->status.operation || lock) {
        printf("\nunder way: ");
        put(*v->status.operation ? v->status.operation : "a resize");
        if (lock) {
            printf(" (JivaVolumeResize ");
            put(lock);
            putchar(')');
        }
        putchar('\n');
    }
    const char *gap = "\n";
    for (size_t i = 0; (it = json_array_get(conditions, i)); i++) {
        if (!ctl_volume_is_trouble(it))
            continue;
        printf("%s", gap);
        put(json_str(it, "message"));
        putchar('\n');
        gap = "";
    }
}

static void draw(const json_t *volume, const json_t *pods)
{
    _cleanup_(arena_done) struct arena arena = {0};
    const struct jiva_volume v = jiva_volume_of(volume, &arena);
    const char *has = v.status.capacity.text;
    put(kube_namespace(volume));
    putchar('/');
    put(kube_name(volume));
    printf("  ");
    put(*has ? has : v.spec.capacity.text);
    printf("  %s", ui_colour(stdout, UI_BOLD));
    put(v.status.phase);
    printf("%s\n\n", ui_colour(stdout, UI_PLAIN));
    print_target(&v, pods);
    for (size_t i = 0; i < v.status.replicas.len; i++)
        print_replica(&v.status.replicas.p[i], pods, i + 1 == v.status.replicas.len);
    print_more(&v);
}

static int run_show(const struct cli_args *args)
{
    _cleanup_(ctl_volume_close) struct ctl_volume v = {0};
    int status = ctl_volume_open(args, &v);
    if (status != CLI_DONE)
        return status;
    struct err e = {0};
    const char *output = ctl_settings(args)->output, *name = args->words[0];
    json_auto_t *volume = kube_get(v.client, &v.volumes, v.ns, name, &e);
    if (!volume)
        return cli_fail(args, "%s", e.msg);
    if (ctl_settings(args)->login)
        return ctl_volume_print_login(&v, volume);
    if (output && str_eq(output, "url"))
        return cli_misuse(args, "-o url goes with --login");
    if (output && !str_eq(output, "text")) {
        ctl_print(volume, output);
        return cli_finish(args);
    }
    _cleanup_free_ char *labels = mem_printf("openebs.io/persistent-volume=%s", name);
    const struct kube_query q = {.labels = labels};
    json_auto_t *pods =
        kube_list(v.client, &v.pods, v.ns, &q, NULL); /* who may not see them sees less */
    draw(volume, pods);
    return cli_finish(args);
}

static const struct cli_option show_options[] = {
    {"login", 'l', NULL, CLI_SWITCH, CTL_AT(login),
     .doc = "Show instead how to log in to it, including the secrets."},
    {"output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output), .def = "text",
     .choices = CLI_WORDS("text", "json", "yaml", "url"),
     .doc = "Output format. text is a picture; url needs --login."},
    CTL_VOLUME_OPTIONS,
    {0},
};

CLI_COMMAND(volume_show) = {
    .name = "volume show",
    .topic = CLI_STORAGE,
    .arguments = "NAME",
    .least = 1,
    .most = 1,
    .summary = "Draw a volume: initiators, target, replicas",
    .doc =
        "Draws who is logged in, where the target is, and each replica: its node, its state, how "
        "far behind it is, and the progress of a rebuild. Below stands what is going on or "
        "wrong.\n\n"
        "With --login it shows how to log in by hand: portal, target, unit, the name and "
        "password of the volume, those with which the target proves itself (mutual CHAP), and "
        "all of it as a URL that libiscsi and qemu understand. It reads the volume's Secret, "
        "NAME-chap: whoever may read that may use the volume.",
    .settings = sizeof(struct ctl_settings),
    .options = show_options,
    .examples =
        (const char *const[][2]){
            {"orlop volume show data", "Show one."},
            {"orlop volume show data --login", "Show how to log in to it by hand."},
            {"qemu-img info \"$(orlop volume show data --login -o url)\"", "Use it with qemu."},
            {NULL},
        },
    .run = run_show,
};
