/* Reading bytes that nobody should have written, and running out of memory on the way. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "onnx/wire_case.h"

/* Decodes whatever it is given; what is accepted must come back byte for byte. */
static enum cm_status survive(struct cm_arena *arena, struct cm_str bytes)
{
    struct cm_model_proto *const model = CM_NEW(arena, struct cm_model_proto);
    struct cm_error err = {0};
    const enum cm_status status = cm_decode(&cm_model_info, bytes, arena, model, &err);

    CHECK((status == CM_OK) == (err.text[0] == '\0'));
    if (status == CM_OK)
        wire_same_bytes(wire_encode(arena, &cm_model_info, model), bytes);
    else
        CHECK(status == CM_BAD_MODEL || status == CM_LIMIT);
    return status;
}

/* Each prefix is a copy of its own size, so that a read past its end is seen by the sanitizers. */
static void body_prefixes(struct cm_arena *arena)
{
    const struct cm_str whole = wire_file(arena, "every_field.onnx");
    size_t accepted = 0;

    for (size_t size = 0; size <= whole.size; size++) {
        char *const exact = cm_malloc(size + 1);

        CHECK(exact);
        memcpy(exact, whole.data, size);
        const enum cm_status status = survive(arena, (struct cm_str){exact, size});
        cm_free(exact);
        accepted += status == CM_OK;
        CHECK(size != whole.size || status == CM_OK);
    }
    CHECK(accepted > 5 && accepted < 40); /* between two fields of the model itself */
}

void test_hostile__a_file_may_end_anywhere(void)
{
    check_in_arena(body_prefixes);
}

/* xorshift64: the same mutations in every run. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void mutate(char *bytes, size_t size, uint64_t *state)
{
    static const uint8_t favourites[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x3a, 0x0b};
    const uint64_t times = 1 + draw(state) % 4;

    for (uint64_t i = 0; i < times; i++) {
        char *const at = &bytes[draw(state) % size];
        const uint64_t how = draw(state);

        if (how % 3 == 0)
            *at = (char)favourites[draw(state) % sizeof favourites];
        else if (how % 3 == 1)
            *at = (char)(*at ^ (1 << draw(state) % 8));
        else
            *at = (char)draw(state);
    }
}

static uint64_t mutation_state = UINT64_C(0x9e3779b97f4a7c15);

static void body_mutation(struct cm_arena *arena)
{
    for (size_t i = 0; i < wire_model_count; i++) {
        const struct cm_str whole = wire_file(arena, wire_models[i]);
        char *const exact = cm_malloc(whole.size);

        CHECK(exact);
        memcpy(exact, whole.data, whole.size);
        mutate(exact, whole.size, &mutation_state);
        (void)survive(arena, (struct cm_str){exact, whole.size});
        cm_free(exact);
    }
}

void test_hostile__random_damage_is_survived(void)
{
    for (int i = 0; i < 400; i++)
        check_in_arena(body_mutation);
}

static void body_deep(struct cm_arena *arena)
{
    enum { LEVELS = 10000, ROOM = 8 * LEVELS };
    char *const buffer = cm_arena_alloc(arena, ROOM);
    size_t at = ROOM;

    /* From the inside out: a sequence type of a type. */
    for (int i = 0; i < LEVELS; i++) {
        const struct cm_str size = wire_varint(arena, ROOM - at, 0);

        at -= size.size;
        memcpy(buffer + at, size.data, size.size);
        buffer[--at] = (char)((i % 2 ? 4 : 1) << 3 | 2);
    }
    const struct cm_str type = {buffer + at, ROOM - at};
    wire_refuse(arena, &cm_type_info, type, CM_LIMIT, "nested more than 100 deep");
    wire_refuse(arena, &cm_type_info, type, CM_LIMIT, "...");
}

void test_hostile__types_ten_thousand_deep_are_refused(void)
{
    check_in_arena(body_deep);
}

static struct cm_str nested_graphs(struct cm_arena *arena, int levels)
{
    struct cm_str inner = CM_STR("");

    for (int i = 0; i < levels; i++)
        inner = wire_field(arena, 1, wire_field(arena, 5, wire_field(arena, 6, inner)));
    return inner;
}

static void body_depth(struct cm_arena *arena)
{
    /* The graph itself and three messages a level: 1 + 3 * 33 = 100. */
    (void)wire_decode(arena, &cm_graph_info, nested_graphs(arena, 33));
    wire_refuse(arena, &cm_graph_info, nested_graphs(arena, 34), CM_LIMIT,
                "messages are nested more than 100 deep");
    wire_refuse(arena, &cm_graph_info, nested_graphs(arena, 1000), CM_LIMIT,
                "node[0].attribute[0].g.node[0]");
}

void test_hostile__a_hundred_messages_deep_is_the_limit(void)
{
    check_in_arena(body_depth);
}

static void body_lengths(struct cm_arena *arena)
{
    const uint64_t lengths[] = {5, 1 << 20, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};

    for (size_t i = 0; i < CM_COUNT(lengths); i++) {
        const struct cm_str graph =
            WIRE_JOIN(arena, CM_STR("\x0a"), wire_varint(arena, lengths[i], 0), CM_STR("1234"));
        wire_refuse(arena, &cm_model_info, wire_field(arena, 7, graph), CM_BAD_MODEL,
                    "graph: length ");
    }
    wire_refuse(arena, &cm_model_info,
                wire_field(arena, 7, WIRE_JOIN(arena, CM_STR("\x0a\x50"), CM_STR("1"))),
                CM_BAD_MODEL, "graph: length 80 runs past the end");
}

void test_hostile__a_length_past_the_end_is_refused(void)
{
    check_in_arena(body_lengths);
}

static void body_fields(struct cm_arena *arena)
{
    const struct {
        struct cm_str bytes;
        const char *why;
    } cases[] = {
        {CM_STR("\x0b\x0c"), "field number 1 has wire type 3, which is a group"},
        {CM_STR("\x0c"), "field number 1 has wire type 4, which is a group"},
        {CM_STR("\x0e"), "field number 1 has wire type 6, which is unknown"},
        {CM_STR("\x9f\x3f"), "field number 1011 has wire type 7, which is unknown"},
        {CM_STR("\x00\x00"), "a field number is out of range"},
        {CM_STR("\x80\x80\x80\x80\x80\x01\x00"), "a field number is out of range"},
        {CM_STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "more than 10 bytes"},
        {CM_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "more than 10 bytes"},
        {CM_STR("\x08\xff"), "its bytes end inside a field"},
        {CM_STR("\x85\x01"), "its bytes end inside a field"},
        {CM_STR("\x85\x01"
                "123"),
         "its bytes end inside a field"},
        {CM_STR("\x81\x01"
                "1234567"),
         "its bytes end inside a field"},
        {CM_STR("\x82"), "its bytes end inside a field"},
        {CM_STR("\x82\x01\x80"), "its bytes end inside a field"},
    };

    for (size_t i = 0; i < CM_COUNT(cases); i++)
        wire_refuse(arena, &cm_model_info, cases[i].bytes, CM_BAD_MODEL, cases[i].why);
}

void test_hostile__broken_fields_are_refused_and_named(void)
{
    check_in_arena(body_fields);
}

static void body_types(struct cm_arena *arena)
{
    const struct cm_str four = CM_STR("\x05\x01\x02\x03\x04");

    wire_refuse(arena, &cm_model_info, wire_number(arena, 7, 1), CM_BAD_MODEL,
                "field 'graph' has wire type 0, needs 2");
    wire_refuse(arena, &cm_model_info, wire_field(arena, 1, CM_STR("\x01")), CM_BAD_MODEL,
                "field 'ir_version' has wire type 2, needs 0");
    wire_refuse(arena, &cm_node_info, wire_number(arena, 4, 1), CM_BAD_MODEL,
                "field 'op_type' has wire type 0, needs 2");
    wire_refuse(arena, &cm_attribute_info, wire_number(arena, 2, 1), CM_BAD_MODEL,
                "field 'f' has wire type 0, needs 5");
    wire_refuse(arena, &cm_attribute_info, wire_number(arena, 7, 1), CM_BAD_MODEL,
                "field 'floats' has wire type 0, needs 5");
    wire_refuse(arena, &cm_tensor_info,
                WIRE_JOIN(arena, CM_STR("\x0d"), (struct cm_str){four.data + 1, 4}), CM_BAD_MODEL,
                "field 'dims' has wire type 5, needs 0");
    wire_refuse(arena, &cm_tensor_info, wire_number(arena, 10, 1), CM_BAD_MODEL,
                "field 'double_data' has wire type 0, needs 1");
    wire_refuse(arena, &cm_attribute_info, wire_field(arena, 7, four), CM_BAD_MODEL,
                "field 'floats' has 5 bytes, not a multiple of 4");
    wire_refuse(arena, &cm_tensor_info, wire_field(arena, 10, four), CM_BAD_MODEL,
                "field 'double_data' has 5 bytes, not a multiple of 8");
    wire_refuse(arena, &cm_tensor_info, wire_field(arena, 1, CM_STR("\x01\xff")), CM_BAD_MODEL,
                "field 'dims' ends inside a number");
    wire_refuse(arena, &cm_tensor_info, wire_field(arena, 7, CM_STR("\x01\xff")), CM_BAD_MODEL,
                "field 'int64_data' ends inside a number");
    wire_refuse(arena, &cm_tensor_info,
                wire_field(arena, 1, CM_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
                CM_BAD_MODEL, "field 'dims' has a number of more than 10 bytes");
}

void test_hostile__wire_types_that_do_not_fit_are_refused(void)
{
    check_in_arena(body_types);
}

static void body_twice(struct cm_arena *arena)
{
    const struct cm_str graph = wire_field(arena, 7, CM_STR(""));
    const struct cm_str value = wire_number(arena, 1, 4), param = wire_field(arena, 2, CM_STR("n"));
    const struct cm_str dim = wire_field(arena, 1, WIRE_JOIN(arena, value, param));
    const struct cm_str type = wire_field(arena, 1, wire_field(arena, 2, dim));
    const struct cm_str sequence = wire_field(arena, 4, CM_STR(""));

    wire_refuse(arena, &cm_model_info, WIRE_JOIN(arena, graph, graph), CM_BAD_MODEL,
                "field 'graph' appears twice");
    wire_refuse(
        arena, &cm_node_info,
        WIRE_JOIN(arena, wire_field(arena, 4, CM_STR("A")), wire_field(arena, 4, CM_STR("B"))),
        CM_BAD_MODEL, "field 'op_type' appears twice");
    wire_refuse(arena, &cm_type_info, type, CM_BAD_MODEL,
                "tensor_type.shape.dim[0]: fields 'dim_value' and 'dim_param' exclude each other");
    wire_refuse(arena, &cm_type_info, WIRE_JOIN(arena, wire_field(arena, 1, CM_STR("")), sequence),
                CM_BAD_MODEL, "fields 'tensor_type' and 'sequence_type' exclude each other");
    wire_refuse(arena, &cm_type_info, WIRE_JOIN(arena, wire_field(arena, 9, CM_STR("")), sequence),
                CM_BAD_MODEL, "fields 'sequence_type' and 'optional_type' exclude each other");
}

void test_hostile__two_answers_to_one_question_are_refused(void)
{
    check_in_arena(body_twice);
}

static void body_place(struct cm_arena *arena)
{
    const struct cm_str bad = wire_field(arena, 5, CM_STR("\x0a\x50"));
    const struct cm_str node =
        wire_field(arena, 1, WIRE_JOIN(arena, wire_field(arena, 1, CM_STR("x")), bad));
    const struct cm_str graph =
        wire_field(arena, 7, WIRE_JOIN(arena, wire_field(arena, 1, CM_STR("")), node));

    wire_refuse(arena, &cm_model_info, graph, CM_BAD_MODEL,
                "graph.node[1].attribute[0]: length 80 runs past the end");
}

void test_hostile__a_refusal_says_where(void)
{
    check_in_arena(body_place);
}

static void body_huge_dims(struct cm_arena *arena)
{
    const struct cm_str dim = wire_number(arena, 1, UINT64_C(1) << 60);
    const struct cm_tensor_proto *const tensor =
        wire_decode(arena, &cm_tensor_info, WIRE_JOIN(arena, dim, dim, dim));

    CHECK_INT(tensor->dims.count, 3);
    CHECK_INT(tensor->dims.items[2], INT64_C(1) << 60);
}

void test_hostile__huge_dims_are_only_numbers_here(void)
{
    check_in_arena(body_huge_dims);
}

static void body_budget(struct cm_arena *arena)
{
    const struct cm_str empty = wire_repeat(arena, CM_STR("\x2a\x00"), 500000);

    CHECK(empty.size * 32 < 500000 * sizeof(struct cm_tensor_proto) - (16 << 20));
    wire_refuse(arena, &cm_model_info, wire_field(arena, 7, empty), CM_LIMIT,
                "graph: its structure would take memory out of proportion to the file");
}

void test_hostile__a_million_bytes_of_empty_tensors_are_refused(void)
{
    /* The limit is on what is allocated, not on what the file could have made us allocate. */
    struct cm_error err = {0};

    CHECK_INT(check_in_arena_limited(32 << 20, &err, body_budget), CM_OK);
}

static void body_many(struct cm_arena *arena)
{
    enum { MANY = 1000000 };
    const struct cm_str inputs = wire_repeat(arena, CM_STR("\x0a\x00"), MANY);
    struct cm_node_proto *const node = wire_decode(arena, &cm_node_info, inputs);

    CHECK_INT(node->input.count, MANY);
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    wire_same_bytes(wire_encode(arena, &cm_node_info, node), inputs);
}

void test_hostile__a_million_fields_take_time_in_proportion(void)
{
    check_in_arena(body_many);
}

static void body_round_trip(struct cm_arena *arena)
{
    /* No CHECK between here and the end of the guard may fail for lack of memory: that unwinds. */
    const struct cm_str whole = cm_arena_str(arena, CM_STR("\x08\x0a\x3a\x04\x0a\x02\x22\x00"));
    struct cm_model_proto *const model = wire_model(arena, whole);

    model->graph->node.items[0].op_type = CM_STR("Relu");
    cm_msg_set(&model->graph->node.items[0].msg, CM_NODE_OP_TYPE);
    CHECK_INT(wire_encode(arena, &cm_model_info, model).size, whole.size + 4);
}

static void oom_round_trip(check_body_fn *body)
{
    const uint64_t before = cm_memory_count();
    struct cm_error err = {0};

    CHECK_OK(check_in_arena_limited(0, &err, body), &err);
    const uint64_t needed = cm_memory_count() - before;
    CHECK(needed > 0);
    for (uint64_t n = 1; n <= needed; n++) {
        cm_memory_fail_after(n);
        const enum cm_status status = check_in_arena_limited(0, &err, body);
        cm_memory_fail_after(0);
        CHECK_INT(status, CM_NO_MEMORY);
    }
}

void test_oom__a_small_model_survives_each_failing_allocation(void)
{
    oom_round_trip(body_round_trip);
}

static struct cm_str oom_bytes;

static void body_large_round_trip(struct cm_arena *arena)
{
    struct cm_model_proto *const model = wire_model(arena, oom_bytes);

    wire_forget(&cm_model_info, model);
    wire_same_bytes(wire_encode(arena, &cm_model_info, model), oom_bytes);
}

static void body_oom(struct cm_arena *arena)
{
    for (size_t i = 0; i < wire_canonical_model_count; i++) {
        oom_bytes = wire_file(arena, wire_models[i]);
        oom_round_trip(body_large_round_trip);
    }
    /* Enough nodes for an arena of several blocks. */
    oom_bytes = wire_field(
        arena, 7,
        wire_repeat(arena, wire_field(arena, 1, wire_repeat(arena, CM_STR("\x0a\x01x"), 9)), 5000));
    oom_round_trip(body_large_round_trip);
}

void test_oom__stored_models_survive_each_failing_allocation(void)
{
    check_in_arena(body_oom);
}
