/* What every unit test includes. A test is a function `void test_<thing>__<sentence>(void)`; the
 * build scans tests/unit for such lines and hands them to cmocka, so a test needs no registration.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_CHECK_H
#define CM_TESTS_CHECK_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "base/arena.h"
#include "base/status.h"

#define CHECK(condition)               assert_true(condition)
#define CHECK_INT(actual, expected)    assert_int_equal((long long)(actual), (long long)(expected))
#define CHECK_STRING(actual, expected) assert_string_equal((actual), (expected))
#define CHECK_STR(actual, text)        CHECK(cm_str_is((actual), (text)))
/* A call that must succeed; prints its error otherwise. */
#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s failed: %s", #call, (err)->text);                                         \
    } while (0)
/* A call that must fail with this status and a message holding this text. */
#define CHECK_FAILS(call, wanted, err, part)                                                       \
    do {                                                                                           \
        if ((call) != (wanted) || !strstr((err)->text, (part)))                                    \
            fail_msg("%s: expected %s with '%s', got: %s", #call, cm_status_name(wanted), (part),  \
                     (err)->text);                                                                 \
    } while (0)

/* Runs body(arena) under a guard without limit; the arena is released afterwards. Exhaustion fails
 * the test. */
typedef void check_body_fn(struct cm_arena *arena);
void check_in_arena(check_body_fn *body);
/* The same, returning the status of running out under this limit. */
enum cm_status check_in_arena_limited(size_t limit, struct cm_error *err, check_body_fn *body);

#endif
