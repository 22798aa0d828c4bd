/*
 * Runs a test on each back end that there is here.
 */
#pragma once

#include "io/loop.h"
#include "unit.h"

static inline void each_backend(void (*fn)(struct io_loop *loop))
{
    for (enum io_backend b = IO_URING; b <= IO_EPOLL; b++) {
        struct err e = {0};
        struct io_loop *loop = io_loop_new(b, &e);
        if (!loop) { /* io_uring may be refused; epoll never is */
            assert_int_equal(b, IO_URING);
            print_message("io_uring is not here: %s\n", e.msg);
            continue;
        }
        fn(loop);
        io_loop_free(loop);
    }
}
