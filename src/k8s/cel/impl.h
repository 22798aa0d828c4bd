/*
 * What the files of this module share: values, the tree, an evaluation, and the table of functions.
 */
#pragma once

#include "base/arena.h"
#include "base/pattern.h"
#include "base/quantity.h"
#include "base/vec.h"
#include "k8s/cel/cel.h"

struct cel_value;
struct cel_pair;

/* Elements as they are in JSON, or made by an evaluation. */
struct cel_list {
    size_t n;
    const struct cel_value *items; /* NULL: json has them */
    const json_t *json;
    const struct cel_decl *decl; /* of the list; never NULL */
};

struct cel_map {
    size_t n;
    const struct cel_pair *pairs; /* NULL: json has them */
    const json_t *json;
    const struct cel_decl *decl; /* of the map; never NULL */
};

struct cel_bytes {
    const char *p; /* a NUL follows */
    size_t n;
};

struct cel_time {
    int64_t seconds; /* since 1970 */
    int32_t nanos;   /* 0 to 10^9 - 1 */
};

struct cel_address {
    unsigned char bytes[16];
    unsigned bits;   /* 32 or 128 */
    unsigned prefix; /* of a CIDR */
};

struct cel_check;  /* authorizer.c */
struct cel_url;    /* net.c */
struct cel_semver; /* semver.c */

struct cel_value {
    enum cel_type type;
    union {
        bool truth;
        int64_t integer; /* of a duration: ns */
        uint64_t natural;
        double real;
        struct cel_bytes text; /* of strings and bytes; of a type its name */
        struct cel_time time;
        const struct cel_list *list;
        const struct cel_map *map;
        const struct cel_value *inner; /* of an optional; NULL: none */
        const struct quantity *quantity;
        const struct cel_url *url;
        const struct cel_address *address;
        const struct cel_semver *semver;
        const struct cel_check *check;
    };
};

struct cel_pair {
    struct cel_value key, value;
};

enum cel_op {
    CEL_OP_LITERAL,
    CEL_OP_VARIABLE, /* index */
    CEL_OP_BOUND,    /* of a loop around it: index counts from the outermost */
    CEL_OP_FIELD,    /* args[0].text; optional: .?text */
    CEL_OP_HAS,      /* has(args[0].text) */
    CEL_OP_INDEX,    /* args[0][args[1]]; optional: [?...] */
    CEL_OP_LIST,
    CEL_OP_MAP,      /* key, value, key, value */
    CEL_OP_OPTIONAL, /* an element of a list or value of a map that may be left out */
    CEL_OP_NOT,
    CEL_OP_AND, /* any number */
    CEL_OP_OR,
    CEL_OP_EQUAL,
    CEL_OP_DIFFERS,
    CEL_OP_IN,
    CEL_OP_CONDITION,
    CEL_OP_CALL, /* functions */
    CEL_OP_LOOP, /* args[0] is gone through; then a condition of some; then what is asked or made */
    CEL_OP_OPT_MAP, /* args[0].optMap(x, args[1]) */
    CEL_OP_OPT_FLAT_MAP,
};

enum cel_loop {
    CEL_LOOP_ALL,
    CEL_LOOP_EXISTS,
    CEL_LOOP_EXISTS_ONE,
    CEL_LOOP_FILTER,
    CEL_LOOP_MAP,
    CEL_LOOP_TRANSFORM_MAP,
    CEL_LOOP_SORT_BY,
};

enum { CEL_MAX_BOUND = 16 }; /* variables of loops in each other */

struct cel_node {
    enum cel_op op;
    unsigned at;    /* byte of the text */
    unsigned depth; /* of the tree below, itself included */
    size_t index;
    const char *text; /* name of a field, a function, a variable */
    struct cel_value value;
    struct cel_node **args;
    size_t n;
    bool optional, member;
    enum cel_loop loop;
    bool two;                              /* the loop has two variables, from index on */
    const struct cel_function **functions; /* that may be meant, as far as types are known */
    size_t n_functions;
    struct pattern *pattern; /* of a constant one; owned by the program */
};

struct cel_program {
    struct arena arena;
    struct cel_node *root;
    const struct cel_variable *variables; /* a copy */
    size_t n_variables;
    bool *used; /* by variable */
    VEC(struct pattern *) patterns;
};

/* One evaluation. A function that fails says so here and returns false. */
struct cel_run {
    const struct cel_program *program;
    const struct cel_input *inputs;
    struct arena arena;
    struct cel_value bound[CEL_MAX_BOUND];
    long work, limit;
    const struct pattern *pattern; /* of the function that is called, if it is constant; NULL */
    const char *failure;           /* NULL: none */
    const char *reason;
};

/*
 * A function or operator for operands of certain types. The signature is the type of the result and
 * those of the operands, by letters (functions.c): "bss" of two strings makes a boolean. All of one
 * name follow each other.
 */
struct cel_function {
    const char *name;
    const char *signature;
    bool (*call)(struct cel_run *r, const struct cel_value *args, size_t n, struct cel_value *ret);
    bool member; /* x.f(y) */
};

/* functions.c */
const struct cel_function *cel_function_find(const char *name, bool member); /* the first; NULL */
/* The next of the same name; NULL. */
const struct cel_function *cel_function_next(const struct cel_function *f);
/* Whether operands may be of these types; any that is not known may be. */
bool cel_function_takes(const struct cel_function *f, const struct cel_decl *const *decls,
                        size_t n);
bool cel_function_fits(const struct cel_function *f, const struct cel_value *values, size_t n);
const struct cel_decl *cel_function_result(const struct cel_function *f,
                                           const struct cel_decl *const *decls, struct arena *a);

/* Each ends with an empty one. */
extern const struct cel_function cel_arithmetic_functions[], cel_compare_functions[],
    cel_convert_functions[], cel_string_functions[], cel_list_functions[], cel_time_functions[],
    cel_optional_functions[], cel_quantity_functions[], cel_net_functions[], cel_url_functions[],
    cel_format_functions[], cel_semver_functions[], cel_authorizer_functions[];

/* node.c, parse.c, literal.c */
struct cel_parser {
    struct cel_program *program;
    const char *text, *at;
    const char *bound[CEL_MAX_BOUND];
    size_t n_bound;
    unsigned nesting;
    struct err *e;
};

struct cel_node *cel_parse(struct cel_parser *p);
struct cel_node *cel_node_new(struct cel_parser *p, enum cel_op op, const char *at,
                              struct cel_node *const *args, size_t n);
struct cel_node *cel_literal(struct cel_parser *p, const char *at, struct cel_value value);
/* A string or bytes that begins here, with its prefix; a number. */
bool cel_at_string(const char *at);
struct cel_node *cel_parse_string(struct cel_parser *p);
struct cel_node *cel_parse_number(struct cel_parser *p);
/* A message with its place, as in cel.h; NULL. */
void *cel_fail_at(const char *text, const char *at, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* check.c: sets functions and patterns; the type of the whole, NULL with an error. */
const struct cel_decl *cel_check(struct cel_program *p, const char *text, struct err *e);
/* The field of an object by its name in expressions; NULL. */
const struct cel_field *cel_field_find(const struct cel_decl *d, const char *name);
/* "list(string)", appended. */
void cel_decl_format(const struct cel_decl *d, struct str *out);

/* eval.c */
bool cel_eval(struct cel_run *r, const struct cel_node *n, struct cel_value *ret);
bool cel_spend(struct cel_run *r, size_t n);
/* For bytes that are looked at. */
static inline bool cel_spend_bytes(struct cel_run *r, size_t n)
{
    return cel_spend(r, n / 10);
}
bool cel_fail(struct cel_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool cel_no_overload(struct cel_run *r);

/* value.c */
extern const char *const cel_type_names[CEL_TYPES]; /* as type() gives them */
bool cel_from_json(struct cel_run *r, const json_t *json, const struct cel_decl *decl,
                   struct cel_value *ret);
bool cel_list_at(struct cel_run *r, const struct cel_list *l, size_t i, struct cel_value *ret);
/* A pair by its place; the walk of a JSON object is `it`, NULL at first. */
bool cel_map_next(struct cel_run *r, const struct cel_map *m, size_t i, void **it,
                  struct cel_pair *ret);
/* 1: found, 0: not, -1: failed. */
int cel_map_find(struct cel_run *r, const struct cel_map *m, const struct cel_value *key,
                 struct cel_value *ret);
/* The same for a field by the name that expressions have for it. */
int cel_map_field(struct cel_run *r, const struct cel_map *m, const char *name,
                  struct cel_value *ret);
struct cel_value cel_make_list(struct cel_run *r, const struct cel_value *items, size_t n);
struct cel_value cel_make_string(struct cel_run *r, const char *p, size_t n);
struct cel_value cel_make_type(enum cel_type t);
struct cel_value cel_make_optional(struct cel_run *r, const struct cel_value *inner);
static inline struct cel_value cel_make_bool(bool truth)
{
    return (struct cel_value){.type = CEL_BOOL, .truth = truth};
}
static inline struct cel_value cel_make_int(int64_t integer)
{
    return (struct cel_value){.type = CEL_INT, .integer = integer};
}

/* equal.c: false when work runs out: look at r->failure then. */
bool cel_equal(struct cel_run *r, const struct cel_value *a, const struct cel_value *b);
/* a + b, of lists that are sets or maps without what both have. */
bool cel_merge_lists(struct cel_run *r, const struct cel_list *a, const struct cel_list *b,
                     struct cel_value *ret);
bool cel_is_number(const struct cel_value *v);
/* -1, 0 or 1; -2 when they have no order. */
int cel_compare(const struct cel_value *a, const struct cel_value *b);

/* time.c */
bool cel_time_parse(const char *text, bool date, struct cel_time *ret);
/* `words`: also "3 days", as schemas take it. */
bool cel_duration_parse(const char *text, bool words, int64_t *ret_ns);
void cel_duration_format(int64_t ns, struct str *out);
void cel_time_format(struct cel_time t, struct str *out);

/* convert.c: as string() has it; false for what has no text. */
bool cel_string_of(struct cel_run *r, const struct cel_value *v, struct str *out);

/* string.c: the byte at which a character is, by its place; -1 past the end. */
ssize_t cel_utf8_offset(const struct cel_bytes *s, int64_t place);
int64_t cel_utf8_length(const char *p, size_t n);

/* quantity.c, net.c, semver.c: whether two are equal. */
bool cel_url_equal(const struct cel_url *a, const struct cel_url *b);
void cel_address_format(const struct cel_address *a, bool prefix, struct str *out);
bool cel_address_equal(const struct cel_address *a, const struct cel_address *b);
int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b);
/* authorizer.c */
struct cel_value cel_make_authorizer(struct cel_run *r, const struct cel_authorizer *a);
