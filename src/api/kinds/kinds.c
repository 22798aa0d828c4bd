#include "api/kinds/kinds.h"

const struct api_kind *const api_kinds[] = {
    &api_cstor_pool_cluster, &api_cstor_pool_instance,
    &api_block_device,       &api_block_device_claim,
    &api_cstor_volume,       &api_cstor_volume_replica,
    &api_jiva_volume,        &api_jiva_volume_resize,
    &api_logical_volume,     NULL,
};
