/*
 * orlop: its own commands are those of src/ctl and src/up, which are linked whole; these are the
 * commands that programs of their own run.
 */
#include "attach/command.h"
#include "bench/command.h"
#include "cmd/apiserver.h"
#include "cmd/controller.h"
#include "cmd/csi.h"
#include "cmd/node.h"
#include "cmd/sidecar.h"
#include "pool/command.h"
#include "replica/command.h"
#include "target/command.h"

int main(int argc, char **argv)
{
    static const struct cli_command *const programs[] = {
        &apiserver_command, &backup_command,  &restore_command, &controller_command,
        &node_command,      &sidecar_command, &pool_serve_row,  &target_row,
        &replica_row,       &bench_row,       &csi_command,     &attach_row,
    };
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        cli_register(programs[i]);
    return cli_main(argc, argv);
}
