/*
 * What the machine is and has, for the Node's status.
 */
#pragma once

#include "json/json.h"

struct node_places;

/* {cpu, memory, ephemeral-storage, pods}, as quantities. */
json_t *node_machine_capacity(const struct node_places *p, const char *data_dir);
/* The same, less what the machine itself should keep. */
json_t *node_machine_allocatable(const json_t *capacity);
/* nodeInfo. */
json_t *node_machine_info(const struct node_places *p);

struct node_pressure {
    bool memory, disk, pid;
    char memory_text[120], disk_text[160], pid_text[120];
};
/* Where Kubernetes begins to worry: 100Mi of memory, a tenth of the disk, a twentieth of the pids. */
void node_machine_pressure(const struct node_places *p, const char *data_dir,
                           struct node_pressure *ret);
