/* Any bytes as a model, all the way: imported, brought up to date, differentiated where it says so,
 * compiled and run on small inputs, under limits of memory, nodes and steps. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "exec/session.h"
#include "graph/import.h"
#include "onnx/decode.h"
#include "rewrite/upgrade.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 1 << 20, NODES = 2000, STEPS = 2000, INPUTS = 16 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
    atomic_bool cancel;
    int steps;
};

/* A mutated loop may go on for ever. */
static void count_step(void *arg, const struct cm_step_report *report)
{
    struct input *input = arg;
    (void)report;
    if (++input->steps > STEPS)
        atomic_store(&input->cancel, true);
}

/* A small value of an input's type: unknown dimensions are 2, elements count up. False: none that
 * is small. */
static bool make_value(const struct cm_type *type, struct cm_arena *arena, struct cm_datum *out)
{
    struct cm_shape shape = {.rank = type->rank > 0 ? type->rank : 0};
    int64_t count;
    size_t bytes;
    if (type->kind != CM_KIND_TENSOR)
        return false;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = cm_dim_known(type->dims[i]) ? type->dims[i].value : 2;
    if (!cm_shape_count(&shape, &count) || count > 4096 ||
        !cm_dtype_bytes(type->dtype, count, &bytes))
        return false;
    uint8_t *room = cm_arena_alloc(arena, bytes + 16);
    for (size_t i = 0; i < bytes && type->dtype != CM_STRING; i++)
        room[i] = type->dtype == CM_BOOL ? i & 1 : (uint8_t)(i % 4 == 0);
    *out = (struct cm_datum){.kind = CM_KIND_TENSOR,
                             .tensor = cm_tensor_borrow(type->dtype, &shape, room)};
    return true;
}

static void run(struct input *input, struct cm_arena *arena, struct cm_graph *graph)
{
    const struct cm_session_options options = {.threads = 1, .memory_limit = MEMORY};
    struct cm_module *module = graph->module;
    struct cm_datum in[INPUTS] = {0}, out[INPUTS] = {0};
    const struct cm_datum *args[INPUTS] = {0};
    struct cm_session *session;

    if (graph->n_inputs > INPUTS || graph->n_outputs > INPUTS)
        return;
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (make_value(cm_value_get(module, graph->inputs[i])->fact.type, arena, &in[i]))
            args[i] = &in[i];
    const size_t n_in = graph->n_inputs, n_out = graph->n_outputs;
    if (cm_session_new(graph, &options, &session, &input->err))
        return;
    const struct cm_run_options limits = {
        .cancel = &input->cancel, .step = count_step, .step_arg = input};
    for (int twice = 0; twice < 2; twice++) {
        if (!cm_session_run(session, args, n_in, out, n_out, &limits, &input->err))
            for (size_t o = 0; o < n_out; o++)
                cm_datum_drop(&out[o]);
    }
    cm_session_free(session);
}

static enum cm_status whole_way(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0};
    const struct cm_module_options options = {.node_budget = NODES};
    const struct cm_import_options import = {.upgrade = cm_upgrade_node};
    struct cm_graph *graph;

    cm_arena_init(&arena, guard);
    if (!cm_decode(&cm_model_info, input->bytes, &arena, &model, &input->err)) {
        struct cm_module *module = cm_module_new(&arena, &options);
        if (!cm_module_import(module, &model, &import, &graph, &input->err) &&
            !cm_gradient_expand(graph, &input->err))
            run(input, &arena, graph);
    }
    cm_arena_release(&arena);
    return CM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    atomic_init(&input.cancel, false);
    (void)!cm_guarded((size_t)256 << 20, &input.err, whole_way, &input);
    return 0;
}
