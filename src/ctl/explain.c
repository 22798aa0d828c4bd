/*
 * orlop explain: a kind and its fields, from its table.
 */
#include "api/kind.h"
#include "cli/cli.h"
#include "ui/term.h"

static void print_words(const char *const *words, const char *title)
{
    printf("%s", title);
    for (const char *const *word = words; *word; word++)
        printf("%s%s", word == words ? "" : ", ", **word ? *word : "\"\"");
    printf("\n");
}

/* What the table says of a field beside its doc line. */
static void print_rules(const struct api_field *f, const char *indent)
{
    char title[32];
    if (f->words) {
        snprintf(title, sizeof(title), "%sOne of: ", indent);
        print_words(f->words, title);
    }
    if (f->type == API_INT && f->min < f->max && f->max != INT64_MAX)
        printf("%sFrom %lld to %lld.\n", indent, (long long)f->min, (long long)f->max);
    if (f->def)
        printf("%sDefault: %s\n", indent, f->def);
    if (f->flags & API_IMMUTABLE)
        printf("%sCannot be changed once it is set.\n", indent);
    if (f->aliases) {
        snprintf(title, sizeof(title), "%sAlso written: ", indent);
        print_words(f->aliases, title);
    }
}

static void print_field(const struct api_field *f, int depth, bool recursive)
{
    char type[64];
    printf("%*s%s%s%s\t<%s>%s\n", 2 + 2 * depth, "", ui_colour(stdout, UI_BOLD), f->name,
           ui_colour(stdout, UI_PLAIN), api_field_type_text(f, type),
           f->flags & API_REQUIRED ? " -required-" : "");
    if (recursive) {
        for (const struct api_field *m = f->fields; m && m->name; m++)
            print_field(m, depth + 1, true);
        return;
    }
    cli_wrap(stdout, f->doc, 4, 80);
    print_rules(f, "    ");
    putchar('\n');
}

static void print_head(const struct api_kind *kind, const struct api_field *field)
{
    const struct api_group_version *gv = api_kind_canonical(kind);
    if (*gv->group)
        printf("GROUP:      %s\n", gv->group);
    printf("KIND:       %s\nVERSION:    %s\n", kind->kind, gv->version);
    for (const struct api_group_version *other = gv + 1; other->group; other++) {
        char text[128];
        printf("%s%s\n", other == gv + 1 ? "ALSO:       " : "            ",
               api_version_text(other, text));
    }
    if (field) {
        char type[64];
        printf("\nFIELD: %s <%s>%s\n", field->name, api_field_type_text(field, type),
               field->flags & API_REQUIRED ? " -required-" : "");
    }
    printf("\nDESCRIPTION:\n");
    cli_wrap(stdout, field ? field->doc : kind->doc, 4, 80);
    if (field)
        print_rules(field, "    ");
}

/* The next step of spec.pools.raidGroups; NULL and a message when there is none of that name. */
static const struct api_field *step(const struct cli_args *args, const struct api_field *fields,
                                    const char *path, const char *name)
{
    const struct api_field *f = api_field_find(fields, name);
    if (!f)
        f = api_field_by_alias(fields, name);
    if (f)
        return f;
    const char *names[128];
    size_t n = 0;
    for (const struct api_field *m = fields; m && m->name && n + 1 < ARRAY_SIZE(names); m++)
        names[n++] = m->name;
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    cli_fail(args, "%s has no field '%s'%s%s%s", path, name, near ? "; did you mean '" : "",
             near ? near : "", near ? "'?" : "");
    return NULL;
}

static int unknown_kind(const struct cli_args *args, const char *name)
{
    fprintf(stderr, "orlop %s: there is no kind '%s'; the kinds are:\n", args->command->name, name);
    for (const struct api_kind *const *k = api_kinds; *k; k++)
        fprintf(stderr, "  %s\n", (*k)->kind);
    return CLI_FAILED;
}

struct settings {
    bool recursive;
};

static int run(const struct cli_args *args)
{
    const struct settings *s = args->settings;
    _cleanup_free_ char *path = mem_strdup(args->words[0]);
    char *rest = path, *name = strsep(&rest, ".");
    const struct api_kind *kind = api_kind_by_name(name);
    if (!kind)
        return unknown_kind(args, name);
    const struct api_field *fields = kind->fields, *field = NULL;
    while ((name = strsep(&rest, "."))) {
        _cleanup_free_ char *so_far = mem_strndup(args->words[0], (size_t)(name - path) - 1);
        name[strcspn(name, "[")] = '\0'; /* pools[0] is pools */
        if (!(field = step(args, fields, so_far, name)))
            return CLI_FAILED;
        fields = field->fields;
    }
    print_head(kind, field);
    if (fields)
        printf("\nFIELDS:\n");
    for (const struct api_field *f = fields; f && f->name; f++)
        print_field(f, 0, s->recursive);
    return cli_finish(args);
}

static const struct cli_option options[] = {
    {"recursive", 'R', NULL, CLI_SWITCH, CLI_AT(struct settings, recursive),
     .doc = "List all fields below, without their descriptions."},
    {0},
};

CLI_COMMAND(explain_command) = {
    .name = "explain",
    .topic = CLI_MANIFESTS,
    .arguments = "KIND[.FIELD]...",
    .least = 1,
    .most = 1,
    .summary = "Describe a kind and its fields",
    .doc = "Describes a kind, or a field of it, as its table has it: types, defaults, words, other "
           "names. KIND is a kind, its plural or its short name in any letter case.",
    .settings = sizeof(struct settings),
    .options = options,
    .complete = CLI_KINDS,
    .examples =
        (const char *const[][2]){
            {"orlop explain cspc.spec.pools.raidGroups", "The raid groups of a pool."},
            {NULL},
        },
    .run = run,
};
