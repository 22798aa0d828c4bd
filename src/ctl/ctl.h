/*
 * What the commands that speak with an API share: finding it, and showing what it says.
 */
#pragma once

#include "base/age.h"
#include "cli/cli.h"
#include "controllers/topolvm/capacity.h"
#include "kinds/kinds.h"
#include "kube/groups.h"
#include "kube/object.h"

/* What the options of these commands fill; each command has some of them. */
struct ctl_settings {
    const char *kubeconfig, *context, *data; /* which API */
    const char *ns, *node, *output;
    bool all_namespaces, force, wait, dry_run;
    int64_t timeout;
    const char *size, *class;       /* of a logical volume */
    bool free;                      /* of disks: only those that nobody uses */
    struct cli_list groups;         /* of disks, for pools, in the order given */
    const char *compression;        /* of a pool */
    bool thin;                      /* the same */
    unsigned replicas;              /* of a volume; 0: not given */
    const char *reclaim;            /* the same */
    bool fixed, keep, login, erase; /* the same */
};

static inline const struct ctl_settings *ctl_settings(const struct cli_args *args)
{
    return args->settings;
}

#define CTL_AT(member) CLI_AT(struct ctl_settings, member)

#define CTL_API_OPTIONS                                                                            \
    {"kubeconfig",                                                                                 \
     0,                                                                                            \
     "FILE",                                                                                       \
     CLI_FILE,                                                                                     \
     CTL_AT(kubeconfig),                                                                           \
     .doc = "Kubeconfig of the API to use. Without it: that of --data, $KUBECONFIG, that of the "  \
            "data folder of `orlop up` if there is one, else what kubectl uses."},                 \
        {"context",       0,                                                                       \
         "NAME",          CLI_STRING,                                                              \
         CTL_AT(context), .doc = "Context of the kubeconfig; without it the current one."},        \
    {                                                                                              \
        "data", 'd', "DIR", CLI_DIR, CTL_AT(data),                                                 \
            .doc = "Use the API of the `orlop up` that has this data folder."                      \
    }

#define CTL_TIMEOUT_OPTION                                                                         \
    {                                                                                              \
        "timeout", 't', "TIME", CLI_SECONDS, CTL_AT(timeout),                                      \
            .def = "60s", .least = CLOCK_SECOND,                                                   \
            .doc = "How long to wait; a number without a unit counts seconds."                     \
    }

#define CTL_WAIT_OPTIONS                                                                           \
    {"wait", 'w', NULL, CLI_SWITCH, CTL_AT(wait), .doc = "Wait until it is done or has failed."},  \
        CTL_TIMEOUT_OPTION

/* What a command that made something shows of it. */
#define CTL_MADE_OPTION                                                                            \
    {                                                                                              \
        "output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output),                                         \
            .choices = CLI_WORDS("json", "yaml", "name"), .doc = "Show the result in this format." \
    }

#define CTL_LIST_OPTION(wide)                                                                      \
    {                                                                                              \
        "output", 'o', "FORMAT", CLI_ENUM, CTL_AT(output),                                         \
            .def = "table", .choices = CLI_WORDS("table", "wide", "json", "yaml", "name"),         \
            .doc = "Output format. wide adds " wide "."                                            \
    }

/* The API that the options mean; to be freed. */
struct kube_client *ctl_connect(const struct cli_args *args, struct err *e);
/* A command that is one function of that API; the status to end with. */
typedef int ctl_run_fn(const struct cli_args *args, struct kube_client *client, struct err *e);
int ctl_run(const struct cli_args *args, ctl_run_fn *fn);

/* forget.c: what is written on what is forgotten: {"by", "at", "force"}; NULL with an error. */
json_t *ctl_forget_word(struct kube_client *client, bool force, struct err *e);
/* Seconds since a Lease was renewed, if that is within the time that it promises; else -1. -2: an error. */
int64_t ctl_lease_age(struct kube_client *client, const char *ns, const char *name, struct err *e);

/* Where new LogicalVolumes are made: in the group that the server has; of two, in the older. */
struct kube_resource ctl_lvs(struct kube_client *c);
/* "logicalvolume.topolvm.cybozu.com", with words for printf: where the object was found. */
#define CTL_LV           "logicalvolume.%.*s"
#define CTL_LV_GROUP(lv) (int)strcspn(json_str(lv, "apiVersion"), "/"), json_str(lv, "apiVersion")

/* Rows of cells as kubectl shows them: as wide as the widest, three blanks between. */
struct ctl_table {
    json_t *rows; /* arrays of strings, the first has the titles */
};
void ctl_table_init(struct ctl_table *t, const char *const *titles); /* end with NULL */
void ctl_table_done(struct ctl_table *t);
/* As many as there are titles; NULL and "" are shown as <none>. */
void ctl_table_add(struct ctl_table *t, const char *const *cells);
void ctl_table_print(const struct ctl_table *t, FILE *out);

/* wait.c */
/* 1 done, 0 not yet, -1 failed; *ret_progress gets what is waited for. */
typedef int ctl_done_fn(void *context, struct str *ret_progress, struct err *e);
/* `orlop COMMAND FIRST-WORD` shows the same to who has waited too long. */
int ctl_wait(const struct cli_args *args, const char *command, ctl_done_fn *is_done, void *context,
             struct err *e);

/* "json" or "yaml"; without managedFields, as kubectl does. */
void ctl_print(const json_t *value, const char *format);
/* An array as a List. */
json_t *ctl_list(const json_t *items);

/* The PersistentVolume that stands for a LogicalVolume; NULL when there is none, or with an error. */
json_t *ctl_volume_of(struct kube_client *c, const json_t *lv, struct err *e);

/* Age of an object, as kubectl has it; returns buf. */
const char *ctl_age(const json_t *object, char buf[AGE_MAX]);
/* Prints objects as -o says: json, yaml or name ("TYPE/NAME"); false: as a table, by the caller. */
bool ctl_print_objects(const struct cli_args *args, const json_t *objects, const char *type);
