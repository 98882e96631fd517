/* Values in files of their own: every kind there and back, and the ways their messages can lie. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "check.h"
#include "model_case.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/value_data.h"
#include "wire_case.h"

/* A float tensor of one row: first, first + 1, .. */
static struct cm_datum row(float first, int64_t count)
{
    struct cm_datum datum = {.kind = CM_KIND_TENSOR};
    struct cm_error err;

    CHECK_OK(cm_tensor_new(CM_FLOAT, &CM_SHAPE(count), &datum.tensor, &err), &err);
    for (int64_t i = 0; i < count; i++)
        ((float *)datum.tensor.data)[i] = first + (float)i;
    return datum;
}

static struct cm_datum list(enum cm_kind kind, const struct cm_datum *items, size_t count)
{
    struct cm_datum datum = {.kind = kind, .n_items = count};

    if (count) {
        datum.items = cm_malloc(count * sizeof *items);
        memcpy(datum.items, items, count * sizeof *items);
    }
    return datum;
}

#define LIST(kind, ...)                                                                            \
    list((kind), (const struct cm_datum[]){__VA_ARGS__},                                           \
         sizeof((const struct cm_datum[]){__VA_ARGS__}) / sizeof(struct cm_datum))

static void check_row(const struct cm_datum *datum, double first, int64_t count)
{
    CHECK_INT(datum->kind, CM_KIND_TENSOR);
    CHECK_INT(datum->tensor.type, CM_FLOAT);
    CHECK(cm_shape_equal(&datum->tensor.shape, &CM_SHAPE(count)));
    for (int64_t i = 0; i < count; i++)
        CHECK(cm_tensor_real(&datum->tensor, i) == first + (double)i);
}

/* Stores value, drops it, and loads what was stored. */
static struct cm_datum again(struct cm_arena *arena, struct cm_datum value, enum cm_kind kind)
{
    struct cm_datum back;
    struct cm_str bytes;
    struct cm_error err;

    CHECK_OK(cm_value_proto_store(arena, &value, kind, CM_STR("v"), &bytes, &err), &err);
    cm_datum_drop(&value);
    CHECK_OK(cm_value_proto_load(arena, bytes, kind, &back, &err), &err);
    return back;
}

static void tensors(struct cm_arena *arena)
{
    struct cm_datum back = again(arena, row(3, 4), CM_KIND_TENSOR);
    check_row(&back, 3, 4);
    cm_datum_drop(&back);
    back = again(arena, row(0, 0), CM_KIND_TENSOR);
    check_row(&back, 0, 0);
    cm_datum_drop(&back);
}

void test_value_data__tensors_come_back(void)
{
    check_in_arena(tensors);
}

static void sequences(struct cm_arena *arena)
{
    struct cm_datum back =
        again(arena, LIST(CM_KIND_SEQUENCE, row(1, 2), row(5, 3)), CM_KIND_SEQUENCE);
    CHECK_INT(back.kind, CM_KIND_SEQUENCE);
    CHECK_INT(back.n_items, 2);
    check_row(&back.items[0], 1, 2);
    check_row(&back.items[1], 5, 3);
    cm_datum_drop(&back);

    back = again(arena, list(CM_KIND_SEQUENCE, NULL, 0), CM_KIND_SEQUENCE);
    CHECK_INT(back.kind, CM_KIND_SEQUENCE);
    CHECK_INT(back.n_items, 0);
    cm_datum_drop(&back);

    back = again(
        arena,
        LIST(CM_KIND_SEQUENCE, LIST(CM_KIND_SEQUENCE, row(1, 1)), list(CM_KIND_SEQUENCE, NULL, 0)),
        CM_KIND_SEQUENCE);
    CHECK_INT(back.n_items, 2);
    CHECK_INT(back.items[0].n_items, 1);
    check_row(&back.items[0].items[0], 1, 1);
    CHECK_INT(back.items[1].n_items, 0);
    cm_datum_drop(&back);
}

void test_value_data__sequences_come_back_empty_and_nested_too(void)
{
    check_in_arena(sequences);
}

static void optionals(struct cm_arena *arena)
{
    struct cm_datum back = again(arena, row(2, 2), CM_KIND_OPTIONAL);
    check_row(&back, 2, 2);
    cm_datum_drop(&back);
    back = again(arena, (struct cm_datum){0}, CM_KIND_OPTIONAL);
    CHECK_INT(back.kind, CM_KIND_NONE);
    back = again(arena, LIST(CM_KIND_SEQUENCE, row(2, 2)), CM_KIND_OPTIONAL);
    CHECK_INT(back.kind, CM_KIND_SEQUENCE);
    check_row(&back.items[0], 2, 2);
    cm_datum_drop(&back);
    back = again(arena, LIST(CM_KIND_SEQUENCE, row(2, 2), (struct cm_datum){0}), CM_KIND_SEQUENCE);
    check_row(&back.items[0], 2, 2);
    CHECK_INT(back.items[1].kind, CM_KIND_NONE);
    cm_datum_drop(&back);
}

void test_value_data__optionals_come_back_with_and_without_content(void)
{
    check_in_arena(optionals);
}

static void maps(struct cm_arena *arena)
{
    static const enum cm_dtype types[] = {CM_INT8,  CM_UINT8,  CM_INT16, CM_UINT16,
                                          CM_INT32, CM_UINT32, CM_INT64, CM_UINT64};
    struct cm_error err;
    struct cm_datum map, back;

    for (size_t t = 0; t < CM_COUNT(types); t++) {
        const int64_t keys[] = {7, 100};
        map = LIST(CM_KIND_MAP, row(1, 1), row(2, 1));
        CHECK_OK(cm_tensor_new(types[t], &CM_SHAPE(2), &map.tensor, &err), &err);
        for (size_t i = 0; i < 2; i++)
            memcpy((char *)map.tensor.data + i * cm_dtype_size(types[t]), &keys[i],
                   cm_dtype_size(types[t]));
        back = again(arena, map, CM_KIND_MAP);
        CHECK_INT(back.tensor.type, types[t]);
        CHECK_INT(cm_tensor_int(&back.tensor, 0), 7);
        CHECK_INT(cm_tensor_int(&back.tensor, 1), 100);
        check_row(&back.items[1], 2, 1);
        cm_datum_drop(&back);
    }
    map = LIST(CM_KIND_MAP, row(1, 1), row(2, 1));
    CHECK_OK(cm_tensor_new(CM_STRING, &CM_SHAPE(2), &map.tensor, &err), &err);
    ((struct cm_str *)map.tensor.data)[0] = CM_STR("one");
    ((struct cm_str *)map.tensor.data)[1] = CM_STR("");
    back = again(arena, map, CM_KIND_MAP);
    CHECK_STR(((struct cm_str *)back.tensor.data)[0], "one");
    CHECK_STR(((struct cm_str *)back.tensor.data)[1], "");
    cm_datum_drop(&back);
}

void test_value_data__maps_come_back_with_every_type_of_keys(void)
{
    check_in_arena(maps);
}

static void refuse(struct cm_arena *arena, const struct cm_message_info *info, const void *message,
                   enum cm_kind kind, enum cm_status status, const char *part)
{
    struct cm_datum datum;
    struct cm_error err;

    CHECK_FAILS(cm_value_proto_load(arena, wire_encode(arena, info, message), kind, &datum, &err),
                status, &err, part);
    CHECK_INT(datum.kind, CM_KIND_NONE);
    CHECK(!datum.items && !datum.tensor.buffer);
}

static void lies_about_elements(struct cm_arena *arena)
{
    struct cm_sequence_proto sequence = {.elem_type = CM_ELEM_MAP};
    case_tensor(arena, CM_LIST_ADD(arena, &sequence.tensor_values), "a", 3);
    cm_msg_set(&sequence.msg, CM_SEQUENCE_ELEM_TYPE);
    cm_msg_set(&sequence.msg, CM_SEQUENCE_TENSOR_VALUES);
    refuse(arena, &cm_sequence_info, &sequence, CM_KIND_SEQUENCE, CM_BAD_MODEL,
           "elem_type stands for map_values, but tensor_values holds 1");
    sequence.elem_type = 9;
    refuse(arena, &cm_sequence_info, &sequence, CM_KIND_SEQUENCE, CM_BAD_MODEL, "elem_type is 9");
    sequence.elem_type = CM_ELEM_UNDEFINED;
    refuse(arena, &cm_sequence_info, &sequence, CM_KIND_SEQUENCE, CM_BAD_MODEL, "no list");
    sequence.elem_type = CM_ELEM_TENSOR; /* the first item is fine, the second is not */
    struct cm_tensor_proto *bad = CM_LIST_ADD(arena, &sequence.tensor_values);
    case_tensor(arena, bad, "b", 3);
    bad->data_type = 99;
    refuse(arena, &cm_sequence_info, &sequence, CM_KIND_SEQUENCE, CM_BAD_MODEL,
           "item 1 of a sequence: tensor 'b': data_type is 99");

    struct cm_optional_proto optional = {.elem_type = CM_ELEM_SEQUENCE};
    optional.tensor_value = &sequence.tensor_values.items[0];
    cm_msg_set(&optional.msg, CM_OPTIONAL_ELEM_TYPE);
    cm_msg_set(&optional.msg, CM_OPTIONAL_TENSOR_VALUE);
    refuse(arena, &cm_optional_info, &optional, CM_KIND_OPTIONAL, CM_BAD_MODEL,
           "an optional of elem_type 3 holds another kind of value");
    optional.elem_type = -1;
    refuse(arena, &cm_optional_info, &optional, CM_KIND_OPTIONAL, CM_BAD_MODEL, "elem_type is -1");
}

void test_value_data__elements_of_another_kind_than_announced_are_refused(void)
{
    check_in_arena(lies_about_elements);
}

static void lies_about_keys(struct cm_arena *arena)
{
    int64_t keys[] = {1, 300};
    struct cm_str strings[] = {CM_STR("a"), CM_STR("b")};
    struct cm_sequence_proto values = {.elem_type = CM_ELEM_TENSOR};
    struct cm_map_proto map = {.key_type = CM_UINT8, .keys = {keys, 2}, .values = &values};

    case_tensor(arena, CM_LIST_ADD(arena, &values.tensor_values), "a", 3);
    cm_msg_set(&values.msg, CM_SEQUENCE_ELEM_TYPE);
    cm_msg_set(&values.msg, CM_SEQUENCE_TENSOR_VALUES);
    cm_msg_set(&map.msg, CM_MAP_KEY_TYPE);
    cm_msg_set(&map.msg, CM_MAP_KEYS);
    cm_msg_set(&map.msg, CM_MAP_VALUES);
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "key 300 does not fit in uint8");
    keys[1] = -1;
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "key -1 does not fit in uint8");
    map.key_type = CM_INT16;
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "a map has 2 keys and 1 values");
    map.key_type = CM_FLOAT;
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "key_type is 1, which no map may");
    map.key_type = CM_STRING;
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "there are 2 integer keys");
    map.key_type = CM_INT64;
    map.string_keys = (struct cm_strs){strings, 2};
    cm_msg_set(&map.msg, CM_MAP_STRING_KEYS);
    refuse(arena, &cm_map_info, &map, CM_KIND_MAP, CM_BAD_MODEL, "there are 2 strings");
}

void test_value_data__keys_that_do_not_fit_or_are_too_many_are_refused(void)
{
    check_in_arena(lies_about_keys);
}

static void other_kinds(struct cm_arena *arena)
{
    struct cm_datum datum;
    struct cm_str bytes;
    struct cm_error err;

    CHECK_FAILS(cm_value_proto_load(arena, CM_STR(""), CM_KIND_SPARSE, &datum, &err),
                CM_UNSUPPORTED, &err, "sparse");
    CHECK_FAILS(cm_value_proto_load(arena, CM_STR(""), CM_KIND_OPAQUE, &datum, &err),
                CM_UNSUPPORTED, &err, "no message of its own");
    CHECK_FAILS(cm_value_proto_load(arena, CM_STR("\377"), CM_KIND_TENSOR, &datum, &err),
                CM_BAD_MODEL, &err, "");
    struct cm_datum none = {0};
    CHECK_FAILS(cm_value_proto_store(arena, &none, CM_KIND_TENSOR, CM_STR(""), &bytes, &err),
                CM_BAD_ARGUMENT, &err, "not of the kind");
    struct cm_datum mixed = LIST(CM_KIND_SEQUENCE, row(1, 1), list(CM_KIND_SEQUENCE, NULL, 0));
    CHECK_FAILS(cm_value_proto_store(arena, &mixed, CM_KIND_SEQUENCE, CM_STR(""), &bytes, &err),
                CM_BAD_ARGUMENT, &err, "different kinds");
    cm_datum_drop(&mixed);
}

void test_value_data__what_has_no_message_is_refused(void)
{
    check_in_arena(other_kinds);
}

struct load {
    struct cm_str bytes;
    struct cm_datum out;
    struct cm_error err;
};

static enum cm_status load_it(struct cm_guard *guard, void *arg)
{
    struct load *load = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    const enum cm_status status =
        cm_value_proto_load(&arena, load->bytes, CM_KIND_SEQUENCE, &load->out, &load->err);
    cm_arena_release(&arena);
    return status;
}

static void loads_without_memory(struct cm_arena *arena)
{
    struct cm_datum map = LIST(CM_KIND_MAP, row(1, 1), row(2, 1));
    struct load load = {0};
    enum cm_status status = CM_NO_MEMORY;

    CHECK_OK(cm_tensor_new(CM_STRING, &CM_SHAPE(2), &map.tensor, &load.err), &load.err);
    struct cm_datum all = LIST(CM_KIND_SEQUENCE, map);
    struct cm_str bytes;
    CHECK_OK(cm_value_proto_store(arena, &all, CM_KIND_SEQUENCE, CM_STR(""), &bytes, &load.err),
             &load.err);
    char *moved = cm_arena_alloc(arena, bytes.size + 1); /* unaligned: tensors are copied */
    memcpy(moved + 1, bytes.data, bytes.size);
    cm_datum_drop(&all);
    load.bytes = (struct cm_str){moved + 1, bytes.size};
    uint64_t n = 0;
    while (status == CM_NO_MEMORY) {
        cm_memory_fail_after(++n);
        status = cm_guarded(0, &load.err, load_it, &load);
        cm_memory_fail_after(0);
        CHECK(status == CM_OK || (!load.out.items && !load.out.tensor.buffer));
    }
    CHECK_OK(status, &load.err);
    CHECK(n > 3); /* two lists of items, keys and arena: each was refused once */
    check_row(&load.out.items[0].items[1], 2, 1);
    cm_datum_drop(&load.out);
}

void test_oom__loading_a_value_gives_back_what_it_took(void)
{
    check_in_arena(loads_without_memory);
}
