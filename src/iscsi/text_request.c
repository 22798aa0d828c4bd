/*
 * Text requests in full feature phase: SendTargets, and nothing else.
 */
#include "iscsi/impl.h"

static void list_targets(struct iscsi_conn *c, const char *which, struct str *out)
{
    bool all = str_eq(which, "All");
    list_for_each(&c->node->targets, t, struct iscsi_target, link) {
        if (!all && (*which ? strcasecmp(which, t->name) != 0 : t != c->target))
            continue;
        if (out->len + strlen(t->name) + strlen(c->local) + 64 > c->params.max_send)
            return;
        iscsi_text_add(out, "TargetName", t->name);
        str_appendf(out, "TargetAddress=%s,%d", c->local, PORTAL_GROUP);
        str_append_c(out, '\0');
    }
}

void iscsi_text_request(struct iscsi_conn *c)
{
    _cleanup_(str_done) struct str out = {0};
    const char *key, *value;
    size_t at = 0;
    bool bad = false, more = c->header[1] & ISCSI_CONTINUE;
    if (c->text_request.len + c->text.len > ISCSI_TEXT_MAX) {
        iscsi_conn_violated(c, "a text request that is too long");
        return;
    }
    str_append_n(&c->text_request, str_get(&c->text), c->text.len);
    if (!more) {
        size_t n = c->text_request.len;
        str_append_c(&c->text_request, '\0');
        while (iscsi_text_next(c->text_request.p, n, &at, &key, &value, &bad)) {
            if (str_eq(key, "SendTargets") && (c->params.discovery || !str_eq(value, "All")))
                list_targets(c, value, &out);
            else
                iscsi_text_add(&out, key, str_eq(key, "SendTargets") ? "Reject" : "NotUnderstood");
            if (out.len > c->params.max_send)
                bad = true;
            if (bad)
                break;
        }
        str_clear(&c->text_request);
    }
    if (bad || out.len > c->params.max_send) {
        iscsi_conn_violated(c, "a text request that cannot be read");
        return;
    }
    uint8_t *h = iscsi_pdu_begin(c, ISCSI_TEXT_RESPONSE, more ? 0 : ISCSI_FINAL, (uint32_t)out.len);
    memcpy(h + 8, c->header + 8, 8);
    memcpy(h + 16, c->header + 16, 4);
    be_put32(h + 20, more ? 1 : ISCSI_NO_TAG);
    iscsi_pdu_status(c, h, true);
    iscsi_pdu_seal(c, h);
    iscsi_pdu_text(c, str_get(&out), (uint32_t)out.len);
}
