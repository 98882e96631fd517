/* Which tensors are trained, and why: what the user says, what the file records, what layers do
 * with them, and where gradients go. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainables.h"

#include "autodiff/backward.h"
#include "graph/function.h"
#include "onnx/tensor_data.h"
#include "train/combine.h"

#include <math.h>

/* PyTorch's newer exporter notes the kind of an initializer beside its type. */
static const char kind_key[] = "pkg.torch.export.graph_signature.InputSpec.kind";

/* ---- patterns ---- */

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

const regex_t *cm_draft_pattern(struct cm_draft *draft, const char *option, const char *text)
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

/* ---- what there is ---- */

static struct cm_str find_entry(const struct cm_entries *entries, const char *key)
{
    for (size_t i = 0; i < entries->count; i++)
        if (cm_str_is(entries->items[i].key, key))
            return entries->items[i].value;
    return CM_STR_NONE;
}

struct records {
    struct cm_map kinds; /* names of values to enum cm_recorded */
    bool any;
};

static void record(struct records *records, struct cm_arena *arena, struct cm_str name,
                   const struct cm_entries *entries)
{
    const struct cm_str kind = find_entry(entries, kind_key);

    if (!kind.size)
        return;
    records->any = true;
    *cm_map_insert(&records->kinds, arena, name, NULL) =
        cm_str_is(kind, "PARAMETER") ? CM_RECORDED_PARAMETER : CM_RECORDED_OTHER;
}

static void read_records(struct cm_draft *draft, struct records *records)
{
    const struct cm_graph_proto *graph = draft->model->graph;

    for (size_t i = 0; i < graph->value_info.count; i++)
        record(records, draft->arena, graph->value_info.items[i].name,
               &graph->value_info.items[i].metadata_props);
    for (size_t i = 0; i < graph->input.count; i++)
        record(records, draft->arena, graph->input.items[i].name,
               &graph->input.items[i].metadata_props);
    for (size_t i = 0; i < graph->initializer.count; i++)
        record(records, draft->arena, graph->initializer.items[i].name,
               &graph->initializer.items[i].metadata_props);
}

/* What options, type and records say; how it is used is seen later. */
static void consider(struct cm_draft *draft, struct cm_trainables *list,
                     struct cm_trainable candidate)
{
    const struct cm_tensor_proto *tensor = candidate.tensor;
    const struct cm_str name = candidate.name;
    const bool is_float = cm_dtype_is_valid(tensor->data_type) &&
                          cm_dtype_info((enum cm_dtype)tensor->data_type)->kind == CM_CLASS_FLOAT;
    const bool frozen = cm_draft_matches(draft, draft->freeze, name);
    const bool named = cm_draft_matches(draft, draft->train, name);
    const char *reason = NULL;

    list->named += named;
    list->frozen += frozen;
    if (candidate.is_constant && (!is_float || (tensor->dims.count == 0 && !named)))
        return; /* a number somebody wrote down, not a weight */
    if (!is_float)
        reason = named ? "it holds integers, which have no gradient" : "it holds no floats";
    else if (draft->train && !named)
        reason = "train does not match it";
    else if (frozen)
        reason = "freeze matches it";
    else if (!named && cm_draft_is_statistic(draft, name))
        reason = "running statistics";
    else if (!named && candidate.recorded == CM_RECORDED_OTHER)
        reason = "the file calls it a buffer or constant";
    else if (!named && tensor->dims.count == 0 && !candidate.recorded)
        reason = "a scalar constant";
    candidate.named = named;
    candidate.reason = reason;
    candidate.trained = reason == NULL;
    *CM_PUSH(draft->arena, list) = candidate;
}

void cm_trainables_gather(struct cm_draft *draft, struct cm_trainables *list)
{
    const struct cm_graph_proto *graph = draft->model->graph;
    struct records records = {0};

    read_records(draft, &records);
    list->records_kinds = records.any;
    list->frozen = draft->left_frozen;
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        const uint64_t kind = cm_map_get(&records.kinds, tensor->name, CM_RECORDED_NOTHING);

        consider(draft, list,
                 (struct cm_trainable){
                     .tensor = tensor, .name = tensor->name, .recorded = (enum cm_recorded)kind});
    }
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        const struct cm_draft_source *source =
            node->output.count ? cm_draft_source(draft, node->output.items[0]) : NULL;

        if (!source || source->node != node || !source->tensor)
            continue;
        list->numbers_apart = !records.any;
        consider(draft, list,
                 (struct cm_trainable){
                     .tensor = source->tensor, .name = node->output.items[0], .is_constant = true});
    }
    if (draft->train && !list->named)
        cm_draft_block(draft, "train '%.100s' matches no initializer", draft->options->train);
    if (draft->freeze && !list->frozen)
        cm_draft_block(draft, "freeze '%.100s' matches no initializer", draft->options->freeze);
}

/* ---- the usual choice ---- */

static bool counts(const struct cm_trainable *candidate)
{
    return candidate->recorded == CM_RECORDED_PARAMETER || candidate->is_learned;
}

static bool any_learned(const struct cm_trainables *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (counts(&list->items[i]))
            return true;
    return false;
}

static void leave(struct cm_trainable *candidate, const char *reason)
{
    candidate->trained = false;
    candidate->reason = reason;
}

/* In a model without layers, what is applied to its inputs is what there is to train: of
 * initializers, else of constants. */
static void leave_unapplied(struct cm_trainables *list)
{
    bool any = false;

    for (size_t i = 0; i < list->count; i++)
        any = any ||
              (list->items[i].trained && list->items[i].is_applied && !list->items[i].is_constant);
    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (candidate->trained && (!candidate->is_applied || (any && candidate->is_constant)))
            leave(candidate, candidate->use ? candidate->use : "nothing reads it");
    }
}

/* Infinities mask; so do numbers that stand for them. */
static bool is_finite(const struct cm_draft *draft, const struct cm_trainable *candidate)
{
    const double huge = candidate->tensor->data_type == CM_FLOAT16 ? HUGE_VAL : 1e30;
    struct cm_tensor tensor;
    bool finite = true;

    if (cm_tensor_proto_load(candidate->tensor, draft->file->files, &tensor, NULL))
        return true; /* what is broken is said elsewhere */
    const int64_t count = cm_tensor_count(&tensor);
    if (tensor.type == CM_FLOAT)
        for (int64_t i = 0; i < count && finite; i++)
            finite = fabsf(((const float *)tensor.data)[i]) < (float)huge;
    else
        for (int64_t i = 0; i < count && finite; i++)
            finite = fabs(cm_tensor_real(&tensor, i)) < huge;
    cm_tensor_drop(&tensor);
    return finite;
}

static void leave_others(struct cm_trainables *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (candidate->trained && !counts(candidate))
            leave(candidate, candidate->use ? candidate->use : "nothing reads it");
    }
}

void cm_trainables_choose(struct cm_draft *draft, struct cm_trainables *list,
                          struct cm_graph *graph)
{
    if (!draft->train) {
        cm_trainables_look(draft, list, graph, false);
        if (!any_learned(list)) /* then its weights are in Constant nodes, if anywhere */
            cm_trainables_look(draft, list, graph, true);
        if (any_learned(list)) {
            leave_others(list);
        } else if (list->records_kinds) {
            leave_others(list);
        } else {
            leave_unapplied(list);
        }
    }
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].trained && !list->items[i].named && !is_finite(draft, &list->items[i]))
            leave(&list->items[i], "it holds infinities or NaN");
}

/* ---- where gradients go ---- */

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

static const char *reason_to_train(const struct cm_draft *draft,
                                   const struct cm_trainable *candidate)
{
    if (draft->train)
        return "train matches it";
    if (candidate->recorded == CM_RECORDED_PARAMETER)
        return "the file calls it a parameter";
    return candidate->is_learned ? candidate->use : "a gradient reaches it";
}

/* The values of candidates in the graph; those that it does not have are left. */
static size_t find_values(struct cm_trainables *list, const struct cm_graph *graph, cm_value *xs)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];
        const cm_value x = candidate->trained ? cm_graph_find(graph, candidate->name) : 0;

        if (x) {
            cm_value_get(graph->module, x)->is_state = true; /* bodies read it as a value now */
            xs[count++] = x;
        } else if (candidate->trained) {
            leave(candidate, "the loss does not depend on it");
        }
    }
    return count;
}

/* The forward pass with its loss, differentiated by all that might be trained: where nothing comes
 * out, there is nothing to train. */
void cm_trainables_follow(struct cm_draft *draft, struct cm_trainables *list, struct cm_str loss)
{
    struct cm_model_proto model = *draft->model;
    struct cm_combined combined;
    const struct cm_combine what = {
        .arena = draft->arena, .model = &model, .outputs = &loss, .n_outputs = 1};
    struct cm_graph *graph;
    cm_value *xs = CM_NEW_ARRAY(draft->arena, cm_value, list->count);
    cm_value *grads = CM_NEW_ARRAY(draft->arena, cm_value, list->count);

    model.training_info.items = cm_draft_finish(draft);
    model.training_info.count = 1;
    cm_combine_step(&what, &combined);
    model.graph = &combined.graph;
    if (cm_draft_import(draft, &model, &graph))
        return;
    const cm_value y = cm_graph_find(graph, loss);
    const size_t n_xs = find_values(list, graph, xs), known = draft->blockers.count;
    list_missing(draft, graph, y, xs, n_xs);
    if (draft->blockers.count > known)
        return;
    if (n_xs && cm_autodiff(graph, y, 0, xs, n_xs, grads, draft->err)) {
        cm_draft_block(draft, "%s", draft->err->text);
        return;
    }
    for (size_t i = 0, x = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (!candidate->trained)
            continue;
        if (grads[x++])
            candidate->reason = reason_to_train(draft, candidate);
        else
            leave(candidate, "no gradient reaches it");
    }
    list->followed = true;
}

/* ---- the report ---- */

static void check_type(struct cm_draft *draft, const struct cm_trainable *candidate)
{
    const enum cm_dtype dtype = (enum cm_dtype)candidate->tensor->data_type;
    struct cm_error broken = {0};

    if (cm_tensor_proto_check(candidate->tensor, &broken))
        cm_draft_block(draft, "'%.*s': %s", CM_STR_FMT(candidate->name), broken.text);
    if (dtype != CM_FLOAT && dtype != CM_DOUBLE && dtype != CM_FLOAT16)
        cm_draft_block(draft, "'%.*s' is %s, which Gradient has no form for; freeze it",
                       CM_STR_FMT(candidate->name), cm_dtype_name(dtype));
}

static void tell_of_named(struct cm_draft *draft, const struct cm_trainables *list, bool trains)
{
    for (size_t i = 0; draft->options->train && i < list->count; i++) {
        const struct cm_trainable *candidate = &list->items[i];

        if (!cm_str_starts(cm_str(candidate->reason), "it holds integers") &&
            !cm_str_is(cm_str(candidate->reason), "no gradient reaches it"))
            continue;
        if (trains) /* an expression that means the weights may match more than them */
            cm_draft_note(draft, "'%.*s' is not trained: %s", CM_STR_FMT(candidate->name),
                          candidate->reason);
        else
            cm_draft_block(draft, "'%.*s' cannot be trained: %s", CM_STR_FMT(candidate->name),
                           candidate->reason);
    }
}

void cm_trainables_report(struct cm_draft *draft, struct cm_trainables *list)
{
    size_t trained = 0;

    draft->report->choices = CM_NEW_ARRAY(draft->arena, struct cm_prepare_choice, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *candidate = &list->items[i];

        if (candidate->is_constant && !candidate->trained)
            continue;
        const char *reason =
            candidate->reason ? candidate->reason : "if nothing stood in the way of its gradient";
        draft->report->choices[draft->report->n_choices++] =
            (struct cm_prepare_choice){candidate->name, candidate->trained, cm_str(reason)};
        trained += candidate->trained;
        if (candidate->trained)
            check_type(draft, candidate);
    }
    if (!list->followed)
        return;
    if (!trained)
        cm_draft_block(draft,
                       "there is nothing to train: of %zu initializers, no gradient reaches one "
                       "that may change",
                       draft->report->n_choices);
    tell_of_named(draft, list, trained);
}
