/*
 * orlop convert: manifests in another form.
 */
#include "api/convert.h"

#include "api/admit.h"
#include "cli/cli.h"
#include "ctl/manifest.h"
#include "json/yaml.h"
#include "ui/term.h"

struct settings {
    const char *to, *output;
};

struct conversion {
    enum api_form form;
    bool json;
    json_t *context; /* every object that was read, for claims */
    json_t *claims;  /* StoragePoolClaims wait until all others are known */
    struct api_report report;
    unsigned long errors;
    struct str out; /* nothing is printed unless everything could be converted */
};

static void add_result(struct conversion *c, const json_t *object)
{
    if (c->json) {
        json_format_pretty(object, &c->out);
        str_append_c(&c->out, '\n');
    } else {
        str_append(&c->out, c->out.len ? "---\n" : "");
        json_yaml_format(object, &c->out);
    }
}

static json_t *converted(struct conversion *c, const json_t *object)
{
    const struct api_kind *kind = api_kind_of(object, &c->report);
    if (!kind)
        return NULL;
    json_auto_t *admitted = json_deep_copy(object);
    if (!api_admit(kind, admitted, NULL, API_UNKNOWN_ERROR, &c->report))
        return NULL;
    api_report_clear(&c->report); /* its warnings are said again by the conversion */
    return api_convert(kind, object, c->form, &c->report);
}

static int convert(void *context, const struct manifest *m)
{
    struct conversion *c = context;
    if (m->error) {
        c->errors++;
        manifest_show_error(stderr, m);
        return 0;
    }
    json_array_append(c->context, m->object);
    if (str_eq(json_text(m->object, "kind"), "CStorPool"))
        return 0; /* only ever the context of a claim */
    if (api_is_spc(m->object)) {
        json_array_append(c->claims, m->object);
        return 0;
    }
    api_report_clear(&c->report);
    json_auto_t *result = converted(c, m->object);
    vec_for_each(&c->report.problems, p)
        manifest_show(stderr, m, p);
    c->errors += c->report.errors;
    if (result)
        add_result(c, result);
    return 0;
}

static void convert_claims(struct conversion *c)
{
    size_t i;
    json_t *claim;
    json_array_foreach(c->claims, i, claim) {
        api_report_clear(&c->report);
        json_auto_t *cspc = api_convert_spc(claim, c->context, &c->report);
        json_auto_t *result = cspc ? converted(c, cspc) : NULL;
        _cleanup_(str_done) struct str name = {0};
        manifest_name(claim, &name);
        vec_for_each(&c->report.problems, p) {
            _cleanup_(str_done) struct str line = {0};
            str_appendf(&line, "%s: %s: %s: %s", str_get(&name), p->warning ? "warning" : "error",
                        p->path, p->message);
            ui_text(stderr, str_get(&line), line.len);
            fputc('\n', stderr);
        }
        c->errors += c->report.errors;
        if (result)
            add_result(c, result);
    }
}

static int run(const struct cli_args *args)
{
    const struct settings *s = args->settings;
    struct conversion c = {
        .form = str_eq(s->to, "published") ? API_FORM_PUBLISHED : API_FORM_SEED,
        .json = str_eq(s->output, "json"),
        .context = json_array(),
        .claims = json_array(),
    };
    struct err e = {0};
    int status = CLI_DONE;
    if (manifest_each(args->words, args->count, convert, &c, &e) < 0)
        status = cli_fail(args, "%s", e.msg);
    convert_claims(&c);
    if (c.errors)
        status = CLI_FAILED;
    if (status == CLI_DONE)
        fputs(str_get(&c.out), stdout);
    json_decref(c.context);
    json_decref(c.claims);
    api_report_done(&c.report);
    str_done(&c.out);
    return status == CLI_DONE ? cli_finish(args) : status;
}

static const struct cli_option options[] = {
    {"to", 't', "FORM", CLI_ENUM, CLI_AT(struct settings, to), .def = "seed",
     .choices = CLI_WORDS("seed", "published"), .doc = "The form to write."},
    {"output", 'o', "FORMAT", CLI_ENUM, CLI_AT(struct settings, output), .def = "yaml",
     .choices = CLI_WORDS("yaml", "json"), .doc = "Output format."},
    {0},
};

CLI_COMMAND(convert_command) = {
    .name = "convert",
    .topic = CLI_MANIFESTS,
    .arguments = "FILE...",
    .least = 1,
    .most = -1,
    .summary = "Rewrite manifests in the seed's or the published form",
    .doc = "Reads manifests in any form that is understood and writes them in one: 'seed', the "
           "form that Orlop keeps, or 'published', the API versions and names of the projects that "
           "it follows. A StoragePoolClaim becomes a CStorPoolCluster; give its CStorPools, or the "
           "BlockDevices that it lists, among the files, because only they know the nodes.\n\n"
           "Nothing is written when anything cannot be converted.",
    .settings = sizeof(struct settings),
    .options = options,
    .complete = CLI_FILES,
    .examples =
        (const char *const[][2]){
            {"kubectl get spc,csp -o yaml > old.yaml && orlop convert old.yaml",
             "Bring the pools of a StoragePoolClaim over."},
            {"orlop convert --to published cspc.yaml", "The form that cstor-operators reads."},
            {NULL},
        },
    .run = run,
};
