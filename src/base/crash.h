/*
 * Places at which a test lets the program die as if by kill -9: before and after each step that others
 * can see. With ORLOP_CRASH_AT=N in the environment the Nth of them is the last. Only builds for tests
 * have it.
 */
#pragma once

#ifdef ORLOP_CRASH_POINTS
void crash_point(const char *what);
#else
static inline void crash_point(const char *what)
{
    (void)what;
}
#endif
