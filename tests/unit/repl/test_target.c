/*
 * A target with three replicas, connected by queues: forming, acknowledgement at a quorum, a frozen replica, freezing,
 * growth, membership, status. What goes wrong in between is the simulator's part.
 */
#include "a_target.h"

static void formed(void **state)
{
    (void)state;
    struct repl_status s = status();
    assert_string_equal(s.phase, "Healthy");
    assert_int_equal(s.n, 3);
    assert_int_equal(s.cf, 2);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(s.replica[i].mode, "Healthy");
        assert_true(s.replica[i].quorum);
    }
    struct repl_io io = io_of(REPL_IO_WRITE, 8192), zero = io_of(REPL_IO_ZERO, 8192);
    repl_target_submit(w.t, &io);
    settle();
    assert_int_equal(w.done, 1);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(w.data[i] + 8192, page, sizeof(page));
    struct repl_io flush = {.op = REPL_IO_FLUSH};
    repl_target_submit(w.t, &flush);
    settle();
    assert_int_equal(w.done, 2);
    assert_int_equal(status().replica[1].checkpointed_io_seq, repl_pos(status().epoch, 1));
    repl_target_submit(w.t, &zero);
    settle();
    struct repl_io read = io_of(REPL_IO_READ, 8192);
    repl_target_submit(w.t, &read);
    settle();
    assert_int_equal(w.done, 4);
    assert_int_equal(page[0] | page[4095], 0);
    struct repl_io beyond = io_of(REPL_IO_READ, SIZE);
    repl_target_submit(w.t, &beyond);
    settle();
    assert_int_equal(w.status, -ERANGE);
}

/* A frozen replica holds up no write, is dropped within half a second, and comes back by what it missed. */
static void frozen(void **state)
{
    (void)state;
    w.frozen[2] = true;
    int64_t began = w.now;
    for (int i = 0; i < 60; i++) {
        struct repl_io io = io_of(REPL_IO_WRITE, (uint64_t)i * 4096);
        int64_t since = w.now;
        repl_target_submit(w.t, &io);
        while (!list_empty(&io.link) || w.done <= i) {
            assert_true(w.now - since < 500 * MS);
            pass(10 * MS);
        }
    }
    while (w.linked[2] && w.now - began < 500 * MS)
        pass(10 * MS);
    assert_false(w.linked[2]);
    assert_true(w.dropped_at - began < 500 * MS);
    assert_string_equal(status().replica[2].mode, "Offline");
    assert_string_equal(status().phase, "Degraded");
    w.frozen[2] = false;
    repl_replica_close(w.r[2], 0);
    link_up(2);
    pass(1000 * MS);
    assert_string_equal(status().phase, "Healthy");
    assert_memory_equal(w.data[0], w.data[2], SIZE);
}

/* Without a quorum requests wait, and go on when there is one again. */
static void freezes(void **state)
{
    (void)state;
    for (int i = 1; i < 3; i++) {
        w.linked[i] = false;
        repl_target_close(w.t, i);
        repl_replica_close(w.r[i], 0);
    }
    struct repl_io io = io_of(REPL_IO_WRITE, 0), read = io_of(REPL_IO_READ, 0);
    repl_target_submit(w.t, &io);
    repl_target_submit(w.t, &read);
    pass(2000 * MS);
    assert_int_equal(w.done, 0);
    assert_string_equal(status().phase, "Offline");
    link_up(1);
    pass(1000 * MS);
    assert_int_equal(w.done, 2);
    assert_int_equal(w.status, 0);
    assert_string_equal(status().phase, "Degraded");
}

/* Growth: all or none. */
static void grows(void **state)
{
    (void)state;
    w.full[1] = true;
    assert_int_equal(repl_target_grow(w.t, SIZE + 4096), 0);
    pass(100 * MS);
    assert_int_equal(w.admin_status, -ENOSPC);
    assert_int_equal(status().size, SIZE);
    w.full[1] = false;
    assert_int_equal(repl_target_grow(w.t, SIZE + 4096), 0);
    assert_int_equal(repl_target_snapshot(w.t, "a", 1), -EBUSY); /* one at a time */
    pass(100 * MS);
    assert_int_equal(w.admin, 2);
    assert_int_equal(w.admin_status, 0);
    assert_int_equal(status().size, SIZE + 4096);
    struct repl_io io = io_of(REPL_IO_WRITE, SIZE);
    repl_target_submit(w.t, &io);
    settle();
    assert_int_equal(w.status, 0);
    assert_int_equal(repl_target_snapshot(w.t, "a", 1), 0);
    pass(100 * MS);
    assert_int_equal(w.admin, 3);
    assert_int_equal(w.admin_status, 0);
}

/* A new replica counts when it has everything; then the one it replaces is none any more. */
static void replaced(void **state)
{
    (void)state;
    struct repl_io io = io_of(REPL_IO_WRITE, 65536);
    repl_target_submit(w.t, &io);
    settle();
    struct uuid id = {{4}}, out = {{1}};
    assert_true(repl_target_add(w.t, &id, &out));
    settle();
    assert_string_equal(status().replica[3].mode, "Offline");
    assert_false(status().replica[3].quorum);
    make_replica(3);
    pass(2000 * MS);
    assert_int_equal(w.admin, 1);
    assert_int_equal(w.admin_status, 0);
    struct repl_status s = status();
    assert_int_equal(s.n, 3);
    assert_string_equal(s.phase, "Healthy");
    assert_memory_equal(w.data[3], w.data[1], SIZE);
    assert_false(w.linked[0]);
}

/* A page in each region, and a new replica in place of the first. */
static void add_new(void)
{
    for (uint64_t at = 0; at < SIZE; at += 65536) {
        struct repl_io io = io_of(REPL_IO_WRITE, at + 4096);
        repl_target_submit(w.t, &io);
        settle();
    }
    struct uuid id = {{4}}, out = {{1}};
    assert_true(repl_target_add(w.t, &id, &out));
}

/* Without clients all pieces are under way at once; what is zeros is not sent. */
static void rebuilt_idle(void **state)
{
    (void)state;
    add_new();
    pass(200 * MS);
    make_replica(3);
    pass(2000 * MS);
    assert_int_equal(w.admin, 1);
    assert_int_equal(w.most_pieces, SIZE / 65536);
    assert_int_equal(w.pieces, 0);
    assert_memory_equal(w.data[3], w.data[1], SIZE);
    assert_int_equal(status().replica[2].rebuild_bytes, SIZE);
    assert_int_equal(status().replica[2].rebuild_copied, SIZE / 16);
}

/* While a client is busy, one, though all are begun; and it comes to an end all the same. */
static void rebuilt_busy(void **state)
{
    (void)state;
    add_new();
    make_replica(3);
    for (int i = 0; i < 200 && !w.admin; i++) {
        struct repl_io io = io_of(REPL_IO_WRITE, 4096 * (uint64_t)(i * 7 % 256));
        repl_target_submit(w.t, &io);
        pass(10 * MS);
        assert_int_equal(w.status, 0);
    }
    assert_int_equal(w.admin, 1);
    assert_int_equal(w.most_pieces, 1);
    assert_int_equal(w.begun_ahead, SIZE / 65536); /* one sync of the replica for all stamps */
    assert_memory_equal(w.data[3], w.data[1], SIZE);
}

/* A replica whose data is not the others': scrub says so and mends it. */
static void scrubbed(void **state)
{
    (void)state;
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    repl_target_submit(w.t, &io);
    settle();
    w.data[1][100] ^= 1;
    w.rotten[1] = true;
    assert_true(repl_target_scrub(w.t));
    pass(1000 * MS);
    assert_int_equal(w.admin, 1);
    assert_memory_equal(w.data[1], w.data[0], SIZE);
    assert_int_equal(status().replica[1].scrub_errors, 1);
}

/* Nobody asks for it: what rots is found and mended, and no scrub that was asked for is told. */
static void scrubbed_slowly(void **state)
{
    (void)state;
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    repl_target_submit(w.t, &io);
    settle();
    w.data[1][100] ^= 1;
    w.rotten[1] = true;
    pass(20000 * MS);
    assert_int_equal(w.admin, 0);
    assert_memory_equal(w.data[1], w.data[0], SIZE);
    assert_int_equal(status().replica[1].scrub_errors, 1);
    w.data[1][100] ^= 1; /* and again */
    w.rotten[1] = true;
    assert_true(repl_target_scrub(w.t));
    pass(1000 * MS);
    assert_int_equal(w.admin, 1);
    assert_memory_equal(w.data[1], w.data[0], SIZE);
}

/* Two are wrong, and their checksums say so: a majority does not overwrite the good copy. */
static void scrub_majority_wrong(void **state)
{
    (void)state;
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    repl_target_submit(w.t, &io);
    settle();
    for (int i = 0; i < 2; i++) {
        memset(w.data[i], 0, 4096);
        w.rotten[i] = true;
    }
    assert_true(repl_target_scrub(w.t));
    pass(1000 * MS);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(w.data[i], page, sizeof(page));
}

/* Copies differ and each matches its checksums: nothing is touched. */
static void scrub_undecided(void **state)
{
    (void)state;
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    repl_target_submit(w.t, &io);
    settle();
    memset(w.data[0], 0, 4096);
    memset(w.data[1], 0, 4096);
    assert_true(repl_target_scrub(w.t));
    pass(1000 * MS);
    assert_memory_equal(w.data[2], page, sizeof(page));
    assert_int_equal(w.data[0][0] | w.data[1][0], 0);
    assert_int_equal(w.undecided, 1);
}

static int flush_of(uint64_t client)
{
    struct repl_io flush = {.op = REPL_IO_FLUSH, .client = client};
    w.status = 1;
    repl_target_submit(w.t, &flush);
    settle();
    return w.status;
}

static void write_of(uint64_t client, uint64_t offset)
{
    struct repl_io io = io_of(REPL_IO_WRITE, offset);
    io.client = client;
    repl_target_submit(w.t, &io);
    settle();
    assert_int_equal(w.status, 0);
}

static void cut(int i)
{
    w.linked[i] = false;
    repl_target_close(w.t, i);
    repl_replica_close(w.r[i], 0);
}

static void restart_all(void)
{
    repl_target_free(w.t);
    struct repl_target_config c = {.owner_seed = 100, .window = 64, .reads = 16};
    w.n = 0;
    w.t = repl_target_new(&c, &t_ops, NULL);
    for (int i = 0; i < 3; i++) {
        repl_replica_free(w.r[i]);
        revive_replica(i);
    }
}

static void restart_target(void)
{
    restart_all();
    pass(2000 * MS);
}

/*
 * All replicas lose their memory: first as many are compared as it takes for the volume to serve, in pieces as long as
 * there may be, and then the others.
 */
static void quorum_first(void **state)
{
    (void)state;
    write_of(7, 0);
    restart_all();
    struct repl_io io = io_of(REPL_IO_WRITE, 0);
    repl_target_submit(w.t, &io);
    pass(2000 * MS);
    assert_int_equal(w.begun_first, SIZE / REPL_PIECE);
    assert_int_equal(w.begun, 2 * SIZE / REPL_PIECE);
    assert_string_equal(status().phase, "Healthy");
}

/* Replicas and target lose their memory: every initiator that wrote is told by one failing flush, and only then. */
static void flush_after_loss(void **state)
{
    (void)state;
    write_of(7, 0);
    write_of(8, 8192);
    assert_int_equal(flush_of(7) | flush_of(8) | flush_of(9), 0);
    write_of(7, 0);
    write_of(8, 8192);
    restart_target();
    restart_target(); /* nobody was told yet, and a second target knows it */
    assert_string_equal(status().phase, "Healthy");
    assert_int_equal(flush_of(9), 0); /* had written nothing */
    assert_int_equal(flush_of(7), -EIO);
    assert_int_equal(flush_of(7), 0);
    pass(100 * MS);
    assert_int_equal(flush_of(8), -EIO);
    assert_int_equal(flush_of(8), 0);
}

/* One place is read from one replica, as long as that has not much more to do than the others. */
static void read_from_one(void **state)
{
    (void)state;
    static struct repl_io io[16];
    for (int i = 0; i < 16; i++) {
        io[i] = io_of(REPL_IO_READ, 4096 * (uint64_t)i);
        repl_target_submit(w.t, &io[i]);
        settle();
    }
    int most = 0, all = 0;
    for (int i = 0; i < 3; i++) {
        most = w.reads[i] > most ? w.reads[i] : most;
        all += w.reads[i];
        w.reads[i] = 0;
    }
    assert_int_equal(most, 16);
    assert_int_equal(all, 16);
    for (int i = 0; i < 16; i++) {
        io[i] = io_of(REPL_IO_READ, 4096 * (uint64_t)i);
        repl_target_submit(w.t, &io[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(w.reads[i], 1, 12);
    settle();
    assert_int_equal(w.done, 32);
    for (int i = 0; i < 6; i++) { /* large ones are spread sooner */
        io[i] = io_of(REPL_IO_READ, 131072 * (uint64_t)i);
        io[i].length = 131072;
        w.reads[i / 2] = 0;
    }
    static uint8_t room[6][131072];
    struct iovec iov[6];
    for (int i = 0; i < 6; i++) {
        iov[i] = (struct iovec){room[i], sizeof(room[i])};
        io[i].iov = &iov[i];
        repl_target_submit(w.t, &io[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(w.reads[i], 1, 3);
    settle();
    assert_int_equal(w.done, 38);
}

/* The same while a new target begins: it has a truth, serves nobody yet, and never told anybody anything itself. */
static void loss_before_serving(void **state)
{
    (void)state;
    write_of(7, 0);
    repl_target_free(w.t);
    struct repl_target_config c = {.owner_seed = 100, .window = 64, .reads = 16, .grace_ns = MS};
    w.t = repl_target_new(&c, &t_ops, NULL);
    for (int i = 0; i < 3; i++) {
        repl_replica_close(w.r[i], 0);
        w.linked[i] = false;
    }
    link_up(0);
    link_up(1);
    w.one_round = true;
    bool truth = false;
    for (int i = 0; i < 2000 && !truth; i++, w.now += MS) {
        settle();
        for (int m = 0; m < status().n; m++)
            truth |= strcmp(status().replica[m].mode, "Healthy") == 0;
    }
    assert_true(truth && !status().serving);
    int alone = strcmp(status().replica[0].mode, "Healthy") == 0 ? 0 : 1;
    for (int i = 0; i < 3; i++) {
        if (w.linked[i])
            cut(i);
        repl_replica_free(w.r[i]);
        w.r[i] = NULL;
    }
    w.one_round = false;
    for (int i = 0; i < 3; i++)
        if (i != alone)
            revive_replica(i);
    pass(2000 * MS);
    assert_true(status().serving);
    assert_int_equal(flush_of(7), -EIO);
    assert_int_equal(flush_of(7), 0);
}

static int start_one(void **state)
{
    (void)state;
    return start_n(1, 0);
}

/* A write that is only to become durable yet is not written again by the next epoch: something else is there by now. */
static void fua_not_repeated(void **state)
{
    (void)state;
    uint8_t first[4096], second[4096];
    memset(first, 1, sizeof(first));
    memset(second, 2, sizeof(second));
    struct iovec iov[] = {{first, sizeof(first)}, {second, sizeof(second)}};
    struct repl_io io[2];
    w.done = 0;
    w.holds_flush[0] = true;
    for (int i = 0; i < 2; i++) {
        io[i] = (struct repl_io){.op = REPL_IO_WRITE,
                                 .flags = i ? 0 : REPL_FUA,
                                 .length = sizeof(first),
                                 .iov = &iov[i],
                                 .iov_n = 1};
        repl_target_submit(w.t, &io[i]);
        settle();
    }
    assert_int_equal(w.done, 1);
    cut(0);
    w.holds_flush[0] = false;
    repl_replica_stored(w.r[0], w.held[0], 0);
    link_up(0);
    pass(2000 * MS);
    assert_true(status().serving);
    assert_int_equal(status().epoch, 2);
    assert_int_equal(w.done, 2);
    assert_int_equal(w.status, 0);
    assert_memory_equal(w.data[0], second, sizeof(second));
}

/* The replica that is the truth cannot read what all others must be compared with: they go on without it, and it is rebuilt. */
static void truth_unreadable(void **state)
{
    (void)state;
    write_of(0, 0);
    assert_int_equal(flush_of(0), 0);
    w.rotten[0] = true;
    restart_target(); /* they were written to: what is in active extents is compared */
    pass(4000 * MS);
    assert_int_equal(w.unreadable, 1);
    assert_false(w.rotten[0]);
    assert_string_equal(status().phase, "Healthy");
    for (int i = 0; i < 3; i++)
        assert_memory_equal(w.data[i], page, sizeof(page));
}

/* The same, but nobody else has what it has: the volume waits for it. */
static void truth_unreadable_alone(void **state)
{
    (void)state;
    write_of(0, 0);
    assert_int_equal(flush_of(0), 0);
    w.frozen[1] = w.frozen[2] = true;
    struct repl_io io = io_of(REPL_IO_WRITE, 8192);
    repl_target_submit(w.t, &io); /* only the first one gets it */
    w.one_round = true;
    for (int i = 0; i < 3; i++)
        settle();
    w.one_round = false;
    repl_replica_turn(w.r[0], w.now + 100000 * MS); /* and makes it durable */
    w.rotten[0] = true;
    w.frozen[1] = w.frozen[2] = false;
    for (int i = 0; i < w.n; i++)
        free(w.queue[i].payload);
    restart_target();
    pass(4000 * MS);
    assert_int_equal(w.unreadable, 0);
    assert_false(status().serving);
    w.rotten[0] = false; /* its disk is repaired */
    pass(1000 * MS);
    assert_string_equal(status().phase, "Healthy");
}

/* An initiator that flushed and logged out has nothing to lose. */
static void clean_initiator(void **state)
{
    (void)state;
    write_of(7, 0);
    write_of(8, 8192);
    assert_int_equal(flush_of(7), 0);
    repl_target_client(w.t, 7, true);
    repl_target_client(w.t, 8, true); /* it did not flush */
    pass(100 * MS);
    restart_target();
    assert_int_equal(flush_of(7), 0);
    assert_int_equal(flush_of(8), -EIO);
}

/* More initiators than are remembered: the oldest is forgotten, and everybody can write. */
static void many_initiators(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 2 * REPL_CLIENTS; id++)
        write_of(id, 0);
    restart_target();
    assert_int_equal(flush_of(2 * REPL_CLIENTS), -EIO);
    assert_int_equal(flush_of(1), 0);
}

static int64_t scrub_time(bool busy)
{
    int64_t began = w.now;
    w.admin = 0;
    assert_true(repl_target_scrub(w.t));
    for (int i = 0; i < 1000 && !w.admin; i++, w.now += MS) {
        struct repl_io io = io_of(REPL_IO_WRITE, 4096 * (uint64_t)(i % 256));
        if (busy)
            repl_target_submit(w.t, &io);
        settle();
    }
    assert_int_equal(w.admin, 1);
    return w.now - began;
}

/* A scrub has at most half of the time while clients are busy. */
static void scrubbed_busy(void **state)
{
    (void)state;
    w.round_ns = MS;
    pass(200 * MS); /* no client was there for a while */
    int64_t idle = scrub_time(false), busy = scrub_time(true);
    assert_true(busy >= 2 * idle);
}

/* A replica's greeting or promise, as if it were there; not formed: it has a view, but of the beginning. */
static void says(int link, uint8_t type, uint32_t epoch, uint16_t flags, bool formed, uint64_t pos)
{
    uint8_t block[REPL_SUPER_SIZE];
    struct repl_super s = {.generation = 1, .promised = epoch, .pos = pos};
    s.replica.bytes[0] = (uint8_t)(link + 1);
    if (!(flags & REPL_BLANK)) {
        s.view = (struct repl_view){.version = (uint64_t)1 << 32 | (formed ? 2 : 1),
                                    .flags = formed ? REPL_FORMED : 0,
                                    .size = SIZE,
                                    .rf = 3,
                                    .cf = 2,
                                    .region_shift = 16,
                                    .block_shift = 12,
                                    .n = 3};
        for (int i = 0; i < 3; i++) {
            s.view.member[i].id.bytes[0] = (uint8_t)(i + 1);
            s.view.member[i].flags = REPL_VOTER | REPL_OLD;
        }
    }
    repl_super_encode(&s, block);
    struct repl_msg m = {
        .type = type, .flags = flags, .epoch = epoch, .seq = pos, .length = sizeof(block)};
    if (type == REPL_HELLO)
        repl_target_open(w.t, link);
    struct iovec iov = {block, m.length};
    repl_target_input(w.t, link, &m, &iov, 1, NULL);
    repl_target_turn(w.t, w.now);
}

static int sent(uint8_t type)
{
    int n = 0;
    for (int i = 0; i < w.n; i++)
        n += w.queue[i].m.type == type;
    return n;
}

static int start_alone(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.now = 1000 * MS;
    struct repl_target_config c = {
        .owner_seed = 99, .size = SIZE, .rf = 3, .window = 64, .reads = 16};
    w.t = repl_target_new(&c, &t_ops, NULL);
    return 0;
}

static int start_forming(uint8_t named)
{
    memset(&w, 0, sizeof(w));
    w.now = 1000 * MS;
    struct repl_target_config c = {.owner_seed = 99,
                                   .create = true,
                                   .first_n = named,
                                   .size = SIZE,
                                   .rf = 3,
                                   .window = 64,
                                   .reads = 16};
    for (uint8_t i = 0; i < named; i++)
        c.first[i].bytes[0] = (uint8_t)(i + 1);
    w.t = repl_target_new(&c, &t_ops, NULL);
    return 0;
}

static int start_creating(void **state)
{
    (void)state;
    return start_forming(0);
}

static int start_named(void **state)
{
    (void)state;
    return start_forming(3);
}

/* Time passes for a target whose replicas are only spoken for. */
static void pass_alone(int64_t ns)
{
    for (int64_t end = w.now + ns; w.now < end; w.now += 10 * MS)
        repl_target_turn(w.t, w.now);
}

/* The only one that told of a formed view comes back with a new disk: its promise does not count. */
static void blank_in_election(void **state)
{
    (void)state;
    says(0, REPL_HELLO, 1, 0, true, repl_pos(1, 5));
    says(1, REPL_HELLO, 1, 0, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 2);
    says(1, REPL_PROMISED, 2, 0, false, 0);
    repl_target_close(w.t, 0);
    says(0, REPL_HELLO, 0, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 3);
    says(0, REPL_PROMISED, 2, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_VIEW), 0);
    says(2, REPL_HELLO, 1, REPL_INTACT, true, repl_pos(1, 5));
    says(2, REPL_PROMISED, 2, REPL_INTACT, true, repl_pos(1, 5));
    assert_int_equal(sent(REPL_VIEW), 3);
}

/* Of two replicas one is gone for ever: taken out by force, the other serves, with all that was acknowledged. */
static void forced_out(void **state)
{
    (void)state;
    struct uuid gone = {{2}}, nobody = {{77}};
    struct repl_io io = io_of(REPL_IO_WRITE, 8192), late = io_of(REPL_IO_WRITE, 8192);
    repl_target_submit(w.t, &io);
    settle();
    assert_int_equal(w.done, 1);
    assert_int_equal(repl_target_force_out(w.t, &gone), -EALREADY);
    cut(0);
    pass(100 * MS);
    assert_string_equal(status().phase, "Offline");
    assert_int_equal(repl_target_force_out(w.t, &gone), -EBUSY); /* it is the other that is away */
    link_up(0);
    pass(1000 * MS);
    assert_string_equal(status().phase, "Healthy");
    cut(1);
    repl_target_submit(w.t, &late);
    pass(1000 * MS);
    assert_int_equal(w.done, 1);
    assert_int_equal(repl_target_force_out(w.t, &nobody), -ENOENT);
    assert_true(repl_target_remove(w.t, &gone)); /* waits for a quorum */
    pass(100 * MS);
    assert_int_equal(w.admin, 0);
    assert_int_equal(repl_target_force_out(w.t, &gone), 0);
    assert_int_equal(w.admin_status, -EAGAIN);
    assert_int_equal(w.forced, 1);
    assert_int_equal(w.may_be_lost, 0);
    pass(1000 * MS);
    assert_string_equal(status().phase, "Healthy");
    assert_int_equal(status().n, 1);
    assert_int_equal(w.done, 2);
    link_up(1); /* it is no member any more */
    pass(1000 * MS);
    assert_int_equal(status().n, 1);
    assert_true(repl_target_add(w.t, &gone, NULL));
    pass(1000 * MS);
    assert_int_equal(status().n, 2);
    assert_string_equal(status().phase, "Healthy");
    assert_memory_equal(w.data[0], w.data[1], SIZE);
}

static int start_strict(void **state)
{
    (void)state;
    return start_n(3, 3);
}

/* A factor of 3 is 2 while there are two, and 3 again with the third. */
static void factor_kept(void **state)
{
    (void)state;
    struct uuid third = {{3}};
    assert_int_equal(status().cf, 3);
    assert_true(repl_target_remove(w.t, &third));
    pass(1000 * MS);
    assert_int_equal(status().n, 2);
    assert_int_equal(status().cf, 2);
    repl_replica_free(w.r[2]);
    w.linked[2] = false;
    make_replica(2);
    assert_true(repl_target_add(w.t, &third, NULL));
    pass(2000 * MS);
    assert_int_equal(status().n, 3);
    assert_int_equal(status().cf, 3);
}

/* Of three two are gone: fewer than a read quorum, and the target says what that may cost. */
static void forced_out_twice(void **state)
{
    (void)state;
    struct uuid gone[] = {{{2}}, {{3}}};
    cut(1);
    cut(2);
    pass(100 * MS);
    assert_int_equal(repl_target_force_out(w.t, &gone[0]), 0);
    assert_int_equal(w.may_be_lost, 1);
    pass(1000 * MS);
    assert_string_equal(status().phase, "Offline");
    assert_int_equal(repl_target_force_out(w.t, &gone[1]), 0);
    pass(2000 * MS);
    assert_string_equal(status().phase, "Healthy");
    assert_int_equal(status().n, 1);
    cut(0);
    pass(100 * MS);
    assert_int_equal(repl_target_force_out(w.t, &gone[1]), -ENOENT);
    struct uuid last = {{1}};
    assert_int_equal(repl_target_force_out(w.t, &last), -EHOSTUNREACH);
}

/* A first view binds: who has one is not taken for another. */
static void bound_to_first_view(void **state)
{
    (void)state;
    says(0, REPL_HELLO, 1, 0, false, 0); /* has a first view of 0, 1 and 2, which was not formed */
    says(3, REPL_HELLO, 0, REPL_BLANK, false, 0);
    says(4, REPL_HELLO, 0, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 0);
    says(1, REPL_HELLO, 0, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 3); /* 1, 3 and 4, which are blank */
    says(1, REPL_PROMISED, 2, 0, false, 0);  /* somebody has bound it meanwhile */
    assert_int_equal(sent(REPL_VIEW), 0);
    says(2, REPL_HELLO, 0, REPL_BLANK, false, 0);
    pass_alone(1000 * MS);
    assert_int_equal(sent(REPL_PROMISE), 6); /* 0, 1 and 2 */
    for (int i = 0; i < 3; i++)
        says(i, REPL_PROMISED, 3, i ? REPL_BLANK : 0, false, 0);
    assert_int_equal(sent(REPL_VIEW), 3);
}

/* Where they are named, others are not taken, however blank they are. */
static void named(void **state)
{
    (void)state;
    for (int i = 1; i < 5; i++)
        says(i, REPL_HELLO, 0, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 0);
    says(0, REPL_HELLO, 0, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_PROMISE), 3);
    for (int i = 0; i < 3; i++)
        says(i, REPL_PROMISED, 1, REPL_BLANK, false, 0);
    assert_int_equal(sent(REPL_VIEW), 3);
    for (int i = 0; i < w.n; i++)
        assert_true(w.queue[i].replica < 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(formed, start, stop),
        cmocka_unit_test_setup_teardown(frozen, start, stop),
        cmocka_unit_test_setup_teardown(freezes, start, stop),
        cmocka_unit_test_setup_teardown(grows, start, stop),
        cmocka_unit_test_setup_teardown(replaced, start, stop),
        cmocka_unit_test_setup_teardown(rebuilt_idle, start, stop),
        cmocka_unit_test_setup_teardown(rebuilt_busy, start, stop),
        cmocka_unit_test_setup_teardown(scrubbed, start, stop),
        cmocka_unit_test_setup_teardown(scrubbed_slowly, start_slow_scrub, stop),
        cmocka_unit_test_setup_teardown(scrub_majority_wrong, start, stop),
        cmocka_unit_test_setup_teardown(scrub_undecided, start, stop),
        cmocka_unit_test_setup_teardown(flush_after_loss, start, stop),
        cmocka_unit_test_setup_teardown(quorum_first, start, stop),
        cmocka_unit_test_setup_teardown(read_from_one, start, stop),
        cmocka_unit_test_setup_teardown(loss_before_serving, start, stop),
        cmocka_unit_test_setup_teardown(fua_not_repeated, start_one, stop),
        cmocka_unit_test_setup_teardown(truth_unreadable, start, stop),
        cmocka_unit_test_setup_teardown(truth_unreadable_alone, start, stop),
        cmocka_unit_test_setup_teardown(clean_initiator, start, stop),
        cmocka_unit_test_setup_teardown(many_initiators, start, stop),
        cmocka_unit_test_setup_teardown(scrubbed_busy, start, stop),
        cmocka_unit_test_setup_teardown(blank_in_election, start_alone, stop),
        cmocka_unit_test_setup_teardown(forced_out, start_two, stop),
        cmocka_unit_test_setup_teardown(factor_kept, start_strict, stop),
        cmocka_unit_test_setup_teardown(forced_out_twice, start, stop),
        cmocka_unit_test_setup_teardown(bound_to_first_view, start_creating, stop),
        cmocka_unit_test_setup_teardown(named, start_named, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
