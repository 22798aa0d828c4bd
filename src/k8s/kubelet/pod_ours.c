/*
 * What containers of our own images may be: programs of the host, with the rights of the node, that take
 * what our controllers give them and nothing else. Who may write such Pods is the API server's to say; this
 * is what holds whoever wrote them.
 *
 *   - A program is run by a command and options of its table. Options that would lead it elsewhere on the
 *     host, such as a target's --store, are in none.
 *   - A path lies in one of the container's own volumes, without "..".
 *   - It has no variables but those that options are made from: others can change what a program loads.
 *   - Nothing of the host is run beside it by probes and hooks.
 */
#include "k8s/kubelet/pod_content.h"

enum kind { VALUE, PATH, SWITCH };

struct option {
    const char *name;
    enum kind kind;
};

struct form {
    const char *program;
    const char *words[2]; /* the command; NULL: none */
    const struct option *options;
};

static const struct option of_target[] = {{"volume", VALUE},
                                          {"iqn", VALUE},
                                          {"portal", VALUE},
                                          {"replica-listen", VALUE},
                                          {"key-file", PATH},
                                          {"chap-user", VALUE},
                                          {"chap-secret-file", PATH},
                                          {"mutual-user", VALUE},
                                          {"mutual-secret-file", PATH},
                                          {"control", PATH},
                                          {"state-dir", PATH},
                                          {"drain-seconds", VALUE},
                                          {"queue-depth", VALUE},
                                          {"lun", VALUE},
                                          {"metrics", VALUE},
                                          {0}};
static const struct option of_replica[] = {{"dir", PATH},
                                           {"target", VALUE},
                                           {"source", VALUE},
                                           {"volume", VALUE},
                                           {"key-file", PATH},
                                           {"direct", SWITCH},
                                           {0}};
static const struct option of_eraser[] = {
    {"beneath", PATH}, {"dir", PATH}, {"volume", VALUE}, {"except", VALUE}, {0}};
static const struct option of_sidecar[] = {
    {"kind", VALUE}, {"namespace", VALUE}, {"name", VALUE}, {"control", PATH}, {0}};
static const struct option of_pool[] = {
    {"namespace", VALUE}, {"name", VALUE}, {"node", VALUE}, {"metrics", VALUE}, {0}};

static const struct form forms[] = {
    {"orlop-target", {"target", "serve"}, of_target},
    {"orlop-replica", {"replica", "serve"}, of_replica},
    {"orlop-replica", {"replica", "erase"}, of_eraser},
    {"orlop-sidecar", {NULL, NULL}, of_sidecar},
    {"orlop-pool", {"pool", "serve"}, of_pool},
};

static const struct form *find_form(const char *program, const char *const *argv, size_t n,
                                    size_t *ret_words)
{
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        const struct form *f = &forms[i];
        size_t words = f->words[0] ? 2 : 0;
        if (str_eq(f->program, program) && n >= words &&
            (!words || (str_eq(argv[0], f->words[0]) && str_eq(argv[1], f->words[1])))) {
            *ret_words = words;
            return f;
        }
    }
    return NULL;
}

static const struct option *find_option(const struct form *f, const char *name, size_t n)
{
    for (const struct option *o = f->options; o->name; o++) {
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    }
    return NULL;
}

/* Whether a path is one of the container's volumes or lies in it. */
static bool is_mounted(const json_t *container, const char *path)
{
    size_t i, len = strlen(path);
    json_t *mount;
    if (strstr(path, "/../") || (len >= 3 && str_eq(path + len - 3, "/..")))
        return false;
    json_array_foreach(json_object_get(container, "volumeMounts"), i, mount) {
        const char *at = json_str(mount, "mountPath");
        size_t n = at ? strlen(at) : 0;
        if (n > 1 && strncmp(path, at, n) == 0 && (path[n] == '/' || !path[n] || at[n - 1] == '/'))
            return true;
    }
    return false;
}

static int check_words(const struct form *f, const json_t *container, const char *const *argv,
                       size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = str_starts_with(argv[i], "--") ? argv[i] + 2 : "";
        size_t len = strcspn(name, "=");
        const struct option *o = find_option(f, name, len);
        if (!o)
            return err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                           "a Pod of image %s takes no \"%.100s\"", f->program, argv[i]);
        if (o->kind == SWITCH)
            continue;
        const char *value = name[len] ? name + len + 1 : i + 1 < n ? argv[++i] : "";
        if (o->kind == PATH && !is_mounted(container, value))
            return err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                           "--%s of a Pod of image %s leads out of its volumes: \"%.200s\"",
                           o->name, f->program, value);
    }
    return 0;
}

static int check_env(const struct pod_container *c, struct err *e)
{
    static const char *const fine[] = {"POD_IP", "NODE_NAME", NULL};
    size_t i;
    json_t *var;
    json_array_foreach(json_object_get(c->json, "env"), i, var) {
        const char *name = json_str(var, "name");
        if (!name || !str_in(name, fine))
            return err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                           "a Pod of one of Orlop's images takes no variable \"%.100s\"",
                           name ? name : "");
    }
    return json_array_size(json_object_get(c->json, "envFrom"))
               ? err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                         "a Pod of one of Orlop's images takes no envFrom")
               : 0;
}

static int check_exec(const struct pod_container *c, struct err *e)
{
    bool runs = json_object_get(c->pre_stop, "exec") != NULL;
    for (int i = 0; i < POD_CHECKS; i++)
        runs |= c->probes[i].means == POD_EXEC;
    return runs ? err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                          "a probe or hook of a Pod of one of Orlop's images runs no command of "
                          "the host")
                : 0;
}

int pod_ours_check(const struct pod_container *c, const char *program, const char *const *argv,
                   size_t n, struct err *e)
{
    size_t words = 0;
    const struct form *f = find_form(program, argv, n, &words);
    if (!f)
        return err_set(e, ERR_PERMISSION_DENIED, "NotAllowed",
                       "a Pod does not run %s %.50s %.50s: only what Orlop's controllers run",
                       program, n > 0 ? argv[0] : "", n > 1 ? argv[1] : "");
    if (check_words(f, c->json, argv + words, n - words, e) < 0 || check_env(c, e) < 0)
        return -1;
    return check_exec(c, e);
}
