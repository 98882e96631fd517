/* The scalar that training makes small: a loss of data/training/losses/, or the user's own, from a
 * model. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "graph/function.h"
#include "graph/registry.h"
#include "train/formula.h"

static cm_value mean(struct cm_preparation *p, cm_value each)
{
    return cm_emit_with(p, "ReduceMean", CM_ATTRIBUTES(cm_attr_int(p->arena, "keepdims", 0)), each);
}

/* A label that stands for no class, as in PyTorch. */
enum { NO_CLASS = -100 };

const struct cm_loss_rule *cm_loss_rule_find(const char *name)
{
    for (const struct cm_loss_rule *rule = cm_loss_rules; name && rule->name; rule++)
        if (strcmp(rule->name, name) == 0)
            return rule;
    return NULL;
}

/* The class weights as a tensor that broadcasts with the prediction: over its classes if
 * of_scores is set, else over its last axis. */
static cm_value class_weights(struct cm_preparation *p, cm_value x, bool of_scores)
{
    const struct cm_prepare_options *o = p->options;
    const struct cm_type *type = cm_preparation_type(p, x);
    struct cm_shape shape = CM_SHAPE((int64_t)o->class_weight_count);

    for (int i = 2; of_scores && i < type->rank; i++)
        if (!cm_shape_insert(&shape, shape.rank, 1))
            break;
    const struct cm_tensor tensor = cm_tensor_borrow(
        type->dtype, &shape, CM_NEW_ARRAY(p->arena, double, o->class_weight_count));
    for (size_t i = 0; i < o->class_weight_count; i++)
        cm_tensor_set_real(&tensor, (int64_t)i, o->class_weights[i]);
    return cm_preparation_call(p, cm_build_tensor(&p->build, &tensor),
                               cm_preparation_name(p, "loss.class_weights"));
}

/* An operand of a rule's function: the prediction, the target, a number or the class weights. */
static cm_value operand(struct cm_preparation *p, const struct cm_loss_rule *rule,
                        struct cm_str name, cm_value x, cm_value y)
{
    if (cm_str_is(name, "x") || cm_str_is(name, "y"))
        return name.data[0] == 'x' ? x : y;
    if (cm_str_starts(name, "weights"))
        return class_weights(p, x, !cm_str_is(name, "weights"));
    for (const struct cm_rule_number *number = rule->numbers; number->name; number++)
        if (cm_str_is(name, number->name))
            return cm_preparation_scalar(p, number->name, cm_preparation_type(p, x)->dtype,
                                         number->value);
    for (const struct cm_rule_number *number = rule->settings; number->name; number++)
        if (cm_str_is(name, number->name))
            return cm_preparation_scalar(p, number->name, cm_preparation_type(p, x)->dtype,
                                         cm_preparation_setting(p, number->name, number->value));
    return 0;
}

/* Settings that are not 0 are conditions of the function, and so are class weights. */
static const char *const *conditions(struct cm_preparation *p, const struct cm_loss_rule *rule)
{
    const struct cm_rule_number *setting = rule->settings;
    size_t count = 0;

    while (setting[count].name)
        count++;
    const char **words = CM_NEW_ARRAY(p->arena, const char *, count + 2);
    for (count = 0; setting->name; setting++)
        if (cm_preparation_setting(p, setting->name, setting->value) != 0)
            words[count++] = setting->name;
    if (p->options->class_weight_count)
        words[count] = "weights";
    return words;
}

static cm_value apply_rule(struct cm_preparation *p, const struct cm_loss_rule *rule,
                           struct cm_str called, cm_value x, cm_value y)
{
    const struct cm_function_proto *function;
    cm_value result = 0;

    if (!p->build.status)
        p->build.status = cm_formula_read(p->arena, rule->functions, NULL, conditions(p, rule),
                                          &function, p->err);
    if (p->build.status)
        return 0;
    cm_value *actuals = CM_NEW_ARRAY(p->arena, cm_value, function->input.count);
    for (size_t i = 0; i < function->input.count; i++)
        actuals[i] = operand(p, rule, function->input.items[i], x, y);
    cm_formula_emit(p, function, called, actuals, &result);
    return result;
}

/* How many of these hold? */
static cm_value count(struct cm_preparation *p, struct cm_str name, const char *word,
                      cm_value bools)
{
    const cm_value ones =
        cm_preparation_term(p, name, word, cm_preparation_cast(p, bools, CM_FLOAT));

    return cm_emit_with(p, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(p->arena, "keepdims", 0)), ones);
}

/* The share of labels that have the highest score, before the update as the loss is. */
static cm_value accuracy(struct cm_preparation *p, struct cm_str name, cm_value x, cm_value y)
{
    const cm_value best = cm_emit_with(
        p, "ArgMax",
        CM_ATTRIBUTES(cm_attr_int(p->arena, "axis", 1), cm_attr_int(p->arena, "keepdims", 0)), x);
    const cm_value same =
        cm_term(p, name, "same", "Equal", cm_preparation_term(p, name, "best", best), y);
    const cm_value hits = count(p, name, "hits", same);
    const cm_value none = cm_preparation_scalar(p, "no_class", CM_INT64, NO_CLASS);
    const cm_value is_none = cm_term(p, name, "is_none", "Equal", y, none);
    const cm_value labels = count(p, name, "labels", cm_term(p, name, "counts", "Not", is_none));

    return cm_emit(p, "Div", cm_preparation_term(p, name, "hit_count", hits),
                   cm_preparation_term(p, name, "label_count", labels));
}

static bool is_file(const char *name)
{
    return cm_str_ends(cm_str(name), ".onnx") || cm_str_ends(cm_str(name), ".onnxtxt") ||
           cm_str_ends(cm_str(name), ".onnxtext") || cm_str_ends(cm_str(name), ".mlir");
}

bool cm_loss_is_known(const char *name)
{
    return name &&
           (cm_loss_rule_find(name) || is_file(name) || cm_str_starts(cm_str(name), "output:"));
}

/* The label input's name: the one wanted, unless the model has it, as for an output 'y' whose
 * labels are 'y' in the data. */
static struct cm_str target_name(struct cm_preparation *p)
{
    const char *wanted = p->options->target ? p->options->target : "target";
    struct cm_str name = cm_preparation_name(p, "%s", wanted);

    if (p->options->target && !cm_str_is(name, wanted)) {
        name = cm_preparation_name(p, "target");
        cm_preparation_note(p, "labels are fed as '%.*s': the model has a '%s' of its own",
                            CM_STR_FMT(name), wanted);
    }
    p->report->target_name = name;
    return name;
}

/* Rows of class numbers, as many as the prediction has samples. */
static cm_value add_sequences(struct cm_preparation *p, const struct cm_type *type)
{
    const struct cm_dim dims[] = {type->rank == 3 ? type->dims[0] : CM_DIM_ANY, CM_DIM_ANY};

    if (type->rank != CM_RANK_UNKNOWN && type->rank != 3)
        cm_preparation_block(
            p, "%s needs a prediction of rank 3 (samples, frames, classes), this one has rank %d",
            p->options->loss, type->rank);
    return cm_graph_add_input(p->build.graph, target_name(p),
                              cm_type_tensor(p->arena, CM_INT64, 2, dims));
}

/* The target as the loss wants it: like the prediction, or that without its classes. */
static cm_value add_target(struct cm_preparation *p, const struct cm_type *type, int class_axis)
{
    const bool classes = class_axis >= 0;
    const enum cm_dtype dtype = classes ? CM_INT64 : type->dtype;
    struct cm_dim dims[CM_MAX_RANK];
    int rank = type->rank == CM_RANK_UNKNOWN ? CM_RANK_UNKNOWN : 0;

    p->report->classifies = classes;
    for (int i = 0; i < type->rank; i++)
        if (i != class_axis)
            dims[rank++] = type->dims[i];
    return cm_graph_add_input(p->build.graph, target_name(p),
                              cm_type_tensor(p->arena, dtype, rank, dims));
}

/* ---- classes ---- */

/* The axis that is over classes, 1 as in PyTorch unless the user says another. */
static int class_axis(struct cm_preparation *p, const struct cm_type *type)
{
    const int64_t wanted = p->options->class_axis;
    const int64_t axis = wanted < 0 && type->rank != CM_RANK_UNKNOWN ? wanted + type->rank : wanted;

    if (type->rank == CM_RANK_UNKNOWN && wanted != 1)
        cm_preparation_block(p, "class axis %lld: the rank of the prediction is not known",
                             (long long)wanted);
    else if (type->rank >= 2 && (axis < 1 || axis >= type->rank))
        cm_preparation_block(p, "class axis %lld must be from 1 to %d", (long long)wanted,
                             type->rank - 1);
    else if (type->rank != CM_RANK_UNKNOWN && type->rank < 2)
        cm_preparation_block(
            p, "%s needs a prediction with classes in axis %lld, this one has rank %d",
            p->options->loss, (long long)wanted, type->rank);
    else
        return (int)axis;
    return 1;
}

/* The loss operators want classes in axis 1; the other axes keep their order, as the labels do. */
static cm_value classes_first(struct cm_preparation *p, cm_value prediction, int axis, int rank)
{
    int64_t perm[CM_MAX_RANK] = {0, axis};
    size_t count = 2;

    for (int i = 1; i < rank; i++)
        if (i != axis)
            perm[count++] = i;
    return cm_preparation_call(
        p,
        cm_emit_with(p, "Transpose", CM_ATTRIBUTES(cm_attr_ints(p->arena, "perm", count, perm)),
                     prediction),
        cm_preparation_name(p, "loss.scores"));
}

/* ---- the user's own ---- */

struct foreign {
    struct cm_preparation *p;
    struct cm_model_file *file;
    const struct cm_graph_proto *graph;
};

/* Its domain is imported, and the node stands alone. */
static void check_operator(struct foreign *f, const struct cm_node_proto *node)
{
    struct cm_preparation *p = f->p;

    if (!cm_opsets_version(&p->model->opset_import, node->domain)) {
        struct cm_opset_proto *import = CM_LIST_ADD(p->arena, &p->model->opset_import);
        import->domain = node->domain;
        import->version = cm_opsets_version(&f->file->model.opset_import, node->domain);
        cm_msg_set(&import->msg, CM_OPSET_DOMAIN);
        cm_msg_set(&import->msg, CM_OPSET_VERSION);
        cm_msg_set(&p->model->msg, CM_MODEL_OPSET_IMPORT);
    }
    for (size_t i = 0; i < f->file->model.functions.count; i++)
        if (cm_str_equal(f->file->model.functions.items[i].name, node->op_type))
            cm_preparation_block(p, "loss %s: %.*s is a function; expand it first",
                                 p->options->loss, CM_STR_FMT(node->op_type));
    if (cm_node_subgraph(node, 0))
        cm_preparation_block(p, "loss %s: %.*s holds a graph, which a loss must not",
                             p->options->loss, CM_STR_FMT(node->op_type));
}

static struct cm_str own_name(struct foreign *f, struct cm_str name)
{
    return cm_preparation_name(f->p, "loss.%.*s", CM_STR_FMT(name));
}

static cm_value take_initializer(struct foreign *f, const struct cm_tensor_proto *from)
{
    if (from->data_location == CM_LOCATION_EXTERNAL) {
        cm_preparation_block(f->p, "loss %s: initializer '%.*s' is in another file",
                             f->p->options->loss, CM_STR_FMT(from->name));
        return 0;
    }
    return cm_preparation_tensor(f->p, f->p->build.graph, from, own_name(f, from->name));
}

/* The results of its nodes, from `node` on, are called as in its file, behind "loss.". */
static void name_results(struct foreign *f, const struct cm_node *node)
{
    for (; node; node = node->next) {
        const struct cm_node_proto *from = node->origin ? node->origin->proto : NULL;
        const struct cm_node *first = node;

        if (from && cm_node_in_group(node, &first) && first != node)
            continue;
        for (size_t o = 0; from && o < from->output.count; o++)
            if (from->output.items[o].size)
                cm_preparation_call(f->p, cm_origin_result(node, o),
                                    own_name(f, from->output.items[o]));
    }
}

/* The graph as a function of the prediction, the target and its initializers. */
static cm_value apply_graph(struct foreign *f, const cm_value *given)
{
    struct cm_preparation *p = f->p;
    const size_t n_tensors = f->graph->initializer.count;
    struct cm_function_proto *function = CM_NEW(p->arena, struct cm_function_proto);
    cm_value *actuals = CM_NEW_ARRAY(p->arena, cm_value, 2 + n_tensors), result = 0;
    const struct cm_node *last = p->build.graph->last;
    const struct cm_node call = {.module = p->inference->module, .graph = p->build.graph};

    function->name = CM_STR("loss");
    function->opset_import = f->file->model.opset_import;
    function->node = f->graph->node;
    for (size_t i = 0; i < 2; i++) {
        *CM_LIST_ADD(p->arena, &function->input) = f->graph->input.items[i].name;
        actuals[i] = given[i];
    }
    for (size_t i = 0; i < n_tensors; i++) {
        *CM_LIST_ADD(p->arena, &function->input) = f->graph->initializer.items[i].name;
        actuals[2 + i] = take_initializer(f, &f->graph->initializer.items[i]);
    }
    *CM_LIST_ADD(p->arena, &function->output) = f->graph->output.items[0].name;
    if (cm_function_apply(&p->build, function, &call, actuals, &result))
        return 0; /* the builder remembers */
    name_results(f, last ? last->next : p->build.graph->first);
    return result;
}

static enum cm_status foreign_loss(struct cm_preparation *p, cm_value prediction)
{
    struct foreign f = {.p = p};
    const char *path = p->options->loss;
    const struct cm_load_options how = {.mlir = p->options->mlir};
    const struct cm_type *type;

    CM_TRY(cm_error_context(p->err, cm_model_open(p->arena, path, &how, &f.file, p->err), "loss"));
    f.graph = f.file->model.graph;
    if (!f.graph || f.graph->input.count != 2 || f.graph->output.count != 1)
        return cm_fail(p->err, CM_BAD_ARGUMENT,
                       "loss %s: it must have two inputs, prediction and target, and one output",
                       path);
    const size_t target = cm_str_is(f.graph->input.items[0].name, "target") ? 0 : 1;
    CM_TRY(cm_error_context(p->err,
                            cm_type_from_proto(p->arena, cm_module_symbols(p->inference->module),
                                               f.graph->input.items[target].type, &type, p->err),
                            "loss %s", path));
    cm_value given[2];
    given[target] = cm_graph_add_input(p->build.graph, target_name(p), type);
    given[1 - target] = prediction;
    for (size_t i = 0; i < f.graph->node.count; i++)
        check_operator(&f, &f.graph->node.items[i]);
    const cm_value result = apply_graph(&f, given);
    p->build.status = cm_error_context(p->err, p->build.status, "loss %s", path);
    p->loss = cm_preparation_call(p, mean(p, result), cm_preparation_name(p, "loss"));
    return CM_OK;
}

/* ---- all ---- */

enum cm_dtype cm_wide_type(enum cm_dtype dtype)
{
    return dtype == CM_FLOAT16 || dtype == CM_BFLOAT16 ? CM_FLOAT : dtype;
}

/* Means in float16 overflow at 65504: losses of narrow predictions are computed in float. */
static cm_value widen(struct cm_preparation *p, cm_value prediction, const struct cm_type **type)
{
    const enum cm_dtype wide = cm_wide_type((*type)->dtype);

    if (wide == (*type)->dtype)
        return prediction;
    *type = cm_type_tensor(p->arena, wide, (*type)->rank, (*type)->dims);
    return cm_preparation_call(p, cm_preparation_cast(p, prediction, wide),
                               cm_preparation_name(p, "loss.prediction"));
}

/* There is one weight for each class of the prediction, or for each of its columns. */
static void check_class_weights(struct cm_preparation *p, const struct cm_loss_rule *rule,
                                const struct cm_type *type)
{
    const struct cm_prepare_options *o = p->options;
    const bool by_class = rule && rule->weights == CM_WEIGHTS_CLASSES;
    const int axis = by_class ? p->class_axis : type->rank - 1;
    const size_t count = o->class_weight_count;

    if (!count || !rule || !rule->weights)
        return;
    if (type->rank == CM_RANK_UNKNOWN && by_class)
        cm_preparation_block(p, "class weights: the rank of the prediction is not known");
    else if (type->rank > 0 && axis < type->rank && cm_dim_known(type->dims[axis]) &&
             type->dims[axis].value != (int64_t)count && (by_class || count != 1))
        cm_preparation_block(p, "there are %zu class weights, the prediction has %lld classes",
                             count, (long long)type->dims[axis].value);
}

void cm_loss_choose(struct cm_preparation *p)
{
    const char *name = p->options->loss;
    const struct cm_loss_rule *rule = cm_loss_rule_find(name);
    const struct cm_type *type = cm_preparation_type(p, p->prediction);
    const bool by_sequence = rule && rule->target == CM_TARGET_SEQUENCES;

    p->class_axis = rule && rule->target == CM_TARGET_CLASSES ? class_axis(p, type) : -1;
    if (p->class_axis < 0 && p->options->class_axis != 1)
        cm_preparation_block(p, "%s does not use classes: class_axis does not apply", name);
    check_class_weights(p, rule, type);
    cm_bypass(p, rule, by_sequence ? type->rank - 1 : p->class_axis);
}

enum cm_status cm_loss(struct cm_preparation *p)
{
    const char *name = p->options->loss;
    const struct cm_loss_rule *rule = cm_loss_rule_find(name);
    const struct cm_type *type = cm_preparation_type(p, p->prediction);
    const int axis = p->class_axis;
    const cm_value from = cm_bypass_end(p, rule);

    if (!rule && is_file(name))
        return foreign_loss(p, from);
    if (axis == 1 && type->rank > 2) {
        const struct cm_str called = cm_preparation_name_of(p, from);
        cm_preparation_note(p, "axis 1 of '%.*s' is over classes; class_axis names another",
                            CM_STR_FMT(called));
    }
    cm_value x = widen(p, from, &type), y = 0;
    if (rule)
        y = rule->target == CM_TARGET_SEQUENCES ? add_sequences(p, type)
                                                : add_target(p, type, axis);
    if (axis > 1)
        x = classes_first(p, x, axis, type->rank);
    const struct cm_str called = cm_preparation_name(p, "loss");
    p->loss = cm_preparation_call(p, rule ? apply_rule(p, rule, called, x, y) : mean(p, x), called);
    if (rule && rule->target == CM_TARGET_CLASSES) {
        const struct cm_str share = cm_preparation_name(p, "accuracy");
        cm_preparation_give(p, cm_preparation_call(p, accuracy(p, share, x, y), share));
    }
    return CM_OK;
}
