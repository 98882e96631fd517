/* Any bytes as a model that is optimized and written: what comes out can be read. */
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"
#include "models/write_model.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "target.h"

#include <stdlib.h>

enum { NODES = 2000 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

static enum cm_status import(struct cm_arena *arena, const struct cm_model_proto *model,
                             struct cm_graph **graph, struct cm_error *err)
{
    const struct cm_module_options options = {.node_budget = NODES};

    return cm_lower_import(cm_module_new(arena, &options), model, NULL, graph, err);
}

/* A budget may be reached in one form and not in the other; nothing else may be wrong. */
static void read_again(struct cm_arena *arena, const struct cm_model_proto *made)
{
    struct cm_model_proto model = {0};
    struct cm_graph *graph;
    struct cm_error err = {0};
    struct cm_str bytes;

    if (cm_encode(&cm_model_info, made, arena, &bytes, &err) ||
        cm_decode(&cm_model_info, bytes, arena, &model, &err))
        return;
    const enum cm_status status = import(arena, &model, &graph, &err);
    if (status == CM_BAD_MODEL || status == CM_UNSUPPORTED || status == CM_BAD_ARGUMENT) {
        fprintf(stderr, "what was written cannot be read: %s\n", err.text);
        abort();
    }
}

static enum cm_status whole_way(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_model_file file = {.arena = &arena}, *made;
    const struct cm_lower_options lower = {.pass = {.memory_limit = 1 << 20},
                                           .keep_operators = true};
    struct cm_write_report report;
    struct cm_graph *graph;

    cm_arena_init(&arena, guard);
    if (!cm_decode(&cm_model_info, input->bytes, &arena, &file.model, &input->err) &&
        !import(&arena, &file.model, &graph, &input->err) &&
        !cm_lower_graph(graph, &lower, &input->err)) {
        const struct cm_write_options write = {.portable = input->bytes.size & 1};
        if (!cm_write_model(graph, &file, &write, &arena, &made, &report, &input->err))
            read_again(&arena, &made->model);
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
