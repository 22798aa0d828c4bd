/*
 * Which functions there are, and which of those of one name takes what.
 */
#include "k8s/cel/impl.h"

static const struct cel_function *const tables[] = {
    cel_arithmetic_functions, cel_compare_functions, cel_convert_functions,  cel_string_functions,
    cel_list_functions,       cel_time_functions,    cel_optional_functions, cel_quantity_functions,
    cel_net_functions,        cel_url_functions,     cel_format_functions,   cel_semver_functions,
    cel_authorizer_functions,
};

/*
 * The letters of signatures. As results, capital letters of their own say more:
 *     S list(string)   I list(int)   e an element of the first operand   a the first operand's type
 *     w an optional of the first operand
 */
static const char letters[CEL_TYPES] = {
    [CEL_DYN] = 'D',
    [CEL_NULL] = 'n',
    [CEL_BOOL] = 'b',
    [CEL_INT] = 'i',
    [CEL_UINT] = 'u',
    [CEL_DOUBLE] = 'd',
    [CEL_STRING] = 's',
    [CEL_BYTES] = 'y',
    [CEL_LIST] = 'L',
    [CEL_MAP] = 'M',
    [CEL_TIMESTAMP] = 't',
    [CEL_DURATION] = 'p',
    [CEL_TYPE] = 'T',
    [CEL_OPTIONAL] = 'O',
    [CEL_QUANTITY] = 'Q',
    [CEL_URL] = 'U',
    [CEL_IP] = 'A',
    [CEL_CIDR] = 'C',
    [CEL_SEMVER] = 'V',
    [CEL_AUTHORIZER] = 'Z',
    [CEL_PATH_CHECK] = 'P',
    [CEL_GROUP_CHECK] = 'G',
    [CEL_RESOURCE_CHECK] = 'R',
    [CEL_DECISION] = 'X',
};

const struct cel_function *cel_function_find(const char *name, bool member)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (const struct cel_function *f = tables[i]; f->name; f++) {
            if (f->member == member && str_eq(f->name, name))
                return f;
        }
    }
    return NULL;
}

/* Those of one name may be in several tables. */
const struct cel_function *cel_function_next(const struct cel_function *f)
{
    bool passed = false;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (const struct cel_function *g = tables[i]; g->name; g++) {
            if (passed && g->member == f->member && str_eq(g->name, f->name))
                return g;
            passed |= g == f;
        }
    }
    return NULL;
}

bool cel_function_takes(const struct cel_function *f, const struct cel_decl *const *decls, size_t n)
{
    if (strlen(f->signature) != n + 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        char wanted = f->signature[i + 1];
        if (wanted != 'D' && decls[i]->type != CEL_DYN && letters[decls[i]->type] != wanted)
            return false;
    }
    return true;
}

bool cel_function_fits(const struct cel_function *f, const struct cel_value *values, size_t n)
{
    if (strlen(f->signature) != n + 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        char wanted = f->signature[i + 1];
        if (wanted != 'D' && letters[values[i].type] != wanted)
            return false;
    }
    return true;
}

const struct cel_decl *cel_function_result(const struct cel_function *f,
                                           const struct cel_decl *const *decls, struct arena *a)
{
    static const struct cel_decl strings = {CEL_LIST, .element = &cel_decls[CEL_STRING]};
    static const struct cel_decl integers = {CEL_LIST, .element = &cel_decls[CEL_INT]};
    struct cel_decl *made;
    switch (f->signature[0]) {
    case 'S':
        return &strings;
    case 'I':
        return &integers;
    case 'a':
        return decls[0];
    case 'e':
        return decls[0]->element ? decls[0]->element : &cel_decls[CEL_DYN];
    case 'w':
        made = arena_new(a, struct cel_decl);
        *made = (struct cel_decl){CEL_OPTIONAL, .element = decls[0]};
        return made;
    }
    for (enum cel_type t = CEL_DYN; t < CEL_TYPES; t++) {
        if (letters[t] == f->signature[0])
            return &cel_decls[t];
    }
    return &cel_decls[CEL_DYN];
}
