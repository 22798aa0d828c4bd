/*
 * What the rows of commands say, as pages: man(7) source and Markdown.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

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
    cli_usage_text(command, &usage);
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
        cli_option_text(o, &text);
        fputs(".TP\n.B ", out);
        man_text(out, str_get(&text));
        str_clear(&text);
        cli_option_doc(o, &text);
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
    cli_usage_text(command, &usage);
    fprintf(out, "## orlop %s\n\n%s.\n\n    %s\n\n", command->name, command->summary,
            str_get(&usage));
    cli_wrap(out, command->doc, 0, 100);
    if (command->options)
        fputs("\n| option | meaning |\n| --- | --- |\n", out);
    for (const struct cli_option *o = command->options; o && o->name; o++) {
        _cleanup_(str_done) struct str text = {0};
        cli_option_text(o, &text);
        fprintf(out, "| `%s` | ", str_get(&text));
        str_clear(&text);
        cli_option_doc(o, &text);
        fprintf(out, "%s |\n", str_get(&text));
    }
    if (command->examples)
        fputs("\nExamples:\n\n", out);
    for (const char *const(*e)[2] = command->examples; e && (*e)[0]; e++)
        fprintf(out, "- `%s`: %s\n", (*e)[0], (*e)[1]);
    fputc('\n', out);
}
