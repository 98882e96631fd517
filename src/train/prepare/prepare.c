/* An inference model made trainable: which weights, which loss, then Gradient and an optimizer. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/prepare.h"

#include "graph/called_functions.h"
#include "train/prepare/preparation.h"
#include "train/prepare/trainables.h"
#include "training_names.h"

/* ---- which output ---- */

static struct cm_str list_outputs(struct cm_preparation *p)
{
    const struct cm_graph_proto *graph = p->model->graph;
    struct cm_str list = CM_STR("");

    for (size_t i = 0; i < graph->output.count; i++)
        list = cm_arena_printf(p->arena, "%s%s'%.*s'", cm_str_text(list), i ? ", " : "",
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
    return !cm_dtype_is_valid(dtype) || cm_dtype_is_float(dtype);
}

/* The one output that a loss may read; empty when there are several, or none. */
static struct cm_str only_output(struct cm_preparation *p)
{
    const struct cm_graph_proto *graph = p->model->graph;
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
static struct cm_str choose_output(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    struct cm_str name = cm_str(o->output);

    if (cm_str_starts(cm_str(o->loss), "output:")) {
        name = cm_str(o->loss + strlen("output:"));
        if (o->output)
            cm_preparation_block(p, "'output' does not apply to the loss output:NAME");
    } else if (!o->output) {
        name = only_output(p);
        if (!name.data) {
            cm_preparation_block(p, "the model has several outputs, say which the loss reads: %s",
                                 list_outputs(p).data);
            return CM_STR_NONE;
        }
    }
    if (!cm_map_find(&p->taken, name)) {
        cm_preparation_block(p, "the model has no value '%.*s'; its outputs are %s",
                             CM_STR_FMT(name), list_outputs(p).data);
        return CM_STR_NONE;
    }
    return name;
}

static bool check_prediction(struct cm_preparation *p, cm_value prediction)
{
    const struct cm_type *type = cm_preparation_type(p, prediction);
    const struct cm_str name = cm_preparation_name_of(p, prediction);

    if (type->kind == CM_KIND_TENSOR && cm_dtype_is_float(type->dtype))
        return true;
    cm_preparation_block(
        p, "'%.*s' is %s: a loss needs a tensor of floats", CM_STR_FMT(name),
        cm_type_print(p->arena, cm_module_symbols(p->inference->module), type).data);
    return false;
}

/* ---- gradients ---- */

/* Everything else that the loss is computed from, behind xs: what is fed, then initializers. */
static size_t add_leaves(struct cm_preparation *p, cm_value loss, cm_value *xs, size_t count)
{
    const struct cm_graph *graphs[] = {p->inference, p->build.graph};
    struct cm_module *module = p->inference->module;
    const bool *needed = cm_preparation_needed(p, loss);
    bool *trained = CM_NEW_ARRAY(p->arena, bool, cm_module_value_count(module));

    for (size_t i = 0; i < count; i++)
        trained[xs[i]] = true;
    for (size_t g = 0; g < CM_COUNT(graphs); g++)
        for (size_t i = 0; i < graphs[g]->n_inputs; i++)
            if (needed[graphs[g]->inputs[i]])
                xs[count++] = graphs[g]->inputs[i];
    for (size_t g = 0; g < CM_COUNT(graphs); g++)
        for (cm_value value = 1; value < cm_module_value_count(module); value++) {
            const struct cm_value_def *def = cm_value_get(module, value);

            if (needed[value] && !trained[value] && def->graph == graphs[g] &&
                def->role == CM_ROLE_INITIALIZER && def->name.size) /* others: an upgrade's */
                xs[count++] = value;
        }
    return count;
}

static struct cm_attribute_proto name_list(struct cm_preparation *p, const char *name,
                                           const cm_value *values, size_t count)
{
    struct cm_str *names = CM_NEW_ARRAY(p->arena, struct cm_str, count);

    for (size_t i = 0; i < count; i++)
        names[i] = cm_preparation_name_of(p, values[i]);
    return cm_attr_strs(p->arena, name, count, names);
}

/* The operands of a Gradient node in a graph are what the file lists and, behind that, what its
 * attributes name: y, then xs, then zs. */
static void add_gradient(struct cm_preparation *p)
{
    struct cm_trained_weight *weights = p->weights;
    const cm_value loss = p->loss;
    const size_t count = p->n_weights;
    const size_t room = cm_module_value_count(p->inference->module);
    cm_value *inputs = CM_NEW_ARRAY(p->arena, cm_value, 2 * room + 1);
    cm_value *gradients = CM_NEW_ARRAY(p->arena, cm_value, count);

    for (size_t i = 0; i < count; i++)
        inputs[i] = weights[i].value;
    const size_t all = add_leaves(p, loss, inputs, count);
    inputs[all] = loss;
    memcpy(inputs + all + 1, inputs, all * sizeof *inputs);
    const struct cm_attribute_proto xs = name_list(p, "xs", inputs, count);
    const struct cm_attribute_proto zs = name_list(p, "zs", inputs + count, all - count);
    const struct cm_attribute_proto y = cm_attr_str(p->arena, "y", cm_preparation_name_of(p, loss));
    const struct cm_attribute_proto attributes[] = {xs, all > count ? zs : y, y};
    cm_build(&p->build, &(struct cm_emission){.op = "ai.onnx.preview.training::Gradient",
                                              .inputs = inputs,
                                              .n_inputs = 2 * all + 1,
                                              .attributes = attributes,
                                              .n_attributes = all > count ? 3 : 2,
                                              .n_outputs = count,
                                              .outputs = gradients});
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = cm_preparation_name_of(p, weights[i].value);
        weights[i].gradient = cm_preparation_term(p, name, "gradient", gradients[i]);
    }
}

/* ---- the passes ---- */

static void check_class_weights(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const struct cm_loss_rule *rule = cm_loss_rule_find(o->loss);
    bool any = !o->class_weight_count;

    if (o->class_weight_count && !(rule && rule->weights))
        cm_preparation_block(p, "class weights do not apply to the loss %.60s", o->loss);
    for (size_t i = 0; i < o->class_weight_count; i++) {
        if (!(o->class_weights[i] >= 0 && o->class_weights[i] < INFINITY))
            cm_preparation_block(p, "class weight %zu is %g, must be at least 0", i,
                                 o->class_weights[i]);
        any = any || o->class_weights[i] != 0;
    }
    if (!any)
        cm_preparation_block(p, "all class weights are 0");
}

static enum cm_status check_settings(struct cm_preparation *p)
{
    cm_update_check(p);
    p->train = cm_preparation_pattern(p, "train", p->options->train);
    p->freeze = cm_preparation_pattern(p, "freeze", p->options->freeze);
    if (!cm_loss_is_known(p->options->loss)) {
        cm_preparation_block(p,
                             "there is no loss '%.60s'; there are " CAMEO_LOSS_NAMES
                             ", a model file, and output:NAME",
                             p->options->loss ? p->options->loss : "");
        return cm_preparation_verdict(p);
    }
    check_class_weights(p);
    p->is_misused = false; /* nothing has looked at the model yet */
    return CM_OK;
}

/* The inference graph is for inference; the training has its own copies of what differs. */
static enum cm_status turn_off_modes(struct cm_preparation *p)
{
    struct cm_modes modes;

    cm_modes_turn_off(p->arena, p->file, &modes);
    for (size_t i = 0; i < modes.changes.count; i++)
        cm_preparation_note(p, "%s", cm_str_text(modes.changes.items[i]));
    return CM_OK;
}

static enum cm_status find_output(struct cm_preparation *p)
{
    cm_raise_check(p);
    cm_preparation_take_names(p);
    p->originals = cm_originals_read(p->arena, p->model->graph);
    p->output = choose_output(p);
    return p->output.data ? CM_OK : cm_preparation_verdict(p);
}

static enum cm_status import(struct cm_preparation *p)
{
    CM_TRY(cm_preparation_import(p));
    return cm_preparation_require(p, p->output);
}

static enum cm_status lift_functions(struct cm_preparation *p)
{
    CM_TRY(cm_lift_functions(p));
    if (cm_preparation_rewrites(p))
        CM_TRY(cm_preparation_require_all(p));
    const cm_value prediction = cm_graph_find(p->inference, p->output);
    if (!check_prediction(p, prediction))
        return cm_preparation_verdict(p);
    cm_graph_set_outputs(p->inference, &prediction, 1); /* what follows may put another there */
    return CM_OK;
}

static enum cm_status choose(struct cm_preparation *p)
{
    p->prediction = p->inference->outputs[0].value;
    p->predicts = cm_preparation_needed(p, p->prediction);
    p->candidates = CM_NEW(p->arena, struct cm_trainables);
    cm_trainables_gather(p, p->candidates);
    cm_trainables_leave_quantized(p, p->candidates);
    cm_trainables_choose(p, p->candidates);
    return CM_OK;
}

static enum cm_status bypass(struct cm_preparation *p)
{
    p->blocked_before_loss = p->report->findings.violations;
    cm_preparation_begin(p);
    cm_loss_choose(p);
    return CM_OK;
}

/* The algorithm up to the loss. */
static enum cm_status add_loss(struct cm_preparation *p)
{
    CM_TRY(cm_loss(p));
    p->report->loss_name = cm_preparation_name_of(p, p->loss);
    if (p->build.status && p->report->findings.violations == p->blocked_before_loss)
        cm_preparation_block(p, "%s", p->err->text);
    if (p->build.status)
        p->loss = 0;
    return CM_OK;
}

static enum cm_status settle(struct cm_preparation *p)
{
    cm_untie_settle(p, p->candidates);
    cm_trainables_report(p, p->candidates);
    return CM_OK;
}

/* The loss is the first output, whatever was bound before it. */
static void give_loss(struct cm_preparation *p)
{
    cm_preparation_give(p, p->loss);
    memmove(p->outputs.items + 1, p->outputs.items,
            (p->outputs.count - 1) * sizeof *p->outputs.items);
    p->outputs.items[0] = p->loss;
}

static enum cm_status differentiate(struct cm_preparation *p)
{
    const struct cm_trainables *list = p->candidates;

    CM_TRY(cm_preparation_verdict(p));
    give_loss(p);
    p->weights = CM_NEW_ARRAY(p->arena, struct cm_trained_weight, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *one = &list->items[i];

        if (!one->trained)
            continue;
        struct cm_trained_weight *weight = &p->weights[p->n_weights++];
        const uint64_t group = cm_map_get(&p->planned, one->name, 0);
        weight->value =
            one->is_constant ? cm_lift_constant(p, one->value, one->tensor) : one->value;
        weight->group =
            group ? group - 1 : cm_update_group_of(p, one->name, (int)one->tensor->dims.count);
    }
    cm_update_check_groups(p);
    add_gradient(p);
    return CM_OK;
}

static enum cm_status update(struct cm_preparation *p)
{
    cm_update(p, p->weights, p->n_weights);
    return cm_preparation_verdict(p);
}

struct prepare_pass {
    struct cm_pass_row row;
    enum cm_status (*run)(struct cm_preparation *p);
};

/* clang-format off */
static const struct prepare_pass passes[] = {
    {{"settings", "loss, optimizer, schedule and patterns checked", CM_PASS_REQUIRED,
      "nothing else checks them"}, check_settings},
    {{"modes", "the inference graph leaves training mode", CM_PASS_REQUIRED,
      "the inference graph predicts"}, turn_off_modes},
    {{"output", "the output that the loss reads is found", CM_PASS_REQUIRED,
      "the loss reads it"}, find_output},
    {{"widen", "weights of 16 bits that Gradient does not take become floats", CM_PASS_REQUIRED,
      "such weights cannot be trained otherwise"}, cm_widen_weights},
    {{"retie", "a weight and its transpose, written twice, become one weight", CM_PASS_USUAL,
      NULL}, cm_retie},
    {{"import", "the graph is built, every node in its newest version", CM_PASS_REQUIRED,
      "all that follows changes that graph"}, import},
    {{"functions", "calls expanded that hold weights or train otherwise", CM_PASS_REQUIRED,
      "it changes what is trained"}, lift_functions},
    {{"bodies", "weights in bodies of control flow become initializers", CM_PASS_REQUIRED,
      "it changes what is trained"}, cm_lift_bodies},
    {{"untie", "tensors that the exporter merged become initializers again", CM_PASS_REQUIRED,
      "a running statistic must not share its tensor; keep_tied leaves weights merged"},
     cm_untie},
    {{"choose", "which tensors may be trained", CM_PASS_REQUIRED,
      "it says what is trained"}, choose},
    {{"bypass", "a loss that contains a Softmax or Sigmoid reads what is before the model's",
      CM_PASS_REQUIRED, "applied twice, it trains to something else"}, bypass},
    {{"training-mode", "copies of BatchNormalization and Dropout that train", CM_PASS_USUAL,
      NULL}, cm_training_mode},
    {{"loss", "the loss is computed", CM_PASS_REQUIRED,
      "there would be nothing to differentiate"}, add_loss},
    {{"follow", "the loss is differentiated: what gets no gradient is not trained",
      CM_PASS_REQUIRED, "it says what is trained"}, cm_trainables_follow},
    {{"settle", "tensors taken apart that are not trained become one again", CM_PASS_REQUIRED,
      "it changes what is trained"}, settle},
    {{"folding", "says which parameters the exporter folded or dropped", CM_PASS_USUAL,
      NULL}, cm_tell_folding},
    {{"gradient", "a Gradient node by all that is trained", CM_PASS_REQUIRED,
      "the update reads it"}, differentiate},
    {{"update", "accumulation, clipping, schedule, optimizer", CM_PASS_REQUIRED,
      "nothing would be trained"}, update},
    {{"write", "training info and what else changed go into the model", CM_PASS_REQUIRED,
      "the model would not carry its training"}, cm_preparation_write},
};
/* clang-format on */
const struct cm_pass_table cm_prepare_passes = {passes, CM_COUNT(passes), sizeof *passes};

static enum cm_status run_pass(void *state, const struct cm_pass_row *row, bool is_wanted,
                               struct cm_error *err)
{
    (void)err; /* the preparation has it */
    return is_wanted ? ((const struct prepare_pass *)row)->run(state) : CM_OK;
}

static enum cm_status run_passes(struct cm_preparation *p)
{
    const struct cm_pass_choice choice = {.without = p->options->without,
                                          .until = p->options->until};
    bool stopped;

    CM_TRY(cm_pass_check(&cm_prepare_passes, &choice, p->err));
    CM_TRY(cm_pass_run(&cm_prepare_passes, &choice, run_pass, p, &stopped, p->err));
    return stopped ? cm_preparation_show(p) : CM_OK;
}

enum cm_status cm_prepare(struct cm_arena *arena, struct cm_model_file *file,
                          const struct cm_prepare_options *options,
                          struct cm_prepare_report *report, struct cm_error *err)
{
    struct cm_prepare_options all = *options;
    struct cm_preparation p = {.arena = arena,
                               .file = file,
                               .model = &file->model,
                               .options = &all,
                               .report = report,
                               .is_misused = true,
                               .err = err};

    *report = (struct cm_prepare_report){
        .findings = {.arena = arena, .rule = "prepare", .what = "the model cannot be prepared"}};
    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    if (file->model.training_info.count)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the model carries its training already; strip it first");
    cm_schedule_fit_run(arena, file->model.graph, &all);
    const enum cm_status status = run_passes(&p);
    report->states = p.states.items;
    report->n_states = p.states.count;
    file->to_ship = file->to_ship || status == CM_OK;
    return status;
}

/* ---- and back ---- */

/* The domain of Gradient nodes is imported only where something still uses it. */
static void drop_import(struct cm_model_file *file)
{
    struct cm_model_proto *model = &file->model;
    struct cm_opsets *imports = &model->opset_import;
    const struct cm_str domain = CM_STR("ai.onnx.preview.training");

    bool used = model->graph && cm_nodes_use_domain(&model->graph->node, domain);
    for (size_t i = 0; i < model->functions.count; i++)
        used = used || cm_nodes_use_domain(&model->functions.items[i].node, domain);
    CM_LIST_KEEP(model, CM_MODEL_OPSET_IMPORT, imports,
                 used || !cm_str_equal(imports->items[i].domain, domain));
}

void cm_strip(struct cm_arena *arena, struct cm_model_file *file, struct cm_modes *modes)
{
    struct cm_model_proto *model = &file->model;

    model->training_info.items = NULL;
    model->training_info.count = 0;
    cm_msg_clear(&model->msg, CM_MODEL_TRAINING_INFO);
    drop_import(file);
    cm_modes_turn_off(arena, file, modes);
    file->to_ship = true;
}
