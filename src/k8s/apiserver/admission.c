#include "k8s/apiserver/admission.h"

#include "k8s/apiserver/csr.h"
#include "k8s/apiserver/rbac.h"
#include "k8s/apiserver/rules.h"
#include "k8s/apiserver/webhook.h"

typedef int step(struct apiserver_admission *a, struct err *e);

/*
 * Each list ends with NULL. Webhooks are last of those that may wait: they see what all others made
 * of the object.
 */
static step *const mutating[] = {
    rules_namespace_exists,    rules_namespace_fill,
    rules_storage_fill,        rules_service_fill,
    rules_node_fill,           csr_fill,
    apiserver_webhooks_mutate, NULL,
};
static step *const validating[] = {
    apiserver_definitions_admit,
    apiserver_rbac_admit,
    rules_namespace_deletable,
    rules_node_check,
    rules_rights_check,
    rules_access_check,
    csr_check,
    rules_storage_check,
    rules_limits_check,
    rules_among_check,
    apiserver_webhooks_validate,
    NULL,
};
static step *const holding[] = {
    rules_namespace_hold,
    rules_quota_hold,
    NULL,
};

static int run(step *const *steps, struct apiserver_admission *a, struct err *e)
{
    for (; *steps; steps++) {
        if ((*steps)(a, e) < 0)
            return -1;
    }
    return 0;
}

int apiserver_admission_mutate(struct apiserver_admission *a, struct err *e)
{
    return run(mutating, a, e);
}

int apiserver_admission_validate(struct apiserver_admission *a, struct err *e)
{
    return run(validating, a, e);
}

int apiserver_admission_hold(struct apiserver_admission *a, struct err *e)
{
    return run(holding, a, e);
}

void apiserver_admission_release(struct apiserver_admission *a)
{
    rules_service_release(a);
    rules_among_release(a);
    rules_quota_release(a);
    rules_namespace_release(a);
    json_decref(a->converted);
    a->converted = NULL;
}

void apiserver_admission_follow(struct apiserver_admission *a)
{
    json_auto_t *wishes = TAKE_PTR(a->wishes);
    apiserver_admission_release(a); /* nothing is held while others are written */
    rules_among_follow(a->registry, wishes);
}
