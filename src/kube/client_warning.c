/*
 * Warnings of the server ("Warning: 299 - "text""). A controller that does something the server warns
 * of does it at every turn: each text is logged once, and after so many different ones no more.
 */
#include "base/log.h"
#include "kube/client_impl.h"

enum { DIFFERENT_MAX = 100 };

void kube_warnings_init(struct kube_warnings *w)
{
    pthread_mutex_init(&w->lock, NULL);
}

void kube_warnings_done(struct kube_warnings *w)
{
    map_done(&w->seen);
    pthread_mutex_destroy(&w->lock);
}

/* What stands between the quotes of one value; all of it when there are none. */
static void unquote(const char *value, size_t n, struct str *out)
{
    const char *quote = memchr(value, '"', n), *end = value + n;
    if (!quote) {
        str_append_n(out, value, n);
        return;
    }
    for (const char *p = quote + 1; p < end && *p != '"'; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        str_append_c(out, *p);
    }
}

static bool is_new(struct kube_warnings *w, const char *text)
{
    pthread_mutex_lock(&w->lock);
    bool fresh = w->seen.count < DIFFERENT_MAX && !map_has(&w->seen, text);
    if (fresh)
        map_set(&w->seen, text, w);
    pthread_mutex_unlock(&w->lock);
    return fresh;
}

void kube_warnings_log(struct kube_warnings *w, const char *lines, const char *url)
{
    for (const char *p = lines; *p; p += *p == '\n') {
        _cleanup_(str_done) struct str text = {0};
        size_t n = strcspn(p, "\n");
        unquote(p, n, &text);
        p += n;
        if (text.len && is_new(w, text.p))
            log_warn("the API warns", LOG_S("warning", text.p), LOG_S("url", url));
    }
}
