#include "ui/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

bool ui_has_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) /* the first that is set decides */
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

void ui_bar(FILE *f, unsigned percent, unsigned width)
{
    bool unicode = ui_has_unicode();
    unsigned full = (percent > 100 ? 100 : percent) * width / 100;
    fputc('[', f);
    for (unsigned i = 0; i < width; i++)
        fputs(i < full ? unicode ? "█" : "#" : unicode ? "░" : "-", f);
    fputc(']', f);
}

const char *ui_colour(FILE *f, enum ui_colour colour)
{
    static const char *const codes[] = {
        [UI_PLAIN] = "\033[0m",   [UI_BOLD] = "\033[1m",   [UI_RED] = "\033[1;31m",
        [UI_YELLOW] = "\033[33m", [UI_GREEN] = "\033[32m", [UI_DIM] = "\033[2m",
    };
    return has_colour(f) ? codes[colour] : "";
}

void ui_text(FILE *f, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    for (; p < end; p++) {
        bool c1 = p[0] == 0xc2 && p + 1 < end && p[1] >= 0x80 && p[1] < 0xa0;
        bool acts = (p[0] < 0x20 && p[0] != '\t') || p[0] == 0x7f || c1;
        fputc(acts ? '?' : p[0], f);
        p += c1;
    }
}
