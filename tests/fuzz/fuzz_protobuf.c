/*
 * Bodies in protobuf: whatever comes in makes an object or an error that can be sent; what is an
 * object can be written again, and comes back as the same one.
 */
#include "base/mem.h"
#include "fuzz.h"
#include "k8s/apiserver/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    json_auto_t *object = apiserver_protobuf_parse(data, size, &e);
    if (!object) {
        json_auto_t *message = json_string(e.msg);
        CHECK(e.code == ERR_INVALID_ARGUMENT || e.code == ERR_UNIMPLEMENTED);
        CHECK(message && e.reason);
        return 0;
    }
    CHECK(json_is_object(object) && json_str(object, "kind") && json_str(object, "apiVersion"));
    CHECK(json_depth(object) <= JSON_MAX_DEPTH);
    _cleanup_(str_done) struct str bytes = {0};
    CHECK(apiserver_protobuf_format(object, &bytes, &e) == 0);
    json_auto_t *back = apiserver_protobuf_parse(bytes.p, bytes.len, &e);
    CHECK(back && json_equal(back, object));
    return 0;
}
