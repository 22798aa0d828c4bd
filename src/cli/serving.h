/*
 * Options that the programs which serve a volume share: orlop-target and orlop-replica.
 */
#pragma once

#include "cli/log.h"

/* For a text key_file in the settings. */
#define CLI_KEY_OPTION(settings)                                                                   \
    {                                                                                              \
        "key-file", 0, "FILE", CLI_FILE, CLI_AT(settings, key_file),                               \
            .doc = "The volume's key, which target and replicas share: 16 characters or more in "  \
                   "its first line. Without it neither listens nor dials."                         \
    }

/* For a member `io`, an enum io_backend, and `log`. */
#define CLI_SERVING_OPTIONS(settings)                                                              \
    {"io",                                                                                         \
     0,                                                                                            \
     "HOW",                                                                                        \
     CLI_ENUM,                                                                                     \
     CLI_AT(settings, io),                                                                         \
     .def = "auto",                                                                                \
     .choices = CLI_WORDS("auto", "uring", "epoll"),                                               \
     .doc = "Back end of the event loop. auto is io_uring, or epoll where that is refused."},      \
        CLI_LOG_OPTIONS(settings)
