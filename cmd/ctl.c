/*
 * orlop-ctl: the commands of `orlop` that speak with an API.
 */
#include "ctl/commands.h"

int main(int argc, char **argv)
{
    static const struct cli_handler handlers[] = {
        {"lv list", ctl_lv_list},
        {"lv create", ctl_lv_create},
        {"lv resize", ctl_lv_resize},
        {"lv delete", ctl_lv_delete},
        {"lv audit", ctl_lv_audit},
        {"node forget", ctl_node_forget},
        {"pool list", ctl_pool_list},
        {"pool show", ctl_pool_show},
        {"pool create", ctl_pool_create},
        {"pool expand", ctl_pool_expand},
        {"pool replace", ctl_pool_replace},
        {"pool scrub", ctl_pool_scrub},
        {"pool clear", ctl_pool_clear},
        {"pool forget", ctl_pool_forget},
        {"pool migrate", ctl_pool_migrate},
        {"pool delete", ctl_pool_delete},
        {"disk list", ctl_disk_list},
        {"disk show", ctl_disk_show},
        {"disk locate", ctl_disk_locate},
        {"volume list", ctl_volume_list},
        {"volume show", ctl_volume_show},
        {"volume create", ctl_volume_create},
        {"volume resize", ctl_volume_resize},
        {"volume snapshot", ctl_volume_snapshot},
        {"volume delete", ctl_volume_delete},
        {NULL},
    };
    return cli_program_main(argc, argv, handlers);
}
