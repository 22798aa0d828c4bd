/*
 * Options that several commands have in common.
 */
#pragma once

#include "cli/cli.h"

#define CLI_API_OPTIONS                                                                            \
    {"kubeconfig", 0, "FILE", .complete = CLI_FILES,                                               \
     .doc = "Where the API is. Without it: that of --data, $KUBECONFIG, that of the data folder "  \
            "of `orlop up` if there is one, else what kubectl uses."},                             \
        {"context", 0, "NAME", .doc = "The context of it to use; its current one without this."},  \
    {                                                                                              \
        "data", 'd', "DIR", .complete = CLI_DIRS,                                                  \
                            .doc = "The data folder of an `orlop up`, whose API is meant."         \
    }

#define CLI_WAIT_OPTIONS                                                                           \
    {"wait", 'w', .doc = "Wait until it is done, or has failed."},                                 \
    {                                                                                              \
        "timeout", 't', "SECONDS", .doc = "How long to wait at most; 60 without it."               \
    }
