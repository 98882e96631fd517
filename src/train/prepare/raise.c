/* Bringing a model to where it can hold training info: opset and IR version, and the inference
 * graph as it is by then. Where the opset is too old or calls were expanded, the whole working
 * graph is written, each node as it was where that means the same; names and weights stay. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/registry.h"
#include "models/write_model.h"
#include "versions/portable.h"

enum { OPSET_LEAST = 17, IR_LEAST = 7 };

/* Of ai.onnx. */
static int64_t opset_of(const struct cm_model_proto *model)
{
    const struct cm_opset_proto *import = cm_opsets_find(&model->opset_import, CM_STR_NONE);

    return import ? import->version : 1;
}

void cm_raise_check(struct cm_preparation *p)
{
    const int64_t opset = opset_of(p->model), ir = p->model->ir_version;

    p->is_old = opset < OPSET_LEAST;
    if (!p->options->keep_opset)
        return;
    if (p->is_old)
        cm_preparation_block(p, "the model imports opset %lld, training needs at least %d",
                             (long long)opset, OPSET_LEAST);
    if (ir < IR_LEAST)
        cm_preparation_block(p, "the model has IR version %lld, training info needs at least %d",
                             (long long)ir, IR_LEAST);
}

/* ---- the whole graph ---- */

/* The outputs that the file lists. */
static void set_outputs(struct cm_preparation *p)
{
    const struct cm_value_infos *listed = &p->model->graph->output;
    cm_value *outputs = CM_NEW_ARRAY(p->arena, cm_value, listed->count);

    for (size_t i = 0; i < listed->count; i++)
        outputs[i] = cm_graph_find(p->inference, listed->items[i].name);
    cm_graph_set_outputs(p->inference, outputs, listed->count);
}

/* The versions that the graph was written under; what else the model imports stays. */
static void take_imports(struct cm_preparation *p, const struct cm_opsets *written)
{
    struct cm_opsets *imports = &p->model->opset_import;

    for (size_t i = 0; i < written->count; i++) {
        struct cm_opset_proto *import = cm_opsets_find(imports, written->items[i].domain);

        if (!import)
            *CM_LIST_ADD(p->arena, imports) = written->items[i];
        else if (import->version != written->items[i].version)
            *import = written->items[i];
    }
    cm_msg_set(&p->model->msg, CM_MODEL_OPSET_IMPORT);
}

static enum cm_status rewrite_graph(struct cm_preparation *p)
{
    const struct cm_write_options options = {.untouched = true};
    struct cm_model_proto *model = p->model;
    const struct cm_value_infos inputs = model->graph->input;
    const int64_t opset = opset_of(model);
    struct cm_model_file *written;
    struct cm_write_report report;

    set_outputs(p);
    CM_TRY(cm_write_model(p->inference, p->file, &options, p->arena, &written, &report, p->err));
    model->graph = written->model.graph;
    model->graph->input = inputs; /* with defaults, which the working graph fixed */
    cm_msg_set(&model->msg, CM_MODEL_GRAPH);
    take_imports(p, &written->model.opset_import);
    if (p->expanded || report.functions) {
        model->functions = written->model.functions;
        cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    }
    if (opset_of(model) != opset)
        cm_preparation_note(p, "opset raised from %lld to %lld", (long long)opset,
                            (long long)opset_of(model));
    return CM_OK;
}

/* ---- versions ---- */

/* Before IR version 4 every initializer was an input as well; now that would make it a default. */
static void drop_covered_inputs(struct cm_preparation *p)
{
    struct cm_graph_proto *graph = p->model->graph;
    struct cm_map initializers = {0};
    size_t kept = 0;

    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&initializers, p->arena, graph->initializer.items[i].name, NULL);
    struct cm_value_info_proto *inputs =
        CM_NEW_ARRAY(p->arena, struct cm_value_info_proto, graph->input.count);
    for (size_t i = 0; i < graph->input.count; i++)
        if (!cm_map_find(&initializers, graph->input.items[i].name))
            inputs[kept++] = graph->input.items[i];
    const size_t fewer = graph->input.count - kept;
    if (!fewer)
        return;
    graph->input = (struct cm_value_infos){inputs, kept};
    cm_msg_set(&graph->msg, CM_GRAPH_INPUT);
    cm_preparation_note(p, "%zu initializer%s no longer listed as input too", fewer,
                        fewer == 1 ? " is" : "s are");
}

static void raise_ir(struct cm_preparation *p, int64_t old)
{
    struct cm_model_proto *model = p->model;
    const int64_t needed = cm_preparation_rewrites(p) ? cm_ir_of_opset(opset_of(model)) : IR_LEAST;

    if (model->ir_version < needed) {
        model->ir_version = needed;
        cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    }
    if (model->ir_version != old)
        cm_preparation_note(p, "IR version raised from %lld to %lld", (long long)old,
                            (long long)model->ir_version);
    if (old < 4)
        drop_covered_inputs(p);
}

enum cm_status cm_raise(struct cm_preparation *p)
{
    const int64_t ir = p->model->ir_version;

    if (cm_preparation_rewrites(p))
        CM_TRY(rewrite_graph(p));
    raise_ir(p, ir);
    return CM_OK;
}
