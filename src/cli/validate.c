/*
 * orlop validate: the rules of admission, without a server.
 */
#include "api/admit.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/manifest.h"
#include "json/yaml.h"

struct validation {
    struct map *old; /* "kind/namespace/name" -> json_t, owned */
    bool comparing;  /* there are old objects */
    bool collecting; /* reading the old objects */
    bool quiet;
    json_t *problems; /* for -o; NULL: problems are shown as they are found */
    struct api_report report;
    unsigned long objects, errors, warnings;
};

/* The same object under any of its kind's API versions; NULL when it has no name yet. */
static char *identity(const struct api_kind *kind, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *namespace = json_str(metadata, "namespace"), *name = json_str(metadata, "name");
    if (!name || !*name)
        return NULL;
    return mem_printf("%s/%s/%s", kind->kind, namespace && *namespace ? namespace : "default",
                      name);
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
        if (p->warning && (v->quiet || v->collecting))
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

static int check_object(void *context, const struct manifest *m)
{
    struct validation *v = context;
    if (m->error)
        return show_syntax_error(v, m);
    api_report_clear(&v->report);
    const struct api_kind *kind = api_kind_of(m->object, &v->report);
    if (kind) {
        _cleanup_free_ char *key = v->comparing ? identity(kind, m->object) : NULL;
        const json_t *old = key && !v->collecting ? map_get(v->old, key) : NULL;
        if (old)
            keep_status(m->object, old);
        api_admit(kind, m->object, old, API_UNKNOWN_ERROR, &v->report);
        if (v->collecting && key)
            json_decref(map_set(v->old, key, json_incref(m->object)));
    }
    v->objects += !v->collecting;
    show_report(v, m);
    return 0;
}

static int print_problems(const struct cli_args *args, const struct validation *v)
{
    _cleanup_(str_done) struct str text = {0};
    if (str_eq(cli_get(args, "output"), "json")) {
        json_format_pretty(v->problems, &text);
        str_append_c(&text, '\n');
    } else {
        json_yaml_format(v->problems, &text);
    }
    fputs(str_get(&text), stdout);
    return cli_finish(args);
}

static int validate(const struct cli_args *args, struct validation *v)
{
    struct err e = {0};
    const char *old = cli_get(args, "old");
    if (old) {
        v->comparing = v->collecting = true;
        if (manifest_each((char *const[]){(char *)old}, 1, check_object, v, &e) < 0)
            return cli_fail(args, "%s", e.msg);
        v->collecting = false;
    }
    if (manifest_each(args->words, args->count, check_object, v, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    if (v->problems && print_problems(args, v) != CLI_DONE)
        return CLI_FAILED;
    if (v->errors)
        return CLI_FAILED;
    if (!v->objects)
        return cli_fail(args, "no object in %s", args->words[0]);
    if (!v->problems && !v->quiet)
        printf("%lu object%s valid\n", v->objects, v->objects == 1 ? "" : "s");
    return cli_finish(args);
}

static int run(const struct cli_args *args)
{
    struct map old = {0};
    struct validation v = {.old = &old, .quiet = cli_get(args, "quiet") != NULL};
    if (cli_get(args, "output"))
        v.problems = json_array();
    int status = validate(args, &v);
    map_for_each(&old, it)
        json_decref(it->value);
    map_done(&old);
    json_decref(v.problems);
    api_report_done(&v.report);
    return status;
}

const struct cli_command cli_validate = {
    .name = "validate",
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
        "input. Rules that depend on other objects in the cluster (whether a block device is "
        "free) are not checked here.",
    .options =
        (const struct cli_option[]){
            {"old", 0, "FILE", .complete = CLI_FILES,
             .doc = "The objects as they are now, to check updates of them."},
            {"output", 'o', "FORMAT", .choices = (const char *const[]){"json", "yaml", NULL},
             .doc = "Write the problems as a list in json or yaml to standard output."},
            {"quiet", 'q', .doc = "Say nothing of what is valid, and do not warn."},
            {0},
        },
    .complete = CLI_FILES,
    .examples =
        (const char *const[][2]){
            {"orlop validate examples/", "Check every manifest in a folder."},
            {"kubectl get cspc pool -o yaml | orlop validate --old - new.yaml",
             "Check whether an edit would be accepted."},
            {NULL},
        },
    .run = run,
};
