/* The header and the source that are written for a program: what they say, and that a C compiler
 * takes both without a warning. That compiler may be missing; then the tests that need it say so.
 */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "check.h"
#include "mlir/lowering/glue.h"
#include "mlir/toolchain/clang.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int64_t open_dims[] = {-1, 3}, fixed_dims[] = {2, 3}, some_dims[] = {-1};
static const struct cm_str open_names[] = {{"N", 1}, {"", 0}}, no_names[] = {{"", 0}, {"", 0}};

/* x: float[N,3], x*: float[N,3] (a name that is no identifier); y: float[2,3], found: int64[?] */
static const struct cm_mlir_port ports_in[] = {
    {{"x", 1}, CM_FLOAT, 2, open_dims, open_names, false, 0},
    {{"x*/\"", 4}, CM_FLOAT, 2, open_dims, open_names, false, 0},
    {{"x*/?", 4}, CM_INT4, 2, fixed_dims, no_names, true, 6},
};
static const struct cm_mlir_port ports_out[] = {
    {{"y", 1}, CM_FLOAT, 2, fixed_dims, no_names, true, 24},
    {{"found", 5}, CM_INT64, 1, some_dims, no_names, false, 0},
};
static const struct cm_mlir_program program = {.inputs = ports_in,
                                               .n_inputs = CM_COUNT(ports_in),
                                               .outputs = ports_out,
                                               .n_outputs = CM_COUNT(ports_out)};

static bool has(struct cm_str text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* ---- judged by a compiler ---- */

static void compile(const struct cm_workspace *workspace, const char *compiler,
                    const char *language, const char *name, struct cm_str text)
{
    const char *const arguments[] = {compiler,
                                     "-x",
                                     language,
                                     "-fsyntax-only",
                                     "-ffreestanding",
                                     "-Wall",
                                     "-Wextra",
                                     "-Wpedantic",
                                     "-Wno-unused-parameter",
                                     "-Wno-type-limits", /* sizes that are 0 */
                                     "-Werror",
                                     cm_workspace_path(workspace, name),
                                     NULL};
    struct cm_error err = {0};

    CHECK_OK(cm_workspace_put(workspace, name, text, &err), &err);
    CHECK_OK(cm_tool_run(workspace, arguments, &err), &err);
}

/* No compiler: it is not judged. */
static void judge(struct cm_arena *arena, const struct cm_glue *glue)
{
    struct cm_workspace workspace;
    struct cm_error err = {0};

    if (access("/usr/bin/cc", X_OK) != 0) {
        print_message("no C compiler: the glue was not compiled\n");
        return;
    }
    CHECK_OK(cm_workspace_open(&workspace, arena, &err), &err);
    compile(&workspace, "/usr/bin/cc", "c", "glue.c", glue->source);
    compile(&workspace, "/usr/bin/cc", "c", "glue.h", glue->header);
}

/* ---- what is written ---- */

static void plain(struct cm_arena *arena)
{
    char message[] = "a \"check\"\n", *messages[] = {message};
    const struct cm_glue_options options = {.name = "net",
                                            .source = "net.onnx",
                                            .weight_bytes = 128,
                                            .planned_bytes = 1000,
                                            .messages = messages,
                                            .n_messages = 1,
                                            .is_library = true};
    struct cm_error err = {0};
    struct cm_glue glue;

    CHECK_OK(cm_glue_write(&program, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "NET_IN_X = 0, /* x: float[N,3], float */"));
    CHECK(has(glue.header, "NET_IN_X___ = 1,"));
    CHECK(has(glue.header, "NET_IN_X____2 = 2,")); /* two names are one identifier */
    CHECK(has(glue.header, "NET_OUT_Y = 0, /* y: float[2,3], float, 24 bytes */"));
    CHECK(has(glue.header, "#define NET_LEAST_ARENA_BYTES 1064"));
    CHECK(has(glue.header, "int net_run(const struct net_tensor *inputs, struct net_tensor "
                           "*outputs, void *arena, size_t arena_bytes);"));
    CHECK(has(glue.source, "static const uint16_t equal_dims[][4] = {{0, 0, 1, 0}, "));
    CHECK(has(glue.source, "\"a \\042check\\042\\012\""));
    CHECK(has(glue.source, "call->inputs[0].data, call->inputs[0].data, 0, "
                           "(cm_index)call->inputs[0].shape[0], (cm_index)3, (cm_index)(1 * 3), "
                           "(cm_index)(1)"));
    CHECK(!has(glue.source, "call->outputs[1].data, ")); /* it comes through cm_output */
    CHECK_INT(glue.n_exported, 3);
    CHECK_STRING(glue.exported[0], "net_run");
    CHECK_STRING(glue.exported[2], "cameo_compiled");
}

void test_glue__ports_become_numbers_checks_and_arguments(void)
{
    check_in_arena(plain);
}

static void weights(struct cm_arena *arena)
{
    struct cm_glue_options options = {.name = "net",
                                      .source = "net.onnx",
                                      .weights = CM_GLUE_CALLER,
                                      .weight_bytes = 128,
                                      .planned_bytes = 1000,
                                      .arena_is_fixed = true};
    struct cm_error err = {0};
    struct cm_glue glue;

    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT16, &CM_SHAPE(2, 3), NULL);
    const struct cm_mlir_weight weight = {CM_STR("w"), &tensor, 64};
    struct cm_mlir_program weighty = program;

    weighty.weights = &weight;
    weighty.n_weights = 1;
    CHECK_OK(cm_glue_write(&weighty, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "#define NET_ARENA_BYTES 1064"));
    CHECK(has(glue.header, "#define NET_WEIGHT_BYTES 128"));
    CHECK(has(glue.header, "extern const struct net_place net_weights[];\n"
                           "/* at 64: w, float16[2,3], 12 bytes */"));
    CHECK(has(glue.source, "{\"w\", 64, 12, \"float16[2,3]\"},\n    {0, 0, 0, 0}};"));
    CHECK(has(glue.prototype, "int net_run(const void *weights, const struct net_tensor"));
    CHECK(!has(glue.source, "cm_weights"));
    options.weights = CM_GLUE_BESIDE;
    CHECK_OK(cm_glue_write(&program, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "#define NET_WEIGHT_BYTES 128"));
    CHECK(!has(glue.header, "net_place"));
    options.weights = CM_GLUE_INSIDE;
    CHECK_OK(cm_glue_write(&program, &options, arena, &glue, &err), &err);
    CHECK(!has(glue.header, "WEIGHT_BYTES"));
    CHECK(has(glue.source, "cm_weights"));
}

void test_glue__weights_are_an_argument_where_they_are_not_inside(void)
{
    check_in_arena(weights);
}

static const struct cm_mlir_port step_in[] = {
    {{"W", 1}, CM_FLOAT, 2, fixed_dims, no_names, true, 24},
    {{"rate", 4}, CM_FLOAT, 0, NULL, NULL, true, 4},
    {{"x", 1}, CM_FLOAT, 2, fixed_dims, no_names, true, 24},
};
static const struct cm_mlir_port step_out[] = {
    {{"loss", 4}, CM_FLOAT, 0, NULL, NULL, true, 4},
    {{"W.next", 6}, CM_FLOAT, 2, fixed_dims, no_names, true, 24},
};
static const struct cm_mlir_program step = {
    .inputs = step_in, .n_inputs = 3, .outputs = step_out, .n_outputs = 2};

static void training(struct cm_arena *arena)
{
    struct cm_glue_variable variables[] = {{CM_STR("rate"), 0, 4, 0, 1, -1, false},
                                           {CM_STR("W"), 1, 24, 0, 0, 1, false}};
    struct cm_glue_state state = {.variables = variables, .count = 2, .initial_offset = 192};
    const struct cm_glue_options options = {.name = "net",
                                            .source = "net.onnx",
                                            .state = &state,
                                            .weight_bytes = 320,
                                            .arena_is_fixed = true};
    struct cm_error err = {0};
    struct cm_glue glue;

    cm_glue_lay_out_state(&state);
    CHECK_STR(variables[0].name, "W"); /* what a step changes comes first */
    CHECK_INT(variables[1].offset, 64);
    CHECK_INT(state.bytes, 128);
    CHECK_INT(state.changed_bytes, 64);
    CHECK_OK(cm_glue_write(&step, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "#define NET_STATE_BYTES 128"));
    CHECK(has(glue.header, "/* at 64: rate, float, 4 bytes */"));
    CHECK(has(glue.header, "NET_INPUTS = 1"));
    CHECK(has(glue.header, "void net_initialize(void *state);"));
    CHECK(has(glue.prototype, "int net_step(void *state, const struct net_tensor *inputs"));
    CHECK(has(glue.source, "(unsigned char *)call->state + 64"));
    CHECK(has(glue.source, "(unsigned char *)next + 0"));
    CHECK(has(glue.source, "(const unsigned char *)cm_weights + 192"));
    CHECK_INT(glue.arena_bytes, 128);
}

void test_glue__variables_of_a_training_step_live_in_one_block(void)
{
    check_in_arena(training);
}

/* It is copied before a step and kept with what the step changes; a seed begins it again. */
static void random_state(struct cm_arena *arena)
{
    static const int64_t words[3] = {0};
    struct cm_glue_variable variables[] = {
        {CM_STR("rate"), 0, 4, 0, 1, -1, false},
        {CM_STR("W"), 1, 24, 0, 0, 1, false},
        {CM_STR("cameo/random"), 2, sizeof words, 0, -1, -1, true}};
    struct cm_glue_state state = {.variables = variables, .count = 3, .initial_offset = 192};
    struct cm_glue_options options = {.name = "net",
                                      .source = "net.onnx",
                                      .state = &state,
                                      .weight_bytes = 384,
                                      .arena_is_fixed = true};
    struct cm_mlir_program drawing = step;
    struct cm_error err = {0};
    struct cm_glue glue;

    drawing.random = words;
    drawing.n_random = CM_COUNT(words);
    cm_glue_lay_out_state(&state);
    CHECK_STR(variables[1].name, "cameo/random");
    CHECK_INT(variables[1].offset, 64);
    CHECK_INT(state.changed_bytes, 128);
    CHECK_OK(cm_glue_write(&drawing, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "/* at 64: cameo/random, int64[3], 24 bytes */"));
    CHECK(has(glue.header, "void net_seed(void *state, uint64_t seed);"));
    CHECK(has(glue.source, "memcpy(random, (const unsigned char *)call->state + 64, 24);"));
    CHECK(has(glue.source, "random, random, 0, 3, 1"));
    CHECK(has(glue.source, "memcpy(random, (const unsigned char *)cm_weights + 256, 24);"));
    CHECK_STRING(glue.exported[3], "net_seed");
    judge(arena, &glue);
    options.weights = CM_GLUE_BESIDE;
    CHECK_OK(cm_glue_write(&drawing, &options, arena, &glue, &err), &err);
    CHECK(has(glue.header, "void net_seed(const void *weights, void *state, uint64_t seed);"));
    judge(arena, &glue);
}

void test_glue__where_random_numbers_stand_is_part_of_the_state(void)
{
    check_in_arena(random_state);
}

static void refused(struct cm_arena *arena)
{
    struct cm_mlir_port port = ports_in[0];
    const struct cm_mlir_program strings = {.inputs = &port, .n_inputs = 1};
    const struct cm_glue_options options = {.name = "net", .source = "net.onnx"};
    struct cm_error err = {0};
    struct cm_glue glue;

    port.type = CM_STRING;
    CHECK_FAILS(cm_glue_write(&strings, &options, arena, &glue, &err), CM_UNSUPPORTED, &err,
                "input 'x' is of type string");
}

void test_glue__strings_are_refused(void)
{
    check_in_arena(refused);
}

static void names(struct cm_arena *arena)
{
    CHECK_STR(cm_glue_name(arena, CM_STR("net-2.v1.onnx")), "net_2_v1");
    CHECK_STR(cm_glue_name(arena, CM_STR("2nd.onnx")), "model_2nd");
    CHECK_STR(cm_glue_name(arena, CM_STR(".onnx")), "model");
    CHECK(cm_glue_name_is_valid("net_2") && cm_glue_name_is_valid("_x"));
    CHECK(!cm_glue_name_is_valid("2x") && !cm_glue_name_is_valid("") &&
          !cm_glue_name_is_valid("a-b"));
}

void test_glue__names_become_identifiers(void)
{
    check_in_arena(names);
}

static void kernels(struct cm_arena *arena)
{
    const struct cm_str text = CM_STR("void cm_a(int x);\nint b(void) { return cm_a(2); }\n"
                                      "void xcm_a(void) {}\nvoid cm_c(int (*f)(int),\n"
                                      "          int y)\n{\n}\n");
    const struct cm_str missing = CM_STR("cm_no_such_kernel");
    const struct cm_mlir_program calls = {.kernels = &missing, .n_kernels = 1};
    struct cm_clang_sources sources = {0};
    struct cm_error err = {0};

    CHECK(cm_clang_defines(text, CM_STR("cm_c")) && cm_clang_defines(text, CM_STR("b")));
    CHECK(!cm_clang_defines(text, CM_STR("cm_a")));
    CHECK_FAILS(cm_clang_kernels(&calls, arena, &sources, &err), CM_UNSUPPORTED, &err,
                "there is no kernel 'cm_no_such_kernel'");
}

void test_glue__kernels_are_found_by_their_definition(void)
{
    check_in_arena(kernels);
}

static void judged(struct cm_arena *arena)
{
    static const struct cm_glue_state none = {0};
    const struct cm_mlir_program empty = {0};
    struct cm_error err = {0};
    struct cm_glue glue;

    for (int kind = 0; kind < 12; kind++) {
        const struct cm_glue_options options = {.name = "net",
                                                .source = "net.onnx",
                                                .weights = (enum cm_glue_weights)(kind % 3),
                                                .weight_bytes = 128,
                                                .is_library = kind % 2 == 0,
                                                .state = kind % 4 < 2 ? NULL : &none};

        CHECK_OK(cm_glue_write(kind < 6 ? &program : &empty, &options, arena, &glue, &err), &err);
        judge(arena, &glue);
    }
}

void test_glue__a_compiler_takes_all_variants_without_a_warning(void)
{
    check_in_arena(judged);
}
