/*
 * CStorVolume: a replicated block volume, as its iSCSI target sees it.
 */
#include "kinds/cstorvolume.h"

#include "kinds/cvc.h"

#define CV struct cstor_volume

static const struct api_field known_in_spec[] = {
    {"knownReplicas", API_STRING, API_MAP, API_JSON(CV, spec.known),
     .doc = "The replicas that the target trusts, by replica id; the value identifies the data "
            "set. Filled in from the status by the system."},
    {0},
};

static const struct api_field known_in_status[] = {
    {"knownReplicas", API_STRING, API_MAP, API_JSON(CV, status.known),
     .doc =
         "The replicas that the target trusts, by replica id; the value identifies the data set."},
    {0},
};

static const struct api_field pool_choice[] = {
    {"poolName", API_STRING, API_TEXT(struct cstor_pool_choice, name), .flags = API_REQUIRED,
     .format = &api_dns_subdomain, .doc = "Name of a CStorPoolInstance."},
    {0},
};

static const struct api_field resize_order[] = {
    {"name", API_STRING, API_TEXT(CV, spec.order.name), .flags = API_REQUIRED,
     .format = &api_dns_subdomain, .doc = "Which order it is."},
    {"capacity", API_QUANTITY, API_AMOUNT(CV, spec.order.capacity),
     .flags = API_REQUIRED | API_POSITIVE, .doc = "The size that the target is to have."},
    {0},
};

static const struct api_field spec[] = {
    {"capacity", API_QUANTITY, API_AMOUNT(CV, spec.capacity),
     .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY,
     .doc = "The size that is wanted. Raise it to grow the volume; it cannot shrink."},
    {"targetIP", API_STRING, API_TEXT(CV, spec.target_ip), .format = &api_ip,
     .doc = "Address of the target's service."},
    {"targetPort", API_STRING, API_TEXT(CV, spec.target_port), .format = &api_port,
     .doc = "Its port, 3260 as a rule."},
    {"targetPortal", API_STRING, API_TEXT(CV, spec.portal), .format = &api_portal,
     .doc = "Address and port together."},
    {"iqn", API_STRING, API_TEXT(CV, spec.iqn), .flags = API_IMMUTABLE, .format = &api_iqn,
     .doc = "iSCSI name of the target."},
    {"authentication", API_STRING, API_TEXT(CV, spec.authentication),
     .words = API_WORDS("CHAP", "None"), .absent = "CHAP",
     .doc = "CHAP, also without it: initiators log in with what the Secret NAME-chap has. None: "
            "whoever reaches the portal reads and writes the volume; for initiators without CHAP."},
    {"replicationFactor", API_INT, API_NUMBER_AT(CV, spec.factor), .flags = API_REQUIRED, .min = 1,
     .max = API_CSTOR_REPLICAS, .doc = "How many replicas the volume has."},
    {"consistencyFactor", API_INT, API_NUMBER_AT(CV, spec.consistency), .min = 1,
     .max = API_CSTOR_REPLICAS,
     .doc = "How many replicas must have a write before it is acknowledged: more than half of "
            "replicationFactor, which is also what is taken when this is not given."},
    {"desiredReplicationFactor", API_INT, API_NUMBER_AT(CV, spec.desired), .min = 1,
     .max = API_CSTOR_REPLICAS,
     .doc = "How many replicas are wanted; differs from replicationFactor while scaling."},
    {"replicaPoolInfo", API_OBJECT, API_LIST, API_ARRAY(CV, spec.pools), .fields = pool_choice,
     .merge_key = "poolName",
     .doc = "The pools that are to have a replica each; they are chosen by the system when this is "
            "not given. With it, its length is how many replicas are wanted."},
    {"leavingReplicas", API_STRING, API_LIST, API_ARRAY(CV, spec.leaving), .format = &api_sequence,
     .doc = "Ids of replicas that are to leave the volume, when all others that are wanted have "
            "all data. Written by the system; status.removedReplicas acknowledges it."},
    {"resizeOrder", API_OBJECT, API_INLINE, .fields = resize_order,
     .doc = "That the target is to grow. Written by the system; status.resize acknowledges it."},
    {"replicaDetails", API_OBJECT, API_INLINE, .fields = known_in_spec,
     .doc = "The replicas that belong to the volume."},
    {"policy", API_OBJECT, API_JSON(CV, spec.policy), .fields = api_cstor_policy,
     .doc = "Settings of target and replicas, as a CStorVolumeConfig has them."},
    {"nodeBase", API_STRING, .doc = "Older form: the part of the iqn before the colon."},
    {"status", API_STRING, .doc = "Older form; kept, has no effect."},
    {0},
};

static const struct api_field replica_status[] = {
    {"replicaId", API_STRING, API_TEXT(struct cstor_replica_status, id), .flags = API_REQUIRED,
     .doc = "Identity of the replica's data set: its value in knownReplicas."},
    {"mode", API_STRING, API_TEXT(struct cstor_replica_status, mode),
     .doc = "Healthy, Degraded or another state of a replica."},
    {"checkpointedIOSeq", API_STRING, .format = &api_sequence,
     .doc = "Every write up to this number is durable on the replica."},
    {"inflightRead", API_STRING, .format = &api_sequence, .doc = "Reads under way."},
    {"inflightWrite", API_STRING, .format = &api_sequence, .doc = "Writes under way."},
    {"inflightSync", API_STRING, .format = &api_sequence, .doc = "Flushes under way."},
    {"upTime", API_INT, .min = 0, .max = INT64_MAX, .doc = "Seconds since it connected."},
    {"quorum", API_STRING, .words = API_WORDS("0", "1"),
     .doc = "1: what was written to it is there. 0: its data is lost or was never there; it is "
            "rebuilt whole and counts in no quorum until then."},
    {"rebuildPercent", API_INT, .min = 0, .max = 100, .doc = "How much of a rebuild is done."},
    {"secondsLeft", API_INT, .min = 0, .max = INT32_MAX, .doc = "Of a rebuild, as it looks now."},
    {0},
};

static const struct api_field conditions[] = {
    {"type", API_STRING, .flags = API_REQUIRED,
     .doc = "Resizing, or one of those that are true or not: FullyReplicated, Serving, "
            "TargetReachable, Authenticated, Configured, Deleting."},
    {"status", API_STRING, .flags = API_REQUIRED,
     .words = API_WORDS("InProgress", "Success", "True", "False", "Unknown"),
     .doc = "InProgress and Success say how far a resize is; the others are true or not."},
    {"reason", API_STRING, .doc = "One CamelCase word for why the status last changed."},
    {"message", API_STRING, .doc = "The same for people."},
    {"lastProbeTime", API_TIME, .doc = "When it was last looked at."},
    {"lastTransitionTime", API_TIME, .doc = "When the status last changed."},
    {0},
};

static const struct api_field initiator[] = {
    {"name", API_STRING, .doc = "iSCSI name of the initiator."},
    {"address", API_STRING, .doc = "Where it is."},
    {0},
};

static const struct api_field growth[] = {
    {"name", API_STRING, API_TEXT(CV, status.resize.name), .doc = "The order that was taken."},
    {"capacity", API_QUANTITY, .doc = "The size that it asks for."},
    {"message", API_STRING, API_TEXT(CV, status.resize.message),
     .doc = "Why it was not done; empty while it is."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING, API_TEXT(CV, status.phase),
     .words = API_WORDS("", "Init", "Healthy", "Degraded", "Offline", "Error", "Invalid"),
     .doc = "Init: the volume is being made. Healthy: as many replicas as consistencyFactor have "
            "all data; whether all have says the condition FullyReplicated. Degraded: fewer have, "
            "and I/O goes on. Offline: I/O waits, or no target is there. Error: the target does "
            "not answer. Invalid: the spec contradicts itself."},
    {"replicas", API_STRING, .doc = "Replicas that have all data, of those that are wanted: 2/3."},
    {"replicaStatuses", API_OBJECT, API_LIST, API_ARRAY(CV, status.replicas),
     .fields = replica_status, .merge_key = "replicaId",
     .doc = "The replicas as the target sees them. Numbers of I/O are as of lastUpdateTime."},
    {"capacity", API_QUANTITY, API_AMOUNT(CV, status.capacity),
     .doc = "The size that the volume has, read back from the target."},
    {"lastTransitionTime", API_TIME, .doc = "When the phase last changed."},
    {"lastUpdateTime", API_TIME, API_TEXT(CV, status.updated),
     .doc = "When the status was last written."},
    {"initiators", API_OBJECT, API_LIST, .fields = initiator, .doc = "Who is logged in."},
    {"operation", API_STRING, .doc = "What the target is at beside I/O; empty: nothing."},
    {"removedReplicas", API_STRING, API_LIST, API_ARRAY(CV, status.removed),
     .doc = "Those of spec.leavingReplicas that have left the volume."},
    {"resize", API_OBJECT, API_INLINE, .fields = growth,
     .doc = "The order to grow that the target has taken."},
    {"message", API_STRING, .doc = "Why the volume is in this phase."},
    {"conditions", API_OBJECT, API_LIST, .fields = conditions, .merge_key = "type",
     .doc = "What is under way."},
    {"replicaDetails", API_OBJECT, API_INLINE, .fields = known_in_status,
     .doc = "The replicas that belong to the volume, as its replicas themselves have it."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, API_INLINE, .flags = API_REQUIRED, .fields = spec,
     .doc = "The volume that is wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, API_INLINE, .fields = status, .doc = "The volume that is there."},
    {0},
};

struct cstor_volume cstor_volume_of(const json_t *json, struct arena *arena)
{
    struct cstor_volume volume = {.json = json};
    api_decode(fields, json, &volume, arena);
    return volume;
}

unsigned cstor_volume_factor(const struct cstor_volume *v)
{
    int64_t n = v->spec.pools.len ? (int64_t)v->spec.pools.len
                : v->spec.desired ? v->spec.desired
                                  : v->spec.factor;
    return n > 0 && n <= API_CSTOR_REPLICAS ? (unsigned)n : 0;
}

static const struct api_column columns[] = {
    {"Capacity", "string", ".status.capacity", "Size that the volume has"},
    {"Status", "string", ".status.phase", "State of the volume"},
    {"Replicas", "string", ".status.replicas", "Replicas that have all data, of those wanted"},
    {"Portal", "string", ".spec.targetPortal", "Where its target is", 1},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

/* The first is known to the data, and an argument of programs. */
static const struct api_note notes[] = {
    {API_CSTOR_ID, &api_volume_id, .fixed = true},
    {API_CSTOR_NODE, &api_dns_subdomain},
    {0},
};

static const struct api_path *const spec_at = API_KEY(NULL, "spec");

/* A bare number counts bytes. */
static void normalize(json_t *object, struct api_report *report)
{
    json_t *volume = json_object_get(object, "spec");
    const json_t *capacity = json_object_get(volume, "capacity");
    (void)report;
    if (json_is_integer(capacity) && json_integer_value(capacity) > 0)
        json_object_set_new(volume, "capacity",
                            json_sprintf("%lld", (long long)json_integer_value(capacity)));
}

/* RF/2+1 where nobody said otherwise, and as many replicas as there are. */
static void derive(json_t *object)
{
    json_t *volume = json_object_get(object, "spec");
    const json_t *rf = json_object_get(volume, "replicationFactor");
    if (json_integer_value(rf) < 1 || json_integer_value(rf) > API_CSTOR_REPLICAS)
        return; /* missing or refused: nothing follows from it */
    if (!json_object_get(volume, "consistencyFactor"))
        json_object_set_new(volume, "consistencyFactor",
                            json_integer(json_integer_value(rf) / 2 + 1));
    if (!json_object_get(volume, "desiredReplicationFactor"))
        json_object_set(volume, "desiredReplicationFactor", (json_t *)rf);
}

static void check_portal(const json_t *volume, struct api_report *report)
{
    const char *portal = json_str(volume, "targetPortal"), *ip = json_str(volume, "targetIP");
    const char *port = json_str(volume, "targetPort");
    if (!portal || !*portal)
        return;
    const char *colon = strrchr(portal, ':');
    bool same_port = !port || !*port || str_eq(colon + 1, port);
    size_t n = (size_t)(colon - portal), brackets = portal[0] == '[';
    bool same_ip =
        !ip || !*ip ||
        (strlen(ip) == n - 2 * brackets && strncmp(portal + brackets, ip, strlen(ip)) == 0);
    if (!same_ip || !same_port)
        api_problem(report, API_KEY(spec_at, "targetPortal"), API_INVALID,
                    json_object_get(volume, "targetPortal"),
                    "must have the %s (%s); leave it out to have it made",
                    same_ip ? "port of targetPort" : "address of targetIP", same_ip ? port : ip);
}

/* Its Service, Deployment and labels are named after it. */
static void check_name(const json_t *object, struct api_report *report)
{
    const json_t *name = json_at(object, "metadata", "name");
    const char *text = json_string_value(name);
    if (text && (strlen(text) > API_CSTOR_NAME_MAX || strchr(text, '.')))
        api_problem(report, API_KEY(API_KEY(NULL, "metadata"), "name"), API_INVALID, name,
                    "a Service and a Deployment are named after it: write at most %d lower case "
                    "letters, digits and '-'",
                    API_CSTOR_NAME_MAX);
}

static void validate(const json_t *object, struct api_report *report)
{
    const json_t *volume = json_object_get(object, "spec");
    json_int_t rf = json_integer_value(json_object_get(volume, "replicationFactor"));
    const json_t *factor = json_object_get(volume, "consistencyFactor");
    json_int_t cf = json_integer_value(factor);
    if (cf < rf / 2 + 1 || cf > rf)
        api_problem(report, API_KEY(spec_at, "consistencyFactor"), API_INVALID, factor,
                    "with %lld replicas must be between %lld (more than half) and %lld",
                    (long long)rf, (long long)(rf / 2 + 1), (long long)rf);
    size_t known = json_object_size(json_at(volume, "replicaDetails", "knownReplicas"));
    json_int_t most = json_integer_value(json_object_get(volume, "desiredReplicationFactor"));
    /* Those that are to leave are known until they have. */
    json_int_t leaving = (json_int_t)json_array_size(json_object_get(volume, "leavingReplicas"));
    if ((json_int_t)known > (most > rf ? most : rf) + leaving)
        api_problem(report, API_KEY(API_KEY(spec_at, "replicaDetails"), "knownReplicas"),
                    API_TOO_LONG, NULL,
                    "%zu replicas are more than desiredReplicationFactor (%lld)", known,
                    (long long)most);
    check_portal(volume, report);
    check_name(object, report);
    const char *authentication = json_str(volume, "authentication");
    if (authentication && str_eq(authentication, "None"))
        api_warn(report, API_KEY(spec_at, "authentication"),
                 "whoever reaches the volume's portal can read and write it");
}

const struct api_kind api_cstor_volume = {
    .kind = "CStorVolume",
    .plural = "cstorvolumes",
    .singular = "cstorvolume",
    .short_names = API_WORDS("cv"),
    .versions = (const struct api_group_version[]){{"cstor.openebs.io", "v1"},
                                                   {"openebs.io", "v1alpha1"},
                                                   {0}},
    .flags = API_STATUS,
    .notes = notes,
    .fields = fields,
    .columns = columns,
    .normalize = normalize,
    .derive = derive,
    .validate = validate,
    .doc = "A block volume that is kept on several pools and served over iSCSI.",
};
