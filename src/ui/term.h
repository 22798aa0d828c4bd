/*
 * What a terminal can show. Colour only on a terminal, never with NO_COLOR or TERM=dumb.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum ui_colour { UI_PLAIN, UI_BOLD, UI_RED, UI_YELLOW, UI_GREEN, UI_DIM };

bool ui_has_colour(FILE *f);
/* The escape sequence that switches to the colour, or "" where there are no colours. */
const char *ui_colour(FILE *f, enum ui_colour colour);
/*
 * Writes a text that comes from somebody else: what a terminal would act on, tabs excepted, becomes
 * "?".
 */
void ui_text(FILE *f, const char *text, size_t len);
