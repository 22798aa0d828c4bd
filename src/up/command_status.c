#include <stdlib.h>
#include <unistd.h>

#include "base/age.h"
#include "base/clock.h"
#include "base/file.h"
#include "ui/term.h"
#include "up/commands.h"
#include "up/place.h"

/* Memory of a process in MB; 0 when it is not there. */
static double memory_of(json_int_t pid)
{
    _cleanup_free_ char *path = mem_printf("/proc/%lld/statm", (long long)pid);
    _cleanup_(str_done) struct str text = {0};
    const char *resident =
        pid > 0 && file_read(path, 4096, &text, NULL) == 0 ? strchr(str_get(&text), ' ') : NULL;
    return !resident ? 0 : strtod(resident, NULL) * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void show_program(const json_t *program, bool in_use)
{
    json_int_t pid = json_integer_value(json_object_get(program, "pid"));
    const char *state = in_use ? json_text(program, "state") : "gone";
    bool runs = str_eq(state, "running");
    char age[AGE_MAX];
    age_since(json_text(program, "since"), clock_real_ns(clock_system()), age);
    printf("%-12s %s%-11s%s %7lld  %6.1f MB  %-9s %8lld  %s\n", json_text(program, "name"),
           ui_colour(stdout, runs ? UI_GREEN : UI_RED), state, ui_colour(stdout, UI_PLAIN),
           (long long)(runs ? pid : 0), runs ? memory_of(pid) : 0, runs ? age : "-",
           (long long)json_integer_value(json_object_get(program, "restarts")),
           json_text(program, "ended"));
}

static bool all_run(const json_t *programs)
{
    size_t i;
    json_t *program;
    json_array_foreach(programs, i, program) {
        if (!str_eq(json_text(program, "state"), "running"))
            return false;
    }
    return json_array_size(programs) > 0;
}

static int run_status(const struct cli_args *args)
{
    _cleanup_(up_place_done) struct up_place place = {.lock_fd = -1};
    struct err e = {0};
    const char *output = up_settings(args)->output;
    if (up_place_open(up_settings(args)->data, &place, &e) < 0)
        return cli_fail(args, "%s", e.msg);
    bool in_use = up_place_in_use(&place);
    json_auto_t *state = up_place_read(&place, &e);
    if (!state)
        return e.code == ERR_NOT_FOUND
                   ? cli_fail(args, "there is no system in %s; `orlop up` makes one", place.folder)
                   : cli_fail(args, "%s", e.msg);
    const json_t *programs = json_object_get(state, "programs");
    bool good = in_use && all_run(programs);
    if (str_eq(output, "json")) {
        _cleanup_(str_done) struct str text = {0};
        json_object_set_new(state, "running", json_boolean(in_use));
        json_object_set_new(state, "data", json_string(place.folder));
        json_format_pretty(state, &text);
        puts(str_get(&text));
    } else {
        printf("%s, %s, data in %s\n\n",
               !in_use                                         ? "stopped"
               : json_is_true(json_object_get(state, "ready")) ? "ready"
                                                               : "starting",
               json_text(state, "url"), place.folder);
        printf("%-12s %-11s %7s  %9s  %-9s %8s  %s\n", "PROGRAM", "STATE", "PID", "MEMORY",
               "RUNS FOR", "RESTARTS", "ENDED LAST");
        size_t i;
        json_t *program;
        json_array_foreach(programs, i, program)
            show_program(program, in_use);
    }
    int status = cli_finish(args);
    return status == CLI_DONE && !good ? CLI_FAILED : status;
}

static const struct cli_option options[] = {
    UP_DATA_OPTION,
    {"output", 'o', "FORMAT", CLI_ENUM, UP_AT(output), .def = "table",
     .choices = CLI_WORDS("table", "json"), .doc = "Output format."},
    {0},
};

CLI_COMMAND(status_command) = {
    .name = "status",
    .topic = CLI_MACHINE,
    .summary = "Show what `orlop up` runs",
    .doc =
        "Shows the programs of a system, since when they run, how often they were restarted, and "
        "how they ended last. The exit status is 0 when all of them run, 1 otherwise.",
    .settings = sizeof(struct up_settings),
    .options = options,
    .examples =
        (const char *const[][2]){
            {"orlop status -o json", "For a script."},
            {NULL},
        },
    .run = run_status,
};
