#include "k8s/apiserver/notes.h"

#include "base/str.h"

void apiserver_notes_done(struct apiserver_notes *n)
{
    vec_for_each(&n->warnings, text)
        free(*text);
    vec_done(&n->warnings);
    json_decref(n->status);
    *n = (struct apiserver_notes){0};
}

void apiserver_notes_warn(struct apiserver_notes *n, const char *fmt, ...)
{
    if (!n || n->warnings.len == APISERVER_WARNINGS)
        return;
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    size_t room = APISERVER_WARNING_BYTES - n->bytes;
    text[str_cut(text, room)] = '\0';
    vec_for_each(&n->warnings, said) {
        if (str_eq(*said, text))
            return;
    }
    if (!*text)
        return;
    n->bytes += strlen(text);
    vec_push(&n->warnings, TAKE_PTR(text));
}

void apiserver_notes_header(const char *warning, struct str *out)
{
    str_append(out, "299 - \"");
    for (; *warning; warning++) {
        if (*warning == '"' || *warning == '\\')
            str_append_c(out, '\\');
        bool control = (unsigned char)*warning < ' ' || *warning == 0x7f;
        str_append_c(out, control ? ' ' : *warning);
    }
    str_append_c(out, '"');
}
