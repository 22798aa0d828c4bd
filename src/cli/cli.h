/*
 * Commands as tables.
 *
 * A command is one table: its name, arguments, options, examples and the function that runs it.
 * From it come the parsing of its command line, `--help`, the man page, the page of the reference
 * and the completion of three shells, so that none of them can disagree with another.
 *
 * Exit status: 0 done, 1 failed (the reason is on stderr), 2 the command line was wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

enum {
    CLI_OPTIONS_MAX = 64, /* of one command */
    CLI_GIVEN_MAX = 512,  /* on one command line */
};

/* What an argument is, for completion. */
enum cli_complete { CLI_NOTHING, CLI_FILES, CLI_DIRS, CLI_KINDS, CLI_COMMANDS };

/* In the order in which tables have it. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct cli_option {
    const char *name;           /* without the dashes */
    char letter;                /* 0: none */
    const char *arg;            /* what its value is called; NULL: a switch */
    const char *const *choices; /* the values allowed; ends with NULL */
    enum cli_complete complete;
    const char *doc;
};

struct cli_args {
    const struct cli_command *command;
    const char *values
        [CLI_OPTIONS_MAX]; /* by the option's place in the table; "" for a switch that is set */
    /* All of them as they were given, for what can be said several times. */
    struct {
        const char *name, *value;
    } given[CLI_GIVEN_MAX];
    int n_given;
    char **words; /* what is left */
    int count;
};

struct cli_command {
    const char *name;                 /* one word, or two: "lv list" is one of the group "lv" */
    const char *arguments;            /* "FILE...", for the usage line */
    int least, most;                  /* how many; most < 0: any number */
    const char *summary;              /* one line, no full stop */
    const char *doc;                  /* paragraphs, separated by an empty line */
    const struct cli_option *options; /* ends with an option without a name; may be NULL */
    const char *const *choices;       /* of the first argument */
    enum cli_complete complete;       /* of the arguments */
    const char *const (*examples)[2]; /* {command line, what it does}; ends with {NULL} */
    int (*run)(const struct cli_args *args);
    /*
     * In place of run: the program that does it, `orlop-PROGRAM COMMAND ARGUMENT...`, so that this
     * one needs not all that it needs. What is wrong with the command line is said here.
     */
    const char *program;
};

/* All commands, ends with NULL. */
extern const struct cli_command *const cli_commands[];

/* Programs of their own behind the front door: {name, summary}; ends with {NULL}. */
extern const char *const cli_programs[][2];

/* Becomes `orlop-NAME`; returns only when there is none. argv ends with NULL. */
void cli_exec(const char *name, char **argv);

/* The whole program: parses, runs, reports. */
int cli_main(int argc, char **argv);

/* How orlop-PROGRAM does its commands; ends with {NULL}. */
struct cli_handler {
    const char *name;
    int (*run)(const struct cli_args *args);
};

/* The whole of such a program: argv[1] is the command. */
int cli_program_main(int argc, char **argv, const struct cli_handler *handlers);

/* The value of an option; NULL when it was not given. */
const char *cli_get(const struct cli_args *args, const char *name);
/* "orlop COMMAND: message" on stderr; returns CLI_FAILED. */
int cli_fail(const struct cli_args *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a wrong command line, with a pointer to --help; returns CLI_USAGE. */
int cli_misuse(const struct cli_args *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Flushes stdout; CLI_FAILED with a message when what was written could not be (a full disk). */
int cli_finish(const struct cli_args *args);

const struct cli_command *cli_command_find(const char *name);
/* The command that the words begin with; *ret_words: how many of them are its name. NULL. */
const struct cli_command *cli_command_at(int argc, char **argv, int *ret_words);
/* The second word of a command of that group, else NULL. Borrowed. */
const char *cli_command_in(const struct cli_command *command, const char *group);
/* The group of a command that is the first of it in the table, to be freed; else NULL. */
char *cli_command_begins(const struct cli_command *const *command);
/* The name with a dash between its words, to be freed: of pages. */
char *cli_command_page(const struct cli_command *command);

/* Generated from the tables: --help, man(7) source, markdown, completion scripts. */
void cli_help(const struct cli_command *command, FILE *out); /* NULL: of the program */
void cli_help_group(const char *group, FILE *out);
void cli_man(const struct cli_command *command, FILE *out);
void cli_markdown(const struct cli_command *command, FILE *out);
int cli_complete_bash(FILE *out);
int cli_complete_zsh(FILE *out);
int cli_complete_fish(FILE *out);
/* text in lines of at most `width`, each after `indent` spaces; empty lines stay. */
void cli_wrap(FILE *out, const char *text, int indent, int width);
