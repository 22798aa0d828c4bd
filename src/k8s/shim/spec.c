/*
 * The texts: what a shim is told, what it records.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "k8s/shim/shim.h"

void shim_spec_done(struct shim_spec *s)
{
    vec_done(&s->argv);
    vec_done(&s->env);
    vec_done(&s->mounts);
    vec_done(&s->groups);
}

static void put(struct str *out, const char *key, const char *value)
{
    if (!value)
        return;
    str_appendf(out, "%s=%s", key, value);
    str_append_c(out, '\0');
}

static void put_number(struct str *out, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, value);
    put(out, key, text);
}

void shim_spec_format(const struct shim_spec *s, struct str *out)
{
    put(out, "folder", s->folder);
    put_number(out, "number", s->number);
    put(out, "log", s->log);
    put(out, "previous", s->previous_log);
    put(out, "cwd", s->cwd);
    put(out, "cgroup", s->cgroup);
    put_number(out, "uid", s->uid);
    put_number(out, "gid", s->gid);
    put_number(out, "bytes", (int64_t)s->log_bytes);
    vec_for_each(&s->argv, it)
        put(out, "arg", *it);
    vec_for_each(&s->env, it)
        put(out, "env", *it);
    vec_for_each(&s->mounts, it) {
        put(out, it->read_only ? "mount-ro" : "mount", it->source);
        put(out, "at", it->target);
    }
    vec_for_each(&s->groups, it)
        put_number(out, "group", *it);
}

static int parse_number(const char *text, int64_t *ret)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!*text || *end || errno)
        return -1;
    *ret = n;
    return 0;
}

/* One "key=value"; -1 for a key that is not known or a value that is none. */
static int take(struct shim_spec *s, const char *key, size_t len, const char *value)
{
    const struct {
        const char *key;
        const char **text;
        int64_t *number;
    } keys[] = {
        {"folder", &s->folder}, {"log", &s->log},       {"previous", &s->previous_log},
        {"cwd", &s->cwd},       {"cgroup", &s->cgroup}, {"uid", NULL, &s->uid},
        {"gid", NULL, &s->gid},
    };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strlen(keys[i].key) != len || memcmp(keys[i].key, key, len) != 0)
            continue;
        if (keys[i].number)
            return parse_number(value, keys[i].number);
        *keys[i].text = value;
        return 0;
    }
    int64_t number = 0;
    bool is_number = parse_number(value, &number) == 0;
#define IS(k) (len == sizeof(k) - 1 && memcmp(key, k, len) == 0)
    if (IS("arg"))
        vec_push(&s->argv, value);
    else if (IS("env"))
        vec_push(&s->env, value);
    else if (IS("mount") || IS("mount-ro"))
        vec_push(&s->mounts, (struct shim_mount){value, NULL, IS("mount-ro")});
    else if (IS("at") && s->mounts.len)
        vec_last(&s->mounts).target = value;
    else if (IS("group") && is_number)
        vec_push(&s->groups, number);
    else if (IS("number") && is_number && number >= 0 && number < INT32_MAX)
        s->number = (unsigned)number;
    else if (IS("bytes") && is_number && number >= 0)
        s->log_bytes = (uint64_t)number;
    else
        return -1;
#undef IS
    return 0;
}

int shim_spec_parse(const char *text, size_t size, struct shim_spec *ret_spec, struct err *e)
{
    struct shim_spec s = {.uid = -1, .gid = -1};
    for (size_t at = 0; at < size;) {
        const char *entry = text + at;
        size_t n = strnlen(entry, size - at);
        const char *equals = memchr(entry, '=', n);
        if (at + n >= size || !equals ||
            take(&s, entry, (size_t)(equals - entry), equals + 1) < 0) {
            shim_spec_done(&s);
            return err_set(e, ERR_INVALID_ARGUMENT, "Invalid",
                           "the specification is wrong at byte %zu", at);
        }
        at += n + 1;
    }
    bool whole = s.folder && s.argv.len;
    vec_for_each(&s.mounts, it)
        whole &= it->target && it->target[0] == '/' && it->source[0] == '/';
    if (!whole) {
        shim_spec_done(&s);
        return err_set(e, ERR_INVALID_ARGUMENT, "Invalid", "the specification is not whole");
    }
    vec_push(&s.argv, NULL);
    vec_push(&s.env, NULL);
    *ret_spec = s;
    return 0;
}

void shim_status_format(const struct shim_status *s, struct str *out)
{
    if (s->begun)
        str_appendf(out, "pid %d\nticks %" PRIu64 "\nstarted %" PRId64 "\n", (int)s->pid, s->ticks,
                    s->started);
    if (*s->error)
        str_appendf(out, "error %s\n", s->error);
    if (s->ended)
        str_appendf(out, "exit %d\nsignal %d\nfinished %" PRId64 "\n", s->exit_code, s->signal,
                    s->finished);
}

/* One line of a status, without its newline; false when it is none. */
static bool take_line(struct shim_status *s, const char *line)
{
    const char *space = strchr(line, ' ');
    _cleanup_free_ char *key = mem_strndup(line, space ? (size_t)(space - line) : 0);
    int64_t n = 0;
    if (str_eq(key, "error")) {
        snprintf(s->error, sizeof(s->error), "%s", space + 1);
        return true;
    }
    if (!space || parse_number(space + 1, &n) < 0)
        return false;
    if (str_eq(key, "pid"))
        s->pid = (pid_t)n;
    else if (str_eq(key, "ticks"))
        s->ticks = (uint64_t)n;
    else if (str_eq(key, "started"))
        s->started = n;
    else if (str_eq(key, "exit"))
        s->exit_code = (int)n;
    else if (str_eq(key, "signal"))
        s->signal = (int)n;
    else if (str_eq(key, "finished"))
        s->finished = n;
    else
        return false;
    s->begun |= str_eq(key, "started");
    s->ended |= str_eq(key, "finished");
    return true;
}

int shim_status_parse(const char *text, struct shim_status *ret_status, struct err *e)
{
    struct shim_status s = {0};
    while (*text) {
        size_t n = strcspn(text, "\n");
        _cleanup_free_ char *line = mem_strndup(text, n);
        if (!take_line(&s, line))
            return err_set(e, ERR_DATA_LOSS, "Corrupt", "\"%.60s\" is no line of a status", line);
        text += n + (text[n] == '\n');
    }
    *ret_status = s;
    return 0;
}
