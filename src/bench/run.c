/*
 * The load: a fixed number of I/Os on each session, each followed by the next as it is done, on one
 * thread.
 *
 * With verification no two I/Os of a run touch the same block at a time (`busy`), so what a read must
 * see is known exactly. What a flush makes durable is what was acknowledged before it was sent: those
 * writes are on the list of its session's slot until it succeeds.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "bench/bench.h"

struct acknowledged {
    uint64_t block;
    uint32_t version;
};
typedef VEC(struct acknowledged) acknowledged_list;

struct slot {
    struct bench_io io;
    struct run *run;
    struct seat *seat;
    uint64_t block;
    uint32_t version;
    int64_t since;
    acknowledged_list flushes; /* what a flush makes durable */
};

/* A session and what it does. */
struct seat {
    struct bench_session *session;
    struct slot *slots;
    uint64_t next, end; /* blocks, of a sequential pattern */
    uint64_t begin;
    unsigned busy, writes; /* under way; since the last flush */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signum)
{
    (void)signum;
    interrupted = 1;
}

struct run {
    const struct bench_options *o;
    struct bench_result *r;
    struct seat *seats;
    struct pollfd *polls;
    struct bench_map map;
    uint8_t *busy; /* blocks that an I/O is under way to */
    uint64_t blocks, issued, random;
    int64_t started, measured_from, until;
    bool stopping;
    acknowledged_list unflushed;
    int64_t shown;
    uint64_t shown_count;
};

static int64_t now(void)
{
    return clock_mono_ns(clock_system());
}

static uint64_t random_next(struct run *u)
{
    uint64_t x = u->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return u->random = x;
}

/* ---- what is done ---- */

static void check(struct run *u, struct slot *s)
{
    const struct bench_versions *v = &u->map.versions[s->block];
    bool flushed = u->o->work == BENCH_CHECK && u->o->expect_flushed;
    enum bench_finding f = bench_map_check(&u->map, s->block, s->io.data,
                                           flushed ? v->flushed : v->acknowledged, v->submitted);
    u->r->checked++;
    u->r->findings[f]++;
    if (f != BENCH_FINE && !u->r->first_finding[0])
        snprintf(
            u->r->first_finding, sizeof(u->r->first_finding),
            "block %llu is %s: it was written %u times, acknowledged up to %u, flushed up to %u",
            (unsigned long long)s->block, bench_finding_names[f], v->submitted, v->acknowledged,
            v->flushed);
}

static void acknowledge(struct run *u, struct slot *s)
{
    struct bench_versions *v = &u->map.versions[s->block];
    v->acknowledged = s->version;
    if (u->o->fua)
        v->flushed = s->version;
    else
        vec_push(&u->unflushed, (struct acknowledged){s->block, s->version});
}

static void flushed(struct run *u, struct slot *s, bool succeeded)
{
    vec_for_each(&s->flushes, it) {
        struct bench_versions *v = &u->map.versions[it->block];
        if (!succeeded)
            vec_push(&u->unflushed, *it);
        else if (v->flushed < it->version)
            v->flushed = it->version;
    }
    s->flushes.len = 0;
}

static bool issue(struct run *u, struct slot *s);

static void io_done(struct bench_io *io, const char *error)
{
    struct slot *s = container_of(io, struct slot, io);
    struct run *u = s->run;
    int64_t t = now();
    s->seat->busy--;
    if (error && !u->stopping) {
        if (!u->r->errors++)
            snprintf(u->r->first_error, sizeof(u->r->first_error), "%s", error);
        u->stopping |= !u->o->keep_going;
    } else if (error) {
        u->r->unfinished++;
    } else if (s->since >= u->measured_from && t <= u->until) {
        bench_histogram_add(&u->r->latency[io->op], (uint64_t)(t - s->since));
    }
    if (u->o->verify) {
        if (io->op == BENCH_FLUSH)
            flushed(u, s, !error);
        else
            u->busy[s->block] = 0;
        if (!error && io->op == BENCH_READ)
            check(u, s);
        if (!error && io->op == BENCH_WRITE)
            acknowledge(u, s);
    }
    if (!u->stopping)
        issue(u, s);
}

/* ---- what is next ---- */

static bool next_block(struct run *u, struct seat *a, uint64_t *ret)
{
    bool once = u->o->work != BENCH_MIX;
    for (unsigned tries = 0; tries < 10000; tries++) {
        if (once || u->o->pattern == BENCH_SEQUENTIAL) {
            if (a->next == a->end && once)
                return false;
            if (a->next == a->end)
                a->next = a->begin;
            *ret = a->next++;
        } else {
            *ret = random_next(u) % u->blocks;
        }
        if (u->o->work == BENCH_CHECK && !u->map.versions[*ret].submitted) {
            tries = 0; /* there is an end to them */
            continue;
        }
        if (!u->o->verify || !u->busy[*ret])
            return true;
    }
    return false; /* more I/Os than blocks */
}

static enum bench_op next_op(struct run *u)
{
    if (u->o->work != BENCH_MIX)
        return u->o->work == BENCH_FILL ? BENCH_WRITE : BENCH_READ;
    return random_next(u) % 100 < u->o->read_percent ? BENCH_READ : BENCH_WRITE;
}

static void prepare_flush(struct run *u, struct slot *s)
{
    s->seat->writes = 0;
    if (!u->o->verify)
        return;
    acknowledged_list empty = s->flushes;
    s->flushes = u->unflushed;
    u->unflushed = empty;
    u->unflushed.len = 0;
}

static void prepare_write(struct run *u, struct slot *s)
{
    s->seat->writes++;
    if (!u->o->verify)
        return;
    s->version = ++u->map.versions[s->block].submitted;
    bench_map_stamp(&u->map, s->block, s->version, s->io.data);
}

/* False: there is nothing left to do for this slot. */
static bool issue(struct run *u, struct slot *s)
{
    struct err e;
    bool flush = u->o->flush_every && s->seat->writes >= u->o->flush_every;
    if ((u->o->count && u->issued >= u->o->count) || u->stopping)
        return false;
    if (flush) {
        s->io.op = BENCH_FLUSH;
        prepare_flush(u, s);
    } else {
        if (!next_block(u, s->seat, &s->block))
            return false;
        s->io.op = next_op(u);
        s->io.offset = s->block * u->o->block_size;
        if (u->o->verify)
            u->busy[s->block] = 1;
        if (s->io.op == BENCH_WRITE)
            prepare_write(u, s);
        u->issued++;
    }
    s->since = now();
    if (bench_session_submit(s->seat->session, &s->io, &e) < 0) {
        u->r->errors++;
        snprintf(u->r->first_error, sizeof(u->r->first_error), "%.250s", e.msg);
        u->stopping = true;
        return false;
    }
    s->seat->busy++;
    return true;
}

/* ---- the loop ---- */

static void show(struct run *u, int64_t t)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < BENCH_OPS; i++)
        count += u->r->latency[i].count;
    double seconds = (double)(t - u->shown) / 1e9;
    fprintf(stderr, "\r%6.1f s  %9.0f IOPS  %8.1f MB/s  %llu errors \033[K",
            (double)(t - u->started) / 1e9, (double)(count - u->shown_count) / seconds,
            (double)(count - u->shown_count) * u->o->block_size / seconds / 1e6,
            (unsigned long long)u->r->errors);
    fflush(stderr);
    u->shown = t;
    u->shown_count = count;
}

static unsigned busy(const struct run *u)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < u->o->sessions; i++)
        sum += u->seats[i].busy;
    return sum;
}

/* A last flush, so that the map says what is on stable storage. */
static void last_flush(struct run *u)
{
    struct slot *s = &u->seats[0].slots[0];
    struct err e;
    if (!u->o->flush_every || u->r->errors || u->unflushed.len == 0)
        return;
    s->io.op = BENCH_FLUSH;
    prepare_flush(u, s);
    s->since = INT64_MIN;
    if (bench_session_submit(s->seat->session, &s->io, &e) == 0)
        s->seat->busy++;
}

static int turn(struct run *u, struct err *e)
{
    for (unsigned i = 0; i < u->o->sessions; i++) {
        struct bench_session *s = u->seats[i].session;
        short events = bench_session_events(s);
        /* Who waits to connect anew wants nothing: its old connection would be ready for ever. */
        u->polls[i] = (struct pollfd){.fd = events ? bench_session_fd(s) : -1, .events = events};
    }
    if (poll(u->polls, u->o->sessions, 100) < 0 && errno != EINTR)
        return err_errno(e, errno, "poll");
    for (unsigned i = 0; i < u->o->sessions; i++) {
        struct bench_session *s = u->seats[i].session;
        if (bench_session_service(s, u->polls[i].revents, e) < 0)
            return -1;
        /* What was issued meanwhile leaves now. */
        if (bench_session_events(s) & POLLOUT && bench_session_service(s, POLLOUT, e) < 0)
            return -1;
    }
    return 0;
}

static void go(struct run *u)
{
    enum { DRAIN = 10 };
    struct err e;
    int64_t deadline = INT64_MAX;
    bool flushing = false;
    for (unsigned i = 0; i < u->o->sessions; i++) {
        for (unsigned q = 0; q < u->o->depth && issue(u, &u->seats[i].slots[q]); q++)
            ;
    }
    while (busy(u)) {
        if (turn(u, &e) < 0) {
            u->r->errors++;
            snprintf(u->r->first_error, sizeof(u->r->first_error), "%.250s", e.msg);
            break;
        }
        int64_t t = now();
        if (interrupted && t < u->until)
            u->until = t; /* as if the time had been over: what there is is shown and kept */
        u->stopping |= t >= u->until;
        if (u->stopping && deadline == INT64_MAX)
            deadline = t + DRAIN * CLOCK_SECOND;
        if (t > deadline)
            break;
        if (u->o->progress && t - u->shown > CLOCK_SECOND / 4)
            show(u, t);
        if (!busy(u) && !flushing) {
            flushing = true;
            last_flush(u);
        }
    }
    u->r->unfinished += busy(u);
    u->stopping = true;
    if (u->o->progress)
        fprintf(stderr, "\r\033[K");
}

/* ---- before and after ---- */

static int connect_all(struct run *u, struct err *e)
{
    const struct bench_options *o = u->o;
    for (unsigned i = 0; i < o->sessions; i++) {
        struct bench_session_options so = {o->url, o->initiator, i, o->header_digest,
                                           o->reconnect_ns};
        u->seats[i].session = bench_session_new(&so, &u->r->size, &u->r->device_block, e);
        if (!u->seats[i].session)
            return -1;
    }
    uint64_t span = o->span ? o->span : u->r->size;
    if (span > u->r->size || o->block_size % u->r->device_block || span < o->block_size)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidRange",
                       "the volume has %llu bytes in blocks of %u: blocks of %u in a span of %llu "
                       "do not fit",
                       (unsigned long long)u->r->size, u->r->device_block, o->block_size,
                       (unsigned long long)span);
    u->blocks = span / o->block_size;
    return 0;
}

static int prepare_map(struct run *u, struct err *e)
{
    const struct bench_options *o = u->o;
    if (!o->verify)
        return 0;
    if (!o->load_map) {
        bench_map_init(&u->map, u->blocks, o->block_size, o->seed);
    } else if (bench_map_load(&u->map, o->load_map, e) < 0) {
        return -1;
    } else if (u->map.blocks != u->blocks || u->map.block_size != o->block_size) {
        return err_set(
            e, ERR_INVALID_ARGUMENT, "InvalidMap",
            "%s is of %llu blocks of %u bytes, not of %llu of %u; give the same span and "
            "block size",
            o->load_map, (unsigned long long)u->map.blocks, u->map.block_size,
            (unsigned long long)u->blocks, o->block_size);
    }
    u->busy = mem_zalloc(u->blocks);
    return 0;
}

static void prepare_slots(struct run *u)
{
    const struct bench_options *o = u->o;
    for (unsigned i = 0; i < o->sessions; i++) {
        struct seat *a = &u->seats[i];
        a->begin = a->next = u->blocks * i / o->sessions;
        a->end = u->blocks * (i + 1) / o->sessions;
        a->slots = mem_zalloc(o->depth * sizeof(struct slot));
        for (unsigned q = 0; q < o->depth; q++) {
            struct slot *s = &a->slots[q];
            s->run = u;
            s->seat = a;
            s->io.fua = o->fua;
            s->io.length = o->block_size;
            s->io.done = io_done;
            s->io.data = aligned_alloc(4096, (o->block_size + 4095) & ~4095U);
            for (uint32_t w = 0; w < o->block_size; w += 8) {
                uint64_t word = random_next(u);
                memcpy(s->io.data + w, &word, 8);
            }
        }
    }
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void end(struct run *u)
{
    for (unsigned i = 0; i < u->o->sessions; i++) {
        struct seat *a = &u->seats[i];
        if (a->session)
            u->r->reconnects += bench_session_reconnects(a->session);
        bench_session_free(a->session);
        for (unsigned q = 0; a->slots && q < u->o->depth; q++) {
            free(a->slots[q].io.data);
            vec_done(&a->slots[q].flushes);
        }
        free(a->slots);
    }
    vec_done(&u->unflushed);
    bench_map_done(&u->map);
    free(u->busy);
    free(u->seats);
    free(u->polls);
}

int bench_run(const struct bench_options *o, struct bench_result *r, struct err *e)
{
    _cleanup_(end) struct run u = {
        .o = o,
        .r = r,
        .seats = mem_zalloc(o->sessions * sizeof(struct seat)),
        .polls = mem_zalloc(o->sessions * sizeof(struct pollfd)),
        .random = (o->seed + 1) * 0x9e3779b97f4a7c15 | 1,
    };
    memset(r, 0, sizeof(*r));
    if (bench_session_check_url(o->url, r->url, sizeof(r->url), e) < 0 || connect_all(&u, e) < 0 ||
        prepare_map(&u, e) < 0)
        return -1;
    prepare_slots(&u);
    double cpu = cpu_seconds();
    u.started = u.shown = now();
    u.measured_from = u.started + o->warm_up_ns;
    const struct sigaction once = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &once, NULL);
    u.until = o->time_ns ? u.measured_from + o->time_ns : INT64_MAX;
    go(&u);
    int64_t ended = now() < u.until ? now() : u.until;
    r->seconds = (double)(ended - u.measured_from) / 1e9;
    r->cpu_seconds = cpu_seconds() - cpu;
    return o->save_map && o->verify ? bench_map_save(&u.map, o->save_map, e) : 0;
}
