/*
 * What a replica's object says, and what follows for the pool.
 */
#include <stdlib.h>

#include "api/admit.h"
#include "base/str.h"
#include "kinds/cstorvolume.h"
#include "pool/cvr_impl.h"

enum { REPLICATION_PORT = 6060, BLOCK = 4096 };

char *pool_cvr_volume(const struct pool_cvrs *c, const json_t *object)
{
    const char *label = kube_label(object, API_CSTOR_OF_VOLUME), *name = kube_name(object);
    if (label && *label)
        return mem_strdup(label);
    /* By the rule that replicas are named by. */
    _cleanup_free_ char *end = mem_printf("-%s", c->pool);
    size_t n = strlen(name), tail = strlen(end);
    return n > tail && str_eq(name + n - tail, end) ? mem_strndup(name, n - tail)
                                                    : mem_strdup(name);
}

const char *pool_cvr_volume_id(const json_t *object)
{
    const char *id = kube_annotation(object, API_CSTOR_ID);
    if (id && *id)
        return id;
    const json_t *owner = kube_controller_of(object);
    const char *kind = json_str(owner, "kind");
    return kind && str_eq(kind, "CStorVolume") ? json_str(owner, "uid") : NULL;
}

static int missing(struct err *ret, const char *what)
{
    return err_set(ret, ERR_FAILED_PRECONDITION, "FailValidate", "the object has no %s", what);
}

/* The rules of its table: a server without our admission may have let anything pass. */
static int check_table(const json_t *object, struct err *ret)
{
    struct api_report report = {0};
    json_auto_t *copy = json_deep_copy(object);
    json_object_del(copy, "status");
    int status = 0;
    if (!api_admit(&api_cstor_volume_replica, copy, NULL, API_UNKNOWN_IGNORE, &report)) {
        const struct api_problem *first = NULL;
        vec_for_each(&report.problems, p) {
            if (!p->warning && !first)
                first = p;
        }
        bool absent = first && first->cause == API_MISSING;
        status =
            err_set(ret, absent ? ERR_FAILED_PRECONDITION : ERR_INVALID_ARGUMENT, "FailValidate",
                    "%s: %s", first ? first->path : "", first ? first->message : "is not valid");
    }
    api_report_done(&report);
    return status;
}

void pool_cvr_check(const json_t *object, struct err *ret)
{
    const char *volume = kube_label(object, API_CSTOR_OF_VOLUME);
    if (check_table(object, ret) < 0)
        return;
    if (!volume || !*volume)
        missing(ret, "label " API_CSTOR_OF_VOLUME);
    else if (!pool_cvr_volume_id(object))
        missing(ret, "annotation " API_CSTOR_ID);
    else if (!*volume_replica_of(object).spec.target_ip)
        missing(ret, "spec.targetIP");
}

/* Whole blocks of the data set, and of what initiators see. */
static uint64_t size_of(const struct volume_replica *o)
{
    uint64_t block = o->spec.block_size > BLOCK ? (uint64_t)o->spec.block_size : BLOCK;
    return o->spec.capacity > 0 ? ((uint64_t)o->spec.capacity + block - 1) / block * block : 0;
}

void pool_cvr_wish(struct pool_cvr_run *r)
{
    const struct volume_replica *o = &r->object;
    const char *id = pool_cvr_volume_id(r->json);
    const struct pool_replica_wish w = {
        .want = pool_cvr_want(o, kube_deleting(r->json)),
        .name = kube_name(r->json),
        .zvol = r->it->zvol,
        .volume_name = id ? id : "",
        .volume = uuid_of_name(id ? id : ""),
        .replicaid = volume_replica_id(o),
        .guid = pool_number(o->status.zvol_guid),
        .size = size_of(o),
        .block_size = (uint32_t)o->spec.block_size,
        .compression = o->spec.compression,
        .thick = o->spec.thick,
        .workers = (unsigned)strtoul(o->spec.workers, NULL, 10),
        .target = o->spec.target_ip,
        .port = REPLICATION_PORT,
        .key = r->it->key.len ? (const uint8_t *)r->it->key.p : NULL,
        .key_size = r->it->key.len,
    };
    pool_replicas_wish(r->c->replicas, &w);
    r->it->wished = true;
    r->it->want = w.want;
}
