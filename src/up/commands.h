/*
 * What the commands of a system on this machine share.
 */
#pragma once

#include "cli/cli.h"

struct up_settings {
    const char *data;
    unsigned nodes;
    const char *sparse_disks, *vg_disks, *listen, *lost_after, *rehome_after;
    bool detach, force, follow;
    const char *output;
    unsigned tail;
    int64_t ttl;
    const char *server, *description;
};

static inline const struct up_settings *up_settings(const struct cli_args *args)
{
    return args->settings;
}

#define UP_AT(member) CLI_AT(struct up_settings, member)

#define UP_DATA_OPTION                                                                             \
    {                                                                                              \
        "data", 'd', "DIR", CLI_DIR, UP_AT(data),                                                  \
            .doc = "The data folder. Without it: $ORLOP_DATA, else /var/lib/orlop for root and "   \
                   "~/.local/share/orlop for others."                                              \
    }
