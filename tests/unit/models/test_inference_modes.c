/* Training modes that a constant sets. */
// SPDX-License-Identifier: Apache-2.0
#include "models/inference_modes.h"

#include "check.h"
#include "onnx/syntax.h"

/* How many nodes train when `training_mode` is this constant. */
static size_t training_nodes(struct cm_arena *arena, const char *constant)
{
    struct cm_model_file *file = CM_NEW(arena, struct cm_model_file);
    struct cm_error err = {0};
    struct cm_modes modes = {0};
    const char *text = cm_arena_printf(arena,
                                       "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                       "m (float[2] x) => (float[2] y) <float r = {0.5}, %s>\n"
                                       "{ y = Dropout (x, r, mode) }",
                                       constant)
                           .data;

    file->arena = arena;
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, &file->model, &err), &err);
    cm_modes_find(arena, file, &modes);
    return modes.nodes.count;
}

static void types(struct cm_arena *arena)
{
    CHECK_INT(training_nodes(arena, "bool mode = {1}"), 1);
    CHECK_INT(training_nodes(arena, "bool mode = {0}"), 0);
    CHECK_INT(training_nodes(arena, "float16 mode = {15360}"), 1);
    CHECK_INT(training_nodes(arena, "string mode = {\"1\"}"), 0);
    CHECK_INT(training_nodes(arena, "complex64 mode = {1, 0}"), 0);
    CHECK_INT(training_nodes(arena, "complex128 mode = {1, 0}"), 0);
}

void test_inference_modes__only_a_real_number_turns_training_on(void)
{
    check_in_arena(types);
}
