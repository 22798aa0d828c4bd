/*
 * What a container finds when it starts: its environment, and its volumes as folders of the host.
 *
 *     pod_fields.c    facts about the pod as text
 *     pod_env.c       environment and arguments
 *     pod_payload.c   volumes that are files out of the API; pod_files.c writes them
 *     pod_volume.c    all volumes, and where they are mounted
 *     pod_ours.c      what containers of our own images may be
 */
#pragma once

#include "k8s/kubelet/pod.h"
#include "k8s/kubelet/pods.h"

/* pod_fields.c: facts about a pod as text, for variables and files. */

/* Appends what a path such as metadata.labels['app'] says of the pod. */
int pod_field(const json_t *pod, const struct pod_place *place, const char *path, struct str *out,
              struct err *e);
/* The same of a resourceFieldRef; container is the one that it is about when it names none. */
int pod_resource_field(const json_t *pod, const json_t *container, const json_t *ref,
                       struct str *out, struct err *e);

/* Where ConfigMaps, Secrets and tokens come from. */
struct pod_source {
    /* A new reference; NULL with NOT_FOUND. */
    json_t *(*get)(void *context, const char *kind, const char *ns, const char *name,
                   struct err *e);
    /* Appends a token of the pod's account; when it ends, in ns since 1970, is in *ret_expires. */
    int (*token)(void *context, const json_t *pod, const char *audience, int64_t seconds,
                 struct str *ret_token, int64_t *ret_expires, struct err *e);
    void *context;
};

/* The bytes of a key of a ConfigMap or Secret; NOT_FOUND when the object or the key is missing. */
int pod_source_key(const struct pod_source *s, const char *kind, const char *ns, const char *name,
                   const char *key, struct str *out, struct err *e);
/* The bytes of one entry of data or binaryData; false when it is none. */
bool pod_source_value(const char *kind, const char *member, const json_t *value, struct str *out);

/* pod_env.c */

struct pod_vars {
    VEC(char *) p; /* "NAME=value", each name once */
};
void pod_vars_done(struct pod_vars *v);
/* Borrowed; NULL. */
const char *pod_vars_get(const struct pod_vars *v, const char *name);
/* $(NAME) is replaced where there is such a variable; $$ is one $. */
char *pod_expand(const char *text, const struct pod_vars *v);
int pod_vars_make(const struct pod_spec *spec, const struct pod_container *c,
                  const struct pod_place *place, const struct pod_source *source,
                  struct pod_vars *ret_vars, struct err *e);

/* pod_payload.c: volumes that are files out of the API. */

struct pod_file {
    char *path; /* within the volume */
    struct str data;
    unsigned mode;
};
struct pod_files {
    VEC(struct pod_file) p;
    int64_t renew_ns; /* since 1970: a token should be had again then; INT64_MAX */
};
void pod_files_done(struct pod_files *f);
/* Whether it is such a volume; when it is, its files, or -1. */
bool pod_volume_is_payload(const json_t *volume);
int pod_payload(const struct pod_spec *spec, const json_t *volume, const struct pod_place *place,
                const struct pod_source *source, struct pod_files *ret_files, struct err *e);

/*
 * pod_files.c: makes the folder hold exactly these files. Whoever reads meanwhile sees all of the
 * old or all of the new: names lead through a symlink that is replaced. Nothing is written when
 * nothing differs.
 */
int pod_files_write(const char *folder, const struct pod_files *f, struct err *e);

/* pod_volume.c */

struct pod_paths {
    const char *folder;                      /* of the pod's state */
    const struct node_pods_options *options; /* claims */
};
/*
 * Makes all volumes of the pod, or brings those out of the API up to date. When to do that again for
 * a token's sake, since 1970, is in *ret_renew.
 */
int pod_volumes_set_up(const struct pod_spec *spec, const struct pod_paths *paths,
                       const struct pod_place *place, const struct pod_source *source,
                       int64_t *ret_renew, struct err *e);
/* Tells whoever made them for claims that the pod is gone. */
void pod_volumes_release(const struct pod_spec *spec, const struct node_pods_options *o);
struct pod_mount {
    char *source, *target;
    bool read_only;
};
struct pod_mounts {
    VEC(struct pod_mount) p;
};
void pod_mounts_done(struct pod_mounts *m);
/* What a container mounts; the volumes are set up. */
int pod_mounts_make(const struct pod_spec *spec, const struct pod_container *c,
                    const struct pod_paths *paths, const struct pod_vars *vars,
                    struct pod_mounts *ret_mounts, struct err *e);
/* Whether the account's token is given to the pod: as a kubeconfig, for which no mount is needed. */
bool pod_wants_access(const json_t *pod);
char *pod_access_path(const char *folder); /* of that kubeconfig */

/* pod_ours.c: whether a container of our images may run that program with those arguments. */
int pod_ours_check(const struct pod_container *c, const char *program, const char *const *argv,
                   size_t n, struct err *e);
