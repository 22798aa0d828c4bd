/*
 * Bytes of an HTTP server. The first says how the rest is cut into pieces; whatever the cut, the
 * outcome is the same, bodies are parts of what came, and what is kept is bounded.
 */
#include "fuzz.h"
#include "http/response.h"

struct outcome {
    struct str body;
    int status;
    unsigned code;
    bool keep;
};

static void read_in(const char *bytes, size_t n, size_t piece, bool head, struct outcome *o)
{
    struct http_response response = {0};
    struct http_reader r;
    struct err e = {0};
    size_t at = 0;
    http_reader_init(&r, head, &response);
    while (o->status == 0 && at < n && !http_reader_complete(&r)) {
        size_t most = n - at < piece ? n - at : piece, used = 0, got = 0;
        const char *part = NULL;
        o->status = http_reader_feed(&r, bytes + at, most, &used, &part, &got, &e);
        CHECK(o->status < 0 || (used > 0 && used <= most));
        CHECK(got == 0 || (part >= bytes + at && part + got <= bytes + at + used));
        if (got)
            str_append_n(&o->body, part, got);
        at += used;
        CHECK(r.line.len <= HTTP_HEAD_MAX && response.warnings.len <= HTTP_HEAD_MAX);
        CHECK(!http_reader_has_head(&r) || o->status < 0 || response.status >= 200);
    }
    if (o->status == 0)
        o->status = http_reader_end(&r, &e);
    CHECK(o->status == 0 || (*e.msg && (e.code == ERR_INTERNAL || e.code == ERR_UNAVAILABLE)));
    CHECK(response.retry_after <= 3600 && memchr(response.content_type, '\0', 128));
    o->code = response.status;
    o->keep = r.keep;
    http_reader_done(&r);
    http_response_done(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct outcome whole = {0}, parts = {0};
    const char *bytes = (const char *)data + 1;
    bool head = data[0] & 0x80;
    read_in(bytes, size - 1, size, head, &whole);
    read_in(bytes, size - 1, (data[0] & 0x7f) + 1u, head, &parts);
    CHECK(whole.status == parts.status);
    if (whole.status == 0) {
        CHECK(whole.code == parts.code && whole.keep == parts.keep);
        CHECK(whole.body.len == parts.body.len);
        CHECK(!whole.body.len || !memcmp(whole.body.p, parts.body.p, whole.body.len));
    }
    str_done(&whole.body);
    str_done(&parts.body);
    return 0;
}
