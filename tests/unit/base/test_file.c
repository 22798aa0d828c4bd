#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "unit.h"

/* Each test runs in an empty directory of its own. */
static int enter(void **state)
{
    char dir[] = "/tmp/test-file-XXXXXX";
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    *state = mem_strdup(dir);
    return 0;
}

static int leave(void **state)
{
    struct err e;
    int r = chdir("/");
    if (file_remove_tree(*state, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        r = -1;
    }
    free(*state);
    return r;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_content(const char *path, const char *want)
{
    _cleanup_(str_done) struct str s = {0};
    struct err e;
    if (file_read(path, 1 << 20, &s, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(str_get(&s), want);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int count_entries(const char *path)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static int count_fds(void)
{
    return count_entries("/proc/self/fd");
}

static void test_read(void **state)
{
    (void)state;
    _cleanup_(str_done) struct str s = {0};
    struct err e;
    put("empty", "");
    put("five", "12345");
    str_append(&s, "so: ");
    assert_int_equal(file_read("empty", 0, &s, &e), 0);
    assert_int_equal(file_read("five", 5, &s, &e), 0);
    assert_string_equal(str_get(&s), "so: 12345");

    assert_int_equal(file_read("five", 4, &s, &e), -1);
    assert_int_equal(e.code, ERR_OUT_OF_RANGE);
    assert_string_equal(e.reason, "FileTooLarge");
    assert_non_null(strstr(e.msg, "five"));
    assert_string_equal(str_get(&s), "so: 12345");

    /* longer than one read, and bytes that are no text */
    str_clear(&s);
    for (int i = 0; i < 50000; i++)
        str_append_c(&s, (char)i);
    assert_int_equal(file_replace("long", s.p, s.len, 0600, &e), 0);
    _cleanup_(str_done) struct str back = {0};
    assert_int_equal(file_read("long", 50000, &back, &e), 0);
    assert_int_equal(back.len, s.len);
    assert_memory_equal(back.p, s.p, s.len);
    assert_int_equal(file_read("long", 49999, &back, &e), -1);
    assert_int_equal(back.len, s.len);

    /* files that claim to have no size */
    str_clear(&s);
    assert_int_equal(file_read("/proc/self/status", 1 << 16, &s, &e), 0);
    assert_true(s.len > 0);
}

static void test_read_failures(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum err_code code;
        const char *reason;
    } table[] = {
        {"missing", ERR_NOT_FOUND, "NotFound"},
        {"", ERR_NOT_FOUND, "NotFound"},
        {".", ERR_FAILED_PRECONDITION, "IsADirectory"},
        {"fifo", ERR_FAILED_PRECONDITION, "NotAFile"},
        {"/dev/zero", ERR_FAILED_PRECONDITION, "NotAFile"},
        {"file/x", ERR_FAILED_PRECONDITION, "NotADirectory"},
        {"loop", ERR_INTERNAL, "SystemError"},
    };
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    put("file", "");
    int fds = count_fds();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        _cleanup_(str_done) struct str s = {0};
        struct err e = {0};
        assert_int_equal(file_read(table[i].path, 100, &s, &e), -1);
        assert_int_equal(e.code, table[i].code);
        assert_string_equal(e.reason, table[i].reason);
        assert_non_null(strstr(e.msg, table[i].path));
        assert_int_equal(s.len, 0);
    }
    assert_int_equal(count_fds(), fds);
}

static void test_replace(void **state)
{
    struct err e;
    struct stat st;
    mode_t old = umask(077);
    assert_int_equal(file_replace("f", "one", 3, 0644, &e), 0);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_content("f", "one");

    assert_int_equal(file_replace("f", "two!", 4, 0600, &e), 0);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_content("f", "two!");
    assert_int_equal(file_replace("f", NULL, 0, 0600, &e), 0);
    assert_content("f", "");

    _cleanup_free_ char *absolute = mem_printf("%s/g", (char *)*state);
    assert_int_equal(file_replace(absolute, "x", 1, 0600, &e), 0);
    assert_content("g", "x");

    /* a link is replaced; what it points at stays */
    assert_int_equal(symlink("g", "link"), 0);
    assert_int_equal(file_replace("link", "new", 3, 0600, &e), 0);
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_content("link", "new");
    assert_content("g", "x");

    /* a name of full length leaves no room to append to it */
    char longest[NAME_MAX + 1] = {0};
    memset(longest, 'n', NAME_MAX);
    assert_int_equal(file_replace(longest, "x", 1, 0600, &e), 0);
    assert_content(longest, "x");
    assert_int_equal(count_entries("."), 4);
    umask(old);
}

/* Whoever reads while a file is replaced sees one whole version, and the old one lives on. */
static void test_replace_leaves_readers_alone(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(file_replace("f", "old", 3, 0600, &e), 0);
    int fd = open("f", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_replace("f", "newer", 5, 0600, &e), 0);
    char buf[8] = {0};
    assert_int_equal(read(fd, buf, sizeof(buf)), 3);
    assert_string_equal(buf, "old");
    close(fd);
}

static void test_replace_failures(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum err_code code;
    } table[] = {
        {"missing/f", ERR_NOT_FOUND},
        {"file/f", ERR_FAILED_PRECONDITION},
        {"", ERR_INVALID_ARGUMENT},
        {"/", ERR_INVALID_ARGUMENT},
        {".", ERR_INVALID_ARGUMENT},
        {"dir/", ERR_INVALID_ARGUMENT},
        {"dir/..", ERR_INVALID_ARGUMENT},
        {"dir", ERR_FAILED_PRECONDITION}, /* the rename fails last of all */
    };
    put("file", "kept");
    assert_int_equal(mkdir("dir", 0700), 0);
    int fds = count_fds();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_int_equal(file_replace(table[i].path, "x", 1, 0600, &e), -1);
        assert_int_equal(e.code, table[i].code);
        assert_non_null(strstr(e.msg, table[i].path));
    }
    assert_int_equal(count_fds(), fds);
    assert_int_equal(count_entries("."), 2);
    assert_int_equal(count_entries("dir"), 0);
    assert_content("file", "kept");
}

/* The disk fills up in the middle: the old content stays and no temporary file is left. */
static void test_replace_without_room(void **state)
{
    (void)state;
    struct err e = {0};
    struct rlimit was, now;
    put("file", "kept");
    _cleanup_free_ char *data = mem_zalloc(100000);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    now = was;
    now.rlim_cur = 5000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    int r = file_replace("file", data, 100000, 0600, &e);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    assert_int_equal(r, -1);
    assert_non_null(strstr(e.msg, "cannot write file: "));
    assert_content("file", "kept");
    assert_int_equal(count_entries("."), 1);
}

static void test_make_dirs(void **state)
{
    struct err e = {0};
    struct stat st;
    assert_int_equal(file_make_dirs("a/b//c/", 0750, &e), 0);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(file_make_dirs("a/b/c", 0700, &e), 0);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(file_make_dirs("/", 0700, &e), 0);
    assert_int_equal(file_make_dirs(".", 0700, &e), 0);
    _cleanup_free_ char *absolute = mem_printf("%s/x/../y", (char *)*state);
    assert_int_equal(file_make_dirs(absolute, 0700, &e), 0);
    assert_true(exists("x") && exists("y"));
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(file_make_dirs("link/b/d", 0700, &e), 0);
    assert_true(exists("a/b/d"));

    put("file", "");
    static const struct {
        const char *path;
        enum err_code code;
    } table[] = {
        {"", ERR_NOT_FOUND},
        {"file", ERR_FAILED_PRECONDITION},
        {"file/x", ERR_FAILED_PRECONDITION},
        {"/proc/self/nothing", ERR_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(file_make_dirs(table[i].path, 0700, &e), -1);
        assert_int_equal(e.code, table[i].code);
        assert_non_null(strstr(e.msg, table[i].path));
    }
}

static void test_remove_tree(void **state)
{
    (void)state;
    struct err e;
    int fds = count_fds();
    assert_int_equal(file_remove_tree("missing", &e), 0);
    assert_int_equal(file_remove_tree("missing/too", &e), 0);

    put("file", "");
    assert_int_equal(file_remove_tree("file", &e), 0);
    assert_false(exists("file"));

    /* wide, with every kind of entry, and links out of the tree */
    assert_int_equal(file_make_dirs("outside", 0700, &e), 0);
    put("outside/precious", "kept");
    assert_int_equal(file_make_dirs("t/a/b/c", 0700, &e), 0);
    assert_int_equal(file_make_dirs("t/z", 0700, &e), 0);
    for (int i = 0; i < 200; i++) {
        char path[64];
        snprintf(path, sizeof(path), "t/a/file%d", i);
        put(path, "x");
        snprintf(path, sizeof(path), "t/dir%d", i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(symlink("../outside", "t/link"), 0);
    assert_int_equal(symlink("../../outside/precious", "t/a/link"), 0);
    assert_int_equal(symlink("nowhere", "t/a/dangling"), 0);
    assert_int_equal(mkfifo("t/a/b/fifo", 0600), 0);
    assert_int_equal(file_remove_tree("t", &e), 0);
    assert_false(exists("t"));
    assert_content("outside/precious", "kept");

    /* a link as the tree itself */
    assert_int_equal(symlink("outside", "link"), 0);
    assert_int_equal(file_remove_tree("link", &e), 0);
    assert_false(exists("link"));
    assert_content("outside/precious", "kept");
    assert_int_equal(count_fds(), fds);
}

/* Deeper than descriptors, path names or a stack would allow. */
static void test_remove_deep_tree(void **state)
{
    enum { DEPTH = 3000 };
    assert_int_equal(mkdir("t", 0700), 0);
    assert_int_equal(chdir("t"), 0);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdir("deep", 0700), 0);
        assert_int_equal(chdir("deep"), 0);
    }
    assert_int_equal(chdir(*state), 0);

    struct rlimit was, now;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    now.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    struct err e = {0};
    int r = file_remove_tree("t", &e);
    setrlimit(RLIMIT_NOFILE, &was);
    if (r < 0)
        fail_msg("%s", e.msg);
    assert_false(exists("t"));
}

static void test_remove_refuses(void **state)
{
    (void)state;
    static const char *const table[] = {"", "/", ".", "..", "a/", "a/.", "a/.."};
    assert_int_equal(mkdir("a", 0700), 0);
    put("a/f", "");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};
        assert_int_equal(file_remove_tree(table[i], &e), -1);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(file_remove_tree(table[i], NULL), -1);
    }
    struct err e = {0};
    assert_int_equal(file_remove_tree("a/f/x", &e), -1);
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    assert_true(exists("a/f"));
}

static void test_remove_stops_at_mounts(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(file_make_dirs("t/below/here", 0700, &e), 0);
    assert_int_equal(mkdir("disk", 0700), 0);
    put("disk/precious", "kept");
    if (mount("disk", "t/below/here", NULL, MS_BIND, NULL) < 0)
        skip(); /* needs root */
    int below = file_remove_tree("t", &e);
    enum err_code code = e.code;
    int itself = file_remove_tree("t/below/here", NULL);
    bool kept = exists("disk/precious");
    umount2("t/below/here", MNT_DETACH);
    assert_int_equal(below, -1);
    assert_int_equal(code, ERR_FAILED_PRECONDITION);
    assert_int_equal(itself, -1);
    assert_true(kept);
    assert_int_equal(file_remove_tree("t", &e), 0);
}

/* As a block volume is published: a device bound to a file. */
static void test_remove_stops_at_mounted_files(void **state)
{
    (void)state;
    assert_int_equal(mkdir("t", 0700), 0);
    put("t/target", "");
    put("device", "kept");
    if (mount("device", "t/target", NULL, MS_BIND, NULL) < 0)
        skip(); /* needs root */
    static const char *const paths[] = {"t/target", "t"};
    struct err e[ARRAY_SIZE(paths)] = {0};
    int removed[ARRAY_SIZE(paths)];
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        removed[i] = file_remove_tree(paths[i], &e[i]);
    umount2("t/target", MNT_DETACH);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        assert_int_equal(removed[i], -1);
        assert_int_equal(e[i].code, ERR_FAILED_PRECONDITION);
        assert_string_equal(e[i].reason, "MountPoint");
    }
    assert_content("device", "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, enter, leave),
        cmocka_unit_test_setup_teardown(test_read_failures, enter, leave),
        cmocka_unit_test_setup_teardown(test_replace, enter, leave),
        cmocka_unit_test_setup_teardown(test_replace_leaves_readers_alone, enter, leave),
        cmocka_unit_test_setup_teardown(test_replace_failures, enter, leave),
        cmocka_unit_test_setup_teardown(test_replace_without_room, enter, leave),
        cmocka_unit_test_setup_teardown(test_make_dirs, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove_tree, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove_deep_tree, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove_refuses, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove_stops_at_mounts, enter, leave),
        cmocka_unit_test_setup_teardown(test_remove_stops_at_mounted_files, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
