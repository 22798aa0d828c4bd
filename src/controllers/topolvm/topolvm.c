#include "controllers/topolvm/topolvm.h"

#include "controllers/controllers.h"

int controllers_topolvm_provisioner(struct kube_manager *m, struct err *e)
{
    struct topolvm *t = NEW(struct topolvm);
    kube_manager_on_stop(m, free, t);
    t->clock = kube_manager_clock(m);
    t->client = kube_manager_client(m);
    t->recorder = kube_manager_recorder(m);
    t->metrics = kube_manager_metrics(m);
    t->ledger = topolvm_ledger_new(m);
    t->claims_r = kube_resource("v1", "PersistentVolumeClaim");
    t->volumes_r = kube_resource("v1", "PersistentVolume");
    t->capacities_r = kube_resource("storage.k8s.io/v1", "CSIStorageCapacity");
    t->drivers_r = kube_resource("storage.k8s.io/v1", "CSIDriver");
    t->claims = kube_manager_informer(m, t->claims_r, NULL, NULL, NULL);
    t->volumes = kube_manager_informer(m, t->volumes_r, NULL, NULL, NULL);
    t->capacities = kube_manager_informer(m, t->capacities_r, NULL, NULL, NULL);
    t->drivers = kube_manager_informer(m, t->drivers_r, NULL, NULL, NULL);
    t->classes = kube_manager_informer(m, kube_resource("storage.k8s.io/v1", "StorageClass"), NULL,
                                       NULL, NULL);
    if (topolvm_setup_provision(t, m, e) < 0 || topolvm_setup_reclaim(t, m, e) < 0 ||
        topolvm_setup_resize(t, m, e) < 0)
        return -1;
    return topolvm_setup_publish(t, m, e);
}
