/*
 * The folder that lvm works in.
 *
 *     FOLDER/etc/lvm.conf    written anew at each start
 *     FOLDER/lock, backup    lvm's own
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/spawn.h"
#include "lvm/impl.h"

enum { MISC_BYTES = 64 << 10, ENVIRON_BYTES = 4096, PATIENCE_MS = 120000, STEP_MS = 10 };

/*
 * use_aio: io_destroy() takes 40 ms on some kernels. udev: whether one runs here or on the other side of
 * a container cannot be known, so lvm makes the devices itself. reserved_memory: locking it costs more
 * than all else, and is for those whose root file system is a volume.
 */
static const char config[] = "devices {\n"
                             "  dir = \"%s\"\n"
                             "  scan = [ \"%s\" ]\n"
                             "  use_devicesfile = 0\n"
                             "  obtain_device_list_from_udev = 0\n"
                             "  external_device_info_source = \"none\"\n"
                             "  hints = \"none\"\n"
                             "  sysfs_scan = 0\n"
                             "  multipath_component_detection = 0\n"
                             "  md_component_detection = 0\n"
                             "  scan_lvs = 0\n"
                             "}\n"
                             "backup {\n"
                             "  backup = 1\n"
                             "  backup_dir = \"%s/backup\"\n"
                             "  archive = 0\n"
                             "}\n"
                             "global {\n"
                             "  activation = %d\n"
                             "  use_aio = 0\n"
                             "  locking_dir = \"%s/lock\"\n"
                             "  use_lvmpolld = 0\n"
                             "  use_lvmlockd = 0\n"
                             "  notify_dbus = 0\n"
                             "  event_activation = 0\n"
                             "}\n"
                             "activation {\n"
                             "  udev_sync = 0\n"
                             "  udev_rules = 0\n"
                             "  verify_udev_operations = %d\n"
                             "  monitoring = 0\n"
                             "  reserved_memory = 0\n"
                             "  reserved_stack = 0\n"
                             "}\n";

static bool listed_in_misc(void)
{
    _cleanup_(str_done) struct str text = {0};
    return file_read("/proc/misc", MISC_BYTES, &text, NULL) == 0 &&
           strstr(str_get(&text), "device-mapper");
}

/* The module may not be loaded yet. */
static bool kernel_has_dm(void)
{
    if (listed_in_misc())
        return true;
    const char *const argv[] = {"/usr/sbin/modprobe", "-q", "dm-mod", NULL};
    struct spawn_result result = {0};
    if (spawn_run(&(struct spawn){.argv = argv, .timeout_ms = PATIENCE_MS}, &result, NULL) == 0)
        spawn_result_done(&result);
    return listed_in_misc();
}

static ssize_t read_proc(const char *pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size);
    close(fd);
    return n;
}

/* An lvm, with this word of ours in its environment. */
static bool is_ours(const char *pid, const char *word)
{
    char name[16], text[ENVIRON_BYTES];
    if (read_proc(pid, "comm", name, sizeof(name)) != 4 || memcmp(name, "lvm\n", 4) != 0)
        return false;
    ssize_t n = read_proc(pid, "environ", text, sizeof(text));
    return n > 0 && memmem(text, (size_t)n, word, strlen(word) + 1); /* all of it: with its NUL */
}

static bool somebody_runs(const struct lvm *l)
{
    DIR *dir = opendir("/proc");
    bool found = false;
    for (struct dirent *d; dir && !found && (d = readdir(dir));)
        found = isdigit((unsigned char)d->d_name[0]) && is_ours(d->d_name, l->env[0]);
    if (dir)
        closedir(dir);
    return found;
}

/* What an earlier process has left is let finish: it may create what we would find missing. */
static int wait_for_others(const struct lvm *l, struct err *e)
{
    for (int waited = 0; somebody_runs(l); waited += STEP_MS) {
        if (waited >= PATIENCE_MS)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "Busy",
                           "an lvm command that an earlier process began in %s does not end",
                           l->folder);
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return 0;
}

static int prepare(struct lvm *l, struct err *e)
{
    static const char *const folders[] = {"etc", "lock", "backup", NULL};
    for (const char *const *name = folders; *name; name++) {
        _cleanup_free_ char *path = mem_printf("%s/%s", l->folder, *name);
        if (file_make_dirs(path, 0700, e) < 0)
            return -1;
    }
    if (strpbrk(l->folder, "\"\\\n") || strpbrk(l->device_dir, "\"\\\n"))
        return err_set(e, ERR_INVALID_ARGUMENT, "BadPath", "lvm cannot take the path %s",
                       l->folder);
    _cleanup_free_ char *text = mem_printf(config, l->device_dir, l->device_dir, l->folder,
                                           l->has_dm, l->folder, l->has_dm);
    _cleanup_free_ char *path = mem_printf("%s/etc/lvm.conf", l->folder);
    return file_replace(path, text, strlen(text), 0600, e);
}

int lvm_open(const struct lvm_options *o, struct lvm **ret_lvm, struct err *e)
{
    _cleanup_(lvm_closep) struct lvm *l = NEW(struct lvm);
    l->folder = mem_strdup(o->folder);
    l->device_dir = mem_strdup(o->device_dir ? o->device_dir : "/dev");
    l->has_dm = o->kernel == LVM_KERNEL_ASK ? kernel_has_dm() : o->kernel == LVM_KERNEL_DM;
    l->env[0] = mem_printf("LVM_SYSTEM_DIR=%s/etc", l->folder);
    l->env[1] = mem_strdup("LVM_SUPPRESS_FD_WARNINGS=1");
    l->env[2] = mem_strdup("DM_DISABLE_UDEV=1");
    l->env[3] = mem_strdup("LC_ALL=C.UTF-8");
    l->env[4] = mem_strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    if (prepare(l, e) < 0 || wait_for_others(l, e) < 0)
        return -1;
    *ret_lvm = TAKE_PTR(l);
    return 0;
}

void lvm_close(struct lvm *l)
{
    free(l->folder);
    free(l->device_dir);
    for (size_t i = 0; i < ARRAY_SIZE(l->env); i++)
        free(l->env[i]);
    free(l);
}

bool lvm_has_devices(const struct lvm *l)
{
    return l->has_dm;
}

char *lvm_device_path(const struct lvm *l, const char *vg, const char *lv)
{
    return mem_printf("%s/%s/%s", l->device_dir, vg, lv);
}
