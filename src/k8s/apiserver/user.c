#include "k8s/apiserver/user.h"

#include <stdatomic.h>

#include "base/arena.h"
#include "base/str.h"

const struct apiserver_user apiserver_self = {
    .name = "system:apiserver",
    .groups = (const char *const[]){"system:masters", "system:authenticated", NULL},
};

const struct apiserver_user apiserver_anonymous = {
    .name = "system:anonymous",
    .groups = (const char *const[]){"system:unauthenticated", NULL},
};

struct counted {
    struct apiserver_user user;
    _Atomic unsigned refs;
    struct arena arena; /* of everything but extra */
    json_t *extra;
};

const struct apiserver_user *apiserver_user_new(const char *name, const char *uid,
                                                const char *const *groups, json_t *extra)
{
    struct counted *c = NEW(struct counted);
    size_t n = 0;
    while (groups[n])
        n++;
    const char **own = arena_alloc(&c->arena, (n + 1) * sizeof(own[0]));
    for (size_t i = 0; i < n; i++)
        own[i] = arena_strdup(&c->arena, groups[i]);
    c->refs = 1;
    c->extra = extra;
    c->user = (struct apiserver_user){
        .name = arena_strdup(&c->arena, name),
        .uid = uid ? arena_strdup(&c->arena, uid) : NULL,
        .groups = own,
        .extra = extra,
        .counted = true,
    };
    return &c->user;
}

const struct apiserver_user *apiserver_user_ref(const struct apiserver_user *user)
{
    if (user && user->counted)
        atomic_fetch_add_explicit(&container_of(user, struct counted, user)->refs, 1,
                                  memory_order_relaxed);
    return user;
}

void apiserver_user_unref(const struct apiserver_user *user)
{
    if (!user || !user->counted)
        return;
    struct counted *c = container_of(user, struct counted, user);
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    json_decref(c->extra);
    arena_done(&c->arena);
    free(c);
}

bool apiserver_user_in(const struct apiserver_user *user, const char *group)
{
    return str_in(group, user->groups);
}

json_t *apiserver_user_json(const struct apiserver_user *user)
{
    json_t *out = json_pack("{s:s}", "username", user->name), *groups = json_array();
    if (user->uid && *user->uid)
        json_object_set_new(out, "uid", json_string(user->uid));
    for (const char *const *group = user->groups; *group; group++)
        json_array_append_new(groups, json_string(*group));
    if (json_array_size(groups))
        json_object_set(out, "groups", groups);
    json_decref(groups);
    if (json_object_size(user->extra))
        json_object_set_new(out, "extra", json_deep_copy(user->extra));
    return out;
}
