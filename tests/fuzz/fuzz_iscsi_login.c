/*
 * Bytes of an initiator from the first on: login with CHAP, and what follows it. The first byte says
 * how they are cut into pieces and whether the target asks for CHAP.
 */
#include "base/log.h"
#include "fuzz.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct iscsi_auth auth = {"user", "a-secret-of-some", "target",
                                           "another-secret-x"};
    struct wire_target t;
    struct wire w;
    if (size < 1)
        return 0;
    log_set_level(LOG_LEVEL_ERROR);
    wire_target_init(&t, "mem:", data[0] & 0x80 ? &auth : NULL);
    wire_open(&w, &t);
    wire_bytes(&w, data + 1, size - 1, (data[0] & 0x7f) * 8u + 1);
    for (int i = 0; i < 4 && !w.closed; i++) { /* time passes */
        clock_manual_advance(&t.clock, 20 * CLOCK_SECOND);
        iscsi_conn_tick(w.conn);
    }
    CHECK(w.out.bytes < 64u << 20);
    /* Without the secret nobody gets in: inputs cannot know the challenge. */
    CHECK(!(data[0] & 0x80) || iscsi_node_stats(t.node)->logins == 0 || w.closed ||
          iscsi_node_sessions(t.node) <= 1);
    wire_done(&w);
    wire_target_done(&t);
    return 0;
}
