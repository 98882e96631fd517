/* Any bytes as a model, all the way: imported, brought up to date, differentiated where it says so,
 * compiled and run on small inputs, under limits of memory, nodes and steps. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"
#include "onnx/decode.h"
#include "small_run.h"
#include "target.h"

enum { NODES = 2000 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

static enum cm_status whole_way(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0};
    const struct cm_module_options options = {.node_budget = NODES};
    const struct cm_lower_options lower = {.pass = {.memory_limit = 1 << 20}};
    struct cm_graph *graph;

    cm_arena_init(&arena, guard);
    if (!cm_decode(&cm_model_info, input->bytes, &arena, &model, &input->err)) {
        struct cm_module *module = cm_module_new(&arena, &options);
        if (!cm_lower_import(module, &model, NULL, &graph, &input->err) &&
            !cm_lower_graph(graph, &lower, &input->err))
            small_run(graph, &arena, (uint64_t)model.model_version);
    }
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
