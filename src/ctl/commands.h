/*
 * What orlop-ctl does for the commands of src/cli/lv.c, pools.c and volume.c.
 */
#pragma once

#include "cli/cli.h"

int ctl_lv_list(const struct cli_args *args);
int ctl_lv_create(const struct cli_args *args);
int ctl_lv_resize(const struct cli_args *args);
int ctl_lv_delete(const struct cli_args *args);
int ctl_lv_audit(const struct cli_args *args);
int ctl_node_forget(const struct cli_args *args);
int ctl_pool_list(const struct cli_args *args);
int ctl_pool_show(const struct cli_args *args);
int ctl_pool_create(const struct cli_args *args);
int ctl_pool_expand(const struct cli_args *args);
int ctl_pool_replace(const struct cli_args *args);
int ctl_pool_scrub(const struct cli_args *args);
int ctl_pool_clear(const struct cli_args *args);
int ctl_pool_forget(const struct cli_args *args);
int ctl_pool_migrate(const struct cli_args *args);
int ctl_pool_delete(const struct cli_args *args);
int ctl_disk_list(const struct cli_args *args);
int ctl_disk_show(const struct cli_args *args);
int ctl_disk_locate(const struct cli_args *args);
int ctl_volume_list(const struct cli_args *args);
int ctl_volume_show(const struct cli_args *args);
int ctl_volume_create(const struct cli_args *args);
int ctl_volume_resize(const struct cli_args *args);
int ctl_volume_snapshot(const struct cli_args *args);
int ctl_volume_delete(const struct cli_args *args);
