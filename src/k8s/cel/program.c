/*
 * Programs: compiled once, evaluated by anybody.
 */
#include "k8s/cel/impl.h"

const struct cel_decl cel_decls[CEL_TYPES] = {
    {CEL_DYN},        {CEL_NULL},        {CEL_BOOL},           {CEL_INT},      {CEL_UINT},
    {CEL_DOUBLE},     {CEL_STRING},      {CEL_BYTES},          {CEL_LIST},     {CEL_MAP},
    {CEL_TIMESTAMP},  {CEL_DURATION},    {CEL_TYPE},           {CEL_OPTIONAL}, {CEL_QUANTITY},
    {CEL_URL},        {CEL_IP},          {CEL_CIDR},           {CEL_SEMVER},   {CEL_AUTHORIZER},
    {CEL_PATH_CHECK}, {CEL_GROUP_CHECK}, {CEL_RESOURCE_CHECK}, {CEL_DECISION},
};

static struct cel_program *program_new(const struct cel_variable *variables)
{
    struct cel_program *p = NEW(struct cel_program);
    size_t n = 0;
    while (variables[n].name)
        n++;
    struct cel_variable *own = arena_alloc(&p->arena, (n + 1) * sizeof(*own));
    for (size_t i = 0; i < n; i++)
        own[i] =
            (struct cel_variable){arena_strdup(&p->arena, variables[i].name), variables[i].decl};
    p->variables = own;
    p->n_variables = n;
    p->used = arena_alloc(&p->arena, (n + 1) * sizeof(bool));
    return p;
}

struct cel_program *cel_compile(const char *text, const struct cel_variable *variables,
                                enum cel_type result, struct err *e)
{
    if (strlen(text) > CEL_MAX_BYTES) {
        err_set(e, ERR_INVALID_ARGUMENT, "CompilationFailed",
                "ERROR: <input>:1:1: the expression is longer than %d bytes", CEL_MAX_BYTES);
        return NULL;
    }
    _cleanup_(cel_program_freep) struct cel_program *p = program_new(variables);
    struct cel_parser parser = {.program = p, .text = text, .at = text, .e = e};
    p->root = cel_parse(&parser);
    const struct cel_decl *type = p->root ? cel_check(p, text, e) : NULL;
    if (!type)
        return NULL;
    if (result != CEL_DYN && type->type != result) {
        err_set(e, ERR_INVALID_ARGUMENT, "WrongResult", "must evaluate to %s",
                cel_type_names[result]);
        return NULL;
    }
    return TAKE_PTR(p);
}

void cel_program_free(struct cel_program *p)
{
    if (!p)
        return;
    vec_for_each(&p->patterns, pattern)
        pattern_free(*pattern);
    vec_done(&p->patterns);
    arena_done(&p->arena);
    free(p);
}

bool cel_uses(const struct cel_program *p, size_t variable)
{
    return p->used[variable];
}
