/*
 * Running lvm, and what it means by what it says.
 *
 * lvm's exit status is 5 for nearly every failure, so its words decide. They are those of the C locale,
 * the same since years; a failure whose words are not in the table is INTERNAL and shown as it is.
 */
#include <strings.h>

#include "base/crash.h"
#include "base/spawn.h"
#include "lvm/impl.h"

enum { DEADLINE_MS = 120000, REPORT_BYTES = 64 << 20, USAGE = 3 };
#define PROGRAM "/usr/sbin/lvm"

#define ANY_INTENT -1

/* The first that fits. `also` may be NULL. Code ERR_OK: it is as it should be. */
static const struct meaning {
    int intent;
    enum err_code code;
    const char *words, *also;
    const char *reason;
} meanings[] = {
    {LVM_TO_CREATE, ERR_OK, "already exists in volume group", NULL, NULL},
    {LVM_TO_CREATE, ERR_OK, "Logical Volume \"", "already exists", NULL},
    {LVM_TO_GROW, ERR_OK, "matches existing size", NULL, NULL},
    {LVM_TO_GROW, ERR_OK, "not larger than existing size", NULL, NULL},
    {LVM_TO_REMOVE, ERR_OK, "Failed to find logical volume", NULL, NULL},
    {LVM_TO_GROW, ERR_OUT_OF_RANGE, "insufficient free space", NULL, "NoSpace"},
    {LVM_TO_GROW, ERR_OUT_OF_RANGE, "insufficient suitable", NULL, "NoSpace"},
    {LVM_TO_GROW, ERR_OUT_OF_RANGE, "insufficient allocatable", NULL, "NoSpace"},
    {ANY_INTENT, ERR_RESOURCE_EXHAUSTED, "insufficient free space", NULL, "NoSpace"},
    {ANY_INTENT, ERR_RESOURCE_EXHAUSTED, "insufficient suitable", NULL, "NoSpace"},
    {ANY_INTENT, ERR_RESOURCE_EXHAUSTED, "insufficient allocatable", NULL, "NoSpace"},
    {ANY_INTENT, ERR_NOT_FOUND, "Volume group \"", "not found", "NoVolumeGroup"},
    {ANY_INTENT, ERR_NOT_FOUND, "not found in volume group", NULL, "NoLogicalVolume"},
    {ANY_INTENT, ERR_NOT_FOUND, "Failed to find logical volume", NULL, "NoLogicalVolume"},
    {ANY_INTENT, ERR_FAILED_PRECONDITION, "without using device-mapper", NULL, "NoDeviceMapper"},
    {ANY_INTENT, ERR_UNAVAILABLE, "in use", NULL, "InUse"},
    {ANY_INTENT, ERR_UNAVAILABLE, "is used by", NULL, "InUse"},
    {ANY_INTENT, ERR_UNAVAILABLE, "PVs are missing", NULL, "DiskMissing"},
    {ANY_INTENT, ERR_UNAVAILABLE, "missing PV", NULL, "DiskMissing"},
    {ANY_INTENT, ERR_UNAVAILABLE, "is missing", NULL, "DiskMissing"},
    {ANY_INTENT, ERR_UNAVAILABLE, "Can't get lock", NULL, "Locked"},
};

/* The lines that say what went wrong: not the warnings around them. */
static void essence(const char *text, struct str *out)
{
    while (*text) {
        text += strspn(text, " \n\t");
        size_t n = strcspn(text, "\n");
        if (n && !str_starts_with(text, "WARNING:") && !str_starts_with(text, "Rounding ")) {
            str_append(out, out->len ? "; " : "");
            str_append_n(out, text, n);
        }
        text += n;
    }
}

int lvm_classify(enum lvm_intent intent, int status, const char *text, struct err *e)
{
    _cleanup_(str_done) struct str why = {0};
    essence(text, &why);
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
        const struct meaning *m = &meanings[i];
        if ((m->intent != ANY_INTENT && m->intent != (int)intent) ||
            !strcasestr(str_get(&why), m->words) || (m->also && !strstr(str_get(&why), m->also)))
            continue;
        return m->code == ERR_OK ? 0 : err_set(e, m->code, m->reason, "lvm: %s", why.p);
    }
    if (status == USAGE)
        return err_set(e, ERR_INVALID_ARGUMENT, "BadOptions", "lvm: %s", str_get(&why));
    return err_set(e, ERR_INTERNAL, "CommandFailed", "lvm ended with %d: %s", status,
                   why.len ? why.p : "it did not say why");
}

int lvm_run(struct lvm *l, enum lvm_intent intent, const char *const *words, struct str *ret_out,
            struct err *e)
{
    VEC(const char *) argv = {0};
    vec_push(&argv, PROGRAM);
    for (; *words; words++)
        vec_push(&argv, *words);
    vec_push(&argv, NULL);
    const struct spawn spawn = {.argv = argv.p,
                                .env = (const char *const *)l->env,
                                .limit = REPORT_BYTES,
                                .timeout_ms = DEADLINE_MS};
    struct spawn_result result = {0};
    if (intent != LVM_TO_READ)
        crash_point(argv.p[1]);
    int status = spawn_run(&spawn, &result, e);
    if (status == 0 && result.status != 0)
        status = result.signal ? err_set(e, ERR_UNAVAILABLE, "Killed",
                                         "lvm %s was ended by signal %d", argv.p[1], result.signal)
                               : lvm_classify(intent, result.status, str_get(&result.err), e);
    if (status == 0 && intent != LVM_TO_READ)
        crash_point(argv.p[1]);
    if (status == 0 && ret_out)
        str_append_n(ret_out, str_get(&result.out), result.out.len);
    spawn_result_done(&result);
    vec_done(&argv);
    return status;
}
