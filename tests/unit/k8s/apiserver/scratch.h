/*
 * A folder for one test program, or one test: made before, removed with all that is in it after.
 */
#pragma once

#include <unistd.h>

#include "base/file.h"
#include "unit.h"

static char *folder;

static inline int scratch_begin(void **state)
{
    (void)state;
    char template[] = "/tmp/orlop-unit-XXXXXX";
    folder = mem_strdup(mkdtemp(template));
    return 0;
}

static inline int scratch_end(void **state)
{
    (void)state;
    int status = file_remove_tree(folder, NULL);
    free(folder);
    return status;
}
