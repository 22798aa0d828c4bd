/*
 * Rights of their own: writes that give power over a node itself, which a verb on a kind does not tell from
 * others. Each is a verb that a role names, and is asked for in the whole cluster, whatever the object's
 * namespace: who has it is not kept in a namespace by the node.
 *
 *     verb                on                         to write
 *     run-host-commands   pods in orlop.io           a Pod, or what has a template of Pods, that runs a
 *                                                    command of the host or one of Orlop's programs
 *     set-device-path     blockdevices in openebs.io which device of which node a BlockDevice stands for
 *
 * A template is checked when it is written, so that whoever makes Pods of it need not know its author: our
 * controllers have the right, and copy only what was admitted. An update that leaves the part alone which
 * the right is about needs no right: people may label, scale and delete what an administrator made.
 */
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/registry_impl.h"
#include "k8s/apiserver/rules.h"
#include "k8s/kinds/kinds.h"
#include "kinds/kinds.h"

static bool may(const struct apiserver_admission *a, const struct apiserver_attributes *right)
{
    const struct apiserver_user *user = a->request->user;
    return !user || !a->registry->rbac || apiserver_user_in(user, "system:masters") ||
           apiserver_rbac_allows(a->registry->rbac, user, right, NULL);
}

static int demand(const struct apiserver_admission *a, const struct apiserver_attributes *right,
                  const char *what, struct err *e)
{
    if (may(a, right))
        return 0;
    return err_set(e, ERR_PERMISSION_DENIED, "Forbidden",
                   "user \"%s\" cannot %s: that takes the verb \"%s\" on \"%s\" in API group "
                   "\"%s\" at the cluster scope",
                   a->request->user->name, what, right->verb, right->resource, right->group);
}

/* Of a Pod its other metadata is not what runs; of a template all is copied. */
static bool runs_same(const struct api_kind *kind, const json_t *was, const json_t *is)
{
    if (!was)
        return false;
    if (kind != &api_pod)
        return json_equal(was, is);
    return api_pod_asks_for_host(was) == api_pod_asks_for_host(is) &&
           json_equal(json_object_get(was, "spec"), json_object_get(is, "spec"));
}

static int check_pods(const struct apiserver_admission *a, struct err *e)
{
    static const struct apiserver_attributes right = {
        .verb = "run-host-commands", .group = "orlop.io", .resource = "pods", .namespace = ""};
    const struct api_kind *kind = a->request->kind;
    const json_t *is = api_pod_template_of(kind, a->object);
    const char *program = is ? api_pod_host_program(is) : NULL;
    if (!program || runs_same(kind, a->old ? api_pod_template_of(kind, a->old) : NULL, is))
        return 0;
    _cleanup_free_ char *what = mem_printf("run %s on a node", program);
    return demand(a, &right, what, e);
}

/* What leads to a device, and who looks after it. */
static bool is_same_device(const json_t *was, const json_t *is)
{
    static const char *const members[] = {"path", "devlinks", "nodeAttributes", "parentDevice"};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const json_t *before = json_at(was, "spec", members[i]);
        const json_t *after = json_at(is, "spec", members[i]);
        if (before != after && (!before || !after || !json_equal(before, after)))
            return false;
    }
    const char *before = json_str(json_at(was, "metadata", "labels"), "ndm.io/managed");
    const char *after = json_str(json_at(is, "metadata", "labels"), "ndm.io/managed");
    return str_eq(before ? before : "", after ? after : "");
}

static int check_device(const struct apiserver_admission *a, struct err *e)
{
    static const struct apiserver_attributes right = {.verb = "set-device-path",
                                                      .group = "openebs.io",
                                                      .resource = "blockdevices",
                                                      .namespace = ""};
    if (a->request->kind != &api_block_device || is_same_device(a->old, a->object))
        return 0;
    return demand(a, &right, "say which device of a node a BlockDevice stands for", e);
}

int rules_rights_check(struct apiserver_admission *a, struct err *e)
{
    if (!a->object)
        return 0;
    return check_pods(a, e) < 0 ? -1 : check_device(a, e);
}
