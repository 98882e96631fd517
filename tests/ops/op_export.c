/* Gradients of cases as models for other runtimes: standard operators under the lowest opset that
 * holds them, with operands and what we compute in files beside them. What a random operator drew
 * is fed as an input. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "op_export.h"

#include "base/file.h"
#include "graph/clone.h"
#include "graph/import.h"
#include "onnx/encode.h"
#include "onnx/value_data.h"
#include "op_gradient.h"
#include "versions/portable.h"

#include <sys/stat.h>

static const char *folder;
static size_t n_models;

void export_to(const char *path)
{
    folder = path;
}

/* A model on its way out. */
struct outgoing {
    const struct op_case *what;
    struct cm_arena *arena;
    struct first_gradient first;
    const struct cm_datum **feeds; /* one per graph input */
    struct cm_error *err;
};

static enum cm_status write_file(struct outgoing *to, const char *name, size_t number,
                                 struct cm_str bytes)
{
    struct cm_save save;
    char path[4096];
    snprintf(path, sizeof path, name, folder, n_models, number);
    CM_TRY(cm_save_begin(&save, path, to->err));
    const enum cm_status status = cm_save_write(&save, bytes.data, bytes.size, to->err);
    if (status) {
        cm_save_abandon(&save);
        return status;
    }
    return cm_save_commit(&save, to->err);
}

static enum cm_status write_values(struct outgoing *to, const char *name,
                                   const struct cm_datum *const *values, const cm_value *numbers,
                                   size_t count)
{
    const struct cm_module *module = to->first.graph.graph->module;
    for (size_t i = 0; i < count; i++) {
        struct cm_str bytes;
        CM_TRY(cm_value_proto_store(to->arena, values[i],
                                    cm_value_get(module, numbers[i])->fact.type->kind, CM_STR_NONE,
                                    &bytes, to->err));
        CM_TRY(write_file(to, name, i, bytes));
    }
    return CM_OK;
}

static enum cm_status write_model(struct outgoing *to)
{
    const struct cm_graph *graph = to->first.graph.graph;
    struct cm_model_proto model = {.ir_version = 10};
    struct cm_str bytes;
    int64_t opset;

    cm_msg_set(&model.msg, CM_MODEL_IR_VERSION);
    cm_msg_set(&model.msg, CM_MODEL_GRAPH);
    cm_msg_set(&model.msg, CM_MODEL_OPSET_IMPORT);
    model.graph = CM_NEW(to->arena, struct cm_graph_proto);
    CM_TRY(cm_portable_opset(graph, CM_PORTABLE_OPSET, &opset, to->err));
    CM_TRY(cm_graph_export(graph, to->arena, NULL, model.graph, &model.opset_import, to->err));
    cm_portable_label(to->arena, &model.opset_import, opset);
    CM_TRY(cm_encode(&cm_model_info, &model, to->arena, &bytes, to->err));
    return write_file(to, "%s/%04zu/model.onnx", 0, bytes);
}

/* The first random node of the graph itself. */
static struct cm_node *find_random(struct cm_graph *graph)
{
    for (struct cm_node *node = graph->first; node; node = node->next)
        if (node->op && (node->op->effects & CM_RANDOM))
            return node;
    return NULL;
}

/* What bodies draw cannot come from outside, and others draw other numbers. */
static bool bodies_draw(const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        for (size_t b = 0; b < node->n_bodies; b++)
            if (cm_graph_has_effect(node->bodies[b].graph, CM_RANDOM))
                return true;
    return false;
}

/* Runs the node once and lets its results come from outside from then on. */
static enum cm_status feed_random(struct outgoing *to, struct cm_node *node)
{
    struct cm_graph *graph = to->first.graph.graph;
    struct cm_datum *got;
    const size_t n_before = graph->n_inputs, n_out = (size_t)node->n_outputs;
    cm_value *drawn = CM_NEW_ARRAY(to->arena, cm_value, n_out);
    size_t n_drawn = 0;
    for (size_t o = 0; o < n_out; o++)
        if (node->outputs[o])
            drawn[n_drawn++] = node->outputs[o];
    cm_graph_set_outputs(graph, drawn, n_drawn);
    CM_TRY(op_graph_run(&to->first.graph, false, to->arena, &got, to->err));
    const struct cm_datum **feeds =
        CM_NEW_ARRAY(to->arena, const struct cm_datum *, n_before + n_drawn);
    memcpy(feeds, to->feeds, n_before * sizeof *feeds);
    for (size_t i = 0; i < n_drawn; i++) {
        const cm_value input =
            cm_graph_add_input(graph, CM_STR_NONE, cm_type_of_tensor(to->arena, &got[i].tensor));
        cm_value_replace(graph->module, drawn[i], input);
        for (size_t g = 0; g < to->first.n_xs; g++)
            if (to->first.grads[g] == drawn[i])
                to->first.grads[g] = input;
        feeds[n_before + i] = &got[i];
    }
    cm_graph_set_outputs(graph, NULL, 0);
    cm_graph_remove_node(node);
    to->feeds = to->first.graph.feeds = feeds;
    return CM_OK;
}

static bool is_used(const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && cm_value_get(node->module, node->outputs[o])->n_uses)
            return true;
    return false;
}

/* The result itself, and what only it needed, is not asked for. */
static void prune(struct cm_graph *graph)
{
    for (struct cm_node *node = graph->last, *before; node; node = before) {
        before = node->prev;
        if (!is_used(node))
            cm_graph_remove_node(node);
    }
}

static enum cm_status write_gradient(struct outgoing *to)
{
    struct cm_graph *graph = to->first.graph.graph;
    struct cm_datum *got;
    char path[4096];

    if (bodies_draw(graph))
        return CM_OK;
    to->feeds = to->first.graph.feeds;
    for (struct cm_node *node; (node = find_random(graph));)
        CM_TRY(feed_random(to, node));
    const size_t count = first_gradient_set_outputs(&to->first, to->arena);
    if (!count)
        return CM_OK;
    CM_TRY(cm_portable_inline(graph, to->err));
    prune(graph);
    CM_TRY(op_graph_run(&to->first.graph, false, to->arena, &got, to->err));
    snprintf(path, sizeof path, "%s/%04zu", folder, ++n_models);
    if (mkdir(path, 0777))
        return cm_fail(to->err, CM_BAD_ARGUMENT, "cannot make %s", path);
    CM_TRY(write_model(to));
    CM_TRY(write_values(to, "%s/%04zu/input_%zu.pb", to->feeds, graph->inputs, graph->n_inputs));
    const struct cm_datum **results = CM_NEW_ARRAY(to->arena, const struct cm_datum *, count);
    cm_value *numbers = CM_NEW_ARRAY(to->arena, cm_value, count);
    for (size_t i = 0; i < count; i++) {
        results[i] = &got[i];
        numbers[i] = graph->outputs[i].value;
    }
    CM_TRY(write_values(to, "%s/%04zu/output_%zu.pb", results, numbers, count));
    return write_file(to, "%s/%04zu/from.txt", 0,
                      cm_arena_printf(to->arena, "%s:%d: %.*s\n", to->what->file, to->what->line,
                                      CM_STR_FMT(to->what->op_type)));
}

enum cm_status export_gradients(const struct op_case *what, struct cm_arena *arena, bool *ran,
                                struct cm_error *err)
{
    struct op_case floats; /* the one type others have kernels for throughout */
    struct op_graph graph;
    struct cm_datum *got;
    bool differentiable;
    size_t result = 0;

    if (what->refusals.count || !what->grad)
        return CM_OK;
    CM_TRY(case_in(CM_FLOAT, what, arena, &floats, err));
    CM_TRY(op_graph_build(&floats, TELL_SHAPES, arena, &graph, err));
    CM_TRY(case_is_differentiable(&graph, &differentiable, err));
    if (!differentiable)
        return CM_OK;
    CM_TRY(op_graph_run(&graph, false, arena, &got, err));
    for (size_t o = 0; o < what->outputs.count; o++) {
        struct outgoing to = {.what = what, .arena = arena, .err = err};
        struct cm_datum weights;
        if (!what->outputs.items[o].name.size)
            continue;
        const size_t asked = result++;
        if (!case_result_moves(what, o, &got[asked]))
            continue;
        CM_TRY(datum_weights(arena, &got[asked].tensor, 0, &weights, err));
        CM_TRY(first_gradient_build(&floats, TELL_SHAPES, asked, &weights, arena, &to.first, err));
        CM_TRY(write_gradient(&to));
        *ran = true;
    }
    return CM_OK;
}
