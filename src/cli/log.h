/*
 * The log of a program that serves, on standard error: its options and its start.
 */
#pragma once

#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

struct cli_log {
    enum log_format format;
    enum log_level level;
};

/* For a struct cli_log named `log` in the settings. */
#define CLI_LOG_OPTIONS(settings)                                                                  \
    {"log-format",                                                                                 \
     0,                                                                                            \
     "FORMAT",                                                                                     \
     CLI_ENUM,                                                                                     \
     CLI_AT(settings, log.format),                                                                 \
     .def = "text",                                                                                \
     .choices = CLI_WORDS("text", "json"),                                                         \
     .doc = "Format of the log on standard error."},                                               \
    {                                                                                              \
        "log-level", 0, "LEVEL", CLI_ENUM, CLI_AT(settings, log.level),                            \
            .def = "info", .choices = CLI_WORDS("error", "warn", "info", "debug"),                 \
            .doc = "What to log."                                                                  \
    }

static inline void cli_log_start(const struct cli_log *log)
{
    log_init(STDERR_FILENO, log->format, log->level);
}
