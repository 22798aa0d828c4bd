#include "attach/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/ask.h"
#include "attach/impl.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/net.h"
#include "base/spawn.h"
#include "base/str.h"

#define LOGIN_NS (10 * CLOCK_SECOND)
#define START_NS                                                                                   \
    (15 * CLOCK_SECOND) /* for what is not the login: waiting for a lock, a busy machine */

enum { REQUEST_MOST = 64 << 10, PORT = 3260 };

static int check_request(const struct attach_request *r, char **ret_portal, struct err *e)
{
    char *address;
    uint16_t port;
    if (!r->portal || !r->iqn || !*r->iqn || !r->initiator || !*r->initiator)
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidRequest",
                       "a portal, a target's name and an initiator's name are needed");
    if (net_parse(r->portal, PORT, &address, &port, e) < 0)
        return -1;
    *ret_portal = mem_printf(strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, (unsigned)port);
    free(address);
    if (!r->chap_user != !r->chap_secret || !r->mutual_user != !r->mutual_secret ||
        (r->mutual_user && !r->chap_user))
        return err_set(e, ERR_INVALID_ARGUMENT, "InvalidRequest",
                       "CHAP needs a user and a secret, and mutual CHAP needs both ways");
    return 0;
}

static json_t *describe(const struct attach_request *r, const char *portal)
{
    return json_pack("{ss ss ss si ss*}", "portal", portal, "target", r->iqn, "initiator",
                     r->initiator, "lun", (int)r->lun, "chapUser", r->chap_user);
}

/* Whether what runs was asked for in the same words. */
static bool same_request(const struct attach_place *p, const json_t *wanted)
{
    _cleanup_(str_done) struct str text = {0};
    struct err e;
    if (file_read(p->request, REQUEST_MOST, &text, &e) < 0)
        return false;
    json_auto_t *was = json_parse(text.p, text.len, NULL, &e);
    return was && json_equal(was, wanted);
}

static int write_files(const struct attach_place *p, const struct attach_request *r,
                       const json_t *wanted, struct err *e)
{
    const char *names[] = {"chap", "mutual"}, *secrets[] = {r->chap_secret, r->mutual_secret};
    for (int i = 0; i < 2; i++) {
        _cleanup_free_ char *path = mem_printf("%s/%s", p->folder, names[i]);
        unlink(path);
        if (secrets[i] && file_replace(path, secrets[i], strlen(secrets[i]), 0600, e) < 0)
            return -1;
    }
    _cleanup_(str_done) struct str text = {0};
    json_format_pretty(wanted, &text);
    str_append_c(&text, '\n');
    return file_replace(p->request, text.p, text.len, 0600, e);
}

/* The process tells by its exit status which code its error has. */
static int start(const struct attach_node *n, const struct attach_place *p,
                 const struct attach_request *r, const char *portal, struct err *e)
{
    int64_t within = r->within_ns > 0 ? r->within_ns : LOGIN_NS;
    _cleanup_free_ char *lun = mem_printf("%u", r->lun);
    _cleanup_free_ char *fail = mem_printf("%lldms", (long long)(r->fail_after_ns / 1000000));
    _cleanup_free_ char *login = mem_printf("%lldms", (long long)(within / 1000000));
    _cleanup_free_ char *log = mem_printf("%s/log", p->folder);
    _cleanup_free_ char *chap = mem_printf("%s/chap", p->folder);
    _cleanup_free_ char *mutual = mem_printf("%s/mutual", p->folder);
    const char *argv[40] = {
        n->program, "attach",         "serve",    "--background", log,          "--mount",
        p->mount,   "--control",      p->control, "--portal",     portal,       "--iqn",
        r->iqn,     "--lun",          lun,        "--initiator",  r->initiator, "--fail-after",
        fail,       "--login-within", login};
    size_t at = 21;
    const char *users[] = {r->chap_user, r->mutual_user}, *files[] = {chap, mutual};
    const char *words[][2] = {{"--chap-user", "--chap-secret-file"},
                              {"--mutual-user", "--mutual-secret-file"}};
    for (int i = 0; i < 2 && users[i]; i++) {
        const char *more[] = {words[i][0], users[i], words[i][1], files[i]};
        memcpy(argv + at, more, sizeof(more));
        at += 4;
    }
    struct spawn s = {.argv = argv, .timeout_ms = (int)((within + START_NS) / 1000000)};
    _cleanup_(spawn_result_done) struct spawn_result result = {0};
    if (spawn_run(&s, &result, e) < 0)
        return -1;
    if (result.signal || result.status < ATTACH_EXIT_BASE)
        return spawn_check(&s, &result, e);
    const char *text = str_get(&result.err), *colon = strstr(text, ": ");
    text = str_starts_with(text, "orlop attach: ") && colon ? colon + 2 : text;
    return err_set(e, (enum err_code)(result.status - ATTACH_EXIT_BASE), "AttachFailed", "%.*s",
                   (int)strcspn(text, "\n"), text);
}

/* What an earlier process left is dead: nobody answers there any more. */
static int clean(const struct attach_place *p, struct err *e)
{
    if (attach_drop_loops(p, 0, e) < 0)
        return -1;
    while (umount2(p->mount, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        ;
    return 0;
}

/* The device on the live mount, made if there is none, with the size of the volume. */
static int give_device(const struct attach_place *p, struct attach_volume *v, struct err *e)
{
    struct stat st;
    struct attach_loop made;
    if (stat(p->file, &st) < 0)
        return err_errno(e, errno, "%s", p->file);
    if (attach_drop_loops(p, st.st_dev, e) < 0)
        return -1;
    v->stale = 0;
    if (!v->device[0]) {
        if (attach_loop_make(p->mount, p->label, v->block_size, &made, e) < 0)
            return -1;
        memcpy(v->device, made.path, sizeof(v->device));
    }
    uint64_t size;
    if (attach_loop_grow(v->device, &size, e) < 0)
        return -1;
    if (size != v->size)
        return err_set(e, ERR_INTERNAL, "WrongSize", "%s has %llu bytes, and the volume %llu",
                       v->device, (unsigned long long)size, (unsigned long long)v->size);
    return 0;
}

static int add_locked(const struct attach_node *n, const struct attach_place *p,
                      const struct attach_request *r, const char *portal, struct attach_volume *ret,
                      struct err *e)
{
    json_auto_t *wanted = describe(r, portal);
    if (attach_inspect(p, r->id, ret, e) < 0)
        return -1;
    if (ret->alive && !same_request(p, wanted))
        return err_set(
            e, ERR_FAILED_PRECONDITION, "AttachedElsewhere",
            "the volume is attached from another target or in another name: detach it first");
    if (!ret->alive &&
        (clean(p, e) < 0 || write_files(p, r, wanted, e) < 0 || start(n, p, r, portal, e) < 0)) {
        struct err unheard;
        pid_t pid;
        if (!attach_place_alive(
                p, &pid)) /* nothing was made, so nothing stays, secrets least of all */
            file_remove_tree(p->folder, &unheard);
        return -1;
    }
    if (attach_inspect(p, r->id, ret, e) < 0)
        return -1;
    if (!ret->alive || !ret->mounted)
        return err_set(e, ERR_UNAVAILABLE, "NotServed",
                       "the process of the volume does not answer; see %s/log", p->folder);
    return give_device(p, ret, e);
}

int attach_add(const struct attach_node *n, const struct attach_request *r,
               struct attach_volume *ret, struct err *e)
{
    struct attach_place p;
    _cleanup_free_ char *portal = NULL;
    int result = attach_place_init(&p, n, r->id, e);
    if (result == 0)
        result = check_request(r, &portal, e);
    if (result == 0)
        result = attach_place_lock(&p, e);
    if (result == 0)
        result = add_locked(n, &p, r, portal, ret, e);
    attach_place_done(&p);
    return result;
}

int attach_find(const struct attach_node *n, const char *id, struct attach_volume *ret,
                struct err *e)
{
    struct attach_place p;
    int result = attach_place_init(&p, n, id, e);
    if (result == 0)
        result = attach_inspect(&p, id, ret, e);
    if (result == 0 && !attach_place_exists(&p) && !ret->stale)
        result = err_set(e, ERR_NOT_FOUND, "NotAttached", "volume %s is not attached here", id);
    attach_place_done(&p);
    return result;
}

static int grow_locked(const struct attach_place *p, const char *id, uint64_t *ret_size,
                       struct err *e)
{
    struct attach_volume v;
    struct stat st;
    json_t *said = NULL;
    if (attach_inspect(p, id, &v, e) < 0)
        return -1;
    if (!attach_is_whole(&v))
        return err_set(e, ERR_FAILED_PRECONDITION, "NotAttached",
                       "volume %s is not attached here, or its process has ended", id);
    if (attach_ask(p->control, "rescan", LOGIN_NS, &said, e) < 0)
        return -1;
    uint64_t size = (uint64_t)json_integer_value(json_object_get(said, "size"));
    json_decref(said);
    /* The kernel asks for the size of the file again, and then the device for the kernel's. */
    if (stat(p->file, &st) < 0)
        return err_errno(e, errno, "%s", p->file);
    if (attach_loop_grow(v.device, ret_size, e) < 0)
        return -1;
    return *ret_size == size
               ? 0
               : err_set(e, ERR_INTERNAL, "WrongSize", "%s has %llu bytes, and the volume %llu",
                         v.device, (unsigned long long)*ret_size, (unsigned long long)size);
}

int attach_grow(const struct attach_node *n, const char *id, uint64_t *ret_size, struct err *e)
{
    struct attach_place p;
    int result = attach_place_init(&p, n, id, e);
    if (result == 0 && !attach_place_exists(&p))
        result = err_set(e, ERR_NOT_FOUND, "NotAttached", "volume %s is not attached here", id);
    if (result == 0)
        result = attach_place_lock(&p, e);
    if (result == 0)
        result = grow_locked(&p, id, ret_size, e);
    attach_place_done(&p);
    return result;
}
