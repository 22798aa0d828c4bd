/*
 * What a terminal can show. Colour only on a terminal, never with NO_COLOR or TERM=dumb.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum ui_colour { UI_PLAIN, UI_BOLD, UI_RED, UI_YELLOW, UI_GREEN, UI_DIM };

/* Whether the locale's characters are Unicode. */
bool ui_has_unicode(void);
/* How much of something is done, percent from 0 to 100: [#####-----] */
void ui_bar(FILE *f, unsigned percent, unsigned width);
/* The escape sequence that switches to the colour, or "" where there are no colours. */
const char *ui_colour(FILE *f, enum ui_colour colour);
/*
 * Writes a text that comes from somebody else: what a terminal would act on, tabs excepted, becomes
 * "?".
 */
void ui_text(FILE *f, const char *text, size_t len);
