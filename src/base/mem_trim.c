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
#include "base/vec.h"

struct mapping {
    unsigned long begin, end;
};

/* Whether the line begins a mapping of a file that is only read. */
static int parse_head(const char *line, struct mapping *ret_m, bool *ret_file)
{
    char mode[5], path;
    int n = sscanf(line, "%lx-%lx %4s %*s %*s %*s %c", &ret_m->begin, &ret_m->end, mode, &path);
    if (n < 3)
        return -1;
    *ret_file = n == 4 && path == '/' && mode[0] == 'r' && mode[1] == '-' && mode[3] == 'p';
    return 0;
}

void mem_trim(void)
{
    VEC(struct mapping) clean = {0};
    struct mapping m = {0}, next;
    bool file = false, next_file;
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long own;
        if (parse_head(line, &next, &next_file) == 0) {
            m = next;
            file = next_file;
        } else if (file && sscanf(line, "Anonymous: %lu", &own) == 1 && own == 0) {
            vec_push(&clean, m);
        }
    }
    if (f)
        fclose(f);
    vec_for_each(&clean, it) /* without effect where the kernel does not want to */
        madvise((void *)it->begin, it->end - it->begin, MADV_DONTNEED);
    vec_done(&clean);
    malloc_trim(0);
}
