#include "ctl/manifest.h"

#include "ctl/ahead.h"
#include "json/pointer.h"
#include "ui/term.h"

/* How deep lists in lists are taken apart. */
enum { LISTS_MAX = 8 };

/* A List of any group: its items are the objects. */
static bool is_list(const json_t *object)
{
    const char *kind = json_str(object, "kind");
    return kind && str_ends_with(kind, "List") && json_is_array(json_object_get(object, "items"));
}

/* The objects of a value that stands at a pointer of the document; lists may be in lists. */
static int give_objects(const struct manifest *m, json_t *value, const char *prefix, unsigned depth,
                        manifest_fn *fn, void *context)
{
    if (depth == LISTS_MAX || !is_list(value)) {
        struct manifest one = *m;
        one.object = value;
        one.prefix = prefix;
        return fn(context, &one);
    }
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(value, "items"), i, item) {
        _cleanup_(str_done) struct str at = {0};
        str_append(&at, prefix);
        json_pointer_append(&at, "items");
        json_pointer_append_index(&at, i);
        if (give_objects(m, item, str_get(&at), depth + 1, fn, context) < 0)
            return -1;
    }
    return 0;
}

static int give_batch(const struct batch *b, manifest_fn *fn, void *context)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct ahead_doc *d = &b->docs[i];
        struct manifest m = {.file = b->file, .doc = &d->doc, .prefix = ""};
        if (!d->parsed)
            m.error = &d->error;
        if ((d->parsed ? give_objects(&m, d->doc.value, "", 0, fn, context) : fn(context, &m)) < 0)
            return -1;
    }
    return 0;
}

int manifest_each(char *const *paths, int count, manifest_fn *fn, void *context, struct err *e)
{
    struct ahead *ahead = NEW(struct ahead);
    int status = ahead_start(ahead, paths, count, e);
    if (status == 0) {
        struct batch *b;
        while (status == 0 && (b = ahead_next(ahead))) {
            status = give_batch(b, fn, context);
            ahead_return(ahead, b);
        }
        ahead_done(ahead);
        if (status == 0 && ahead->error.code) {
            *e = ahead->error;
            status = -1;
        }
    }
    free(ahead);
    return status;
}

struct json_pos manifest_locate(const struct manifest *manifest, const struct api_problem *problem)
{
    _cleanup_(str_done) struct str pointer = {0};
    str_append(&pointer, manifest->prefix);
    str_append(&pointer, problem->pointer);
    struct json_pos pos = manifest->doc->start;
    json_doc_locate(manifest->doc, str_get(&pointer),
                    problem->at_key ? JSON_DOC_KEY : JSON_DOC_MARK, &pos);
    return pos;
}

/* The source line, and below it a mark at the column; tabs are kept so that it lines up. */
static void show_line(FILE *out, const struct json_doc *doc, struct json_pos pos)
{
    enum { WIDEST = 160 };
    size_t len;
    const char *line = json_doc_line(doc, pos.line, &len);
    if (!line || pos.column > WIDEST)
        return;
    fprintf(out, "%s%6u |%s ", ui_colour(out, UI_DIM), pos.line, ui_colour(out, UI_PLAIN));
    ui_text(out, line, len < WIDEST ? len : WIDEST);
    fprintf(out, "\n       %s|%s ", ui_colour(out, UI_DIM), ui_colour(out, UI_PLAIN));
    unsigned column = 1;
    for (size_t i = 0; i < len && column < pos.column; i++) {
        if (((unsigned char)line[i] & 0xc0) == 0x80)
            continue; /* the rest of a character */
        fputc(line[i] == '\t' ? '\t' : ' ', out);
        column++;
    }
    fprintf(out, "%s^%s\n", ui_colour(out, UI_RED), ui_colour(out, UI_PLAIN));
}

static void show(FILE *out, const struct manifest *m, struct json_pos pos, bool warning,
                 const char *path, const char *message)
{
    fprintf(out, "%s%s:%u:%u:%s %s%s:%s ", ui_colour(out, UI_BOLD), m->file, pos.line, pos.column,
            ui_colour(out, UI_PLAIN), ui_colour(out, warning ? UI_YELLOW : UI_RED),
            warning ? "warning" : "error", ui_colour(out, UI_PLAIN));
    ui_text(out, path, strlen(path));
    fputs(*path ? ": " : "", out);
    ui_text(out, message, strlen(message));
    fputc('\n', out);
    show_line(out, m->doc, pos);
}

void manifest_show(FILE *out, const struct manifest *manifest, const struct api_problem *problem)
{
    show(out, manifest, manifest_locate(manifest, problem), problem->warning, problem->path,
         problem->message);
}

void manifest_show_error(FILE *out, const struct manifest *manifest)
{
    show(out, manifest, manifest->doc->start, false, "", manifest->error->msg);
}

void manifest_name(const json_t *object, struct str *name)
{
    const char *kind = json_str(object, "kind");
    const json_t *metadata = json_object_get(object, "metadata");
    const char *own = json_str(metadata, "name"), *prefix = json_str(metadata, "generateName");
    str_appendf(name, "%s/%s", kind ? kind : "?", own ? own : prefix ? prefix : "?");
}
