#include "base/crash.h"

#ifdef ORLOP_CRASH_POINTS
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void crash_point(const char *what)
{
    static _Atomic long passed;
    const char *at = getenv("ORLOP_CRASH_AT");
    if (!at || atomic_fetch_add(&passed, 1) + 1 != strtol(at, NULL, 10))
        return;
    fprintf(stderr, "crash point %s: %s\n", at, what);
    raise(SIGKILL);
}
#endif
