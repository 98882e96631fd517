/* External data: what tensors may say about it, and what the files may be. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/external.h"

#include "onnx/model_case.h"
#include "onnx/tensor_data.h"

#include <sys/stat.h>
#include <unistd.h>

static struct cm_tensor_proto external(struct cm_entry_proto *entries, size_t count)
{
    return (struct cm_tensor_proto){.data_location = CM_LOCATION_EXTERNAL,
                                    .external_data = {entries, count}};
}

#define ENTRY(k, v) ((struct cm_entry_proto){.key = CM_STR(k), .value = CM_STR(v)})

void test_external__keys_are_read_and_unknown_ones_left_alone(void)
{
    struct cm_entry_proto entries[] = {ENTRY("offset", "4096"), ENTRY("checksum", "x"),
                                       ENTRY("location", "a.bin"), ENTRY("mine", "")};
    const struct cm_tensor_proto proto = external(entries, 4);
    struct cm_external_place place;
    struct cm_error err;

    CHECK_OK(cm_external_place(&proto, &place, &err), &err);
    CHECK_STR(place.location, "a.bin");
    CHECK_INT(place.offset, 4096);
    CHECK(!place.has_length);
}

void test_external__bad_keys_are_refused(void)
{
    static const struct {
        const char *offset, *part;
    } rows[] = {{"-1", "offset '-1' is not"},
                {"", "offset '' is not"},
                {"0x10", "not a number"},
                {"1e3", "not a number"},
                {" 1", "not a number"},
                {"9223372036854775808", "not a number"},
                {"99999999999999999999999", "not a number"}};
    struct cm_external_place place;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_entry_proto entries[] = {ENTRY("location", "a"), ENTRY("offset", "")};
        entries[1].value = cm_str(rows[i].offset);
        const struct cm_tensor_proto proto = external(entries, 2);
        CHECK_FAILS(cm_external_place(&proto, &place, &err), CM_BAD_MODEL, &err, rows[i].part);
    }
    struct cm_entry_proto twice[] = {ENTRY("location", "a"), ENTRY("location", "b")};
    struct cm_tensor_proto proto = external(twice, 2);
    CHECK_FAILS(cm_external_place(&proto, &place, &err), CM_BAD_MODEL, &err, "given twice");
    proto = external(twice, 0);
    CHECK_FAILS(cm_external_place(&proto, &place, &err), CM_BAD_MODEL, &err, "no location");
    twice[0].value = CM_STR("");
    proto = external(twice, 1);
    CHECK_FAILS(cm_external_place(&proto, &place, &err), CM_BAD_MODEL, &err, "no location");
}

/* Loads a float[4] at this place of folder. */
static enum cm_status try_load(struct cm_arena *arena, const char *folder, const char *location,
                               long long offset, long long length, unsigned flags,
                               struct cm_error *err)
{
    struct cm_tensor_proto proto = {0};
    struct cm_tensor tensor;

    case_tensor(arena, &proto, "W", 4);
    case_outside(arena, &proto, location, offset, length);
    struct cm_external_files *files = cm_external_files_new(arena, cm_str(folder), flags, false);
    CM_TRY(cm_tensor_proto_load(&proto, files, &tensor, err));
    cm_tensor_drop(&tensor);
    return CM_OK;
}

static void check_ranges(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    struct cm_error err;

    case_write(case_path(arena, folder, "a"), "0123456789abcdef0123", 20);
    CHECK_OK(try_load(arena, folder, "a", 0, 16, 0, &err), &err);
    CHECK_OK(try_load(arena, folder, "a", 0, -1, 0, &err), &err);
    CHECK_OK(try_load(arena, folder, "a", 3, 16, 0, &err), &err); /* unaligned: copied */
    CHECK_OK(try_load(arena, folder, "a", 4, -1, 0, &err), &err);
    CHECK_FAILS(try_load(arena, folder, "a", 5, 16, 0, &err), CM_BAD_MODEL, &err,
                "tensor 'W': external file 'a' has 20 bytes, the tensor needs 16 from offset 5");
    CHECK_FAILS(try_load(arena, folder, "a", 21, -1, 0, &err), CM_BAD_MODEL, &err, "offset 21");
    CHECK_FAILS(try_load(arena, folder, "a", INT64_MAX, 16, 0, &err), CM_BAD_MODEL, &err, "needs");
    CHECK_FAILS(try_load(arena, folder, "a", 0, 20, 0, &err), CM_BAD_MODEL, &err,
                "external length is 20, its type and shape need 16");
    CHECK_FAILS(try_load(arena, folder, "a", 0, 0, 0, &err), CM_BAD_MODEL, &err, "length is 0");
    case_write(case_path(arena, folder, "none"), "", 0);
    CHECK_FAILS(try_load(arena, folder, "none", 0, 16, 0, &err), CM_BAD_MODEL, &err, "has 0 bytes");
}

void test_external__ranges_must_lie_in_the_file(void)
{
    check_in_arena(check_ranges);
}

static void check_confinement(struct cm_arena *arena)
{
    const char *outer = case_folder(arena);
    const char *folder = case_path(arena, outer, "model");
    const char *secret = case_path(arena, outer, "secret");
    struct cm_error err;

    CHECK(mkdir(folder, 0777) == 0);
    CHECK(mkdir(case_path(arena, folder, "sub"), 0777) == 0);
    case_write(secret, "0123456789abcdef", 16);
    case_write(case_path(arena, folder, "sub/ok"), "0123456789abcdef", 16);
    CHECK(symlink("../secret", case_path(arena, folder, "link")) == 0);
    CHECK(symlink("sub/ok", case_path(arena, folder, "inner")) == 0);
    CHECK(symlink("..", case_path(arena, folder, "up")) == 0);
    CHECK(link(secret, case_path(arena, folder, "hard")) == 0);

    CHECK_OK(try_load(arena, folder, "sub/ok", 0, 16, 0, &err), &err);
    CHECK_FAILS(try_load(arena, folder, "../secret", 0, 16, 0, &err), CM_BAD_MODEL, &err, "'..'");
    CHECK_FAILS(try_load(arena, folder, "sub/../../secret", 0, 16, 0, &err), CM_BAD_MODEL, &err,
                "'..'");
    CHECK_FAILS(try_load(arena, folder, secret, 0, 16, 0, &err), CM_BAD_MODEL, &err, "absolute");
    CHECK_FAILS(try_load(arena, folder, "link", 0, 16, 0, &err), CM_BAD_MODEL, &err,
                "--allow-links");
    CHECK_FAILS(try_load(arena, folder, "inner", 0, 16, 0, &err), CM_BAD_MODEL, &err,
                "--allow-links");
    CHECK_FAILS(try_load(arena, folder, "up/secret", 0, 16, 0, &err), CM_BAD_MODEL, &err, "link");
    CHECK_FAILS(try_load(arena, folder, "hard", 0, 16, 0, &err), CM_BAD_MODEL, &err,
                "--allow-links");
    CHECK_FAILS(try_load(arena, folder, "sub", 0, 16, 0, &err), CM_BAD_MODEL, &err, "folder");
    CHECK_FAILS(try_load(arena, folder, "gone", 0, 16, 0, &err), CM_BAD_MODEL, &err,
                "tensor 'W': there is no file 'gone'");
    CHECK_OK(try_load(arena, folder, "inner", 0, 16, CM_FOLLOW_LINKS, &err), &err);
    CHECK_OK(try_load(arena, folder, "hard", 0, 16, CM_FOLLOW_LINKS, &err), &err);
    CHECK_OK(try_load(arena, folder, "link", 0, 16, CM_FOLLOW_LINKS, &err), &err);
    CHECK_OK(try_load(arena, folder, "up/secret", 0, 16, CM_FOLLOW_LINKS, &err), &err);
    CHECK_FAILS(try_load(arena, folder, "../secret", 0, 16, CM_FOLLOW_LINKS, &err), CM_BAD_MODEL,
                &err, "'..'");
}

void test_external__files_must_lie_in_the_models_folder(void)
{
    check_in_arena(check_confinement);
}

static void check_mapped_once(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    struct cm_external_files *files = cm_external_files_new(arena, cm_str(folder), 0, false);
    struct cm_external_file first, again;
    struct cm_error err;
    char name[16];

    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%d", i * 7 % 50);
        case_write(case_path(arena, folder, name), name, sizeof name);
        CHECK_OK(cm_external_file(files, cm_str(name), &first, &err), &err);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%d", i);
        CHECK(unlink(case_path(arena, folder, name)) == 0);
        CHECK_OK(cm_external_file(files, cm_str(name), &first, &err), &err);
        CHECK_OK(cm_external_file(files, cm_str(name), &again, &err), &err);
        CHECK(first.bytes.data == again.bytes.data);
        CHECK_STRING(first.bytes.data, name);
    }
}

void test_external__each_file_is_opened_once(void)
{
    check_in_arena(check_mapped_once);
}
