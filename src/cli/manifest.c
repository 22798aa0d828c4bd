#include "cli/manifest.h"

#include <errno.h>
#include <fts.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "json/pointer.h"
#include "ui/term.h"

struct reading {
    manifest_fn *fn;
    void *context;
    struct err *e;
};

/* A List of any group: its items are the objects. */
static bool is_list(const json_t *object)
{
    const char *kind = json_str(object, "kind");
    return kind && str_ends_with(kind, "List") && json_is_array(json_object_get(object, "items"));
}

static int give_objects(const struct reading *r, struct manifest *m)
{
    json_t *value = m->doc->value;
    if (!is_list(value)) {
        m->object = value;
        m->prefix = "";
        return r->fn(r->context, m);
    }
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(value, "items"), i, item) {
        _cleanup_(str_done) struct str prefix = {0};
        json_pointer_append(&prefix, "items");
        json_pointer_append_index(&prefix, i);
        m->object = item;
        m->prefix = str_get(&prefix);
        if (r->fn(r->context, m) < 0)
            return -1;
    }
    return 0;
}

static int read_stream(const struct reading *r, FILE *f, const char *name)
{
    _cleanup_(json_stream_freep) struct json_stream *stream = json_stream_new(f);
    _cleanup_(json_doc_done) struct json_doc doc = {0};
    for (;;) {
        struct err error = {0};
        int found = json_stream_next(stream, &doc, &error);
        if (found == 0)
            return 0;
        struct manifest m = {.file = name, .doc = &doc, .prefix = ""};
        int status;
        if (found < 0) {
            m.error = &error;
            status = r->fn(r->context, &m);
        } else {
            status = give_objects(r, &m);
        }
        if (status < 0)
            return -1;
    }
}

static int read_file(const struct reading *r, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_errno(r->e, errno, "%s", path);
    int status = read_stream(r, f, path);
    fclose(f);
    return status;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int read_folder(const struct reading *r, const char *path)
{
    FTS *tree = fts_open((char *const[]){(char *)path, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (!tree)
        return err_errno(r->e, errno, "%s", path);
    int status = 0;
    const FTSENT *entry;
    while (status == 0 && (entry = fts_read(tree))) {
        const char *name = entry->fts_name;
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
            status = err_errno(r->e, entry->fts_errno, "%s", entry->fts_path);
        else if (entry->fts_info == FTS_F &&
                 (str_ends_with(name, ".yaml") || str_ends_with(name, ".yml") ||
                  str_ends_with(name, ".json")))
            status = read_file(r, entry->fts_path);
    }
    fts_close(tree);
    return status;
}

int manifest_each(char *const *paths, int count, manifest_fn *fn, void *context, struct err *e)
{
    struct reading r = {fn, context, e};
    for (int i = 0; i < count; i++) {
        struct stat st;
        int status;
        if (str_eq(paths[i], "-"))
            status = read_stream(&r, stdin, "<stdin>");
        else if (stat(paths[i], &st) < 0)
            status = err_errno(e, errno, "%s", paths[i]);
        else
            status = S_ISDIR(st.st_mode) ? read_folder(&r, paths[i]) : read_file(&r, paths[i]);
        if (status < 0)
            return -1;
    }
    return 0;
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
    fprintf(out, "%s%6u |%s %.*s\n       %s|%s ", ui_colour(out, UI_DIM), pos.line,
            ui_colour(out, UI_PLAIN), (int)(len < WIDEST ? len : WIDEST), line,
            ui_colour(out, UI_DIM), ui_colour(out, UI_PLAIN));
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
    fprintf(out, "%s%s:%u:%u:%s %s%s:%s %s%s%s\n", ui_colour(out, UI_BOLD), m->file, pos.line,
            pos.column, ui_colour(out, UI_PLAIN), ui_colour(out, warning ? UI_YELLOW : UI_RED),
            warning ? "warning" : "error", ui_colour(out, UI_PLAIN), path, *path ? ": " : "",
            message);
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
