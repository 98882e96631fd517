/* The ONNX dialect as other programs write it, and text that is wrong. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect_case.h"

#include "onnx/model_case.h"
#include "onnx/model_file.h"

static void read_foreign(struct cm_arena *arena)
{
    static const char text[] =
        "// as ONNX-MLIR prints a module\n"
        "#loc = loc(\"net.onnx\":0:0)\n"
        "module attributes {llvm.target_triple = \"x86_64\", \"onnx-mlir.symbol-postfix\" = \"n\"} "
        "{\n"
        "  func.func @main_graph(%arg0: tensor<?x2xf32> {onnx.dim_params = \"0:N\", onnx.name = "
        "\"in\"} "
        "loc(unknown), %arg1: tensor<i1>) -> (tensor<?x2xf32> {onnx.name = \"out\"}, "
        "tensor<?x2xf32> {onnx.name = \"same\"}) {\n"
        "    %none = \"onnx.NoValue\"() <{value}> : () -> none loc(#loc)\n"
        "    %0 = onnx.Constant dense<[[1.0, 2.0], [0x7F800000, -4.5E-1]]> : tensor<2x2xf32>\n"
        "    %1 = onnx.Constant {value = dense<\"0x0000803F00000040\"> : tensor<2xf32>} : "
        "tensor<2xf32>\n"
        "    %cst = \"onnx.Constant\"() {value = dense_resource<r> : tensor<2xi64>} : () -> "
        "tensor<2xi64>\n"
        "    %2 = \"onnx.Gemm\"(%arg0, %0, %1) {alpha = 1.000000e+00 : f32, onnx_node_name = "
        "\"g\", "
        "transB = 1 : si64} : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> "
        "tensor<?x2xf32>\n"
        "    %3:2 = \"onnx.Split\"(%2, %none) <{axis = 1 : si64, num_outputs = 2 : si64}> : "
        "(tensor<?x2xf32>, none) -> (tensor<?x1xf32>, tensor<?x1xf32>)\n"
        "    %4 = \"onnx.Concat\"(%3#1, %3#0) {axis = 1 : si64} : (tensor<?x1xf32>, "
        "tensor<?x1xf32>) "
        "-> tensor<?x2xf32>\n"
        "    %5 = \"onnx.If\"(%arg1) ({\n"
        "      onnx.Yield %4 : tensor<?x2xf32>\n"
        "    }, {\n"
        "      %6 = \"onnx.Neg\"(%4) : (tensor<?x2xf32>) -> tensor<?x2xf32>\n"
        "      onnx.Yield %6 : tensor<?x2xf32>\n"
        "    }) : (tensor<i1>) -> tensor<?x2xf32>\n"
        "    return %5, %5 : tensor<?x2xf32>, tensor<?x2xf32>\n"
        "  }\n"
        "  \"onnx.EntryPoint\"() {func = @main_graph} : () -> ()\n"
        "}\n"
        "{-# dialect_resources: { builtin: { r: \"0x0800000001000000000000000200000000000000\" } } "
        "#-}\n";
    const struct cm_model_proto *model = dialect_parse(arena, cm_str(text));
    const struct cm_graph_proto *graph = model->graph;

    CHECK_INT(model->opset_import.count, 1);
    CHECK_INT(graph->input.count, 2);
    CHECK_STR(graph->input.items[0].name, "in");
    CHECK_STR(graph->input.items[0].type->tensor_type->shape->dim.items[0].dim_param, "N");
    CHECK_STR(graph->input.items[1].name, "arg1");
    CHECK_INT(graph->initializer.count, 3);
    CHECK_INT(graph->initializer.items[2].raw_data.data[8], 2);
    CHECK_INT(graph->node.count, 5); /* one more: a value cannot have two names */
    CHECK_STR(graph->node.items[0].name, "g");
    CHECK_STR(graph->node.items[1].input.items[1], "");
    CHECK_STR(graph->node.items[2].input.items[0], "3_1");
    CHECK_STR(graph->node.items[3].attribute.items[0].name, "then_branch");
    CHECK_INT(graph->node.items[3].attribute.items[0].g->node.count, 0);
    CHECK_STR(graph->node.items[3].attribute.items[0].g->name, "then_branch");
    CHECK_INT(graph->value_info.count, 4); /* of what is not an output */
    CHECK_STR(graph->node.items[3].output.items[0], "out");
    CHECK_STR(graph->node.items[4].op_type, "Identity");
    CHECK_STR(graph->output.items[1].name, "same");
    dialect_check_round(arena, model, "foreign");
}

void test_dialect_read__takes_what_onnx_mlir_writes(void)
{
    check_in_arena(read_foreign);
}

static void read_generic(struct cm_arena *arena)
{
    static const char text[] =
        "\"builtin.module\"() ({\n"
        "  \"func.func\"() <{arg_attrs = [{onnx.name = \"x\"}], function_type = (tensor<2xf32>) -> "
        "tensor<2xf32>, sym_name = \"f\"}> ({\n"
        "  ^bb0(%arg0: tensor<2xf32>):\n"
        "    %0 = \"onnx.ReduceSumV11\"(%arg0) {axes = [0]} : (tensor<2xf32>) -> tensor<1xf32>\n"
        "    %1 = \"onnx.Custom\"(%0) {domain_name = \"mine\", function_name = \"F\"} : "
        "(tensor<1xf32>) -> tensor<1xf32>\n"
        "    \"onnx.Return\"(%1) : (tensor<1xf32>) -> ()\n"
        "  }) : () -> ()\n"
        "}) : () -> ()\n";
    const struct cm_model_proto *model = dialect_parse(arena, cm_str(text));

    CHECK_INT(model->opset_import.count, 2);
    CHECK_INT(model->opset_import.items[0].version, 12);
    CHECK_STR(model->opset_import.items[1].domain, "mine");
    CHECK_STR(model->graph->input.items[0].name, "x");
    CHECK_STR(model->graph->node.items[0].op_type, "ReduceSum");
    CHECK_INT(model->graph->output.items[0].type->tensor_type->shape->dim.items[0].dim_value, 2);
    CHECK(cm_dialect_is_text(cm_str(text)));
    CHECK(!cm_dialect_is_text(CM_STR("\x08\x08\x12")));
}

void test_dialect_read__takes_the_generic_form(void)
{
    check_in_arena(read_generic);
}

#define FUNCTION(body)                                                                             \
    "module attributes {onnx.ir_version = 8 : si64, onnx.opset_import = [{version = 17 : si64}]} " \
    "{\n  func.func @f(%a: tensor<2xf32> {onnx.name = \"a\"}) {\n" body                            \
    "\n    onnx.Return\n  }\n}\n"

static void read_wrong(struct cm_arena *arena)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"module {", "line 1, column 9: expected an operation but the text ends"},
        {"module {\n  func.func @f() {\n  }\n}", "line 2, column 3: the function has no body"},
        {"func.func @f(%a: tensor<2xf32>) {\n  %0 = \"onnx.Neg\"(%a) : (tensor<2xf32>) -> none\n}",
         "line 1, column 33: the region does not end with"},
        {"#map = affine_map<(d0) -> (d0)>", "line 1, column 1: alias '#map' is not supported"},
        {FUNCTION("    arith.addf %a, %a : f32"),
         "line 3, column 5: operation 'arith.addf' is not known in a form of its own"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%b) : (tensor<2xf32>) -> tensor<2xf32>"),
         "line 3, column 21: value '%b' is not defined before"},
        {FUNCTION("    %0 = \"onnx.Nothing\"(%a) : (tensor<2xf32>) -> tensor<2xf32>"),
         "line 3, column 10: operation 'onnx.Nothing' is not part of the ONNX dialect"},
        {FUNCTION("    %0 = \"onnx.SoftmaxV11\"(%a) : (tensor<2xf32>) -> tensor<2xf32>"),
         "'onnx.SoftmaxV11' is not the form that Softmax has in opset 17"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%a) : (tensor<2xf32>, none) -> tensor<2xf32>"),
         "2 types for 1 operands"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%a) {map = #map} : (tensor<2xf32>) -> tensor<2xf32>"),
         "line 3, column 32: attributes of other dialects and names of attributes"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%a) {a = 1, a = 2} : (tensor<2xf32>) -> tensor<2xf32>"),
         "attribute 'a' appears twice"},
        {FUNCTION("    %0 = \"onnx.If\"(%a) ({\n      onnx.Yield %a : tensor<2xf32>\n    }) "
                  "{then_branch = {type = 5 : si32}} : (tensor<2xf32>) -> tensor<2xf32>"),
         "attribute 'then_branch' appears twice"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%a) : (tensor<2xf33>) -> tensor<2xf32>"),
         "expected an element type such as f32 but found 'f33'"},
        {FUNCTION("    %0 = onnx.Constant dense<[1, 2]> : tensor<3xi8>"),
         "expected ',' but found ']'"},
        {FUNCTION("    %0 = onnx.Constant dense<[300]> : tensor<1xi8>"), "int8"},
        {FUNCTION("    %0 = onnx.Constant dense<\"0x0102\"> : tensor<3xi8>"),
         "2 bytes of values, but the type needs 3"},
        {FUNCTION("    %0 = onnx.Constant dense<1> : tensor<99999999999xi8>"),
         "tensors of one repeated element take more than 2 GiB"},
        {FUNCTION("    %0 = onnx.Constant dense<[1]> : tensor<99999999999xi8>"),
         "the type has more elements than there are values"},
        {FUNCTION("    %0 = onnx.Constant dense_resource<r> : tensor<2xi8>"),
         "the values of resource 'r' are not in the file"},
        {FUNCTION("    %0 = onnx.Constant sparse<0, 1> : tensor<2xi8>"),
         "line 3, column 24: sparse<..> is not supported"},
        {FUNCTION("    %0 = onnx.Constant dense<1> : tensor<2xi8, #x>"),
         "encodings of tensor types are not supported"},
        {FUNCTION("    %0 = \"onnx.Neg\"(%a) {s = \"\\q\"} : (tensor<2xf32>) -> tensor<2xf32>"),
         "two hexadecimal digits after the backslash"},
        {"func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
         "%0 = \"onnx.SoftmaxV11\"(%a) : (tensor<2xf32>) -> tensor<2xf32>\n"
         "%1 = \"onnx.Softmax\"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n"
         "return %1 : tensor<2xf32>\n}",
         "no opset has both Softmax"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        struct cm_model_proto model;
        struct cm_error err = {.text = ""};

        CHECK(cm_dialect_parse(cm_str(rows[i].text), arena, &model, &err) != CM_OK);
        if (!strstr(err.text, rows[i].reason))
            fail_msg("row %zu: %s", i, err.text);
    }
}

void test_dialect_read__says_where_text_is_wrong(void)
{
    check_in_arena(read_wrong);
}

static void read_deep(struct cm_arena *arena)
{
    static const struct {
        const char *before, *part;
    } rows[] = {
        {"module attributes {a = ", "["},
        {"module attributes {a = ", "{a = "},
        {"module attributes {a = ", "!onnx.Seq<"},
        {"", "module {"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        const size_t size = strlen(rows[i].part), start = strlen(rows[i].before), count = 100000;
        char *const text = cm_arena_alloc(arena, start + count * size);
        struct cm_model_proto model;
        struct cm_error err;

        memcpy(text, rows[i].before, start);
        for (size_t n = 0; n < count; n++)
            memcpy(text + start + n * size, rows[i].part, size);
        CHECK_FAILS(
            cm_dialect_parse((struct cm_str){text, start + count * size}, arena, &model, &err),
            CM_LIMIT, &err, "nested more than");
    }
}

void test_dialect_read__limits_nesting(void)
{
    check_in_arena(read_deep);
}

static void open_without_reader(struct cm_arena *arena)
{
    const char *folder = case_folder(arena), *path = case_path(arena, folder, "m.mlir");
    struct cm_model_file *file;
    struct cm_error err;

    case_write(path, "module {}", 9);
    CHECK_FAILS(cm_model_open(arena, path, NULL, &file, &err), CM_UNSUPPORTED, &err,
                "models in the form of MLIR are not supported here");
}

void test_dialect_read__is_refused_where_nobody_reads_it(void)
{
    check_in_arena(open_without_reader);
}
