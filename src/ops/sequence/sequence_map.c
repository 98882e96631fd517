/* SequenceMap: a body run once for each item of a sequence. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/sequence.h"

#include "graph/clone.h"
#include "ops/sequence/sequence_grad.h"

static enum cm_status map_infer(struct cm_infer *in)
{
    const size_t n_in = (size_t)in->n_in, n_out = (size_t)in->n_out;
    struct cm_fact *args = CM_NEW_ARRAY(in->arena, struct cm_fact, n_in);
    struct cm_fact *outs = CM_NEW_ARRAY(in->arena, struct cm_fact, n_out);
    const struct cm_type *element;
    CM_TRY(cm_sequence_element(in, 0, &element));
    for (size_t i = 0; i < n_in; i++) {
        args[i] = in->in[i];
        if (args[i].type && args[i].type->kind == CM_KIND_SEQUENCE) {
            CM_TRY(cm_sequence_element(in, (int)i, &element));
            args[i] = (struct cm_fact){.type = element};
        }
        if (!args[i].type)
            return cm_infer_fail(in, "input %zu is missing", i);
    }
    CM_TRY(cm_infer_body(in, "body", args, n_in, outs, n_out));
    for (size_t o = 0; o < n_out; o++)
        CM_TRY(cm_sequence_set(in, (int)o, outs[o].type));
    return CM_OK;
}

/* Sequences are walked side by side, so they are equally long. */
static enum cm_status check_lengths(struct cm_call *call)
{
    const size_t n = call->in_datum[0]->n_items;
    for (int i = 1; i < call->n_in; i++) {
        const struct cm_datum *x = call->in_datum[i];
        if (x->kind == CM_KIND_SEQUENCE && x->n_items != n)
            return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d has %zu items, input 0 has %zu", i,
                                x->n_items, n);
    }
    return CM_OK;
}

/* An item's arguments and results are scratch memory, so that only the sequences are allocated. */
static enum cm_status map_prepare(struct cm_call *call)
{
    cm_call_scratch(call, (size_t)call->n_out * sizeof(struct cm_datum) +
                              (size_t)call->n_in * sizeof(const struct cm_datum *));
    return CM_OK;
}

static enum cm_status map_item(struct cm_call *call, size_t at, const struct cm_datum **args,
                               struct cm_datum *results)
{
    const size_t n_out = (size_t)call->n_out;
    for (int i = 0; i < call->n_in; i++) {
        const struct cm_datum *x = call->in_datum[i];
        args[i] = x->kind == CM_KIND_SEQUENCE ? &x->items[at] : x;
    }
    CM_TRY(cm_call_run_body(call, (size_t)cm_node_body_index(call->node, "body"), args,
                            (size_t)call->n_in, results, n_out));
    for (size_t o = 0; o < n_out; o++) {
        struct cm_datum *y = call->out_datum[o];
        if (y)
            y->items[y->n_items++] = results[o];
        else
            cm_datum_drop(&results[o]);
        results[o] = (struct cm_datum){0};
    }
    return CM_OK;
}

static enum cm_status map_run(struct cm_call *call)
{
    const size_t n = call->in_datum[0]->n_items;
    CM_TRY(check_lengths(call));
    for (int o = 0; o < call->n_out; o++)
        if (call->out_datum[o])
            CM_TRY(cm_sequence_new(n, call->out_datum[o], call->err));
    struct cm_datum *results = call->scratch;
    const struct cm_datum **args = (const struct cm_datum **)(void *)(results + call->n_out);
    memset(results, 0, (size_t)call->n_out * sizeof *results);
    for (size_t i = 0; i < n; i++)
        CM_TRY(map_item(call, i, args, results));
    return CM_OK;
}

/* One iteration: item i of every sequence goes through the body, whose results are appended to the
 * sequences of results. */
static struct cm_graph *step_graph(struct cm_body *b, const cm_value *empty)
{
    const struct cm_node *node = b->node;
    const struct cm_graph *body = cm_node_body(node, "body");
    struct cm_arena *arena = cm_builder_arena(&b->build);
    struct cm_graph *graph = cm_graph_new(node->module, b->build.graph, CM_STR("step"));
    struct {
        struct cm_builder build;
    } step = {.build = {.graph = graph, .err = b->build.err}};
    struct cm_clone clone;
    const size_t n_out = body->n_outputs;
    cm_value *states = CM_NEW_ARRAY(arena, cm_value, n_out);
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, n_out + 1);

    const cm_value i =
        cm_graph_add_input(graph, CM_STR_NONE, cm_type_tensor(arena, CM_INT64, 0, NULL));
    const cm_value go =
        cm_graph_add_input(graph, CM_STR_NONE, cm_type_tensor(arena, CM_BOOL, 0, NULL));
    for (size_t o = 0; o < n_out; o++)
        states[o] = cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&b->build, empty[o]));
    cm_clone_init(&clone, node->module);
    for (size_t k = 0; k < body->n_inputs; k++) {
        const cm_value x = cm_body_input(b, (int)k);
        const bool sequence = cm_builder_type(&b->build, x)->kind == CM_KIND_SEQUENCE;
        cm_clone_map(&clone, body->inputs[k], sequence ? cm_emit(&step, "SequenceAt", x, i) : x);
    }
    if (!step.build.status)
        step.build.status = cm_clone_graph(&clone, &step.build, body);
    outputs[0] = cm_emit(&step, "Identity", go);
    for (size_t o = 0; o < n_out && !step.build.status; o++)
        outputs[o + 1] = cm_emit(&step, "SequenceInsert", states[o],
                                 cm_clone_of(&clone, body->outputs[o].value));
    b->build.status = step.build.status;
    if (!step.build.status)
        cm_graph_set_outputs(graph, outputs, n_out + 1);
    return graph;
}

static enum cm_status map_body(struct cm_body *b)
{
    const struct cm_graph *body = cm_node_body(b->node, "body");
    struct cm_arena *arena = cm_builder_arena(&b->build);
    const size_t n_out = body->n_outputs;
    cm_value *inputs = CM_NEW_ARRAY(arena, cm_value, n_out + 2);
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, n_out + 1);
    if (body->n_inputs != (size_t)b->node->n_inputs)
        return cm_body_decline(b, "its graph takes %zu values, not one for each input",
                               body->n_inputs);
    inputs[0] = cm_emit(b, "SequenceLength", cm_body_input(b, 0));
    for (size_t o = 0; o < n_out; o++) {
        const struct cm_type *item = cm_builder_type(&b->build, body->outputs[o].value);
        const struct cm_attribute_proto dtype = cm_attr_int(arena, "dtype", (int64_t)item->dtype);
        inputs[o + 2] = cm_build(
            &b->build,
            &(struct cm_emission){.op = "SequenceEmpty", .attributes = &dtype, .n_attributes = 1});
    }
    CM_TRY(b->build.status);
    struct cm_graph *graph = step_graph(b, inputs + 2);
    CM_TRY(b->build.status);
    cm_build(&b->build, &(struct cm_emission){.op = "Loop",
                                              .inputs = inputs,
                                              .n_inputs = n_out + 2,
                                              .body_graphs = &graph,
                                              .body_names = (const char *const[]){"body"},
                                              .n_bodies = 1,
                                              .n_outputs = n_out,
                                              .outputs = outputs});
    for (int o = 0; o < b->node->n_outputs; o++)
        CM_TRY(cm_body_return(b, o, outputs[o]));
    return b->build.status;
}

CM_OP(SequenceMap, .infer = map_infer, .prepare = map_prepare, .run = map_run, .grad = cm_map_grad,
      .body = map_body, .effects = CM_OUTPUT_SIZE_AT_RUN);
