/*
 * Expressions: what compiles can be evaluated, ends, and gives the same result twice; what does not
 * has a message. Every input is tried with variables of known type and of none.
 */
#include "fuzz.h"
#include "k8s/cel/cel.h"

static const char object[] =
    "{\"a\":{\"b\":[1,2,3],\"e\":null,\"f\":1.5,\"t\":\"2026-01-02T03:04:05Z\"},\"g\":\"h\","
    "\"l\":[\"x\",\"y\"],\"m\":{\"k\":\"v\",\"k.2\":\"\"},\"o\":[{\"n\":\"p\",\"q\":7}]}";

static const struct cel_decl ints = {CEL_LIST, .element = &cel_decls[CEL_INT]};
static const struct cel_decl words = {CEL_LIST, .element = &cel_decls[CEL_STRING],
                                      .list = CEL_LIST_SET};
static const struct cel_decl texts = {CEL_MAP, .key = &cel_decls[CEL_STRING],
                                      .element = &cel_decls[CEL_STRING]};
static const struct cel_field a_fields[] = {
    {"b", "b", &ints}, {"f", "f", &cel_decls[CEL_DOUBLE]}, {"t", "t", &cel_decls[CEL_TIMESTAMP]}};
static const struct cel_decl a = {CEL_MAP, .object = true, .fields = a_fields, .n_fields = 3};
static const struct cel_field o_fields[] = {{"n", "n", &cel_decls[CEL_STRING]},
                                            {"q", "q", &cel_decls[CEL_INT]}};
static const struct cel_decl o = {CEL_MAP, .object = true, .fields = o_fields, .n_fields = 2};
static const char *const keys[] = {"n", NULL};
static const struct cel_decl os = {CEL_LIST, .element = &o, .list = CEL_LIST_MAP,
                                   .list_keys = keys};
static const struct cel_field fields[] = {{"a", "a", &a},
                                          {"g", "g", &cel_decls[CEL_STRING]},
                                          {"l", "l", &words},
                                          {"m", "m", &texts},
                                          {"o", "o", &os}};
static const struct cel_decl typed = {CEL_MAP, .object = true, .fields = fields, .n_fields = 5};
static const struct cel_decl maybe = {CEL_OPTIONAL, .element = &typed};

static bool allowed(const void *context, const struct cel_access *access, struct str *reason)
{
    (void)context;
    str_append(reason, "because");
    return access->verb[0] == 'g';
}

static void run(const char *text, const struct cel_variable *variables, const json_t *value)
{
    static const struct cel_authorizer authorizer = {.allowed = allowed};
    struct err e = {0};
    _cleanup_(cel_program_freep) struct cel_program *p = cel_compile(text, variables, CEL_DYN, &e);
    if (!p) {
        CHECK(*e.msg && e.code != ERR_OK);
        return;
    }
    const struct cel_input inputs[] = {
        {.json = value}, {.json = value, .optional = true}, {.authorizer = &authorizer}};
    bool first = false, second = false;
    int status = cel_test(p, inputs, NULL, &first, &e);
    CHECK(status == 0 || *e.msg);
    CHECK(cel_test(p, inputs, NULL, &second, &e) == status && first == second);
    _cleanup_(str_done) struct str out = {0};
    long budget = 1000;
    status = cel_text(p, inputs, &budget, &out, &e);
    CHECK(status == 0 || *e.msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cel_variable untyped[] = {{"self", &cel_decls[CEL_DYN]},
                                                  {"oldSelf", &cel_decls[CEL_DYN]},
                                                  {"authorizer", &cel_decls[CEL_AUTHORIZER]},
                                                  {0}};
    static const struct cel_variable known[] = {
        {"self", &typed}, {"oldSelf", &maybe}, {"authorizer", &cel_decls[CEL_AUTHORIZER]}, {0}};
    _cleanup_free_ char *text = mem_strndup((const char *)data, size);
    json_auto_t *value = json_parse(object, sizeof(object) - 1, NULL, NULL);
    run(text, untyped, value);
    run(text, known, value);
    return 0;
}
