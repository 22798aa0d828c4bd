/*
 * What the kernel knows of this process.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "metrics/metrics.h"

enum { STAT_MAX = 4096, START_FIELD = 22, VSIZE_FIELD = 23, RSS_FIELD = 24 };

/* A number of /proc/self/stat, which counts from 1; the second field is a name in parentheses. */
static double stat_field(const char *text, int field)
{
    const char *p = strrchr(text, ')');
    for (int i = 2; p && i < field; i++)
        p = strchr(p + 1, ' ');
    return p ? strtod(p, NULL) : 0;
}

static double open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    double n = -3; /* ".", ".." and the folder itself */
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n > 0 ? n : 0;
}

static double boot_time(void)
{
    struct timespec real, boot;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (double)(real.tv_sec - boot.tv_sec) + (double)(real.tv_nsec - boot.tv_nsec) / 1e9;
}

static void one(struct metrics_out *out, const char *name, const char *help, enum metrics_type type,
                double value)
{
    metrics_out_family(out, name, help, type);
    metrics_out_value(out, NULL, NULL, value);
}

static void collect(void *context, struct metrics_out *out)
{
    const double *start = context;
    struct timespec cpu;
    struct rlimit files;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    one(out, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
        METRICS_COUNTER, (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    one(out, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        METRICS_GAUGE, *start);
    _cleanup_(str_done) struct str stat = {0};
    if (file_read("/proc/self/stat", STAT_MAX, &stat, NULL) == 0) {
        one(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.", METRICS_GAUGE,
            stat_field(stat.p, VSIZE_FIELD));
        one(out, "process_resident_memory_bytes", "Resident memory size in bytes.", METRICS_GAUGE,
            stat_field(stat.p, RSS_FIELD) * (double)sysconf(_SC_PAGESIZE));
    }
    one(out, "process_open_fds", "Number of open file descriptors.", METRICS_GAUGE, open_files());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        one(out, "process_max_fds", "Maximum number of open file descriptors.", METRICS_GAUGE,
            (double)files.rlim_cur);
}

void metrics_process(struct metrics *m)
{
    static double start; /* of the process, so there is one */
    _cleanup_(str_done) struct str stat = {0};
    if (start == 0 && file_read("/proc/self/stat", STAT_MAX, &stat, NULL) == 0)
        start = boot_time() + stat_field(stat.p, START_FIELD) / (double)sysconf(_SC_CLK_TCK);
    metrics_collect(m, collect, &start);
}
