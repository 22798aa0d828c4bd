/*
 * What every unit test includes: cmocka, behind the headers that it needs first and does not
 * include itself.
 */
#pragma once

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
