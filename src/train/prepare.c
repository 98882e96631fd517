/* An inference model made trainable: which weights, which loss, then Gradient and an optimizer. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare.h"

#include "autodiff/backward.h"
#include "graph/function.h"
#include "graph/obstacles.h"
#include "lower/lower.h"
#include "onnx/tensor_data.h"
#include "train/combine.h"
#include "train/draft.h"
#include "train/step.h"

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

/* The value the loss reads; empty after saying why there is none. */
static struct cm_str choose_output(struct cm_draft *draft, const struct cm_graph *graph)
{
    const struct cm_prepare_options *o = draft->options;
    const struct cm_graph_proto *proto = draft->model->graph;
    struct cm_str name = cm_str(o->output);

    if (cm_str_starts(cm_str(o->loss), "output:")) {
        name = cm_str(o->loss + strlen("output:"));
        if (o->output)
            cm_draft_block(draft, "output means nothing with the loss output:NAME");
    } else if (!o->output && proto->output.count == 1) {
        name = proto->output.items[0].name;
    } else if (!o->output) {
        cm_draft_block(draft, "the model has several outputs, say which the loss reads: %s",
                       list_outputs(draft).data);
        return CM_STR_NONE;
    }
    if (!cm_graph_find(graph, name)) {
        cm_draft_block(draft, "the model has no value '%.*s'; its outputs are %s", CM_STR_FMT(name),
                       list_outputs(draft).data);
        return CM_STR_NONE;
    }
    return name;
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

/* ---- which weights ---- */

struct candidate {
    const struct cm_tensor_proto *tensor;
    struct cm_str name;
    bool is_constant; /* held in a Constant node */
    bool trained;
    const char *reason;
};

struct choice {
    struct cm_draft *draft;
    size_t named, frozen; /* names that they match */
    bool followed;        /* it is known where gradients go */
    struct {
        struct candidate *items;
        size_t count, capacity;
    } list;
};

struct pattern {
    regex_t compiled;
    bool is_compiled;
};

static void free_pattern(void *what)
{
    struct pattern *pattern = what;

    if (pattern->is_compiled)
        regfree(&pattern->compiled);
}

static const regex_t *compile_pattern(struct cm_draft *draft, const char *option, const char *text)
{
    char why[200];

    if (!text)
        return NULL;
    struct pattern *pattern = CM_NEW(draft->arena, struct pattern);
    cm_arena_defer(draft->arena, free_pattern, pattern);
    const int code = regcomp(&pattern->compiled, text, REG_EXTENDED | REG_NOSUB);
    pattern->is_compiled = code == 0;
    if (pattern->is_compiled)
        return &pattern->compiled;
    regerror(code, &pattern->compiled, why, sizeof why);
    cm_draft_block(draft, "%s '%.100s' is no regular expression: %s", option, text, why);
    return NULL;
}

bool cm_draft_matches(const struct cm_draft *draft, const regex_t *pattern, struct cm_str name)
{
    return pattern && regexec(pattern, cm_arena_str(draft->arena, name).data, 0, NULL, 0) == 0;
}

/* What options and kind say; whether a gradient reaches it is seen later. */
static void consider(struct choice *c, struct cm_str name, const struct cm_tensor_proto *tensor,
                     bool is_constant)
{
    const bool is_float = cm_dtype_is_valid(tensor->data_type) &&
                          cm_dtype_info((enum cm_dtype)tensor->data_type)->kind == CM_CLASS_FLOAT;
    const bool named = cm_draft_matches(c->draft, c->draft->train, name);
    const bool frozen = cm_draft_matches(c->draft, c->draft->freeze, name);
    const char *reason = NULL;

    c->named += named;
    c->frozen += frozen;
    if (is_constant && (!is_float || (tensor->dims.count == 0 && !named)))
        return; /* a number somebody wrote down, not a weight */
    if (!is_float)
        reason = named ? "it holds integers, which have no gradient" : "it holds no floats";
    else if (c->draft->train && !named)
        reason = "train does not match it";
    else if (frozen)
        reason = "freeze matches it";
    else if (!named && cm_draft_is_statistic(c->draft, name))
        reason = "running statistics";
    else if (!named && tensor->dims.count == 0)
        reason = "a scalar constant";
    *CM_PUSH(c->draft->arena, &c->list) =
        (struct candidate){tensor, name, is_constant, reason == NULL, reason};
}

static void gather(struct choice *c)
{
    const struct cm_graph_proto *graph = c->draft->model->graph;

    c->frozen = c->draft->left_frozen;
    for (size_t i = 0; i < graph->initializer.count; i++)
        consider(c, graph->initializer.items[i].name, &graph->initializer.items[i], false);
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        const struct cm_draft_source *source =
            node->output.count ? cm_draft_source(c->draft, node->output.items[0]) : NULL;
        if (source && source->node == node && source->tensor)
            consider(c, node->output.items[0], source->tensor, true);
    }
    if (c->draft->train && !c->named)
        cm_draft_block(c->draft, "train '%.100s' matches no initializer", c->draft->options->train);
    if (c->draft->freeze && !c->frozen)
        cm_draft_block(c->draft, "freeze '%.100s' matches no initializer",
                       c->draft->options->freeze);
}

/* Nodes on the way that nobody can differentiate, all of them. */
static void list_missing(struct cm_draft *draft, const struct cm_graph *graph, cm_value y,
                         const cm_value *xs, size_t n_xs)
{
    struct cm_node **path;
    const size_t count = cm_autodiff_path(graph->module, y, xs, n_xs, &path);

    for (size_t i = 0; i < count; i++) {
        const struct cm_node *node = path[i];
        bool floats = false;
        for (int o = 0; o < node->n_outputs; o++) {
            const struct cm_type *type =
                node->outputs[o] ? cm_value_get(graph->module, node->outputs[o])->fact.type : NULL;
            floats = floats || (type && cm_dtype_info(type->dtype)->kind == CM_CLASS_FLOAT);
        }
        if (floats && !(node->op && node->op->grad) && !cm_node_has_function(node))
            cm_draft_block(draft, "%s: no gradient is known for it", cm_node_describe(node).text);
    }
}

/* The forward pass with its loss, differentiated by all that might be trained: where nothing comes
 * out, there is nothing to train. */
static void follow_gradients(struct choice *c, struct cm_str loss)
{
    struct cm_draft *draft = c->draft;
    struct cm_model_proto model = *draft->model;
    struct cm_combined combined;
    const struct cm_combine what = {
        .arena = draft->arena, .model = &model, .outputs = &loss, .n_outputs = 1};
    struct cm_graph *graph;
    cm_value *xs = CM_NEW_ARRAY(draft->arena, cm_value, c->list.count);
    cm_value *grads = CM_NEW_ARRAY(draft->arena, cm_value, c->list.count);
    size_t n_xs = 0;

    model.training_info.items = cm_draft_finish(draft);
    model.training_info.count = 1;
    cm_combine_step(&what, &combined);
    model.graph = &combined.graph;
    if (cm_draft_import(draft, &model, &graph))
        return;
    const cm_value y = cm_graph_find(graph, loss);
    for (size_t i = 0; i < c->list.count; i++) {
        struct candidate *candidate = &c->list.items[i];
        const cm_value x = candidate->trained ? cm_graph_find(graph, candidate->name) : 0;
        if (x) {
            cm_value_get(graph->module, x)->is_state = true; /* bodies read it as a value now */
            xs[n_xs++] = x;
        } else if (candidate->trained) {
            candidate->trained = false;
            candidate->reason = "the loss does not depend on it";
        }
    }
    const size_t known = draft->blockers.count;
    list_missing(draft, graph, y, xs, n_xs);
    if (draft->blockers.count > known)
        return;
    if (n_xs && cm_autodiff(graph, y, 0, xs, n_xs, grads, draft->err)) {
        cm_draft_block(draft, "%s", draft->err->text);
        return;
    }
    for (size_t i = 0, x = 0; i < c->list.count; i++) {
        struct candidate *candidate = &c->list.items[i];
        if (!candidate->trained)
            continue;
        candidate->trained = grads[x++] != 0;
        candidate->reason = candidate->trained ? "a gradient reaches it" : "no gradient reaches it";
    }
    c->followed = true;
}

static void report_choices(struct choice *c)
{
    struct cm_draft *draft = c->draft;
    size_t trained = 0;

    draft->report->choices = CM_NEW_ARRAY(draft->arena, struct cm_prepare_choice, c->list.count);
    for (size_t i = 0; i < c->list.count; i++) {
        const struct candidate *candidate = &c->list.items[i];
        const enum cm_dtype dtype = (enum cm_dtype)candidate->tensor->data_type;

        if (candidate->is_constant && !candidate->trained)
            continue;
        const char *reason =
            candidate->reason ? candidate->reason : "if nothing stood in the way of its gradient";
        draft->report->choices[draft->report->n_choices++] =
            (struct cm_prepare_choice){candidate->name, candidate->trained, cm_str(reason)};
        trained += candidate->trained;
        struct cm_error broken = {0};
        if (candidate->trained && cm_tensor_proto_check(candidate->tensor, &broken))
            cm_draft_block(draft, "'%.*s': %s", CM_STR_FMT(candidate->name), broken.text);
        if (candidate->trained && dtype != CM_FLOAT && dtype != CM_DOUBLE && dtype != CM_FLOAT16)
            cm_draft_block(draft, "'%.*s' is %s, which Gradient has no form for; freeze it",
                           CM_STR_FMT(candidate->name), cm_dtype_name(dtype));
    }
    if (!c->followed)
        return;
    if (!trained)
        cm_draft_block(draft,
                       "there is nothing to train: of %zu initializers, no gradient reaches one "
                       "that may change",
                       draft->report->n_choices);
    for (size_t i = 0; draft->options->train && i < c->list.count; i++) {
        const struct candidate *candidate = &c->list.items[i];

        if (!cm_str_starts(cm_str(candidate->reason), "it holds integers") &&
            !cm_str_is(cm_str(candidate->reason), "no gradient reaches it"))
            continue;
        if (trained) /* an expression that means the weights may match more than them */
            cm_draft_note(draft, "'%.*s' is not trained: %s", CM_STR_FMT(candidate->name),
                          candidate->reason);
        else
            cm_draft_block(draft, "'%.*s' cannot be trained: %s", CM_STR_FMT(candidate->name),
                           candidate->reason);
    }
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

static void write_updates(struct choice *c, struct cm_str loss)
{
    struct cm_draft *draft = c->draft;
    struct cm_map trained = {0};
    struct cm_draft_weight *weights =
        CM_NEW_ARRAY(draft->arena, struct cm_draft_weight, c->list.count);
    size_t count = 0;

    for (size_t i = 0; i < c->list.count; i++) {
        if (!c->list.items[i].trained)
            continue;
        weights[count++] = (struct cm_draft_weight){.name = c->list.items[i].name,
                                                    .tensor = c->list.items[i].tensor};
        cm_map_insert(&trained, draft->arena, c->list.items[i].name, NULL);
    }
    cm_draft_lift_constants(draft, &trained);
    add_gradient(draft, loss, weights, count, &trained);
    cm_draft_update(draft, weights, count);
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
    struct choice choice = {.draft = draft};
    struct cm_graph *graph;
    struct cm_str loss;

    cm_draft_update_check(draft);
    draft->train = compile_pattern(draft, "train", draft->options->train);
    draft->freeze = compile_pattern(draft, "freeze", draft->options->freeze);
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
    CM_TRY(cm_draft_import(draft, draft->model, &graph));
    draft->symbols = cm_module_symbols(graph->module);
    const struct cm_str prediction = choose_output(draft, graph);
    const struct cm_type *type =
        prediction.data ? check_prediction(draft, graph, prediction) : NULL;
    if (!type)
        return cm_draft_verdict(draft);
    CM_TRY(cm_draft_loss(draft, prediction, type, &loss));
    draft->report->loss_name = loss;
    gather(&choice);
    follow_gradients(&choice, loss);
    report_choices(&choice);
    CM_TRY(cm_draft_verdict(draft));
    /* The loss is the first output, whatever was bound before it. */
    const struct cm_draft_infos bound = draft->outputs;
    draft->outputs = (struct cm_draft_infos){0};
    cm_draft_info(draft, &draft->outputs, loss, type->dtype, NULL);
    for (size_t i = 0; i < bound.count; i++)
        *CM_PUSH(draft->arena, &draft->outputs) = bound.items[i];
    write_updates(&choice, loss);
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
