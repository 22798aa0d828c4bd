/*
 * A stream of documents, YAML or JSON, as people and kubectl write them.
 *
 * The stream is cut at lines `---` before anything is parsed, so memory is bounded by the largest
 * document and a document that does not parse leaves the next ones readable. Each document keeps
 * its text and knows where each of its values stands, so that whoever finds a mistake later (a
 * schema, a rule) can still say line and column.
 *
 *     text ──cut at ---──> one document ──libyaml──> nodes with marks ──> json_t
 *                                    └───jansson───────────────────────────┘
 *
 * YAML is 1.1 as kubectl reads it: yes/no/on/off are booleans, 0x1f and 0o17 are integers, a key
 * may be any scalar but null and becomes a string, merge keys (<<) work, duplicate keys are errors.
 * Anchors work within JSON_MAX_NODES, counted after expansion, and repeat JSON_MAX_BYTES of text at
 * most. Documents that are empty or null are skipped. A document owns what it needs: it may outlive
 * the next ones and the stream.
 */
#pragma once

#include <stdio.h>

#include "base/mem.h"
#include "json/json.h"

struct json_stream;

struct json_doc {
    json_t *value;         /* owned by the document */
    struct json_pos start; /* where it begins in the stream */
    struct json_doc_impl *impl;
};

/* Reads from f (not closed) until its end. */
struct json_stream *json_stream_new(FILE *f);
/* Reads from memory, which must outlive the stream. */
struct json_stream *json_stream_new_text(const char *text, size_t len);
void json_stream_free(struct json_stream *s);
DEFINE_CLEANUP(struct json_stream *, json_stream_free)
/* How many bytes of the stream have been taken. */
size_t json_stream_position(const struct json_stream *s);

/*
 * 1: *ret_doc is the next document. 0: the end. -1: the next document does not parse; *e says why
 * and what to write instead, ret_doc->start is the line and column of the mistake, ret_doc->value
 * is NULL; calling again goes on with the document after it (an I/O error or an over-long document
 * ends the stream: the next call returns 0). *ret_doc starts zeroed or as an earlier call left it,
 * whose memory is then used again; after the last call json_doc_done() is due.
 */
int json_stream_next(struct json_stream *s, struct json_doc *ret_doc, struct err *e);
void json_doc_done(struct json_doc *d);

enum json_doc_part {
    JSON_DOC_KEY,
    JSON_DOC_VALUE,
    JSON_DOC_MARK, /* where a person would point: the value, but of a container its key */
};
/*
 * Where the value at an RFC 6901 pointer stands (or, for a member of an object, its key). When the
 * pointer leads nowhere, the nearest container that is there. Lines count from the start of the
 * stream. False only for a document without positions.
 */
bool json_doc_locate(const struct json_doc *d, const char *pointer, enum json_doc_part part,
                     struct json_pos *ret_pos);
/*
 * The source text of a line of the stream, without its newline; what documents before this one have
 * of it is blank. NULL outside the document, and where it starts far to the right on a long line.
 */
const char *json_doc_line(const struct json_doc *d, unsigned line, size_t *ret_len);
