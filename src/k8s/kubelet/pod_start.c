/*
 * From a container's description to its shim. Whatever stands against it is noted as a state of
 * waiting that says what to do, and tried again later: the world may change.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/spawn.h"
#include "k8s/kinds/kinds.h"
#include "k8s/kubelet/pod_impl.h"
#include "k8s/shim/shim.h"
#include "kube/event.h"

enum { SHIM_MS = 60 * 1000 };

static const int64_t retry_soon_ns = 2 * CLOCK_SECOND, retry_late_ns = 60 * CLOCK_SECOND;

char *pod_mark(const struct pod_run *r, size_t i)
{
    return mem_printf("%s/%s/", r->spec.uid, r->spec.containers.p[i].name);
}

/* Notes why it cannot start; tells of it when that is news. */
static void block(struct pod_run *r, size_t i, const char *reason, const char *event,
                  int64_t retry_ns, const char *why)
{
    struct pod_facts *f = &r->facts.p[i];
    bool news = !f->blocked || !str_eq(f->blocked, reason) || !str_eq(f->why, why);
    f->blocked = reason;
    f->retry_ns = clock_mono_ns(r->all->clock) + retry_ns;
    if (!news)
        return;
    snprintf(f->why, sizeof(f->why), "%.*s", (int)str_cut(why, sizeof(f->why) - 1), why);
    json_auto_t *about = pod_reference(&r->spec, &r->spec.containers.p[i]);
    kube_event_warning(r->all->recorder, about, event, "%s%s",
                       str_eq(event, "Failed") ? "Error: " : "", f->why);
}

static int check_probes(const struct pod_container *c, struct err *e)
{
    static const char *const names[] = {"startupProbe", "livenessProbe", "readinessProbe"};
    for (int i = 0; i < POD_CHECKS; i++) {
        const struct pod_probe *p = &c->probes[i];
        const char *problem =
            p->means == POD_NO_PROBE ? NULL : pod_action_problem(p->means, p->json);
        if (problem)
            return err_set(e, ERR_UNIMPLEMENTED, "NotSupported", "%s: %s", names[i], problem);
    }
    if (json_at(c->json, "lifecycle", "postStart"))
        return err_set(e, ERR_UNIMPLEMENTED, "NotSupported",
                       "lifecycle.postStart is not supported here; use a startupProbe, or begin "
                       "with it in the command");
    return 0;
}

/* Which program it is: ours, or one of the host for a Pod that asks for it and may. */
static char *choose_program(struct pod_run *r, size_t i, const struct pod_vars *vars,
                            bool *ret_from_command, const char **ret_ours)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    const char *program = api_image_program(c->image);
    const char *first = json_string_value(json_array_get(json_object_get(c->json, "command"), 0));
    *ret_from_command = first != NULL;
    *ret_ours = NULL;
    if (r->spec.host_process && first) {
        if (r->all->options.allow_host_commands)
            return pod_expand(first, vars);
        block(
            r, i, "HostCommandsNotAllowed", "Failed", retry_late_ns,
            "the Pod asks to run a command of the host (annotation " API_POD_HOST_PROCESS
            ") and this node does not allow that; start orlop-node with --allow-host-commands, or "
            "run it on another node");
        return NULL;
    }
    /* The command of one of our images names one of our programs. */
    if (program && first)
        program = api_image_program(first);
    if (program) {
        _cleanup_free_ char *path = mem_printf("%s/%s", r->all->options.libexec, program);
        *ret_ours = program;
        if (access(path, X_OK) == 0)
            return TAKE_PTR(path);
    }
    _cleanup_free_ char *why =
        program ? mem_printf("image \"%.200s\" stands for the program %s, which is not in %.200s",
                             c->image, program, r->all->options.libexec)
        : r->spec.host_process
            ? mem_printf("the Pod runs on the host (annotation " API_POD_HOST_PROCESS
                         ") and container %s has no command: write one",
                         c->name)
            : mem_printf("image \"%.200s\" cannot run here: this node runs Pods as processes of "
                         "the host and has no container runtime. Use one of Orlop's own images, "
                         "annotate the Pod with " API_POD_HOST_PROCESS
                         ": \"true\" to run its command from the host, or use Kubernetes",
                         c->image);
    block(r, i, "ErrImageNeverPull", "Failed", retry_late_ns, why);
    return NULL;
}

static int64_t id_of(const struct pod_run *r, const struct pod_container *c, const char *key)
{
    const json_t *own = json_at(c->json, "securityContext", key);
    const json_t *shared = json_at(r->spec.pod, "spec", "securityContext", key);
    const json_t *id = json_is_integer(own) ? own : shared;
    return json_is_integer(id) && json_integer_value(id) >= 0 ? json_integer_value(id) : -1;
}

struct launch {
    struct shim_spec spec;
    struct pod_vars vars;
    struct pod_mounts mounts;
    VEC(char *) words; /* owned: argv, and other texts */
};

static void launch_done(struct launch *l)
{
    shim_spec_done(&l->spec);
    pod_vars_done(&l->vars);
    pod_mounts_done(&l->mounts);
    vec_for_each(&l->words, it)
        free(*it);
    vec_done(&l->words);
}

static const char *keep(struct launch *l, char *text)
{
    vec_push(&l->words, text);
    return text;
}

static void add_arguments(struct launch *l, const json_t *list, size_t from)
{
    for (size_t i = from; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        vec_push(&l->spec.argv, keep(l, pod_expand(word ? word : "", &l->vars)));
    }
}

static void fill(struct pod_run *r, size_t i, bool ours, struct launch *l)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    struct shim_spec *s = &l->spec;
    const char *cwd = json_str(c->json, "workingDir");
    _cleanup_free_ char *logs = pod_log_folder(r->all->options.data_dir, r->spec.ns, r->spec.name);
    s->number = (unsigned)(r->facts.p[i].number + 1);
    s->folder = keep(l, pod_container_folder(r->folder, c->name));
    s->log = keep(l, mem_printf("%s/%s.log", logs, c->name));
    s->previous_log = keep(l, mem_printf("%s/%s.previous.log", logs, c->name));
    s->cwd = cwd && *cwd ? keep(l, pod_expand(cwd, &l->vars)) : NULL;
    s->uid = id_of(r, c, "runAsUser");
    s->gid = id_of(r, c, "runAsGroup");
    int64_t shared = id_of(r, c, "fsGroup");
    if (shared >= 0)
        vec_push(&s->groups, shared);
    size_t n;
    json_t *group;
    json_array_foreach(json_at(r->spec.pod, "spec", "securityContext", "supplementalGroups"), n,
                       group) {
        if (json_is_integer(group))
            vec_push(&s->groups, json_integer_value(group));
    }
    /* The mark first: the first of a name is the one that counts. */
    _cleanup_free_ char *mark = pod_mark(r, i);
    vec_push(&s->env, keep(l, mem_printf(SHIM_MARK "=%s%u", mark, s->number)));
    if (ours) /* what may be a device of this node */
        vec_push(&s->env,
                 keep(l, mem_printf("ORLOP_SPARSE_DIR=%s/sparse", r->all->options.data_dir)));
    vec_for_each(&l->vars.p, it)
        vec_push(&s->env, *it);
    if (pod_wants_access(r->spec.pod) && !pod_vars_get(&l->vars, "KUBECONFIG")) {
        _cleanup_free_ char *path = pod_access_path(r->folder);
        vec_push(&s->env, keep(l, mem_printf("KUBECONFIG=%s", path)));
    }
    vec_for_each(&l->mounts.p, it)
        vec_push(&s->mounts, (struct shim_mount){it->source, it->target, it->read_only});
}

static int run_shim(struct pod_run *r, const struct launch *l, struct err *e)
{
    _cleanup_free_ char *logs = pod_log_folder(r->all->options.data_dir, r->spec.ns, r->spec.name);
    _cleanup_(str_done) struct str text = {0};
    const char *argv[] = {r->all->shim, NULL};
    shim_spec_format(&l->spec, &text);
    struct spawn spawn = {
        .argv = argv, .input = text.p, .input_size = text.len, .timeout_ms = SHIM_MS};
    struct spawn_result result;
    if (file_make_dirs(l->spec.folder, 0700, e) < 0 || file_make_dirs(logs, 0755, e) < 0 ||
        spawn_run(&spawn, &result, e) < 0)
        return -1;
    /* The shim's own words are the message: they say what is wrong with the Pod. */
    int status = spawn_check(&spawn, &result, e);
    if (status < 0 && result.err.len)
        err_set(e, ERR_INTERNAL, "CreateContainerError", "%.*s",
                (int)strcspn(str_get(&result.err), "\n"), str_get(&result.err));
    spawn_result_done(&result);
    return status;
}

static void set_limits(struct pod_run *r, size_t i, struct launch *l)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    struct err e = {0};
    if (!r->all->cgroup)
        return;
    _cleanup_free_ char *id = mem_printf("%s/%s/%u", r->spec.uid, c->name, l->spec.number);
    char *folder = pod_cgroup_make(r->all->cgroup, id, c->json, &e);
    if (folder)
        l->spec.cgroup = keep(l, folder);
}

/* Volumes are the pod's: they are set up before the first container starts. */
static int set_up_volumes(struct pod_run *r, struct err *e)
{
    if (r->volumes_up)
        return 0;
    struct pod_place place = pod_place_of(r);
    struct pod_source source = pod_source_of(r);
    struct pod_paths paths = {r->folder, &r->all->options};
    if (pod_volumes_set_up(&r->spec, &paths, &place, &source, &r->renew_ns, e) < 0)
        return -1;
    r->volumes_up = true;
    r->refresh_ns = clock_mono_ns(r->all->clock) + r->all->options.refresh_ns;
    return 0;
}

static void tell_started(struct pod_run *r, size_t i, const struct shim_spec *s)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    json_auto_t *about = pod_reference(&r->spec, c);
    char why[256];
    if (pod_run_error(s->folder, (int)s->number, why)) {
        kube_event_warning(r->all->recorder, about, "Failed", "Error: %s", why);
        return;
    }
    kube_event_normal(r->all->recorder, about, "Created", "Created container: %s", c->name);
    kube_event_normal(r->all->recorder, about, "Started", "Started container %s", c->name);
}

void pod_start(struct pod_run *r, size_t i)
{
    const struct pod_container *c = &r->spec.containers.p[i];
    _cleanup_(launch_done) struct launch l = {0};
    struct pod_place place = pod_place_of(r);
    struct pod_source source = pod_source_of(r);
    struct pod_paths paths = {r->folder, &r->all->options};
    struct err e = {0};
    bool from_command;
    const char *ours;
    if (check_probes(c, &e) < 0) {
        block(r, i, "CreateContainerConfigError", "Failed", retry_late_ns, e.msg);
        return;
    }
    if (pod_vars_make(&r->spec, c, &place, &source, &l.vars, &e) < 0) {
        block(r, i, "CreateContainerConfigError", "Failed", retry_soon_ns, e.msg);
        return;
    }
    char *program = choose_program(r, i, &l.vars, &from_command, &ours);
    if (!program)
        return;
    vec_push(&l.spec.argv, keep(&l, program));
    add_arguments(&l, json_object_get(c->json, "command"), from_command ? 1 : 0);
    add_arguments(&l, json_object_get(c->json, "args"), 0);
    if (ours && pod_ours_check(c, ours, l.spec.argv.p + 1, l.spec.argv.len - 1, &e) < 0) {
        block(r, i, "ArgumentsNotAllowed", "Failed", retry_late_ns, e.msg);
        return;
    }
    if (set_up_volumes(r, &e) < 0) {
        block(r, i, "ContainerCreating", "FailedMount", retry_soon_ns, e.msg);
        return;
    }
    int ready = pod_mounts_make(&r->spec, c, &paths, &l.vars, &l.mounts, &e);
    fill(r, i, ours != NULL, &l);
    set_limits(r, i, &l);
    if (ready < 0 || run_shim(r, &l, &e) < 0) {
        block(r, i, "CreateContainerError", "Failed", retry_soon_ns, e.msg);
        return;
    }
    r->facts.p[i].blocked = NULL;
    if (l.spec.number >=
        2) { /* the instance and the one before it are all that is ever asked for */
        _cleanup_free_ char *old = shim_status_path(l.spec.folder, l.spec.number - 2);
        unlink(old);
    }
    tell_started(r, i, &l.spec);
}

void pod_refresh(struct pod_run *r)
{
    const struct clock *clock = r->all->clock;
    int64_t now = clock_mono_ns(clock);
    struct err e = {0};
    if (!r->volumes_up || (now < r->refresh_ns && clock_real_ns(clock) < r->renew_ns))
        return;
    r->volumes_up = false;
    if (set_up_volumes(r, &e) == 0)
        return;
    r->volumes_up = true; /* what is there goes on being there */
    r->refresh_ns = now + r->all->options.refresh_ns;
    r->renew_ns = INT64_MAX;
    json_auto_t *about = pod_reference(&r->spec, NULL);
    kube_event_warning(r->all->recorder, about, "FailedMount", "%s", e.msg);
}
