/*
 * CStorPoolClusters and their instances, of whichever group they are: openebs.io or cstor.openebs.io. A
 * cluster may have both as definitions of their own, one alone, or the same objects under both names.
 *
 * What is read is in normal form and says in its apiVersion where it was found; what is written goes there,
 * in the words of that version.
 */
#include "api/admit.h"
#include "api/convert.h"
#include "ctl/pools.h"
#include "kube/groups.h"

static const char *const versions[] = {"openebs.io/v1alpha1", "cstor.openebs.io/v1"};

json_t *ctl_cstor_get(struct kube_client *client, const struct api_kind *kind, const char *ns,
                      const char *name, struct err *e)
{
    json_auto_t *found = kube_get_any(client, kind, ns, name, e);
    return found ? api_read(kind, found) : NULL;
}

json_t *ctl_cstor_list(struct kube_client *client, const struct api_kind *kind, const char *ns,
                       const char *labels, struct err *e)
{
    const struct kube_query q = {.labels = labels};
    json_auto_t *found = kube_list_any(client, kind, ns, &q, e);
    json_t *all = found ? json_array() : NULL, *item;
    size_t i;
    json_array_foreach(found, i, item)
        json_array_append_new(all, api_read(kind, item));
    return all;
}

/* As the version has it. */
static json_t *form_of(const struct api_kind *kind, const json_t *object, size_t version)
{
    if (!version)
        return json_incref((json_t *)object);
    struct api_report ignored = {0};
    json_t *published = api_convert(kind, object, API_FORM_PUBLISHED, &ignored);
    api_report_done(&ignored);
    return published;
}

json_t *ctl_cstor_update(struct kube_client *client, const struct api_kind *kind,
                         const json_t *object, const struct kube_write *w, struct err *e)
{
    const struct kube_resource r = kube_resource_of(object);
    json_auto_t *body = form_of(kind, object, str_eq(r.api_version, versions[1]));
    return kube_update(client, &r, body, w, e);
}

json_t *ctl_cstor_create(struct kube_client *client, const struct api_kind *kind,
                         const json_t *object, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        const struct kube_resource r = kube_resource(versions[i], kind->kind);
        json_auto_t *body = form_of(kind, object, i);
        struct err why = {0};
        json_t *made = kube_create(client, &r, body, NULL, &why);
        if (made)
            return made;
        if (i == 0 || why.code != ERR_NOT_FOUND)
            *e = why;
        if (why.code != ERR_NOT_FOUND)
            return NULL;
    }
    return NULL;
}
