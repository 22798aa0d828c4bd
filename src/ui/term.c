#include "ui/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ui_has_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

const char *ui_colour(FILE *f, enum ui_colour colour)
{
    static const char *const codes[] = {
        [UI_PLAIN] = "\033[0m",   [UI_BOLD] = "\033[1m",   [UI_RED] = "\033[1;31m",
        [UI_YELLOW] = "\033[33m", [UI_GREEN] = "\033[32m", [UI_DIM] = "\033[2m",
    };
    return ui_has_colour(f) ? codes[colour] : "";
}
