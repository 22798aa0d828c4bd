/*
 * Programs of Orlop write only what is their own: the table of api/access.h, over the store.
 */
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "kinds/access.h"

static json_t *look_up(void *context, const struct api_kind *kind, const char *namespace,
                       const char *name, struct err *e)
{
    (void)e; /* what cannot be read is not there: the store has written it itself */
    return rules_get(context, kind, namespace, name);
}

int rules_access_check(struct apiserver_admission *a, struct err *e)
{
    static const char *const verbs[] = {[APISERVER_OP_CREATE] = "create",
                                        [APISERVER_OP_UPDATE] = "update",
                                        [APISERVER_OP_DELETE] = "delete"};
    const struct apiserver_user *user = a->request->user;
    if (!user || user == &apiserver_self || apiserver_user_in(user, "system:masters"))
        return 0;
    struct api_actor actor;
    api_actor_init(&actor, user->name, apiserver_user_in(user, "system:nodes"), user->extra);
    const struct api_lookup lookup = {.get = look_up, .context = a->registry};
    const struct api_write write = {
        .kind = a->request->kind,
        .verb = verbs[a->operation],
        .subresource = apiserver_subresource_text(a->request->subresource),
        .object = a->object,
        .old = a->old,
    };
    int status = api_access_check(&actor, &write, &lookup, e);
    api_actor_done(&actor);
    return status;
}
