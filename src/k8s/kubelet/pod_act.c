/*
 * Between the machine and the world: what is there becomes facts, and what the machine says is done.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "k8s/kubelet/pod_impl.h"
#include "kube/event.h"

/* Last words: the end of the log, where the Pod asks for that. */
static void take_last_words(const struct pod_run *r, size_t i, struct pod_end *end)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    const char *policy = json_str(c->json, "terminationMessagePolicy");
    if (*end->message || end->exit_code == 0 || !policy || !str_eq(policy, "FallbackToLogsOnError"))
        return;
    _cleanup_free_ char *folder =
        pod_log_folder(r->all->options.data_dir, r->spec.ns, r->spec.name);
    _cleanup_free_ char *path = mem_printf("%s/%s.log", folder, c->name);
    char text[sizeof(end->message)];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    off_t at = fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(text) - 1
                   ? st.st_size - (off_t)sizeof(text) + 1
                   : 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, at);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* Whole lines, without their times. */
    const char *line = at ? strchr(text, '\n') : text;
    size_t used = 0;
    for (line = line && at ? line + 1 : line; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *space = strchr(line, ' ');
        size_t len = strcspn(line, "\n");
        size_t skip = space && (size_t)(space - line) < len ? (size_t)(space - line) + 1 : 0;
        if (len == 0)
            continue;
        memcpy(end->message + used, line + skip, len - skip);
        used += len - skip;
        end->message[used++] = '\n';
    }
    end->message[used] = '\0';
}

static void note_end(struct pod_run *r, size_t i, bool adopted)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    struct pod_facts *f = &r->facts.p[i];
    int64_t ran = f->end.finished - f->end.started;
    if (ran >= r->all->options.backoff_reset_ns)
        f->streak = 1;
    else
        f->streak = adopted ? (unsigned)f->number + 1 : f->streak + 1;
    pod_prober_forget(r->all->prober, r->spec.uid, c->name);
    take_last_words(r, i, &f->end);
    if (!r->all->cgroup)
        return;
    _cleanup_free_ char *id = mem_printf("%s/%s/%d", r->spec.uid, c->name, f->number);
    _cleanup_free_ char *folder = pod_cgroup_path(r->all->cgroup, id);
    if (f->end.exit_code == 137 && pod_cgroup_oom(folder))
        f->end.reason = "OOMKilled";
    pod_cgroup_remove(folder);
}

static void ask_probes(struct pod_run *r, size_t i, pid_t pid)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    struct pod_facts *f = &r->facts.p[i];
    struct pod_place place = pod_place_of(r);
    struct pod_subject s = {&r->spec, c, f->number, pid, place.pod_ip};
    if (f->hook == POD_HOOK_RUNS && pod_prober_hook(r->all->prober, &s, r->spec.grace_ns))
        f->hook = POD_HOOK_DONE;
    if (f->stop_ns)
        return; /* it is on its way out: what it says does not matter any more */
    for (int check = 0; check < POD_CHECKS; check++) {
        if (c->probes[check].means == POD_NO_PROBE ||
            (check != POD_STARTUP && !pod_is_started(c, f)))
            continue;
        f->verdicts[check] = pod_prober_ask(r->all->prober, &s, (enum pod_check)check);
    }
}

static int observe_one(struct pod_run *r, size_t i, struct err *e)
{
    struct pod_facts *f = &r->facts.p[i];
    _cleanup_free_ char *folder = pod_container_folder(r->folder, r->spec.containers.p[i].name);
    _cleanup_free_ char *mark = pod_mark(r, i);
    enum pod_running before = f->running;
    int number = f->number;
    int64_t ended = f->ended_ns;
    pid_t pid;
    if (pod_look(folder, mark, r->all->clock, f, &pid, e) < 0)
        return -1;
    if (f->number != number) {
        if (number < 0)
            f->streak = (unsigned)f->number; /* ends that somebody else has seen */
        memset(f->verdicts, 0, sizeof(f->verdicts));
        f->stop_ns = f->term_ns = 0;
        f->hook = POD_HOOK_NONE;
        f->killed = false;
        f->blocked = NULL;
    }
    if (f->running == POD_ENDED && before == POD_ENDED && f->number == number)
        f->ended_ns = ended; /* whatever the wall clock says meanwhile */
    else if (f->running == POD_ENDED)
        note_end(r, i, number < 0);
    if (f->running != POD_RUNNING)
        return 0;
    if (r->watched.p[i] != f->number) {
        r->watched.p[i] = f->number;
        pod_watch_add(r->all->watch, r->spec.ns, r->spec.name, folder);
    }
    if (pid > 0)
        ask_probes(r, i, pid);
    return 0;
}

int pod_observe(struct pod_run *r, struct err *e)
{
    for (size_t i = 0; i < r->spec.containers.len; i++) {
        if (observe_one(r, i, e) < 0)
            return -1;
    }
    return 0;
}

static void tell_stop(struct pod_run *r, size_t i)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    const struct pod_facts *f = &r->facts.p[i];
    json_auto_t *about = pod_reference(&r->spec, c);
    const char *probe = f->verdicts[POD_STARTUP] == POD_BAD    ? "startup"
                        : f->verdicts[POD_LIVENESS] == POD_BAD ? "liveness"
                                                               : NULL;
    if (probe)
        kube_event_normal(r->all->recorder, about, "Killing",
                          "Container %s failed %s probe, will be restarted", c->name, probe);
    else
        kube_event_normal(r->all->recorder, about, "Killing", "Stopping container %s", c->name);
}

/* Begins the hook. One that only sleeps is nothing to run: somebody looks again when it is over. */
static void begin_hook(struct pod_run *r, size_t i)
{
    const json_t *seconds = json_at(r->spec.containers.p[i].pre_stop, "sleep", "seconds");
    r->facts.p[i].hook = POD_HOOK_RUNS;
    if (json_is_integer(seconds))
        kube_controller_add_after(r->all->controller, r->spec.ns, r->spec.name,
                                  json_integer_value(seconds) * CLOCK_SECOND + CLOCK_SECOND / 20);
}

static void stop(struct pod_run *r, size_t i, enum pod_verb verb)
{
    struct pod_facts *f = &r->facts.p[i];
    int64_t now = clock_mono_ns(r->all->clock);
    _cleanup_free_ char *folder = pod_container_folder(r->folder, r->spec.containers.p[i].name);
    if (!f->stop_ns)
        tell_stop(r, i);
    f->stop_ns = f->stop_ns ? f->stop_ns : now;
    if (verb == POD_HOOK) {
        begin_hook(r, i);
        return;
    }
    if (verb == POD_TERM)
        f->term_ns = now;
    bool sent = pod_signal(folder, f->number, verb == POD_KILL ? SIGKILL : SIGTERM);
    f->killed = verb == POD_KILL && sent;
}

bool pod_act(struct pod_run *r, const struct pod_plan *plan)
{
    bool acted = false;
    for (size_t i = 0; i < plan->verbs.len; i++) {
        enum pod_verb verb = plan->verbs.p[i];
        acted |= verb != POD_KEEP;
        if (verb == POD_START)
            pod_start(r, i);
        else if (verb != POD_KEEP)
            stop(r, i, verb);
    }
    return acted;
}
