/* Tensor contents: every storage form of every type, and the ways they can be wrong. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/model_file.h"
#include "onnx/tensor_data.h"

static struct cm_tensor_proto proto_of(int type, int64_t *dims, size_t rank)
{
    struct cm_tensor_proto proto = {.data_type = type, .dims = {dims, rank}, .name = CM_STR("W")};
    cm_msg_set(&proto.msg, CM_TENSOR_DIMS);
    cm_msg_set(&proto.msg, CM_TENSOR_DATA_TYPE);
    cm_msg_set(&proto.msg, CM_TENSOR_NAME);
    return proto;
}

static void set_raw(struct cm_tensor_proto *proto, const void *bytes, size_t size)
{
    proto->raw_data = (struct cm_str){bytes, size};
    cm_msg_set(&proto->msg, CM_TENSOR_RAW_DATA);
}

static void set_int32s(struct cm_tensor_proto *proto, const void *bytes, size_t size)
{
    proto->int32_data = (struct cm_packed){bytes, size};
    cm_msg_set(&proto->msg, CM_TENSOR_INT32_DATA);
}

void test_tensor_data__aligned_raw_data_is_viewed_and_unaligned_copied(void)
{
    _Alignas(16) char bytes[20];
    const float values[] = {1, 2, 3, 4};
    int64_t dims[] = {2, 2};
    struct cm_tensor_proto proto = proto_of(CM_FLOAT, dims, 2);
    struct cm_tensor tensor;
    struct cm_error err;

    memcpy(bytes, values, 16);
    set_raw(&proto, bytes, 16);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK(tensor.data == bytes && !tensor.buffer);
    CHECK(cm_shape_equal(&tensor.shape, &CM_SHAPE(2, 2)));

    memmove(bytes + 1, values, 16);
    set_raw(&proto, bytes + 1, 16);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK(tensor.buffer && (uintptr_t)tensor.data % 4 == 0);
    CHECK(cm_tensor_real(&tensor, 3) == 4);
    cm_tensor_drop(&tensor);
}

void test_tensor_data__raw_data_of_the_wrong_size_is_refused(void)
{
    int64_t dims[] = {2, 3};
    struct cm_tensor_proto proto = proto_of(CM_FLOAT, dims, 2);
    struct cm_error err;

    set_raw(&proto, "0123456789", 10);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err,
                "tensor 'W': raw_data has 10 bytes, float[2x3] needs 24");
    proto.data_type = CM_INT4;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "int4[2x3] needs 3");
    proto.data_type = CM_FLOAT6E2M3;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "needs 5");
    proto.data_type = CM_STRING;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err,
                "strings cannot be in raw");
}

void test_tensor_data__shapes_that_lie_are_refused(void)
{
    int64_t dims[] = {INT64_C(1) << 40, INT64_C(1) << 40}, many[65] = {0};
    struct cm_tensor_proto proto = proto_of(CM_FLOAT, dims, 2);
    struct cm_shape shape;
    struct cm_error err;
    uint64_t bytes;

    CHECK_FAILS(cm_tensor_proto_shape(&proto, &shape, &err), CM_BAD_MODEL, &err, "63 bits");
    CHECK_FAILS(cm_tensor_proto_bytes(&proto, &bytes, &err), CM_BAD_MODEL, &err, "tensor 'W'");
    dims[1] = -3;
    CHECK_FAILS(cm_tensor_proto_shape(&proto, &shape, &err), CM_BAD_MODEL, &err,
                "dimension 1 is -3");
    dims[0] = INT64_C(1) << 61, dims[1] = 0;
    CHECK_FAILS(cm_tensor_proto_shape(&proto, &shape, &err), CM_BAD_MODEL, &err,
                "dimension 0 is 2305843009213693952, above the limit of 281474976710656");
    dims[0] = CM_MAX_DIM, dims[1] = 1 << 14;
    CHECK_FAILS(cm_tensor_proto_bytes(&proto, &bytes, &err), CM_BAD_MODEL, &err,
                "does not fit in memory");
    proto.dims = (struct cm_int64s){many, 65};
    CHECK_FAILS(cm_tensor_proto_shape(&proto, &shape, &err), CM_BAD_MODEL, &err, "rank 65");
    proto.dims.count = 64;
    CHECK_OK(cm_tensor_proto_shape(&proto, &shape, &err), &err);
}

void test_tensor_data__a_huge_shape_over_few_bytes_allocates_nothing(void)
{
    int64_t dims[] = {INT64_C(1) << 34};
    struct cm_tensor_proto proto = proto_of(CM_INT8, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\1\2\3", 3);
    const uint64_t before = cm_memory_count();
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "int32_data has 3 bytes of varints, int8[17179869184] needs 17179869184");
    CHECK_INT(cm_memory_count(), before);
}

void test_tensor_data__types_and_fields_must_agree(void)
{
    int64_t dims[] = {1};
    struct cm_tensor_proto proto = proto_of(27000, dims, 1);
    struct cm_error err;

    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "data_type is 27000");
    proto.data_type = 0;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "data_type is 0");
    proto.data_type = CM_FLOAT;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "holds no values");
    set_int32s(&proto, "\1", 1);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err,
                "float values must be in float_data or raw_data");
    set_raw(&proto, "1234", 4);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "2 fields hold values");
    cm_msg_clear(&proto.msg, CM_TENSOR_INT32_DATA);
    CHECK_OK(cm_tensor_proto_check(&proto, &err), &err);
    proto.segment = &(struct cm_segment_proto){.end = 1};
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_UNSUPPORTED, &err, "segment");
}

void test_tensor_data__external_tensors_hold_no_values_and_no_strings(void)
{
    int64_t dims[] = {1};
    struct cm_tensor_proto proto = proto_of(CM_FLOAT, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    proto.data_location = CM_LOCATION_EXTERNAL;
    CHECK_OK(cm_tensor_proto_check(&proto, &err), &err);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_UNSUPPORTED, &err,
                "tensor 'W': its data is external");
    set_raw(&proto, "1234", 4);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "holds values though");
    proto.data_type = CM_STRING;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "strings cannot be in an");
    proto.data_location = 2;
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err, "data_location is 2");
}

void test_tensor_data__empty_tensors_need_no_values(void)
{
    int64_t dims[] = {3, 0};
    for (int type = 1; type < CM_DTYPE_COUNT; type++) {
        struct cm_tensor_proto proto = proto_of(type, dims, 2);
        struct cm_tensor tensor;
        struct cm_error err;
        CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
        CHECK_INT(cm_tensor_count(&tensor), 0);
        CHECK(tensor.data != NULL);
        set_raw(&proto, "x", 1);
        CHECK(cm_tensor_proto_check(&proto, &err) == CM_BAD_MODEL);
    }
}

void test_tensor_data__int32_data_takes_signed_and_unsigned_forms(void)
{
    static const uint8_t minus_one[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                        0xFF, 0xFF, 0xFF, 1,    0xFF, 1}; /* -1 and 255 */
    int64_t dims[] = {2};
    static const enum cm_dtype types[] = {CM_INT8, CM_UINT8, CM_FLOAT8E5M2, CM_FLOAT8E8M0};

    for (size_t i = 0; i < CM_COUNT(types); i++) {
        struct cm_tensor_proto proto = proto_of((int)types[i], dims, 1);
        struct cm_tensor tensor;
        struct cm_error err;
        set_int32s(&proto, minus_one, sizeof minus_one);
        CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
        CHECK_INT(((uint8_t *)tensor.data)[0], 255);
        CHECK_INT(((uint8_t *)tensor.data)[1], 255);
        cm_tensor_drop(&tensor);
    }
}

void test_tensor_data__numbers_a_type_cannot_hold_are_refused(void)
{
    int64_t dims[] = {2};
    struct cm_tensor_proto proto = proto_of(CM_INT8, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\x01\x80\x02", 3); /* 1, 256 */
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "tensor 'W': int32_data[1] is 256, which int8 cannot hold");
    proto = proto_of(CM_UINT32, dims, 1);
    proto.uint64_data = (struct cm_packed){(const uint8_t *)"\x01\x80\x80\x80\x80\x10", 6};
    cm_msg_set(&proto.msg, CM_TENSOR_UINT64_DATA);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "uint64_data[1] is 4294967296");
    proto = proto_of(CM_FLOAT6E3M2, dims, 1);
    set_int32s(&proto, "\x3F\x40", 2);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err, "is 64");
}

void test_tensor_data__typed_fields_of_the_wrong_length_are_refused(void)
{
    int64_t dims[] = {2};
    struct cm_tensor_proto proto = proto_of(CM_INT32, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\1\2\3", 3);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "int32_data has 3 values, int32[2] needs 2");
    set_int32s(&proto, "\x81\1", 2);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "int32_data has 1 values");
    set_int32s(&proto, "\1\x81", 2);
    CHECK_FAILS(cm_tensor_proto_load(&proto, NULL, &tensor, &err), CM_BAD_MODEL, &err,
                "int32_data[1] is a broken number");
    proto = proto_of(CM_COMPLEX64, dims, 1);
    proto.float_data = (struct cm_packed){(const uint8_t *)"12345678", 8};
    cm_msg_set(&proto.msg, CM_TENSOR_FLOAT_DATA);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err,
                "float_data has 2 values, complex64[2] needs 4");
    proto = proto_of(CM_STRING, dims, 1);
    proto.string_data = (struct cm_strs){&(struct cm_str){"a", 1}, 1};
    cm_msg_set(&proto.msg, CM_TENSOR_STRING_DATA);
    CHECK_FAILS(cm_tensor_proto_check(&proto, &err), CM_BAD_MODEL, &err,
                "string_data has 1 strings, string[2] needs 2");
}

void test_tensor_data__packed_types_come_a_byte_to_an_entry_and_six_bits_one(void)
{
    int64_t dims[] = {5};
    struct cm_tensor_proto proto = proto_of(CM_UINT4, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\x21\xF3\x01\x08", 4); /* 0x21, 0xF3, 0x08 */
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK_INT(cm_tensor_int(&tensor, 1), 2);
    CHECK_INT(cm_tensor_int(&tensor, 3), 15);
    CHECK_INT(cm_tensor_int(&tensor, 4), 8);
    cm_tensor_drop(&tensor);

    proto = proto_of(CM_FLOAT6E2M3, dims, 1);
    set_int32s(&proto, "\x01\x3F\x08\x10\x08", 5);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK(cm_tensor_real(&tensor, 0) == 0.125 && cm_tensor_real(&tensor, 1) == -7.5);
    CHECK(cm_tensor_real(&tensor, 2) == 1 && cm_tensor_real(&tensor, 3) == 2);
    CHECK(cm_tensor_real(&tensor, 4) == 1);
    cm_tensor_drop(&tensor);
}

void test_tensor_data__bools_become_0_or_1(void)
{
    int64_t dims[] = {3};
    struct cm_tensor_proto proto = proto_of(CM_BOOL, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\0\1\7", 3);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK_INT(memcmp(tensor.data, "\0\1\1", 3), 0);
    cm_tensor_drop(&tensor);
}

/* Varints of every length, and what becomes of them when stored again. */
static void load_elements(struct cm_arena *arena)
{
    struct cm_error err;
    const uint64_t values[] = {1, 300, UINT64_C(1) << 40, UINT64_MAX};
    uint8_t varints[40];
    size_t size = 0;
    int64_t dims[] = {4};

    for (size_t i = 0; i < CM_COUNT(values); i++) {
        uint64_t rest = values[i];
        do {
            varints[size++] = (uint8_t)((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
        } while (rest >>= 7);
    }
    struct cm_tensor_proto proto = proto_of(CM_INT64, dims, 1);
    struct cm_tensor tensor;
    proto.int64_data = (struct cm_packed){varints, size};
    cm_msg_set(&proto.msg, CM_TENSOR_INT64_DATA);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK_INT(cm_tensor_int(&tensor, 1), 300);
    CHECK_INT(cm_tensor_int(&tensor, 2), INT64_C(1) << 40);
    CHECK_INT(cm_tensor_int(&tensor, 3), -1);

    /* Stored again and encoded, it reads back the same. */
    struct cm_str bytes;
    struct cm_tensor_proto back = {0};
    struct cm_tensor again;
    CHECK_OK(cm_tensor_proto_store(&proto, arena, &tensor, &err), &err);
    CHECK(!cm_msg_has(&proto.msg, CM_TENSOR_INT64_DATA));
    CHECK_OK(cm_encode(&cm_tensor_info, &proto, arena, &bytes, &err), &err);
    CHECK_OK(cm_decode(&cm_tensor_info, bytes, arena, &back, &err), &err);
    CHECK_OK(cm_tensor_proto_load(&back, NULL, &again, &err), &err);
    CHECK_INT(memcmp(again.data, tensor.data, 32), 0);
    cm_tensor_drop(&again);
    cm_tensor_drop(&tensor);
}

void test_tensor_data__int64_values_survive_storing(void)
{
    check_in_arena(load_elements);
}

/* Made by ONNX's own helpers: x_raw and x_typed for every type but string. */
static void compare_forms(struct cm_arena *arena)
{
    struct cm_model_file *file;
    struct cm_error err;

    CHECK_OK(cm_model_open(arena, TESTS_DIR "/models/tensor_forms.onnx", NULL, &file, &err), &err);
    const size_t count = file->model.graph->initializer.count;
    CHECK_INT(count, 2 * (CM_DTYPE_COUNT - 2));
    for (size_t i = 0; i < count; i += 2) {
        const struct cm_tensor_proto *pair = &file->model.graph->initializer.items[i];
        struct cm_tensor raw, typed;
        CHECK(cm_str_ends(pair[0].name, "_raw") && cm_str_ends(pair[1].name, "_typed"));
        CHECK_OK(cm_tensor_proto_load(&pair[0], NULL, &raw, &err), &err);
        CHECK_OK(cm_tensor_proto_load(&pair[1], NULL, &typed, &err), &err);
        CHECK_INT(raw.type, typed.type);
        CHECK_INT(memcmp(raw.data, typed.data, cm_tensor_bytes(&raw)), 0);
        cm_tensor_drop(&raw);
        cm_tensor_drop(&typed);
    }
}

void test_tensor_data__raw_and_typed_forms_of_every_type_agree(void)
{
    check_in_arena(compare_forms);
}

static void store_forms(struct cm_arena *arena)
{
    struct cm_error err;
    float values[] = {1, 2};
    int64_t dims[] = {2};
    struct cm_tensor_proto proto = proto_of(CM_FLOAT, dims, 1);
    struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), values);

    proto.float_data = (struct cm_packed){(const uint8_t *)"12345678", 8};
    cm_msg_set(&proto.msg, CM_TENSOR_FLOAT_DATA);
    proto.msg.changed = 0;
    CHECK_OK(cm_tensor_proto_store(&proto, arena, &tensor, &err), &err);
    CHECK(proto.float_data.data == (void *)values && !cm_msg_has(&proto.msg, CM_TENSOR_RAW_DATA));
    CHECK_INT(proto.msg.changed, 1 << CM_TENSOR_FLOAT_DATA);

    struct cm_str words[] = {{"a", 1}};
    tensor = cm_tensor_borrow(CM_STRING, &CM_SCALAR, words);
    CHECK_OK(cm_tensor_proto_store(&proto, arena, &tensor, &err), &err);
    CHECK_INT(proto.dims.count, 0);
    CHECK_INT(proto.data_type, CM_STRING);
    CHECK(!cm_msg_has(&proto.msg, CM_TENSOR_FLOAT_DATA));
    uint64_t bytes;
    CHECK_OK(cm_tensor_proto_bytes(&proto, &bytes, &err), &err);
    CHECK_INT(bytes, 1);
    CHECK_OK(cm_tensor_proto_load(&proto, NULL, &tensor, &err), &err);
    CHECK(tensor.data == words);
}

void test_tensor_data__storing_changes_no_more_than_it_must(void)
{
    check_in_arena(store_forms);
}

void test_oom__loading_a_typed_tensor_says_so(void)
{
    int64_t dims[] = {2};
    struct cm_tensor_proto proto = proto_of(CM_INT32, dims, 1);
    struct cm_tensor tensor;
    struct cm_error err;

    set_int32s(&proto, "\1\2", 2);
    cm_memory_fail_after(1);
    const enum cm_status status = cm_tensor_proto_load(&proto, NULL, &tensor, &err);
    cm_memory_fail_after(0);
    CHECK_FAILS(status, CM_NO_MEMORY, &err, "tensor 'W': no memory");
}
