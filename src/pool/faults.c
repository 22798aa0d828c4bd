/*
 * In builds for tests: the file that $ORLOP_POOL_FAULTS names has a line for each device that is to
 * misbehave, and is read again with every look.
 *
 *     PATH read,write,sync eio|lose|tear|corrupt|slow [MS]
 */
#include "pool/engine_impl.h"

#ifdef ORLOP_CRASH_POINTS
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "zpool/fault.h"

static bool parse(char *line, struct zpool_fault *ret)
{
    static const char *const ops[] = {"read", "write", "sync"};
    static const char *const kinds[] = {"eio", "lose", "tear", "corrupt", "slow"};
    char *save = NULL, *path = strtok_r(line, " ", &save), *what = strtok_r(NULL, " ", &save);
    char *kind = strtok_r(NULL, " ", &save);
    if (!path || !what || !kind)
        return false;
    const char *delay = strtok_r(NULL, " ", &save);
    *ret = (struct zpool_fault){.path = path,
                                .delay_ms = delay ? (unsigned)strtoul(delay, NULL, 10) : 1000};
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++)
        ret->ops |= strstr(what, ops[i]) ? 1U << i : 0;
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_eq(kinds[i], kind))
            ret->kind = (enum zpool_fault_kind)i;
    return true;
}

void pool_faults_read(void)
{
    static struct zpool_fault rules[ZPOOL_FAULTS_MAX];
    static struct str last, text; /* text: what rules point into */
    const char *file = getenv("ORLOP_POOL_FAULTS");
    _cleanup_(str_done) struct str now = {0};
    if (!file || file_read(file, 1 << 16, &now, NULL) < 0 || str_eq(str_get(&now), str_get(&last)))
        return;
    zpool_fault_set(NULL, 0);
    str_clear(&last);
    str_append(&last, str_get(&now));
    str_clear(&text);
    str_append(&text, str_get(&now));
    unsigned n = 0;
    char *save = NULL;
    for (char *line = text.p ? strtok_r(text.p, "\n", &save) : NULL; line && n < ZPOOL_FAULTS_MAX;
         line = strtok_r(NULL, "\n", &save))
        n += parse(line, &rules[n]);
    zpool_fault_set(rules, n);
    log_info("devices misbehave as they are told", LOG_U("rules", n));
}
#else
void pool_faults_read(void)
{
}
#endif
