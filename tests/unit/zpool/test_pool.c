/*
 * Pools and their devices, on sparse files.
 */
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/spawn.h"
#include "zpool/zpooltest.h"

/* Every layout: made, filled, exported, imported in another order, with one and more devices lost. */
static void test_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum zpool_state one_lost; /* without disk 0 */
        int too_many[4];           /* without these it does not come; -1: not tried */
        const char *why;
        bool whole; /* compression and larger sectors as well */
    } table[] = {
        {"stripe 0", ZPOOL_UNAVAILABLE, {0, -1}, "PoolNotFound", false},
        {"stripe 0 1", ZPOOL_UNAVAILABLE, {1, -1}, "DevicesMissing", false},
        {"mirror 0 1", ZPOOL_DEGRADED, {0, 1, -1}, "PoolNotFound", true},
        {"mirror 0 1 2", ZPOOL_DEGRADED, {0, 1, 2, -1}, "PoolNotFound", false},
        {"raidz 0 1 2", ZPOOL_DEGRADED, {0, 2, -1}, "DevicesMissing", false},
        {"raidz2 0 1 2 3", ZPOOL_DEGRADED, {0, 1, 2, -1}, "DevicesMissing", false},
        {"raidz3 0 1 2 3 4", ZPOOL_DEGRADED, {-1}, "", false},
        {"mirror 0 1 log mirror 2 3 cache 4 spare 5",
         ZPOOL_DEGRADED,
         {0, 1, -1},
         "DevicesMissing",
         false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        make_disks();
        struct zpool_layout l = *layout(table[i].text);
        l.compression = table[i].whole ? "lz4" : NULL;
        l.ashift = table[i].whole ? 13 : 0;
        struct zpool *p;
        assert_ok((p = zpool_create("tank", &l, &e)));
        assert_string_equal(zpool_name(p), "tank");
        uint64_t guid = zpool_guid(p);
        struct model m = model_new(p);
        assert_int_equal(row_of(p, -1)->state, ZPOOL_ONLINE);
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);

        if (table[i].too_many[0] >= 0) {
            assert_refused(import_without(guid, table[i].too_many), table[i].why);
            struct zpool_found f;
            zpool_scan(&(const char *){disks[table[i].too_many[0] == 0 ? 1 : 0]}, 1, &f);
            if (f.label == ZPOOL_LABEL_MEMBER)
                assert_int_equal(f.pool_guid, guid);
        }
        if (table[i].one_lost == ZPOOL_DEGRADED) {
            assert_ok((p = import_without(guid, (int[]){0, -1})));
            assert_int_equal(row_of(p, -1)->state, ZPOOL_DEGRADED);
            assert_int_equal(row_of(p, 0)->state, ZPOOL_UNAVAILABLE);
            assert_non_null(row_of(p, 0)->why);
            model_open(&m, p);
            model_verify(&m);
            model_write(&m, 7, 100);
            model_close(&m);
            assert_ok(zpool_export(p, &e) == 0);
        }
        /* With all of them; one that was not there gets what it missed. */
        p = import_all(guid);
        assert_int_equal(zpool_guid(p), guid);
        wait_for(all_whole(p) && row_of(p, -1)->state == ZPOOL_ONLINE);
        if (strstr(table[i].text, "spare")) {
            assert_non_null(row_of(p, 4));
            assert_int_equal(row_of(p, 4)->role, ZPOOL_ROLE_CACHE);
            assert_non_null(row_of(p, 5));
            assert_int_equal(row_of(p, 5)->role, ZPOOL_ROLE_SPARE);
            assert_int_equal(row_of(p, 5)->state, ZPOOL_ONLINE);
        }
        model_open(&m, p);
        model_verify(&m);
        model_close(&m);
        assert_ok(zpool_destroy(p, &e) == 0);
        model_done(&m);
    }
}

/* A program, which must succeed and say so. */
static void run_program(const char *const *argv, const char *says)
{
    struct spawn s = {.argv = argv, .timeout_ms = 60000};
    struct spawn_result r;
    assert_ok(spawn_run(&s, &r, &e) == 0);
    assert_ok(spawn_check(&s, &r, &e) == 0);
    if (says && !strstr(r.out.p, says))
        fail_msg("%s says: %s", argv[0], r.out.p);
    spawn_result_done(&r);
}

static void put(int disk, off_t at, const char *text)
{
    int fd = open(disks[disk], O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
    close(fd);
}

/* What create and add refuse, and that they leave it as it was. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } layouts[] = {
        {"mirror 0", "BadLayout"},
        {"raidz 0", "BadLayout"},
        {"raidz2 0 1", "BadLayout"},
        {"spare 0", "BadLayout"},
        {"", "BadLayout"},
        {"stripe 0 cache mirror 1 2", "BadLayout"},
        {"stripe 0 log raidz 1 2", "BadLayout"},
        {"mirror 0 0", "DeviceTwice"},
        {"mirror 0 11", "NotFound"},
        {"stripe 0 spare 0", "DeviceTwice"},
        {"mirror 0 10", "DeviceTooSmall"},
    };
    assert_refused(zpool_start(&(struct zpool_options){0}, &e) == 0, "NoHostID");
    assert_refused(zpool_start(&(struct zpool_options){.host_id = HOST}, &e) == 0, "Started");
    make_disks();
    unlink(disks[11]);
    make_disk(10, 8 * MIB);
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
        assert_refused(zpool_create("tank", layout(layouts[i].text), &e), layouts[i].reason);
    assert_refused(zpool_create("mirror", layout("stripe 0"), &e), "BadName");
    assert_refused(zpool_create("9x", layout("stripe 0"), &e), "BadName");
    struct zpool_layout l = *layout("stripe 0");
    l.compression = "best";
    assert_refused(zpool_create("tank", &l, &e), "BadCompression");
    l = *layout("stripe 0");
    l.ashift = 9;
    assert_refused(zpool_create("tank", &l, &e), "BadLayout");
    struct zpool_device relative = {.path = "d0"};
    struct zpool_group g = {.devices = &relative, .n_devices = 1};
    assert_refused(zpool_create("tank", &(struct zpool_layout){.groups = &g, .n_groups = 1}, &e),
                   "BadPath");

    /* Something foreign, which goes only where that is allowed for this very device. */
    run_program((const char *[]){"mkfs.ext4", "-q", disks[1], NULL}, NULL);
    struct zpool_found f;
    zpool_scan(&(const char *){disks[1]}, 1, &f);
    assert_int_equal(f.label, ZPOOL_LABEL_FOREIGN);
    assert_string_equal(f.what, "ext4");
    assert_refused(zpool_create("tank", layout("mirror 0 1"), &e), "DeviceNotEmpty");
    struct zpool_device two[] = {{.path = disks[0], .overwrite = true}, {.path = disks[1]}};
    g = (struct zpool_group){.type = ZPOOL_MIRROR, .devices = two, .n_devices = 2};
    l = (struct zpool_layout){.groups = &g, .n_groups = 1};
    assert_refused(zpool_create("tank", &l, &e), "DeviceNotEmpty");
    zpool_scan(&(const char *){disks[1]}, 1, &f);
    assert_string_equal(f.what, "ext4");
    two[1].overwrite = true;
    put(0, 3072, "a label of the node's own");
    struct zpool *p;
    assert_ok((p = zpool_create("tank", &l, &e)));
    uint64_t guid = zpool_guid(p);

    /* In use by this pool. */
    assert_refused(zpool_add(p, layout("stripe 1"), &e) == 0, "InThisPool");
    assert_refused(zpool_replace(p, disks[0], &two[1], &e) == 0, "InThisPool");
    assert_refused(zpool_detach(p, disks[7], &e) == 0, "DeviceNotFound");
    assert_refused(
        zpool_import(
            &(struct zpool_import){.guid = guid, .paths = &(const char *){disks[0]}, .n_paths = 1},
            &e),
        "Imported");
    assert_ok(zpool_add(p, layout("spare 2"), &e) == 0);
    assert_ok(zpool_export(p, &e) == 0);

    make_disk(10, 128 * MIB);
    make_disk(11, 128 * MIB);
    /* A pool's devices are not for another, whatever is allowed; those of a destroyed one are. */
    two[0] = (struct zpool_device){.path = disks[2], .overwrite = true};
    assert_refused(zpool_create("other", &l, &e), "DeviceHasPool");
    two[0].path = disks[0];
    assert_refused(zpool_create("other", &l, &e), "DeviceHasPool");
    zpool_scan(&(const char *){disks[0]}, 1, &f);
    assert_int_equal(f.pool_guid, guid);
    assert_true(f.exported);
    assert_int_equal(f.host_id, HOST);
    assert_string_equal(f.pool_name, "tank");
    assert_refused(import_without(guid + 1, NULL), "PoolNotFound");
    p = import_all(guid);
    assert_ok(zpool_destroy(p, &e) == 0);
    zpool_scan(&(const char *){disks[0]}, 1, &f);
    assert_int_equal(f.label, ZPOOL_LABEL_FORMER);
    assert_refused(import_without(guid, NULL), "PoolNotFound");
    two[0].overwrite = two[1].overwrite = false;
    assert_refused(zpool_create("other", &l, &e), "DeviceNotEmpty");
    two[0].overwrite = two[1].overwrite = true;
    assert_ok((p = zpool_create("other", &l, &e)));
    char kept[26] = "";
    int fd = open(disks[0], O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, kept, 25, 3072), 25);
    close(fd);
    assert_string_equal(kept, "a label of the node's own");
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* Day-2 operations, each with data that is written before, during and after. */

static void add_device(struct zpool *p, struct model *m)
{
    uint64_t before = status_of(p).size;
    assert_ok(zpool_add(p, layout("stripe 1"), &e) == 0);
    assert_true(status_of(p).size > before + 100 * MIB);
    model_write(m, 0, 64);
}

static void add_group(struct zpool *p, struct model *m)
{
    uint64_t before = status_of(p).size;
    assert_ok(zpool_add(p, layout("mirror 2 3"), &e) == 0);
    assert_true(status_of(p).size > before + 100 * MIB);
    model_write(m, 0, 64);
}

static void add_extras(struct zpool *p, struct model *m)
{
    assert_ok(zpool_add(p, layout("log mirror 2 3 cache 4 spare 5"), &e) == 0);
    assert_int_equal(row_of(p, 2)->role, ZPOOL_ROLE_LOG);
    assert_int_equal(row_of(p, 4)->role, ZPOOL_ROLE_CACHE);
    assert_int_equal(row_of(p, 5)->role, ZPOOL_ROLE_SPARE);
    model_write(m, 0, 64);
    assert_int_equal(flush(m->v), 0);
    assert_ok(zpool_remove(p, disks[4], &e) == 0);
    assert_ok(zpool_remove(p, disks[5], &e) == 0);
    assert_null(row_of(p, 4));
    assert_null(row_of(p, 5));
    assert_ok(zpool_detach(p, disks[3], &e) == 0);
    assert_ok(zpool_remove(p, disks[2], &e) == 0);
    assert_null(row_of(p, 2));
}

static void resilvered(struct zpool *p)
{
    wait_for(all_whole(p));
    struct zpool_progress r = status_of(p).scan;
    assert_int_equal(r.kind, ZPOOL_SCAN_RESILVER);
    assert_int_equal(r.state, ZPOOL_SCAN_DONE);
    assert_int_equal(r.errors, 0);
    assert_true(r.repaired > 0);
}

static void attach_and_detach(struct zpool *p, struct model *m)
{
    assert_ok(zpool_attach(p, disks[0], &(struct zpool_device){.path = disks[2]}, &e) == 0);
    model_write(m, 50, 64);
    resilvered(p);
    assert_ok(zpool_detach(p, disks[0], &e) == 0);
    assert_ok(zpool_detach(p, disks[1], &e) == 0);
    assert_refused(zpool_detach(p, disks[2], &e) == 0, "NotSupported");
    /* The label of one that left is none of a pool any more. */
    struct zpool_found f;
    zpool_scan(&(const char *){disks[0]}, 1, &f);
    assert_int_equal(f.label, ZPOOL_LABEL_FORMER);
}

static void replace(struct zpool *p, struct model *m)
{
    assert_ok(zpool_replace(p, disks[1], &(struct zpool_device){.path = disks[6]}, &e) == 0);
    model_write(m, 50, 64);
    resilvered(p);
    wait_for(!row_of(p, 1));
    assert_int_equal(row_of(p, 6)->state, ZPOOL_ONLINE);
}

static void replace_lost(struct zpool *p, struct model *m)
{
    struct zpool_fault dead = {disks[1], ZPOOL_FAULT_READ | ZPOOL_FAULT_WRITE | ZPOOL_FAULT_SYNC,
                               ZPOOL_FAULT_EIO};
    zpool_fault_set(&dead, 1);
    model_write(m, 50, 64);
    replace(p, m);
    zpool_fault_set(NULL, 0);
}

static void spare_stays(struct zpool *p, struct model *m)
{
    assert_ok(zpool_replace(p, disks[1], &(struct zpool_device){.path = disks[5]}, &e) == 0);
    model_write(m, 50, 64);
    resilvered(p);
    assert_true(row_of(p, 5)->state == ZPOOL_ONLINE && row_of(p, 1));
    assert_ok(zpool_detach(p, disks[1], &e) == 0);
    wait_for(row_of(p, 5)->role == ZPOOL_ROLE_DATA);
    assert_null(row_of(p, 1));
}

static bool spare_in_use(struct zpool *p, int disk)
{
    struct zpool_status s;
    assert_ok(zpool_status_read(p, &s, &e) == 0);
    bool used = false;
    for (size_t i = 0; i < s.n_vdevs; i++)
        used |= strcmp(s.vdevs[i].path, disks[disk]) == 0 && s.vdevs[i].spare_in_use;
    zpool_status_done(&s);
    return used;
}

static void spare_returns(struct zpool *p, struct model *m)
{
    assert_ok(zpool_replace(p, disks[1], &(struct zpool_device){.path = disks[5]}, &e) == 0);
    resilvered(p);
    assert_true(spare_in_use(p, 5));
    model_write(m, 50, 64);
    assert_ok(zpool_replace(p, disks[1], &(struct zpool_device){.path = disks[6]}, &e) == 0);
    resilvered(p);
    wait_for(!row_of(p, 1) && !spare_in_use(p, 5));
    assert_int_equal(row_of(p, 5)->role, ZPOOL_ROLE_SPARE);
    assert_int_equal(row_of(p, 6)->state, ZPOOL_ONLINE);
}

static void offline_and_online(struct zpool *p, struct model *m)
{
    assert_ok(zpool_offline(p, disks[1], &e) == 0);
    assert_int_equal(row_of(p, -1)->state, ZPOOL_DEGRADED);
    assert_int_equal(row_of(p, 1)->state, ZPOOL_OFFLINE);
    assert_refused(zpool_offline(p, disks[0], &e) == 0, "Busy");
    model_write(m, 50, 64);
    assert_ok(zpool_sync(p, &e) == 0); /* or there is nothing that it missed */
    char guid[32];
    snprintf(guid, sizeof(guid), "%lu", row_of(p, 1)->guid);
    assert_ok(zpool_online(p, guid, false, &e) == 0);
    resilvered(p);
    wait_for(row_of(p, -1)->state == ZPOOL_ONLINE);
}

static void evacuate(struct zpool *p, struct model *m)
{
    assert_ok(zpool_remove(p, disks[1], &e) == 0);
    model_write(m, 50, 64);
    wait_for(status_of(p).removal.state == ZPOOL_SCAN_DONE);
    wait_for(!row_of(p, 1));
}

static void expand(struct zpool *p, struct model *m)
{
    uint64_t before = status_of(p).size;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(truncate(disks[i], 256 * MIB), 0);
        assert_ok(zpool_online(p, disks[i], true, &e) == 0);
    }
    wait_for(status_of(p).size >= before + 100 * MIB);
    model_write(m, 50, 64);
}

/* One side of the mirror is overwritten: everything is still read, and a scrub mends it. */
static void scrub(struct zpool *p, struct model *m)
{
    assert_ok(zpool_sync(p, &e) == 0);
    int fd = open(disks[1], O_RDWR | O_CLOEXEC);
    static char garbage[MIB];
    memset(garbage, 0xa5, sizeof(garbage));
    for (off_t at = 4 * MIB; at < 120 * MIB; at += MIB)
        assert_int_equal(pwrite(fd, garbage, sizeof(garbage), at), sizeof(garbage));
    close(fd);
    assert_ok(zpool_scrub(p, true, &e) == 0);
    wait_for(scan_is_over(p));
    struct zpool_progress r = status_of(p).scan;
    assert_int_equal(r.kind, ZPOOL_SCAN_SCRUB);
    assert_int_equal(r.state, ZPOOL_SCAN_DONE);
    assert_true(r.repaired >= m->pages * PAGE);
    assert_int_equal(r.errors, 0);
    assert_true(row_of(p, 1)->checksum_errors > 0);
    assert_int_equal(row_of(p, 0)->checksum_errors, 0);
    assert_ok(zpool_clear(p, &e) == 0);
    assert_int_equal(row_of(p, 1)->checksum_errors, 0);
    assert_ok(zpool_scrub(p, true, &e) == 0);
    wait_for(scan_is_over(p));
    assert_int_equal(status_of(p).scan.repaired, 0);
    assert_int_equal(row_of(p, 1)->checksum_errors, 0);
    assert_ok(zpool_scrub(p, false, &e) == 0); /* none runs */
}

static void test_operations(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        void (*fn)(struct zpool *p, struct model *m);
        off_t first; /* size of disk 0 in MiB, if another */
    } table[] = {
        {"add a device", "stripe 0", add_device},
        {"add a group", "mirror 0 1", add_group},
        {"log, cache, spare", "mirror 0 1", add_extras},
        {"attach, detach", "mirror 0 1", attach_and_detach},
        {"replace in a mirror", "mirror 0 1", replace},
        {"replace in raidz", "raidz 0 1 2", replace},
        {"replace in a stripe", "stripe 0 1", replace},
        {"replace a dead one", "raidz 0 1 2", replace_lost},
        {"a spare stays", "mirror 0 1 spare 5", spare_stays},
        {"a spare returns", "raidz 0 1 2 spare 5", spare_returns},
        {"offline, online", "mirror 0 1", offline_and_online},
        {"evacuate", "stripe 0 1", evacuate, 512},
        {"expand", "mirror 0 1", expand},
        {"scrub", "mirror 0 1", scrub},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        make_disks();
        if (table[i].first)
            make_disk(0, table[i].first * MIB);
        int64_t start = now_ms();
        struct zpool *p = create(table[i].text);
        uint64_t guid = zpool_guid(p);
        struct model m = model_new(p);
        table[i].fn(p, &m);
        model_verify(&m);
        model_write(&m, 200, 300);
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);
        p = import_all(guid);
        assert_int_equal(row_of(p, -1)->state, ZPOOL_ONLINE);
        model_open(&m, p);
        model_verify(&m);
        assert_refused(zpool_export(p, &e) == 0, "Busy"); /* a volume is open */
        model_done(&m);
        assert_ok(zpool_destroy(p, &e) == 0);
        print_message("# %s: %.1f s\n", table[i].name, (double)(now_ms() - start) / 1000);
    }
}

/* A device that was not there, or is elsewhere now, comes back without an import. */
static void test_comes_back(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("mirror 0 1");
    uint64_t guid = zpool_guid(p);
    struct model m = model_new(p);
    for (int moved = 0; moved <= 1; moved++) {
        model_close(&m);
        assert_ok(zpool_export(p, &e) == 0);
        assert_ok((p = import_without(guid, (int[]){1, -1})));
        model_open(&m, p);
        model_write(&m, 50, 64);
        assert_ok(zpool_sync(p, &e) == 0);
        assert_int_equal(row_of(p, 1)->state, ZPOOL_UNAVAILABLE);
        if (moved) {
            assert_refused(zpool_move(p, disks[1], disks[7], &e) == 0, "OtherDevice");
            assert_int_equal(rename(disks[1], disks[7]), 0);
            assert_ok(zpool_move(p, disks[1], disks[7], &e) == 0);
        }
        assert_ok(zpool_online(p, disks[moved ? 7 : 1], false, &e) == 0);
        wait_for(all_whole(p) && row_of(p, -1)->state == ZPOOL_ONLINE);
        model_verify(&m);
    }
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
}

/* A block device over a disk's file, which goes when its last user does; -1 where there can be none. */
static int open_loop(int disk, uint32_t sector, char *ret_path, size_t size)
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fd = -1;
    for (int tries = 0; control >= 0 && fd < 0 && tries < 20;
         tries++) { /* others look for one, too */
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        snprintf(ret_path, size, "/dev/loop%d", number);
        fd = number < 0 ? -1 : open(ret_path, O_RDWR | O_CLOEXEC);
        int file = open(disks[disk], O_RDWR | O_CLOEXEC);
        struct loop_config c = {.fd = (uint32_t)file, .block_size = sector};
        c.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &c) < 0) {
            close(fd);
            fd = -1;
        }
        close(file);
    }
    if (control >= 0)
        close(control);
    return fd;
}

/* Block devices, also such with sectors of 4096 bytes: held exclusively, found again under another name. */
static void test_block_devices(void **state)
{
    (void)state;
    make_disks();
    char paths[2][32], again[32];
    int fds[2] = {open_loop(0, 4096, paths[0], 32), open_loop(1, 512, paths[1], 32)};
    if (fds[0] < 0 || fds[1] < 0)
        skip();
    struct zpool_device devices[] = {{.path = paths[0]}, {.path = paths[1]}};
    struct zpool_group g = {.type = ZPOOL_MIRROR, .devices = devices, .n_devices = 2};
    struct zpool *p;
    assert_ok((p = zpool_create("tank", &(struct zpool_layout){.groups = &g, .n_groups = 1}, &e)));
    uint64_t guid = zpool_guid(p);
    struct model m = model_new(p);
    assert_int_equal(open(paths[0], O_RDWR | O_EXCL | O_CLOEXEC), -1);
    assert_int_equal(errno, EBUSY);
    model_verify(&m);
    model_close(&m);
    assert_ok(zpool_export(p, &e) == 0);

    /* Somebody else uses it. */
    int other = open(paths[0], O_RDWR | O_EXCL | O_CLOEXEC);
    assert_true(other >= 0);
    const char *both[] = {paths[0], paths[1]};
    assert_ok((p = zpool_import(&(struct zpool_import){guid, both, 2}, &e)));
    assert_int_equal(row_of(p, -1)->state, ZPOOL_DEGRADED);
    assert_ok(zpool_export(p, &e) == 0);
    close(other);

    close(fds[0]);
    fds[0] = open_loop(0, 4096, again, 32);
    assert_true(fds[0] >= 0);
    both[0] = again;
    assert_ok((p = zpool_import(&(struct zpool_import){guid, both, 2}, &e)));
    wait_for(all_whole(p) && row_of(p, -1)->state == ZPOOL_ONLINE);
    model_open(&m, p);
    model_verify(&m);
    model_done(&m);
    assert_ok(zpool_destroy(p, &e) == 0);
    close(fds[0]);
    close(fds[1]);
}

/* Another program of OpenZFS reads what was written, checks every block and accounts for all space. */
static void test_zdb(void **state)
{
    (void)state;
    make_disks();
    struct zpool *p = create("raidz 0 1 2 log 3");
    struct model m = model_new(p);
    assert_ok(zpool_snapshot(p, "vol", "s", &e) == 0);
    model_write(&m, 100, 500);
    model_done(&m);
    assert_ok(zpool_export(p, &e) == 0);
    run_program((const char *[]){"zdb", "-e", "-p", dir, "-bcc", "tank", NULL}, "No leaks");
    run_program((const char *[]){"zdb", "-e", "-p", dir, "-d", "tank", NULL},
                "Dataset tank/vol@s [ZVOL]");
}

/* A path may come from anybody: what is no device is not even read, and stays as it was. */
static void test_no_devices(void **state)
{
    (void)state;
    char outside[] = "/tmp/zpoolfile.XXXXXX", pipe[96], link[96], up[200];
    int fd = mkstemp(outside);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 128 * MIB), 0);
    assert_int_equal(pwrite(fd, "precious", 8, 0), 8);
    make_disks();
    snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    snprintf(up, sizeof(up), "%s/../%s", dir, outside + strlen("/tmp/"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink(outside, link), 0);
    const char *paths[] = {outside, pipe, link, up, dir, "/dev/null"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct zpool_found f;
        zpool_scan(&paths[i], 1, &f);
        assert_int_equal(f.error, ENOTBLK);
        const struct zpool_device devices[] = {{.path = disks[0]},
                                               {.path = paths[i], .overwrite = true}};
        const struct zpool_group g = {ZPOOL_MIRROR, ZPOOL_ROLE_DATA, devices, 2};
        const struct zpool_layout l = {.groups = &g, .n_groups = 1};
        e = (struct err){0};
        assert_null(zpool_create("tank", &l, &e));
        assert_int_equal(zpool_label_clear(paths[i], 0, 0, &e), -1);
    }
    char text[8];
    struct stat st;
    assert_int_equal(pread(fd, text, 8, 0), 8);
    assert_memory_equal(text, "precious", 8);
    assert_true(fstat(fd, &st) == 0 && st.st_blocks <= 16);
    close(fd);
    unlink(outside);
    unlink(pipe);
    unlink(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_operations),    cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_block_devices), cmocka_unit_test(test_zdb),
        cmocka_unit_test(test_no_devices),
    };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
