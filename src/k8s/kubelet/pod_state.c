/*
 * What is on disk of a pod, and what that says about its containers.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "k8s/kubelet/pod_impl.h"
#include "k8s/shim/shim.h"

enum { MEMORY_MOST = 4 << 20, STATUS_MOST = 4096 };

char *pod_state_folder(const char *data_dir, const char *uid)
{
    return mem_printf("%s/pods/.state%s%s", data_dir, uid ? "/" : "", uid ? uid : "");
}

char *pod_log_folder(const char *data_dir, const char *ns, const char *pod)
{
    return mem_printf("%s/pods/%s/%s", data_dir, ns, pod);
}

char *pod_container_folder(const char *state, const char *container)
{
    return mem_printf("%s/containers/%s", state, container);
}

void pod_memory_done(struct pod_memory *m)
{
    json_decref(m->pod);
    m->pod = NULL;
}

int pod_memory_read(const char *state, struct pod_memory *ret_memory, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/pod.json", state);
    _cleanup_(str_done) struct str text = {0};
    if (file_read(path, MEMORY_MOST, &text, e) < 0)
        return -1;
    json_auto_t *json = json_parse(str_get(&text), text.len, NULL, e);
    json_t *pod = json_object_get(json, "pod");
    const char *ip = json_str(json, "ip");
    if (!json_is_object(pod))
        return json ? err_set(e, ERR_DATA_LOSS, "Corrupt", "%s holds no pod", path)
                    : err_prefix(e, "%s", path);
    *ret_memory = (struct pod_memory){
        .pod = json_incref(pod),
        .start_time = json_integer_value(json_object_get(json, "startTime")),
    };
    snprintf(ret_memory->ip, sizeof(ret_memory->ip), "%s", ip ? ip : "");
    return 0;
}

int pod_memory_write(const char *state, const struct pod_memory *m, struct err *e)
{
    _cleanup_free_ char *path = mem_printf("%s/pod.json", state);
    _cleanup_(str_done) struct str text = {0};
    json_auto_t *json = json_pack("{s:O, s:s, s:I}", "pod", m->pod, "ip", m->ip, "startTime",
                                  (json_int_t)m->start_time);
    json_format(json, &text);
    if (file_make_dirs(state, 0700, e) < 0)
        return -1;
    return file_replace(path, str_get(&text), text.len, 0600, e);
}

void pod_names_done(struct pod_names *n)
{
    vec_for_each(&n->p, it)
        free(*it);
    vec_done(&n->p);
}

int pod_state_list(const char *folder, struct pod_names *ret_names, struct err *e)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    if (!d)
        return errno == ENOENT ? 0 : err_errno(e, errno, "%s", folder);
    while ((entry = readdir(d))) {
        if (entry->d_name[0] != '.')
            vec_push(&ret_names->p, mem_strdup(entry->d_name));
    }
    closedir(d);
    return 0;
}

int pod_last_number(const char *folder)
{
    _cleanup_(pod_names_done) struct pod_names names = {0};
    int last = -1;
    pod_state_list(folder, &names, NULL);
    vec_for_each(&names.p, it) {
        char *end;
        long n = strtol(*it, &end, 10);
        if (end != *it && str_eq(end, ".status") && n > last && n < INT32_MAX)
            last = (int)n;
    }
    return last;
}

static int read_status(const char *folder, int number, struct shim_status *ret_status,
                       struct err *e)
{
    _cleanup_free_ char *path = shim_status_path(folder, (unsigned)number);
    _cleanup_(str_done) struct str text = {0};
    if (file_read(path, STATUS_MOST, &text, e) < 0)
        return -1;
    return shim_status_parse(str_get(&text), ret_status, e);
}

bool pod_run_error(const char *folder, int number, char ret_why[256])
{
    struct shim_status s = {0};
    if (read_status(folder, number, &s, NULL) < 0 || !*s.error)
        return false;
    snprintf(ret_why, 256, "%s", s.error);
    return true;
}

/*
 * Nobody knows how it ended: what is left of it must not run beside the next. The program by its
 * record, even if it has cleared its environment; the others by their mark.
 */
static void kill_left(const struct shim_status *s, const char *mark)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    if (s->pid > 0 && s->ticks && shim_ticks(s->pid) == s->ticks)
        kill(-s->pid, SIGKILL);
    for (int tries = 0; tries < 250; tries++) {
        bool there = s->pid > 0 && s->ticks && shim_ticks(s->pid) == s->ticks;
        if (!shim_signal_marked(mark, true, SIGKILL) && !there)
            return;
        nanosleep(&pause, NULL);
    }
}

static void take_end(const struct shim_status *s, int64_t now, struct pod_end *end)
{
    *end = (struct pod_end){
        .exit_code = s->signal ? 128 + s->signal : s->exit_code,
        .signal = s->signal,
        .started = s->started ? s->started : now,
        .finished = s->finished ? s->finished : now,
        .reason = s->signal || s->exit_code ? "Error" : "Completed",
    };
    if (!s->ended) {
        end->exit_code = 137;
        end->reason = "ContainerStatusUnknown";
        snprintf(end->message, sizeof(end->message),
                 "the shim of the container was killed: how it ended is not known");
    } else if (*s->error) {
        end->reason = "ContainerCannotRun";
        snprintf(end->message, sizeof(end->message), "%s", s->error);
    }
}

int pod_look(const char *folder, const char *mark, const struct clock *clock,
             struct pod_facts *facts, pid_t *ret_pid, struct err *e)
{
    int number = pod_last_number(folder);
    *ret_pid = 0;
    if (number < 0 || (facts->number == number && facts->running == POD_ENDED))
        return 0;
    /* The lock before the record: when nobody holds it, the record is the last word. */
    bool held = shim_owner(folder) > 0;
    struct shim_status s = {0}, before = {0};
    if (read_status(folder, number, &s, e) < 0)
        return -1;
    if (number != facts->number && number > 0) {
        facts->has_last = read_status(folder, number - 1, &before, NULL) == 0;
        take_end(&before, s.started, &facts->last);
    }
    facts->number = number;
    facts->started = s.started;
    facts->running = held && !s.ended ? POD_RUNNING : POD_ENDED;
    if (facts->running == POD_RUNNING) {
        *ret_pid = s.pid;
        return 0;
    }
    if (!s.ended)
        kill_left(&s, mark);
    int64_t real = clock_real_ns(clock), mono = clock_mono_ns(clock);
    take_end(&s, real, &facts->end);
    int64_t ago = real - facts->end.finished;
    facts->ended_ns = mono - (ago > 0 && ago < mono ? ago : 0);
    return 0;
}

bool pod_signal(const char *folder, int number, int signum)
{
    struct shim_status s = {0};
    if (shim_owner(folder) <= 0 || read_status(folder, number, &s, NULL) < 0 || s.pid <= 0)
        return false;
    int fd = pidfd_open(s.pid, 0);
    bool sent = fd >= 0 && shim_ticks(s.pid) == s.ticks && s.ticks != 0 &&
                pidfd_send_signal(fd, signum, NULL, 0) == 0;
    if (fd >= 0)
        close(fd);
    return sent;
}
