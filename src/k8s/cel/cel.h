/*
 * CEL, the Common Expression Language, as Kubernetes has it: the rules of custom resources
 * (x-kubernetes-validations) and the match conditions of webhooks.
 *
 *     text ─ parse ─> tree ─ check ─> program ─ evaluate, with variables ─> value
 *                       └ types of variables, as far as they are known
 *
 * Expressions are checked against the types of their variables when they are compiled: a field that
 * there is not, an operator that does not take its operands and a function that nobody knows are
 * found then, and not when somebody writes an object. Where a type is not known (CEL_DYN) the same
 * is found when the expression is evaluated.
 *
 * Errors of compiling read like the original's, with a place:
 *
 *     ERROR: <input>:1:5: undefined field 'replica'
 *      | self.replica > 1
 *      | ....^
 *
 * A program is constant: any thread may evaluate it. Length, depth and work are bounded; what an
 * evaluation makes lives in an arena that ends with it.
 *
 * There is no estimate of what a rule may cost at worst: the original refuses definitions by it, here
 * only what an evaluation really costs counts.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

enum {
    CEL_MAX_BYTES = 16384,      /* of an expression */
    CEL_MAX_DEPTH = 200,        /* of operations in each other */
    CEL_CALL_COST = 1000000,    /* steps of one evaluation */
    CEL_OBJECT_COST = 10000000, /* of all rules of one object together */
};

enum cel_type {
    CEL_DYN, /* any: not known before it is evaluated */
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_LIST,
    CEL_MAP, /* also an object, whose fields are known */
    CEL_TIMESTAMP,
    CEL_DURATION,
    CEL_TYPE,
    CEL_OPTIONAL,
    CEL_QUANTITY,
    CEL_URL,
    CEL_IP,
    CEL_CIDR,
    CEL_SEMVER,
    CEL_AUTHORIZER,
    CEL_PATH_CHECK,
    CEL_GROUP_CHECK,
    CEL_RESOURCE_CHECK,
    CEL_DECISION,
    CEL_TYPES,
};

struct cel_decl;

struct cel_field {
    const char *name; /* as expressions have it: "__dash__" for "-" */
    const char *key;  /* as the object has it */
    const struct cel_decl *decl;
};

/* Lists whose elements are known by something do not care about order when they are compared. */
enum cel_list_kind { CEL_LIST_ATOMIC, CEL_LIST_SET, CEL_LIST_MAP };

/* The type of a value, as far as it is known. Constant; lives as long as what was compiled with it. */
struct cel_decl {
    enum cel_type type;
    enum cel_list_kind list;
    bool object;                    /* a map that has these fields and no others */
    bool date;                      /* a timestamp that is written as a day */
    const struct cel_decl *element; /* of a list, an optional, and a map's values; NULL: any */
    const struct cel_decl *key;     /* of a map; NULL: any */
    const struct cel_field *fields; /* sorted by name */
    size_t n_fields;
    const char *const *list_keys; /* members that elements of a CEL_LIST_MAP are known by */
};

/* One for each type, of which nothing else is known. */
extern const struct cel_decl cel_decls[CEL_TYPES];

/*
 * The name under which an expression reaches a member, appended: "a-b" is a__dash__b. False for a
 * name that no expression can reach.
 */
bool cel_escape(const char *key, struct str *out);

struct cel_variable {
    const char *name; /* NULL ends a list of them */
    const struct cel_decl *decl;
};

struct cel_program;

/*
 * Compiles an expression of that type, CEL_DYN: any. The texts are not kept, the types are.
 * INVALID_ARGUMENT with the message as above; the reason is "WrongResult" when only the type of the
 * result is not the one that is wanted.
 */
struct cel_program *cel_compile(const char *text, const struct cel_variable *variables,
                                enum cel_type result, struct err *e);
void cel_program_free(struct cel_program *p); /* NULL is fine */
DEFINE_CLEANUP(struct cel_program *, cel_program_free)
/* Whether it looks at a variable, by its place. */
bool cel_uses(const struct cel_program *p, size_t variable);

/* Who may do what, for authorizer.group(...)...check(...). */
struct cel_access {
    const char *group, *resource, *subresource, *namespace, *name, *verb;
    const char *path;                             /* in place of all but the verb; NULL */
    const char *account_namespace, *account_name; /* another user than who asks; NULL */
};

struct cel_authorizer {
    bool (*allowed)(const void *context, const struct cel_access *access, struct str *reason);
    const void *context;
    const struct cel_access *request; /* what the request itself is about; NULL: nothing */
};

/* The value of a variable. */
struct cel_input {
    const json_t *json; /* NULL is null */
    bool optional;      /* an optional, without a value when there is no JSON */
    const struct cel_authorizer *authorizer;
};

/*
 * Evaluate, with values in the order of the variables. What it costs is taken off the budget, which
 * may be NULL. Errors: INVALID_ARGUMENT "NoSuchOverload" when a value has a type that an operation
 * does not take; RESOURCE_EXHAUSTED when it is too much work, "OutOfBudget" for the budget and
 * "TooExpensive" for one call; OUT_OF_RANGE "EvaluationFailed" for all others.
 */
int cel_test(const struct cel_program *p, const struct cel_input *inputs, long *budget,
             bool *ret_result, struct err *e);
/* The same of an expression that is a string, appended. */
int cel_text(const struct cel_program *p, const struct cel_input *inputs, long *budget,
             struct str *out, struct err *e);
