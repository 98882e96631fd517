/* Losses: the scalar that training makes small. Formulas in ONNX text, means over all elements as
 * in PyTorch; or the user's own, from a model. */
// SPDX-License-Identifier: Apache-2.0
#include "train/draft.h"

#include "graph/builder.h"
#include "graph/registry.h"

struct loss {
    const char *name;
    bool classes; /* the target holds class numbers, an axis of the prediction is over classes */
    const char *text;
};

/* clang-format off */
static const struct loss losses[] = {
    {"cross-entropy", true,
     "loss (x, y) => (loss) {"
     "  loss = SoftmaxCrossEntropyLoss <reduction = \"mean\"> (x, y)"
     "}"},
    {"nll", true,
     "loss (x, y) => (loss) {"
     "  loss = NegativeLogLikelihoodLoss <reduction = \"mean\"> (x, y)"
     "}"},
    {"mse", false,
     "loss (x, y) => (loss) {"
     "  error = Sub (x, y)"
     "  square = Mul (error, error)"
     "  loss = ReduceMean <keepdims = 0> (square)"
     "}"},
    {"l1", false,
     "loss (x, y) => (loss) {"
     "  error = Sub (x, y)"
     "  size = Abs (error)"
     "  loss = ReduceMean <keepdims = 0> (size)"
     "}"},
    {"huber", false, /* a parabola up to an error of 1, then straight on */
     "loss (x, y) => (loss) {"
     "  error = Sub (x, y)"
     "  size = Abs (error)"
     "  one_float = Constant <value_float = 1.0> ()"
     "  one = CastLike (one_float, x)"
     "  half_float = Constant <value_float = 0.5> ()"
     "  half = CastLike (half_float, x)"
     "  square = Mul (error, error)"
     "  curved = Mul (half, square)"
     "  straight = Sub (size, half)"
     "  near = Less (size, one)"
     "  each = Where (near, curved, straight)"
     "  loss = ReduceMean <keepdims = 0> (each)"
     "}"},
    /* The logarithm of 0 counts as -100 and has no slope. */
    {"bce", false,
     "loss (x, y) => (loss) {"
     "  one_float = Constant <value_float = 1.0> ()"
     "  one = CastLike (one_float, x)"
     "  zero_float = Constant <value_float = 0.0> ()"
     "  zero = CastLike (zero_float, x)"
     "  least_float = Constant <value_float = -100.0> ()"
     "  least = CastLike (least_float, x)"
     "  some = Greater (x, zero)"
     "  safe = Where (some, x, one)"
     "  log_safe = Log (safe)"
     "  log_any = Where (some, log_safe, least)"
     "  log = Max (log_any, least)"
     "  other = Sub (one, x)"
     "  other_some = Greater (other, zero)"
     "  other_safe = Where (other_some, other, one)"
     "  other_log_safe = Log (other_safe)"
     "  other_log_any = Where (other_some, other_log_safe, least)"
     "  other_log = Max (other_log_any, least)"
     "  not_y = Sub (one, y)"
     "  first = Mul (y, log)"
     "  second = Mul (not_y, other_log)"
     "  both = Add (first, second)"
     "  each = Neg (both)"
     "  loss = ReduceMean <keepdims = 0> (each)"
     "}"},
    {"bce-logits", false,
     "loss (x, y) => (loss) {"
     "  up = Softplus (x)"
     "  down = Mul (x, y)"
     "  each = Sub (up, down)"
     "  loss = ReduceMean <keepdims = 0> (each)"
     "}"},
};
/* clang-format on */

/* The share of labels that have the highest score, before the update as the loss is. */
static const char accuracy[] = "accuracy (x, y) => (accuracy) {"
                               "  best = ArgMax <axis = 1, keepdims = 0> (x)"
                               "  same = Equal (best, y)"
                               "  hits = Cast <to = 1> (same)"
                               "  accuracy = ReduceMean <keepdims = 0> (hits)"
                               "}";

static const char mean[] = "loss (x) => (loss) { loss = ReduceMean <keepdims = 0> (x) }";

static const struct loss *find_loss(const char *name)
{
    for (size_t i = 0; i < CM_COUNT(losses); i++)
        if (strcmp(losses[i].name, name) == 0)
            return &losses[i];
    return NULL;
}

static bool is_file(const char *name)
{
    return cm_str_ends(cm_str(name), ".onnx") || cm_str_ends(cm_str(name), ".onnxtxt") ||
           cm_str_ends(cm_str(name), ".onnxtext");
}

bool cm_loss_is_known(const char *name)
{
    return name && (find_loss(name) || is_file(name) || cm_str_starts(cm_str(name), "output:"));
}

bool cm_loss_is_own(const char *name)
{
    return find_loss(name) || !is_file(name);
}

/* The label input's name: the one wanted, unless the model has it, as for an output 'y' whose
 * labels are 'y' in the data. */
static struct cm_str target_name(struct cm_draft *draft)
{
    const char *wanted = draft->options->target ? draft->options->target : "target";
    struct cm_str name = cm_draft_name(draft, "%s", wanted);

    if (draft->options->target && !cm_str_is(name, wanted)) {
        name = cm_draft_name(draft, "target");
        cm_draft_note(draft, "labels are fed as '%.*s': the model has a '%s' of its own",
                      CM_STR_FMT(name), wanted);
    }
    draft->report->target_name = name;
    return name;
}

/* The target as the loss wants it: like the prediction, or that without its classes. */
static struct cm_str add_target(struct cm_draft *draft, const struct cm_type *type, int class_axis)
{
    const struct cm_str name = target_name(draft);
    const bool classes = class_axis >= 0;
    const enum cm_dtype dtype = classes ? CM_INT64 : type->dtype;

    draft->report->classifies = classes;
    struct cm_dim dims[CM_MAX_RANK];
    int rank = type->rank == CM_RANK_UNKNOWN ? CM_RANK_UNKNOWN : 0;
    for (int i = 0; i < type->rank; i++)
        if (i != class_axis)
            dims[rank++] = type->dims[i];
    cm_draft_value(draft, &draft->inputs, name, cm_type_tensor(draft->arena, dtype, rank, dims));
    return name;
}

/* ---- classes ---- */

/* The axis that is over classes, 1 as in PyTorch unless the user says another. */
static int class_axis(struct cm_draft *draft, const struct cm_type *type)
{
    const int64_t wanted = draft->options->class_axis;
    const int64_t axis = wanted < 0 && type->rank != CM_RANK_UNKNOWN ? wanted + type->rank : wanted;

    if (type->rank == CM_RANK_UNKNOWN && wanted != 1)
        cm_draft_block(draft, "class axis %lld: the rank of the prediction is not known",
                       (long long)wanted);
    else if (type->rank >= 2 && (axis < 1 || axis >= type->rank))
        cm_draft_block(draft, "class axis %lld must be from 1 to %d", (long long)wanted,
                       type->rank - 1);
    else if (type->rank != CM_RANK_UNKNOWN && type->rank < 2)
        cm_draft_block(draft,
                       "%s needs a prediction with classes in axis %lld, this one has rank %d",
                       draft->options->loss, (long long)wanted, type->rank);
    else
        return (int)axis;
    return 1;
}

/* The loss operators want classes in axis 1; the other axes keep their order, as the labels do. */
static struct cm_str classes_first(struct cm_draft *draft, struct cm_str prediction, int axis,
                                   int rank)
{
    if (axis == 1)
        return prediction;
    const size_t room = 64 + 4 * CM_MAX_RANK;
    char *text = cm_arena_alloc(draft->arena, room); /* names are borrowed from it */
    int used = snprintf(text, room, "f (x) => (y) { y = Transpose <perm = [0, %d", axis);
    for (int i = 1; i < rank; i++)
        if (i != axis)
            used += snprintf(text + used, room - (size_t)used, ", %d", i);
    snprintf(text + used, room - (size_t)used, "]> (x) }");
    const struct cm_str moved = cm_draft_name(draft, "loss.scores");
    const struct cm_draft_pair pairs[] = {{"x", prediction}, {"y", moved}};
    cm_draft_apply(draft, text, moved, pairs, CM_COUNT(pairs));
    return moved;
}

/* ---- the user's own ---- */

struct foreign {
    struct cm_draft *draft;
    struct cm_model_file *file;
    struct cm_map names; /* to struct cm_str * */
};

static struct cm_str renamed(struct foreign *f, struct cm_str name)
{
    bool added;

    if (!name.size)
        return name;
    uint64_t *slot = cm_map_insert(&f->names, f->draft->arena, name, &added);
    if (added) {
        struct cm_str *fresh = CM_NEW(f->draft->arena, struct cm_str);
        *fresh = cm_draft_name(f->draft, "loss.%.*s", CM_STR_FMT(name));
        *slot = (uint64_t)(uintptr_t)fresh;
    }
    return *(const struct cm_str *)(uintptr_t)*slot;
}

static void stands_for(struct foreign *f, struct cm_str name, struct cm_str value)
{
    struct cm_str *kept = CM_NEW(f->draft->arena, struct cm_str);
    *kept = value;
    *cm_map_insert(&f->names, f->draft->arena, name, NULL) = (uint64_t)(uintptr_t)kept;
}

static int64_t import_of(const struct cm_opsets *imports, struct cm_str domain)
{
    for (size_t i = 0; i < imports->count; i++)
        if (cm_str_equal(cm_domain_plain(imports->items[i].domain), cm_domain_plain(domain)))
            return imports->items[i].version;
    return 0;
}

/* An operator must mean the same in both files. */
static void check_operator(struct foreign *f, const struct cm_node_proto *node)
{
    struct cm_draft *draft = f->draft;
    const int64_t theirs = import_of(&f->file->model.opset_import, node->domain);
    const int64_t ours = import_of(&draft->model->opset_import, node->domain);

    if (!ours) {
        struct cm_opset_proto *import = CM_LIST_ADD(draft->arena, &draft->model->opset_import);
        import->domain = node->domain;
        import->version = theirs;
        cm_msg_set(&import->msg, CM_OPSET_DOMAIN);
        cm_msg_set(&import->msg, CM_OPSET_VERSION);
        cm_msg_set(&draft->model->msg, CM_MODEL_OPSET_IMPORT);
        return;
    }
    if (cm_schema_find(node->domain, node->op_type, ours) !=
        cm_schema_find(node->domain, node->op_type, theirs))
        cm_draft_block(draft, "loss %s: %.*s of opset %lld is another than that of opset %lld",
                       draft->options->loss, CM_STR_FMT(node->op_type), (long long)theirs,
                       (long long)ours);
    for (size_t i = 0; i < f->file->model.functions.count; i++)
        if (cm_str_equal(f->file->model.functions.items[i].name, node->op_type))
            cm_draft_block(draft, "loss %s: %.*s is a function; expand it first",
                           draft->options->loss, CM_STR_FMT(node->op_type));
    if (cm_node_subgraph(node, 0))
        cm_draft_block(draft, "loss %s: %.*s holds a graph, which a loss must not",
                       draft->options->loss, CM_STR_FMT(node->op_type));
}

static void take_nodes(struct foreign *f)
{
    struct cm_draft *draft = f->draft;
    const struct cm_graph_proto *graph = f->file->model.graph;

    for (size_t i = 0; i < graph->initializer.count; i++) {
        struct cm_tensor_proto tensor = graph->initializer.items[i];
        if (tensor.data_location == CM_LOCATION_EXTERNAL)
            cm_draft_block(draft, "loss %s: initializer '%.*s' is in another file",
                           draft->options->loss, CM_STR_FMT(tensor.name));
        tensor.name = renamed(f, tensor.name);
        cm_msg_set(&tensor.msg, CM_TENSOR_NAME);
        *CM_PUSH(draft->arena, &draft->initializers) = tensor;
    }
    for (size_t n = 0; n < graph->node.count; n++) {
        struct cm_node_proto node = graph->node.items[n];
        struct cm_strs in = {CM_NEW_ARRAY(draft->arena, struct cm_str, node.input.count),
                             node.input.count};
        struct cm_strs out = {CM_NEW_ARRAY(draft->arena, struct cm_str, node.output.count),
                              node.output.count};
        check_operator(f, &node);
        for (size_t i = 0; i < in.count; i++)
            in.items[i] = renamed(f, node.input.items[i]);
        for (size_t i = 0; i < out.count; i++)
            out.items[i] = renamed(f, node.output.items[i]);
        node.input = in;
        node.output = out;
        cm_msg_set(&node.msg, CM_NODE_INPUT);
        cm_msg_set(&node.msg, CM_NODE_OUTPUT);
        *CM_PUSH(draft->arena, &draft->nodes) = node;
    }
}

static enum cm_status foreign_loss(struct cm_draft *draft, struct cm_str prediction,
                                   struct cm_str *loss)
{
    struct foreign f = {.draft = draft};
    const char *path = draft->options->loss;

    CM_TRY(cm_error_context(draft->err,
                            cm_model_open(draft->arena, path, NULL, &f.file, draft->err), "loss"));
    const struct cm_graph_proto *graph = f.file->model.graph;
    if (!graph || graph->input.count != 2 || graph->output.count != 1)
        return cm_fail(draft->err, CM_BAD_ARGUMENT,
                       "loss %s: it must have two inputs, prediction and target, and one output",
                       path);
    const size_t target = cm_str_is(graph->input.items[0].name, "target") ? 0 : 1;
    const struct cm_value_info_proto *info = &graph->input.items[target];
    struct cm_value_info_proto *input = CM_PUSH(draft->arena, &draft->inputs);
    *input = *info;
    input->name = target_name(draft);
    cm_msg_set(&input->msg, CM_VALUE_INFO_NAME);
    stands_for(&f, graph->input.items[1 - target].name, prediction);
    stands_for(&f, info->name, input->name);
    take_nodes(&f);
    const struct cm_str result = renamed(&f, graph->output.items[0].name);
    *loss = cm_draft_name(draft, "loss");
    const struct cm_draft_pair pairs[] = {{"x", result}, {"loss", *loss}};
    cm_draft_apply(draft, mean, CM_STR("loss"), pairs, CM_COUNT(pairs));
    return CM_OK;
}

/* ---- all ---- */

/* Means in float16 overflow at 65504: losses of narrow predictions are computed in float. */
static struct cm_str widen(struct cm_draft *draft, struct cm_str prediction,
                           const struct cm_type **type)
{
    const enum cm_dtype dtype = cm_draft_wide((*type)->dtype);

    if (dtype == (*type)->dtype)
        return prediction;
    const struct cm_str wide = cm_draft_name(draft, "loss.prediction");
    struct cm_node_proto *node = cm_draft_node(draft, "", "Cast", 1, &prediction, 1, &wide);
    cm_draft_attribute(draft, node, cm_attr_int(draft->arena, "to", dtype));
    *type = cm_type_tensor(draft->arena, dtype, (*type)->rank, (*type)->dims);
    return wide;
}

static void add_accuracy(struct cm_draft *draft, struct cm_str scores, struct cm_str labels)
{
    const struct cm_str name = cm_draft_name(draft, "accuracy");
    const struct cm_draft_pair pairs[] = {{"x", scores}, {"y", labels}, {"accuracy", name}};

    cm_draft_apply(draft, accuracy, name, pairs, CM_COUNT(pairs));
    cm_draft_info(draft, &draft->outputs, name, CM_FLOAT, NULL);
}

enum cm_status cm_draft_loss(struct cm_draft *draft, const struct cm_graph *graph,
                             struct cm_str prediction, const struct cm_type *type,
                             struct cm_str *loss)
{
    const char *name = draft->options->loss;
    const struct loss *rule = find_loss(name);
    const int axis = rule && rule->classes ? class_axis(draft, type) : -1;

    if (axis < 0 && draft->options->class_axis != 1)
        cm_draft_block(draft, "%s has no classes: class_axis means nothing to it", name);
    prediction = cm_draft_bypass(draft, graph, prediction, axis);
    if (!rule && is_file(name))
        return foreign_loss(draft, prediction, loss);
    if (axis == 1 && type->rank > 2)
        cm_draft_note(draft, "axis 1 of '%.*s' is over classes; class_axis names another",
                      CM_STR_FMT(prediction));
    prediction = widen(draft, prediction, &type);
    struct cm_draft_pair pairs[] = {{"x", prediction}, {"loss", CM_STR_NONE}, {"y", CM_STR_NONE}};
    if (rule)
        pairs[2].actual = add_target(draft, type, axis);
    if (axis > 1)
        pairs[0].actual = classes_first(draft, prediction, axis, type->rank);
    *loss = pairs[1].actual = cm_draft_name(draft, "loss");
    cm_draft_apply(draft, rule ? rule->text : mean, *loss, pairs, rule ? 3 : 2);
    if (rule && rule->classes)
        add_accuracy(draft, pairs[0].actual, pairs[2].actual);
    return CM_OK;
}
