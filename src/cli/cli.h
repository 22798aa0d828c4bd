/*
 * Commands as tables.
 *
 * A command is one row: its name, arguments, options, examples and the function that runs it. An
 * option is one row, too: its name, type, default and one line of help, and the member of the
 * command's settings that gets its value. From these come the parsing of the command line, `--help`,
 * the man page, the page of the reference and the completion of three shells, so that none of them
 * can disagree with another. Daemons have rows like every other command.
 *
 *     struct lv_settings { const char *node; uint64_t size; bool wait; };
 *
 *     static const struct cli_option options[] = {
 *         {"node", 'n', "NODE", CLI_STRING, CLI_AT(struct lv_settings, node),
 *          .required = true, .doc = "The node that gets the volume."},
 *         {"size", 's', "SIZE", CLI_SIZE, CLI_AT(struct lv_settings, size), .doc = "Its size."},
 *         {"wait", 'w', NULL, CLI_SWITCH, CLI_AT(struct lv_settings, wait), .doc = "Wait for it."},
 *         {0},
 *     };
 *
 * The compiler checks that the member exists and derives its C type; cli_check() checks that the
 * option's type fits it. Defaults are texts, parsed as if they had been given.
 *
 * Exit status: 0 done, 1 failed (the reason is on stderr), 2 the command line was wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

enum {
    CLI_OPTIONS_MAX = 64, /* of one command */
    CLI_COMMANDS_MAX = 128,
};

enum cli_type {
    CLI_SWITCH,   /* bool: it is given or not */
    CLI_BOOL,     /* bool: --x, --x=true, --x=false */
    CLI_STRING,   /* const char *; NULL: not given */
    CLI_FILE,     /* the same, completed with files */
    CLI_DIR,      /* the same, completed with folders */
    CLI_INT,      /* an integer from .least to .most */
    CLI_SIZE,     /* bytes, "10Gi", from .least; in an integer, or as text once it was checked */
    CLI_DURATION, /* nanoseconds, "1m30s", from .least; in an int64_t, or as text */
    CLI_SECONDS,  /* the same; a number without a unit counts seconds */
    CLI_ENUM,     /* a word of .choices; as text, or its place in an integer */
    CLI_LIST,     /* struct cli_list: words with commas between; given again, it adds more */
    CLI_ITEMS,    /* struct cli_list: one text each time that it is given */
};

/* Texts, and which option gave them: options that share a list keep their order. */
struct cli_list {
    const char **p; /* ends with NULL; NULL when there are none */
    const char **options;
    size_t len;
};

/* The C type of a member. */
enum cli_member {
    CLI_NO_MEMBER,
    CLI_MEMBER_BOOL,
    CLI_MEMBER_TEXT,
    CLI_MEMBER_U16,
    CLI_MEMBER_I32,
    CLI_MEMBER_U32,
    CLI_MEMBER_I64,
    CLI_MEMBER_U64,
    CLI_MEMBER_LIST,
};

/* clang-format off */
#define CLI_AT(settings, m)                                                                        \
    .offset = offsetof(settings, m),                                                               \
    .member = _Generic(&((settings *)0)->m, bool *: CLI_MEMBER_BOOL,                               \
                       const char **: CLI_MEMBER_TEXT, uint16_t *: CLI_MEMBER_U16,                 \
                       int *: CLI_MEMBER_I32, unsigned *: CLI_MEMBER_U32,                          \
                       int64_t *: CLI_MEMBER_I64, uint64_t *: CLI_MEMBER_U64,                      \
                       struct cli_list *: CLI_MEMBER_LIST)
/* clang-format on */

#define CLI_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* In the order in which tables have it. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    const char *arg;  /* what its value is called; NULL for a switch or a bool */
    enum cli_type type;
    size_t offset;
    enum cli_member member;
    const char *def;            /* its value when it is not given; NULL: the member stays zero */
    const char *const *choices; /* of an enum; ends with NULL */
    const char *implied;        /* of an enum that may stand without a value: --x is --x=IMPLIED */
    const char *off;            /* of an int: the word that means none, and sets -1 */
    uint64_t least, most;       /* of an int; least also of a size, and in ns of a duration */
    bool required;
    bool replaces;   /* of a list: given again, it is the new list, not more of the same */
    const char *doc; /* a sentence or two */
};

/* What arguments are, for completion. */
enum cli_complete { CLI_NOTHING, CLI_FILES, CLI_DIRS, CLI_KINDS, CLI_COMMANDS };

/* Under which heading `orlop --help` lists a command. */
enum cli_topic { CLI_MACHINE, CLI_MANIFESTS, CLI_STORAGE, CLI_PROGRAMS, CLI_OTHER, CLI_TOPICS };

struct cli_args {
    const struct cli_command *command;
    void *settings; /* the command's, filled */
    uint64_t given; /* a bit for each option, by its place */
    char **words;   /* what is left */
    int count;
};

struct cli_command {
    const char *name; /* one word, or two: "lv list" is one of the group "lv" */
    enum cli_topic topic;
    const char *arguments;            /* "FILE...", for the usage line */
    int least, most;                  /* how many; most < 0: any number */
    const char *summary;              /* one line, no full stop */
    const char *doc;                  /* paragraphs, separated by an empty line */
    size_t settings;                  /* size of the struct that options fill */
    const struct cli_option *options; /* ends with an option without a name; may be NULL */
    const char *const *choices;       /* of the first argument */
    enum cli_complete complete;       /* of the arguments */
    const char *const (*examples)[2]; /* {command line, what it does}; ends with {NULL} */
    int (*run)(const struct cli_args *args);
    /* In place of run: another program does it, so that `orlop` does not link its libraries. */
    const char *program;
    void (*more)(FILE *out); /* what --help prints besides; may be NULL */
};

/*
 * A row that `orlop` finds by being linked:
 *
 *     CLI_COMMAND(lv_create) = {.name = "lv create", ...};
 */
#define CLI_COMMAND(id)                                                                            \
    static const struct cli_command id;                                                            \
    __attribute__((constructor)) static void register_##id(void)                                   \
    {                                                                                              \
        cli_register(&id);                                                                         \
    }                                                                                              \
    static const struct cli_command id

/* registry.c */
void cli_register(const struct cli_command *command);
/* All that were registered, by topic and name; ends with NULL. */
const struct cli_command *const *cli_commands(void);

/* `orlop`: finds the command, parses, runs and reports. */
int cli_main(int argc, char **argv);

/* What a program of its own does; ends with {NULL}. */
struct cli_handler {
    const struct cli_command *command;
    int (*run)(const struct cli_args *args);
};
/* `orlop-PROGRAM [COMMAND] ARGUMENT...`: without a command it is the first. */
int cli_program_main(int argc, char **argv, const struct cli_handler *handlers);

/* Where the other programs are: beside this one (a build folder), or in libexec. To be freed. */
char *cli_libexec(void);

/* Whether the option that fills this member of the settings was given. */
bool cli_given(const struct cli_args *args, const void *member);
/* "orlop COMMAND: message" on stderr; returns CLI_FAILED. */
int cli_fail(const struct cli_args *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a wrong command line, with a pointer to --help; returns CLI_USAGE. */
int cli_misuse(const struct cli_args *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Flushes stdout; CLI_FAILED with a message when it could not be written (a full disk). */
int cli_finish(const struct cli_args *args);

/* The command that the words begin with; *ret_words: how many of them are its name. NULL. */
const struct cli_command *cli_command_at(int argc, char **argv, int *ret_words);
bool cli_is_group(const char *name);
/* The second word of a command of that group, else NULL. Borrowed. */
const char *cli_command_in(const struct cli_command *command, const char *group);
/* The group of a command that is the first of it in the table, to be freed; else NULL. */
char *cli_command_begins(const struct cli_command *const *command);
/* The name with a dash between its words, to be freed: of pages. */
char *cli_command_page(const struct cli_command *command);

/* value.c: puts a text, or the default when it is NULL, into the settings. */
int cli_value_set(const struct cli_option *option, const char *text, void *settings, struct err *e);
/* Frees what lists hold. */
void cli_values_done(const struct cli_option *options, void *settings);
/* Whether an option may or must be followed by a value, after a '='. */
bool cli_value_may(const struct cli_option *option);
bool cli_value_must(const struct cli_option *option);
/* Whether an integer member can hold the number. */
bool cli_value_fits(enum cli_member member, uint64_t n);

/* check.c: what is wrong with a row: INVALID_ARGUMENT. */
int cli_check(const struct cli_command *command, struct err *e);

/* help.c, page.c: generated from the rows: --help, man(7) source, Markdown. */
void cli_help(const struct cli_command *command, FILE *out); /* NULL: of the program */
void cli_help_group(const char *group, FILE *out);
void cli_man(const struct cli_command *command, FILE *out);
void cli_markdown(const struct cli_command *command, FILE *out);
/* Parts of them, appended: "-n, --node NODE"; its sentences, choices and default; "orlop lv create ...". */
struct str;
void cli_option_text(const struct cli_option *option, struct str *text);
void cli_option_doc(const struct cli_option *option, struct str *text);
void cli_usage_text(const struct cli_command *command, struct str *text);
/* text in lines of at most `width`, each after `indent` spaces; empty lines stay. */
void cli_wrap(FILE *out, const char *text, int indent, int width);
