/*
 * The RPCs as methods of a gRPC server.
 */
#include "csi/csi.h"

static bool is_cancelled(const void *context)
{
    return grpc_cancelled(context);
}

static struct csi_call call_of(struct grpc_call *c)
{
    return (struct csi_call){.driver = grpc_context(c),
                             .arena = grpc_arena(c),
                             .deadline = grpc_deadline(c),
                             .cancelled = is_cancelled,
                             .context = c};
}

#define HANDLER(service, type, name)                                                               \
    static int handle_##name(struct grpc_call *c, const void *q, void *r, struct err *e)           \
    {                                                                                              \
        struct csi_call call = call_of(c);                                                         \
        return csi_##name(&call, q, r, e);                                                         \
    }
CSI_RPCS(HANDLER)

#define METHOD(service, type, name)                                                                \
    {"/csi.v1." #service "/" #type, &csi__v1__##name##_request__descriptor,                        \
     &csi__v1__##name##_response__descriptor, handle_##name},
const struct grpc_method csi_methods[] = {CSI_RPCS(METHOD){0}};
