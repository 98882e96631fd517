/* The plain engine: nodes in order, results on the heap. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/eval.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "graph/feeds.h"
#include "graph/function.h"
#include "graph/module.h"
#include "onnx/tensor_data.h"
#include "tensor/pool.h"

struct node_random {
    const struct cm_node *node;
    struct cm_random random;
    struct node_random *next;
};

/* One evaluation: values by number, for the graph and all bodies in it. */
struct frame {
    struct cm_module *module;
    struct cm_arena *arena;   /* lives as long as the evaluation */
    struct cm_datum **values; /* by value number; NULL: not computed yet */
    size_t n_values;          /* grows as values are asked for: one node alone needs none */
    const struct cm_eval_options *options;
    struct node_random *randoms;
    struct cm_kept_state *states; /* that kernels share, by kind */
    struct cm_pool *pool;         /* counts results; NULL: nobody asked */
    struct cm_buffer_source source;
    const struct cm_buffer_source *source_before;
    bool entered; /* source is this thread's */
    uint64_t steps, began_ns;
    int depth;
};

/* One node's call. */
struct run {
    struct frame *frame;
    struct cm_node *node;
    struct cm_arena *arena; /* gone after the node */
    size_t scratch_size;
};

static const struct cm_eval_options no_options = {0};

static enum cm_status eval_nodes(struct frame *frame, struct cm_graph *graph, struct cm_error *err);

/* ---- the engine as kernels see it ---- */

static void *run_state(struct cm_call *call, size_t size)
{
    const struct run *run = call->engine_data;
    return cm_arena_alloc(run->arena, size);
}

static void run_scratch(struct cm_call *call, size_t size)
{
    struct run *run = call->engine_data;
    if (size > run->scratch_size)
        run->scratch_size = size;
}

static enum cm_status run_allocate(struct cm_call *call, int o, enum cm_dtype dtype,
                                   const struct cm_shape *shape)
{
    if (!call->out_datum[o])
        return CM_OK;
    CM_TRY(cm_tensor_new(dtype, shape, &call->out_datum[o]->tensor, call->err));
    call->out_datum[o]->kind = CM_KIND_TENSOR;
    return CM_OK;
}

/* Instances of functions bring new values while the graph runs. */
static struct cm_datum **value_slot(struct frame *frame, cm_value value)
{
    const size_t count = frame->module->n_values;
    if (value >= frame->n_values) {
        struct cm_datum **grown = CM_NEW_ARRAY(frame->arena, struct cm_datum *, count);
        if (frame->n_values)
            memcpy(grown, frame->values, frame->n_values * sizeof *grown);
        frame->values = grown;
        frame->n_values = count;
    }
    return &frame->values[value];
}

/* The place of a value, empty: made before there is anything to put in it, so that running out of
 * memory loses nothing. */
static struct cm_datum *place(struct frame *frame, cm_value value)
{
    struct cm_datum **slot = value_slot(frame, value);
    if (!*slot)
        *slot = CM_NEW(frame->arena, struct cm_datum);
    cm_datum_drop(*slot);
    return *slot;
}

struct body_run {
    struct frame *frame;
    struct cm_graph *graph;
    const struct cm_datum *const *in;
    struct cm_datum *out;
    struct cm_arena_visit frame_visit, module_visit;
    struct cm_error *err;
};

static enum cm_status guarded_body(struct cm_guard *guard, void *arg)
{
    struct body_run *r = arg;
    struct frame *frame = r->frame;
    const struct cm_graph *graph = r->graph;
    r->frame_visit = cm_arena_visit(frame->arena, guard);
    r->module_visit = cm_arena_visit(frame->module->arena, guard);
    for (size_t i = 0; i < graph->n_inputs; i++)
        CM_TRY(cm_datum_share(r->in[i], place(frame, graph->inputs[i]), r->err));
    CM_TRY(eval_nodes(frame, r->graph, r->err));
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const enum cm_status status =
            cm_datum_share(frame->values[graph->outputs[o].value], &r->out[o], r->err);
        if (status) {
            while (o-- > 0)
                cm_datum_drop(&r->out[o]);
            return status;
        }
    }
    return CM_OK;
}

/* The kernel that asked owns memory while its body runs, so an arena that is exhausted inside must
 * not unwind past it: each body has a guard of its own. */
static enum cm_status run_body(struct cm_call *call, size_t body, const struct cm_datum *const *in,
                               size_t n_in, struct cm_datum *out, size_t n_out)
{
    const struct run *run = call->engine_data;
    struct frame *frame = run->frame;
    struct cm_graph *graph = run->node->bodies[body].graph;
    if (graph->n_inputs != n_in || graph->n_outputs != n_out)
        return cm_fail(call->err, CM_BAD_MODEL,
                       "body takes %zu values and gives %zu, not %zu and %zu", graph->n_inputs,
                       graph->n_outputs, n_in, n_out);
    struct cm_error own;
    struct body_run r = {
        .frame = frame, .graph = graph, .in = in, .out = out, .err = call->err ? call->err : &own};
    const int depth = frame->depth;
    frame->depth = depth + 1;
    const enum cm_status status = cm_guarded(0, r.err, guarded_body, &r);
    frame->depth = depth;
    cm_arena_come_back(frame->module->arena, r.module_visit);
    cm_arena_come_back(frame->arena, r.frame_visit);
    return status;
}

static struct cm_random *run_random(struct cm_call *call)
{
    const struct run *run = call->engine_data;
    struct frame *frame = run->frame;
    uint64_t stream = 0;
    for (struct node_random *known = frame->randoms; known; known = known->next, stream++)
        if (known->node == run->node)
            return &known->random;
    struct node_random *made = CM_NEW(frame->arena, struct node_random);
    made->node = run->node;
    made->next = frame->randoms;
    frame->randoms = made;
    if (run->node->stream)
        stream = run->node->stream;
    cm_node_seed_random(run->node, frame->options->seed, stream, &made->random);
    return &made->random;
}

/* Everything here is row-major: a kernel that wants another layout reorders inside, or is not for
 * this engine. */
static void ignore_layout(struct cm_call *call, int i, const struct cm_layout *layout)
{
    (void)call, (void)i, (void)layout;
}

static void run_defer(struct cm_call *call, cm_cleanup_fn *fn, void *what)
{
    const struct run *run = call->engine_data;
    cm_arena_defer(run->arena, fn, what);
}

static void *run_session_state(struct cm_call *call, const struct cm_session_state *kind)
{
    const struct run *run = call->engine_data;
    return cm_kept_state_get(&run->frame->states, kind);
}

static const struct cm_engine plain_engine = {
    .state = run_state,
    .scratch = run_scratch,
    .allocate = run_allocate,
    .run_body = run_body,
    .random = run_random,
    .want_layout = ignore_layout,
    .give_layout = ignore_layout,
    .defer = run_defer,
    .session_state = run_session_state,
};

/* ---- one node ---- */

/* Shapes of the results for the values at hand, by the same rule that typed the graph; then their
 * memory. */
static enum cm_status allocate_outputs(struct run *run, const struct cm_datum *const *in,
                                       struct cm_datum *out, struct cm_error *err)
{
    const struct cm_node *node = run->node;
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    struct cm_fact *facts = CM_NEW_ARRAY(run->arena, struct cm_fact, n_in);
    struct cm_fact *results = CM_NEW_ARRAY(run->arena, struct cm_fact, n_out);
    for (size_t i = 0; i < n_in; i++) {
        if (!in[i])
            continue;
        facts[i].type = cm_type_of_datum(run->arena, in[i]);
        facts[i].constant = in[i]->kind == CM_KIND_TENSOR ? &in[i]->tensor : NULL;
    }
    struct cm_infer rule = {.node = node,
                            .arena = run->arena,
                            .symbols = run->frame->module->symbols,
                            .in = facts,
                            .out = results,
                            .n_in = node->n_inputs,
                            .n_out = node->n_outputs,
                            .err = err};
    CM_TRY(node->op->infer(&rule));
    for (size_t o = 0; o < n_out; o++) {
        if (!node->outputs[o])
            continue;
        struct cm_shape shape;
        if (results[o].type && results[o].type->kind != CM_KIND_TENSOR)
            continue; /* made by the kernel itself */
        if (!results[o].type || !cm_type_shape(results[o].type, &shape))
            return cm_fail(err, CM_UNSUPPORTED, "the shape of output %zu is still unknown", o);
        CM_TRY(cm_tensor_new(results[o].type->dtype, &shape, &out[o].tensor, err));
        out[o].kind = CM_KIND_TENSOR;
    }
    return CM_OK;
}

static void free_memory(void *memory)
{
    cm_free(memory);
}

static enum cm_status prepare_and_run(struct run *run, struct cm_call *call)
{
    const struct cm_op *op = run->node->op;
    if (op->prepare)
        CM_TRY(op->prepare(call));
    call->scratch = cm_no_scratch;
    if (run->scratch_size) {
        call->scratch = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, run->scratch_size);
        if (!call->scratch)
            return cm_fail(call->err, CM_NO_MEMORY, "no memory for %zu bytes of scratch",
                           run->scratch_size);
        cm_arena_defer(run->arena, free_memory, call->scratch);
    }
    return op->run(call);
}

static enum cm_status run_kernel(struct run *run, const struct cm_datum *const *in,
                                 struct cm_datum *out, struct cm_error *err)
{
    const struct cm_node *node = run->node;
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    const struct cm_tensor **tensors_in = CM_NEW_ARRAY(run->arena, const struct cm_tensor *, n_in);
    struct cm_tensor **tensors_out = CM_NEW_ARRAY(run->arena, struct cm_tensor *, n_out);
    struct cm_datum **data_out = CM_NEW_ARRAY(run->arena, struct cm_datum *, n_out);

    if (!(node->op->effects & CM_OUTPUT_SIZE_AT_RUN))
        CM_TRY(allocate_outputs(run, in, out, err));
    for (size_t i = 0; i < n_in; i++)
        if (in[i] && in[i]->kind == CM_KIND_TENSOR)
            tensors_in[i] = &in[i]->tensor;
    for (size_t o = 0; o < n_out; o++) {
        if (!node->outputs[o])
            continue;
        data_out[o] = &out[o];
        tensors_out[o] = &out[o].tensor;
    }
    struct cm_call call = {.node = node,
                           .op = node->op,
                           .n_in = node->n_inputs,
                           .n_out = node->n_outputs,
                           .in = tensors_in,
                           .out = tensors_out,
                           .in_datum = in,
                           .out_datum = data_out,
                           .engine = &plain_engine,
                           .engine_data = run,
                           .err = err};
    return prepare_and_run(run, &call);
}

static enum cm_status run_function(struct run *run, const struct cm_datum *const *in,
                                   struct cm_datum *out, struct cm_error *err)
{
    struct frame *frame = run->frame;
    struct cm_node *node = run->node;
    CM_TRY(cm_node_instantiate(node, err));
    struct cm_graph *graph = node->instance;
    size_t next = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        if (in[i])
            CM_TRY(cm_datum_share(in[i], place(frame, graph->inputs[next++]), err));
    }
    frame->depth++;
    CM_TRY(eval_nodes(frame, graph, err));
    frame->depth--;
    next = 0;
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            CM_TRY(cm_datum_share(frame->values[graph->outputs[next++].value], &out[o], err));
    return CM_OK;
}

static bool uses_kernel(const struct frame *frame, const struct cm_node *node)
{
    return !node->function && node->op && node->op->run && cm_node_is_current(node) &&
           !(frame->options->prefer_bodies && cm_node_has_function(node));
}

static enum cm_status eval_node(struct frame *frame, struct cm_node *node, struct cm_arena *arena,
                                const struct cm_datum *const *in, struct cm_datum *out,
                                struct cm_error *err)
{
    struct run run = {.frame = frame, .node = node, .arena = arena};
    if (uses_kernel(frame, node))
        return run_kernel(&run, in, out, err);
    if (cm_node_has_function(node))
        return run_function(&run, in, out, err);
    if (node->op && node->op->run)
        return cm_fail(err, CM_UNSUPPORTED, "version %d must be upgraded first",
                       node->schema->since_version);
    return cm_fail(err, CM_UNSUPPORTED, "there is no kernel and no function body for it");
}

/* ---- graphs ---- */

static void release_frame(void *what)
{
    struct frame *frame = what;
    for (size_t i = 0; i < frame->n_values; i++)
        if (frame->values[i])
            cm_datum_drop(frame->values[i]);
    cm_kept_states_free(&frame->states);
}

static enum cm_status operand(struct frame *frame, cm_value value, const struct cm_datum **out,
                              struct cm_error *err)
{
    *out = NULL;
    if (!value)
        return CM_OK;
    if (!*value_slot(frame, value)) {
        const struct cm_tensor *constant;
        CM_TRY(cm_value_constant(frame->module, value, &constant, err));
        if (!constant)
            return cm_fail(err, CM_BAD_ARGUMENT, "value '%.*s' is missing",
                           CM_STR_FMT(cm_value_get(frame->module, value)->name));
        struct cm_datum *datum = place(frame, value);
        *datum = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *constant};
        cm_tensor_keep(&datum->tensor);
    }
    *out = frame->values[value];
    return CM_OK;
}

static void report(const struct frame *frame, const struct cm_node *node, uint64_t began)
{
    const struct cm_eval_report report = {.node = node,
                                          .by_body = !uses_kernel(frame, node),
                                          .depth = frame->depth,
                                          .begin_ns = began - frame->began_ns,
                                          .end_ns = cm_clock_ns() - frame->began_ns,
                                          .live_bytes =
                                              frame->pool ? cm_pool_used(frame->pool) : 0};
    /* What the callback makes is the caller's, not the evaluation's. */
    const struct cm_buffer_source *source = cm_buffer_enter(NULL);
    frame->options->step(frame->options->step_arg, &report);
    cm_buffer_enter(source);
}

static enum cm_status eval_one(struct frame *frame, struct cm_node *node, struct cm_arena *arena,
                               struct cm_error *err)
{
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    const struct cm_datum **in = CM_NEW_ARRAY(arena, const struct cm_datum *, n_in);
    struct cm_datum *out = cm_data_new(arena, n_out); /* until they have their places */
    const struct cm_eval_options *options = frame->options;

    if (options->step_limit && ++frame->steps > options->step_limit)
        return cm_fail(err, CM_LIMIT, "more than %llu nodes were run",
                       (unsigned long long)options->step_limit);
    if (cm_cancelled(options->cancel))
        return cm_fail(err, CM_CANCELLED, "cancelled");
    for (size_t i = 0; i < n_in; i++)
        CM_TRY(operand(frame, node->inputs[i].value, &in[i], err));
    const uint64_t began = options->step ? cm_clock_ns() : 0;
    CM_TRY(eval_node(frame, node, arena, in, out, err));
    if (options->step)
        report(frame, node, began);
    for (size_t o = 0; o < n_out; o++) {
        if (!node->outputs[o])
            continue;
        *place(frame, node->outputs[o]) = out[o];
        out[o] = (struct cm_datum){0};
    }
    return CM_OK;
}

static enum cm_status eval_nodes(struct frame *frame, struct cm_graph *graph, struct cm_error *err)
{
    struct cm_arena arena;
    cm_arena_init(&arena, frame->arena->guard);
    enum cm_status status = CM_OK;
    for (struct cm_node *node = graph->first; node && !status; node = node->next) {
        status = cm_node_blame(node, eval_one(frame, node, &arena, err), err);
        cm_arena_reset(&arena);
    }
    for (size_t o = 0; o < graph->n_outputs && !status; o++) {
        const struct cm_datum *datum;
        status =
            operand(frame, graph->outputs[o].value, &datum, err); /* an initializer may be one */
    }
    cm_arena_release(&arena);
    /* A body without nodes may be run forever too. */
    if (!status && cm_cancelled(frame->options->cancel))
        return cm_fail(err, CM_CANCELLED, "cancelled");
    return status;
}

static void frame_init(struct frame *frame, struct cm_module *module, struct cm_arena *arena,
                       const struct cm_eval_options *options)
{
    cm_arena_init(arena, options && options->guard ? options->guard : module->arena->guard);
    *frame = (struct frame){
        .module = module, .arena = arena, .options = options ? options : &no_options};
    cm_arena_defer(arena, release_frame, frame);
}

enum cm_status cm_op_eval(struct cm_node *node, const struct cm_datum *const *in,
                          struct cm_datum *out, struct cm_error *err)
{
    struct cm_arena arena, scratch;
    struct frame frame;
    frame_init(&frame, node->module, &arena, NULL);
    cm_arena_init(&scratch, node->module->arena->guard);
    enum cm_status status = eval_node(&frame, node, &scratch, in, out, err);
    for (int o = 0; status && o < node->n_outputs; o++)
        cm_datum_drop(&out[o]);
    status = cm_node_blame(node, status, err);
    cm_arena_release(&scratch);
    cm_arena_release(&arena);
    return status;
}

static enum cm_status feed(struct frame *frame, const struct cm_graph *graph,
                           const struct cm_datum *const *in, size_t n_in, struct cm_error *err)
{
    if (n_in != graph->n_inputs)
        return cm_fail(err, CM_BAD_ARGUMENT, "the graph takes %zu inputs, %zu were given",
                       graph->n_inputs, n_in);
    for (size_t i = 0; i < n_in; i++) {
        const struct cm_value_def *def = cm_value_get(frame->module, graph->inputs[i]);
        struct cm_datum *datum = place(frame, graph->inputs[i]);
        if (in[i]) {
            CM_TRY(cm_feed_check(graph, i, in[i], NULL, err));
            CM_TRY(cm_datum_share(in[i], datum, err));
        } else if (def->initializer) {
            CM_TRY(
                cm_tensor_proto_load(def->initializer, frame->module->files, &datum->tensor, err));
            datum->kind = CM_KIND_TENSOR;
        } else {
            return cm_feed_missing(graph, i, err);
        }
    }
    return CM_OK;
}

static void leave_pool(void *what)
{
    const struct frame *frame = what;
    if (frame->entered)
        cm_buffer_enter(frame->source_before);
    cm_pool_free(frame->pool);
}

/* Results come from a pool if they are to be counted. */
static enum cm_status count_memory(struct frame *frame, struct cm_error *err)
{
    if (!frame->options->memory_limit && !frame->options->step)
        return CM_OK;
    cm_arena_defer(frame->arena, leave_pool, frame); /* whichever way the evaluation ends */
    frame->pool = cm_pool_new(frame->options->memory_limit);
    if (!frame->pool)
        return cm_fail(err, CM_NO_MEMORY, "out of memory");
    frame->source = cm_pool_source(frame->pool);
    frame->source_before = cm_buffer_enter(&frame->source);
    frame->entered = true;
    return CM_OK;
}

enum cm_status cm_graph_eval(struct cm_graph *graph, const struct cm_datum *const *in, size_t n_in,
                             struct cm_datum *out, const struct cm_eval_options *options,
                             struct cm_error *err)
{
    struct cm_arena arena;
    struct frame frame;
    frame_init(&frame, graph->module, &arena, options);
    frame.began_ns = frame.options->step ? cm_clock_ns() : 0;
    enum cm_status status = count_memory(&frame, err);
    if (!status)
        status = feed(&frame, graph, in, n_in, err);
    if (!status)
        status = eval_nodes(&frame, graph, err);
    size_t shared = 0;
    for (; shared < graph->n_outputs && !status; shared++)
        status = cm_datum_share(frame.values[graph->outputs[shared].value], &out[shared], err);
    if (status)
        while (shared-- > 0)
            cm_datum_drop(&out[shared]);
    cm_arena_release(&arena);
    return status;
}
