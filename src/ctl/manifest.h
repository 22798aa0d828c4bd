/*
 * Manifests named on a command line: files, folders (searched for .yaml, .yml and .json, sorted),
 * or "-" for standard input; objects one by one, lists taken apart. A thread reads ahead, and only a
 * few documents are in memory at a time.
 */
#pragma once

#include "api/report.h"
#include "json/doc.h"

struct manifest {
    const char *file; /* as it was named, "-" is "<stdin>" */
    const struct json_doc *doc;
    json_t *object;     /* the document's, and free to be changed; NULL when it does not parse */
    const char *prefix; /* pointer of the object in the document: "", "/items/3" */
    const struct err *error; /* why it does not parse */
};

/* Called for each; a negative return ends the reading. */
typedef int manifest_fn(void *context, const struct manifest *manifest);

/* -1 and *e when a file cannot be read at all or the function said to stop. */
int manifest_each(char *const *paths, int count, manifest_fn *fn, void *context, struct err *e);

/* Where a problem stands in the manifest's source. */
struct json_pos manifest_locate(const struct manifest *manifest, const struct api_problem *problem);
/*
 * file:line:column: error: path: message, and the line itself with a mark below. What is wrong goes
 * to stderr as a rule.
 */
void manifest_show(FILE *out, const struct manifest *manifest, const struct api_problem *problem);
/* The same for a document that does not parse. */
void manifest_show_error(FILE *out, const struct manifest *manifest);
/* "CStorPoolCluster/pool-1" */
void manifest_name(const json_t *object, struct str *name);
