/* Looking at a model in training without training it: loss, hits, predictions. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer_parts.h"

#include "graph/op.h"

#include <math.h>

/* The node that compares scores with labels, if the loss is one that classifies. */
static const struct cm_node *find_classifier(const struct cm_graph *graph, const bool *needed)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const struct cm_class_labels *of = node->op ? node->op->scores.labels : NULL;

        if (of && cm_node_is_needed(node, needed, NULL) && cm_node_input(node, of->scores) &&
            cm_node_input(node, of->labels))
            return node;
    }
    return NULL;
}

/* The only input that the loss has beside those of the inference graph, when that has one output.
 */
static bool find_target(struct cm_trainer *trainer, const struct cm_graph *loss, const bool *needed)
{
    const struct cm_graph_proto *graph = trainer->file->model.graph;
    struct cm_map theirs = {0};
    size_t found = 0;

    for (size_t i = 0; i < graph->input.count; i++)
        cm_map_insert(&theirs, trainer->arena, graph->input.items[i].name, NULL);
    for (size_t i = 0; i < loss->n_inputs; i++) {
        const struct cm_str name = cm_value_get(loss->module, loss->inputs[i])->name;
        const uint64_t *index = cm_map_find(&trainer->inputs_by_name, name);

        if (!needed[loss->inputs[i]] || !index || cm_map_find(&theirs, name))
            continue;
        trainer->target_input = (int)*index;
        found++;
    }
    return found == 1 && graph->output.count == 1;
}

/* The loss, and what it compares. */
static enum cm_status make_evaluation(struct cm_trainer *trainer, struct cm_error *err)
{
    const struct cm_scalar_slot *loss = &trainer->scalars.items[trainer->loss];
    const struct cm_training_entry *entry = &trainer->entries[loss->entry];
    const struct cm_graph *graph = entry->graph;
    cm_value outputs[3];
    struct cm_cut cut = {.graph = graph, .outputs = outputs, .n_outputs = 1, .evaluate = true};

    CM_TRY(cm_training_find(graph, entry->found, &loss->name, 1, outputs, err));
    const bool *needed = cm_training_needed(graph, trainer->arena, outputs, 1, NULL, true);
    const struct cm_node *classifier = find_classifier(graph, needed);
    if (classifier) {
        const struct cm_class_labels *of = classifier->op->scores.labels;

        outputs[1] = cm_node_input(classifier, of->scores);
        outputs[2] = cm_node_input(classifier, of->labels);
        if (outputs[1] != outputs[2]) {
            cut.n_outputs = 3;
            trainer->score_output = 1;
            trainer->label_output = 2;
            trainer->has_ignored = of->ignored && cm_node_has_attr(classifier, of->ignored);
            trainer->ignored = trainer->has_ignored ? cm_node_int(classifier, of->ignored) : 0;
        }
    } else if (find_target(trainer, graph, needed)) {
        outputs[1] = cm_graph_find(graph, trainer->file->model.graph->output.items[0].name);
        cut.n_outputs = outputs[1] && outputs[1] != outputs[0] ? 2 : 1;
        trainer->estimate_output = cut.n_outputs == 2 ? 1 : -1;
    }
    trainer->loss_output = 0;
    struct cm_program *program = CM_NEW(trainer->arena, struct cm_program);
    program->place = "evaluation";
    trainer->evaluation = program;
    return cm_program_make(trainer, program, &cut, 2 * trainer->n_entries, NULL, err);
}

/* Variables come first among the inputs of a program. */
static size_t variable_count(const struct cm_program *program)
{
    size_t count = 0;

    while (count < program->n_inputs && program->inputs[count].source == CM_FROM_VARIABLE)
        count++;
    return count;
}

static enum cm_status make_prediction(struct cm_trainer *trainer, struct cm_error *err)
{
    const struct cm_graph_proto *graph = trainer->file->model.graph;
    const struct cm_training_entry *entry = &trainer->entries[0];
    const size_t count = graph->output.count;
    struct cm_str *names = CM_NEW_ARRAY(trainer->arena, struct cm_str, count);
    cm_value *outputs = CM_NEW_ARRAY(trainer->arena, cm_value, count);
    struct cm_trainer_input *inputs;

    CM_TRY(cm_trainer_import(trainer, 0, err));
    for (size_t i = 0; i < count; i++)
        names[i] = graph->output.items[i].name;
    CM_TRY(cm_training_find(entry->graph, entry->found, names, count, outputs, err));
    const struct cm_cut cut = {
        .graph = entry->graph, .outputs = outputs, .n_outputs = count, .evaluate = true};
    struct cm_program *program = CM_NEW(trainer->arena, struct cm_program);
    program->place = "prediction";
    trainer->prediction = program;
    CM_TRY(cm_program_make(trainer, program, &cut, 2 * trainer->n_entries + 1, &inputs, err));
    trainer->prediction_inputs = inputs + variable_count(program);
    return CM_OK;
}

enum cm_status cm_trainer_prepare_evaluation(struct cm_trainer *trainer, struct cm_error *err)
{
    if (trainer->evaluation)
        return CM_OK;
    trainer->loss_output = trainer->score_output = trainer->label_output = -1;
    trainer->estimate_output = -1;
    if (trainer->loss < 0)
        return CM_OK;
    return cm_error_context(err, make_evaluation(trainer, err), "evaluation");
}

enum cm_status cm_trainer_prepare_prediction(struct cm_trainer *trainer, struct cm_error *err)
{
    if (trainer->prediction)
        return CM_OK;
    return cm_error_context(err, make_prediction(trainer, err), "prediction");
}

/* ---- measuring ---- */

/* scores (N, C, ..), labels (N, ..): the class of the highest score along axis 1, the first of
 * equals. */
static void count_hits(const struct cm_trainer *trainer, const struct cm_tensor *scores,
                       const struct cm_tensor *labels, struct cm_trainer_measure *out)
{
    if (scores->shape.rank < 2 || labels->shape.rank != scores->shape.rank - 1)
        return;
    const int64_t classes = scores->shape.dims[1];
    const int64_t inner = cm_shape_span(&scores->shape, 2, scores->shape.rank);
    const int64_t total = cm_tensor_count(labels);

    for (int64_t i = 0; i < total && classes > 0; i++) {
        const int64_t label = cm_tensor_int(labels, i);
        const int64_t base = (i / inner) * classes * inner + i % inner;
        int64_t best = 0;

        if (trainer->has_ignored && label == trainer->ignored)
            continue;
        for (int64_t c = 1; c < classes; c++)
            if (cm_tensor_real(scores, base + c * inner) >
                cm_tensor_real(scores, base + best * inner))
                best = c;
        out->judged++;
        out->correct += best == label;
    }
}

static void compare(const struct cm_tensor *estimate, const struct cm_tensor *target,
                    struct cm_trainer_measure *out)
{
    const int64_t count = cm_tensor_count(target);

    if (!cm_dtype_is_float(target->type) || !cm_dtype_is_float(estimate->type) ||
        !cm_shape_equal(&estimate->shape, &target->shape))
        return;
    for (int64_t i = 0; i < count; i++) {
        const double wanted = cm_tensor_real(target, i);
        const double error = cm_tensor_real(estimate, i) - wanted;

        out->absolute += fabs(error);
        out->squared += error * error;
        out->targets += wanted;
        out->target_squares += wanted * wanted;
    }
    out->compared += count;
}

static int64_t batch_size(const struct cm_trainer *trainer, const struct cm_tensor *const *in)
{
    for (size_t i = 0; i < trainer->inputs.count; i++)
        if (in[i] && in[i]->shape.rank > 0)
            return in[i]->shape.dims[0];
    return 1;
}

enum cm_status cm_trainer_evaluate(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                                   struct cm_trainer_measure *out, struct cm_error *err)
{
    struct cm_program *program = trainer->evaluation;
    struct cm_run_options options = {0};

    *out = (struct cm_trainer_measure){.samples = batch_size(trainer, in), .loss = (double)NAN};
    if (!program)
        return CM_OK;
    memset(program->out, 0, program->n_outputs * sizeof *program->out);
    CM_TRY(
        cm_error_context(err, cm_program_run(trainer, program, in, &options, err), "evaluation"));
    out->loss = cm_tensor_real(&program->out[trainer->loss_output].tensor, 0);
    if (trainer->score_output >= 0)
        count_hits(trainer, &program->out[trainer->score_output].tensor,
                   &program->out[trainer->label_output].tensor, out);
    if (trainer->estimate_output >= 0)
        compare(&program->out[trainer->estimate_output].tensor, in[trainer->target_input], out);
    for (size_t o = 0; o < program->n_outputs; o++)
        cm_datum_drop(&program->out[o]);
    return CM_OK;
}

struct cm_measure_scores cm_measure_scores(const struct cm_trainer_measure *m)
{
    struct cm_measure_scores scores = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    const double n = (double)m->compared;

    if (m->judged)
        scores.accuracy = (double)m->correct / (double)m->judged;
    if (!m->compared)
        return scores;
    const double spread = m->target_squares - m->targets * m->targets / n;
    scores.mae = m->absolute / n;
    scores.mse = m->squared / n;
    if (spread > 0)
        scores.r2 = 1 - m->squared / spread;
    return scores;
}

/* ---- predicting ---- */

size_t cm_trainer_predict_input_count(const struct cm_trainer *trainer)
{
    const struct cm_program *program = trainer->prediction;

    return program ? program->n_inputs - variable_count(program) : 0;
}

const struct cm_trainer_input *cm_trainer_predict_input(const struct cm_trainer *trainer, size_t i)
{
    return i < cm_trainer_predict_input_count(trainer) ? &trainer->prediction_inputs[i] : NULL;
}

size_t cm_trainer_predict_output_count(const struct cm_trainer *trainer)
{
    return trainer->prediction ? trainer->prediction->n_outputs : 0;
}

struct cm_str cm_trainer_predict_output(const struct cm_trainer *trainer, size_t i)
{
    return i < cm_trainer_predict_output_count(trainer) ? trainer->prediction->outputs[i]
                                                        : CM_STR_NONE;
}

enum cm_status cm_trainer_predict(struct cm_trainer *trainer, const struct cm_datum *const *in,
                                  struct cm_datum *out, struct cm_error *err)
{
    struct cm_program *program = trainer->prediction;
    const struct cm_run_options options = {.cancel = trainer->cancel};

    if (!program)
        return cm_fail(err, CM_BAD_ARGUMENT, "the trainer was not prepared for prediction");
    const size_t variables = variable_count(program);
    for (size_t i = 0; i < program->n_inputs; i++) {
        if (i < variables)
            program->in[i] = (struct cm_datum){
                .kind = CM_KIND_TENSOR, .tensor = trainer->variables[program->inputs[i].index].now};
        program->feeds[i] = i < variables ? &program->in[i] : in[i - variables];
    }
    return cm_session_run(program->session, program->feeds, program->n_inputs, out,
                          program->n_outputs, &options, err);
}
