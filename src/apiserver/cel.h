/*
 * A part of CEL, the language of matchConditions: enough for what people write to say when a webhook
 * is asked, and nothing that can run away.
 *
 *     literals    'text'  "text"  r'text'  12  true  false  null  [1, 2]
 *     operators   ==  !=  <  <=  >  >=  in  &&  ||  !  a ? b : c
 *     access      a.b  a['b']  list[0]
 *     functions   has(a.b)  size(a)  a.size()
 *                 s.startsWith(t)  s.endsWith(t)  s.contains(t)
 *                 list.exists(x, ...)  list.all(x, ...)
 *
 * As in CEL, access to what is not there is an error, and && and || give a result when one side
 * alone decides it, also when the other is an error. Anything else that CEL has is refused when the
 * expression is compiled, with what and where.
 *
 * A compiled expression is constant: any thread may evaluate it. Length, depth and work are bounded.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "json/json.h"

enum {
    APISERVER_CEL_BYTES = 16384, /* of an expression */
    APISERVER_CEL_DEPTH = 200,   /* of operations in each other */
    APISERVER_CEL_WORK = 200000, /* steps of one evaluation */
};

struct apiserver_cel;

/* Names end with NULL: the variables that there are. They and the texts are not kept. */
struct apiserver_cel *apiserver_cel_compile(const char *text, const char *const *names,
                                            struct err *e);
void apiserver_cel_free(struct apiserver_cel *c);
DEFINE_CLEANUP(struct apiserver_cel *, apiserver_cel_free)

/* Values in the order of the names; NULL is null. An expression that is not boolean is an error. */
int apiserver_cel_test(const struct apiserver_cel *c, const json_t *const *values, bool *ret_result,
                       struct err *e);
