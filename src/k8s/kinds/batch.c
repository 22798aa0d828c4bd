/*
 * Job and CronJob: pods that run to an end.
 */
#include "k8s/kinds/cells.h"
#include "k8s/kinds/kinds.h"

static const struct api_field job_spec[] = {
    {"parallelism", API_INT, API_UINT31, .doc = "How many pods run at a time; 1 when not given."},
    {"completions", API_INT, API_UINT31, .doc = "How many pods must succeed."},
    {"activeDeadlineSeconds", API_INT, .min = 1, .max = INT64_MAX,
     .doc = "Time after which the job has failed."},
    {"podFailurePolicy", API_OBJECT, .flags = API_KEEP, .doc = "Which failures count."},
    {"successPolicy", API_OBJECT, .flags = API_KEEP, .doc = "When the job has succeeded."},
    {"backoffLimit", API_INT, API_UINT31, .doc = "How many failures are borne."},
    {"backoffLimitPerIndex", API_INT, API_UINT31, .doc = "The same for each index."},
    {"maxFailedIndexes", API_INT, API_UINT31, .doc = "How many indexes may fail."},
    {"selector", API_OBJECT, .flags = API_ATOMIC, .fields = api_label_selector,
     .doc = "Which pods are its own; set by the server."},
    {"manualSelector", API_BOOL, .doc = "Whether the selector was chosen by hand."},
    {"template", API_OBJECT, .flags = API_REQUIRED, .fields = api_pod_template,
     .doc = "The pods that are made."},
    {"ttlSecondsAfterFinished", API_INT, API_UINT31,
     .doc = "Time after which a finished job is deleted."},
    {"completionMode", API_STRING, .words = API_WORDS("NonIndexed", "Indexed"),
     .def = "\"NonIndexed\"", .doc = "Whether each pod has an index."},
    {"suspend", API_BOOL, .def = "false", .doc = "Whether the job waits."},
    {"podReplacementPolicy", API_STRING, .words = API_WORDS("TerminatingOrFailed", "Failed"),
     .doc = "When a pod is replaced."},
    {"managedBy", API_STRING, .doc = "The controller that looks after the job."},
    {0},
};

static const struct api_field job_status[] = {
    API_CONDITIONS,
    {"startTime", API_TIME, .doc = "When it was begun."},
    {"completionTime", API_TIME, .doc = "When it succeeded."},
    {"active", API_INT, API_UINT31, .doc = "Pods that run or wait."},
    {"ready", API_INT, API_UINT31, .doc = "Pods that are ready."},
    {"terminating", API_INT, API_UINT31, .doc = "Pods that are ending."},
    {"succeeded", API_INT, API_UINT31, .doc = "Pods that succeeded."},
    {"failed", API_INT, API_UINT31, .doc = "Pods that failed."},
    {"completedIndexes", API_STRING, .doc = "Indexes that succeeded."},
    {"failedIndexes", API_STRING, .doc = "Indexes that failed."},
    {"uncountedTerminatedPods", API_OBJECT, .flags = API_KEEP,
     .doc = "Pods that ended and are not counted yet."},
    {0},
};

static const struct api_field job_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = job_spec, .doc = "What is to be run."},
    {"status", API_OBJECT, .fields = job_status, .def = "{}", .doc = "How far it is."},
    {0},
};

static const struct api_column job_columns[] = {
    {"Status", "string", NULL, "How it is", 0, api_cell_job_status},
    {"Completions", "string", NULL, "Pods that succeeded, of how many", 0,
     api_cell_job_completions},
    {"Duration", "string", NULL, "How long it took or has taken", 0, api_cell_job_duration},
    API_AGE,
    API_TEMPLATE_COLUMNS,
    API_SELECTOR_COLUMN,
    {0},
};

static const struct api_field job_template[] = {
    {"metadata", API_OBJECT, .flags = API_EMBEDDED, .fields = api_object_meta,
     .doc = "Labels and annotations of the jobs."},
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = job_spec, .doc = "The jobs."},
    {0},
};

static const struct api_field cron_job_spec[] = {
    {"schedule", API_STRING, .flags = API_REQUIRED,
     .doc = "When to run: minute, hour, day of the month, month and day of the week."},
    {"timeZone", API_STRING, .doc = "Time zone of the schedule."},
    {"startingDeadlineSeconds", API_INT, .min = 0, .max = INT64_MAX,
     .doc = "How late a run may begin."},
    {"concurrencyPolicy", API_STRING, .words = API_WORDS("Allow", "Forbid", "Replace"),
     .def = "\"Allow\"", .doc = "What if the run before has not ended."},
    {"suspend", API_BOOL, .def = "false", .doc = "Whether runs are left out."},
    {"jobTemplate", API_OBJECT, .flags = API_REQUIRED, .fields = job_template,
     .doc = "The job that is made for each run."},
    {"successfulJobsHistoryLimit", API_INT, API_UINT31, .def = "3",
     .doc = "How many jobs that succeeded are kept."},
    {"failedJobsHistoryLimit", API_INT, API_UINT31, .def = "1",
     .doc = "How many jobs that failed are kept."},
    {0},
};

static const struct api_field cron_job_status[] = {
    {"active", API_OBJECT, API_LIST, .fields = api_object_reference, .doc = "Jobs that run."},
    {"lastScheduleTime", API_TIME, .doc = "When the last run began."},
    {"lastSuccessfulTime", API_TIME, .doc = "When a run last succeeded."},
    {0},
};

static const struct api_field cron_job_fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = cron_job_spec,
     .doc = "What is to be run, and when."},
    {"status", API_OBJECT, .fields = cron_job_status, .def = "{}",
     .doc = "What runs, and what ran last."},
    {0},
};

static const struct api_column cron_job_columns[] = {
    {"Schedule", "string", ".spec.schedule", "When it runs"},
    {"Timezone", "string", NULL, "Time zone of the schedule", 0, api_cell_cron_zone},
    {"Suspend", "boolean", NULL, "Whether runs are left out", 0, api_cell_cron_suspend},
    {"Active", "integer", NULL, "Jobs that run", 0, api_cell_cron_active},
    {"Last Schedule", "string", NULL, "Time since the last run began", 0, api_cell_cron_last},
    API_AGE,
    {"Containers", "string", NULL, "Containers of the template", 1, api_cell_cron_containers},
    {"Images", "string", NULL, "Images of the template", 1, api_cell_cron_images},
    {"Selector", "string", NULL, "Which pods are its own", 1, api_cell_cron_selector},
    {0},
};

static void set_default(json_t *object, const char *key, json_int_t value)
{
    if (!json_object_get(object, key))
        json_object_set_new(object, key, json_integer(value));
}

/* One pod that succeeds is enough, unless it is a queue of work. */
static void derive_job(json_t *object)
{
    json_t *spec = json_object_get(object, "spec");
    api_pod_template_derive(object);
    if (!json_is_object(spec))
        return;
    if (!json_object_get(spec, "parallelism"))
        set_default(spec, "completions", 1);
    set_default(spec, "parallelism", 1);
    set_default(spec, "backoffLimit",
                json_object_get(spec, "backoffLimitPerIndex") ? INT32_MAX : 6);
}

static void derive_cron_job(json_t *object)
{
    api_pod_template_derive((json_t *)json_at(object, "spec", "jobTemplate"));
}

/* A job ends, so its pods must be able to. */
static void validate_template(const json_t *spec, const struct api_path *at,
                              struct api_report *report)
{
    const struct api_path *pod_at = API_KEY(API_KEY(at, "template"), "spec");
    const json_t *pod = json_at(spec, "template", "spec");
    const json_t *policy = json_object_get(pod, "restartPolicy");
    if (policy && str_eq(json_string_value(policy), "Always"))
        api_problem(report, API_KEY(pod_at, "restartPolicy"), API_UNSUPPORTED, policy,
                    "supported values: \"OnFailure\", \"Never\"");
    api_pod_spec_validate(pod, pod_at, report);
}

static void validate_job(const json_t *object, struct api_report *report)
{
    validate_template(json_object_get(object, "spec"), API_KEY(NULL, "spec"), report);
}

static void validate_cron_job(const json_t *object, struct api_report *report)
{
    const struct api_path *at = API_KEY(API_KEY(NULL, "spec"), "jobTemplate");
    validate_template(json_at(object, "spec", "jobTemplate", "spec"), API_KEY(at, "spec"), report);
}

const struct api_kind api_job = {
    .kind = "Job",
    .plural = "jobs",
    .singular = "job",
    .versions = API_VERSION("batch", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = job_fields,
    .columns = job_columns,
    .derive = derive_job,
    .validate = validate_job,
    .doc = "Pods that run until so many have succeeded.",
};

const struct api_kind api_cron_job = {
    .kind = "CronJob",
    .plural = "cronjobs",
    .singular = "cronjob",
    .short_names = API_WORDS("cj"),
    .versions = API_VERSION("batch", "v1"),
    .flags = API_BUILTIN | API_STATUS,
    .fields = cron_job_fields,
    .columns = cron_job_columns,
    .derive = derive_cron_job,
    .validate = validate_cron_job,
    .doc = "Jobs that are run by the clock.",
};
