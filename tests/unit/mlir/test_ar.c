/* Archives, read back byte by byte. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "check.h"
#include "mlir/toolchain/ar.h"

#include <string.h>

static void two_members(struct cm_arena *arena)
{
    static const char *const first[] = {"net_run", "net_error"}, *const second[] = {"other"};
    const struct cm_ar_member members[] = {
        {"net.o", CM_STR("abc"), first, 2},
        {"a_name_that_is_too_long_for_a_head.o", CM_STR("defg"), second, 1},
    };
    struct cm_error err = {0};
    struct cm_str out;

    CHECK_OK(cm_ar_write(members, 2, arena, &out, &err), &err);
    CHECK(memcmp(out.data, "!<arch>\n/               0  ", 27) == 0);
    /* Three symbols, the offsets of their members and their names. */
    const unsigned char *table = (const unsigned char *)out.data + 8 + 60;
    CHECK_INT(table[3], 3);
    CHECK(memcmp(table + 16, "net_run\0net_error\0other", 24) == 0);
    const size_t at = ((size_t)table[6] << 8) + table[7],
                 next = ((size_t)table[14] << 8) + table[15];
    CHECK(memcmp(out.data + at, "net.o/          ", 16) == 0);
    CHECK(memcmp(out.data + at + 48, "3         `\nabc\n", 16) == 0);
    CHECK_INT(next, at + 64);
    CHECK(memcmp(out.data + next, "/0              ", 16) == 0);
    CHECK(memcmp(out.data + next + 60, "defg", 4) == 0);
    CHECK_INT(out.size, next + 64);
    CHECK(memmem(out.data, at, "a_name_that_is_too_long_for_a_head.o/\n", 38) != NULL);
}

void test_ar__members_have_heads_and_a_table_of_symbols(void)
{
    check_in_arena(two_members);
}

static void no_members(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_str out;

    CHECK_OK(cm_ar_write(NULL, 0, arena, &out, &err), &err);
    CHECK_INT(out.size, 8 + 60 + 4);
}

void test_ar__an_archive_may_be_empty(void)
{
    check_in_arena(no_members);
}

static void too_large(struct cm_arena *arena)
{
    const struct cm_ar_member member = {"net.o", {"", (size_t)UINT32_MAX - 10}, NULL, 0};
    struct cm_error err = {0};
    struct cm_str out;

    CHECK_FAILS(cm_ar_write(&member, 1, arena, &out, &err), CM_LIMIT, &err, "4 GiB");
}

void test_ar__more_than_4_gib_is_refused(void)
{
    check_in_arena(too_large);
}
