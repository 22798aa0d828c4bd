/*
 * Tasks of two initiators on a small unit, begun, run, aborted and reset in any order, on a store
 * that answers now or later and sometimes with an error. The input is a program:
 *
 *     byte  0-7 of 8: a command: flags, CDB (16 bytes), length of data-out (2), data-out
 *           others:  let an I/O go, abort, reset, end and begin a nexus, grow
 *
 * Every task is done exactly once, with a status that there is, within its buffers; nothing of the
 * medium is touched but its bytes (sanitizers see that).
 */
#include <errno.h>

#include "base/mem.h"
#include "fuzz.h"
#include "scsi/scsi.h"

enum { BLOCK = 512, BLOCKS = 64, ROOM = 256, TASKS = 16, DATA = 64 << 10 };

struct lazy {
    struct store store;
    uint8_t bytes[(BLOCKS + ROOM) * BLOCK];
    struct list_link waiting;
    bool later;
};

struct slot {
    struct scsi_task task;
    bool used, done;
    struct iovec out, in;
    uint8_t *memory;
};

static void do_io(struct store_io *io, int error)
{
    struct lazy *s = container_of(io->store, struct lazy, store);
    uint64_t at = io->offset;
    for (unsigned i = 0; !error && i < io->iovs; i++) {
        CHECK(at + io->iov[i].iov_len <= io->offset + io->length);
        if (io->op == STORE_READ)
            memcpy(io->iov[i].iov_base, s->bytes + at, io->iov[i].iov_len);
        else
            memcpy(s->bytes + at, io->iov[i].iov_base, io->iov[i].iov_len);
        at += io->iov[i].iov_len;
    }
    CHECK(error || !io->iovs || at == io->offset + io->length);
    if (!error && (io->op == STORE_UNMAP || io->op == STORE_ZERO))
        memset(s->bytes + io->offset, 0, io->length);
    io->done(io, error);
}

static void submit(struct store *store, struct store_io *io)
{
    struct lazy *s = container_of(store, struct lazy, store);
    if (s->later)
        list_push(&s->waiting, &io->link);
    else
        do_io(io, 0);
}

static bool let_go(struct lazy *s, int error)
{
    struct list_link *l = list_take(&s->waiting);
    if (l)
        do_io(container_of(l, struct store_io, link), error);
    return l;
}

static void check_answer(const struct scsi_task *t)
{
    switch (t->status) {
    case SCSI_GOOD:
    case SCSI_RESERVATION_CONFLICT:
    case SCSI_TASK_ABORTED:
        CHECK(!t->sense_length);
        break;
    case SCSI_CHECK_CONDITION:
        CHECK(t->sense_length >= 8 && t->sense_length <= SCSI_SENSE_MAX && !t->in_length);
        break;
    default:
        CHECK(false);
    }
}

static void done(struct scsi_task *t)
{
    struct slot *s = container_of(t, struct slot, task);
    CHECK(s->used && !s->done && t->in_length <= t->in_room);
    check_answer(t);
    s->done = true;
}

struct world {
    const uint8_t *p;
    size_t left;
    struct lazy store;
    struct scsi_unit *unit;
    struct scsi_nexus *nexus[2];
    struct slot slots[TASKS];
};

static uint8_t take(struct world *w)
{
    if (!w->left)
        return 0;
    w->left--;
    return *w->p++;
}

static void reap(struct world *w)
{
    for (size_t i = 0; i < TASKS; i++) {
        if (w->slots[i].used && w->slots[i].done) {
            free(w->slots[i].memory);
            w->slots[i].used = false;
        }
    }
}

static void command(struct world *w, uint8_t flags)
{
    struct slot *s = NULL;
    for (size_t i = 0; i < TASKS && !s; i++)
        s = w->slots[i].used ? NULL : &w->slots[i];
    if (!s)
        return;
    struct scsi_task *t = &s->task;
    memset(s, 0, sizeof(*s));
    t->nexus = w->nexus[flags & 1];
    t->lun = flags & 2 ? (uint64_t)take(w) << 48 : 0;
    t->cdb_length = 16;
    for (int i = 0; i < 16; i++)
        t->cdb[i] = take(w);
    uint32_t size = (uint32_t)(take(w) << 8 | take(w));
    t->out_offered = size;
    s->used = true;
    if (!scsi_task_begin(t)) {
        check_answer(t);
        s->used = false;
        return;
    }
    CHECK(t->in_wanted <= SCSI_TRANSFER_MAX && t->out_wanted <= SCSI_TRANSFER_MAX);
    t->out_length = size < t->out_wanted ? size : t->out_wanted;
    t->in_room = t->in_wanted < DATA ? t->in_wanted : DATA;
    s->memory = mem_alloc(t->out_length + t->in_room + 1);
    for (uint32_t i = 0; i < t->out_length; i++)
        s->memory[i] = take(w);
    s->out = (struct iovec){s->memory, t->out_length};
    s->in = (struct iovec){s->memory + t->out_length, t->in_room};
    t->out = &s->out;
    t->in = &s->in;
    t->outs = t->ins = 1;
    t->done = done;
    w->store.later = flags & 4;
    scsi_task_run(t);
}

/* A session ends as a transport ends it: its tasks are aborted and waited for. */
static void end_nexus(struct world *w, int i)
{
    scsi_nexus_abort(w->nexus[i]);
    while (let_go(&w->store, 0))
        ;
    reap(w);
    scsi_nexus_free(w->nexus[i]);
}

static void begin_nexus(struct world *w, int i)
{
    w->nexus[i] = scsi_nexus_new(w->unit, i ? "iqn.b,i,0x2" : "iqn.a,i,0x1", "iqn.t,t,0x0001", 1);
}

static void event(struct world *w, uint8_t what)
{
    switch (what % 8) {
    case 0:
    case 1:
        let_go(&w->store, 0);
        break;
    case 2:
        let_go(&w->store, EIO);
        break;
    case 3: {
        struct slot *s = &w->slots[take(w) % TASKS];
        if (s->used && !s->done)
            scsi_task_abort(&s->task);
        break;
    }
    case 4:
        scsi_unit_reset(w->unit, w->nexus[0]);
        break;
    case 5:
        end_nexus(w, 1);
        begin_nexus(w, 1);
        break;
    case 6:
        if (w->store.store.size < sizeof(w->store.bytes)) {
            w->store.store.size += BLOCK;
            scsi_unit_resized(w->unit);
        }
        break;
    default:
        while (let_go(&w->store, 0))
            ;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct store_ops ops = {.name = "lazy", .submit = submit};
    struct world *w = mem_zalloc(sizeof(*w));
    struct err e;
    w->p = data;
    w->left = size;
    w->store.store = (struct store){
        .ops = &ops, .size = BLOCKS * BLOCK, .block_size = BLOCK, .volatile_cache = true};
    list_init(&w->store.waiting);
    uint8_t kind = take(w);
    w->store.store.atomic = kind & 4 ? 4096 : 0;
    w->unit = scsi_unit_new(&(struct scsi_unit_config){.store = &w->store.store,
                                                       .block_size = BLOCK,
                                                       .serial = "fuzz",
                                                       .thin = kind & 1,
                                                       .removable = kind & 2},
                            &e);
    CHECK(w->unit);
    begin_nexus(w, 0);
    begin_nexus(w, 1);
    while (w->left) {
        uint8_t what = take(w);
        if (what & 8)
            event(w, what >> 4);
        else
            command(w, what);
        reap(w);
    }
    while (let_go(&w->store, 0))
        ;
    end_nexus(w, 0);
    end_nexus(w, 1);
    reap(w);
    for (size_t i = 0; i < TASKS; i++)
        CHECK(!w->slots[i].used); /* all were done */
    scsi_unit_free(w->unit);
    free(w);
    return 0;
}
