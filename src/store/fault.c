/*
 * Another store, with faults, for tests: `fault:RULES;NAME`.
 *
 *     fault:read=EIO@8192+4096;mem:          reads that touch these bytes fail
 *     fault:write=torn/3;file:/tmp/x         every third write is done to its half, and fails
 *     fault:write=lost#7,flush=50ms;mem:     the seventh write is acknowledged and not done; flushes
 *                                            take 50 ms longer
 *
 * A rule is OP=WHAT, then where it applies:
 *
 *     OP     read write flush unmap zero any
 *     WHAT   EIO ENOSPC ETIMEDOUT     fails
 *            torn                     the first half (in blocks) is done, then EIO
 *            lost                     is acknowledged and not done
 *            NUMBERms                 is delayed
 *     @OFFSET+LENGTH                  only what touches this range
 *     /N                              only every Nth that fits
 *     #N                              only the Nth that fits
 *
 * The first rule that applies counts. A delayed I/O goes on to the store below when its time is over.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/vec.h"
#include "io/loop.h"
#include "store/impl.h"

enum action { FAIL, TORN, LOST, DELAY };

struct rule {
    int op; /* -1: any */
    enum action action;
    int error;
    int64_t delay_ns;
    uint64_t from, length; /* length 0: everywhere */
    uint64_t every, nth, seen;
};

struct fault {
    struct store store;
    struct store *below;
    struct io_loop *loop;
    VEC(struct rule) rules;
};

/* What is under way below. Faults are for tests: these are allocated. */
struct passed {
    struct store_io io;
    struct store_io *from;
    struct fault *fault;
    struct io_timer timer;
    int error;         /* to answer, whatever comes from below */
    struct iovec *cut; /* of a part; owned */
};

static void mirror(struct fault *f)
{
    f->store.size = f->below->size;
}

static void passed_done(struct store_io *io, int error)
{
    struct passed *p = container_of(io, struct passed, io);
    struct store_io *from = p->from;
    int result = p->error ? p->error : error;
    free(p->cut);
    free(p);
    store_done(from, result);
}

static struct passed *pass(struct fault *f, struct store_io *io)
{
    struct passed *p = NEW(struct passed);
    p->fault = f;
    p->from = io;
    p->io = (struct store_io){
        .op = io->op,
        .fua = io->fua,
        .unverified = io->unverified,
        .sums = io->sums,
        .offset = io->offset,
        .length = io->length,
        .snapshot = io->snapshot,
        .iov = io->iov,
        .iovs = io->iovs,
        .done = passed_done,
    };
    return p;
}

static void go_on(struct io_timer *timer)
{
    struct passed *p = container_of(timer, struct passed, timer);
    store_submit(p->fault->below, &p->io);
}

static bool applies(struct rule *r, const struct store_io *io)
{
    if (r->op >= 0 && r->op != (int)io->op)
        return false;
    if (r->length && (io->offset >= r->from + r->length || io->offset + io->length <= r->from))
        return false;
    r->seen++;
    if (r->nth)
        return r->seen == r->nth;
    return !r->every || r->seen % r->every == 0;
}

static void tear(struct fault *f, struct store_io *io)
{
    struct passed *p = pass(f, io);
    p->error = EIO;
    p->io.length = io->length / 2 / f->store.block_size * f->store.block_size;
    p->cut = mem_alloc((io->iovs + 1) * sizeof(*p->cut));
    p->io.iovs = 0;
    uint64_t left = p->io.length;
    for (unsigned i = 0; i < io->iovs && left; i++) {
        size_t part = io->iov[i].iov_len < left ? io->iov[i].iov_len : left;
        p->cut[p->io.iovs++] = (struct iovec){io->iov[i].iov_base, part};
        left -= part;
    }
    p->io.iov = p->cut;
    store_submit(f->below, &p->io);
}

static void submit(struct store *s, struct store_io *io)
{
    struct fault *f = container_of(s, struct fault, store);
    struct rule *r = NULL;
    vec_for_each(&f->rules, it) {
        if (applies(it, io)) {
            r = it;
            break;
        }
    }
    struct passed *p;
    switch (r ? (int)r->action : -1) {
    case FAIL:
    case LOST:
        store_done(io, r->error);
        break;
    case TORN:
        tear(f, io);
        break;
    case DELAY:
        p = pass(f, io);
        p->timer.fn = go_on;
        io_timer_start(f->loop, &p->timer, io_loop_now(f->loop) + r->delay_ns);
        break;
    default:
        store_submit(f->below, &pass(f, io)->io);
    }
}

struct growing {
    struct fault *fault;
    void (*done)(void *context, int error);
    void *context;
};

static void grown(void *context, int error)
{
    struct growing *g = context;
    mirror(g->fault);
    g->done(g->context, error);
    free(g);
}

static void grow(struct store *s, uint64_t size, void (*done)(void *context, int error),
                 void *context)
{
    struct growing *g = NEW(struct growing);
    *g = (struct growing){container_of(s, struct fault, store), done, context};
    store_grow(g->fault->below, size, grown, g);
}

static enum store_extent extent(struct store *s, uint64_t offset, uint64_t *ret_length)
{
    struct store *below = container_of(s, struct fault, store)->below;
    if (below->ops->extent)
        return below->ops->extent(below, offset, ret_length);
    *ret_length = s->size - offset;
    return STORE_MAPPED;
}

/* Changes of snapshots have no faults of their own. */

static void snapshot(struct store *s, uint64_t id, void (*done)(void *context, int error),
                     void *context)
{
    store_snapshot(container_of(s, struct fault, store)->below, id, done, context);
}

static void snapshot_drop(struct store *s, uint64_t id, void (*done)(void *context, int error),
                          void *context)
{
    store_snapshot_drop(container_of(s, struct fault, store)->below, id, done, context);
}

static void revert(struct store *s, uint64_t id, void (*done)(void *context, int error),
                   void *context)
{
    store_revert(container_of(s, struct fault, store)->below, id, done, context);
}

static unsigned snapshots(struct store *s, struct store_snapshot *out, unsigned most)
{
    return store_snapshots(container_of(s, struct fault, store)->below, out, most);
}

static bool mark(struct store *s, struct store_mark *ret_mark)
{
    return store_mark(container_of(s, struct fault, store)->below, ret_mark);
}

static void stamp(struct store *s, uint64_t generation, void (*done)(void *context, int error),
                  void *context)
{
    store_stamp(container_of(s, struct fault, store)->below, generation, done, context);
}

static int inspect(struct store *s, bool (*stale)(void *context, uint64_t offset, uint64_t length),
                   void *context, struct err *e)
{
    return store_inspect(container_of(s, struct fault, store)->below, stale, context, e);
}

static void pause_below(struct store *s, void (*done)(void *context), void *context)
{
    store_pause(container_of(s, struct fault, store)->below, done, context);
}

static uint64_t used(struct store *s)
{
    return store_used(container_of(s, struct fault, store)->below);
}

static void close_fault(struct store *s)
{
    struct fault *f = container_of(s, struct fault, store);
    if (f->below)
        store_close(f->below);
    vec_done(&f->rules);
    free(f);
}

static const struct store_ops fault_ops = {
    .name = "fault",
    .submit = submit,
    .grow = grow,
    .snapshot = snapshot,
    .snapshot_drop = snapshot_drop,
    .revert = revert,
    .snapshots = snapshots,
    .extent = extent,
    .used = used,
    .mark = mark,
    .stamp = stamp,
    .inspect = inspect,
    .pause = pause_below,
    .close = close_fault,
};

/* Rules. */

static bool number(const char **text, uint64_t *ret)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *ret = strtoull(*text, &end, 10);
    *text = end;
    return true;
}

static bool parse_what(const char **text, struct rule *r)
{
    static const struct {
        const char *word;
        enum action action;
        int error;
    } words[] = {
        {"EIO", FAIL, EIO},  {"ENOSPC", FAIL, ENOSPC}, {"ETIMEDOUT", FAIL, ETIMEDOUT},
        {"torn", TORN, EIO}, {"lost", LOST, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (str_starts_with(*text, words[i].word)) {
            r->action = words[i].action;
            r->error = words[i].error;
            *text += strlen(words[i].word);
            return true;
        }
    }
    uint64_t ms;
    if (!number(text, &ms) || ms > 600000 || !str_starts_with(*text, "ms"))
        return false;
    r->action = DELAY;
    r->delay_ns = (int64_t)ms * 1000000;
    *text += 2;
    return true;
}

static bool parse_rule(const char **text, struct rule *r)
{
    static const char *const ops[] = {"read=", "write=", "flush=", "unmap=", "zero=", "any="};
    size_t i = 0;
    while (i < ARRAY_SIZE(ops) && !str_starts_with(*text, ops[i]))
        i++;
    if (i == ARRAY_SIZE(ops))
        return false;
    *text += strlen(ops[i]);
    r->op = i == ARRAY_SIZE(ops) - 1 ? -1 : (int)i;
    if (!parse_what(text, r))
        return false;
    for (;;) {
        char c = **text;
        if (c != '@' && c != '/' && c != '#')
            return true;
        ++*text;
        if (!number(text, c == '@' ? &r->from : c == '/' ? &r->every : &r->nth))
            return false;
        if (c == '@' && (*(*text)++ != '+' || !number(text, &r->length) || !r->length))
            return false;
    }
}

struct store *store_fault_open(const char *rest, const struct store_options *o, struct err *e)
{
    struct fault *f = NEW(struct fault);
    f->loop = o->loop;
    f->store.ops = &fault_ops;
    const char *at = rest;
    bool good = true;
    while (good && *at != ';') {
        struct rule r = {0};
        good = parse_rule(&at, &r) && (*at == ',' || *at == ';');
        vec_push(&f->rules, r);
        if (good && *at == ',')
            at++;
    }
    if (!good)
        err_set(e, ERR_INVALID_ARGUMENT, "InvalidStore",
                "cannot read the rules of 'fault:%s' from '%s' on: write "
                "fault:OP=WHAT[@OFFSET+LENGTH][/N][#N],...;STORE",
                rest, at);
    else
        f->below = store_open(at + 1, o, e);
    if (!f->below) {
        close_fault(&f->store);
        return NULL;
    }
    f->store.block_size = f->below->block_size;
    f->store.read_only = f->below->read_only;
    f->store.volatile_cache = f->below->volatile_cache;
    f->store.checked = f->below->checked;
    mirror(f);
    return &f->store;
}
