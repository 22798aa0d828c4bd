#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

enum { FIRST = 256 };

#ifndef ORLOP_LIBEXEC
#define ORLOP_LIBEXEC "/usr/local/libexec/orlop"
#endif

bool cli_given(const struct cli_args *args, const void *member)
{
    size_t offset = (size_t)((const char *)member - (const char *)args->settings);
    for (int i = 0; args->command->options[i].name; i++) {
        if (args->command->options[i].offset == offset)
            return args->given >> i & 1;
    }
    return false;
}

static void vsay(const struct cli_args *args, const char *fmt, va_list ap)
{
    fprintf(stderr, "orlop %s: ", args->command->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int cli_fail(const struct cli_args *args, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(args, fmt, ap);
    va_end(ap);
    return CLI_FAILED;
}

int cli_misuse(const struct cli_args *args, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsay(args, fmt, ap);
    va_end(ap);
    fprintf(stderr, "Try 'orlop %s --help'.\n", args->command->name);
    return CLI_USAGE;
}

int cli_finish(const struct cli_args *args)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_DONE;
    if (errno == EPIPE)
        return CLI_DONE; /* the reader has seen enough */
    return cli_fail(args, "cannot write the result: %s", strerror(errno));
}

/* getopt's tables, made from ours. Long options return FIRST + their place. */
struct getopt_tables {
    struct option longs[CLI_OPTIONS_MAX + 2];
    char letters[2 * CLI_OPTIONS_MAX + 3];
};

static void make_tables(const struct cli_option *options, struct getopt_tables *t)
{
    char *l = t->letters;
    *l++ = ':'; /* tell a missing value from an unknown option */
    *l++ = 'h';
    int i = 0;
    for (; options && options[i].name; i++) {
        assert(i < CLI_OPTIONS_MAX);
        bool must = cli_value_must(&options[i]);
        int has_arg = must                         ? required_argument
                      : cli_value_may(&options[i]) ? optional_argument
                                                   : no_argument;
        t->longs[i] = (struct option){options[i].name, has_arg, NULL, FIRST + i};
        if (options[i].letter) {
            *l++ = options[i].letter;
            if (must)
                *l++ = ':';
        }
    }
    *l = '\0';
    t->longs[i++] = (struct option){"help", no_argument, NULL, 'h'};
    t->longs[i] = (struct option){0};
}

static int option_place(const struct cli_option *options, int found)
{
    if (found >= FIRST)
        return found - FIRST;
    for (int i = 0; options && options[i].name; i++) {
        if (options[i].letter == found)
            return i;
    }
    return -1;
}

static int set_option(struct cli_args *args, int place, const char *text)
{
    const struct cli_option *o = &args->command->options[place];
    struct err e = {0};
    bool given = args->given >> place & 1; /* else what is there is the default */
    if (o->member == CLI_MEMBER_LIST && (given ? o->replaces : o->def != NULL))
        cli_values_done((const struct cli_option[]){*o, {0}}, args->settings);
    args->given |= UINT64_C(1) << place;
    return cli_value_set(o, text, args->settings, &e) < 0
               ? cli_misuse(args, "--%s: %s", o->name, e.msg)
               : CLI_DONE;
}

static void set_defaults(struct cli_args *args)
{
    for (const struct cli_option *o = args->command->options; o && o->name; o++) {
        struct err e = {0};
        if (o->def && cli_value_set(o, o->def, args->settings, &e) < 0)
            cli_fail(args, "--%s: %s", o->name, e.msg); /* a test checks all rows */
    }
}

static int check_required(const struct cli_args *args)
{
    _cleanup_(str_done) struct str missing = {0};
    for (int i = 0; args->command->options && args->command->options[i].name; i++) {
        const struct cli_option *o = &args->command->options[i];
        if (o->required && !(args->given >> i & 1))
            str_appendf(&missing, "%s--%s %s", missing.len ? " and " : "", o->name, o->arg);
    }
    return missing.len ? cli_misuse(args, "%s %s missing", str_get(&missing),
                                    strstr(missing.p, " and ") ? "are" : "is")
                       : CLI_DONE;
}

/* The first argument, where it is a word of a few. */
static int check_choice(const struct cli_args *args)
{
    const char *const *choices = args->command->choices;
    if (!choices || !args->count || str_in(args->words[0], choices))
        return CLI_DONE;
    _cleanup_(str_done) struct str words = {0};
    for (const char *const *word = choices; *word; word++)
        str_appendf(&words, "%s%s", word == choices ? "" : ", ", *word);
    return cli_misuse(args, "'%s' is none of %s", args->words[0], str_get(&words));
}

static int check_count(const struct cli_args *args)
{
    const struct cli_command *c = args->command;
    if (args->count < c->least) {
        const char *missing = c->arguments; /* from the first that was not given */
        for (int i = 0; i < args->count && strchr(missing, ' '); i++)
            missing = strchr(missing, ' ') + 1;
        return cli_misuse(args, "%s %s missing", missing, strchr(missing, ' ') ? "are" : "is");
    }
    if (c->most >= 0 && args->count > c->most)
        return cli_misuse(args, "unexpected argument '%s'", args->words[c->most]);
    return CLI_DONE;
}

/* Parses into args; CLI_DONE, or the status to end with. *ret_help: --help was asked for. */
static int parse(struct cli_args *args, int argc, char **argv, bool *ret_help)
{
    const struct cli_option *options = args->command->options;
    struct getopt_tables tables;
    make_tables(options, &tables);
    opterr = 0;
    optind = 1;
    int found;
    while ((found = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
        *ret_help = found == 'h';
        if (*ret_help)
            return CLI_DONE;
        if (found == ':')
            return cli_misuse(args, "'%s' needs a value", argv[optind - 1]);
        int place = option_place(options, found);
        if (found == '?' || place < 0)
            return cli_misuse(args, "there is no option '%s'", argv[optind - 1]);
        if (set_option(args, place, optarg) != CLI_DONE)
            return CLI_USAGE;
    }
    args->words = argv + optind;
    args->count = argc - optind;
    int status = check_count(args);
    if (status == CLI_DONE)
        status = check_choice(args);
    return status == CLI_DONE ? check_required(args) : status;
}

/* argv[0] is the last word of the command. */
static int run_command(const struct cli_command *command, int argc, char **argv,
                       int (*run)(const struct cli_args *args))
{
    struct cli_args args = {.command = command, .settings = mem_zalloc(command->settings + 1)};
    bool help = false;
    set_defaults(&args);
    int status = parse(&args, argc, argv, &help);
    if (help) {
        cli_help(command, stdout);
        status = cli_finish(&args);
    } else if (status == CLI_DONE) {
        status = run(&args);
    }
    cli_values_done(command->options, args.settings);
    free(args.settings);
    return status;
}

char *cli_libexec(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    _cleanup_free_ char *beside = mem_printf("%s/orlop-apiserver", self);
    return mem_strdup(access(beside, X_OK) == 0 ? self : ORLOP_LIBEXEC);
}

/* Becomes `orlop-PROGRAM COMMAND ARGUMENT...`; argv[0] is the command's first word. */
static int run_program(const struct cli_command *command, char **argv)
{
    const struct cli_args args = {.command = command};
    _cleanup_free_ char *folder = cli_libexec();
    _cleanup_free_ char *name = mem_printf("orlop-%s", command->program);
    _cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
    int n = 0;
    while (argv[n])
        n++;
    _cleanup_free_ char **own = mem_zalloc(((size_t)n + 2) * sizeof(*own));
    own[0] = name;
    memcpy(own + 1, argv, (size_t)n * sizeof(*argv));
    execv(path, own);
    return cli_fail(&args, "cannot run %s: %s", path, strerror(errno));
}

/* A group is no command: what there is of it, as help or because none was named. */
static int run_group(int argc, char **argv)
{
    bool help = argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"));
    if (argc > 1 && !help)
        fprintf(stderr, "orlop %s: there is no command '%s %s'\n", argv[0], argv[0], argv[1]);
    cli_help_group(argv[0], help ? stdout : stderr);
    return help ? CLI_DONE : CLI_USAGE;
}

static int unknown_command(const char *name)
{
    const char *names[CLI_COMMANDS_MAX + 1];
    size_t n = 0;
    for (const struct cli_command *const *c = cli_commands(); *c; c++)
        names[n++] = (*c)->name;
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    fprintf(stderr, "orlop: there is no command '%s'%s%s%s\nTry 'orlop --help'.\n", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
    static char version[] = "version";
    char *name = argc > 1 ? argv[1] : NULL;
    int words = 1;
    if (!name || str_eq(name, "--help") || str_eq(name, "-h")) {
        cli_help(NULL, name ? stdout : stderr);
        return name ? CLI_DONE : CLI_USAGE;
    }
    if (str_eq(name, "--version"))
        argv[1] = version;
    const struct cli_command *command = cli_command_at(argc - 1, argv + 1, &words);
    if (command && command->program)
        return run_program(command, argv + 1);
    if (command)
        return run_command(command, argc - words, argv + words, command->run);
    return cli_is_group(name) ? run_group(argc - 1, argv + 1) : unknown_command(name);
}

int cli_program_main(int argc, char **argv, const struct cli_handler *handlers)
{
    assert(handlers->command);
    for (const struct cli_handler *h = handlers; h->command; h++)
        cli_register(h->command);
    int words = 0;
    const struct cli_command *command = cli_command_at(argc - 1, argv + 1, &words);
    const struct cli_handler *h = handlers;
    for (; command && h[1].command && h->command != command; h++)
        ;
    words = command ? words : 0;
    return run_command(h->command, argc - words, argv + words, h->run);
}
