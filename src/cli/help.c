/*
 * What the tables of commands say, for people: --help, man pages and the reference.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

void cli_wrap(FILE *out, const char *text, int indent, int width)
{
    int column = 0;
    while (*text) {
        if (*text == '\n') {
            bool paragraph = text[1] == '\n';
            text += paragraph ? 2 : 1;
            if (column)
                fputc('\n', out);
            if (paragraph)
                fputc('\n', out);
            column = 0;
            continue;
        }
        if (*text == ' ') {
            text++;
            continue;
        }
        int word = (int)strcspn(text, " \n");
        if (column && column + 1 + word > width) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column = fprintf(out, "%*s", indent, "") + fprintf(out, "%.*s", word, text);
        else
            column += fprintf(out, " %.*s", word, text);
        text += word;
    }
    if (column)
        fputc('\n', out);
}

/* "-n, --node NODE" */
static void option_text(const struct cli_option *option, struct str *text)
{
    if (option->letter)
        str_appendf(text, "-%c, ", option->letter);
    str_appendf(text, "--%s", option->name);
    if (cli_value_must(option))
        str_appendf(text, " %s", option->arg);
    else if (cli_value_may(option))
        str_appendf(text, "[=%s]", option->arg ? option->arg : "BOOL");
}

/* Its sentences, and what else the table knows. */
static void doc_text(const struct cli_option *option, struct str *text)
{
    str_append(text, option->doc);
    for (const char *const *word = option->choices; word && *word; word++)
        str_appendf(text, "%s%s%s", word == option->choices ? " One of " : ", ", *word,
                    word[1] ? "" : ".");
    if (option->required)
        str_append(text, " Required.");
    if (option->def && *option->def)
        str_appendf(text, " Default: %s.", option->def);
}

static void usage_text(const struct cli_command *command, struct str *text)
{
    str_appendf(text, "orlop %s", command->name);
    if (command->options)
        str_append(text, " [OPTION]...");
    if (command->arguments)
        str_appendf(text, " %s", command->arguments);
}

static void help_program(FILE *out)
{
    static const char *const topics[CLI_TOPICS] = {
        [CLI_MACHINE] = "A system on this machine",
        [CLI_MANIFESTS] = "Manifests",
        [CLI_STORAGE] = "Disks, pools and volumes",
        [CLI_PROGRAMS] = "Programs that serve",
        [CLI_OTHER] = "Other",
    };
    fputs("Orlop: container-attached storage for Kubernetes.\n\n"
          "Usage: orlop COMMAND [ARGUMENT]...\n",
          out);
    int last = -1;
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        if ((int)(*c)->topic != last)
            fprintf(out, "\n%s:\n", topics[(*c)->topic]);
        last = (int)(*c)->topic;
        fprintf(out, "  %-16s %s\n", (*c)->name, (*c)->summary);
    }
    fputs("\n'orlop COMMAND --help' tells more of each.\n", out);
}

void cli_help_group(const char *group, FILE *out)
{
    fprintf(out, "Usage: orlop %s COMMAND [ARGUMENT]...\n\nCommands:\n", group);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        const char *word = cli_command_in(*c, group);
        if (word)
            fprintf(out, "  %-12s %s\n", word, (*c)->summary);
    }
    fprintf(out, "\n'orlop %s COMMAND --help' tells more of each.\n", group);
}

void cli_help(const struct cli_command *command, FILE *out)
{
    if (!command) {
        help_program(out);
        return;
    }
    _cleanup_(str_done) struct str usage = {0};
    usage_text(command, &usage);
    fprintf(out, "%s\n\nUsage: %s\n\n", command->summary, str_get(&usage));
    cli_wrap(out, command->doc, 0, 80);
    fputs("\nOptions:\n", out);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        _cleanup_(str_done) struct str text = {0};
        option_text(o, &text);
        fprintf(out, "  %s\n", str_get(&text));
        str_clear(&text);
        doc_text(o, &text);
        cli_wrap(out, str_get(&text), 6, 80);
    }
    fputs("  -h, --help\n      Show this.\n", out);
    if (command->more)
        command->more(out);
    if (command->examples) {
        fputs("\nExamples:\n", out);
        for (const char *const(*e)[2] = command->examples; (*e)[0]; e++)
            fprintf(out, "  %s\n      %s\n", (*e)[0], (*e)[1]);
    }
}

/* Text for troff: its own characters escaped, paragraphs as .PP. */
static void man_text(FILE *out, const char *text)
{
    for (bool line_start = true; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        line_start = *text == '\n';
        if (text[0] == '\n' && text[1] == '\n') {
            fputs("\n.PP\n", out);
            text++;
        } else if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else if (*text == ',' && text[1] && text[1] != ' ') {
            fputs(",\\:", out); /* a line may end here */
        } else {
            fputc(*text, out);
        }
    }
    fputc('\n', out);
}

static void man_program(FILE *out)
{
    fputs(".TH ORLOP 1 \"\" \"Orlop " ORLOP_VERSION "\" \"Orlop\"\n.SH NAME\norlop \\- "
          "container-attached storage for Kubernetes\n.SH SYNOPSIS\n.B orlop\n.I COMMAND\n"
          "[\\fIARGUMENT\\fR]...\n.SH COMMANDS\n",
          out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        _cleanup_free_ char *page = cli_command_page(*c);
        fprintf(out, ".TP\n.BR orlop\\-%s (1)\n%s.\n", page, (*c)->summary);
    }
    fputs(".SH EXIT STATUS\n0 when done, 1 when it failed, 2 when the command line was wrong.\n",
          out);
}

void cli_man(const struct cli_command *command, FILE *out)
{
    if (!command) {
        man_program(out);
        return;
    }
    _cleanup_(str_done) struct str usage = {0};
    usage_text(command, &usage);
    _cleanup_free_ char *page = cli_command_page(command);
    fprintf(out, ".TH ORLOP-%s 1 \"\" \"Orlop %s\" \"Orlop\"\n.ad l\n.SH NAME\norlop\\-%s \\- ",
            page, ORLOP_VERSION, page);
    man_text(out, command->summary);
    fputs(".SH SYNOPSIS\n", out);
    man_text(out, str_get(&usage));
    fputs(".SH DESCRIPTION\n", out);
    man_text(out, command->doc);
    if (command->options)
        fputs(".SH OPTIONS\n", out);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        _cleanup_(str_done) struct str text = {0};
        option_text(o, &text);
        fputs(".TP\n.B ", out);
        man_text(out, str_get(&text));
        str_clear(&text);
        doc_text(o, &text);
        man_text(out, str_get(&text));
    }
    if (command->examples)
        fputs(".SH EXAMPLES\n", out);
    for (const char *const(*e)[2] = command->examples; e && (*e)[0]; e++) {
        fputs(".TP\n", out);
        man_text(out, (*e)[0]);
        man_text(out, (*e)[1]);
    }
    fputs(".SH EXIT STATUS\n0 when done, 1 when it failed, 2 when the command line was wrong.\n"
          ".SH SEE ALSO\n.BR orlop (1)\n",
          out);
}

void cli_markdown(const struct cli_command *command, FILE *out)
{
    _cleanup_(str_done) struct str usage = {0};
    usage_text(command, &usage);
    fprintf(out, "## orlop %s\n\n%s.\n\n    %s\n\n", command->name, command->summary,
            str_get(&usage));
    cli_wrap(out, command->doc, 0, 100);
    if (command->options)
        fputs("\n| option | meaning |\n| --- | --- |\n", out);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        _cleanup_(str_done) struct str text = {0};
        option_text(o, &text);
        fprintf(out, "| `%s` | ", str_get(&text));
        str_clear(&text);
        doc_text(o, &text);
        fprintf(out, "%s |\n", str_get(&text));
    }
    if (command->examples)
        fputs("\nExamples:\n\n", out);
    for (const char *const(*e)[2] = command->examples; e && (*e)[0]; e++)
        fprintf(out, "- `%s`: %s\n", (*e)[0], (*e)[1]);
    fputc('\n', out);
}
