/*
 * What the server counts of itself, under the names that kube-apiserver uses, so that dashboards and
 * alerts made for it work here; what only this server has is called orlop_*.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "k8s/apiserver/audit.h"
#include "k8s/apiserver/path.h"
#include "k8s/apiserver/store.h"

struct apiserver_metrics;

struct apiserver_metrics *apiserver_metrics_new(void);
void apiserver_metrics_free(struct apiserver_metrics *m);

/* From now on the store's commits and sizes are part of it. The store must outlive all scrapes. */
void apiserver_metrics_store(struct apiserver_metrics *m, struct apiserver_store *s,
                             const char *path);

/* The same of the audit log, which must outlive all scrapes, too. */
void apiserver_metrics_audit(struct apiserver_metrics *m, const struct apiserver_audit *a);

struct apiserver_metrics_request {
    const struct apiserver_path *path;
    bool parsed; /* the path is one; else nothing is known of it */
    const char *method;
    bool apply, dry_run;
    unsigned status;
    int64_t ns; /* how long it took */
};

/* A handler that begins (1) or has answered (-1). */
void apiserver_metrics_inflight(struct apiserver_metrics *m, bool mutating, int change);
/* A request that is over: of a watch when it ends. */
void apiserver_metrics_done(struct apiserver_metrics *m, const struct apiserver_metrics_request *r);
/* A watch that begins (1) or ends (-1). */
void apiserver_metrics_watch(struct apiserver_metrics *m, const struct apiserver_path *path,
                             int change);
void apiserver_metrics_events(struct apiserver_metrics *m, const struct apiserver_path *path,
                              size_t n);

/* One call of a webhook. */
void apiserver_metrics_webhook(struct apiserver_metrics *m, const char *name, bool mutating,
                               const char *operation, bool rejected, int64_t ns);
/* One that failed and was ignored. */
void apiserver_metrics_fail_open(struct apiserver_metrics *m, const char *name, bool mutating);
/* One group of changes that the store committed, or failed to. */
void apiserver_metrics_commit(struct apiserver_metrics *m, size_t changes, int64_t ns, bool failed);

/* The text of /metrics, appended. */
void apiserver_metrics_format(struct apiserver_metrics *m, struct str *out);
