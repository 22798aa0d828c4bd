/* Reads quantities, one a line; prints the canonical text of each, or "error: " and why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quantity.h"

int main(void)
{
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        struct quantity q;
        struct err e;
        char buf[QUANTITY_TEXT_MAX];
        if (quantity_parse(line, &q, &e) < 0)
            printf("error: %s: %s\n", err_code_name(e.code), e.msg);
        else
            printf("%s\n", quantity_format(&q, buf));
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
