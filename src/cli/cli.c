#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#ifndef ORLOP_LIBEXEC
#define ORLOP_LIBEXEC "/usr/local/libexec/orlop"
#endif

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        if (str_eq((*c)->name, name))
            return *c;
    }
    return NULL;
}

const struct cli_command *cli_command_at(int argc, char **argv, int *ret_words)
{
    for (int words = argc < 2 ? argc : 2; words > 0; words--) {
        _cleanup_free_ char *name =
            words > 1 ? mem_printf("%s %s", argv[0], argv[1]) : mem_strdup(argv[0]);
        const struct cli_command *command = cli_command_find(name);
        *ret_words = words;
        if (command)
            return command;
    }
    return NULL;
}

const char *cli_command_in(const struct cli_command *command, const char *group)
{
    size_t n = strlen(group);
    return strncmp(command->name, group, n) == 0 && command->name[n] == ' ' ? command->name + n + 1
                                                                            : NULL;
}

char *cli_command_begins(const struct cli_command *const *command)
{
    const char *blank = strchr((*command)->name, ' ');
    char *group = blank ? mem_strndup((*command)->name, (size_t)(blank - (*command)->name)) : NULL;
    for (const struct cli_command *const *c = cli_commands; group && c < command; c++) {
        if (!cli_command_in(*c, group))
            continue;
        free(group);
        group = NULL;
    }
    return group;
}

char *cli_command_page(const struct cli_command *command)
{
    char *name = mem_strdup(command->name);
    for (char *c = name; *c; c++)
        *c = *c == ' ' ? '-' : *c;
    return name;
}

const char *cli_get(const struct cli_args *args, const char *name)
{
    for (int i = 0; args->command->options[i].name; i++) {
        if (str_eq(args->command->options[i].name, name))
            return args->values[i];
    }
    return NULL;
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

/* getopt's tables, made from ours. Long options return 256 + their place. */
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
        int has_arg = options[i].arg ? required_argument : no_argument;
        t->longs[i] = (struct option){options[i].name, has_arg, NULL, 256 + i};
        if (options[i].letter) {
            *l++ = options[i].letter;
            if (options[i].arg)
                *l++ = ':';
        }
    }
    *l = '\0';
    t->longs[i++] = (struct option){"help", no_argument, NULL, 'h'};
    t->longs[i] = (struct option){0};
}

static int option_place(const struct cli_option *options, int found)
{
    if (found >= 256)
        return found - 256;
    for (int i = 0; options && options[i].name; i++) {
        if (options[i].letter == found)
            return i;
    }
    return -1;
}

static int check_choice(const struct cli_args *args, const struct cli_option *option)
{
    if (!option->choices || str_in(optarg, option->choices))
        return CLI_DONE;
    _cleanup_(str_done) struct str words = {0};
    for (const char *const *word = option->choices; *word; word++)
        str_appendf(&words, "%s%s", word == option->choices ? "" : ", ", *word);
    return cli_misuse(args, "--%s does not take '%s'; it takes %s", option->name, optarg,
                      str_get(&words));
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
        return cli_misuse(args, "'%s' is one argument too many", args->words[c->most]);
    return CLI_DONE;
}

/* argv as it came, getopt has only changed its order; argv[0] is the last word of the command. */
static int run_program(const struct cli_args *args, int argc, char **argv)
{
    const char *program = args->command->program, *blank = strchr(args->command->name, ' ');
    _cleanup_free_ char *name = mem_printf("orlop-%s", program);
    _cleanup_free_ char *group =
        blank ? mem_strndup(args->command->name, (size_t)(blank - args->command->name)) : NULL;
    _cleanup_free_ char **own = mem_zalloc(((size_t)argc + 3) * sizeof(*own));
    own[0] = name;
    own[1] = group;
    memcpy(own + 1 + !!group, argv, (size_t)argc * sizeof(*argv));
    cli_exec(program, own);
    return cli_fail(args, "the program orlop-%s is not installed", program);
}

static int run_command(const struct cli_command *command, int argc, char **argv,
                       int (*run)(const struct cli_args *args))
{
    struct cli_args args = {.command = command};
    struct getopt_tables tables;
    make_tables(command->options, &tables);
    opterr = 0;
    optind = 1;
    int found;
    while ((found = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
        if (found == 'h') {
            cli_help(command, stdout);
            return cli_finish(&args);
        }
        if (found == ':')
            return cli_misuse(&args, "'%s' needs a value", argv[optind - 1]);
        int place = option_place(command->options, found);
        if (found == '?' || place < 0)
            return cli_misuse(&args, "there is no option '%s'", argv[optind - 1]);
        if (optarg && check_choice(&args, &command->options[place]) != CLI_DONE)
            return CLI_USAGE;
        if (args.n_given == CLI_GIVEN_MAX)
            return cli_misuse(&args, "there are more than %d options", CLI_GIVEN_MAX);
        args.values[place] = optarg ? optarg : "";
        args.given[args.n_given].name = command->options[place].name;
        args.given[args.n_given++].value = args.values[place];
    }
    args.words = argv + optind;
    args.count = argc - optind;
    int status = check_count(&args);
    if (status != CLI_DONE)
        return status;
    return run ? run(&args) : run_program(&args, argc, argv);
}

/*
 * A command that is a program of its own, `orlop-NAME`: beside this one (a build folder), or in
 * libexec (an installation). Returns only when there is none.
 */
void cli_exec(const char *name, char **argv)
{
    if (strchr(name, '/'))
        return;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        *slash = '\0';
        _cleanup_free_ char *beside = mem_printf("%s/orlop-%s", self, name);
        execv(beside, argv);
    }
    _cleanup_free_ char *installed = mem_printf("%s/orlop-%s", ORLOP_LIBEXEC, name);
    execv(installed, argv);
}

static bool is_group(const char *name)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        if (cli_command_in(*c, name))
            return true;
    }
    return false;
}

/* One that people run by its name; others that happen to be called as a group are not. */
static bool is_program(const char *name)
{
    for (const char *const(*p)[2] = cli_programs; (*p)[0]; p++) {
        if (str_eq((*p)[0], name))
            return true;
    }
    return false;
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
    const char *names[64];
    size_t n = 0;
    for (const struct cli_command *const *c = cli_commands; *c && n + 1 < ARRAY_SIZE(names); c++)
        names[n++] = (*c)->name;
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    fprintf(stderr, "orlop: there is no command '%s'%s%s%s\nTry 'orlop --help'.\n", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name || str_eq(name, "--help") || str_eq(name, "-h")) {
        cli_help(NULL, name ? stdout : stderr);
        return name ? CLI_DONE : CLI_USAGE;
    }
    if (str_eq(name, "--version"))
        name = "version";
    int words = 1;
    const struct cli_command *command =
        name == argv[1] ? cli_command_at(argc - 1, argv + 1, &words) : cli_command_find(name);
    if (command)
        return run_command(command, argc - words, argv + words, command->run);
    bool group = is_group(name);
    if (!group || is_program(name))
        cli_exec(name, argv + 1);
    return group ? run_group(argc - 1, argv + 1) : unknown_command(name);
}

int cli_program_main(int argc, char **argv, const struct cli_handler *handlers)
{
    int words = 0;
    const struct cli_command *command = cli_command_at(argc - 1, argv + 1, &words);
    for (; command && handlers->name; handlers++) {
        if (str_eq(handlers->name, command->name))
            return run_command(command, argc - words, argv + words, handlers->run);
    }
    fprintf(stderr, "%s is run by `orlop`; try 'orlop --help'\n", argv[0]);
    return CLI_USAGE;
}
