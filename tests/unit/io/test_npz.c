/* .npz files: stored and deflated, damaged and hostile. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "io/array_case.h"

static void check_pair(const struct cm_arrays *arrays)
{
    CHECK_INT(arrays->count, 2);
    CHECK_STR(arrays->items[0].name, "x");
    CHECK_STR(arrays->items[1].name, "größe");
    check_ramp(&arrays->items[0].value.tensor, CM_FLOAT, 2, 6);
    check_ramp(&arrays->items[1].value.tensor, CM_INT64, 2, 6);
}

static void reads(struct cm_arena *arena)
{
    struct cm_arrays arrays;
    struct cm_error err;

    CHECK_OK(cm_arrays_open(arena, ARRAYS "stored.npz", NULL, &arrays, &err), &err);
    check_pair(&arrays);
    const enum cm_status status = cm_arrays_open(arena, ARRAYS "deflated.npz", NULL, &arrays, &err);
    if (status == CM_UNSUPPORTED) { /* without zlib it says so */
        CHECK(strstr(err.text, "zlib is not available"));
        return;
    }
    CHECK_OK(status, &err);
    check_pair(&arrays);
    CHECK_OK(cm_arrays_open(arena, ARRAYS "zeros.npz", NULL, &arrays, &err), &err);
    CHECK_INT(cm_tensor_count(&arrays.items[0].value.tensor), 100000);
}

void test_npz__reads_stored_and_deflated_arrays(void)
{
    check_in_arena(reads);
}

static void refuses(struct cm_arena *arena)
{
    struct cm_arrays arrays;
    struct cm_error err;

    CHECK_FAILS(cm_arrays_open(arena, ARRAYS "other.npz", NULL, &arrays, &err), CM_BAD_MODEL, &err,
                "'readme.txt' is not a .npy file");
    CHECK_FAILS(cm_arrays_open(arena, ARRAYS "bzip2.npz", NULL, &arrays, &err), CM_UNSUPPORTED,
                &err, "method 12");
}

void test_npz__refuses_what_is_no_array(void)
{
    check_in_arena(refuses);
}

static void cuts(struct cm_arena *arena)
{
    const struct cm_str whole = array_bytes(arena, ARRAYS "stored.npz");
    struct cm_arrays arrays;
    struct cm_error err;

    for (size_t size = 0; size < whole.size; size++)
        CHECK_INT(
            array_parse(arena, (struct cm_str){whole.data, size}, CM_ARRAYS_NPZ, &arrays, &err),
            CM_BAD_MODEL);
}

void test_npz__refuses_every_truncation(void)
{
    check_in_arena(cuts);
}

/* Every byte changed in turn: refused, or the arrays are still sane. */
static void flips(struct cm_arena *arena)
{
    static const char *const files[] = {ARRAYS "stored.npz", ARRAYS "deflated.npz"};

    for (size_t f = 0; f < CM_COUNT(files); f++) {
        const struct cm_str whole = array_bytes(arena, files[f]);
        char *bytes = (char *)(uintptr_t)whole.data;

        for (size_t i = 0; i < whole.size; i++) {
            struct cm_arrays arrays;
            struct cm_error err;
            const char old = bytes[i];

            bytes[i] = (char)(old ^ 0x55);
            if (array_parse(arena, whole, CM_ARRAYS_NPZ, &arrays, &err) == CM_OK)
                for (size_t a = 0; a < arrays.count; a++)
                    CHECK_INT(cm_tensor_count(&arrays.items[a].value.tensor), 6);
            bytes[i] = old;
        }
    }
}

void test_npz__survives_any_changed_byte(void)
{
    check_in_arena(flips);
}

/* The last place where these bytes are. */
static char *find_last(struct cm_str in, const char *what, size_t size)
{
    for (size_t i = in.size - size + 1; i-- > 0;)
        if (memcmp(in.data + i, what, size) == 0)
            return (char *)(uintptr_t)(in.data + i);
    fail_msg("the bytes are not there");
    return NULL;
}

static void damage(struct cm_arena *arena)
{
    const struct cm_str whole = array_bytes(arena, ARRAYS "stored.npz");
    const float five = 5;
    struct cm_arrays arrays;
    struct cm_error err;

    *find_last(whole, (const char *)&five, sizeof five) = 1;
    CHECK_FAILS(array_parse(arena, whole, CM_ARRAYS_NPZ, &arrays, &err), CM_BAD_MODEL, &err,
                "check sum");
}

void test_npz__notices_damage_by_the_check_sum(void)
{
    check_in_arena(damage);
}

static void bombs(struct cm_arena *arena)
{
    const struct cm_str whole = array_bytes(arena, ARRAYS "zeros.npz");
    const struct cm_arrays_options small = {.format = CM_ARRAYS_NPZ, .limit = 1000};
    struct cm_arrays arrays;
    struct cm_error err;

    CHECK_FAILS(cm_arrays_parse(arena, whole, &small, &arrays, &err), CM_LIMIT, &err,
                "more than 1000 bytes");
    /* A size that deflate cannot reach, in the directory. */
    char *entry = find_last(whole, "PK\x01\x02", 4);
    memcpy(entry + 24, "\xff\xff\xff\x7f", 4);
    CHECK_FAILS(array_parse(arena, whole, CM_ARRAYS_NPZ, &arrays, &err), CM_BAD_MODEL, &err,
                "cannot have the size");
}

void test_npz__bounds_what_unpacking_takes(void)
{
    check_in_arena(bombs);
}

static void shared_bytes(struct cm_arena *arena)
{
    struct cm_arrays arrays;
    struct cm_error err;

    CHECK_FAILS(cm_arrays_open(arena, ARRAYS "overlap.npz", NULL, &arrays, &err), CM_BAD_MODEL,
                &err, "larger than the file");
}

void test_npz__entries_that_share_bytes_may_not_outgrow_the_file(void)
{
    check_in_arena(shared_bytes);
}

static void writes(struct cm_arena *arena)
{
    struct cm_arrays arrays, back;
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "x.npz", path);
    CHECK_OK(cm_arrays_open(arena, ARRAYS "stored.npz", NULL, &arrays, &err), &err);
    CHECK_OK(cm_arrays_save(arena, path, arrays.items, arrays.count, &err), &err);
    CHECK_OK(cm_arrays_open(arena, path, NULL, &back, &err), &err);
    check_pair(&back);
    CHECK_OK(cm_arrays_save(arena, path, NULL, 0, &err), &err);
    CHECK_OK(cm_arrays_open(arena, path, NULL, &back, &err), &err);
    CHECK_INT(back.count, 0);
    CHECK_INT(folder_count(&folder), 1);
    folder_remove(&folder);
}

void test_npz__what_is_written_reads_back(void)
{
    check_in_arena(writes);
}
