/*
 * CStorVolume: a replicated block volume, as its iSCSI target sees it.
 */
#include "kinds/cvc.h"
#include "kinds/kinds.h"

enum { REPLICAS_MAX = 32 };

static const struct api_field replica_details[] = {
    {"knownReplicas", API_STRING, API_MAP,
     .doc =
         "The replicas that the target trusts, by replica id; the value identifies the data set."},
    {0},
};

static const struct api_field spec[] = {
    {"capacity", API_QUANTITY, .flags = API_REQUIRED | API_POSITIVE | API_GROW_ONLY,
     .doc = "The size that is wanted. Raise it to grow the volume; it cannot shrink."},
    {"targetIP", API_STRING, .format = &api_ip, .doc = "Address of the target's service."},
    {"targetPort", API_STRING, .format = &api_port, .doc = "Its port, 3260 as a rule."},
    {"targetPortal", API_STRING, .format = &api_portal, .doc = "Address and port together."},
    {"iqn", API_STRING, .flags = API_IMMUTABLE, .format = &api_iqn,
     .doc = "iSCSI name of the target."},
    {"replicationFactor", API_INT, .flags = API_REQUIRED, .min = 1, .max = REPLICAS_MAX,
     .doc = "How many replicas the volume has."},
    {"consistencyFactor", API_INT, .min = 1, .max = REPLICAS_MAX,
     .doc = "How many replicas must have a write before it is acknowledged: more than half of "
            "replicationFactor, which is also what is taken when this is not given."},
    {"desiredReplicationFactor", API_INT, .min = 1, .max = REPLICAS_MAX,
     .doc = "How many replicas are wanted; differs from replicationFactor while scaling."},
    {"replicaDetails", API_OBJECT, .fields = replica_details,
     .doc = "The replicas that belong to the volume."},
    {"policy", API_OBJECT, .fields = api_cstor_policy,
     .doc = "Settings of target and replicas, as a CStorVolumeConfig has them."},
    {"nodeBase", API_STRING, .doc = "Older form: the part of the iqn before the colon."},
    {"status", API_STRING, .doc = "Older form; kept, has no effect."},
    {0},
};

static const struct api_field replica_status[] = {
    {"replicaId", API_STRING, .flags = API_REQUIRED, .doc = "Identity of the replica."},
    {"mode", API_STRING, .doc = "Healthy, Degraded or another state of a replica."},
    {"checkpointedIOSeq", API_STRING, .format = &api_sequence,
     .doc = "Every write up to this number is durable on the replica."},
    {"inflightRead", API_STRING, .format = &api_sequence, .doc = "Reads under way."},
    {"inflightWrite", API_STRING, .format = &api_sequence, .doc = "Writes under way."},
    {"inflightSync", API_STRING, .format = &api_sequence, .doc = "Flushes under way."},
    {"upTime", API_INT, .min = 0, .max = INT64_MAX, .doc = "Seconds since it connected."},
    {"quorum", API_STRING, .words = API_WORDS("0", "1"),
     .doc = "1: what was written to it is there. 0: its data is lost or was never there; it is "
            "rebuilt whole and counts in no quorum until then."},
    {0},
};

static const struct api_field conditions[] = {
    {"type", API_STRING, .flags = API_REQUIRED, .doc = "Resizing."},
    {"status", API_STRING, .flags = API_REQUIRED, .words = API_WORDS("InProgress", "Success"),
     .doc = "How far it is."},
    {"reason", API_STRING, .doc = "One CamelCase word for why the status last changed."},
    {"message", API_STRING, .doc = "The same for people."},
    {"lastProbeTime", API_TIME, .doc = "When it was last looked at."},
    {"lastTransitionTime", API_TIME, .doc = "When the status last changed."},
    {0},
};

static const struct api_field status[] = {
    {"phase", API_STRING,
     .words = API_WORDS("", "Init", "Healthy", "Degraded", "Offline", "Error", "Invalid"),
     .doc = "Healthy: every replica is in sync. Degraded: enough are. Offline: too few are."},
    {"replicaStatuses", API_OBJECT, API_LIST, .fields = replica_status, .merge_key = "replicaId",
     .doc = "The replicas as the target sees them."},
    {"capacity", API_QUANTITY, .doc = "The size that the volume has."},
    {"lastTransitionTime", API_TIME, .doc = "When the phase last changed."},
    {"lastUpdateTime", API_TIME, .doc = "When the status was last confirmed."},
    {"message", API_STRING, .doc = "Why the volume is in this phase."},
    {"conditions", API_OBJECT, API_LIST, .fields = conditions, .merge_key = "type",
     .doc = "What is under way."},
    {"replicaDetails", API_OBJECT, .fields = replica_details,
     .doc = "The trusted replicas that are connected now."},
    {0},
};

static const struct api_field fields[] = {
    API_TYPE_AND_META,
    {"spec", API_OBJECT, .flags = API_REQUIRED, .fields = spec,
     .doc = "The volume that is wanted."},
    {"versionDetails", API_OBJECT, .fields = api_version_details,
     .doc = "Version of the software that looks after the object."},
    {"status", API_OBJECT, .fields = status, .doc = "The volume that is there."},
    {0},
};

static const struct api_column columns[] = {
    {"Capacity", "string", ".status.capacity", "Size that the volume has"},
    {"Status", "string", ".status.phase", "State of the volume"},
    {"Portal", "string", ".spec.targetPortal", "Where its target is", 1},
    {"Age", "date", ".metadata.creationTimestamp", "Time since it was created"},
    {0},
};

static const struct api_path *const spec_at = API_KEY(NULL, "spec");

/* RF/2+1 where nobody said otherwise, and as many replicas as there are. */
static void derive(json_t *object)
{
    json_t *volume = json_object_get(object, "spec");
    const json_t *rf = json_object_get(volume, "replicationFactor");
    if (json_integer_value(rf) < 1 || json_integer_value(rf) > REPLICAS_MAX)
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
    if ((json_int_t)known > (most > rf ? most : rf))
        api_problem(report, API_KEY(API_KEY(spec_at, "replicaDetails"), "knownReplicas"),
                    API_TOO_LONG, NULL,
                    "%zu replicas are more than desiredReplicationFactor (%lld)", known,
                    (long long)most);
    check_portal(volume, report);
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
    .fields = fields,
    .columns = columns,
    .derive = derive,
    .validate = validate,
    .doc = "A block volume that is kept on several pools and served over iSCSI.",
};
