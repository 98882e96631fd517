/* Writing messages: untouched, changed in places, and made from nothing. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire_case.h"

static void body_untouched(struct cm_arena *arena)
{
    for (size_t i = 0; i < wire_model_count; i++) {
        const struct cm_str bytes = wire_file(arena, wire_models[i]);
        wire_same_bytes(wire_encode(arena, &cm_model_info, wire_model(arena, bytes)), bytes);
    }
}

void test_encode__an_untouched_model_keeps_its_bytes(void)
{
    check_in_arena(body_untouched);
}

static void body_canonical(struct cm_arena *arena)
{
    for (size_t i = 0; i < wire_canonical_model_count; i++) {
        const struct cm_str bytes = wire_file(arena, wire_models[i]);
        struct cm_model_proto *const model = wire_model(arena, bytes);

        wire_forget(&cm_model_info, model);
        wire_same_bytes(wire_encode(arena, &cm_model_info, model), bytes);
    }
}

void test_encode__a_model_written_anew_has_the_bytes_of_the_official_writer(void)
{
    check_in_arena(body_canonical);
}

static enum cm_status mark_all(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    (void)arg, (void)info;
    msg->changed = msg->has;
    return CM_OK;
}

static void body_marked(struct cm_arena *arena)
{
    struct cm_str where;

    for (size_t i = 0; i < wire_model_count; i++) {
        const struct cm_str bytes = wire_file(arena, wire_models[i]);
        struct cm_model_proto *const model = wire_model(arena, bytes);

        CHECK_INT(cm_message_walk(&cm_model_info, model, mark_all, NULL), CM_OK);
        const struct cm_model_proto *const again =
            wire_model(arena, wire_encode(arena, &cm_model_info, model));
        if (!cm_message_equal(&cm_model_info, model, again, arena, &where))
            fail_msg("%s: %.*s differs", wire_models[i], CM_STR_FMT(where));
    }
}

void test_encode__replacing_every_field_in_its_place_loses_nothing(void)
{
    check_in_arena(body_marked);
}

/* New contents of the same size, in a file whose writer padded lengths and put unknown fields
 * everywhere. */
static void body_same_size(struct cm_arena *arena)
{
    const struct cm_str data = CM_STR("\x01\x02\x03\x04"), fresh = CM_STR("\x05\x06\x07\x08");
    const struct cm_str unknown = wire_padded(arena, 500, CM_STR("kept"));
    struct cm_str bytes[2];

    for (int i = 0; i < 2; i++) {
        const struct cm_str raw = wire_padded(arena, 9, i ? fresh : data);
        const struct cm_str tensor =
            WIRE_JOIN(arena, unknown, wire_padded(arena, 8, CM_STR("W")), raw, unknown);
        const struct cm_str graph = WIRE_JOIN(arena, wire_padded(arena, 5, CM_STR("")), unknown,
                                              wire_padded(arena, 5, tensor), unknown);
        bytes[i] = WIRE_JOIN(arena, unknown, wire_padded(arena, 7, graph), unknown);
    }
    struct cm_model_proto *const model = wire_model(arena, bytes[0]);
    struct cm_tensor_proto *const tensor = &model->graph->initializer.items[1];
    tensor->raw_data = fresh;
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
    wire_same_bytes(wire_encode(arena, &cm_model_info, model), bytes[1]);
}

void test_encode__new_contents_of_the_same_size_change_only_their_own_bytes(void)
{
    check_in_arena(body_same_size);
}

static void body_other_size(struct cm_arena *arena)
{
    const struct cm_str grown = wire_repeat(arena, CM_STR("ab"), 300);
    const struct cm_str before = wire_padded(arena, 1, CM_STR(""));
    const struct cm_str after = wire_field(arena, 2, CM_STR("name"));
    struct cm_str bytes[2];

    for (int i = 0; i < 2; i++) {
        const struct cm_str raw = wire_field(arena, 9, i ? grown : CM_STR("ab"));
        const struct cm_str tensor =
            WIRE_JOIN(arena, wire_field(arena, 8, CM_STR("W")), raw, wire_number(arena, 2, 2));
        const struct cm_str graph = WIRE_JOIN(arena, before, wire_field(arena, 5, tensor), after);
        bytes[i] = WIRE_JOIN(arena, wire_number(arena, 1, 10), wire_field(arena, 7, graph),
                             wire_field(arena, 8, wire_number(arena, 2, 17)));
    }
    struct cm_model_proto *const model = wire_model(arena, bytes[0]);
    struct cm_tensor_proto *const tensor = &model->graph->initializer.items[0];
    tensor->raw_data = grown;
    cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
    wire_same_bytes(wire_encode(arena, &cm_model_info, model), bytes[1]);
}

void test_encode__new_contents_of_another_size_change_the_lengths_around_them(void)
{
    check_in_arena(body_other_size);
}

static void body_weights(struct cm_arena *arena)
{
    const struct cm_str bytes = wire_file(arena, "training_linreg_sgd.onnx");
    struct cm_model_proto *const model = wire_model(arena, bytes);
    struct cm_tensor_proto *const weight = &model->graph->initializer.items[0];
    const size_t at = (size_t)(weight->raw_data.data - bytes.data), size = weight->raw_data.size;
    char *const expected = cm_arena_alloc(arena, bytes.size);
    char *const fresh = cm_arena_alloc(arena, size);

    CHECK(size > 0 && at < bytes.size);
    memset(fresh, 0x55, size);
    memcpy(expected, bytes.data, bytes.size);
    memcpy(expected + at, fresh, size);
    weight->raw_data = (struct cm_str){fresh, size};
    cm_msg_set(&weight->msg, CM_TENSOR_RAW_DATA);
    wire_same_bytes(wire_encode(arena, &cm_model_info, model),
                    (struct cm_str){expected, bytes.size});
}

void test_encode__training_a_weight_leaves_the_rest_of_the_file(void)
{
    check_in_arena(body_weights);
}

static void body_places(struct cm_arena *arena)
{
    const struct cm_str unknown = wire_number(arena, 60, 7);
    const struct cm_str a = wire_field(arena, 1, CM_STR("a")),
                        b = wire_field(arena, 1, CM_STR("b"));
    const struct cm_str op = wire_field(arena, 4, CM_STR("Add")),
                        y = wire_field(arena, 2, CM_STR("y"));
    struct cm_node_proto *const node =
        wire_decode(arena, &cm_node_info, WIRE_JOIN(arena, op, a, unknown, b, y, b));
    struct cm_str inputs[] = {CM_STR("p"), CM_STR("q")};

    node->input = (struct cm_strs){inputs, 2};
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    cm_msg_clear(&node->msg, CM_NODE_OUTPUT);
    node->domain = CM_STR("d");
    cm_msg_set(&node->msg, CM_NODE_DOMAIN);
    node->name = CM_STR("");
    cm_msg_set(&node->msg, CM_NODE_NAME);
    wire_same_bytes(wire_encode(arena, &cm_node_info, node),
                    WIRE_JOIN(arena, op, wire_field(arena, 1, CM_STR("p")),
                              wire_field(arena, 1, CM_STR("q")), unknown,
                              wire_field(arena, 3, CM_STR("")), wire_field(arena, 7, CM_STR("d"))));
}

void test_encode__a_changed_field_stands_where_it_first_stood_and_new_ones_follow(void)
{
    check_in_arena(body_places);
}

static void body_packing(struct cm_arena *arena)
{
    int64_t dims[] = {3, 300};
    const struct cm_str packed = wire_field(arena, 1, CM_STR("\x01\x02\x03"));
    const struct cm_str single =
        WIRE_JOIN(arena, wire_number(arena, 1, 1), wire_number(arena, 1, 2));
    const struct cm_str as_single =
        WIRE_JOIN(arena, wire_number(arena, 1, 3), wire_number(arena, 1, 300));
    const struct {
        struct cm_str before, after;
    } cases[] = {
        {packed, wire_field(arena, 1, CM_STR("\x03\xac\x02"))},
        {single, as_single},
        {CM_STR(""), as_single},
    };

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        struct cm_tensor_proto *const tensor = wire_decode(arena, &cm_tensor_info, cases[i].before);
        tensor->dims = (struct cm_int64s){dims, 2};
        cm_msg_set(&tensor->msg, CM_TENSOR_DIMS);
        wire_same_bytes(wire_encode(arena, &cm_tensor_info, tensor), cases[i].after);
    }
}

void test_encode__a_list_of_numbers_stays_packed_or_not(void)
{
    check_in_arena(body_packing);
}

static void body_made(struct cm_arena *arena)
{
    struct cm_model_proto model = {0};
    struct cm_attribute_proto *attribute;
    float floats[] = {1.0f, -2.0f};
    struct cm_node_proto *node;

    model.graph = CM_NEW(arena, struct cm_graph_proto);
    cm_msg_set(&model.msg, CM_MODEL_GRAPH);
    model.ir_version = 10;
    cm_msg_set(&model.msg, CM_MODEL_IR_VERSION);
    node = CM_LIST_ADD(arena, &model.graph->node);
    cm_msg_set(&model.graph->msg, CM_GRAPH_NODE);
    attribute = CM_LIST_ADD(arena, &node->attribute);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
    attribute->floats = (struct cm_floats){floats, 2};
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_FLOATS);
    attribute->type = -1;
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_TYPE);
    const struct cm_str written =
        WIRE_JOIN(arena, CM_STR("\x3d\x00\x00\x80\x3f\x3d\x00\x00\x00\xc0"),
                  wire_number(arena, 20, UINT64_MAX));
    wire_same_bytes(
        wire_encode(arena, &cm_model_info, &model),
        WIRE_JOIN(arena, wire_number(arena, 1, 10),
                  wire_field(arena, 7, wire_field(arena, 1, wire_field(arena, 5, written)))));
}

void test_encode__a_made_message_is_written_in_the_order_of_its_numbers(void)
{
    check_in_arena(body_made);
}

static void body_add(struct cm_arena *arena)
{
    const struct cm_str bytes = wire_file(arena, "foreign.onnx");
    struct cm_model_proto *const model = wire_model(arena, bytes);
    struct cm_node_proto *const node = CM_LIST_ADD(arena, &model->graph->node);
    struct cm_str where;

    cm_msg_set(&model->graph->msg, CM_GRAPH_NODE);
    node->op_type = CM_STR("Relu");
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    const struct cm_model_proto *const again =
        wire_model(arena, wire_encode(arena, &cm_model_info, model));
    CHECK_INT(again->graph->node.count, 2);
    CHECK_STR(again->graph->node.items[1].op_type, "Relu");
    CHECK(cm_message_equal(&cm_model_info, model, again, arena, &where));
}

void test_encode__adding_a_node_keeps_the_others_as_they_were(void)
{
    check_in_arena(body_add);
}

static void body_swapped(struct cm_arena *arena)
{
    struct cm_model_proto *const model = wire_model(arena, wire_file(arena, "branches.onnx"));
    struct cm_model_proto *const other = wire_model(arena, wire_file(arena, "foreign.onnx"));

    *model->graph = *other->graph;
    const struct cm_model_proto *again =
        wire_model(arena, wire_encode(arena, &cm_model_info, model));
    CHECK(cm_message_equal(&cm_graph_info, again->graph, other->graph, arena, NULL));
    *model->graph = (struct cm_graph_proto){0};
    again = wire_model(arena, wire_encode(arena, &cm_model_info, model));
    CHECK_INT(again->graph->msg.source.size, 0);
    CHECK_INT(again->opset_import.count, 1);
}

void test_encode__a_message_put_in_the_place_of_another_is_written(void)
{
    check_in_arena(body_swapped);
}

static void body_unmarked(struct cm_arena *arena)
{
    const struct cm_str bytes = wire_file(arena, "linear.onnx");
    struct cm_model_proto *const model = wire_model(arena, bytes);
    struct cm_error err = {0};
    struct cm_str out;

    CM_LIST_ADD(arena, &model->graph->node)->op_type = CM_STR("Relu");
    CHECK_FAILS(cm_encode(&cm_model_info, model, arena, &out, &err), CM_BAD_ARGUMENT, &err,
                "field 'node' was changed without being marked");
    model->graph->node.count = 0;
    CHECK_FAILS(cm_encode(&cm_model_info, model, arena, &out, &err), CM_BAD_ARGUMENT, &err,
                "field 'node' was changed without being marked");
}

void test_encode__a_list_changed_without_a_mark_is_refused(void)
{
    check_in_arena(body_unmarked);
}

static void body_deep(struct cm_arena *arena)
{
    struct cm_type_proto *type = CM_NEW(arena, struct cm_type_proto);
    struct cm_error err = {0};
    struct cm_str out;

    for (int i = 0; i < CM_DECODE_DEPTH; i++) {
        struct cm_type_proto *const outer = CM_NEW(arena, struct cm_type_proto);

        outer->sequence_type = CM_NEW(arena, struct cm_wrap_type_proto);
        cm_msg_set(&outer->msg, CM_TYPE_SEQUENCE_TYPE);
        outer->sequence_type->elem_type = type;
        cm_msg_set(&outer->sequence_type->msg, CM_WRAP_TYPE_ELEM_TYPE);
        type = outer;
    }
    CHECK_FAILS(cm_encode(&cm_type_info, type, arena, &out, &err), CM_LIMIT, &err,
                "nested more than 100 deep");
}

void test_encode__what_could_not_be_read_back_is_not_written(void)
{
    check_in_arena(body_deep);
}

struct pieces {
    size_t total, large;
    const void *largest;
    size_t fail_after;
};

static enum cm_status count_piece(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    struct pieces *const pieces = to;

    CHECK(size > 0);
    if (pieces->fail_after && pieces->total + size > pieces->fail_after)
        return cm_fail(err, CM_IO, "disk full");
    pieces->total += size;
    if (size > pieces->large) {
        pieces->large = size;
        pieces->largest = bytes;
    }
    return CM_OK;
}

static void body_pieces(struct cm_arena *arena)
{
    const struct cm_str large = wire_repeat(arena, CM_STR("0123456789"), 100000);
    const struct cm_str bytes = wire_field(
        arena, 7,
        WIRE_JOIN(arena, wire_field(arena, 2, CM_STR("old")), wire_field(arena, 10, large)));
    struct cm_model_proto *const model = wire_model(arena, bytes);
    struct cm_encoding *plan;
    struct pieces pieces = {0}, failing = {.fail_after = 1000};
    struct cm_error err = {0};

    model->graph->name = CM_STR("newer");
    cm_msg_set(&model->graph->msg, CM_GRAPH_NAME);
    const struct cm_model_proto copy = *model;
    const struct cm_graph_proto graph = *model->graph;
    CHECK_OK(cm_encode_plan(&cm_model_info, model, arena, &plan, &err), &err);
    CHECK_INT(cm_encoding_size(plan), bytes.size + 2);
    for (int i = 1; i <= 2; i++) { /* a plan may be written more than once */
        CHECK_OK(cm_encode_write(plan, count_piece, &pieces, &err), &err);
        CHECK_INT(pieces.total, (size_t)i * (bytes.size + 2));
    }
    CHECK((const char *)pieces.largest > bytes.data &&
          (const char *)pieces.largest + pieces.large == bytes.data + bytes.size);
    CHECK_INT(pieces.large, large.size + 4);
    CHECK_FAILS(cm_encode_write(plan, count_piece, &failing, &err), CM_IO, &err, "disk full");
    assert_memory_equal(&copy, model, sizeof copy);
    assert_memory_equal(&graph, model->graph, sizeof graph);
}

void test_encode__what_did_not_change_is_passed_on_without_a_copy(void)
{
    check_in_arena(body_pieces);
}
