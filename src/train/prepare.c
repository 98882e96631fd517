/* An inference model made trainable: which weights, which loss, then Gradient and an optimizer. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare.h"

#include "graph/function.h"
#include "graph/obstacles.h"
#include "lower/lower.h"
#include "onnx/tensor_data.h"
#include "train/combine.h"
#include "train/draft.h"
#include "train/step.h"
#include "train/trainables.h"

static const char training_domain[] = "ai.onnx.preview.training";

/* ---- the working copy ---- */

enum cm_status cm_draft_import(struct cm_draft *draft, const struct cm_model_proto *model,
                               struct cm_graph **graph)
{
    const size_t known = draft->blockers.count;
    const struct cm_module_options options = {.files = draft->file->files};
    struct cm_obstacles obstacles = {.arena = draft->arena};
    const struct cm_lower_options lower = {.obstacles = &obstacles};
    const enum cm_status status =
        cm_lower_import(cm_module_new(draft->arena, &options), model, &lower, graph, draft->err);

    if (status == CM_OK)
        return CM_OK;
    for (size_t i = 0; i < obstacles.count; i++)
        cm_draft_block(draft, "%s%s%s", obstacles.items[i].place.data,
                       obstacles.items[i].place.size ? ": " : "", obstacles.items[i].reason.data);
    if (!obstacles.count)
        cm_draft_block(draft, "%s", draft->err->text);
    return known ? cm_draft_verdict(draft) : status;
}

/* ---- which output ---- */

static struct cm_str list_outputs(struct cm_draft *draft)
{
    const struct cm_graph_proto *graph = draft->model->graph;
    struct cm_str list = CM_STR("");

    for (size_t i = 0; i < graph->output.count; i++)
        list = cm_arena_printf(draft->arena, "%s%s'%.*s'", list.data, i ? ", " : "",
                               CM_STR_FMT(graph->output.items[i].name));
    return list;
}

/* May a loss read it? Labels and maps of probabilities may not; of what the file does not say the
 * type of, nobody knows yet. */
static bool may_be_read(const struct cm_value_info_proto *output)
{
    const struct cm_type_proto *type = output->type;

    if (!type || !(type->tensor_type || type->sequence_type || type->map_type ||
                   type->optional_type || type->sparse_tensor_type))
        return true;
    if (!type->tensor_type)
        return false;
    const int32_t dtype = type->tensor_type->elem_type;
    return !cm_dtype_is_valid(dtype) || cm_dtype_info((enum cm_dtype)dtype)->kind == CM_CLASS_FLOAT;
}

/* The one output that a loss may read; empty when there are several, or none. */
static struct cm_str only_output(struct cm_draft *draft)
{
    const struct cm_graph_proto *graph = draft->model->graph;
    struct cm_str found = CM_STR_NONE;

    if (graph->output.count == 1)
        return graph->output.items[0].name;
    for (size_t i = 0; i < graph->output.count; i++) {
        if (!may_be_read(&graph->output.items[i]))
            continue;
        if (found.data)
            return CM_STR_NONE;
        found = graph->output.items[i].name;
    }
    return found;
}

/* The value the loss reads; empty after saying why there is none. */
static struct cm_str choose_output(struct cm_draft *draft)
{
    const struct cm_prepare_options *o = draft->options;
    struct cm_str name = cm_str(o->output);

    if (cm_str_starts(cm_str(o->loss), "output:")) {
        name = cm_str(o->loss + strlen("output:"));
        if (o->output)
            cm_draft_block(draft, "output means nothing with the loss output:NAME");
    } else if (!o->output) {
        name = only_output(draft);
        if (!name.data) {
            cm_draft_block(draft, "the model has several outputs, say which the loss reads: %s",
                           list_outputs(draft).data);
            return CM_STR_NONE;
        }
    }
    if (!cm_draft_source(draft, name)) {
        cm_draft_block(draft, "the model has no value '%.*s'; its outputs are %s", CM_STR_FMT(name),
                       list_outputs(draft).data);
        return CM_STR_NONE;
    }
    return name;
}

/* What the prediction is computed from, as a working copy: the rest need not even be known. */
static enum cm_status import_needed(struct cm_draft *draft, struct cm_str prediction,
                                    struct cm_graph **graph)
{
    struct cm_model_proto model = *draft->model;
    struct cm_combined combined;
    const struct cm_combine what = {
        .arena = draft->arena, .model = draft->model, .outputs = &prediction, .n_outputs = 1};

    cm_combine_inference(&what, &combined);
    model.graph = &combined.graph;
    return cm_draft_import(draft, &model, graph);
}

static const struct cm_type *check_prediction(struct cm_draft *draft, const struct cm_graph *graph,
                                              struct cm_str name)
{
    const struct cm_type *type = cm_value_get(graph->module, cm_graph_find(graph, name))->fact.type;

    if (type->kind == CM_KIND_TENSOR && cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT)
        return type;
    cm_draft_block(draft, "'%.*s' is %s: a loss needs a tensor of floats", CM_STR_FMT(name),
                   cm_type_print(draft->arena, cm_module_symbols(graph->module), type).data);
    return NULL;
}

/* ---- gradients ---- */

static struct cm_attribute_proto name_list(struct cm_arena *arena, const char *name,
                                           const struct cm_str *items, size_t count)
{
    struct cm_attribute_proto attribute = {.name = cm_arena_str(arena, cm_str(name)),
                                           .type = CM_ATTR_STRINGS};
    attribute.strings.items = CM_NEW_ARRAY(arena, struct cm_str, count);
    attribute.strings.count = count;
    for (size_t i = 0; i < count; i++)
        attribute.strings.items[i] = items[i];
    cm_msg_set(&attribute.msg, CM_ATTRIBUTE_NAME);
    cm_msg_set(&attribute.msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&attribute.msg, CM_ATTRIBUTE_STRINGS);
    return attribute;
}

/* Everything else that the loss is computed from. */
static size_t other_leaves(struct cm_draft *draft, struct cm_str loss, const struct cm_map *trained,
                           struct cm_str **out)
{
    struct cm_model_proto model = *draft->model;
    struct cm_combined combined;
    const struct cm_combine what = {
        .arena = draft->arena, .model = &model, .outputs = &loss, .n_outputs = 1};
    size_t count = 0;

    model.training_info.items = cm_draft_finish(draft);
    model.training_info.count = 1;
    cm_combine_step(&what, &combined);
    const struct cm_graph_proto *graph = &combined.graph;
    *out = CM_NEW_ARRAY(draft->arena, struct cm_str, graph->input.count + graph->initializer.count);
    for (size_t i = 0; i < graph->input.count; i++)
        (*out)[count++] = graph->input.items[i].name;
    for (size_t i = 0; i < graph->initializer.count; i++)
        if (!cm_map_find(trained, graph->initializer.items[i].name))
            (*out)[count++] = graph->initializer.items[i].name;
    return count;
}

static void import_training_domain(struct cm_draft *draft)
{
    struct cm_model_proto *model = draft->model;

    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_is(model->opset_import.items[i].domain, training_domain))
            return;
    struct cm_opset_proto *import = CM_LIST_ADD(draft->arena, &model->opset_import);
    import->domain = cm_arena_str(draft->arena, cm_str(training_domain));
    import->version = 1;
    cm_msg_set(&import->msg, CM_OPSET_DOMAIN);
    cm_msg_set(&import->msg, CM_OPSET_VERSION);
    cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
}

static void add_gradient(struct cm_draft *draft, struct cm_str loss,
                         struct cm_draft_weight *weights, size_t count,
                         const struct cm_map *trained)
{
    struct cm_str *others;
    const size_t n_others = other_leaves(draft, loss, trained, &others);
    struct cm_str *inputs = CM_NEW_ARRAY(draft->arena, struct cm_str, count + n_others);
    struct cm_str *outputs = CM_NEW_ARRAY(draft->arena, struct cm_str, count);

    for (size_t i = 0; i < count; i++) {
        inputs[i] = weights[i].name;
        outputs[i] = cm_draft_name(draft, "%.*s.gradient", CM_STR_FMT(weights[i].name));
        weights[i].gradient = outputs[i];
    }
    for (size_t i = 0; i < n_others; i++)
        inputs[count + i] = others[i];
    struct cm_node_proto *node =
        cm_draft_node(draft, training_domain, "Gradient", count + n_others, inputs, count, outputs);
    cm_draft_attribute(draft, node, name_list(draft->arena, "xs", inputs, count));
    if (n_others)
        cm_draft_attribute(draft, node, name_list(draft->arena, "zs", others, n_others));
    cm_draft_attribute(draft, node, cm_attr_str(draft->arena, "y", loss));
    import_training_domain(draft);
}

/* ---- all ---- */

static void write_updates(struct cm_draft *draft, const struct cm_trainables *list,
                          struct cm_str loss)
{
    struct cm_map trained = {0};
    struct cm_draft_weight *weights =
        CM_NEW_ARRAY(draft->arena, struct cm_draft_weight, list->count);
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (!list->items[i].trained)
            continue;
        weights[count++] =
            (struct cm_draft_weight){.name = list->items[i].name, .tensor = list->items[i].tensor};
        cm_map_insert(&trained, draft->arena, list->items[i].name, NULL);
    }
    cm_draft_lift_constants(draft, &trained);
    add_gradient(draft, loss, weights, count, &trained);
    cm_draft_update(draft, weights, count);
}

/* Losses of ours are at least float; one from a file is as its operators have it. */
static enum cm_dtype loss_type(const struct cm_draft *draft, const struct cm_type *prediction)
{
    return cm_loss_is_own(draft->options->loss) ? cm_draft_wide(prediction->dtype)
                                                : prediction->dtype;
}

/* What was written must run: all of it is built once. */
static enum cm_status verify(struct cm_draft *draft)
{
    const struct cm_module_options options = {.files = draft->file->files};
    struct cm_combine_variable *variables;
    struct cm_step_graph step;
    size_t count;

    CM_TRY(cm_state_variables(draft->arena, draft->model, &variables, &count, draft->err));
    return cm_step_graph(draft->arena, cm_module_new(draft->arena, &options), draft->model, 0,
                         variables, count, &step, draft->err);
}

static enum cm_status prepare(struct cm_draft *draft)
{
    struct cm_trainables candidates = {0};
    struct cm_graph *graph;
    struct cm_str loss;

    cm_draft_update_check(draft);
    draft->train = cm_draft_pattern(draft, "train", draft->options->train);
    draft->freeze = cm_draft_pattern(draft, "freeze", draft->options->freeze);
    if (!cm_loss_is_known(draft->options->loss)) {
        cm_draft_block(draft,
                       "there is no loss '%.60s'; there are cross-entropy, nll, mse, l1, huber, "
                       "bce, bce-logits, a model file, and output:NAME",
                       draft->options->loss ? draft->options->loss : "");
        draft->is_misused = true;
        return cm_draft_verdict(draft);
    }
    draft->is_misused = draft->blockers.count > 0; /* nothing has looked at the model yet */
    cm_draft_lift_functions(draft);
    CM_TRY(cm_draft_raise(draft));
    cm_draft_lift_bodies(draft);
    cm_draft_init(draft);
    cm_draft_untie(draft);
    const struct cm_str prediction = choose_output(draft);
    if (!prediction.data)
        return cm_draft_verdict(draft);
    CM_TRY(import_needed(draft, prediction, &graph));
    draft->symbols = cm_module_symbols(graph->module);
    const struct cm_type *type = check_prediction(draft, graph, prediction);
    if (!type)
        return cm_draft_verdict(draft);
    CM_TRY(cm_draft_loss(draft, graph, prediction, type, &loss));
    draft->report->loss_name = loss;
    cm_trainables_gather(draft, &candidates);
    cm_trainables_choose(draft, &candidates, graph);
    cm_trainables_follow(draft, &candidates, loss);
    cm_draft_settle(draft, &candidates);
    cm_trainables_report(draft, &candidates);
    CM_TRY(cm_draft_verdict(draft));
    /* The loss is the first output, whatever was bound before it. */
    const struct cm_draft_infos bound = draft->outputs;
    draft->outputs = (struct cm_draft_infos){0};
    cm_draft_info(draft, &draft->outputs, loss, loss_type(draft, type), NULL);
    for (size_t i = 0; i < bound.count; i++)
        *CM_PUSH(draft->arena, &draft->outputs) = bound.items[i];
    write_updates(draft, &candidates, loss);
    CM_TRY(cm_draft_verdict(draft));
    draft->model->training_info.items = cm_draft_finish(draft);
    draft->model->training_info.count = 1;
    cm_msg_set(&draft->model->msg, CM_MODEL_TRAINING_INFO);
    return verify(draft);
}

enum cm_status cm_prepare(struct cm_arena *arena, struct cm_model_file *file,
                          const struct cm_prepare_options *options,
                          struct cm_prepare_report *report, struct cm_error *err)
{
    struct cm_draft draft = {.arena = arena,
                             .file = file,
                             .model = &file->model,
                             .options = options,
                             .report = report,
                             .err = err};

    *report = (struct cm_prepare_report){0};
    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    if (file->model.training_info.count)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the model carries its training already; strip it first");
    const enum cm_status status = prepare(&draft);
    report->changes = draft.changes.items;
    report->n_changes = draft.changes.count;
    report->blockers = draft.blockers.items;
    report->n_blockers = draft.blockers.count;
    return status;
}

/* ---- and back ---- */

static bool uses_domain(const struct cm_nodes *nodes, const char *domain, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < 64; i++) {
        const struct cm_graph_proto *body;
        if (cm_str_is(nodes->items[i].domain, domain))
            return true;
        for (size_t b = 0; (body = cm_node_subgraph(&nodes->items[i], b)); b++)
            if (uses_domain(&body->node, domain, depth + 1))
                return true;
    }
    return false;
}

void cm_strip(struct cm_model_file *file)
{
    struct cm_model_proto *model = &file->model;
    struct cm_opsets *imports = &model->opset_import;
    size_t kept = 0;

    model->training_info.items = NULL;
    model->training_info.count = 0;
    cm_msg_clear(&model->msg, CM_MODEL_TRAINING_INFO);
    bool used = model->graph && uses_domain(&model->graph->node, training_domain, 0);
    for (size_t i = 0; i < model->functions.count; i++)
        used = used || uses_domain(&model->functions.items[i].node, training_domain, 0);
    for (size_t i = 0; i < imports->count; i++)
        if (used || !cm_str_is(imports->items[i].domain, training_domain))
            imports->items[kept++] = imports->items[i];
    if (kept == imports->count)
        return;
    imports->count = kept;
    cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
}
