#include "kinds/pool_names.h"

#include "base/mem.h"
#include "kinds/access.h"

char *api_pool_account(const char *cspi)
{
    return mem_printf(API_ACCESS_POOL_PREFIX "%s", cspi);
}
