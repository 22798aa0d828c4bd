#include "kinds/kinds.h"

#include "api/openapi.h"

/* What a program knows that knows none of Kubernetes' kinds: see api/kind.h. */
const struct api_kind *const api_kinds[] = {
    &api_cstor_pool_cluster,  &api_cstor_pool_instance, &api_block_device,
    &api_block_device_claim,  &api_cstor_volume,        &api_cstor_volume_replica,
    &api_cstor_volume_config, &api_cstor_volume_policy, &api_jiva_volume,
    &api_jiva_volume_resize,  &api_logical_volume,      NULL,
};

const struct api_message_field *api_message_find(const char *api_version, const char *kind)
{
    (void)api_version;
    (void)kind;
    return NULL;
}

const struct api_openapi_shared *api_openapi_shared(void)
{
    static const struct api_openapi_shared none[] = {{0}};
    return none;
}
