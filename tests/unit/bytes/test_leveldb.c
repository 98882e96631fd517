/* Tables of LevelDB: what is written is read again, and damage is noticed. */
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "base/folder.h"
#include "bytes/leveldb.h"
#include "check.h"

enum { ENTRIES = 1000 };

struct seen {
    size_t count;
    bool is_right;
};

static struct cm_str key_of(struct cm_arena *arena, size_t i)
{
    return cm_arena_printf(arena, "layer/%04zu/kernel", i);
}

static enum cm_status compare(void *arg, struct cm_str key, struct cm_str value,
                              struct cm_error *err)
{
    struct seen *seen = arg;
    char wanted[32];

    (void)err;
    snprintf(wanted, sizeof wanted, "layer/%04zu/kernel", seen->count);
    seen->is_right &= cm_str_is(key, wanted) && value.size == seen->count % 100;
    seen->count++;
    return CM_OK;
}

static struct cm_str written(struct cm_arena *arena, const struct cm_table_entry *entries,
                             size_t count)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_mapping mapping;
    struct cm_save save = {0};
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_path(&folder, "table", path);
    CHECK_OK(cm_save_begin(&save, path, &err), &err);
    CHECK_OK(cm_table_write(arena, &save, entries, count, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    folder_remove(&folder);
    return bytes;
}

static struct cm_str many(struct cm_arena *arena)
{
    struct cm_table_entry *entries = CM_NEW_ARRAY(arena, struct cm_table_entry, ENTRIES);

    for (size_t i = 0; i < ENTRIES; i++)
        entries[i] =
            (struct cm_table_entry){key_of(arena, i), {cm_arena_alloc(arena, 100), i % 100}};
    return written(arena, entries, ENTRIES);
}

static void reads_again(struct cm_arena *arena)
{
    struct seen seen = {.is_right = true};
    struct cm_error err;
    const struct cm_str bytes = many(arena);

    CHECK(cm_table_is(bytes));
    CHECK_OK(cm_table_read(arena, bytes, compare, &seen, &err), &err);
    CHECK_INT(seen.count, ENTRIES);
    CHECK(seen.is_right);
}

void test_leveldb__what_is_written_is_read_again(void)
{
    check_in_arena(reads_again);
}

static void notices(struct cm_arena *arena)
{
    const struct cm_str bytes = many(arena);
    char *copy = cm_arena_alloc(arena, bytes.size);
    struct cm_error err;

    for (size_t i = 0; i + 48 < bytes.size; i += 37) { /* the footer has padding */
        struct seen seen = {0};

        memcpy(copy, bytes.data, bytes.size);
        copy[i] ^= 0x10;
        CHECK_INT(cm_table_read(arena, (struct cm_str){copy, bytes.size}, compare, &seen, &err),
                  CM_BAD_MODEL);
    }
    for (size_t size = 0; size < bytes.size; size += 101) {
        struct seen seen = {0};
        CHECK_INT(cm_table_read(arena, (struct cm_str){bytes.data, size}, compare, &seen, &err),
                  CM_BAD_MODEL);
    }
}

void test_leveldb__a_changed_or_cut_file_is_refused(void)
{
    check_in_arena(notices);
}

static void keeps_order(struct cm_arena *arena)
{
    const struct cm_table_entry entries[] = {{CM_STR("b"), CM_STR("1")},
                                             {CM_STR("a"), CM_STR("2")}};
    const struct cm_str bytes = written(arena, entries, 2);
    struct seen seen = {0};
    struct cm_error err;

    CHECK_FAILS(cm_table_read(arena, bytes, compare, &seen, &err), CM_BAD_MODEL, &err,
                "not in order");
}

void test_leveldb__keys_must_ascend(void)
{
    check_in_arena(keeps_order);
}

static void unpacks(struct cm_arena *arena)
{
    /* "abcd", then 7 bytes from 4 back, then one more literal */
    static const char packed[] = {12, 3 << 2, 'a', 'b', 'c', 'd', 1 | 3 << 2, 4, 0, 'x'};
    const struct cm_str whole = {packed, sizeof packed};
    struct cm_error err;
    struct cm_str out;

    CHECK_OK(cm_snappy_unpack(arena, whole, &out, &err), &err);
    CHECK_STR(out, "abcdabcdabcx");
    for (size_t size = 0; size < whole.size; size++)
        CHECK_INT(cm_snappy_unpack(arena, (struct cm_str){packed, size}, &out, &err), CM_BAD_MODEL);
    static const char far_back[] = {12, 3 << 2, 'a', 'b', 'c', 'd', 1 | 3 << 2, 5, 0, 'x'};
    CHECK_INT(cm_snappy_unpack(arena, (struct cm_str){far_back, sizeof far_back}, &out, &err),
              CM_BAD_MODEL);
}

void test_leveldb__blocks_of_snappy_are_unpacked(void)
{
    check_in_arena(unpacks);
}

void test_leveldb__check_sums_are_those_of_tensorflow(void)
{
    const int64_t one = 1; /* save_counter of a checkpoint that TensorFlow wrote */

    CHECK_INT(cm_crc32c_masked(cm_crc32c(0, &one, sizeof one)), 1105097985);
}
