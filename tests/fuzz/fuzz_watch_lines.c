/*
 * Bytes of a watch, in pieces whose sizes the input says: whatever the pieces, the same lines come
 * out, up to the first that is too long. The first byte is the limit, the second seeds the pieces.
 */
#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"
#include "kube/lines.h"

static int collect(void *context, const char *text, size_t n, struct err *e)
{
    struct str *out = context;
    (void)e;
    CHECK(n > 0 && !memchr(text, '\n', n));
    str_append_n(out, text, n);
    str_append_c(out, '\n');
    return 0;
}

/* In pieces of 1 to `most` bytes. */
static int feed(const uint8_t *data, size_t size, size_t limit, unsigned most, struct str *out)
{
    struct kube_lines l = {.limit = limit, .line = collect, .context = out};
    struct err e = {0};
    int status = 0;
    unsigned seed = most;
    for (size_t at = 0; at < size && status == 0;) {
        seed = seed * 1103515245 + 12345;
        size_t n = 1 + seed / 65536 % most;
        n = n < size - at ? n : size - at;
        status = kube_lines_feed(&l, (const char *)data + at, n, &e);
        CHECK(l.begun.len <= limit);
        at += n;
    }
    CHECK(status == 0 || str_eq(e.reason, "LineTooLong"));
    kube_lines_done(&l);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t limit = data[0];
    unsigned most = 1 + data[1];
    struct str bytes = {0}, pieces = {0};
    int one = feed(data + 2, size - 2, limit, 1, &bytes);
    int many = feed(data + 2, size - 2, limit, most, &pieces);
    CHECK(one == many);
    CHECK(str_eq(str_get(&bytes), str_get(&pieces)) || memchr(data + 2, 0, size - 2));
    CHECK(bytes.len == pieces.len);
    str_done(&bytes);
    str_done(&pieces);
    return 0;
}
