/* Reading messages that are as they should be. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire_case.h"

static void body_linear(struct cm_arena *arena)
{
    const struct cm_model_proto *const model = wire_model(arena, wire_file(arena, "linear.onnx"));
    const struct cm_graph_proto *const graph = model->graph;
    const struct cm_node_proto *const node = &graph->node.items[0];

    CHECK_STR(model->producer_name, "cameo-tests");
    CHECK_INT(model->opset_import.count, 1);
    CHECK_INT(model->opset_import.items[0].version, 21);
    CHECK_STR(graph->name, "linear");
    CHECK_INT(graph->node.count, 1);
    CHECK_STR(node->op_type, "Gemm");
    CHECK_INT(node->input.count, 3);
    CHECK_STR(node->input.items[1], "W");
    CHECK_INT(node->attribute.count, 2);
    CHECK_STR(node->attribute.items[0].name, "alpha");
    CHECK(node->attribute.items[0].f == 0.5f);
    CHECK_INT(node->attribute.items[0].type, CM_ATTR_FLOAT);
    CHECK_INT(graph->initializer.count, 2);
    CHECK_INT(graph->initializer.items[0].raw_data.size, 24);
    CHECK_INT(graph->initializer.items[0].dims.count, 2);
    CHECK_INT(graph->initializer.items[0].dims.items[1], 3);
    CHECK_INT(graph->initializer.items[1].float_data.size, 12);
    CHECK_STR(graph->input.items[0].type->tensor_type->shape->dim.items[0].dim_param, "n");
    CHECK_INT(graph->output.items[0].type->tensor_type->shape->dim.items[1].dim_value, 3);
}

void test_decode__reads_a_small_model(void)
{
    check_in_arena(body_linear);
}

/* Which fields were seen, per kind of message. */
struct census {
    const struct cm_message_info *infos[64];
    uint32_t has[64];
    int count;
};

static enum cm_status take_census(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    struct census *const census = arg;
    int i = 0;

    while (i < census->count && census->infos[i] != info)
        i++;
    if (i == census->count) {
        CHECK(census->count < 64);
        census->infos[census->count++] = info;
    }
    census->has[i] |= msg->has;
    return CM_OK;
}

static void body_every_field(struct cm_arena *arena)
{
    struct census census = {0};
    const struct {
        const struct cm_message_info *info;
        const char *file;
    } files[] = {
        {&cm_model_info, "every_field.onnx"},
        {&cm_sequence_info, "every_field_sequence.pb"},
        {&cm_map_info, "every_field_map.pb"},
        {&cm_optional_info, "every_field_optional.pb"},
        {&cm_operator_set_info, "every_field_operator_set.pb"},
    };

    for (size_t i = 0; i < CM_COUNT(files); i++) {
        const struct cm_str bytes = wire_file(arena, files[i].file);
        void *const msg = wire_decode(arena, files[i].info, bytes);
        CHECK_INT(cm_message_walk(files[i].info, msg, take_census, &census), CM_OK);
    }
    CHECK_INT(census.count, 33);
    for (int i = 0; i < census.count; i++) {
        const uint32_t all = (uint32_t)((UINT64_C(1) << census.infos[i]->n_fields) - 1);
        if (census.has[i] != all)
            fail_msg("%s: fields %x of %x", census.infos[i]->name, census.has[i], all);
    }
}

void test_decode__reads_every_field_of_every_message(void)
{
    check_in_arena(body_every_field);
}

static enum cm_status check_rows(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    (void)arg, (void)msg;
    CHECK(info->n_fields > 0 && info->n_fields <= 32);
    for (int f = 0; f < info->n_fields; f++) {
        const struct cm_field_info *const field = &info->fields[f];

        CHECK(field->name && field->number);
        CHECK(f == 0 || info->fields[f - 1].number < field->number);
        CHECK(field->offset >= sizeof(struct cm_msg) && field->offset < info->size);
        CHECK_INT(cm_message_field(info, field->number), f);
    }
    CHECK_INT(cm_message_field(info, 4000), -1);
    return CM_OK;
}

static void body_rows(struct cm_arena *arena)
{
    struct cm_model_proto *const model = wire_model(arena, wire_file(arena, "every_field.onnx"));

    CHECK_INT(cm_message_walk(&cm_model_info, model, check_rows, NULL), CM_OK);
}

void test_decode__rows_are_in_the_order_of_their_numbers(void)
{
    check_in_arena(body_rows);
}

static void body_values(struct cm_arena *arena)
{
    const struct cm_sequence_proto *const sequence =
        wire_decode(arena, &cm_sequence_info, wire_file(arena, "values.pb"));
    const struct cm_map_proto *const map = &sequence->map_values.items[0];

    CHECK_INT(sequence->elem_type, CM_ELEM_MAP);
    CHECK_INT(map->string_keys.count, 2);
    CHECK_STR(map->string_keys.items[1], "b");
    CHECK_INT(map->values->tensor_values.count, 2);
    CHECK_INT(map->values->tensor_values.items[0].float_data.size, 4);
}

void test_decode__reads_stored_values(void)
{
    check_in_arena(body_values);
}

static void body_orders(struct cm_arena *arena)
{
    struct cm_model_proto *const foreign = wire_model(arena, wire_file(arena, "foreign.onnx"));

    wire_forget(&cm_model_info, foreign);
    wire_same_bytes(wire_encode(arena, &cm_model_info, foreign),
                    wire_file(arena, "functions.onnx"));
}

void test_decode__neither_order_nor_unknown_fields_nor_long_varints_matter(void)
{
    check_in_arena(body_orders);
}

static void body_unpacked(struct cm_arena *arena)
{
    const struct cm_model_proto *const a = wire_model(arena, wire_file(arena, "elements.onnx"));
    const struct cm_model_proto *const b = wire_model(arena, wire_file(arena, "unpacked.onnx"));
    struct cm_str where;

    if (!cm_message_equal(&cm_model_info, a, b, arena, &where))
        fail_msg("%.*s differs", CM_STR_FMT(where));
}

void test_decode__numbers_may_be_packed_or_not(void)
{
    check_in_arena(body_unpacked);
}

static void body_narrow(struct cm_arena *arena)
{
    const struct cm_tensor_proto *tensor;

    tensor = wire_decode(arena, &cm_tensor_info, wire_number(arena, 2, (uint64_t)-3));
    CHECK_INT(tensor->data_type, -3);
    tensor = wire_decode(arena, &cm_tensor_info, wire_number(arena, 2, UINT64_C(0x700000005)));
    CHECK_INT(tensor->data_type, 5);
    tensor = wire_decode(arena, &cm_tensor_info, wire_number(arena, 1, (uint64_t)INT64_MIN));
    CHECK(tensor->dims.count == 1 && tensor->dims.items[0] == INT64_MIN);
}

void test_decode__narrow_numbers_keep_their_low_bits(void)
{
    check_in_arena(body_narrow);
}

/* Numbers of all lengths, some longer than they need be, interrupted by another list and cut at
 * every place. */
static void body_long_lists(struct cm_arena *arena)
{
    enum { NUMBERS = 64, ATTRIBUTE_INTS = 8, ATTRIBUTE_STRINGS = 9 };
    struct cm_str bytes = CM_STR("");

    for (int i = 0; i < NUMBERS; i++) {
        const struct cm_str number = wire_varint(arena, UINT64_C(3) << i, i % 5 ? 0 : i % 3);
        const struct cm_str tag = wire_varint(arena, ATTRIBUTE_INTS << 3, 0);
        bytes = WIRE_JOIN(arena, bytes, tag, number);
        if (i % 7 == 3)
            bytes =
                WIRE_JOIN(arena, bytes, wire_field(arena, ATTRIBUTE_STRINGS, CM_STR("some text")),
                          wire_field(arena, ATTRIBUTE_STRINGS, CM_STR("")));
    }
    const struct cm_attribute_proto *attr = wire_decode(arena, &cm_attribute_info, bytes);
    CHECK_INT(attr->ints.count, NUMBERS);
    for (int i = 0; i < NUMBERS; i++)
        CHECK(attr->ints.items[i] == (int64_t)(UINT64_C(3) << i));
    CHECK_INT(attr->strings.count, 18);
    CHECK_STR(attr->strings.items[16], "some text");
    CHECK_STR(attr->strings.items[17], "");
    for (size_t size = bytes.size - 12; size < bytes.size; size++) {
        const uint8_t *last = (const uint8_t *)bytes.data + size - 1;
        if (*last & 0x80)
            wire_refuse(arena, &cm_attribute_info, (struct cm_str){bytes.data, size}, CM_BAD_MODEL,
                        "end");
    }
}

void test_decode__long_lists_are_read_item_by_item(void)
{
    check_in_arena(body_long_lists);
}

static void body_absent(struct cm_arena *arena)
{
    const struct cm_tensor_proto *tensor;

    tensor = wire_decode(arena, &cm_tensor_info, CM_STR_NONE);
    CHECK_INT(tensor->msg.has, 0);
    CHECK(!tensor->dims.items && !tensor->segment && !tensor->raw_data.data);
    tensor =
        wire_decode(arena, &cm_tensor_info,
                    WIRE_JOIN(arena, wire_number(arena, 2, 0), wire_field(arena, 8, CM_STR(""))));
    CHECK(cm_msg_has(&tensor->msg, CM_TENSOR_DATA_TYPE));
    CHECK(cm_msg_has(&tensor->msg, CM_TENSOR_NAME));
    CHECK(!cm_msg_has(&tensor->msg, CM_TENSOR_RAW_DATA));
    CHECK_INT(tensor->msg.changed, 0);
}

void test_decode__presence_is_kept_apart_from_value(void)
{
    check_in_arena(body_absent);
}

static void body_empty_lists(struct cm_arena *arena)
{
    const struct cm_str dims = wire_field(arena, 1, CM_STR("")),
                        data = wire_field(arena, 4, CM_STR(""));
    const struct cm_tensor_proto *const tensor =
        wire_decode(arena, &cm_tensor_info, WIRE_JOIN(arena, dims, data));

    CHECK(!cm_msg_has(&tensor->msg, CM_TENSOR_DIMS));
    CHECK_INT(tensor->dims.count, 0);
    CHECK(cm_msg_has(&tensor->msg, CM_TENSOR_FLOAT_DATA));
    CHECK_INT(tensor->float_data.size, 0);
}

void test_decode__an_empty_packed_field_of_contents_is_present(void)
{
    check_in_arena(body_empty_lists);
}

static void body_views(struct cm_arena *arena)
{
    const struct cm_str one = wire_field(arena, 7, CM_STR("\x01\x82\x01"));
    const struct cm_str two = WIRE_JOIN(arena, one, wire_number(arena, 7, 300), one);
    const struct cm_tensor_proto *tensor;
    const uint64_t expected[] = {1, 130, 300, 1, 130};
    uint64_t value;
    bool broken;

    tensor = wire_decode(arena, &cm_tensor_info, one);
    CHECK(tensor->int64_data.data == (const uint8_t *)one.data + 2);
    tensor = wire_decode(arena, &cm_tensor_info, two);
    struct cm_packed rest = tensor->int64_data;
    for (size_t i = 0; i < CM_COUNT(expected); i++) {
        CHECK(cm_varint_next(&rest, &value, &broken));
        CHECK_INT(value, expected[i]);
    }
    CHECK(!cm_varint_next(&rest, &value, &broken) && !broken);
}

void test_decode__contents_in_one_piece_are_viewed_and_others_joined(void)
{
    check_in_arena(body_views);
}

void test_decode__a_broken_varint_ends_the_iteration(void)
{
    const uint8_t bytes[] = {5, 0xff, 0xff};
    struct cm_packed rest = {bytes, sizeof bytes};
    uint64_t value = 0;
    bool broken = true;

    CHECK(cm_varint_next(&rest, &value, &broken) && !broken && value == 5);
    CHECK(!cm_varint_next(&rest, &value, &broken) && broken);
}

static void body_equal(struct cm_arena *arena)
{
    const struct cm_str bytes = wire_file(arena, "linear.onnx");
    struct cm_model_proto *const a = wire_model(arena, bytes), *const b = wire_model(arena, bytes);
    struct cm_str where = CM_STR_NONE;

    CHECK(cm_message_equal(&cm_model_info, a, b, arena, &where));
    b->graph->node.items[0].attribute.items[1].i = 1;
    CHECK(!cm_message_equal(&cm_model_info, a, b, arena, &where));
    CHECK_STR(where, "graph.node[0].attribute[1].i");
    b->graph->node.items[0].attribute.count = 1;
    CHECK(!cm_message_equal(&cm_model_info, a, b, arena, &where));
    CHECK_STR(where, "graph.node[0].attribute");
    *b = *wire_model(arena, bytes);
    cm_msg_set(&b->msg, CM_MODEL_DOMAIN);
    CHECK(!cm_message_equal(&cm_model_info, a, b, arena, &where));
    CHECK_STR(where, "domain");
}

void test_decode__a_comparison_names_the_first_difference(void)
{
    check_in_arena(body_equal);
}

static void body_equal_writing(struct cm_arena *arena)
{
    const struct cm_str unknown = wire_number(arena, 77, 1);
    const struct cm_str dims = wire_number(arena, 1, 4);
    const struct cm_str packed = wire_field(arena, 1, CM_STR("\x84\x00"));
    const void *const a = wire_decode(arena, &cm_tensor_info, dims);
    const void *const b = wire_decode(arena, &cm_tensor_info, packed);
    const void *const c = wire_decode(arena, &cm_tensor_info, WIRE_JOIN(arena, dims, unknown));
    struct cm_str where;

    CHECK(cm_message_equal(&cm_tensor_info, a, b, arena, &where));
    CHECK(!cm_message_equal(&cm_tensor_info, a, c, arena, &where));
    CHECK_STR(where, "(unknown field)");
    const void *const d = wire_decode(arena, &cm_tensor_info, wire_field(arena, 7, CM_STR("\x04")));
    const void *const e =
        wire_decode(arena, &cm_tensor_info, wire_field(arena, 7, CM_STR("\x84\x00")));
    CHECK(cm_message_equal(&cm_tensor_info, d, e, arena, NULL));
}

void test_decode__a_comparison_looks_through_the_writing(void)
{
    check_in_arena(body_equal_writing);
}

static enum cm_status count_tensors(void *arg, const struct cm_message_info *info,
                                    struct cm_msg *msg)
{
    int *const count = arg;

    (void)msg;
    *count += info == &cm_tensor_info;
    return *count < 2 ? CM_OK : CM_CANCELLED;
}

static void body_walk(struct cm_arena *arena)
{
    struct cm_model_proto *const model = wire_model(arena, wire_file(arena, "linear.onnx"));
    int count = 0;

    CHECK_INT(cm_message_walk(&cm_model_info, model, count_tensors, &count), CM_CANCELLED);
    CHECK_INT(count, 2);
    cm_msg_clear(&model->graph->msg, CM_GRAPH_INITIALIZER);
    count = 0;
    CHECK_INT(cm_message_walk(&cm_model_info, model, count_tensors, &count), CM_OK);
    CHECK_INT(count, 0);
}

void test_decode__a_walk_ends_when_told_and_passes_over_what_was_cleared(void)
{
    check_in_arena(body_walk);
}

static void body_list(struct cm_arena *arena)
{
    struct cm_entries list = {0};

    for (int64_t i = 0; i < 5; i++)
        CM_LIST_ADD(arena, &list)->key = (struct cm_str){"key", (size_t)i % 3};
    CHECK_INT(list.count, 5);
    CHECK_STR(list.items[2].key, "ke");
    CHECK_STR(list.items[3].key, "");
    CHECK(!list.items[4].value.data);
}

void test_decode__a_list_grows_by_a_zeroed_item(void)
{
    check_in_arena(body_list);
}
