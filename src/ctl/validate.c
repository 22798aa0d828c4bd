/*
 * orlop validate: the rules of admission, without a server.
 */
#include "api/admit.h"
#include "api/among.h"
#include "base/map.h"
#include "cli/cli.h"
#include "ctl/manifest.h"
#include "json/yaml.h"

struct settings {
    const char *old, *cluster, *output;
    bool quiet;
};

struct validation {
    struct map *old;    /* "kind/namespace/name" -> json_t, owned */
    struct map *others; /* the same: what rules that look at other objects see */
    struct map *into;   /* reading objects to compare with, into this one; NULL: checking */
    bool among;         /* there are others */
    bool quiet;
    json_t *problems; /* for -o; NULL: problems are shown as they are found */
    struct api_report report;
    unsigned long objects, errors, warnings;
};

static char *key_of(const struct api_kind *kind, const char *namespace, const char *name)
{
    return mem_printf("%s/%s/%s", kind->kind, namespace && *namespace ? namespace : "default",
                      name);
}

/* The same object under any of its kind's API versions; NULL when it has no name yet. */
static char *identity(const struct api_kind *kind, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = json_str(metadata, "name");
    return name && *name ? key_of(kind, json_str(metadata, "namespace"), name) : NULL;
}

/* Other objects are those of --cluster, then of --old, then what was found valid before. */
static json_t *get_other(void *context, const struct api_kind *kind, const char *namespace,
                         const char *name, struct err *e)
{
    const struct validation *v = context;
    (void)e;
    _cleanup_free_ char *key = key_of(kind, namespace, name);
    return json_incref(map_get(v->others, key));
}

static json_t *list_others(void *context, const struct api_kind *kind, const char *namespace,
                           struct err *e)
{
    const struct validation *v = context;
    (void)e;
    _cleanup_free_ char *prefix = namespace ? key_of(kind, namespace, "") : NULL;
    json_t *found = json_array();
    map_for_each(v->others, it) {
        const char *its = json_str(it->value, "kind");
        if (prefix ? str_starts_with(it->key, prefix) : its && str_eq(its, kind->kind))
            json_array_append(found, it->value);
    }
    return found;
}

static void check_among(struct validation *v, const struct api_kind *kind, const json_t *object,
                        const json_t *old)
{
    const struct api_lookup lookup = {.get = get_other, .list = list_others, .context = v};
    const struct api_among a = {
        .lookup = &lookup, .object = object, .old = old, .report = &v->report};
    api_check_among(kind, &a, NULL); /* files do not fail once they were read */
}

static void keep(struct map *into, const char *key, json_t *object)
{
    json_decref(map_set(into, key, json_incref(object)));
}

static void add_problem(struct validation *v, const struct manifest *m, struct json_pos pos,
                        const struct api_problem *problem, const char *message)
{
    _cleanup_(str_done) struct str name = {0};
    manifest_name(m->object, &name);
    json_array_append_new(v->problems,
                          json_pack("{s:s,s:i,s:i,s:s,s:s,s:s,s:s,s:s}", "file", m->file, "line",
                                    (int)pos.line, "column", (int)pos.column, "severity",
                                    problem && problem->warning ? "warning" : "error", "object",
                                    str_get(&name), "field", problem ? problem->path : "", "reason",
                                    problem ? api_cause_reason(problem->cause) : "SyntaxError",
                                    "message", message));
}

static int show_syntax_error(struct validation *v, const struct manifest *m)
{
    v->errors++;
    if (v->problems)
        add_problem(v, m, m->doc->start, NULL, m->error->msg);
    else
        manifest_show_error(stderr, m);
    return 0;
}

static void show_report(struct validation *v, const struct manifest *m)
{
    vec_for_each(&v->report.problems, p) {
        if (p->warning && (v->quiet || v->into))
            continue; /* the old objects are what they are */
        if (v->problems)
            add_problem(v, m, manifest_locate(m, p), p, p->message);
        else
            manifest_show(stderr, m, p);
    }
    if (v->report.errors > API_MAX_PROBLEMS && !v->problems)
        fprintf(stderr, "%s: %u more errors in this object\n", m->file,
                v->report.errors - API_MAX_PROBLEMS);
    v->errors += v->report.errors;
    v->warnings += v->report.warnings;
}

/* Manifests say nothing of status, and applying one leaves it alone. */
static void keep_status(json_t *object, const json_t *old)
{
    const json_t *status = json_object_get(old, "status"), *is = json_object_get(object, "status");
    if (status && (!is || json_is_null(is)))
        json_object_set_new(object, "status", json_deep_copy(status));
}

/* An object to compare with: only its form counts. */
static void take_object(struct validation *v, const struct api_kind *kind, json_t *object)
{
    _cleanup_free_ char *key = identity(kind, object);
    if (!key || !api_admit_form(kind, object, API_UNKNOWN_IGNORE, &v->report))
        return;
    keep(v->into, key, object);
    if (v->into == v->old)
        keep(v->others, key, object);
}

static void check_one(struct validation *v, const struct api_kind *kind, json_t *object)
{
    _cleanup_free_ char *key = identity(kind, object);
    const json_t *old = key ? map_get(v->old, key) : NULL;
    if (old)
        keep_status(object, old);
    if (!api_admit(kind, object, old, API_UNKNOWN_ERROR, &v->report) || !v->among)
        return;
    check_among(v, kind, object, old);
    if (key && !v->report.errors)
        keep(v->others, key, object);
}

static int check_object(void *context, const struct manifest *m)
{
    struct validation *v = context;
    if (m->error)
        return show_syntax_error(v, m);
    api_report_clear(&v->report);
    const struct api_kind *kind = api_kind_of(m->object, &v->report);
    if (kind && v->into)
        take_object(v, kind, m->object);
    else if (kind)
        check_one(v, kind, m->object);
    v->objects += !v->into;
    show_report(v, m);
    return 0;
}

static int print_problems(const struct cli_args *args, const struct validation *v)
{
    const struct settings *s = args->settings;
    _cleanup_(str_done) struct str text = {0};
    if (str_eq(s->output, "json")) {
        json_format_pretty(v->problems, &text);
        str_append_c(&text, '\n');
    } else {
        json_yaml_format(v->problems, &text);
    }
    fputs(str_get(&text), stdout);
    return cli_finish(args);
}

/* Reads the objects of a file; NULL: there is none. */
static int read_objects(const struct cli_args *args, const char *file, struct validation *v,
                        struct map *into)
{
    struct err e = {0};
    if (!file)
        return CLI_DONE;
    v->into = into;
    int r = manifest_each((char *const[]){(char *)(uintptr_t)file}, 1, check_object, v, &e);
    v->into = NULL;
    return r < 0 ? cli_fail(args, "%s", e.msg) : CLI_DONE;
}

static int validate(const struct cli_args *args, struct validation *v)
{
    struct err e = {0};
    const struct settings *s = args->settings;
    v->among = s->cluster;
    if (read_objects(args, s->cluster, v, v->others) != CLI_DONE ||
        read_objects(args, s->old, v, v->old) != CLI_DONE)
        return CLI_FAILED;
    if (manifest_each(args->words, args->count, check_object, v, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (s->output && print_problems(args, v) != CLI_DONE)
        return CLI_FAILED;
    if (v->errors)
        return CLI_FAILED;
    if (!v->objects)
        return cli_fail(args, "no object in %s", args->words[0]);
    if (!v->problems && !v->quiet)
        printf("%lu object%s valid\n", v->objects, v->objects == 1 ? "" : "s");
    return cli_finish(args);
}

static void free_objects(struct map *objects)
{
    map_for_each(objects, it)
        json_decref(it->value);
    map_done(objects);
}

static int run(const struct cli_args *args)
{
    const struct settings *s = args->settings;
    struct map old = {0}, others = {0};
    struct validation v = {.old = &old, .others = &others, .quiet = s->quiet};
    if (s->output)
        v.problems = json_array();
    int status = validate(args, &v);
    free_objects(&old);
    free_objects(&others);
    json_decref(v.problems);
    api_report_done(&v.report);
    return status;
}

static const struct cli_option options[] = {
    {"old", 0, "FILE", CLI_FILE, CLI_AT(struct settings, old),
     .doc = "The objects as they are now, to check updates of them."},
    {"cluster", 0, "FILE", CLI_FILE, CLI_AT(struct settings, cluster),
     .doc = "Other objects as they are now, for rules that look at them."},
    {"output", 'o', "FORMAT", CLI_ENUM, CLI_AT(struct settings, output),
     .choices = CLI_WORDS("json", "yaml"),
     .doc = "Write the problems as a list to standard output."},
    {"quiet", 'q', NULL, CLI_SWITCH, CLI_AT(struct settings, quiet),
     .doc = "Say nothing of what is valid, and do not warn."},
    {0},
};

CLI_COMMAND(validate_command) = {
    .name = "validate",
    .topic = CLI_MANIFESTS,
    .arguments = "FILE...",
    .least = 1,
    .most = -1,
    .summary = "Check manifests against the rules of their kinds",
    .doc =
        "Checks every object of the manifests as the API server would on creation: structure, "
        "values, and the rules between fields. With --old, an object that is also among the old "
        "ones is checked as an update of that one, which replaces all of it but a status that is "
        "left out. Each mistake is reported with file, line, "
        "column and field, and what to write instead.\n\n"
        "FILE may be a folder, which is searched for .yaml, .yml and .json, or '-' for standard "
        "input. Rules that look at other objects of the cluster (whether a block device is free) "
        "are asked when --cluster gives those objects; a file of nodes, block devices, their "
        "claims, pools and replicas is enough.",
    .settings = sizeof(struct settings),
    .options = options,
    .complete = CLI_FILES,
    .examples =
        (const char *const[][2]){
            {"orlop validate examples/", "Check every manifest in a folder."},
            {"kubectl get cspc pool -o yaml | orlop validate --old - new.yaml",
             "Check whether an edit would be accepted."},
            {"orlop validate --cluster <(kubectl get no,bd,bdc,cspc,cspi,cvr -A -o yaml) new.yaml",
             "Check whether its devices can be had."},
            {NULL},
        },
    .run = run,
};
