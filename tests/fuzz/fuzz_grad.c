/* Any bytes as a model that is differentiated: the gradient of its first output of floats by its
 * inputs and initializers of floats, written as a model of its own, read again and run. The model's
 * own version number says which inputs, and whether the result must be portable. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"
#include "onnx/model_file.h"
#include "small_run.h"
#include "target.h"
#include "train/step.h"

enum { NODES = 2000, MOST_NODES = 40, WRT = 8 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

static bool is_real(int32_t type)
{
    return cm_dtype_info((enum cm_dtype)type)->kind == CM_CLASS_FLOAT;
}

static bool is_float(const struct cm_value_info_proto *info)
{
    return info->type && info->type->tensor_type && is_real(info->type->tensor_type->elem_type);
}

static size_t choose(const struct cm_graph_proto *graph, uint64_t choice, struct cm_str *wrt)
{
    size_t count = 0;

    for (size_t i = 0; i < graph->input.count && count < WRT; i++)
        if (is_float(&graph->input.items[i]) && !(choice >> (i % 8) & 1))
            wrt[count++] = graph->input.items[i].name;
    for (size_t i = 0; i < graph->initializer.count && count < WRT; i++)
        if (is_real(graph->initializer.items[i].data_type) && !(choice >> (i % 8 + 8) & 1))
            wrt[count++] = graph->initializer.items[i].name;
    return count;
}

static void run(const struct cm_model_file *file, struct cm_arena *arena, struct cm_error *err)
{
    const struct cm_module_options options = {.node_budget = NODES};
    struct cm_module *module = cm_module_new(arena, &options);
    const struct cm_lower_options lower = {.pass = {.memory_limit = 1 << 20}};
    struct cm_graph *graph;

    if (!cm_lower_import(module, &file->model, NULL, &graph, err) &&
        !cm_lower_graph(graph, &lower, err))
        small_run(graph, arena, (uint64_t)file->model.model_version);
}

static void differentiate(const struct cm_model_file *file, struct cm_arena *arena,
                          struct cm_error *err)
{
    const struct cm_graph_proto *graph = file->model.graph;
    const uint64_t choice = (uint64_t)file->model.model_version;
    const struct cm_step_options options = {.portable = choice >> 16 & 1};
    struct cm_model_file *made;
    struct cm_str wrt[WRT];

    if (!graph) { /* which must be noticed */
        (void)!cm_grad_model(arena, file, CM_STR("y"), NULL, 0, &options, &made, err);
        return;
    }
    if (graph->node.count > MOST_NODES)
        return;
    for (size_t o = 0; o < graph->output.count; o++) {
        if (!is_float(&graph->output.items[o]))
            continue;
        const size_t n_wrt = choose(graph, choice, wrt);
        if (!cm_grad_model(arena, file, graph->output.items[o].name, wrt, n_wrt, &options, &made,
                           err))
            run(made, arena, err);
        return;
    }
}

static enum cm_status whole_way(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    const struct cm_load_options options = {.format = CM_FORMAT_BINARY};
    struct cm_model_file *file;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    if (!cm_model_parse(&arena, input->bytes, &options, &file, &input->err))
        differentiate(file, &arena, &input->err);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    (void)!cm_guarded((size_t)256 << 20, &input.err, whole_way, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 16 * FUZZ_MIB,
    .memory_per_byte = 4096,
};
