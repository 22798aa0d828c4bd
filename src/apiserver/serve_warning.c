/*
 * Warnings: what the client should know though its request is done, as `Warning:` headers, which
 * kubectl shows.
 */
#include "apiserver/serve_impl.h"

/* As Kubernetes bounds them: so many bytes of one, and of all. */
enum { WARNING_MAX = 256, WARNINGS_MAX = 4096 };

/* 299 - "text", quoted, on one line. */
static size_t add_warning(struct call *c, const char *text)
{
    _cleanup_(str_done) struct str header = {0};
    str_append(&header, "299 - \"");
    size_t n = str_cut(text, WARNING_MAX);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\')
            str_append_c(&header, '\\');
        str_append_c(&header, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i]);
    }
    str_append_c(&header, '"');
    http_reply_header(c->http, "Warning", str_get(&header));
    return header.len;
}

void call_add_warnings(struct call *c)
{
    size_t total = 0;
    if (c->path.kind && c->path.kind->warning)
        total += add_warning(c, c->path.kind->warning);
    vec_for_each(&c->report.problems, p) {
        if (!p->warning || total > WARNINGS_MAX)
            continue;
        _cleanup_(str_done) struct str text = {0};
        if (p->cause == API_UNKNOWN)
            str_appendf(&text, "unknown field \"%s\"", p->path);
        else
            str_appendf(&text, "%s: %s", p->path, p->message);
        total += add_warning(c, str_get(&text));
    }
}
