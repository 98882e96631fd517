/* Values that callers make, of memory and of other values, and that go to and come from other
 * libraries through DLPack: who owns what, and for how long. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/memory.h"
#include "cameo_dlpack.h"
#include "check.h"

#include <stdlib.h>

static const int64_t two[] = {2}, three[] = {3};

static struct cameo_session *open_session(const char *text, struct cameo_model **model)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    load.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, strlen(text), &load, model, &err) != CAMEO_OK ||
        cameo_session_new(*model, NULL, &session, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return session;
}

/* ---- memory of the caller's ---- */

struct block {
    float values[3];
    int freed;
};

static void free_block(void *arg)
{
    struct block *block = arg;

    block->freed++;
    memset(block->values, 0xff, sizeof block->values); /* who still reads it, reads NaN */
}

void test_values__memory_is_used_in_place_and_let_go_when_nothing_reads_it(void)
{
    struct block block = {{1, 2, 3}, 0};
    struct cameo_tensor tensor =
        cameo_tensor_of(CAMEO_FLOAT, 1, three, block.values, sizeof block.values);
    struct cameo_model *model;
    struct cameo_session *session =
        open_session("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                     "g (float[3] x) => (float[3,1] y)\n"
                     "<int64[2] shape = {3, 1}> { y = Reshape(x, shape) }\n",
                     &model);
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_value *value;
    struct cameo_error err;

    tensor.deleter = free_block;
    tensor.deleter_arg = &block;
    OK(cameo_value_from_tensor(&tensor, &value, &err));
    CHECK(cameo_value_data(value) == block.values);
    CHECK(cameo_value_mutable_data(value) == block.values);
    const struct cameo_feed feed = cameo_feed_value("x", value);
    OK(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err));
    cameo_value_free(value);
    CHECK(cameo_value_real(fetch.value, 2) == 3); /* a view, or a copy */
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
    CHECK_INT(block.freed, 1);
}

void test_values__memory_without_a_deleter_is_lent_until_the_value_is_freed(void)
{
    float values[] = {1, 2, 3};
    struct cameo_value *value, *list;
    struct cameo_error err;

    OK(cameo_value_from_tensor(lend(CAMEO_FLOAT, 1, three, values, sizeof values), &value, &err));
    CHECK(cameo_value_data(value) == values);
    const struct cameo_value *items[] = {value};
    OK(cameo_value_new_sequence(items, 1, &list, &err));
    cameo_value_free(value);
    memset(values, 0, sizeof values);
    CHECK(cameo_value_real(cameo_value_item(list, 0), 2) == 3); /* a copy of its own */
    cameo_value_free(list);
}

void test_values__memory_that_kernels_cannot_read_in_place_is_copied_at_once(void)
{
    static const int64_t apart[] = {2};
    struct block block = {{1, 2, 3}, 0};
    struct cameo_tensor tensor =
        cameo_tensor_of(CAMEO_FLOAT, 1, two, block.values, sizeof block.values);
    struct cameo_value *value;
    struct cameo_error err;

    tensor.strides = apart;
    tensor.deleter = free_block;
    tensor.deleter_arg = &block;
    OK(cameo_value_from_tensor(&tensor, &value, &err));
    CHECK_INT(block.freed, 1);
    CHECK(cameo_value_real(value, 0) == 1 && cameo_value_real(value, 1) == 3);
    cameo_value_free(value);

    tensor.dtype = CAMEO_INT4; /* strides of packed elements */
    block.freed = 0;
    CHECK_INT(cameo_value_from_tensor(&tensor, &value, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "of less than a byte, have strides"));
    CHECK(value == NULL);
    CHECK_INT(block.freed, 0);
}

void test_values__strings_are_copied(void)
{
    const char *const words[] = {"one", ""};
    struct cameo_value *value;
    struct cameo_error err;

    OK(cameo_value_new_strings(1, two, words, &value, &err));
    CHECK_INT(cameo_value_dtype(value), CAMEO_STRING);
    CHECK_STRING(cameo_value_string(value, 0).data, "one");
    CHECK_INT(cameo_value_string(value, 1).size, 0);
    CHECK(cameo_value_mutable_data(value) == NULL);
    cameo_value_free(value);

    char bytes[] = "a\0b";
    const struct cameo_text text = {bytes, 3};
    OK(cameo_value_from_tensor(lend(CAMEO_STRING, 0, NULL, &text, sizeof text), &value, &err));
    memset(bytes, 'x', sizeof bytes);
    CHECK(memcmp(cameo_value_string(value, 0).data, "a\0b", 4) == 0);
    cameo_value_free(value);

    CHECK_INT(cameo_value_new_strings(1, two, NULL, &value, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "string 0 is NULL");
}

/* ---- values of values ---- */

static struct cameo_value *floats(float first, const int64_t *dims)
{
    struct cameo_value *value;
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 1, dims, &value, &err));
    for (int64_t i = 0; i < dims[0]; i++)
        cameo_value_set_real(value, i, (double)first + (double)i);
    return value;
}

void test_values__a_sequence_is_fed_to_a_model(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                                 "g (seq(float[N]) s) => (float[N] y)\n"
                                                 "{ y = ConcatFromSequence <axis: int = 0> (s) }\n",
                                                 &model);
    struct cameo_value *a = floats(1, two), *b = floats(10, three), *list, *wrong;
    const struct cameo_value *items[] = {a, b};
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_error err;

    OK(cameo_value_new_sequence(items, 2, &list, &err));
    cameo_value_free(a);
    cameo_value_free(b);
    CHECK_INT(cameo_value_kind(list), CAMEO_KIND_SEQUENCE);
    CHECK_INT(cameo_value_item_count(list), 2);
    const struct cameo_feed feed = cameo_feed_value("s", list);
    OK(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err));
    CHECK_INT(cameo_value_count(fetch.value), 5);
    CHECK(cameo_value_real(fetch.value, 4) == 12);

    OK(cameo_value_new(CAMEO_INT64, 1, two, &wrong, &err));
    const struct cameo_value *mixed[] = {fetch.value, wrong};
    struct cameo_value *none;
    CHECK_INT(cameo_value_new_sequence(mixed, 2, &none, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "item 1 is of another type than item 0");
    OK(cameo_value_new_sequence(NULL, 0, &none, &err));
    CHECK_INT(cameo_value_item_count(none), 0);
    cameo_value_free(none);
    cameo_value_free(wrong);
    cameo_value_free(fetch.value);
    cameo_value_free(list);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_values__a_map_is_fed_to_a_model(void)
{
    static const char *const words[] = {"b", "a"};
    struct cameo_model *model;
    struct cameo_session *session =
        open_session("<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
                     "g (map(string, float) m) => (float[1,C] y)\n"
                     "{ y = ai.onnx.ml.DictVectorizer <string_vocabulary: strings = [\"a\", \"b\", "
                     "\"c\"]> (m) }\n",
                     &model);
    static const int64_t one[] = {1};
    struct cameo_value *a = floats(7, one), *b = floats(9, one), *keys, *map, *wrong;
    const struct cameo_value *items[] = {b, a};
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_error err;

    OK(cameo_value_new_strings(1, two, words, &keys, &err));
    OK(cameo_value_new_map(keys, items, &map, &err));
    CHECK_INT(cameo_value_kind(map), CAMEO_KIND_MAP);
    CHECK_STRING(cameo_value_string(map, 1).data, "a");
    CHECK_INT(cameo_value_new_map(a, items, &wrong, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "the keys of a map are a list of integers or strings"));
    cameo_value_free(keys);
    cameo_value_free(a);
    cameo_value_free(b);
    const struct cameo_feed feed = cameo_feed_value("m", map);
    OK(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err));
    CHECK(cameo_value_real(fetch.value, 0) == 7 && cameo_value_real(fetch.value, 1) == 9 &&
          cameo_value_real(fetch.value, 2) == 0);
    cameo_value_free(fetch.value);
    cameo_value_free(map);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_values__an_optional_is_its_content_or_none(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session("<ir_version: 8, opset_import: [\"\" : 18]>\n"
                                                 "g (optional(float[2]) o) => (bool y)\n"
                                                 "{ y = OptionalHasElement(o) }\n",
                                                 &model);
    struct cameo_value *content = floats(1, two), *optional;
    struct cameo_error err;

    for (int full = 0; full < 2; full++) {
        struct cameo_fetch fetch = cameo_fetch_value("y");

        OK(cameo_value_new_optional(full ? content : NULL, &optional, &err));
        CHECK_INT(cameo_value_kind(optional), full ? CAMEO_KIND_TENSOR : CAMEO_KIND_NONE);
        const struct cameo_feed feed = cameo_feed_value("o", optional);
        OK(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err));
        CHECK_INT(cameo_value_integer(fetch.value, 0), full);
        cameo_value_free(fetch.value);
        cameo_value_free(optional);
    }
    cameo_value_free(content);
    cameo_session_free(session);
    cameo_model_free(model);
}

/* ---- DLPack ---- */

/* A tensor as another library would hand it over: everything on the heap, freed by its deleter. */
struct foreign {
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor old;
    int64_t shape[2], strides[2];
    int *freed;
    float values[6];
};

static void free_foreign(struct DLManagedTensorVersioned *self)
{
    struct foreign *foreign = self->manager_ctx;

    ++*foreign->freed;
    free(foreign);
}

static void free_foreign_old(struct DLManagedTensor *self)
{
    struct foreign *foreign = self->manager_ctx;

    ++*foreign->freed;
    free(foreign);
}

static struct foreign *make_foreign(int *freed)
{
    struct foreign *f = calloc(1, sizeof *f);

    CHECK(f != NULL);
    f->freed = freed;
    f->shape[0] = 2;
    f->shape[1] = 3;
    f->strides[0] = 3;
    f->strides[1] = 1;
    for (int i = 0; i < 6; i++)
        f->values[i] = (float)i;
    f->versioned = (struct DLManagedTensorVersioned){
        .version = {1, 0},
        .manager_ctx = f,
        .deleter = free_foreign,
        .dl_tensor = {.data = f->values,
                      .device = {1, 0},
                      .ndim = 2,
                      .dtype = {CAMEO_DL_FLOAT, 32, 1},
                      .shape = f->shape,
                      .strides = f->strides},
    };
    f->old = (struct DLManagedTensor){f->versioned.dl_tensor, f, free_foreign_old};
    return f;
}

void test_dlpack__dense_memory_comes_in_without_a_copy(void)
{
    int freed = 0;
    struct cameo_value *value;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);
    const void *memory = f->values;

    OK(cameo_value_from_dlpack(&f->versioned, &value, &err));
    CHECK(cameo_value_data(value) == memory);
    CHECK(cameo_value_mutable_data(value) == memory);
    CHECK_INT(cameo_value_rank(value), 2);
    CHECK_INT(cameo_value_dims(value)[1], 3);
    CHECK_INT(freed, 0);
    cameo_value_free(value);
    CHECK_INT(freed, 1);

    f = make_foreign(&freed);
    f->old.dl_tensor.strides = NULL;
    f->old.dl_tensor.byte_offset = 4;
    f->shape[0] = 1;
    OK(cameo_value_from_dlpack_unversioned(&f->old, &value, &err));
    CHECK(cameo_value_real(value, 0) == 1);
    cameo_value_free(value);
    CHECK_INT(freed, 2);
}

void test_dlpack__strides_are_gathered_even_backwards(void)
{
    int freed = 0;
    struct cameo_value *value;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);

    f->versioned.dl_tensor.data = f->values + 5;
    f->strides[0] = -3;
    f->strides[1] = -1;
    OK(cameo_value_from_dlpack(&f->versioned, &value, &err));
    CHECK_INT(freed, 1);
    CHECK(cameo_value_real(value, 0) == 5 && cameo_value_real(value, 5) == 0);
    cameo_value_free(value);

    f = make_foreign(&freed);
    f->shape[0] = 3; /* transposed */
    f->shape[1] = 2;
    f->strides[0] = 1;
    f->strides[1] = 3;
    OK(cameo_value_from_dlpack_unversioned(&f->old, &value, &err));
    CHECK(cameo_value_real(value, 1) == 3 && cameo_value_real(value, 2) == 1);
    CHECK_INT(freed, 2);
    cameo_value_free(value);
}

void test_dlpack__strides_that_overflow_are_refused(void)
{
    static const int64_t far[][2] = {
        {INT64_MAX, 1}, {INT64_MIN, 1}, {INT64_MAX / 4, 1}, {1, INT64_MAX / 2}};
    int freed = 0;
    struct cameo_value *value;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);

    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        memcpy(f->strides, far[i], sizeof far[i]);
        REFUSED(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_BAD_ARGUMENT,
                "lead out of all memory");
    }
    f->strides[0] = 3;
    f->strides[1] = 1;
    f->versioned.dl_tensor.byte_offset = UINT64_MAX;
    REFUSED(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_BAD_ARGUMENT,
            "lead out of all memory");
    CHECK_INT(freed, 0);
    f->versioned.deleter(&f->versioned);
}

void test_dlpack__what_is_read_only_stays_so(void)
{
    int freed = 0;
    struct cameo_value *value;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);
    struct DLManagedTensorVersioned *out;
    struct DLManagedTensor *old;

    f->versioned.flags = CAMEO_DL_FLAG_READ_ONLY;
    OK(cameo_value_from_dlpack(&f->versioned, &value, &err));
    CHECK(cameo_value_mutable_data(value) == NULL);
    cameo_value_set_real(value, 0, 77);
    CHECK(cameo_value_real(value, 0) == 0);
    OK(cameo_value_to_dlpack(value, &out, &err));
    CHECK_INT(out->flags, CAMEO_DL_FLAG_READ_ONLY);
    CHECK(out->dl_tensor.data == cameo_value_data(value));
    OK(cameo_value_to_dlpack_unversioned(value, &old, &err));
    CHECK(old->dl_tensor.data != cameo_value_data(value)); /* it cannot say so: a copy */
    cameo_value_free(value);
    CHECK_INT(freed, 0);
    out->deleter(out);
    CHECK_INT(freed, 1);
    CHECK(((const float *)old->dl_tensor.data)[5] == 5);
    old->deleter(old);
}

void test_dlpack__values_go_out_and_outlive_their_handle(void)
{
    struct cameo_value *value = floats(1, three), *lent;
    float values[] = {4, 5, 6};
    struct DLManagedTensorVersioned *out;
    struct DLManagedTensor *old;
    struct cameo_error err;

    OK(cameo_value_to_dlpack(value, &out, &err));
    CHECK_INT(out->version.major, 1);
    CHECK_INT(out->flags, 0);
    CHECK_INT(out->dl_tensor.ndim, 1);
    CHECK_INT(out->dl_tensor.strides[0], 1);
    CHECK(out->dl_tensor.data == cameo_value_data(value));
    ((float *)out->dl_tensor.data)[0] = 50; /* one memory */
    CHECK(cameo_value_real(value, 0) == 50);
    cameo_value_free(value);
    CHECK(((const float *)out->dl_tensor.data)[2] == 3);
    out->deleter(out);

    value = floats(1, three);
    OK(cameo_value_to_dlpack_unversioned(value, &old, &err));
    CHECK(old->dl_tensor.data == cameo_value_data(value));
    cameo_value_free(value);
    old->deleter(old);

    OK(cameo_value_from_tensor(lend(CAMEO_FLOAT, 1, three, values, sizeof values), &lent, &err));
    OK(cameo_value_to_dlpack(lent, &out, &err));
    CHECK_INT(out->flags, CAMEO_DL_FLAG_IS_COPIED);
    cameo_value_free(lent);
    memset(values, 0, sizeof values);
    CHECK(((const float *)out->dl_tensor.data)[1] == 5);
    out->deleter(out);
}

void test_dlpack__every_type_comes_back_as_it_went_out(void)
{
    struct cameo_error err;

    for (int type = CAMEO_FLOAT; type <= CAMEO_FLOAT6E3M2; type++) {
        struct DLManagedTensorVersioned *out;
        struct cameo_value *value, *back;

        OK(cameo_value_new((enum cameo_dtype)type, 1, three, &value, &err));
        const enum cameo_status status = cameo_value_to_dlpack(value, &out, &err);
        if (type == CAMEO_STRING) {
            CHECK_INT(status, CAMEO_UNSUPPORTED);
            CHECK_STRING(err.message, "DLPack has no strings");
            cameo_value_free(value);
            continue;
        }
        OK(status);
        cameo_value_free(value);
        OK(cameo_value_from_dlpack(out, &back, &err));
        CHECK_INT(cameo_value_dtype(back), type);
        CHECK_INT(cameo_value_count(back), 3);
        cameo_value_free(back);
    }
}

void test_dlpack__small_elements_with_a_byte_each_are_packed(void)
{
    int freed = 0;
    struct cameo_value *value;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);
    int8_t padded[6] = {1, -2, 3, -4, 5, -8};

    f->versioned.dl_tensor.data = padded;
    f->versioned.dl_tensor.dtype = (struct DLDataType){CAMEO_DL_INT, 4, 1};
    f->versioned.flags = CAMEO_DL_FLAG_SUBBYTE_PADDED;
    OK(cameo_value_from_dlpack(&f->versioned, &value, &err));
    CHECK_INT(cameo_value_dtype(value), CAMEO_INT4);
    CHECK_INT(cameo_value_bytes(value), 3);
    for (int64_t i = 0; i < 6; i++)
        CHECK_INT(cameo_value_integer(value, i), padded[i]);
    CHECK_INT(freed, 1);
    cameo_value_free(value);
}

void test_dlpack__what_cannot_be_used_stays_the_callers(void)
{
    int freed = 0;
    struct cameo_value *value, *list;
    struct DLManagedTensorVersioned *out;
    struct cameo_error err;
    struct foreign *f = make_foreign(&freed);
    struct DLTensor *tensor = &f->versioned.dl_tensor;

    tensor->device.device_type = 2;
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "device 2 of DLPack"));
    tensor->device.device_type = 1;
    tensor->dtype.code = CAMEO_DL_FLOAT8_E3M4;
    tensor->dtype.bits = 8;
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "type code 7 with 8 bits"));
    tensor->dtype = (struct DLDataType){CAMEO_DL_FLOAT, 32, 4};
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_UNSUPPORTED);
    tensor->dtype.lanes = 1;
    tensor->ndim = 65;
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_BAD_ARGUMENT);
    tensor->ndim = 2;
    f->shape[0] = f->shape[1] = INT64_MAX / 2;
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_BAD_ARGUMENT);
    f->versioned.version.major = 2;
    CHECK_INT(cameo_value_from_dlpack(&f->versioned, &value, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "version 2 of DLPack"));
    CHECK_INT(freed, 0);
    free(f);

    OK(cameo_value_new_sequence(NULL, 0, &list, &err));
    CHECK_INT(cameo_value_to_dlpack(list, &out, &err), CAMEO_UNSUPPORTED);
    CHECK_STRING(err.message, "DLPack has nothing but tensors");
    cameo_value_free(list);
}

/* Every allocation fails once: nothing leaks, and memory is let go exactly when it was taken. */
void test_oom__values_and_dlpack_fail_cleanly(void)
{
    static const char *const words[] = {"one", "two"};

    for (uint64_t at = 1;; at++) {
        struct block block = {{1, 2, 3}, 0};
        struct cameo_tensor tensor =
            cameo_tensor_of(CAMEO_FLOAT, 1, three, block.values, sizeof block.values);
        struct cameo_value *value = NULL, *strings = NULL, *list = NULL, *map = NULL;
        struct DLManagedTensorVersioned *out = NULL;

        tensor.deleter = free_block;
        tensor.deleter_arg = &block;
        cm_memory_fail_after(at);
        const enum cameo_status made = cameo_value_from_tensor(&tensor, &value, NULL);
        enum cameo_status status = made;
        if (status == CAMEO_OK)
            status = cameo_value_new_strings(1, two, words, &strings, NULL);
        const struct cameo_value *items[] = {value, value};
        if (status == CAMEO_OK)
            status = cameo_value_new_sequence(items, 2, &list, NULL);
        if (status == CAMEO_OK)
            status = cameo_value_new_map(strings, items, &map, NULL);
        if (status == CAMEO_OK)
            status = cameo_value_to_dlpack(value, &out, NULL);
        cm_memory_fail_after(0);
        if (out)
            out->deleter(out);
        cameo_value_free(map);
        cameo_value_free(list);
        cameo_value_free(strings);
        cameo_value_free(value);
        CHECK_INT(block.freed, made == CAMEO_OK);
        if (status == CAMEO_OK)
            break;
        CHECK_INT(status, CAMEO_NO_MEMORY);
        CHECK(at < 1000);
    }
}
