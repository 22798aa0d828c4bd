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

static void print_words(FILE *out, const char *const *words)
{
    for (const char *const *word = words; word && *word; word++)
        fprintf(out, "%s%s", word == words ? "" : " ", *word);
}

/* The first words of all commands. */
static void print_commands(FILE *out)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (group || !strchr((*c)->name, ' '))
            fprintf(out, "%s%s", c == cli_commands ? "" : " ", group ? group : (*c)->name);
    }
}

/* The second words of a group's. */
static void print_group(FILE *out, const char *group)
{
    bool first = true;
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        const char *word = cli_command_in(*c, group);
        if (word)
            fprintf(out, "%s%s", first ? "" : " ", word);
        first &= !word;
    }
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

int cli_complete_bash(FILE *out)
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
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group)
            continue;
        fprintf(out,
                "    %s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                "            COMPREPLY=($(compgen -W '",
                group);
        print_group(out, group);
        fputs(" --help' -- \"$cur\"))\n            return\n        fi\n"
              "        command=\"$command ${COMP_WORDS[2]}\" ;;\n",
              out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, "    '%s')\n        case $prev in\n", (*c)->name);
        for (const struct cli_option *o = (*c)->options; o && o->name; o++) {
            if (!o->arg)
                continue;
            if (o->letter)
                fprintf(out, "        -%c | --%s) ", o->letter, o->name);
            else
                fprintf(out, "        --%s) ", o->name);
            bash_offer(out, o->complete, o->choices);
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
    return CLI_DONE;
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

int cli_complete_zsh(FILE *out)
{
    fputs("#compdef orlop\n# zsh completion for orlop; put it as _orlop into a folder of $fpath.\n"
          "_orlop() {\n    local -a commands=(\n",
          out);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group && strchr((*c)->name, ' '))
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
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        _cleanup_free_ char *group = cli_command_begins(c);
        if (!group)
            continue;
        fprintf(out, "    %s)\n        if (( CURRENT == 2 )); then\n            compadd -- ",
                group);
        print_group(out, group);
        fputs("\n            return\n        fi\n        command=\"$command ${words[2]}\"\n"
              "        shift words\n        (( CURRENT-- )) ;;\n",
              out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
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
            if (o->arg) {
                fprintf(out, ":%s:", o->arg);
                zsh_action(out, o->complete, o->choices);
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
    return CLI_DONE;
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
    } else {
        fprintf(out, "complete -c orlop -n __fish_use_subcommand -a %s -d ", command->name);
    }
    fish_quote(out, command->summary);
    fputc('\n', out);
}

int cli_complete_fish(FILE *out)
{
    fputs("# fish completion for orlop; put it as orlop.fish into fish's completions folder.\n"
          "complete -c orlop -f\n"
          "complete -c orlop -s h -l help -d 'Show help'\n",
          out);
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        const struct cli_command *command = *c;
        _cleanup_free_ char *begins = cli_command_begins(c);
        fish_name(out, command, begins);
        for (const struct cli_option *o = command->options; o && o->name; o++) {
            fish_condition(out, command);
            fprintf(out, " -l %s", o->name);
            if (o->letter)
                fprintf(out, " -s %c", o->letter);
            if (o->arg) {
                fputs(o->complete == CLI_FILES ? " -r" : " -x", out);
                fish_values(out, o->complete, o->choices);
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
    return CLI_DONE;
}
