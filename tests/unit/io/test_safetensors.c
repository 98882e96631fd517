/* .safetensors files and the JSON in them. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "io/array_case.h"

static void check_three(const struct cm_arrays *arrays)
{
    CHECK_INT(arrays->count, 3);
    CHECK_STR(arrays->items[0].name, "x");
    check_ramp(&arrays->items[0].value.tensor, CM_FLOAT, 2, 6);
    CHECK_STR(arrays->items[1].name, "fl\"agé");
    CHECK_INT(arrays->items[1].value.tensor.type, CM_BOOL);
    CHECK_INT(arrays->items[2].value.tensor.type, CM_BFLOAT16);
    CHECK(cm_tensor_real(&arrays->items[2].value.tensor, 1) == 2);
}

static void reads(struct cm_arena *arena)
{
    struct cm_arrays arrays, back;
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];

    CHECK_OK(cm_arrays_open(arena, ARRAYS "two.safetensors", NULL, &arrays, &err), &err);
    check_three(&arrays);
    folder_make(&folder);
    folder_path(&folder, "x.safetensors", path);
    CHECK_OK(cm_arrays_save(arena, path, arrays.items, arrays.count, &err), &err);
    CHECK_OK(cm_arrays_open(arena, path, NULL, &back, &err), &err);
    check_three(&back);
    folder_remove(&folder);
}

void test_safetensors__reads_and_writes_back(void)
{
    check_in_arena(reads);
}

static struct cm_str file_of(struct cm_arena *arena, const char *header, size_t data)
{
    const uint64_t size = strlen(header);
    char *room = cm_arena_alloc(arena, 8 + (size_t)size + data);

    memcpy(room, &size, 8);
    memcpy(room + 8, header, (size_t)size);
    return (struct cm_str){room, 8 + (size_t)size + data};
}

static void refuses(struct cm_arena *arena)
{
    static const struct {
        const char *header;
        size_t data;
        const char *part;
    } rows[] = {
        {"", 0, "lacks an object"},
        {"[]", 0, "lacks an object"},
        {"{} x", 0, "goes on after"},
        {"{\"a\"}", 0, "lacks a colon"},
        {"{\"a\":{}}", 0, "it lacks dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4, "comma or an end"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "no counterpart in ONNX"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "lack the end"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "more than two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "its shape needs 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins at byte 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "has 8 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, "has 0 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, "whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4,
         "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
         "overflows"},
        {"{\"a\":{\"x\":1}}", 0, "is unknown"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "listed twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":{}}", 0,
         "two tensors"},
        {"{\"a\\q\":{}}", 0, "unknown escape"},
        {"{\"a\\ud800\":{}}", 0, "half a character"},
        {"{\"a\xff\":{}}", 0, "not UTF-8"},
        {"{\"a\n\":{}}", 0, "without an end"},
        {"{\"a", 0, "without an end"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "lacks a string"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_arrays arrays;
        struct cm_error err;
        const enum cm_status status =
            array_parse(arena, file_of(arena, rows[i].header, rows[i].data), CM_ARRAYS_SAFETENSORS,
                        &arrays, &err);
        if (status == CM_OK || !strstr(err.text, rows[i].part))
            fail_msg("row %zu: %s", i, status ? err.text : "accepted");
    }
}

void test_safetensors__refuses_headers_that_make_no_sense(void)
{
    check_in_arena(refuses);
}

static void escapes(struct cm_arena *arena)
{
    struct cm_arrays arrays;
    struct cm_error err;
    const char *header = "{ \"\\u0041\\ud834\\udd1e\\n\\/\" : {\"shape\":[ ],\"dtype\":\"U8\","
                         "\"data_offsets\":[0,1]} }  ";

    CHECK_OK(array_parse(arena, file_of(arena, header, 1), CM_ARRAYS_SAFETENSORS, &arrays, &err),
             &err);
    CHECK_STR(arrays.items[0].name, "A𝄞\n/");
}

void test_safetensors__names_may_have_escapes(void)
{
    check_in_arena(escapes);
}

static void unable(struct cm_arena *arena)
{
    struct cm_str text = CM_STR("a");
    struct cm_array item = {.name = CM_STR("x"), .value = {.kind = CM_KIND_TENSOR}};
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];

    item.value.tensor = cm_tensor_borrow(CM_STRING, &CM_SHAPE(1), &text);
    folder_make(&folder);
    folder_path(&folder, "x.safetensors", path);
    CHECK_FAILS(cm_arrays_save(arena, path, &item, 1, &err), CM_UNSUPPORTED, &err,
                "of type string, which .safetensors cannot hold");
    folder_path(&folder, "x.npy", path);
    CHECK_FAILS(cm_arrays_save(arena, path, &item, 0, &err), CM_BAD_ARGUMENT, &err,
                "holds one value");
    item.value.kind = CM_KIND_SEQUENCE;
    CHECK_FAILS(cm_arrays_save(arena, path, &item, 1, &err), CM_UNSUPPORTED, &err, "only .pb");
    CHECK_INT(folder_count(&folder), 0);
    folder_remove(&folder);
}

void test_safetensors__what_cannot_be_written_leaves_no_file(void)
{
    check_in_arena(unable);
}

static void message(struct cm_arena *arena)
{
    float values[] = {0, 1, 2};
    struct cm_datum items[2] = {{.kind = CM_KIND_TENSOR}, {.kind = CM_KIND_TENSOR}};
    const struct cm_array item = {
        .name = CM_STR("s"), .value = {.kind = CM_KIND_SEQUENCE, .items = items, .n_items = 2}};
    const struct cm_arrays_options options = {.kind = CM_KIND_SEQUENCE};
    struct cm_arrays back;
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];

    items[0].tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3), values);
    items[1].tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), values);
    folder_make(&folder);
    folder_path(&folder, "s.pb", path);
    CHECK_OK(cm_arrays_save(arena, path, &item, 1, &err), &err);
    CHECK_OK(cm_arrays_open(arena, path, &options, &back, &err), &err);
    CHECK_INT(back.items[0].value.n_items, 2);
    check_ramp(&back.items[0].value.items[0].tensor, CM_FLOAT, 1, 3);
    check_ramp(&back.items[0].value.items[1].tensor, CM_FLOAT, 1, 2);
    folder_remove(&folder);
}

void test_messages__a_sequence_goes_to_a_file_and_back(void)
{
    check_in_arena(message);
}
