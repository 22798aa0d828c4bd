/*
 * Expressions: what compiles can be evaluated, ends, and gives the same result twice; what does not
 * has a message.
 */
#include "apiserver/cel.h"
#include "fuzz.h"

static const char *const names[] = {"object", "oldObject", "request", NULL};
static const char object[] = "{\"a\":{\"b\":[1,2,{\"c\":\"d\"}],\"e\":null,\"f\":1.5},\"g\":\"h\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = mem_strndup((const char *)data, size);
    struct err e = {0};
    _cleanup_(apiserver_cel_freep) struct apiserver_cel *c = apiserver_cel_compile(text, names, &e);
    if (!c) {
        CHECK(*e.msg && e.code != ERR_OK);
        return 0;
    }
    json_auto_t *value = json_parse(object, sizeof(object) - 1, NULL, NULL);
    const json_t *values[] = {value, NULL, value};
    bool first = false, second = false;
    int status = apiserver_cel_test(c, values, &first, &e);
    CHECK(status == 0 || *e.msg);
    CHECK(apiserver_cel_test(c, values, &second, &e) == status && first == second);
    return 0;
}
