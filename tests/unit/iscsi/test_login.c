#include <gnutls/crypto.h>
#include <stdio.h>

#include "base/log.h"
#include "iscsi/chap.h"
#include "iscsi/params.h"
#include "unit.h"
#include "wire.h"

/* Text. */

static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *pairs; /* "key:value;" of each */
        bool bad;
    } rows[] = {
        {"a=b\0c=d", 7, "a:b;c:d;", false},
        {"a=b\0", 4, "a:b;", false},
        {"a=\0\0\0b==c", 9, "a:;b:=c;", false},
        {"", 0, "", false},
        {"\0\0\0", 3, "", false},
        {"a", 1, "", true},
        {"a=b\0nothing", 11, "a:b;", true},
        {"=b", 2, "", true},
        {"1a=b", 4, "", true},
        {"a b=c", 5, "", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[32] = "";
        memcpy(text, rows[i].text, rows[i].n);
        _cleanup_(str_done) struct str pairs = {0};
        const char *key, *value;
        size_t at = 0;
        bool bad = false;
        while (iscsi_text_next(text, rows[i].n, &at, &key, &value, &bad))
            str_appendf(&pairs, "%s:%s;", key, value);
        assert_string_equal(str_get(&pairs), rows[i].pairs);
        assert_int_equal(bad, rows[i].bad);
    }
    char key[80];
    memset(key, 'k', sizeof(key));
    key[64] = '=';
    size_t at = 0;
    bool bad = false;
    const char *k, *v;
    key[79] = '\0';
    assert_false(iscsi_text_next(key, 79, &at, &k, &v, &bad));
    assert_true(bad); /* 63 letters are the most */
}

static void test_values(void **state)
{
    (void)state;
    uint32_t n;
    uint8_t bytes[8];
    assert_true(iscsi_text_number("512", 512, 600, &n) && n == 512);
    assert_true(iscsi_text_number("0x200", 512, 600, &n) && n == 512);
    assert_false(iscsi_text_number("511", 512, 600, &n));
    assert_false(iscsi_text_number("601", 512, 600, &n));
    assert_false(iscsi_text_number("", 0, 600, &n));
    assert_false(iscsi_text_number("-1", 0, 600, &n));
    assert_false(iscsi_text_number("5x", 0, 600, &n));
    assert_false(iscsi_text_number("99999999999999999999", 0, 600, &n));
    assert_int_equal(iscsi_text_binary("0x0102ff", bytes, 8), 3);
    assert_memory_equal(bytes, "\x01\x02\xff", 3);
    assert_int_equal(iscsi_text_binary("0x102", bytes, 8), 2); /* an odd number of digits */
    assert_memory_equal(bytes, "\x01\x02", 2);
    assert_int_equal(iscsi_text_binary("0bQUJD", bytes, 8), 3);
    assert_memory_equal(bytes, "ABC", 3);
    assert_int_equal(iscsi_text_binary("0x010203040506070809", bytes, 8), 0);
    assert_int_equal(iscsi_text_binary("0xzz", bytes, 8), 0);
    assert_int_equal(iscsi_text_binary("AB", bytes, 8), 0);
    assert_true(iscsi_text_has("CHAP,None", "None"));
    assert_false(iscsi_text_has("CHAP,Nonesuch", "None"));
    assert_true(iscsi_name_valid("iqn.2026-01.io.orlop:v"));
    assert_true(iscsi_name_valid("eui.0123456789abcdef"));
    assert_false(iscsi_name_valid("iqn"));
    assert_false(iscsi_name_valid("volume"));
    assert_false(iscsi_name_valid("iqn.2026-01.a b"));
}

/* Negotiation. */

static void test_params(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *answer; /* NULL: none */
    } rows[] = {
        {"HeaderDigest", "None,CRC32C", "HeaderDigest=None"},
        {"HeaderDigest", "CRC32C,None", "HeaderDigest=CRC32C"},
        {"HeaderDigest", "MD5", "HeaderDigest=Reject"},
        {"DataDigest", "X-a,CRC32C", "DataDigest=CRC32C"},
        {"InitialR2T", "No", "InitialR2T=No"},
        {"InitialR2T", "Yes", "InitialR2T=Yes"},
        {"InitialR2T", "perhaps", "InitialR2T=Reject"},
        {"ImmediateData", "Yes", "ImmediateData=Yes"},
        {"ImmediateData", "No", "ImmediateData=No"},
        {"MaxBurstLength", "16776192", "MaxBurstLength=1048576"},
        {"MaxBurstLength", "512", "MaxBurstLength=512"},
        {"MaxBurstLength", "511", "MaxBurstLength=Reject"},
        {"FirstBurstLength", "262144", "FirstBurstLength=262144"},
        {"FirstBurstLength", "16777216", "FirstBurstLength=Reject"},
        {"MaxRecvDataSegmentLength", "65536", NULL},
        {"MaxRecvDataSegmentLength", "10", "MaxRecvDataSegmentLength=Reject"},
        {"MaxConnections", "8", "MaxConnections=1"},
        {"MaxOutstandingR2T", "1", "MaxOutstandingR2T=1"},
        {"MaxOutstandingR2T", "65535", "MaxOutstandingR2T=16"},
        {"DefaultTime2Wait", "2", "DefaultTime2Wait=2"},
        {"DefaultTime2Retain", "20", "DefaultTime2Retain=0"},
        {"ErrorRecoveryLevel", "2", "ErrorRecoveryLevel=0"},
        {"DataPDUInOrder", "No", "DataPDUInOrder=Yes"},
        {"DataSequenceInOrder", "No", "DataSequenceInOrder=Yes"},
        {"IFMarker", "Yes", "IFMarker=No"},
        {"OFMarkInt", "2048~65535", "OFMarkInt=Irrelevant"},
        {"TaskReporting", "FastAbort,RFC3720", "TaskReporting=RFC3720"},
        {"iSCSIProtocolLevel", "2", "iSCSIProtocolLevel=1"},
        {"InitiatorAlias", "somebody", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct iscsi_params p;
        uint64_t seen = 0;
        _cleanup_(str_done) struct str out = {0};
        iscsi_params_init(&p);
        assert_int_equal(iscsi_params_offer(&p, &seen, rows[i].key, rows[i].value, &out),
                         ISCSI_KEY_DONE);
        assert_string_equal(str_get(&out), rows[i].answer ? rows[i].answer : "");
        assert_int_equal(iscsi_params_offer(&p, &seen, rows[i].key, rows[i].value, &out),
                         ISCSI_KEY_TWICE);
    }
    struct iscsi_params p;
    uint64_t seen = 0;
    _cleanup_(str_done) struct str out = {0};
    iscsi_params_init(&p);
    assert_int_equal(iscsi_params_offer(&p, &seen, "X-other", "1", &out), ISCSI_KEY_UNKNOWN);
    iscsi_params_offer(&p, &seen, "MaxBurstLength", "1024", &out);
    iscsi_params_offer(&p, &seen, "FirstBurstLength", "4096", &out);
    iscsi_params_offer(&p, &seen, "MaxRecvDataSegmentLength", "65536", &out);
    iscsi_params_settle(&p);
    assert_int_equal(p.first_burst, 1024); /* never more than MaxBurstLength */
    assert_int_equal(p.max_send, 65536);
}

/* Whole logins: requests and the status of the last answer. */

struct step {
    uint8_t flags;
    const char *text;
};

static const struct login {
    const char *name;
    struct step steps[4];
    unsigned status; /* class and detail of the last answer */
    uint8_t flags;   /* of it */
    const char *has; /* in its text; or NULL */
    bool chap;       /* the target asks for it */
} logins[] = {
    {"in one step", {{0x87, WIRE_WHO "|SessionType=Normal"}}, 0, 0x87, "TargetPortalGroupTag=1"},
    {"our segment length", {{0x87, WIRE_WHO}}, 0, 0x87, "MaxRecvDataSegmentLength=262144"},
    {"in two stages",
     {{0x81, WIRE_WHO "|AuthMethod=CHAP,None"}, {0x87, "InitialR2T=No"}},
     0,
     0x87,
     "InitialR2T=No"},
    {"from security to full feature",
     {{0x83, WIRE_WHO "|AuthMethod=None"}},
     0,
     0x83,
     "AuthMethod=None"},
    {"without hurry", {{0x04, WIRE_WHO}, {0x04, "InitialR2T=No"}, {0x87, ""}}, 0, 0x87, NULL},
    {"in several PDUs",
     {{0x44, "InitiatorName=iqn.2026-01.test:i"}, {0x87, WIRE_WHO}},
     0,
     0x87,
     NULL},
    {"discovery",
     {{0x87, "InitiatorName=iqn.2026-01.test:i|SessionType=Discovery"}},
     0,
     0x87,
     NULL},
    {"a key that is not known", {{0x87, WIRE_WHO "|X-com.x=1"}}, 0, 0x87, "X-com.x=NotUnderstood"},
    {"no name", {{0x87, "TargetName=iqn.2026-01.io.orlop:v"}}, 0x0207, 0, NULL},
    {"a bad name", {{0x87, "InitiatorName=me|TargetName=iqn.2026-01.io.orlop:v"}}, 0x0207, 0, NULL},
    {"no target", {{0x87, "InitiatorName=iqn.2026-01.test:i"}}, 0x0207, 0, NULL},
    {"another target",
     {{0x87, "InitiatorName=iqn.2026-01.test:i|TargetName=iqn.2026-01.io.orlop:w"}},
     0x0203,
     0,
     NULL},
    {"no text", {{0x87, WIRE_WHO "|nonsense"}}, 0x0200, 0, NULL},
    {"a key twice", {{0x87, WIRE_WHO "|InitialR2T=No|InitialR2T=No"}}, 0x0200, 0, NULL},
    {"back a stage", {{0x81, WIRE_WHO "|AuthMethod=None"}, {0x81, ""}}, 0x020b, 0, NULL},
    {"a stage that is none", {{0x8a, WIRE_WHO}}, 0x020b, 0, NULL},
    {"to the same stage", {{0x85, WIRE_WHO}}, 0x0200, 0, NULL},
    {"CHAP is needed", {{0x87, WIRE_WHO}}, 0x0201, 0, NULL, true},
    {"CHAP is not offered", {{0x81, WIRE_WHO "|AuthMethod=None"}}, 0x0201, 0, NULL, true},
    {"CHAP, wrong",
     {{0x00, WIRE_WHO "|AuthMethod=CHAP"},
      {0x00, "CHAP_A=5"},
      {0x81, "CHAP_N=user|CHAP_R=0x00112233445566778899aabbccddeeff"}},
     0x0201,
     0,
     NULL,
     true},
    {"CHAP, no algorithm",
     {{0x00, WIRE_WHO "|AuthMethod=CHAP"}, {0x00, "CHAP_A=6,8"}},
     0x0201,
     0,
     NULL,
     true},
    {"CHAP, skipped", {{0x00, WIRE_WHO "|AuthMethod=CHAP"}, {0x87, ""}}, 0x020b, 0, NULL, true},
    {"CHAP, ignored", {{0x81, WIRE_WHO "|AuthMethod=CHAP"}, {0x83, ""}}, 0, 0, NULL, true},
    {"discovery needs CHAP too",
     {{0x87, "InitiatorName=iqn.2026-01.test:i|SessionType=Discovery"}},
     0x0201,
     0,
     NULL,
     true},
};

static const struct iscsi_auth auth = {"user", "secret-of-user", "target", "secret-of-target"};

static bool has_text(const struct str *data, const char *text)
{
    return memmem(str_get(data), data->len, text, strlen(text)) != NULL;
}

static void test_logins(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(logins); i++) {
        const struct login *l = &logins[i];
        struct wire_target t;
        struct wire w;
        uint8_t h[ISCSI_HEADER];
        wire_target_init(&t, "mem:", l->chap ? &auth : NULL);
        wire_open(&w, &t);
        for (size_t s = 0; s < ARRAY_SIZE(l->steps) && l->steps[s].text; s++) {
            wire_login(&w, l->steps[s].flags, l->steps[s].text);
            if (!wire_take(&w, h))
                fail_msg("%s: no answer to step %zu", l->name, s);
            assert_int_equal(iscsi_opcode(h), ISCSI_LOGIN_RESPONSE);
            assert_int_equal(iscsi_itt(h), 7);
        }
        if (be_get16(h + 36) != l->status || h[1] != l->flags)
            fail_msg("%s: status %04x, flags %02x", l->name, be_get16(h + 36), h[1]);
        assert_int_equal(w.closed, l->status != 0);
        if (l->has && !has_text(&w.data, l->has))
            fail_msg("%s: no %s", l->name, l->has);
        bool in = l->status == 0 && (l->flags & 0x83) == 0x83;
        assert_int_equal(iscsi_node_sessions(t.node), in);
        wire_done(&w);
        assert_int_equal(iscsi_node_sessions(t.node), 0);
        wire_target_done(&t);
    }
}

/* CHAP, with answers that are worked out here. */

static void chap_answer(gnutls_digest_algorithm_t digest, uint8_t id, const char *secret,
                        const uint8_t *challenge, size_t n, uint8_t *out)
{
    gnutls_hash_hd_t hash;
    assert_int_equal(gnutls_hash_init(&hash, digest), 0);
    gnutls_hash(hash, &id, 1);
    gnutls_hash(hash, secret, strlen(secret));
    gnutls_hash(hash, challenge, n);
    gnutls_hash_deinit(hash, out);
}

/* One exchange; what: 0 right, 1 wrong secret, 2 wrong name, 3 the target's own challenge back. */
static void chap(const char *offer, unsigned algorithm, bool mutual, int what)
{
    gnutls_digest_algorithm_t digest = algorithm == 7 ? GNUTLS_DIG_SHA256 : GNUTLS_DIG_MD5;
    size_t size = algorithm == 7 ? 32 : 16;
    struct wire_target t;
    struct wire w;
    uint8_t h[ISCSI_HEADER], challenge[64], answer[32];
    _cleanup_(str_done) struct str text = {0};
    wire_target_init(&t, "mem:", &auth);
    wire_open(&w, &t);
    wire_login(&w, 0x00, WIRE_WHO "|AuthMethod=CHAP,None");
    assert_true(wire_take(&w, h) && has_text(&w.data, "AuthMethod=CHAP"));
    wire_login(&w, 0x00, offer);
    assert_true(wire_take(&w, h));
    char expected[16];
    snprintf(expected, sizeof(expected), "CHAP_A=%u", algorithm);
    assert_true(has_text(&w.data, expected));
    const char *id_text = memmem(w.data.p, w.data.len, "CHAP_I=", 7),
               *challenge_text = memmem(w.data.p, w.data.len, "CHAP_C=", 7);
    unsigned id = (unsigned)atoi(id_text + 7);
    size_t n = iscsi_text_binary(challenge_text + 7, challenge, sizeof(challenge));
    assert_int_equal(n, 32);
    chap_answer(digest, (uint8_t)id, what == 1 ? "another-secret" : auth.secret, challenge, n,
                answer);
    str_appendf(&text, "CHAP_N=%s|", what == 2 ? "nobody" : "user");
    iscsi_text_add_binary(&text, "CHAP_R", answer, size);
    text.p[--text.len] = '\0';
    if (mutual) {
        str_append(&text, "|CHAP_I=9|");
        if (what != 3)
            memset(challenge, 'c', sizeof(challenge));
        iscsi_text_add_binary(&text, "CHAP_C", challenge, what == 3 ? 32 : 20);
        text.p[--text.len] = '\0';
    }
    wire_login(&w, 0x83, text.p);
    assert_true(wire_take(&w, h));
    assert_int_equal(be_get16(h + 36), what ? 0x0201 : 0);
    assert_int_equal(iscsi_node_sessions(t.node), what == 0);
    if (mutual && !what) {
        uint8_t theirs[32];
        chap_answer(digest, 9, auth.target_secret, challenge, 20, answer);
        const char *proof = memmem(w.data.p, w.data.len, "CHAP_R=", 7);
        assert_int_equal(iscsi_text_binary(proof + 7, theirs, sizeof(theirs)), size);
        assert_memory_equal(theirs, answer, size);
        assert_true(has_text(&w.data, "CHAP_N=target"));
    }
    wire_done(&w);
    wire_target_done(&t);
}

static void test_chap(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        chap("CHAP_A=5", 5, false, what);
        chap("CHAP_A=5,7", 7, false, what); /* the stronger one */
        chap("CHAP_A=5", 5, true, what);
        chap("CHAP_A=7", 7, true, what);
    }
    chap("CHAP_A=5", 5, true, 3);
}

static void test_secrets(void **state)
{
    (void)state;
    static const struct {
        struct iscsi_auth auth;
        const char *message;
    } rows[] = {
        {{"u", "short", NULL, NULL}, "a CHAP secret has 12 to 255 characters"},
        {{"u", NULL, NULL, NULL}, "CHAP needs a user and a secret"},
        {{NULL, NULL, "t", "secret-of-target"}, "mutual CHAP needs CHAP of the initiator too"},
        {{"u", "the-same-secret", "t", "the-same-secret"},
         "the secrets of both directions must differ"},
    };
    struct wire_target t;
    wire_target_init(&t, "mem:", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        const struct iscsi_target_config c = {
            .name = "iqn.2026-01.io.orlop:x", .unit = t.unit, .auth = rows[i].auth};
        assert_null(iscsi_target_new(t.node, &c, &e));
        assert_string_equal(e.msg, rows[i].message);
    }
    wire_target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_params), cmocka_unit_test(test_logins),
        cmocka_unit_test(test_chap),   cmocka_unit_test(test_secrets),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
