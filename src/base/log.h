/*
 * Structured logging: a message, which is a constant, and typed fields, which vary.
 *
 *     log_info("pool imported", LOG_S("pool", name), LOG_I("devices", n));
 *     log_error("cannot import pool", LOG_S("pool", name), LOG_ERR(&e));
 *
 *     2026-01-02T03:04:05.678Z INFO  pool imported pool=tank devices=3
 *     {"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"pool imported","pool":"tank","devices":3}
 *
 * A line is at most LOG_LINE_MAX bytes and leaves in one write(2): that many a pipe takes whole, so
 * lines of several threads and processes never mix. Strings that do not fit are cut and end with
 * "...", fields that do not fit at all are left out and the line ends with cut=true.
 *
 * Values may come from anywhere: control characters, which could fake a line or drive a terminal,
 * are escaped, and bytes that are no UTF-8 are written \xNN in text and U+FFFD in JSON.
 *
 * Before log_init() the log goes to stderr as text from level info. Any thread may log. A level that
 * is off costs one load; the fields are not evaluated. Logging keeps errno and never fails: a line
 * that cannot be written is lost. A program that is to outlive the reader of its log ignores
 * SIGPIPE; signals are not a library's to change.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum { LOG_LINE_MAX = 4096 }; /* PIPE_BUF of Linux */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_field {
    const char *key;
    enum { LOG_STRING, LOG_INT, LOG_UINT, LOG_BOOL, LOG_ERROR, LOG_REDACTED } type;
    union {
        const char *s; /* NULL is written null */
        int64_t i;
        uint64_t u;
        bool b;
        const struct err *e;
    };
};

#define LOG_S(k, v)   ((struct log_field){.key = (k), .type = LOG_STRING, .s = (v)})
#define LOG_I(k, v)   ((struct log_field){.key = (k), .type = LOG_INT, .i = (v)})
#define LOG_U(k, v)   ((struct log_field){.key = (k), .type = LOG_UINT, .u = (v)})
#define LOG_B(k, v)   ((struct log_field){.key = (k), .type = LOG_BOOL, .b = (v)})
/* Three fields: code, reason and error, the message. */
#define LOG_ERR(v)    ((struct log_field){.key = "error", .type = LOG_ERROR, .e = (v)})
/* Says that there is a value and not which: "[redacted]". The value is not even passed. */
#define LOG_SECRET(k) ((struct log_field){.key = (k), .type = LOG_REDACTED})

/*
 * Where lines go and what they look like; fd stays the caller's and must outlive all logging. In
 * text the level is coloured when fd is a terminal.
 */
void log_init(int fd, enum log_format format, enum log_level level);
void log_set_level(enum log_level level);
/* For tests: whose time stamps the lines. It must outlive all logging. */
void log_set_clock(const struct clock *clock);

extern _Atomic int log_threshold; /* private to the next two */

static inline bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&log_threshold, memory_order_relaxed);
}

/* The array begins with a field that is not written, so that there may be none. */
#define log_at(level, msg, ...)                                                                    \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_field fields_[] = {{0}, ##__VA_ARGS__};                               \
            log_write(level, msg, fields_ + 1, sizeof(fields_) / sizeof(fields_[0]) - 1);          \
        }                                                                                          \
    } while (0)

#define log_error(msg, ...) log_at(LOG_LEVEL_ERROR, msg, ##__VA_ARGS__)
#define log_warn(msg, ...)  log_at(LOG_LEVEL_WARN, msg, ##__VA_ARGS__)
#define log_info(msg, ...)  log_at(LOG_LEVEL_INFO, msg, ##__VA_ARGS__)
#define log_debug(msg, ...) log_at(LOG_LEVEL_DEBUG, msg, ##__VA_ARGS__)

/* Writes whatever the level that is set. */
void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n);
