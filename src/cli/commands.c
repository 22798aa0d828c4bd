#include "cli/commands.h"

#include "base/str.h"

static int run_version(const struct cli_args *args)
{
    puts("orlop " ORLOP_VERSION);
    return cli_finish(args);
}

const struct cli_command cli_version = {
    .name = "version",
    .summary = "Show the version",
    .doc = "Prints the version of this program.",
    .run = run_version,
};

static int run_help(const struct cli_args *args)
{
    int words = 0;
    const struct cli_command *command =
        args->count ? cli_command_at(args->count, args->words, &words) : NULL;
    if (words < args->count || (args->count && !command))
        return cli_fail(args, "there is no command '%s%s%s'", args->words[0],
                        args->count > 1 ? " " : "", args->count > 1 ? args->words[1] : "");
    cli_help(command, stdout);
    return cli_finish(args);
}

const struct cli_command cli_help_command = {
    .name = "help",
    .arguments = "[COMMAND]",
    .most = 2,
    .summary = "Show help of a command",
    .doc = "Lists the commands, or tells more of one.",
    .complete = CLI_COMMANDS,
    .run = run_help,
};

static int run_completion(const struct cli_args *args)
{
    const char *shell = args->words[0];
    if (str_eq(shell, "bash"))
        cli_complete_bash(stdout);
    else if (str_eq(shell, "zsh"))
        cli_complete_zsh(stdout);
    else if (str_eq(shell, "fish"))
        cli_complete_fish(stdout);
    else
        return cli_misuse(args, "'%s' is none of bash, zsh, fish", shell);
    return cli_finish(args);
}

const struct cli_command cli_completion = {
    .name = "completion",
    .arguments = "SHELL",
    .least = 1,
    .most = 1,
    .summary = "Write a completion script for a shell",
    .doc = "Writes to standard output the script that lets bash, zsh or fish complete commands, "
           "options and kinds.",
    .choices = (const char *const[]){"bash", "zsh", "fish", NULL},
    .examples =
        (const char *const[][2]){
            {"source <(orlop completion bash)", "Complete in this shell."},
            {NULL},
        },
    .run = run_completion,
};

const char *const cli_programs[][2] = {
    {"apiserver", "Serve the Kubernetes API from a database"},
    {"controller", "Run the controllers against a Kubernetes API"},
    {"node", "Run the agent of a node, or join one to a cluster"},
    {NULL},
};

/* In the order in which `orlop help` shows them; commands of a group stand together. */
const struct cli_command *const cli_commands[] = {
    &cli_up,
    &cli_down,
    &cli_status,
    &cli_logs,
    &cli_token,
    &cli_validate,
    &cli_explain,
    &cli_convert,
    &cli_crds,
    &cli_docs,
    &cli_backup,
    &cli_restore,
    &cli_disk_list,
    &cli_disk_show,
    &cli_disk_locate,
    &cli_pool_list,
    &cli_pool_show,
    &cli_pool_create,
    &cli_pool_expand,
    &cli_pool_replace,
    &cli_pool_scrub,
    &cli_pool_clear,
    &cli_pool_forget,
    &cli_pool_migrate,
    &cli_pool_delete,
    &cli_pool_serve,
    &cli_lv_list,
    &cli_lv_create,
    &cli_lv_resize,
    &cli_lv_delete,
    &cli_lv_audit,
    &cli_node_forget,
    &cli_volume_list,
    &cli_volume_show,
    &cli_volume_create,
    &cli_volume_resize,
    &cli_volume_snapshot,
    &cli_volume_delete,
    &cli_target,
    &cli_replica,
    &cli_bench,
    &cli_completion,
    &cli_help_command,
    &cli_version,
    NULL,
};
