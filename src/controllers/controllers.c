#include "controllers/controllers.h"

#include "base/log.h"
#include "base/str.h"

/* The word at *list, without blanks; false at the end. */
static bool next_word(const char **list, const char **ret_word, size_t *ret_len)
{
    const char *word = *list + strspn(*list, " ,");
    if (!*word)
        return false;
    size_t n = strcspn(word, ", ");
    *ret_word = word;
    *ret_len = n;
    *list = word + n;
    return true;
}

static bool is_word(const char *word, size_t n, const char *text)
{
    return strlen(text) == n && strncmp(word, text, n) == 0;
}

bool controllers_asked(const char *list, const char *name)
{
    const char *word;
    size_t n;
    bool all = false;
    while (next_word(&list, &word, &n)) {
        if (is_word(word, n, name))
            return true;
        if (*word == '-' && is_word(word + 1, n - 1, name))
            return false;
        all |= is_word(word, n, "*");
    }
    return all;
}

static bool is_named(const char *list, const char *name)
{
    const char *word;
    size_t n;
    while (next_word(&list, &word, &n)) {
        if (is_word(word, n, name))
            return true;
    }
    return false;
}

int controllers_check(const char *list, struct err *e)
{
    const char *word, *names[CONTROLLERS_MAX] = {0};
    for (size_t i = 0; controllers[i].name && i + 1 < ARRAY_SIZE(names); i++)
        names[i] = controllers[i].name;
    size_t n;
    while (next_word(&list, &word, &n)) {
        bool minus = *word == '-';
        _cleanup_free_ char *name = mem_strndup(word + minus, n - minus);
        if (str_in(name, names) || (!minus && str_eq(name, "*")))
            continue;
        const char *nearest = str_nearest(name, names);
        return err_set(e, ERR_INVALID_ARGUMENT, "Usage", "there is no controller \"%s\"%s%s%s",
                       name, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                       nearest ? "\"?" : "");
    }
    return 0;
}

bool controllers_runs(const char *list, const struct controller *it, bool embedded)
{
    return controllers_asked(list, it->name) &&
           (!it->embedded || embedded || is_named(list, it->name));
}

int controllers_setup(struct kube_manager *m, const char *list, bool embedded, struct err *e)
{
    for (const struct controller *it = controllers; it->name; it++) {
        if (!controllers_runs(list, it, embedded))
            continue;
        if (it->setup(m, e) < 0)
            return err_prefix(e, "controller %s", it->name);
        log_debug("controller is set up", LOG_S("controller", it->name));
    }
    return 0;
}
