/*
 * A piece of a rebuild, or of what a scrub mends, on its way from the source to the replica:
 *
 *     BEGIN ─┬─> SUMS of both ─> READ from the source ─> DATA ─> next run that differs ... ───┬─> READ of its last sector: kept
 *            └─> READ: all of it, if the replica has only zeros there ─> DATA of what is not ─┘
 *
 * BEGIN goes out long before sums or data are asked for: data waits for its stamp on the replica's disk, and many stamps share
 * a sync. Sums of both are asked for at one point of the order. A piece is over when the replica has written it, so no more
 * than REPL_FLYING wait in memory for a slow one. Pieces have their places in turn, and are asked for in the same order.
 */
#include "repl/frame.h"
#include "repl/target_impl.h"

void piece_begin(struct repl_target *t, int link, uint64_t stamp, bool zeros)
{
    struct job *j = &t->peer[link].job;
    uint16_t n = (uint16_t)(j->begins++ % REPL_PIECES);
    struct piece *c = &t->pieces[link][n];
    c->offset = j->piece;
    c->length = j->piece_length;
    c->have_source = c->have_own = c->own_failed = false;
    c->zeros = zeros;
    c->from = 0;
    c->at = c->zeros ? c->length : 0;
    c->state = PIECE_BEGUN;
    struct repl_msg m = {
        .type = REPL_BEGIN, .flags = n, .seq = stamp, .offset = c->offset, .count = c->length};
    target_send(t, link, &m, NULL, 0, NULL);
    j->begun = true;
}

void piece_ask(struct repl_target *t, int link)
{
    struct job *j = &t->peer[link].job;
    struct piece *c = &t->pieces[link][j->asks++ % REPL_PIECES];
    c->tag = rebuild_tag(t);
    c->state = c->zeros ? PIECE_READ : PIECE_SUMS;
    if (!c->zeros)
        rebuild_ask(t, link, REPL_SUMS, c->tag, c->offset, c->length);
    rebuild_ask_source(t, j, c->zeros ? REPL_READ : REPL_SUMS, c->tag, c->offset, c->length);
    t->rate_tokens -= (int64_t)c->length;
    j->bytes += c->length;
    j->flying++;
}

/* Asked of the replica after all data of the piece: the answer says that it is written. */
static void await_kept(struct repl_target *t, int link, struct piece *c)
{
    c->state = PIECE_KEPT;
    c->tag = rebuild_tag(t);
    rebuild_ask(t, link, REPL_READ, c->tag, c->offset + c->length - REPL_SECTOR, REPL_SECTOR);
}

static void end_piece(struct job *j, struct piece *c)
{
    c->state = PIECE_NONE;
    j->flying--;
    if (j->repair) /* it was the only one */
        j->state = JOB_NONE;
}

/* The next run of blocks that differ is read; false: there is none. */
static bool next_run(struct repl_target *t, const struct job *j, struct piece *c)
{
    uint64_t block = (uint64_t)1 << t->view.block_shift, from = c->at, to;
    while (from < c->length && !c->differ[from / block])
        from += block;
    if (from >= c->length)
        return false;
    for (to = from + block; to < c->length && c->differ[to / block];)
        to += block;
    to = to < c->length ? to : c->length;
    c->from = from;
    c->at = to;
    c->state = PIECE_READ;
    c->tag = rebuild_tag(t);
    rebuild_ask_source(t, j, REPL_READ, c->tag, c->offset + from, to - from);
    return true;
}

static void send_data(struct repl_target *t, int link, const struct piece *c,
                      const struct repl_msg *m, const uint8_t *payload, uint64_t from, uint64_t to,
                      struct repl_buf *owner)
{
    struct job *j = &t->peer[link].job;
    struct iovec iov = {(void *)(uintptr_t)(payload + from), to - from};
    struct repl_msg data = {.type = REPL_DATA,
                            .flags = (uint16_t)(c - t->pieces[link]),
                            .offset = m->offset + from,
                            .count = to - from,
                            .length = (uint32_t)(to - from)};
    data.data_crc = data.length == m->length ? m->data_crc : repl_iov_crc(&iov, 1);
    target_send(t, link, &data, &iov, 1, owner);
    j->copied += to - from;
}

static bool all_zero(const uint8_t *p, uint64_t n)
{
    return !p[0] && memcmp(p, p + 1, n - 1) == 0;
}

/* A replica that has zeros gets what is not: holes stay holes. */
static void send_blocks(struct repl_target *t, int link, const struct piece *c,
                        const struct repl_msg *m, const uint8_t *payload, struct repl_buf *owner)
{
    uint64_t block = (uint64_t)1 << t->view.block_shift, from = 0;
    for (uint64_t at = 0; at < m->length; at += block) {
        uint64_t n = m->length - at < block ? m->length - at : block;
        if (!all_zero(payload + at, n))
            continue;
        if (from < at)
            send_data(t, link, c, m, payload, from, at, owner);
        from = at + n;
    }
    if (from < m->length)
        send_data(t, link, c, m, payload, from, m->length, owner);
}

static void take_data(struct repl_target *t, int link, struct piece *c, const struct repl_msg *m,
                      const void *payload, struct repl_buf *owner)
{
    struct job *j = &t->peer[link].job;
    bool asked = m->offset == c->offset + c->from && m->length == c->at - c->from;
    if (m->flags & REPL_FAILED || !asked) {
        rebuild_source_failed(t, link);
        return;
    }
    if (c->zeros)
        send_blocks(t, link, c, m, payload, owner);
    else
        send_data(t, link, c, m, payload, 0, m->length, owner);
    if (!next_run(t, j, c))
        await_kept(t, link, c);
}

static void take_sums(struct repl_target *t, int link, struct piece *c, bool own,
                      const struct repl_msg *m, const void *payload)
{
    struct job *j = &t->peer[link].job;
    uint64_t block = (uint64_t)1 << t->view.block_shift;
    uint64_t n = (c->length + block - 1) / block;
    bool failed = m->flags & REPL_FAILED || m->length != n * 8;
    if (failed && !own) {
        rebuild_source_failed(t, link);
        return;
    }
    if (own)
        c->own_failed = failed;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        if (!failed)
            memcpy(&sum, (const uint8_t *)payload + i * 8, 8);
        c->differ[i] = c->own_failed || sum != c->sums[i]; /* what cannot be read differs */
        c->sums[i] = sum;
    }
    *(own ? &c->have_own : &c->have_source) = true;
    if (!c->have_own || !c->have_source)
        return;
    if (!next_run(t, j, c))
        end_piece(j, c);
}

void piece_answer(struct repl_target *t, int link, struct piece *c, bool own,
                  const struct repl_msg *m, const void *payload, struct repl_buf *owner)
{
    if (c->state == PIECE_SUMS && m->type == REPL_SUMS_OK)
        take_sums(t, link, c, own, m, payload);
    else if (c->state == PIECE_READ && m->type == REPL_READ_OK && !own)
        take_data(t, link, c, m, payload, owner);
    else if (c->state == PIECE_KEPT && m->type == REPL_READ_OK && own)
        end_piece(&t->peer[link].job, c);
}
