/* Reading the text form: what is said about mistakes, limits, hostile text, and little memory. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "onnx/decode.h"
#include "onnx/syntax_case.h"

#include <locale.h>

static const struct syntax_kind *const model_kind = &syntax_kinds[0];
static const struct syntax_kind *const node_kind = &syntax_kinds[3];

/* A little of everything, for tests that cut or starve it. */
static const char everything[] =
    "<ir_version: 10, opset_import: [\"\" : 21], producer_name: \"a\\\"b\",\n"
    " metadata_props: [\"k\": \"v\"], configuration: [<name: \"d\", num_devices: 2>]>\n"
    "<doc_string: \"graph\", quantization_annotation: [<tensor_name: \"x\">]>\n"
    "main (float[N, 2 : \"DATA_CHANNEL\"] x <doc_string: \"in\">, seq(map(int64, optional(string)))"
    " s) => (y)\n"
    "   <float[2] w = {1.5, -inf}, int4[3] q = {1, -8, 7}, string[1] t = {\"a\\\\\"},\n"
    "    sparse_tensor[4] {float[1] sv {2}, int64[1] {3}}, float[1] e = [\"location\": \"f\"],\n"
    "    opaque(a.b, c) : \"OTHER\" o>\n"
    "{ # nodes\n"
    "   [n <doc_string: \"node\">] a, b = my.domain.Op:two <f = 1e-3, l: ints = [], r = @p,\n"
    "      ts = [float {1}, float {2}], tp = float[]> (x, , w)\n"
    "   y = If (a) <then_branch = g () => (z) { z = Constant <value_ints = [1, 2]> () }>\n"
    "}\n"
    "<domain: \"d\", opset_import: [\"\" : 1]>\n"
    "f <p, q: int = 2> (x) => (float[2] y) <float v> { y = A (x) }\n"
    "training { algorithm: step () => () {}, update_binding: [\"w\": \"v\"] }\n";

/* The message for text must be exactly this. */
static void says(struct cm_arena *arena, const struct syntax_kind *kind, const char *text,
                 const char *message)
{
    struct cm_error err = {0};

    if (syntax_parse(arena, kind, cm_str(text), &err))
        fail_msg("read, though it has to be refused: %s", text);
    CHECK_STRING(err.text, message);
}

static void common_mistakes(struct cm_arena *arena)
{
    static const char *const nodes[][2] = {
        {"x = MatMul[X, W]", "line 1, column 11: expected '(' but found '['"},
        {"x = A(\n  y", "line 2, column 4: expected ')' but the text ends"},
        {"A(y)", "line 1, column 2: expected '=' but found '('"},
        {"x = A<a = [1, 2.5]>()",
         "line 1, column 15: expected a value of type int but found float"},
        {"x = A<a = []>()",
         "line 1, column 11: an empty list needs a list type before it, as in 'a: ints = []'"},
        {"x = A<a: integer = 1>()",
         "line 1, column 10: expected the type of an attribute but found 'integer'"},
        {"x = A<a = \"abc>()", "line 1, column 11: string without a closing quote"},
        {"x = A<a = int8 {300}>()", "line 1, column 17: 300 does not fit in int8"},
        {"x = A<a = int64 {1.5}>()", "line 1, column 18: expected a whole number but found 1.5"},
        {"x = A<a = 9223372036854775808>()",
         "line 1, column 11: 9223372036854775808 does not fit in int64"},
        {"x = A<a = 1e39>()", "line 1, column 11: 1e39 does not fit in float"},
        {"x = A<a = float[N] {1}>()",
         "line 1, column 20: dimension 0 of a tensor with data is not a number"},
        {"x = A<a = int4[3] {1, 2}>()",
         "line 1, column 20: 2 elements do not fill the shape of this int4 tensor"},
        {"x = A<a = float6e2m3[2] {63, 64}>()", "line 1, column 30: 64 does not fit in float6e2m3"},
        {"x = A<a>()", "line 1, column 8: expected ':' or '=' but found '>'"},
        {"x = A(y) z = B(w)", "line 1, column 10: expected the end but found 'z'"},
        {"x = \xc3\xa9()", "line 1, column 5: expected an operator but found byte 0xc3"},
    };
    static const char *const models[][2] = {
        {"", "line 1, column 1: expected the name of a graph but the text ends"},
        {"<ir_version: 7 producer_name: \"x\"> g () => () {}",
         "line 1, column 16: expected '>' but found 'producer_name'"},
        {"<ir_versoin: 7> g () => () {}",
         "line 1, column 2: 'ir_versoin' is not a key of this ModelProto"},
        {"g (flaot[2] x) => () {}", "line 1, column 9: expected ')' but found '['"},
        {"g () -> () {}", "line 1, column 6: expected '=>' but found '-'"},
        {"g (float x) => () {}\nf (x) => (y) {\n   y = Neg (x\n}",
         "line 4, column 1: expected ')' but found '}'"},
    };

    for (size_t i = 0; i < CM_COUNT(nodes); i++)
        says(arena, node_kind, nodes[i][0], nodes[i][1]);
    for (size_t i = 0; i < CM_COUNT(models); i++)
        says(arena, model_kind, models[i][0], models[i][1]);
}

void test_syntax__says_where_a_mistake_is_and_what_was_expected(void)
{
    check_in_arena(common_mistakes);
}

/* open repeated, then close repeated. */
static struct cm_str nested(struct cm_arena *arena, const char *before, const char *open, int count,
                            const char *middle, const char *close, const char *after)
{
    const size_t unit = strlen(open) + strlen(close);
    const size_t size = strlen(before) + strlen(middle) + strlen(after) + unit * (size_t)count;
    char *const text = cm_arena_alloc(arena, size + 1);
    size_t n = 0;
    const struct {
        const char *part;
        int count;
    } parts[] = {{before, 1}, {open, count}, {middle, 1}, {close, count}, {after, 1}};

    for (size_t i = 0; i < CM_COUNT(parts); i++) {
        for (int j = 0; j < parts[i].count; j++) {
            memcpy(text + n, parts[i].part, strlen(parts[i].part));
            n += strlen(parts[i].part);
        }
    }
    return (struct cm_str){text, n};
}

static struct cm_str nested_graphs(struct cm_arena *arena, int count)
{
    return nested(arena, "g () => () {", "x = If (c) <b = g () => () {", count, "", "}>", "}");
}

static struct cm_str nested_types(struct cm_arena *arena, int count)
{
    return nested(arena, "g (", "seq(", count, "float", ")", " x) => () {}");
}

static void depth_bombs(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_model_proto model;

    CHECK_FAILS(cm_syntax_parse_model(nested_graphs(arena, 10000), arena, &model, &err), CM_LIMIT,
                &err, "nested more than 30 deep");
    CHECK_FAILS(cm_syntax_parse_model(nested_types(arena, 10000), arena, &model, &err), CM_LIMIT,
                &err, "nested more than 30 deep");
    CHECK(!syntax_parse(arena, node_kind,
                        nested(arena, "x = A <a = ", "[", 10000, "1", "]", "> ()"), &err));
    CHECK(!syntax_parse(arena, node_kind, nested(arena, "x = A <a = ", "<", 10000, "", ">", "> ()"),
                        &err));
    CHECK_OK(cm_syntax_parse_model(nested_graphs(arena, CM_SYNTAX_DEPTH - 1), arena, &model, &err),
             &err);
    syntax_check_round(arena, model_kind, &model);
    CHECK_OK(cm_syntax_parse_model(nested_types(arena, CM_SYNTAX_DEPTH - 2), arena, &model, &err),
             &err);
    syntax_check_round(arena, model_kind, &model);
}

void test_syntax__refuses_what_is_nested_too_deep(void)
{
    check_in_arena(depth_bombs);
}

/* Copied to memory of its exact size, so that reading past the end is seen. */
static void each_prefix(struct cm_arena *arena)
{
    const size_t size = sizeof everything - 1;
    struct cm_error err = {0};
    size_t read = 0;

    for (size_t n = 0; n <= size; n++) {
        char *const copy = cm_malloc(n ? n : 1);
        CHECK(copy != NULL);
        memcpy(copy, everything, n);
        void *const model = syntax_parse(arena, model_kind, (struct cm_str){copy, n}, &err);
        if (!model)
            CHECK(strncmp(err.text, "line ", 5) == 0);
        else
            read++;
        cm_free(copy);
    }
    /* After the graph, after the function, after the training, and the spaces behind each. */
    CHECK_INT(read, 6);
}

void test_syntax__survives_text_that_ends_anywhere(void)
{
    check_in_arena(each_prefix);
}

static void each_byte_changed(struct cm_arena *arena)
{
    static const char marks[] = {'<', '>', '"', '(', '}', '[', '=',
                                 ':', ',', '-', '9', 'x', '#', 0};
    char text[sizeof everything];
    struct cm_error err = {0};

    for (size_t i = 0; i + 1 < sizeof everything; i++) {
        for (size_t j = 0; j < sizeof marks; j++) {
            memcpy(text, everything, sizeof text);
            text[i] = marks[j];
            void *const model =
                syntax_parse(arena, model_kind, (struct cm_str){text, sizeof everything - 1}, &err);
            if (model && (i + j) % 16 == 0)
                syntax_check_round(arena, model_kind, model);
        }
    }
}

void test_syntax__reads_back_whatever_a_changed_byte_makes_of_a_text(void)
{
    check_in_arena(each_byte_changed);
}

static void read_everything(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_model_proto *const model = syntax_parse(arena, model_kind, cm_str(everything), &err);

    if (!model)
        fail_msg("%s", err.text);
    CHECK_INT(model->training_info.count, 1);
    CHECK_STR(model->training_info.items[0].update_binding.items[0].value, "v");
    CHECK_STR(model->producer_name, "a\"b");
    const struct cm_graph_proto *const graph = model->graph;
    CHECK_STR(graph->doc_string, "graph");
    CHECK_STR(graph->input.items[0].type->tensor_type->shape->dim.items[1].denotation,
              "DATA_CHANNEL");
    CHECK_INT(graph->initializer.count, 4);
    CHECK_INT(graph->sparse_initializer.count, 1);
    CHECK_STR(graph->value_info.items[0].type->opaque_type->domain, "a.b");
    const struct cm_node_proto *const node = &graph->node.items[0];
    CHECK_STR(node->domain, "my.domain");
    CHECK_STR(node->op_type, "Op");
    CHECK_STR(node->overload, "two");
    CHECK_INT(node->input.count, 3);
    CHECK_INT(node->input.items[1].size, 0);
    CHECK_INT(node->attribute.items[3].tensors.count, 2);
    CHECK_INT(model->functions.items[0].value_info.count, 2);
    /* 1, -8 and 7 in four bits each, the first in the lowest. */
    struct cm_packed packed = graph->initializer.items[1].int32_data;
    uint64_t byte;
    bool broken = false;
    CHECK(cm_varint_next(&packed, &byte, &broken));
    CHECK_INT(byte, 0x81);
    CHECK(cm_varint_next(&packed, &byte, &broken));
    CHECK_INT(byte, 0x07);
    CHECK(!cm_varint_next(&packed, &byte, &broken));
    syntax_check_round(arena, model_kind, model);
}

void test_syntax__reads_what_onnx_has_no_form_for(void)
{
    check_in_arena(read_everything);
}

static enum cm_status parse_in_turn(struct cm_guard *guard, void *arg)
{
    struct cm_error *const err = arg;
    struct cm_arena arena;
    struct cm_model_proto model;

    cm_arena_init(&arena, guard);
    const enum cm_status status = cm_syntax_parse_model(cm_str(everything), &arena, &model, err);
    cm_arena_release(&arena);
    return status;
}

void test_syntax__gives_up_cleanly_when_memory_runs_out(void)
{
    struct cm_error err = {0};
    uint64_t n = 1;

    for (;; n++) {
        cm_memory_fail_after(n);
        const enum cm_status status = cm_guarded(0, &err, parse_in_turn, &err);
        cm_memory_fail_after(0);
        if (status == CM_OK)
            break;
        CHECK_INT(status, CM_NO_MEMORY);
        CHECK(n < 10000);
    }
    CHECK(n > 2);
    CHECK_INT(cm_guarded(4096, &err, parse_in_turn, &err), CM_LIMIT);
}

static void numbers(struct cm_arena *arena)
{
    static const struct {
        const char *text;
        uint32_t bits;
    } cases[] = {
        {"1.5", 0x3fc00000},
        {"-0.0", 0x80000000},
        {"1e-50", 0},
        {"0.1", 0x3dcccccd},
        {"16777217.0", 0x4b800000},
        {"inf", 0x7f800000},
        {"-Infinity", 0xff800000},
        {"nan", 0x7fc00000},
        {"-NaN", 0xffc00000},
        {"nan(1)", 0x7f800001},
        {"1.", 0x3f800000},
        {"1E+2", 0x42c80000},
        /* Between two floats by less than a double can tell. */
        {"1.00000005960464477539062500000000001", 0x3f800001},
        {"1.000000059604644775390625", 0x3f800000},
    };

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        struct cm_error err = {0};
        const struct cm_str text = cm_arena_printf(arena, "= A <a = %s> ()", cases[i].text);
        const struct cm_node_proto *const node = syntax_parse(arena, node_kind, text, &err);
        uint32_t bits;
        if (!node)
            fail_msg("%s: %s", cases[i].text, err.text);
        memcpy(&bits, &node->attribute.items[0].f, sizeof bits);
        if (bits != cases[i].bits)
            fail_msg("%s reads as %08x", cases[i].text, (unsigned)bits);
        syntax_check_round(arena, node_kind, (void *)(uintptr_t)node);
    }
}

void test_syntax__rounds_numbers_once(void)
{
    check_in_arena(numbers);
}

void test_syntax__numbers_do_not_follow_the_locale(void)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    bool any = false;

    for (size_t i = 0; i < CM_COUNT(commas) && !any; i++)
        any = setlocale(LC_ALL, commas[i]) != NULL;
    check_in_arena(numbers);
    setlocale(LC_ALL, "C");
    if (!any)
        skip();
}
