/*
 * Completion scripts for bash, zsh and fish, from the tables of commands.
 */
#include "api/kind.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

static void print_kinds(FILE *out)
{
    for (const struct api_kind *const *k = api_kinds; *k; k++)
        fprintf(out, "%s%s", k == api_kinds ? "" : " ", (*k)->singular);
}

/* What an option's value is. */
static enum cli_complete complete_of(const struct cli_option *o)
{
    return o->type == CLI_FILE ? CLI_FILES : o->type == CLI_DIR ? CLI_DIRS : CLI_NOTHING;
}

static void print_words(FILE *out, const char *const *words)
{
    for (const char *const *word = words; word && *word; word++)
        fprintf(out, "%s%s", word == words ? "" : " ", *word);
}

/* A command of one word that is no group, too: those are named once, as the group. */
static bool is_alone(const struct cli_command *command)
{
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        if (cli_command_in(*c, command->name))
            return false;
    }
    return !strchr(command->name, ' ');
}

/* The first words of all commands. */
static void print_commands(FILE *out)
{
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (group || is_alone(*c))
            fprintf(out, "%s%s", c == cli_commands() ? "" : " ", group ? group : (*c)->name);
    }
}

/* The second words of a group's. */
static void print_group(FILE *out, const char *group)
{
    bool first = true;
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        const char *word = cli_command_in(*c, group);
        if (word)
            fprintf(out, "%s%s", first ? "" : " ", word);
        first &= !word;
    }
}

/* The same, as a pattern of a case. */
static void print_alternatives(FILE *out, const char *group)
{
    bool first = true;
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        const char *word = cli_command_in(*c, group);
        if (word)
            fprintf(out, "%s%s", first ? "" : " | ", word);
        first &= !word;
    }
}

/* The command that is called as a group is; NULL. */
static const struct cli_command *command_called(const char *group)
{
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        if (str_eq((*c)->name, group))
            return *c;
    }
    return NULL;
}

/* What bash is to offer for a value: an action that fills COMPREPLY. */
static void bash_offer(FILE *out, enum cli_complete complete, const char *const *choices)
{
    if (choices) {
        fputs("COMPREPLY=($(compgen -W '", out);
        print_words(out, choices);
        fputs("' -- \"$cur\"))", out);
    } else if (complete == CLI_KINDS || complete == CLI_COMMANDS) {
        fputs("COMPREPLY=($(compgen -W '", out);
        (complete == CLI_KINDS ? print_kinds : print_commands)(out);
        fputs("' -- \"$cur\"))", out);
    } else if (complete == CLI_FILES || complete == CLI_DIRS) {
        fprintf(out, "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -%c -- \"$cur\")",
                complete == CLI_FILES ? 'f' : 'd');
    } else {
        fputs("COMPREPLY=()", out);
    }
}

static void complete_bash(FILE *out)
{
    fputs("# bash completion for orlop; source it, or put it into bash-completion's folder.\n"
          "_orlop() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    [ \"$cur\" != = ] || cur=\n" /* --output=json comes as three words */
          "    [ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_commands(out);
    fputs(" --help --version' -- \"$cur\"))\n        return\n    fi\n"
          "    local command=${COMP_WORDS[1]}\n    case $command in\n",
          out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group)
            continue;
        fprintf(out,
                "    %s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                "            COMPREPLY=($(compgen -W '",
                group);
        print_group(out, group);
        const struct cli_command *own = command_called(group);
        for (const struct cli_option *o = own ? own->options : NULL; o && o->name; o++)
            fprintf(out, " --%s", o->name);
        fputs(" --help' -- \"$cur\"))\n            return\n        fi\n", out);
        if (own) {
            fputs("        case ${COMP_WORDS[2]} in\n        ", out);
            print_alternatives(out, group);
            fputs(") command=\"$command ${COMP_WORDS[2]}\" ;;\n        esac ;;\n", out);
        } else {
            fputs("        command=\"$command ${COMP_WORDS[2]}\" ;;\n", out);
        }
    }
    fputs("    esac\n    case $command in\n", out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        fprintf(out, "    '%s')\n        case $prev in\n", (*c)->name);
        for (const struct cli_option *o = (*c)->options; o && o->name; o++) {
            if (!cli_value_must(o))
                continue;
            if (o->letter)
                fprintf(out, "        -%c | --%s) ", o->letter, o->name);
            else
                fprintf(out, "        --%s) ", o->name);
            bash_offer(out, complete_of(o), o->choices);
            fputs("; return ;;\n", out);
        }
        fputs("        esac\n        case $cur in\n        -*) COMPREPLY=($(compgen -W '--help",
              out);
        for (const struct cli_option *o = (*c)->options; o && o->name; o++)
            fprintf(out, " --%s", o->name);
        fputs("' -- \"$cur\")) ;;\n        *) ", out);
        bash_offer(out, (*c)->complete, (*c)->choices);
        fputs(" ;;\n        esac ;;\n", out);
    }
    fputs("    esac\n}\ncomplete -F _orlop orlop\n", out);
}

/* Inside single quotes, and without what _arguments takes for its own. */
static void zsh_quote(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void zsh_action(FILE *out, enum cli_complete complete, const char *const *choices)
{
    if (choices || complete == CLI_KINDS || complete == CLI_COMMANDS) {
        fputc('(', out);
        if (choices)
            print_words(out, choices);
        else
            (complete == CLI_KINDS ? print_kinds : print_commands)(out);
        fputc(')', out);
    } else if (complete == CLI_FILES) {
        fputs("_files", out);
    } else if (complete == CLI_DIRS) {
        fputs("_files -/", out);
    }
}

static void complete_zsh(FILE *out)
{
    fputs("#compdef orlop\n# zsh completion for orlop; put it as _orlop into a folder of $fpath.\n"
          "_orlop() {\n    local -a commands=(\n",
          out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group && !is_alone(*c))
            continue;
        fprintf(out, "        '%s:", group ? group : (*c)->name);
        if (group)
            print_group(out, group);
        else
            zsh_quote(out, (*c)->summary);
        fputs("'\n", out);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
          "        return\n    fi\n    local command=${words[2]}\n    shift words\n"
          "    (( CURRENT-- ))\n    case $command in\n",
          out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group)
            continue;
        fprintf(out, "    %s)\n        if (( CURRENT == 2 )); then\n            compadd -- ",
                group);
        print_group(out, group);
        const struct cli_command *own = command_called(group);
        for (const struct cli_option *o = own ? own->options : NULL; o && o->name; o++)
            fprintf(out, " --%s", o->name);
        fputs("\n            return\n        fi\n", out);
        if (own) {
            fputs("        case ${words[2]} in\n        (", out);
            print_alternatives(out, group);
            fputs(")", out);
        }
        fputs("        command=\"$command ${words[2]}\"\n"
              "        shift words\n        (( CURRENT-- ))",
              out);
        fputs(own ? " ;;\n        esac ;;\n" : " ;;\n", out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        fprintf(out, "    '%s')\n        _arguments -s '(-h --help)'{-h,--help}'[Show help]' \\\n",
                (*c)->name);
        for (const struct cli_option *o = (*c)->options; o && o->name; o++) {
            if (o->letter)
                fprintf(out, "            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
                        o->name);
            else
                fprintf(out, "            '--%s[", o->name);
            zsh_quote(out, o->doc);
            fputc(']', out);
            if (cli_value_must(o)) {
                fprintf(out, ":%s:", o->arg);
                zsh_action(out, complete_of(o), o->choices);
            }
            fputs("' \\\n", out);
        }
        fputs("            '*: :", out);
        zsh_action(out, (*c)->complete, (*c)->choices);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n}\n"
          "if [[ ${funcstack[1]} = _orlop ]]; then _orlop \"$@\"; else compdef _orlop orlop; fi\n",
          out); /* loaded by compinit, or sourced */
}

static void fish_quote(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void fish_values(FILE *out, enum cli_complete complete, const char *const *choices)
{
    if (complete == CLI_FILES) {
        fputs(" -F", out); /* in spite of -f for all else */
    } else if (complete == CLI_DIRS) {
        fputs(" -a '(__fish_complete_directories)'", out);
    } else if (choices || complete != CLI_NOTHING) {
        fputs(" -a '", out);
        if (choices)
            print_words(out, choices);
        else
            (complete == CLI_KINDS ? print_kinds : print_commands)(out);
        fputc('\'', out);
    }
}

/* When a command is being completed: all of its words were seen. */
static void fish_condition(FILE *out, const struct cli_command *command)
{
    const char *blank = strchr(command->name, ' ');
    if (blank)
        fprintf(out,
                "complete -c orlop -n '__fish_seen_subcommand_from %.*s; and "
                "__fish_seen_subcommand_from %s'",
                (int)(blank - command->name), command->name, blank + 1);
    else
        fprintf(out, "complete -c orlop -n '__fish_seen_subcommand_from %s'", command->name);
}

static void fish_name(FILE *out, const struct cli_command *command, const char *begins)
{
    const char *blank = strchr(command->name, ' ');
    if (begins)
        fprintf(out, "complete -c orlop -n __fish_use_subcommand -a %s\n", begins);
    if (blank) {
        _cleanup_free_ char *group = mem_strndup(command->name, (size_t)(blank - command->name));
        fprintf(out,
                "complete -c orlop -n '__fish_seen_subcommand_from %s; and not "
                "__fish_seen_subcommand_from ",
                group);
        print_group(out, group);
        fprintf(out, "' -a %s -d ", blank + 1);
    } else if (is_alone(command)) {
        fprintf(out, "complete -c orlop -n __fish_use_subcommand -a %s -d ", command->name);
    } else {
        return; /* named as the group */
    }
    fish_quote(out, command->summary);
    fputc('\n', out);
}

static void complete_fish(FILE *out)
{
    fputs("# fish completion for orlop; put it as orlop.fish into fish's completions folder.\n"
          "complete -c orlop -f\n"
          "complete -c orlop -s h -l help -d 'Show help'\n",
          out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        const struct cli_command *command = *c;
        _cleanup_free_ char *begins = cli_command_begins(c);
        fish_name(out, command, begins);
        for (const struct cli_option *o = command->options; o && o->name; o++) {
            fish_condition(out, command);
            fprintf(out, " -l %s", o->name);
            if (o->letter)
                fprintf(out, " -s %c", o->letter);
            if (cli_value_must(o)) {
                fputs(complete_of(o) == CLI_FILES ? " -r" : " -x", out);
                fish_values(out, complete_of(o), o->choices);
            }
            fputs(" -d ", out);
            fish_quote(out, o->doc);
            fputc('\n', out);
        }
        if (command->complete || command->choices) {
            fish_condition(out, command);
            fish_values(out, command->complete, command->choices);
            fputc('\n', out);
        }
    }
}

static int run(const struct cli_args *args)
{
    const char *shell = args->words[0];
    (str_eq(shell, "bash")  ? complete_bash
     : str_eq(shell, "zsh") ? complete_zsh
                            : complete_fish)(stdout);
    return cli_finish(args);
}

CLI_COMMAND(completion_command) = {
    .name = "completion",
    .topic = CLI_OTHER,
    .arguments = "SHELL",
    .least = 1,
    .most = 1,
    .summary = "Write a completion script for a shell",
    .doc = "Writes to standard output the script that lets bash, zsh or fish complete commands, "
           "options and kinds.",
    .choices = CLI_WORDS("bash", "zsh", "fish"),
    .examples =
        (const char *const[][2]){
            {"source <(orlop completion bash)", "Complete in this shell."},
            {NULL},
        },
    .run = run,
};
