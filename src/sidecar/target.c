#include "base/ask.h"
#include "sidecar/sidecar.h"

json_t *sidecar_ask(const char *control, json_t *request, int64_t timeout_ns, struct err *e)
{
    _cleanup_(str_done) struct str line = {0}, text = {0};
    json_auto_t *r = request;
    json_format(r, &line);
    str_append_c(&line, '\n');
    if (ask_unix(control, &line, timeout_ns, &text, e) < 0)
        return NULL;
    json_t *answer = json_parse(str_get(&text), text.len, NULL, e);
    const char *refusal = answer ? json_str(answer, "error") : NULL;
    if (!refusal)
        return answer;
    err_set(e, ERR_FAILED_PRECONDITION, "Refused", "%s", refusal);
    json_decref(answer);
    return NULL;
}
