/* .npy files: every type, every refusal, and back. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "io/array_case.h"

static void each_type(struct cm_arena *arena)
{
    static const struct {
        const char *file;
        enum cm_dtype type;
    } rows[] = {{"b1", CM_BOOL},   {"i1", CM_INT8},    {"i2", CM_INT16},  {"i4", CM_INT32},
                {"i8", CM_INT64},  {"u1", CM_UINT8},   {"u2", CM_UINT16}, {"u4", CM_UINT32},
                {"u8", CM_UINT64}, {"f2", CM_FLOAT16}, {"f4", CM_FLOAT},  {"f8", CM_DOUBLE}};

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        char path[512];
        snprintf(path, sizeof path, ARRAYS "%s.npy", rows[i].file);
        check_ramp(array_one(arena, path), rows[i].type, 2, 6);
    }
}

void test_npy__reads_each_type(void)
{
    check_in_arena(each_type);
}

static void complex(struct cm_arena *arena)
{
    const struct cm_tensor *narrow = array_one(arena, ARRAYS "c8.npy");
    const struct cm_tensor *wide = array_one(arena, ARRAYS "c16.npy");

    CHECK_INT(narrow->type, CM_COMPLEX64);
    CHECK_INT(wide->type, CM_COMPLEX128);
    CHECK(((const float *)narrow->data)[10] == 5 && ((const float *)narrow->data)[11] == 0);
    CHECK(((const double *)wide->data)[10] == 5 && ((const double *)wide->data)[11] == 0);
    CHECK_INT(array_one(arena, ARRAYS "bfloat16.npy")->type, CM_BFLOAT16);
}

void test_npy__reads_complex_numbers_and_bfloat16(void)
{
    check_in_arena(complex);
}

static void orders(struct cm_arena *arena)
{
    check_ramp(array_one(arena, ARRAYS "columns.npy"), CM_FLOAT, 2, 6);
    check_ramp(array_one(arena, ARRAYS "cube.npy"), CM_INT32, 3, 24);
    check_ramp(array_one(arena, ARRAYS "version2.npy"), CM_FLOAT, 2, 6);
    check_ramp(array_one(arena, ARRAYS "version3.npy"), CM_FLOAT, 2, 6);
}

void test_npy__reads_both_orders_and_all_versions(void)
{
    check_in_arena(orders);
}

static void odd_shapes(struct cm_arena *arena)
{
    const struct cm_tensor *scalar = array_one(arena, ARRAYS "scalar.npy");
    const struct cm_tensor *empty = array_one(arena, ARRAYS "empty.npy");

    CHECK_INT(scalar->shape.rank, 0);
    CHECK_INT(cm_tensor_int(scalar, 0), 7);
    CHECK_INT(empty->shape.rank, 3);
    CHECK_INT(cm_tensor_count(empty), 0);
}

void test_npy__reads_scalars_and_empty_arrays(void)
{
    check_in_arena(odd_shapes);
}

static void strings(struct cm_arena *arena)
{
    const struct cm_tensor *text = array_one(arena, ARRAYS "text.npy");
    const struct cm_tensor *bytes = array_one(arena, ARRAYS "bytes.npy");

    CHECK_INT(text->type, CM_STRING);
    CHECK_STR(((const struct cm_str *)text->data)[0], "a");
    CHECK_STR(((const struct cm_str *)text->data)[1], "größe");
    CHECK_STR(((const struct cm_str *)text->data)[2], "");
    CHECK_STR(((const struct cm_str *)text->data)[3], "日本𝄞");
    CHECK_STR(((const struct cm_str *)bytes->data)[0], "a");
    CHECK_INT(((const struct cm_str *)bytes->data)[1].size, 3);
}

void test_npy__reads_text_and_bytes(void)
{
    check_in_arena(strings);
}

static void refusals(struct cm_arena *arena)
{
    static const struct {
        const char *file;
        enum cm_status status;
        const char *part;
    } rows[] = {
        {"big", CM_UNSUPPORTED, "big-endian"},
        {"object", CM_UNSUPPORTED, "pickled"},
        {"record", CM_BAD_MODEL, "structured"},
    };
    struct cm_arrays arrays;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        char path[512];
        snprintf(path, sizeof path, ARRAYS "%s.npy", rows[i].file);
        CHECK_FAILS(cm_arrays_open(arena, path, NULL, &arrays, &err), rows[i].status, &err,
                    rows[i].part);
        CHECK(strstr(err.text, path));
    }
    CHECK_FAILS(cm_arrays_open(arena, ARRAYS "none.npy", NULL, &arrays, &err), CM_NOT_FOUND, &err,
                "there is no file");
    CHECK_FAILS(cm_arrays_open(arena, "x.csv", NULL, &arrays, &err), CM_BAD_ARGUMENT, &err,
                "must end in .npy");
}

void test_npy__refuses_what_it_cannot_hold(void)
{
    check_in_arena(refusals);
}

static void cuts(struct cm_arena *arena)
{
    const struct cm_str whole = array_bytes(arena, ARRAYS "f4.npy");
    struct cm_arrays arrays;
    struct cm_error err;

    for (size_t size = 0; size < whole.size; size++)
        CHECK_INT(
            array_parse(arena, (struct cm_str){whole.data, size}, CM_ARRAYS_NPY, &arrays, &err),
            CM_BAD_MODEL);
    CHECK_FAILS(array_parse(arena, (struct cm_str){whole.data, whole.size - 1}, CM_ARRAYS_NPY,
                            &arrays, &err),
                CM_BAD_MODEL, &err, "has 23 bytes of elements, its shape needs 24");
}

void test_npy__refuses_every_truncation(void)
{
    check_in_arena(cuts);
}

/* A file of this header and size bytes of elements. */
static struct cm_str with_header(struct cm_arena *arena, const char *header, size_t size)
{
    const size_t length = strlen(header);
    char *room = cm_arena_alloc(arena, 10 + length + size);

    memcpy(room, "\x93NUMPY\x01\x00", 8);
    room[8] = (char)length;
    memcpy(room + 10, header, length);
    return (struct cm_str){room, 10 + length + size};
}

static void headers(struct cm_arena *arena)
{
    static const struct {
        const char *header, *part;
    } rows[] = {
        {"", "is not a dictionary"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks one of"},
        {"{'descr': '<f4', 'shape': (1,), 'shape': (1,)}", "twice"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "order of elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not made of numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1}", "without an end"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "goes on after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'extra': 1}", "unknown entry"},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", "is not valid"},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "no counterpart in ONNX"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
         "overflows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999,)}", "its shape needs"},
    };
    struct cm_arrays arrays;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        const enum cm_status status =
            array_parse(arena, with_header(arena, rows[i].header, 4), CM_ARRAYS_NPY, &arrays, &err);
        if (status == CM_OK || !strstr(err.text, rows[i].part))
            fail_msg("row %zu: %s", i, status ? err.text : "accepted");
    }
    CHECK_OK(
        array_parse(arena,
                    with_header(arena, "{'shape':(1L,),'fortran_order':True,'descr':\"<f4\"}", 4),
                    CM_ARRAYS_NPY, &arrays, &err),
        &err);
}

void test_npy__refuses_headers_that_make_no_sense(void)
{
    check_in_arena(headers);
}

static void not_bool(struct cm_arena *arena)
{
    struct cm_arrays arrays;
    struct cm_error err;
    const struct cm_str file =
        with_header(arena, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", 1);

    ((char *)(uintptr_t)file.data)[file.size - 1] = 2;
    CHECK_FAILS(array_parse(arena, file, CM_ARRAYS_NPY, &arrays, &err), CM_BAD_MODEL, &err,
                "not a boolean");
}

void test_npy__refuses_a_bool_that_is_none(void)
{
    check_in_arena(not_bool);
}

/* Writes tensor, reads it back and returns what came. */
static const struct cm_tensor *there_and_back(struct cm_arena *arena,
                                              const struct cm_tensor *tensor)
{
    const struct cm_array item = {.name = CM_STR("x"),
                                  .value = {.kind = CM_KIND_TENSOR, .tensor = *tensor}};
    struct folder folder;
    struct cm_error err;
    char path[FOLDER_PATH_SIZE];

    folder_make(&folder);
    folder_path(&folder, "x.npy", path);
    CHECK_OK(cm_arrays_save(arena, path, &item, 1, &err), &err);
    const struct cm_tensor *back = array_one(arena, path); /* mapped: the name may go */
    folder_remove(&folder);
    return back;
}

static void writes(struct cm_arena *arena)
{
    static const char *const files[] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2",
                                        "u4", "u8", "f2", "f4", "f8", "c8", "c16"};

    for (size_t i = 0; i < CM_COUNT(files); i++) {
        char path[512];
        snprintf(path, sizeof path, ARRAYS "%s.npy", files[i]);
        const struct cm_tensor *tensor = array_one(arena, path);
        const struct cm_tensor *back = there_and_back(arena, tensor);

        CHECK_INT(back->type, tensor->type);
        CHECK(cm_shape_equal(&back->shape, &tensor->shape));
        CHECK(memcmp(back->data, tensor->data, cm_tensor_bytes(tensor)) == 0);
    }
    const struct cm_tensor *text = there_and_back(arena, array_one(arena, ARRAYS "text.npy"));
    CHECK_STR(((const struct cm_str *)text->data)[3], "日本𝄞");
    const struct cm_tensor *bytes = there_and_back(arena, array_one(arena, ARRAYS "bytes.npy"));
    CHECK_INT(((const struct cm_str *)bytes->data)[1].size, 3);
    CHECK_INT(there_and_back(arena, array_one(arena, ARRAYS "scalar.npy"))->shape.rank, 0);
    CHECK_INT(there_and_back(arena, array_one(arena, ARRAYS "empty.npy"))->shape.dims[2], 3);
}

void test_npy__what_is_written_reads_back(void)
{
    check_in_arena(writes);
}

static void widens(struct cm_arena *arena)
{
    uint8_t nibbles[] = {0x10, 0xf2}; /* 0 1 2 -1 */
    uint16_t halves[] = {0x3f80, 0x4000};
    struct cm_tensor ints = cm_tensor_borrow(CM_INT4, &CM_SHAPE(4), nibbles);
    struct cm_tensor floats = cm_tensor_borrow(CM_BFLOAT16, &CM_SHAPE(2), halves);
    const struct cm_tensor *wide_ints = there_and_back(arena, &ints);
    const struct cm_tensor *wide_floats = there_and_back(arena, &floats);

    CHECK_INT(wide_ints->type, CM_INT8);
    CHECK_INT(cm_tensor_int(wide_ints, 2), 2);
    CHECK_INT(cm_tensor_int(wide_ints, 3), -1);
    CHECK_INT(wide_floats->type, CM_FLOAT);
    CHECK(cm_tensor_real(wide_floats, 1) == 2);
}

void test_npy__types_that_numpy_has_not_are_widened(void)
{
    check_in_arena(widens);
}
