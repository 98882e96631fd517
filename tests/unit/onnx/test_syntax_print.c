/* Printing the text form: nothing is lost, numbers are as short as they can be, and what cannot be
 * said is refused. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/decode.h"
#include "onnx/model_case.h"
#include "onnx/syntax_case.h"
#include "tensor/dtype.h"

static const struct syntax_kind *const model_kind = &syntax_kinds[0];
static const struct syntax_kind *const graph_kind = &syntax_kinds[1];
static const struct syntax_kind *const node_kind = &syntax_kinds[3];

static void model_files(struct cm_arena *arena)
{
    static const char *const names[] = {
        "linear",
        "branches",
        "functions",
        "strings",
        "sparse",
        "types",
        "external",
        "elements",
        "tensor_forms",
        "training_linreg_sgd",
        "training_gradient_at",
        "training_gradient_penalty",
        "training_mlp_adam_initialized",
        "training_softmax_momentum_standard",
    };

    for (size_t i = 0; i < CM_COUNT(names); i++) {
        struct cm_error err = {0};
        struct cm_model_proto model = {0};
        const char *const path = cm_arena_printf(arena, TESTS_DIR "/models/%s.onnx", names[i]).data;
        CHECK_OK(cm_decode(&cm_model_info, case_read(arena, path), arena, &model, &err), &err);
        const struct cm_str text = syntax_check_round(arena, model_kind, &model);
        CHECK_INT(strstr(text.data, "\ntraining {\n") != NULL, model.training_info.count != 0);
    }
}

void test_syntax__nothing_of_a_model_is_lost(void)
{
    check_in_arena(model_files);
}

/* Three elements of every type, all bits set in some, in raw_data. */
static void every_element_type(struct cm_arena *arena)
{
    for (int type = 1; type < CM_DTYPE_COUNT; type++) {
        struct cm_graph_proto graph = {0};
        struct cm_tensor_proto *const tensor = CM_LIST_ADD(arena, &graph.initializer);
        size_t size;
        if (type == CM_STRING)
            continue;
        CHECK(cm_dtype_bytes((enum cm_dtype)type, 3, &size));
        uint8_t *const bytes = cm_arena_alloc(arena, size);
        for (size_t i = 0; i < size; i++)
            bytes[i] = type == CM_BOOL ? i & 1 : (uint8_t)(i * 37 + 0x9d);
        /* Bits behind the last element are zero. */
        const int spare = (int)size * 8 - 3 * cm_dtype_info((enum cm_dtype)type)->bits;
        bytes[size - 1] = (uint8_t)(bytes[size - 1] & 0xff >> spare);
        tensor->dims.items = cm_arena_alloc(arena, sizeof(int64_t));
        tensor->dims.items[0] = 3;
        tensor->dims.count = 1;
        tensor->data_type = type;
        tensor->name = CM_STR("t");
        tensor->raw_data = (struct cm_str){(const char *)bytes, size};
        cm_msg_set(&tensor->msg, CM_TENSOR_DIMS);
        cm_msg_set(&tensor->msg, CM_TENSOR_DATA_TYPE);
        cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
        cm_msg_set(&tensor->msg, CM_TENSOR_RAW_DATA);
        cm_msg_set(&graph.msg, CM_GRAPH_INITIALIZER);
        syntax_check_round(arena, graph_kind, &graph);
    }
}

void test_syntax__values_of_every_element_type_read_back(void)
{
    check_in_arena(every_element_type);
}

static void prints_as(struct cm_arena *arena, const struct syntax_kind *kind, const char *text,
                      const struct cm_syntax_options *options, const char *expected)
{
    struct cm_error err = {0};
    void *const msg = syntax_parse(arena, kind, cm_str(text), &err);

    if (!msg)
        fail_msg("%s", err.text);
    const struct cm_str got = syntax_print(arena, kind, msg, options, &err);
    if (!got.data)
        fail_msg("%s", err.text);
    CHECK_STRING(got.data, expected);
}

static void float_texts(struct cm_arena *arena)
{
    static const char *const texts[][2] = {
        {"0.1", "0.1"},
        {"100000.0", "1e+05"},
        {"10000.0", "10000"},
        {"1234567.0", "1234567"},
        {"123456789.0", "123456792"},
        {"0.0001", "1e-04"},
        {"0.001", "0.001"},
        {"0.0001234", "0.0001234"},
        {"1e10", "1e+10"},
        {"-0.0", "-0"},
        {"3.4028235e38", "3.4028235e+38"},
        {"1e-45", "1e-45"},
        {"123.456", "123.456"},
        {"-nan", "-nan"},
        {"nan(5)", "nan(5)"},
        {"9007199254740992.0", "9.007199e+15"},
    };

    for (size_t i = 0; i < CM_COUNT(texts); i++)
        prints_as(arena, node_kind, cm_arena_printf(arena, "= A <a = %s> ()", texts[i][0]).data,
                  NULL, cm_arena_printf(arena, "= A <a: float = %s> ()\n", texts[i][1]).data);
    prints_as(arena, node_kind, "= A <a = double[3] {0.1, 1e300, 5.684341886080802e-14}> ()", NULL,
              "= A <a: tensor = double[3] {0.1, 1e+300, 5.684341886080802e-14}> ()\n");
}

void test_syntax__floats_have_the_fewest_digits_that_read_back(void)
{
    check_in_arena(float_texts);
}

static void names_in_quotes(struct cm_arena *arena)
{
    prints_as(arena, node_kind, "[\"a b\"] \"x/y\", z = \"my-domain\".\"Op 1\":\"o v\"(\"\", _1)",
              NULL, "[\"a b\"] \"x/y\", z = \"my-domain\".\"Op 1\":\"o v\" (\"\", _1)\n");
    prints_as(arena, graph_kind, "\"float\" (\"inf\", float \"seq\") => () {}", NULL,
              "\"float\" (\"inf\", float \"seq\") => () {\n}\n");
    prints_as(arena, node_kind, "= A <s = \"tab\tquote\\\" back\\\\slash\">()", NULL,
              "= A <s: string = \"tab\tquote\\\" back\\\\slash\"> ()\n");
}

void test_syntax__names_that_are_no_identifiers_stand_in_quotes(void)
{
    check_in_arena(names_in_quotes);
}

static void layout(struct cm_arena *arena)
{
    prints_as(
        arena, model_kind,
        "<ir_version: 10, opset_import: [\"\" : 21]> main (float[N] x) => (float[N] y)"
        "<float[2] w = {1, 2}, float v> {"
        "y = If (c) <then_branch = g () => (z) <float u = {0}> { z = Neg (x) }>}"
        "<domain: \"d\">f <p> (x) => (y) <float t> { y = A (x) }"
        "training { algorithm: step () => (w2) { w2 = Neg (w) }, update_binding: [\"w\": \"w2\"]}",
        NULL,
        "<\n"
        "   ir_version: 10,\n"
        "   opset_import: [\"\" : 21]\n"
        ">\n"
        "main (float[N] x) => (float[N] y)\n"
        "   <\n"
        "      float[2] w = {1, 2},\n"
        "      float v\n"
        "   >\n"
        "{\n"
        "   y = If (c) <then_branch: graph = g () => (z)\n"
        "      <\n"
        "         float u = {0}\n"
        "      >\n"
        "   {\n"
        "      z = Neg (x)\n"
        "   }>\n"
        "}\n"
        "<\n"
        "   domain: \"d\"\n"
        ">\n"
        "f <p> (x) => (y)\n"
        "   <\n"
        "      float t\n"
        "   >\n"
        "{\n"
        "   y = A (x)\n"
        "}\n"
        "training {\n"
        "   algorithm: step () => (w2) {\n"
        "      w2 = Neg (w)\n"
        "   },\n"
        "   update_binding: [\"w\": \"w2\"]\n"
        "}\n");
}

void test_syntax__lays_a_model_out_for_reading(void)
{
    check_in_arena(layout);
}

static void elided(struct cm_arena *arena)
{
    const struct cm_syntax_options two = {.elide = 2}, many = {.elide = 6},
                                   upstream = {.upstream = true, .elide = 5};

    prints_as(arena, node_kind, "= A <a = float[6] {1, 2, 3, 4, 5, 6}, b = int4[2] {1, 2}> ()",
              &two, "= A <a: tensor = float[6] {1, 2, ...}, b: tensor = int4[2] {1, 2}> ()\n");
    prints_as(arena, node_kind, "= A <a = int64[6] {1, 2, 3, 4, 5, 6}> ()", &many,
              "= A <a: tensor = int64[6] {1, 2, 3, 4, 5, 6}> ()\n");
    prints_as(arena, node_kind, "= A <a = int64[6] {1, 2, 3, 4, 5, 6}> ()", &upstream,
              "    = A <a: tensor = int64[6] {1,2,3,4,...}> ()\n");
    prints_as(arena, node_kind, "= A <a = string[3] {\"a\", \"b\", \"c\"}> ()", &two,
              "= A <a: tensor = string[3] {\"a\", \"b\", ...}> ()\n");
}

void test_syntax__large_tensors_are_cut_on_request(void)
{
    check_in_arena(elided);
}

static void refuses(struct cm_arena *arena, const struct syntax_kind *kind, const void *msg,
                    const char *part)
{
    struct cm_error err = {0};
    const struct cm_str text = syntax_print(arena, kind, msg, NULL, &err);

    if (text.data)
        fail_msg("printed, though it has to be refused: %s", text.data);
    if (!strstr(err.text, part))
        fail_msg("expected '%s', got: %s", part, err.text);
}

static void unspeakable(struct cm_arena *arena)
{
    /* name "n", then field 100 with value 1 */
    static const char unknown[] = {0x1a, 1, 'n', (char)0xa0, 0x06, 1};
    struct cm_error err = {0};
    struct cm_node_proto node = {0};
    struct cm_model_proto model = {0};

    CHECK_OK(cm_decode(&cm_node_info, (struct cm_str){unknown, sizeof unknown}, arena, &node, &err),
             &err);
    refuses(arena, node_kind, &node, "field 100 of NodeProto is unknown");
    refuses(arena, model_kind, &model, "without a graph");

    struct cm_node_proto *two = syntax_parse(arena, node_kind, CM_STR("= A <a = 1>()"), &err);
    cm_msg_set(&two->attribute.items[0].msg, CM_ATTRIBUTE_F);
    refuses(arena, node_kind, two, "attribute 'a' has no text form: it holds 2 values");

    struct cm_graph_proto *graph =
        syntax_parse(arena, graph_kind, CM_STR("g () => () <float w = {1}> {}"), &err);
    graph->initializer.items[0].data_type = 99;
    refuses(arena, graph_kind, graph, "tensor 'w' has no text form: its element type is unknown");
    graph->initializer.items[0].data_type = CM_INT64;
    refuses(arena, graph_kind, graph, "a field that its element type does not use");
}

void test_syntax__refuses_to_print_what_would_be_lost(void)
{
    check_in_arena(unspeakable);
}

struct full_disk {
    size_t room;
};

static enum cm_status write_little(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    struct full_disk *const disk = to;

    (void)bytes;
    if (size > disk->room)
        return cm_fail(err, CM_IO, "no room for %zu bytes", size);
    disk->room -= size;
    return CM_OK;
}

static void failing_write(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_graph_proto *const graph =
        syntax_parse(arena, graph_kind, CM_STR("g () => () <float[2] w = {1, 2}> {}"), &err);
    struct cm_tensor_proto *const tensor = &graph->initializer.items[0];
    struct full_disk disk = {20000};

    tensor->dims.items[0] = 100000;
    tensor->float_data.data = cm_arena_alloc(arena, 400000);
    tensor->float_data.size = 400000;
    CHECK_FAILS(cm_syntax_print_graph(graph, NULL, write_little, &disk, &err), CM_IO, &err,
                "no room for 4096 bytes");
    /* In pieces, and none after the failure. */
    CHECK_INT(disk.room, 20000 % 4096);
}

void test_syntax__prints_in_pieces_and_stops_when_one_is_refused(void)
{
    check_in_arena(failing_write);
}
