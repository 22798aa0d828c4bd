/*
 * Options that the programs which serve a volume share: orlop-target and orlop-replica.
 */
#pragma once

#include "base/err.h"
#include "cli/cli.h"

/* Of target and replicas. */
#define CLI_KEY_OPTIONS                                                                            \
    {                                                                                              \
        "key-file", 0, "FILE",                                                                     \
            .complete = CLI_FILES,                                                                 \
            .doc = "The volume's key, which target and replicas share: 16 characters or more in "  \
                   "its first line. Without it neither listens nor dials."                         \
    }

#define CLI_SERVING_OPTIONS                                                                        \
    {"io", 0, "HOW", .choices = (const char *const[]){"auto", "uring", "epoll", NULL},             \
     .doc = "The event loop's back end (auto: io_uring, or epoll where that is refused)."},        \
        {"log-format", 0, "FORMAT", .choices = (const char *const[]){"text", "json", NULL},        \
         .doc = "Of the lines on standard error."},                                                \
    {                                                                                              \
        "log-level", 0, "LEVEL",                                                                   \
            .choices = (const char *const[]){"error", "warn", "info", "debug", NULL},              \
            .doc = "What to log."                                                                  \
    }

/* The log on standard error, as log-format and log-level say. */
int cli_log_init(const struct cli_args *args, struct err *e);
