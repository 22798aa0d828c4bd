/*
 * Cuts a stream into documents and reads each.
 *
 * A document's piece of the stream is what stands between two cuts:
 *
 *     # comment            \
 *     %YAML 1.1             > one piece: what comes before a marker belongs to it
 *     ---                  /
 *     a: 1                /
 *     ---                  cut before: the piece has its marker already
 *     {"b": 1}             JSON ends where its bracket closes ...
 *     {"c": 1}             ... so that values may follow each other without a marker
 *     ...                  cut after
 *
 * Everything is measured from s->at, the first byte that no document has taken, since the buffer
 * moves when it grows. Nothing before s->at is needed again: memory is bounded by one document.
 */
#include <errno.h>

#include "json/document.h"
#include "json/internal.h"

struct json_stream {
    FILE *f;          /* NULL: all text is there from the start */
    char *buf;        /* owned; NULL without f */
    size_t cap;       /* of buf */
    const char *text; /* buf, or the caller's */
    size_t len;
    size_t at;
    struct json_pos pos; /* of at */
    size_t taken;        /* bytes before at, since the start of the stream */
    int errnum;          /* of the read that failed */
    bool eof;
    bool begun;
    bool dead;          /* an error after which nothing is read */
    bool after_json;    /* at stands behind a JSON value, maybe on its line */
    struct arena spare; /* of the document before, empty, for the next */
};

/* A piece of the stream, from s->at on. */
struct piece {
    size_t len;
    size_t body; /* where JSON starts */
    bool json;
    bool empty; /* comments and markers only */
};

enum {
    READ = 64 * 1024,
    BLANKS_MAX = 256 /* past this column a document's first line is not worth showing */
};

struct json_stream *json_stream_new(FILE *f)
{
    struct json_stream *s = NEW(struct json_stream);
    s->f = f;
    s->pos = (struct json_pos){1, 1};
    s->text = "";
    return s;
}

struct json_stream *json_stream_new_text(const char *text, size_t len)
{
    struct json_stream *s = json_stream_new(NULL);
    s->text = text;
    s->len = len;
    s->eof = true;
    return s;
}

void json_stream_free(struct json_stream *s)
{
    if (!s)
        return;
    free(s->buf);
    arena_done(&s->spare);
    free(s);
}

/* Reads some more, dropping what was taken. */
static void fill(struct json_stream *s)
{
    if (s->at && s->len + READ > s->cap) {
        memmove(s->buf, s->buf + s->at, s->len - s->at);
        s->len -= s->at;
        s->at = 0;
    }
    if (s->len + READ > s->cap) {
        s->cap = s->cap ? s->cap * 2 : (size_t)2 * READ;
        s->buf = mem_realloc(s->buf, s->cap);
    }
    s->text = s->buf;
    errno = 0;
    size_t n = fread(s->buf + s->len, 1, READ, s->f);
    s->len += n;
    if (n < READ) {
        s->eof = true;
        if (ferror(s->f))
            s->errnum = errno ? errno : EIO;
    }
}

/* How many bytes there are at offset, at most n; less only at the end of the stream. */
static size_t have(struct json_stream *s, size_t offset, size_t n)
{
    while (!s->eof && s->len - s->at < offset + n)
        fill(s);
    size_t rest = s->len - s->at;
    rest = rest > offset ? rest - offset : 0;
    return rest < n ? rest : n;
}

static const char *at(const struct json_stream *s, size_t offset)
{
    return s->text + s->at + offset;
}

/* The offset after the line break that ends the line at offset. Gives up past the size limit. */
static size_t line_end(struct json_stream *s, size_t offset)
{
    while (offset <= JSON_MAX_BYTES) {
        if (!have(s, offset, 1))
            return offset;
        size_t rest = s->len - s->at - offset;
        const char *newline = memchr(at(s, offset), '\n', rest);
        if (newline)
            return (size_t)(newline - at(s, 0)) + 1;
        offset += rest;
    }
    return offset;
}

static bool is_marker(struct json_stream *s, size_t offset, const char *marker)
{
    size_t n = have(s, offset, 4);
    return n >= 3 && memcmp(at(s, offset), marker, 3) == 0 &&
           (n == 3 || json_is_one_of(at(s, offset)[3], " \t\r\n"));
}

/* Takes n bytes off the front. */
static void advance(struct json_stream *s, size_t n)
{
    s->pos = json_pos_add(s->pos, json_pos_at(at(s, 0), n, n));
    s->at += n;
    s->taken += n;
}

size_t json_stream_position(const struct json_stream *s)
{
    return s->taken;
}

/* The JSON value at body, to its closing bracket, or to the marker that cuts it off. */
static void cut_json(struct json_stream *s, size_t body, struct piece *ret)
{
    struct json_scan scan = {0};
    size_t limit = body;
    bool closed = false;

    while (!closed && limit <= JSON_MAX_BYTES && have(s, limit, 1)) {
        size_t rest = s->len - s->at - limit;
        if (rest > 4096) /* values may be many on one long line: do not look past this one */
            rest = 4096;
        const char *newline = memchr(at(s, limit), '\n', rest);
        limit += newline ? (size_t)(newline - at(s, limit)) + 1 : rest;
        closed = json_scan(&scan, at(s, body), limit - body);
        if (newline && !closed && (is_marker(s, limit, "---") || is_marker(s, limit, "...")))
            break;
    }
    *ret = (struct piece){.len = closed ? body + scan.at : limit, .body = body, .json = true};
}

/* The next piece; with json false, brackets mean nothing and only lines cut. */
static void cut(struct json_stream *s, bool json, struct piece *ret)
{
    size_t offset = 0;
    bool directives = false, marked = false, content = false;

    while (offset <= JSON_MAX_BYTES && have(s, offset, 1)) {
        bool line_start = offset || s->pos.column == 1;
        size_t body = offset;
        if (line_start && is_marker(s, offset, "...")) {
            offset = line_end(s, offset);
            break;
        }
        if (line_start && is_marker(s, offset, "---")) {
            if (marked || content)
                break;
            marked = true;
            body += 3;
        } else if (line_start && !marked && !content && *at(s, offset) == '%') {
            directives = true;
            offset = line_end(s, offset);
            continue;
        }
        if (!content) {
            while (body <= JSON_MAX_BYTES && have(s, body, 1) &&
                   (*at(s, body) == ' ' || *at(s, body) == '\t'))
                body++;
            char c = '\n';
            if (have(s, body, 1))
                c = *at(s, body);
            if (json && (c == '{' || c == '[')) {
                cut_json(s, body, ret);
                return;
            }
            content = c != '\n' && c != '\r' && c != '#';
        }
        offset = line_end(s, offset);
    }
    /* Directives without a document are a mistake, which libyaml names. */
    *ret = (struct piece){.len = offset, .empty = !content && !directives};
}

/* Behind a JSON value: goes to the next one or to a marker. False: other text stands here. */
static bool skip_after_json(struct json_stream *s)
{
    for (;;) {
        size_t n = 0;
        while (have(s, n, 1) && n < READ && json_is_one_of(*at(s, n), " \t\r\n"))
            n++;
        advance(s, n);
        if (n == READ)
            continue;
        if (!have(s, 0, 1) || *at(s, 0) == '{' || *at(s, 0) == '[')
            return true;
        if (s->pos.column == 1 && (is_marker(s, 0, "---") || is_marker(s, 0, "...")))
            return true;
        if (*at(s, 0) != '#')
            return false;
        advance(s, line_end(s, 0));
    }
}

static struct json_doc_impl *new_impl(struct json_stream *s, const struct piece *piece)
{
    struct arena arena = s->spare;
    s->spare = (struct arena){0};
    struct json_doc_impl *impl = arena_new(&arena, struct json_doc_impl);
    impl->blanks = s->pos.column <= BLANKS_MAX ? s->pos.column - 1 : 0;
    char *text = arena_alloc(&arena, impl->blanks + piece->len + 1);
    memset(text, ' ', impl->blanks);
    memcpy(text + impl->blanks, at(s, 0), piece->len);
    impl->text = text + impl->blanks;
    impl->len = piece->len;
    impl->base = s->pos;
    impl->body = piece->body;
    impl->is_json = piece->json;
    impl->arena = arena;
    return impl;
}

void json_doc_done(struct json_doc *d)
{
    json_decref(d->value);
    if (d->impl) {
        struct arena arena = d->impl->arena; /* which holds impl itself */
        arena_done(&arena);
    }
    *d = (struct json_doc){0};
}

static int read_yaml(struct json_doc *d, struct err *e)
{
    struct json_doc_impl *impl = d->impl;
    struct json_pos pos;
    impl->is_json = false;
    impl->root = json_yaml_read_simple(&impl->arena, impl->text, impl->len);
    if (impl->root || json_yaml_read(&impl->arena, impl->text, impl->len, impl->base, &impl->root,
                                     &pos, e) == 0) {
        if (!impl->root)
            return 0;
        d->value = json_yaml_value(impl->root, impl->base, &pos, e);
        if (d->value)
            pos = impl->root->pos;
    }
    d->start = json_pos_add(impl->base, pos);
    return d->value ? 0 : -1;
}

static int read_json(struct json_doc *d, struct err *e)
{
    const struct json_doc_impl *impl = d->impl;
    size_t offset = 0;
    d->value = json_parse_at(impl->text + impl->body, impl->len - impl->body, &offset, e);
    d->start = json_pos_add(impl->base, json_pos_at(impl->text, impl->len, impl->body + offset));
    return d->value ? 0 : -1;
}

/* Whether text that starts with a bracket was meant as JSON, or is YAML in flow style. */
static bool looks_like_json(const char *text, size_t len)
{
    size_t i = 1;
    while (i < len && json_is_one_of(text[i], " \t\r\n[{"))
        i++;
    return i < len && (text[i] == '"' || text[i] == '}' || text[i] == ']' || text[i] == '/');
}

/*
 * Text that starts with a bracket is JSON if jansson can read it, and YAML otherwise; what is
 * neither has whichever mistake fits its looks.
 */
static int read_piece(struct json_stream *s, struct piece *piece, struct json_doc *ret_doc,
                      struct err *e)
{
    ret_doc->impl = new_impl(s, piece);
    if (!piece->json)
        return read_yaml(ret_doc, e);
    if (read_json(ret_doc, e) == 0)
        return 0;

    struct piece json = *piece;
    cut(s, false, piece);
    if (piece->len > JSON_MAX_BYTES) {
        *piece = json;
        return -1;
    }
    struct json_doc yaml = {.impl = new_impl(s, piece)};
    struct err other;
    int result = read_yaml(&yaml, &other);
    if (result < 0 && looks_like_json(ret_doc->impl->text + json.body, json.len - json.body)) {
        json_doc_done(&yaml);
        return -1;
    }
    json_doc_done(ret_doc);
    *ret_doc = yaml;
    if (result < 0 && e)
        *e = other;
    return result;
}

/* Errors of the stream itself, after which it ends. */
static int fail(struct json_stream *s, struct json_doc *ret_doc)
{
    s->dead = true;
    ret_doc->start = s->pos;
    return -1;
}

static int begin(struct json_stream *s, struct json_doc *ret_doc, struct err *e)
{
    s->begun = true;
    size_t n = have(s, 0, 2);
    if (n == 2 && (memcmp(at(s, 0), "\xff\xfe", 2) == 0 || memcmp(at(s, 0), "\xfe\xff", 2) == 0)) {
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidYAML", "the text is UTF-16; save it as UTF-8");
        return fail(s, ret_doc);
    }
    return 0;
}

/* The next piece with something in it: 1, 0 or -1 as json_stream_next(). */
static int next_piece(struct json_stream *s, struct piece *ret, struct json_doc *ret_doc,
                      struct err *e)
{
    for (;;) {
        if (have(s, 0, 3) == 3 && memcmp(at(s, 0), "\xef\xbb\xbf", 3) == 0) {
            s->at += 3; /* a byte order mark has no column */
            s->taken += 3;
        }
        if (s->after_json && !skip_after_json(s)) {
            struct piece rest;
            cut(s, false, &rest);
            ret_doc->start = s->pos;
            advance(s, rest.len);
            s->after_json = false;
            return err_set(
                e, ERR_INVALID_ARGUMENT, "InvalidJSON",
                "this stands after the end of a JSON value; remove it, or put \"---\" on "
                "a line of its own in front of it");
        }
        s->after_json = false;
        cut(s, true, ret);
        if (s->errnum && ret->len == s->len - s->at) {
            /* What ends where reading failed may be half a document; what ends before is whole. */
            err_errno(e, s->errnum, "cannot read the stream");
            return fail(s, ret_doc);
        }
        if (ret->len > JSON_MAX_BYTES) {
            err_set(e, ERR_INVALID_ARGUMENT, "TooLarge",
                    "the document that starts here has more than %d bytes; split it",
                    JSON_MAX_BYTES);
            return fail(s, ret_doc);
        }
        if (!ret->len)
            return 0;
        if (!ret->empty)
            return 1;
        advance(s, ret->len);
    }
}

/* Empties a document and keeps its memory for the next. */
static void recycle(struct json_stream *s, struct json_doc *d)
{
    json_decref(d->value);
    if (d->impl) {
        arena_done(&s->spare);
        s->spare = d->impl->arena;
        arena_clear(&s->spare);
    }
    *d = (struct json_doc){0};
}

int json_stream_next(struct json_stream *s, struct json_doc *ret_doc, struct err *e)
{
    recycle(s, ret_doc);
    if (s->dead)
        return 0;
    if (!s->begun && begin(s, ret_doc, e) < 0)
        return -1;
    for (;;) {
        struct piece piece = {0};
        int result = next_piece(s, &piece, ret_doc, e);
        if (result <= 0)
            return result;
        result = read_piece(s, &piece, ret_doc, e);
        s->after_json = ret_doc->impl->is_json && result == 0;
        advance(s, piece.len);
        if (result < 0) {
            json_clean_message(e);
            return -1;
        }
        if (ret_doc->value && !json_is_null(ret_doc->value))
            return 1;
        recycle(s, ret_doc);
    }
}
