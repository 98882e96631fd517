/* The ONNX dialect of MLIR as text: what is printed, and that it reads back as the same model. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "mlir/dialect_case.h"

#include "onnx/model_file.h"

#include <dirent.h>

static const char conv[] =
    "<ir_version: 8, opset_import: [\"\" : 12]>\n"
    "net (float[N, 1, 4, 4] x) => (float[N, 2, 4, 4] y)\n"
    "   <float[2, 1, 1, 1] w = {0.5, -1.25}>\n"
    "{ [c] h = Conv <kernel_shape = [1, 1], auto_pad = \"SAME_UPPER\", group = 1> (x, w)\n"
    "  y = Clip (h, , ) }";

static void print_conv(struct cm_arena *arena)
{
    const struct cm_model_proto *model = dialect_model(arena, conv);

    CHECK_STRING(
        dialect_print(arena, model, NULL).data,
        "module attributes {onnx.ir_version = 8 : si64, onnx.opset_import = [{domain = \"\", "
        "version = 12 : si64}]} {\n"
        "  func.func @main_graph(%arg0: tensor<?x1x4x4xf32> {onnx.dim_params = \"0:N\", onnx.name "
        "= \"x\"}) -> (tensor<?x2x4x4xf32> {onnx.dim_params = \"0:N\", onnx.name = \"y\"}) "
        "attributes {onnx.name = \"net\", onnx.initializers = [{name = \"w\", storage = "
        "\"typed\"}]} {\n"
        "    %none = \"onnx.NoValue\"() {value} : () -> none\n"
        "    %0 = onnx.Constant dense<[[[[5.000000e-01]]], [[[-1.250000e+00]]]]> : "
        "tensor<2x1x1x1xf32>\n"
        "    %1 = \"onnx.Conv\"(%arg0, %0) {auto_pad = \"SAME_UPPER\", group = 1 : si64, "
        "kernel_shape = [1, 1], onnx.domain = \"\", onnx.order = [1, 2, 0], onnx.output = [\"h\"], "
        "onnx_node_name = "
        "\"c\"} : (tensor<?x1x4x4xf32>, tensor<2x1x1x1xf32>) -> !onnx.Unknown\n"
        "    %2 = \"onnx.Clip\"(%1, %none) {onnx.domain = \"\", onnx.output = [\"y\"]} : "
        "(!onnx.Unknown, none) "
        "-> tensor<?x2x4x4xf32>\n"
        "    onnx.Return %2 : tensor<?x2x4x4xf32>\n"
        "  }\n"
        "  \"onnx.EntryPoint\"() {func = @main_graph} : () -> ()\n"
        "}\n");
    dialect_check_round(arena, model, "conv");
}

void test_dialect__prints_operations_as_onnx_mlir_does(void)
{
    check_in_arena(print_conv);
}

static size_t round_folder(struct cm_arena *arena, const char *folder, enum cm_model_format format,
                           const char *ending)
{
    DIR *const dir = opendir(folder);
    size_t count = 0;

    CHECK(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const struct cm_load_options options = {.format = format};
        struct cm_model_file *file;

        /* One has fields that nobody knows, one a graph in an attribute of another type. */
        if (entry->d_name[0] == '.' || !cm_str_ends(cm_str(entry->d_name), ending) ||
            strcmp(entry->d_name, "foreign.onnx") == 0 ||
            strcmp(entry->d_name, "every_field.onnx") == 0)
            continue;
        const struct cm_str path = cm_path_join(arena, cm_str(folder), cm_str(entry->d_name));
        if (cm_model_open(arena, path.data, &options, &file, NULL) != CM_OK)
            continue;
        dialect_check_round(arena, &file->model, path.data);
        count++;
    }
    closedir(dir);
    return count;
}

static void round_texts(struct cm_arena *arena)
{
    CHECK(round_folder(arena, TESTS_DIR "/fuzz/corpus/fuzz_text", CM_FORMAT_TEXT, "") >= 9);
}

void test_dialect__keeps_all_that_the_text_form_can_say(void)
{
    check_in_arena(round_texts);
}

static void round_files(struct cm_arena *arena)
{
    CHECK(round_folder(arena, TESTS_DIR "/models", CM_FORMAT_BINARY, ".onnx") >= 14);
}

void test_dialect__keeps_every_field_of_a_file(void)
{
    check_in_arena(round_files);
}

static void round_elements(struct cm_arena *arena)
{
    static const char *const types[] = {
        "float16",      "bfloat16",   "double",         "int8",           "uint8",      "int16",
        "uint16",       "int32",      "uint32",         "int64",          "uint64",     "bool",
        "float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1", "int4",
        "uint4",        "int2",       "uint2",          "float",
    };

    for (size_t i = 0; i < CM_COUNT(types); i++) {
        for (int many = 0; many < 3; many++) {
            struct cm_str list = CM_STR("1");
            for (int n = 1; n < (many ? 127 : 9); n++)
                list = cm_arena_printf(arena, "%s, %d", list.data, many < 2 && n % 3 == 0 ? 0 : 1);
            const struct cm_str text =
                cm_arena_printf(arena,
                                "<ir_version: 13, opset_import: [\"\" : 25]>\n"
                                "g () => (y) <%s[%d] w = {%s}> { y = Identity(w) }",
                                types[i], many ? 127 : 9, list.data);
            const struct cm_model_proto *model = dialect_model(arena, text.data);
            const struct cm_str out = dialect_print(arena, model, NULL);
            dialect_check_round(arena, model, types[i]);
            /* A list of few, the bytes of many, one for all that are equal. */
            CHECK(!!strstr(out.data, "dense<[") == (many == 0));
            CHECK(!!strstr(out.data, "dense<\"0x") == (many == 1));
        }
    }
}

void test_dialect__keeps_elements_of_all_types(void)
{
    check_in_arena(round_elements);
}

static void print_reals(struct cm_arena *arena)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g () => (y) <float[8] w = {0.1, 1e-5, -0.0296516512, 16777216, 1e30, inf, -nan, "
        "1.2345678e-4}, complex64[1] z = {1, -2.5}> { y = Identity(w) }";
    const struct cm_model_proto *model = dialect_model(arena, text);
    const struct cm_str out = dialect_print(arena, model, NULL);

    CHECK(strstr(out.data,
                 "dense<[1.000000e-01, 1.000000e-05, -0.0296516512, 16777216.0, "
                 "1.000000e+30, 0x7F800000, 0xFFC00000, 1.23456775E-4]> : tensor<8xf32>"));
    CHECK(strstr(out.data, "dense<(1.000000e+00,-2.500000e+00)> : tensor<1xcomplex<f32>>"));
    dialect_check_round(arena, model, "reals");
}

void test_dialect__prints_numbers_as_mlir_does(void)
{
    check_in_arena(print_reals);
}

static void print_versions(struct cm_arena *arena)
{
    static const struct {
        int opset;
        const char *node, *name;
    } rows[] = {
        {8, "Conv <kernel_shape = [1, 1]> (x, x)", "\"onnx.Conv\"("},
        {22, "Conv (x, x)", "\"onnx.Conv\"("},
        {11, "ReduceSum <axes = [0]> (x)", "\"onnx.ReduceSumV11\"("},
        {13, "ReduceSum (x, x)", "\"onnx.ReduceSum\"("},
        {12, "Softmax (x)", "\"onnx.SoftmaxV11\"("},
        {13, "Softmax (x)", "\"onnx.Softmax\"("},
        {2, "Pad <pads = [0, 0]> (x)", "\"onnx.PadV2\"("},
        {17, "Nothing (x)", "\"onnx.Custom\"("},
        {17, "com.microsoft.Gelu (x)",
         "\"onnx.Custom\"(%arg0) {domain_name = \"com.microsoft\", function_name = \"Gelu\""},
        {17, "Cast <to = 10> (x)", "onnx.output = [\"y\"], to = f16}"},
        {17, "ai.onnx.ml.Scaler (x)", "\"onnx.Scaler\"("},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        const struct cm_str text = cm_arena_printf(arena,
                                                   "<ir_version: 8, opset_import: [\"\" : %d, "
                                                   "\"ai.onnx.ml\" : 3, \"com.microsoft\" : 1]>\n"
                                                   "g (float[1] x) => (float[1] y) { y = %s }",
                                                   rows[i].opset, rows[i].node);
        const struct cm_model_proto *model = dialect_model(arena, text.data);
        CHECK(strstr(dialect_print(arena, model, NULL).data, rows[i].name));
        dialect_check_round(arena, model, rows[i].node);
    }
}

void test_dialect__names_older_forms_of_operators_by_version(void)
{
    check_in_arena(print_versions);
}

static void print_loop(struct cm_arena *arena)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "g (bool c, float[2] x) => (float[2] y) {\n"
                               "  y = If (c) <else_branch = e () => (float[2] z) { z = Neg(x) },\n"
                               "              then_branch = t () => (float[2] z) <float[2] k = {1, "
                               "2}> { z = Add(x, k) }>\n"
                               "}";
    const struct cm_model_proto *model = dialect_model(arena, text);
    const struct cm_str out = dialect_print(arena, model, NULL);

    CHECK(strstr(out.data,
                 "    %0 = \"onnx.If\"(%arg0) ({\n"
                 "      %1 = onnx.Constant dense<[1.000000e+00, 2.000000e+00]> : "
                 "tensor<2xf32>\n"
                 "      %2 = \"onnx.Add\"(%arg1, %1) {onnx.domain = \"\", onnx.output = [\"z\"]}"));
    CHECK(strstr(out.data,
                 "    }, {\n"
                 "      %1 = \"onnx.Neg\"(%arg1) {onnx.domain = \"\", onnx.output = [\"z\"]}"));
    dialect_check_round(arena, model, "if");
}

void test_dialect__sub_graphs_are_regions(void)
{
    check_in_arena(print_loop);
}

static void print_training(struct cm_arena *arena)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}> { y = MatMul(x, w) }\n"
        "training { algorithm: step () => (float[1,1] new) { new = Neg(w) },\n"
        "           update_binding: [\"w\": \"new\"] }";
    const struct cm_model_proto *model = dialect_model(arena, text);
    const struct cm_str out = dialect_print(arena, model, NULL);

    CHECK(strstr(out.data, "  func.func private @training.0.initialization() attributes "
                           "{onnx.training = 0, onnx.role = \"initialization\"}\n"));
    CHECK(strstr(out.data, "@training.0.algorithm(%arg0: tensor<1x1xf32> {onnx.name = \"w\", "
                           "onnx.outer})"));
    CHECK(strstr(out.data, "onnx.update_binding = [[\"w\", \"new\"]]"));
    dialect_check_round(arena, model, "training");
}

void test_dialect__training_is_functions_with_bindings(void)
{
    check_in_arena(print_training);
}

static enum cm_status no_bytes(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    (void)to;
    (void)bytes;
    (void)size;
    (void)err;
    return CM_OK;
}

static void refuse_graph(struct cm_arena *arena)
{
    struct cm_model_file *file;
    struct cm_error err;

    CHECK_OK(cm_model_open(arena, TESTS_DIR "/models/every_field.onnx", NULL, &file, &err), &err);
    CHECK_FAILS(cm_dialect_print(&file->model, NULL, arena, no_bytes, NULL, &err), CM_UNSUPPORTED,
                &err, "a graph in an attribute that is not of type graph");
}

void test_dialect__refuses_a_graph_that_is_not_a_region(void)
{
    check_in_arena(refuse_graph);
}
