/*
 * The commands that there are, by topic and name.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

static const struct cli_command *registered[CLI_COMMANDS_MAX + 1]; /* sorted; ends with NULL */

static int compare(const void *a, const void *b)
{
    const struct cli_command *x = *(const struct cli_command *const *)a,
                             *y = *(const struct cli_command *const *)b;
    return x->topic == y->topic ? strcmp(x->name, y->name) : (int)x->topic - (int)y->topic;
}

void cli_register(const struct cli_command *command)
{
    size_t n = 0;
    while (registered[n])
        n++;
    assert(n < CLI_COMMANDS_MAX);
    registered[n++] = command;
    qsort(registered, n, sizeof(registered[0]), compare);
}

const struct cli_command *const *cli_commands(void)
{
    return registered;
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *const *c = registered; *c; c++) {
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
        const struct cli_command *command = find_command(name);
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
    for (const struct cli_command *const *c = registered; group && c < command; c++) {
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

bool cli_is_group(const char *name)
{
    for (const struct cli_command *const *c = registered; *c; c++) {
        if (cli_command_in(*c, name))
            return true;
    }
    return false;
}
