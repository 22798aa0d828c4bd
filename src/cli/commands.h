/*
 * The commands, one file each.
 */
#pragma once

#include "cli/cli.h"

extern const struct cli_command cli_validate, cli_explain, cli_crds, cli_convert, cli_completion,
    cli_docs, cli_version, cli_help_command, cli_backup, cli_restore, cli_up, cli_down, cli_status,
    cli_logs, cli_token, cli_lv_list, cli_lv_create, cli_lv_resize, cli_lv_delete, cli_lv_audit,
    cli_node_forget, cli_bench, cli_target, cli_replica, cli_pool_serve, cli_pool_list,
    cli_pool_show, cli_pool_create, cli_pool_expand, cli_pool_replace, cli_pool_scrub,
    cli_pool_clear, cli_pool_forget, cli_pool_migrate, cli_pool_delete, cli_disk_list,
    cli_disk_show, cli_disk_locate, cli_volume_list, cli_volume_show, cli_volume_create,
    cli_volume_resize, cli_volume_snapshot, cli_volume_delete;
