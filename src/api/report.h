/*
 * What is wrong with an object: a list of problems, each with the field's path as its author wrote
 * it. The causes and the wording of their beginnings are Kubernetes', so that an API Status made
 * from a report reads like the original's; what follows says what to write instead.
 *
 *     spec.pools[0].raidGroups[1].type: Unsupported value: "mirrored": supported values: ...
 *
 * Normal form and source form: objects are checked after aliases were resolved, but people look for
 * the mistake under the name they wrote. api_report_renamed() records each move and paths are
 * translated back when a problem is added.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "json/json.h"

enum api_cause {
    API_MISSING,     /* FieldValueRequired */
    API_INVALID,     /* FieldValueInvalid */
    API_UNSUPPORTED, /* FieldValueNotSupported */
    API_DUPLICATE,   /* FieldValueDuplicate */
    API_FORBIDDEN,   /* FieldValueForbidden */
    API_WRONG_TYPE,  /* FieldValueTypeInvalid */
    API_TOO_LONG,    /* FieldValueTooLong */
    API_TOO_MANY,    /* FieldValueTooMany */
    API_UNKNOWN,     /* a field that the kind does not have */
    API_BAD_KEY,     /* FieldValueInvalid, of a member's name */
    API_OWNED,       /* FieldManagerConflict: server-side apply, see api_report_owned() */
};

/* A place in an object, as a chain on the stack: from the member back to the root (NULL). */
struct api_path {
    const struct api_path *parent;
    const char *key; /* NULL: an element, by index */
    size_t index;
};

#define API_KEY(parent_, key_)  (&(const struct api_path){.parent = (parent_), .key = (key_)})
#define API_AT(parent_, index_) (&(const struct api_path){.parent = (parent_), .index = (index_)})

struct api_problem {
    enum api_cause cause;
    bool warning;
    bool at_key;         /* the mistake is the name, or the member is not there at all */
    const char *path;    /* spec.pools[0].type */
    const char *pointer; /* /spec/pools/0/type */
    const char *message; /* without the path */
};

struct api_rename {
    const char *normal, *source; /* pointers */
};

enum { API_MAX_PROBLEMS = 100 };

struct api_report {
    VEC(struct api_problem) problems;
    VEC(struct api_rename) renames;
    unsigned errors, warnings; /* counted past API_MAX_PROBLEMS, kept up to it */
    struct arena arena;        /* owns the texts */
};

void api_report_done(struct api_report *r);
/* Empty again, memory kept for the next object. */
void api_report_clear(struct api_report *r);

/*
 * Adds an error. `value` is shown after "Invalid value: " and the like; NULL shows none. The text
 * says what is expected; it may be empty where nothing remains to be said.
 */
void api_problem(struct api_report *r, const struct api_path *at, enum api_cause cause,
                 const json_t *value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void api_warn(struct api_report *r, const struct api_path *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a field that a manager owns: its path as it is, and who that is: conflict with "kubectl" */
void api_report_owned(struct api_report *r, const char *path, const char *message);

/* A member that the kind does not have, where that is only worth a warning. */
void api_warn_unknown(struct api_report *r, const struct api_path *at, const char *key);

/* "spec.pools[0].type", appended. */
void api_path_format(const struct api_path *at, struct str *out);
/* What now stands at `normal` was written at `source`. */
void api_report_renamed(struct api_report *r, const struct api_path *normal,
                        const struct api_path *source);
/* "FieldValueRequired" and so on, for a Status cause. */
const char *api_cause_reason(enum api_cause cause);
