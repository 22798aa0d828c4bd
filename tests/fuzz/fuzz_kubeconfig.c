/*
 * Kubeconfigs: what is taken is complete and can be sent as it is; what is refused says why, in words
 * that a terminal can show, and leaves nothing behind. No file outside an empty folder is read.
 */
#include "base/str.h"
#include "fuzz.h"
#include "kube/config.h"

static void check_header(const char *value)
{
    for (; *value; value++)
        CHECK(*value > ' ' && *value <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_config c;
    struct err e = {0};
    /* Absolute paths would be read: the machine's files are no part of the input. */
    if (size && memmem(data, size, ": /", 3))
        return 0;
    if (kube_config_parse((const char *)data, size, "/nonexistent", NULL, &c, &e) < 0) {
        CHECK(e.code != ERR_OK && e.reason && *e.msg);
        for (const char *p = e.msg; *p; p++)
            CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
        CHECK(!c.server && !c.token && !c.key);
        return 0;
    }
    CHECK(c.ns && c.server);
    CHECK(str_starts_with(c.server, "https://") || str_starts_with(c.server, "http://"));
    CHECK(!str_ends_with(c.server, "/"));
    check_header(c.server);
    if (c.token)
        check_header(c.token);
    CHECK(!c.certificate == !c.key);
    kube_config_done(&c);
    return 0;
}
