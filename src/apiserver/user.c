#include "apiserver/user.h"

#include "base/str.h"

const struct apiserver_user apiserver_self = {
    .name = "system:apiserver",
    .groups = (const char *const[]){"system:masters", "system:authenticated", NULL},
};

bool apiserver_user_in(const struct apiserver_user *user, const char *group)
{
    return str_in(group, user->groups);
}
