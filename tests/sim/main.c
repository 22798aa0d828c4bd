/*
 * orlop-sim: lives of a replicated volume, each from a seed.
 *
 *     orlop-sim --seeds A..B [-j N]    all of them; names those that failed
 *     orlop-sim --seed N [--trace]     one, with all that happens
 *     orlop-sim --file FILE            those that are named in a file, one in a line
 *     --until-failure                  ends at the first that fails
 *     --mutant N                       with a planted fault (only where these are built in; see tests/sim/mutants.py)
 *
 * Exits 0 when all were good, 1 when one failed, crashed or did not end, 2 when it was asked for something else.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim.h"

enum { PATIENCE = 60 }; /* seconds for a life, which takes milliseconds */

#ifdef REPL_MUTATE
int repl_mutant;
#endif

static struct sim *world;

/* A crash or a hang of the core is a failure of the seed, which must be named. */
static void stricken(int signal)
{
    char text[100];
    int n = snprintf(text, sizeof(text), "seed %lu: %s\n", world->seed,
                     signal == SIGALRM   ? "does not end"
                     : signal == SIGABRT ? "an assertion failed"
                                         : "a crash");
    if (write(STDOUT_FILENO, text, (size_t)n) < 0)
        _exit(2);
    _exit(1);
}

static bool life(uint64_t seed, bool trace)
{
    alarm(PATIENCE);
    bool good = sim_life(seed, trace, world);
    alarm(0);
    if (!good) {
        printf("seed %lu: %s\n", seed, world->failure.why);
        fflush(stdout);
    }
    return good;
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

static bool plant(const char *number)
{
#ifdef REPL_MUTATE
    repl_mutant = atoi(number);
    return true;
#else
    (void)number;
    return false;
#endif
}

static int usage(const char *what)
{
    fprintf(stderr,
            "orlop-sim: %s: write --seeds A..B [-j N] [--until-failure], --seed N [--trace] or "
            "--file FILE; --mutant N only in a build with -DREPL_MUTATE\n",
            what);
    return 2;
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
        else if (strcmp(argv[i], "--mutant") == 0 && *value && plant(value))
            i++;
        else
            return usage(argv[i]);
    }
    world = NEW(struct sim);
    signal(SIGABRT, stricken);
    signal(SIGALRM, stricken);
    signal(SIGFPE, stricken);
#ifndef __SANITIZE_ADDRESS__ /* it says more of a bad access itself */
    signal(SIGSEGV, stricken);
    signal(SIGBUS, stricken);
#endif
    if (file)
        status = from_file(file);
    else if (trace)
        status = !life(first, true);
    else
        status = parallel(first, last, jobs, until_failure);
    if (first == last && !file)
        printf("%s: %lu steps, %lu reads, %lu writes, %lu flushes, %lu crashes, %lu stops, %lu "
               "elections, %lu changes, %lu losses, served %lu times\n",
               status ? "failed" : "good", world->steps, world->stats.reads, world->stats.writes,
               world->stats.flushes, world->stats.crashes, world->stats.stops,
               world->stats.elections, world->stats.admin, world->stats.losses,
               world->stats.serving);
    free(world);
    return status;
}
