#include "node/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/str.h"
#include "node/device.h"
#include "node/sysfs.h"

enum { PODS = 110, MEBI = 1 << 20 };

/* A line "KEY: 123 kB" of /proc/meminfo, in bytes. */
static uint64_t memory_of(const struct node_places *p, const char *key)
{
    _cleanup_free_ char *path = mem_printf("%s/meminfo", p->proc);
    _cleanup_(str_done) struct str s = {0};
    if (file_read(path, MEBI, &s, NULL) < 0)
        return 0;
    const char *at = strstr(str_get(&s), key);
    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static json_t *bytes(uint64_t n)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_from_int((int64_t)(n / 1024 * 1024), QUANTITY_BINARY_SI);
    return json_string(quantity_format(&q, text));
}

json_t *node_machine_capacity(const struct node_places *p, const char *data_dir)
{
    char cpus[32], pods[16];
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    struct statvfs fs;
    snprintf(cpus, sizeof(cpus), "%ld", n > 0 ? n : 1);
    snprintf(pods, sizeof(pods), "%d", PODS);
    uint64_t disk = statvfs(data_dir, &fs) == 0 ? (uint64_t)fs.f_blocks * fs.f_frsize : 0;
    return json_pack("{s:s, s:o, s:o, s:s}", "cpu", cpus, "memory",
                     bytes(memory_of(p, "MemTotal:")), "ephemeral-storage", bytes(disk), "pods",
                     pods);
}

json_t *node_machine_allocatable(const json_t *capacity)
{
    json_t *all = json_deep_copy(capacity);
    uint64_t memory = 0, disk = 0;
    quantity_parse_bytes(json_str(capacity, "memory"), &memory, NULL);
    quantity_parse_bytes(json_str(capacity, "ephemeral-storage"), &disk, NULL);
    uint64_t reserve = 100ULL * MEBI; /* below which memory is under pressure */
    json_object_set_new(all, "memory", bytes(memory > reserve ? memory - reserve : 0));
    json_object_set_new(all, "ephemeral-storage", bytes(disk / 10 * 9));
    return all;
}

/* PRETTY_NAME of os-release, without its quotes. */
static const char *os_image(struct arena *a)
{
    _cleanup_(str_done) struct str s = {0};
    const char *key = "PRETTY_NAME=";
    if (file_read("/etc/os-release", MEBI, &s, NULL) < 0)
        return "Linux";
    const char *at = strstr(str_get(&s), key);
    if (!at)
        return "Linux";
    at += strlen(key);
    at += *at == '"';
    return arena_strndup(a, at, strcspn(at, "\"\n"));
}

static const char *architecture(const char *machine)
{
    return str_eq(machine, "x86_64") ? "amd64" : str_eq(machine, "aarch64") ? "arm64" : machine;
}

json_t *node_machine_info(const struct node_places *p)
{
    _cleanup_(arena_done) struct arena a = {0};
    struct utsname u;
    uname(&u);
    _cleanup_free_ char *dmi = mem_printf("%s/class/dmi/id", p->sys);
    _cleanup_free_ char *kernel = mem_printf("%s/sys/kernel/random", p->proc);
    const char *machine = node_sysfs_text(&a, "/etc", "machine-id");
    const char *uuid = node_sysfs_text(&a, dmi, "product_uuid");
    const char *boot = node_sysfs_text(&a, kernel, "boot_id");
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "machineID",
                     machine ? machine : "", "systemUUID", uuid ? uuid : "", "bootID",
                     boot ? boot : "", "kernelVersion", u.release, "osImage", os_image(&a),
                     "containerRuntimeVersion", "orlop://" ORLOP_VERSION, "kubeletVersion",
                     "v" ORLOP_VERSION, "kubeProxyVersion", "", "operatingSystem", "linux",
                     "architecture", architecture(u.machine));
}

void node_machine_pressure(const struct node_places *p, const char *data_dir,
                           struct node_pressure *ret)
{
    *ret = (struct node_pressure){0};
    struct statvfs fs;
    uint64_t available = memory_of(p, "MemAvailable:");
    ret->memory = available < 100ULL * MEBI;
    if (ret->memory)
        snprintf(ret->memory_text, sizeof(ret->memory_text), "%llu MiB of memory are left",
                 (unsigned long long)(available / MEBI));
    if (statvfs(data_dir, &fs) == 0 && fs.f_bavail < fs.f_blocks / 10) {
        ret->disk = true;
        snprintf(ret->disk_text, sizeof(ret->disk_text), "%llu MiB of %llu are left in %.80s",
                 (unsigned long long)(fs.f_bavail * fs.f_frsize / MEBI),
                 (unsigned long long)(fs.f_blocks * fs.f_frsize / MEBI), data_dir);
    }
    _cleanup_free_ char *kernel = mem_printf("%s/sys/kernel", p->proc);
    _cleanup_(arena_done) struct arena a = {0};
    const char *load = node_sysfs_text(&a, p->proc, "loadavg");
    const char *slash = load ? strchr(load, '/') : NULL; /* "0.1 0.2 0.3 1/990 5" */
    uint64_t most = node_sysfs_number(kernel, "pid_max", 0), tasks;
    if (slash && most && node_sysfs_field(slash + 1, 0, &tasks) && tasks > most - most / 20) {
        ret->pid = true;
        snprintf(ret->pid_text, sizeof(ret->pid_text), "%llu of %llu process ids are used",
                 (unsigned long long)tasks, (unsigned long long)most);
    }
}
