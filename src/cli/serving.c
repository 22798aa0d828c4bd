#include "cli/serving.h"

#include <unistd.h>

#include "base/log.h"

int cli_log_init(const struct cli_args *args, struct err *e)
{
    const char *format_text = cli_get(args, "log-format"), *level_text = cli_get(args, "log-level");
    enum log_format format = LOG_FORMAT_TEXT;
    enum log_level level = LOG_LEVEL_INFO;
    if ((format_text && log_format_parse(format_text, &format, e) < 0) ||
        (level_text && log_level_parse(level_text, &level, e) < 0))
        return -1;
    log_init(STDERR_FILENO, format, level);
    return 0;
}
