/*
 * orlop-sim: lives of a replicated volume, each from a seed.
 *
 *     orlop-sim --seeds A..B [-j N]    all of them; exits 1 and names those that failed
 *     orlop-sim --seed N [--trace]     one, with all that happens
 *     orlop-sim --file FILE            those that are named in a file, one in a line
 *     --until-failure                  ends at the first that fails; exits 0 if there is one (for mutants)
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim.h"

static struct sim *world;

static bool life(uint64_t seed, bool trace)
{
    if (sim_life(seed, trace, world))
        return true;
    printf("seed %lu: %s\n", seed, world->failure.why);
    fflush(stdout);
    return false;
}

static int range(uint64_t first, uint64_t last, uint64_t step, bool until_failure)
{
    uint64_t failed = 0;
    for (uint64_t s = first; s <= last; s += step) {
        failed += !life(s, false);
        if (failed && until_failure)
            return 1;
    }
    return failed ? 1 : 0;
}

static int parallel(uint64_t first, uint64_t last, int jobs, bool until_failure)
{
    int failed = 0;
    fflush(stdout);
    for (int i = 1; i < jobs; i++)
        if (fork() == 0)
            _exit(range(first + (uint64_t)i, last, (uint64_t)jobs, until_failure));
    failed |= range(first, last, (uint64_t)jobs, until_failure);
    for (int i = 1; i < jobs; i++) {
        int status = 0;
        wait(&status);
        failed |= status != 0;
    }
    return failed;
}

static int from_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[200];
    int failed = 0;
    if (!f) {
        perror(path);
        return 2;
    }
    while (fgets(line, sizeof(line), f))
        if (line[0] >= '0' && line[0] <= '9')
            failed |= !life(strtoull(line, NULL, 10), false);
    fclose(f);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, last = 100;
    int jobs = 1, status = 0;
    bool trace = false, until_failure = false;
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "", *dots;
        if (strcmp(argv[i], "--seeds") == 0 && (dots = strstr(value, "..")))
            first = strtoull(value, NULL, 10), last = strtoull(dots + 2, NULL, 10), i++;
        else if (strcmp(argv[i], "--seed") == 0)
            first = last = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--file") == 0)
            file = value, i++;
        else if (strcmp(argv[i], "-j") == 0)
            jobs = atoi(value), i++;
        else if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (strcmp(argv[i], "--until-failure") == 0)
            until_failure = true;
        else {
            fprintf(stderr,
                    "orlop-sim: %s: write --seeds A..B [-j N], --seed N [--trace] or --file FILE\n",
                    argv[i]);
            return 2;
        }
    }
    world = NEW(struct sim);
    if (file)
        status = from_file(file);
    else if (trace)
        status = !life(first, true);
    else
        status = parallel(first, last, jobs, until_failure);
    if (first == last && !file)
        printf("%s: %lu steps, %lu reads, %lu writes, %lu flushes, %lu crashes, %lu elections, %lu "
               "changes, %lu losses, served %lu times\n",
               status ? "failed" : "good", world->steps, world->stats.reads, world->stats.writes,
               world->stats.flushes, world->stats.crashes, world->stats.elections,
               world->stats.admin, world->stats.losses, world->stats.serving);
    free(world);
    return until_failure ? !status : status;
}
