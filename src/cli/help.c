/*
 * What the rows of commands say, as --help.
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
void cli_option_text(const struct cli_option *option, struct str *text)
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
void cli_option_doc(const struct cli_option *option, struct str *text)
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

void cli_usage_text(const struct cli_command *command, struct str *text)
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
    cli_usage_text(command, &usage);
    fprintf(out, "%s\n\nUsage: %s\n\n", command->summary, str_get(&usage));
    cli_wrap(out, command->doc, 0, 80);
    fputs("\nOptions:\n", out);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        _cleanup_(str_done) struct str text = {0};
        cli_option_text(o, &text);
        fprintf(out, "  %s\n", str_get(&text));
        str_clear(&text);
        cli_option_doc(o, &text);
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
