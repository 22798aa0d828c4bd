/*
 * The loader and the constructors of libraries touch, and the kernel maps around each touch, far more
 * than a program that is up and waits ever uses again.
 *
 * Only mappings of files that cannot be written, and of which no page is the process' own, are given
 * back: the relocated parts of a library (RELRO) cannot be written either, and would be lost.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

struct mapping {
    unsigned long begin, end;
};

/* Whether the line begins a mapping: "BEGIN-END MODE OFFSET DEVICE INODE PATH". */
static bool parse_head(const char *line, struct mapping *ret_m, bool *ret_file)
{
    char *at;
    struct mapping m;
    m.begin = strtoul(line, &at, 16);
    if (*at != '-')
        return false;
    m.end = strtoul(at + 1, &at, 16);
    if (*at != ' ')
        return false;
    *ret_m = m;
    *ret_file = str_starts_with(at, " r-") && at[4] == 'p' && strchr(at, '/');
    return true;
}

void mem_trim(void)
{
    VEC(struct mapping) clean = {0};
    struct mapping m = {0};
    bool file = false;
    static const char own[] = "Anonymous:";
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    while (f && fgets(line, sizeof(line), f)) {
        if (!parse_head(line, &m, &file) && file && str_starts_with(line, own) &&
            strtoul(line + sizeof(own) - 1, NULL, 10) == 0)
            vec_push(&clean, m);
    }
    if (f)
        fclose(f);
    vec_for_each(&clean, it) /* without effect where the kernel does not want to */
        madvise((void *)it->begin, it->end - it->begin, MADV_DONTNEED);
    vec_done(&clean);
    malloc_trim(0);
}
