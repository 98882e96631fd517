/* Bytes kept in memory or in a temporary file: the same ones come back. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "io/spool.h"

static void round_trip(struct cm_arena *arena)
{
    static const size_t limits[] = {1, 64, 4096, 5000, 0};
    struct cm_error err;

    for (size_t l = 0; l < CM_COUNT(limits); l++) {
        struct cm_spool *spool = cm_spool_new(arena, limits[l]);
        struct cm_str out;

        for (uint32_t i = 0; i < 10000; i++)
            CHECK_OK(cm_spool_write(spool, &i, sizeof i, &err), &err);
        CHECK_OK(cm_spool_finish(spool, &out, &err), &err);
        CHECK_INT(out.size, 40000);
        CHECK_INT(spool->fd >= 0, limits[l] != 0);
        for (uint32_t i = 0; i < 10000; i++) {
            uint32_t value;
            memcpy(&value, out.data + 4 * i, 4);
            CHECK_INT(value, i);
        }
    }
}

void test_spool__gives_back_what_was_written(void)
{
    check_in_arena(round_trip);
}

static void nothing(struct cm_arena *arena)
{
    struct cm_spool *spool = cm_spool_new(arena, 0);
    struct cm_error err;
    struct cm_str out;

    CHECK_OK(cm_spool_finish(spool, &out, &err), &err);
    CHECK_INT(out.size, 0);
}

void test_spool__may_stay_empty(void)
{
    check_in_arena(nothing);
}
