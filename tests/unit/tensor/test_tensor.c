/* Buffers, tensors and data: lifetimes, element access, memory running out. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "tensor/tensor.h"

static void count_call(void *owner)
{
    ++*(int *)owner;
}

void test_buffer__is_aligned_and_freed_with_the_last_reference(void)
{
    struct cm_error err;
    struct cm_buffer *buffer;
    CHECK_OK(cm_buffer_new(100, &buffer, &err), &err);
    CHECK_INT((uintptr_t)cm_buffer_data(buffer) % CM_TENSOR_ALIGNMENT, 0);
    memset(cm_buffer_data(buffer), 1, 100);
    CHECK(cm_buffer_keep(buffer) == buffer);
    cm_buffer_drop(buffer);
    CHECK_INT(((char *)cm_buffer_data(buffer))[99], 1);
    cm_buffer_drop(buffer);
    cm_buffer_drop(NULL);
    CHECK(!cm_buffer_keep(NULL));
}

void test_buffer__of_impossible_size_is_refused(void)
{
    struct cm_error err;
    struct cm_buffer *buffer;
    CHECK_FAILS(cm_buffer_new(SIZE_MAX, &buffer, &err), CM_NO_MEMORY, &err, "no memory for");
    CHECK_FAILS(cm_buffer_new(SIZE_MAX - 64, &buffer, &err), CM_NO_MEMORY, &err, "no memory");
}

void test_buffer__wrapped_bytes_go_back_to_their_owner_once(void)
{
    struct cm_error err;
    struct cm_buffer *buffer;
    int calls = 0;
    char bytes[4] = "abc";
    CHECK_OK(cm_buffer_wrap(bytes, 4, count_call, &calls, &buffer, &err), &err);
    CHECK(cm_buffer_data(buffer) == bytes);
    cm_buffer_keep(buffer);
    cm_buffer_drop(buffer);
    CHECK_INT(calls, 0);
    cm_buffer_drop(buffer);
    CHECK_INT(calls, 1);
}

void test_buffer__holds_another_until_it_goes(void)
{
    struct cm_error err;
    struct cm_buffer *views, *bytes;
    int calls = 0;
    CHECK_OK(cm_buffer_new(8, &views, &err), &err);
    CHECK_OK(cm_buffer_wrap(NULL, 0, count_call, &calls, &bytes, &err), &err);
    CHECK_OK(cm_buffer_hold(views, bytes, &err), &err);
    CHECK_OK(cm_buffer_hold(views, views, &err), &err);
    cm_buffer_drop(bytes);
    CHECK_INT(calls, 0);
    cm_buffer_drop(views);
    CHECK_INT(calls, 1);
}

void test_tensor__new_strings_are_empty(void)
{
    struct cm_error err;
    struct cm_tensor tensor;
    CHECK_OK(cm_tensor_new(CM_STRING, &CM_SHAPE(3), &tensor, &err), &err);
    CHECK_INT(cm_tensor_count(&tensor), 3);
    for (int i = 0; i < 3; i++)
        CHECK_INT(((struct cm_str *)tensor.data)[i].size, 0);
    cm_tensor_drop(&tensor);
    CHECK(!tensor.buffer && !tensor.data);
}

void test_tensor__too_large_a_shape_is_refused(void)
{
    struct cm_error err;
    struct cm_tensor tensor;
    CHECK_FAILS(
        cm_tensor_new(CM_FLOAT, &CM_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), &tensor, &err),
        CM_LIMIT, &err, "float[1099511627776x1099511627776] is too large");
    CHECK_FAILS(cm_tensor_new(CM_DOUBLE, &CM_SHAPE(INT64_C(1) << 62), &tensor, &err), CM_LIMIT,
                &err, "too large");
}

void test_tensor__copies_are_deep(void)
{
    struct cm_error err;
    float numbers[] = {1, 2, 3};
    struct cm_tensor from = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3), numbers), copy;
    CHECK_OK(cm_tensor_copy(&from, &copy, &err), &err);
    numbers[1] = 9;
    CHECK(cm_tensor_real(&copy, 1) == 2);
    cm_tensor_drop(&copy);

    char word[] = "word";
    struct cm_str words[] = {{word, 4}, {NULL, 0}, {word, 2}};
    from = cm_tensor_borrow(CM_STRING, &CM_SHAPE(3), words);
    CHECK_OK(cm_tensor_copy(&from, &copy, &err), &err);
    memset(word, 'x', 4);
    const struct cm_str *got = copy.data;
    CHECK_STR(got[0], "word");
    CHECK_STR(got[1], "");
    CHECK_STR(got[2], "wo");
    cm_tensor_drop(&copy);
}

void test_tensor__elements_of_every_real_type_can_be_read(void)
{
    /* clang-format off */
    static const uint8_t raw[CM_DTYPE_COUNT][16] = {
        [CM_FLOAT] = {0, 0, 0, 0, 0, 0, 0x40, 0xC0},       [CM_UINT8] = {0, 0xFD},
        [CM_INT8] = {0, 0xFD},                             [CM_UINT16] = {0, 0, 0xFD, 0xFF},
        [CM_INT16] = {0, 0, 0xFD, 0xFF},                   [CM_INT32] = {0, 0, 0, 0, 0xFD, 0xFF, 0xFF, 0xFF},
        [CM_INT64] = {0, 0, 0, 0, 0, 0, 0, 0, 0xFD, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        [CM_BOOL] = {0, 1},                                [CM_FLOAT16] = {0, 0, 0, 0xC2},
        [CM_DOUBLE] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0xC0},
        [CM_UINT32] = {0, 0, 0, 0, 0xFD, 0xFF, 0xFF, 0xFF},
        [CM_UINT64] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80},
        [CM_BFLOAT16] = {0, 0, 0x40, 0xC0},                [CM_FLOAT8E4M3FN] = {0, 0xC4},
        [CM_FLOAT8E4M3FNUZ] = {0, 0xCC},                   [CM_FLOAT8E5M2] = {0, 0xC2},
        [CM_FLOAT8E5M2FNUZ] = {0, 0xC6},                   [CM_UINT4] = {0xD0},
        [CM_INT4] = {0xD0},                                [CM_FLOAT4E2M1] = {0xD0},
        [CM_FLOAT8E8M0] = {127, 129},                      [CM_UINT2] = {0x0C},
        [CM_INT2] = {0x0C},
        [CM_FLOAT6E2M3] = {0x00, 0x0D},                    [CM_FLOAT6E3M2] = {0x80, 0x0C},
    };
    static const double second[CM_DTYPE_COUNT] = {
        [CM_FLOAT] = -3, [CM_UINT8] = 253, [CM_INT8] = -3, [CM_UINT16] = 65533, [CM_INT16] = -3,
        [CM_INT32] = -3, [CM_INT64] = -3, [CM_BOOL] = 1, [CM_FLOAT16] = -3, [CM_DOUBLE] = -3,
        [CM_UINT32] = 4294967293.0, [CM_UINT64] = 9223372036854775808.0, [CM_BFLOAT16] = -3,
        [CM_FLOAT8E4M3FN] = -3, [CM_FLOAT8E4M3FNUZ] = -3, [CM_FLOAT8E5M2] = -3,
        [CM_FLOAT8E5M2FNUZ] = -3, [CM_UINT4] = 13, [CM_INT4] = -3, [CM_FLOAT4E2M1] = -3,
        [CM_FLOAT8E8M0] = 4, [CM_UINT2] = 3, [CM_INT2] = -1,
        [CM_FLOAT6E2M3] = -3, [CM_FLOAT6E3M2] = -3,
    };
    /* clang-format on */
    for (int t = 1; t < CM_DTYPE_COUNT; t++) {
        const enum cm_dtype_class kind = cm_dtype_info((enum cm_dtype)t)->kind;
        _Alignas(64) uint8_t data[16];
        if (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX)
            continue;
        memcpy(data, raw[t], sizeof data);
        const struct cm_tensor tensor = cm_tensor_borrow((enum cm_dtype)t, &CM_SHAPE(2), data);
        CHECK(cm_tensor_real(&tensor, 0) == (t == CM_FLOAT8E8M0 ? 1 : 0));
        CHECK(cm_tensor_real(&tensor, 1) == second[t]);
        if (kind != CM_CLASS_FLOAT && t != CM_UINT64)
            CHECK_INT(cm_tensor_int(&tensor, 1), second[t]);
    }
}

void test_tensor__bytes_are_those_of_storage(void)
{
    CHECK_INT(cm_tensor_bytes(&(struct cm_tensor){.type = CM_INT4, .shape = CM_SHAPE(3, 3)}), 5);
    CHECK_INT(cm_tensor_bytes(&(struct cm_tensor){.type = CM_DOUBLE, .shape = CM_SHAPE(3, 0)}), 0);
    CHECK_INT(cm_tensor_bytes(&(struct cm_tensor){.type = CM_FLOAT, .shape = CM_SCALAR}), 4);
}

/* A sequence of two sequences that share one buffer. */
static enum cm_status make_nested(struct cm_datum *out, struct cm_error *err)
{
    struct cm_datum leaf = {.kind = CM_KIND_TENSOR};
    CM_TRY(cm_tensor_new(CM_FLOAT, &CM_SHAPE(2), &leaf.tensor, err));
    struct cm_datum inner = {.kind = CM_KIND_SEQUENCE, .items = &leaf, .n_items = 1};
    struct cm_datum pair[] = {inner, inner};
    const struct cm_datum outer = {.kind = CM_KIND_SEQUENCE, .items = pair, .n_items = 2};
    const enum cm_status status = cm_datum_share(&outer, out, err);
    cm_datum_drop(&leaf);
    return status;
}

void test_datum__shares_buffers_through_nesting(void)
{
    struct cm_error err;
    struct cm_datum datum, again;
    CHECK_OK(make_nested(&datum, &err), &err);
    CHECK_OK(cm_datum_share(&datum, &again, &err), &err);
    CHECK(again.items != datum.items);
    CHECK(again.items[1].items[0].tensor.buffer == datum.items[0].items[0].tensor.buffer);
    cm_datum_drop(&datum);
    ((float *)again.items[1].items[0].tensor.data)[1] = 1;
    cm_datum_drop(&again);
    CHECK_INT(again.kind, CM_KIND_NONE);
}

void test_oom__sharing_a_datum_leaks_nothing_wherever_memory_ends(void)
{
    enum cm_status status = CM_NO_MEMORY;
    for (uint64_t n = 1; status != CM_OK; n++) {
        struct cm_error err;
        struct cm_datum datum = {0};
        CHECK(n < 20);
        cm_memory_fail_after(n);
        status = make_nested(&datum, &err);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || status == CM_NO_MEMORY);
        cm_datum_drop(&datum);
    }
}

void test_tensor__bits_behind_the_last_element_are_cleared(void)
{
    static const struct {
        enum cm_dtype type;
        int64_t count;
        uint8_t last; /* what is left of 0xff in the last byte */
    } rows[] = {{CM_INT4, 3, 0x0f},  {CM_INT4, 4, 0xff},       {CM_UINT2, 1, 0x03},
                {CM_UINT2, 7, 0x3f}, {CM_FLOAT6E2M3, 1, 0x3f}, {CM_FLOAT6E2M3, 3, 0x03},
                {CM_FLOAT, 1, 0xff}, {CM_INT4, 0, 0xff}};

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        uint8_t bytes[8];
        memset(bytes, 0xff, sizeof bytes);
        const struct cm_tensor tensor =
            cm_tensor_borrow(rows[i].type, &CM_SHAPE(rows[i].count), bytes);
        const size_t size = cm_tensor_bytes(&tensor);
        const bool padded = rows[i].last != 0xff;

        CHECK_INT(cm_tensor_has_padding(&tensor), padded);
        CHECK_INT(cm_tensor_padding_is_clear(&tensor), !padded);
        cm_tensor_clear_padding(&tensor);
        CHECK(cm_tensor_padding_is_clear(&tensor));
        CHECK_INT(bytes[size ? size - 1 : 0], rows[i].last);
        CHECK_INT(bytes[size], 0xff);
    }
}
