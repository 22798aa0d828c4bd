#include "iscsi/params.h"

#include "base/mem.h"

/*
 * How a key is settled:
 *   MIN MAX    numbers: the smaller or larger of both; the result is the answer
 *   OR AND     Yes and No; the result is the answer
 *   DIGEST     a list in the initiator's order: the first that we have
 *   TOLD       the initiator only says so
 *   FIXED      there is one value that we take, whatever is offered
 */
enum rule { MIN, MAX, OR, AND, DIGEST, TOLD, TOLD_NUMBER, FIXED };

static const struct key {
    const char *name;
    enum rule rule;
    uint32_t ours, least, most;
    int offset; /* in struct iscsi_params; -1: nothing needs to remember it */
    const char *fixed;
} keys[] = {
#define AT(member) (int)offsetof(struct iscsi_params, member)
    {"HeaderDigest", DIGEST, .offset = AT(header_digest)},
    {"DataDigest", DIGEST, .offset = AT(data_digest)},
    {"InitialR2T", OR, .ours = 0, .offset = AT(initial_r2t)},
    {"ImmediateData", AND, .ours = 1, .offset = AT(immediate_data)},
    {"MaxRecvDataSegmentLength", TOLD_NUMBER, .least = 512, .most = (1 << 24) - 1,
     .offset = AT(max_send)},
    {"MaxBurstLength", MIN, ISCSI_MAX_BURST, 512, (1 << 24) - 1, AT(max_burst)},
    {"FirstBurstLength", MIN, ISCSI_FIRST_BURST, 512, (1 << 24) - 1, AT(first_burst)},
    {"MaxOutstandingR2T", MIN, 16, 1, 65535, AT(max_outstanding_r2t)},
    {"MaxConnections", MIN, 1, 1, 65535, -1},
    {"DefaultTime2Wait", MAX, 0, 0, 3600, -1},
    {"DefaultTime2Retain", MIN, 0, 0, 3600, -1},
    {"ErrorRecoveryLevel", MIN, 0, 0, 2, -1},
    {"iSCSIProtocolLevel", MIN, 1, 0, 31, -1},
    {"DataPDUInOrder", OR, .ours = 1, .offset = -1},
    {"DataSequenceInOrder", OR, .ours = 1, .offset = -1},
    {"IFMarker", AND, .ours = 0, .offset = -1},
    {"OFMarker", AND, .ours = 0, .offset = -1},
    {"IFMarkInt", FIXED, .offset = -1, .fixed = "Irrelevant"},
    {"OFMarkInt", FIXED, .offset = -1, .fixed = "Irrelevant"},
    {"TaskReporting", FIXED, .offset = -1, .fixed = "RFC3720"},
    {"InitiatorAlias", TOLD, .offset = -1},
    {"NodeArchitecture", TOLD, .offset = -1},
#undef AT
};

_Static_assert(ARRAY_SIZE(keys) <= 64, "a bit for each key");

void iscsi_params_init(struct iscsi_params *p)
{
    *p = (struct iscsi_params){
        .initial_r2t = true,
        .immediate_data = true,
        .max_recv = ISCSI_MAX_RECV,
        .max_send = 8192,
        .max_burst = 262144,
        .first_burst = 65536,
        .max_outstanding_r2t = 1,
    };
}

static void set_number(struct iscsi_params *p, const struct key *k, uint32_t v)
{
    if (k->offset >= 0)
        memcpy((char *)p + k->offset, &v, sizeof(v));
}

static void set_bool(struct iscsi_params *p, const struct key *k, bool v)
{
    if (k->offset >= 0)
        memcpy((char *)p + k->offset, &v, sizeof(v));
}

static bool settle_number(struct iscsi_params *p, const struct key *k, const char *value,
                          struct str *out)
{
    uint32_t v;
    if (!iscsi_text_number(value, k->least, k->most, &v))
        return false;
    if (k->rule == MIN)
        v = v < k->ours ? v : k->ours;
    else if (k->rule == MAX)
        v = v > k->ours ? v : k->ours;
    set_number(p, k, v);
    if (k->rule != TOLD_NUMBER)
        iscsi_text_add_number(out, k->name, v);
    return true;
}

static bool settle_bool(struct iscsi_params *p, const struct key *k, const char *value,
                        struct str *out)
{
    bool v = str_eq(value, "Yes");
    if (!v && !str_eq(value, "No"))
        return false;
    v = k->rule == OR ? v || k->ours : v && k->ours;
    set_bool(p, k, v);
    iscsi_text_add(out, k->name, v ? "Yes" : "No");
    return true;
}

static bool settle_digest(struct iscsi_params *p, const struct key *k, const char *value,
                          struct str *out)
{
    for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");
        bool crc = n == 6 && strncmp(at, "CRC32C", 6) == 0;
        if (crc || (n == 4 && strncmp(at, "None", 4) == 0)) {
            set_bool(p, k, crc);
            iscsi_text_add(out, k->name, crc ? "CRC32C" : "None");
            return true;
        }
    }
    return false;
}

enum iscsi_key_result iscsi_params_offer(struct iscsi_params *p, uint64_t *seen, const char *key,
                                         const char *value, struct str *out)
{
    size_t i = 0;
    while (i < ARRAY_SIZE(keys) && !str_eq(keys[i].name, key))
        i++;
    if (i == ARRAY_SIZE(keys))
        return ISCSI_KEY_UNKNOWN;
    if (*seen & (uint64_t)1 << i)
        return ISCSI_KEY_TWICE;
    *seen |= (uint64_t)1 << i;
    const struct key *k = &keys[i];
    bool good = true;
    switch (k->rule) {
    case MIN:
    case MAX:
    case TOLD_NUMBER:
        good = settle_number(p, k, value, out);
        break;
    case OR:
    case AND:
        good = settle_bool(p, k, value, out);
        break;
    case DIGEST:
        good = settle_digest(p, k, value, out);
        break;
    case FIXED:
        iscsi_text_add(out, k->name, k->fixed);
        break;
    case TOLD:
        break;
    }
    if (!good)
        iscsi_text_add(out, key, "Reject");
    return ISCSI_KEY_DONE;
}

void iscsi_params_settle(struct iscsi_params *p)
{
    if (p->first_burst > p->max_burst)
        p->first_burst = p->max_burst;
}
