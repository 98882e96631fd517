/* The frame of recurrent operators. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn/recurrent.h"

#include "graph/require.h"

#include "ops/rnn/operands.h"

enum { IN_W_SCALE = 8, IN_W_ZERO, IN_R_SCALE, IN_R_ZERO };

static int n_directions(const struct cm_node *node)
{
    return cm_str_is(cm_node_str(node, "direction"), "bidirectional") ? 2 : 1;
}

/* The axis of R that is as long as the hidden state. */
static int hidden_axis(const struct cm_node *node)
{
    const struct cm_cell *cell = node->op->arg;
    return cell->has_codes ? 1 : 2;
}

struct cm_dim cm_recurrent_hidden(const struct cm_node *node, const struct cm_type *r)
{
    if (cm_node_attr(node, "hidden_size"))
        return CM_DIM(cm_node_int(node, "hidden_size"));
    return r && r->rank == 3 ? r->dims[hidden_axis(node)] : CM_DIM_ANY;
}

static enum cm_status check_attributes(const struct cm_node *node, const struct cm_cell *cell,
                                       struct cm_error *err)
{
    const struct cm_str direction = cm_node_str(node, "direction");
    if (!cm_str_is(direction, "forward") && !cm_str_is(direction, "reverse") &&
        !cm_str_is(direction, "bidirectional"))
        return cm_fail(
            err, CM_BAD_MODEL,
            "attribute 'direction' is '%.*s', expected 'forward', 'reverse' or 'bidirectional'",
            CM_STR_FMT(direction));
    const struct cm_attribute_proto *activations = cm_node_attr(node, "activations");
    const size_t given = activations ? activations->strings.count : 0;
    const size_t needed = (size_t)(cell->n_activations * n_directions(node));
    if (activations && given != needed)
        return cm_fail(err, CM_BAD_MODEL, "has %zu activations, needs %zu", given, needed);
    struct cm_recurrent_form form;
    cm_recurrent_form(node, cell->n_activations, cell->activations, &form);
    for (size_t i = 0; i < needed; i++) {
        const struct cm_recurrent_activation *a =
            &form.activations[i / (size_t)cell->n_activations][i % (size_t)cell->n_activations];
        if (a->kind == CM_ACT_UNKNOWN)
            return cm_fail(err, CM_BAD_MODEL, "activation '%.*s' is not defined by ONNX",
                           CM_STR_FMT(a->name));
    }
    const int64_t hidden = cm_node_int(node, "hidden_size");
    if (cm_node_attr(node, "hidden_size") && (hidden < 1 || hidden > CM_MOST_HIDDEN))
        return cm_fail(err, CM_BAD_MODEL, "attribute 'hidden_size' is %lld, which is out of range",
                       (long long)hidden);
    return CM_OK;
}

/* The attribute says again what R's shape says. */
static enum cm_status check_hidden(struct cm_infer *in)
{
    const struct cm_type *r = cm_infer_type(in, IN_R);
    const int axis = hidden_axis(in->node);
    if (!r || r->rank != 3 || !cm_dim_known(r->dims[axis]))
        return CM_OK;
    if (r->dims[axis].value > CM_MOST_HIDDEN)
        return cm_infer_fail(in, "R has size %lld on axis %d, which is out of range",
                             (long long)r->dims[axis].value, axis);
    const int64_t hidden = cm_node_int(in->node, "hidden_size");
    if (cm_node_attr(in->node, "hidden_size") && hidden != r->dims[axis].value)
        return cm_infer_fail(in, "hidden_size is %lld, R has size %lld on axis %d",
                             (long long)hidden, (long long)r->dims[axis].value, axis);
    return CM_OK;
}

static struct cm_recurrent_sizes sizes_of(const struct cm_node *node, const struct cm_type *r)
{
    const struct cm_cell *cell = node->op->arg;
    return (struct cm_recurrent_sizes){.directions = n_directions(node),
                                       .gates = cell->n_gates,
                                       .hidden = cm_recurrent_hidden(node, r),
                                       .batch_first = cm_node_int(node, "layout") != 0,
                                       .transposed = cell->has_codes};
}

void cm_recurrent_require(struct cm_require *r)
{
    const struct cm_type *weights = cm_require_type(r, IN_R);
    if (!weights)
        return;
    const struct cm_recurrent_sizes sizes = sizes_of(r->node, weights);
    cm_recurrent_require_weights(r, &sizes);
}

enum cm_status cm_recurrent_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, IN_X);
    const struct cm_cell *cell = in->node->op->arg;
    CM_TRY(check_attributes(in->node, cell, in->err));
    CM_TRY(check_hidden(in));
    const struct cm_recurrent_sizes sizes = sizes_of(in->node, cm_infer_type(in, IN_R));
    const bool batch_first = sizes.batch_first;
    CM_TRY(cm_recurrent_check(in, &sizes));
    const bool known = x->rank == 3;
    const struct cm_dim seq = known ? x->dims[batch_first] : CM_DIM_ANY;
    const struct cm_dim batch = known ? x->dims[!batch_first] : CM_DIM_ANY;
    const struct cm_dim hidden = sizes.hidden, dirs = CM_DIM(sizes.directions);
    const struct cm_dim y[2][4] = {{seq, dirs, batch, hidden}, {batch, seq, dirs, hidden}};
    const struct cm_dim last[2][3] = {{dirs, batch, hidden}, {batch, dirs, hidden}};
    CM_TRY(cm_infer_set_tensor(in, 0, x->dtype, 4, y[batch_first]));
    for (int s = 0; s < cell->n_states; s++)
        CM_TRY(cm_infer_set_tensor(in, s + 1, x->dtype, 3, last[batch_first]));
    const struct cm_dim parts =
        cm_dim_known(hidden) ? CM_DIM(cell->n_kept * hidden.value) : CM_DIM_ANY;
    const struct cm_dim reserve[] = {dirs, seq, batch, parts};
    if (in->n_out > cell->n_states + 1)
        return cm_infer_set_tensor(in, cell->n_states + 1, x->dtype, 4, reserve);
    return CM_OK;
}

/* ---- activations ---- */

/* The operator that computes an activation; those without one are composed below. */
static const char *const operators[CM_ACTIVATIONS] = {
    [CM_ACT_RELU] = "Relu",
    [CM_ACT_TANH] = "Tanh",
    [CM_ACT_SIGMOID] = "Sigmoid",
    [CM_ACT_SOFTSIGN] = "Softsign",
    [CM_ACT_SOFTPLUS] = "Softplus",
    [CM_ACT_LEAKY_RELU] = "LeakyRelu",
    [CM_ACT_THRESHOLDED_RELU] = "ThresholdedRelu",
    [CM_ACT_ELU] = "Elu",
    [CM_ACT_HARD_SIGMOID] = "HardSigmoid",
};

cm_value cm_step_activate(struct cm_rnn_step *step, int which, cm_value x)
{
    const struct cm_node *node = step->call->node;
    const struct cm_cell *cell = node->op->arg;
    struct cm_arena *arena = cm_builder_arena(&step->build);
    struct cm_recurrent_form form;
    cm_recurrent_form(node, cell->n_activations, cell->activations, &form);
    const struct cm_recurrent_activation *a = &form.activations[step->direction][which];
    if (operators[a->kind]) {
        const struct cm_attribute_proto parameters[] = {cm_attr_float(arena, "alpha", a->alpha),
                                                        cm_attr_float(arena, "beta", a->beta)};
        return cm_build(
            &step->build,
            &(struct cm_emission){.op = operators[a->kind],
                                  CM_INPUTS(x),
                                  .attributes = parameters,
                                  .n_attributes = (size_t)cm_activation_parameters(a->kind)});
    }
    const cm_value alpha = cm_emit_scalar_like(step, x, (double)a->alpha);
    const cm_value beta = cm_emit_scalar_like(step, x, (double)a->beta);
    if (a->kind == CM_ACT_AFFINE)
        return cm_emit(step, "Add", cm_emit(step, "Mul", x, alpha), beta);
    return cm_emit(step, "Mul", alpha, cm_emit(step, "Tanh", cm_emit(step, "Mul", x, beta)));
}

cm_value cm_step_clip(struct cm_rnn_step *step, cm_value x)
{
    const struct cm_node *node = step->call->node;
    if (!cm_node_attr(node, "clip"))
        return x;
    const double limit = cm_node_float(node, "clip");
    return cm_emit(step, "Clip", x, cm_emit_scalar_like(step, x, -limit),
                   cm_emit_scalar_like(step, x, limit));
}

cm_value cm_build_part(struct cm_builder *build, cm_value x, int64_t hidden, int part)
{
    const int64_t from = part * hidden, to = from + hidden, last = -1;
    return cm_build(build, &(struct cm_emission){.op = "Slice",
                                                 CM_INPUTS(x, cm_build_int64s(build, 1, &from),
                                                           cm_build_int64s(build, 1, &to),
                                                           cm_build_int64s(build, 1, &last))});
}

cm_value cm_step_part(struct cm_rnn_step *step, cm_value x, int part)
{
    return cm_build_part(&step->build, x, step->hidden, part);
}

/* x, as codes, times weights that are codes. */
static cm_value coded_product(struct cm_builder *build, cm_value x, cm_value weights,
                              cm_value scale, cm_value zero)
{
    struct cm_rnn_step at = {.build = *build};
    const struct cm_attribute_proto to_float = cm_attr_int(cm_builder_arena(build), "to", CM_FLOAT);
    cm_value codes[3] = {0}; /* and their scale and zero point */
    cm_build(&at.build, &(struct cm_emission){.op = "DynamicQuantizeLinear",
                                              CM_INPUTS(x),
                                              .n_outputs = CM_COUNT(codes),
                                              .outputs = codes});
    const cm_value sum = cm_emit(&at, "MatMulInteger", codes[0], weights, codes[2], zero);
    const cm_value y = cm_emit(&at, "Mul", cm_emit_with(&at, "Cast", CM_ATTRIBUTES(to_float), sum),
                               cm_emit(&at, "Mul", codes[1], scale));
    *build = at.build;
    return y;
}

cm_value cm_step_recur(struct cm_rnn_step *step, cm_value state)
{
    if (step->recurrence_scale)
        return coded_product(&step->build, state, step->recurrence, step->recurrence_scale,
                             step->recurrence_zero);
    return cm_emit(step, "MatMul", state, step->recurrence);
}

/* ---- the graph around a step ---- */

cm_value cm_body_pick(struct cm_body *b, cm_value operand, int64_t along, int d)
{
    if (!operand)
        return 0;
    const cm_value axis = cm_emit_int64s(b, along);
    const cm_value one =
        cm_emit(b, "Slice", operand, cm_emit_int64s(b, d), cm_emit_int64s(b, d + 1), axis);
    return cm_emit(b, "Squeeze", one, axis);
}

static cm_value pick(struct cm_body *b, cm_value operand, int d)
{
    return cm_body_pick(b, operand, 0, d);
}

cm_value cm_body_transpose(struct cm_body *b, cm_value x, size_t rank, const int64_t *order)
{
    return cm_emit_with(
        b, "Transpose",
        CM_ATTRIBUTES(cm_attr_ints(cm_builder_arena(&b->build), "perm", rank, order)), x);
}

static const int64_t swap_2[] = {1, 0}, swap_3[] = {1, 0, 2};

cm_value cm_body_zero_state(struct cm_body *b, cm_value x, int64_t hidden)
{
    const cm_value batch = cm_emit(b, "Slice", cm_emit(b, "Shape", x), cm_emit_int64s(b, 1),
                                   cm_emit_int64s(b, 2), cm_emit_int64s(b, 0));
    const cm_value shape = cm_emit_with(
        b, "Concat", CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "axis", 0)), batch,
        cm_emit_int64s(b, hidden));
    return cm_emit(b, "Expand", cm_emit_scalar_like(b, x, 0.0), shape);
}

static cm_value initial_state(struct cm_body *b, cm_value x, int operand, int d, int64_t hidden,
                              bool batch_first)
{
    cm_value given = cm_recurrent_state(b, operand, n_directions(b->node), hidden);
    if (given) {
        if (batch_first)
            given = cm_body_transpose(b, given, 3, swap_3);
        return pick(b, given, d);
    }
    return cm_body_zero_state(b, x, hidden);
}

/* One direction of the whole operator. */
struct pass {
    struct cm_body *b;
    const struct cm_cell *cell;
    int d;
    bool reverse;
    int64_t hidden;
    cm_value x;    /* (seq, batch, input) */
    cm_value lens; /* (batch) or 0 */
    cm_value state[CM_MAX_STATES];
    struct cm_rnn_step step;
    cm_value y;       /* (seq, batch, hidden) */
    cm_value reserve; /* (seq, batch, kept * hidden), where wanted */
    cm_value last[CM_MAX_STATES];
};

static bool wants_reserve(const struct cm_body *b)
{
    const struct cm_cell *cell = b->node->op->arg;
    return cm_body_wants(b, cell->n_states + 1);
}

static cm_value weighted_input(struct pass *pass)
{
    struct cm_body *b = pass->b;
    const int64_t width = pass->cell->n_gates * pass->hidden;
    const cm_value w = pick(b, cm_body_input(b, IN_W), pass->d);
    const cm_value product =
        pass->cell->has_codes
            ? coded_product(&b->build, pass->x, w, pick(b, cm_body_input(b, IN_W_SCALE), pass->d),
                            pick(b, cm_body_input(b, IN_W_ZERO), pass->d))
            : cm_emit(b, "MatMul", pass->x, cm_body_transpose(b, w, 2, swap_2));
    const cm_value bias = pick(b, cm_body_input(b, IN_B), pass->d);
    if (!bias)
        return product;
    const cm_value axis = cm_emit_int64s(b, 0);
    const cm_value middle = cm_emit_int64s(b, width);
    const cm_value of_input = cm_emit(b, "Slice", bias, cm_emit_int64s(b, 0), middle, axis);
    const cm_value of_state = cm_emit(b, "Slice", bias, middle, cm_emit_int64s(b, 2 * width), axis);
    if (pass->cell->keeps_recurrence_bias) {
        pass->step.recurrence_bias = of_state;
        return cm_emit(b, "Add", product, of_input);
    }
    return cm_emit(b, "Add", product, cm_emit(b, "Add", of_input, of_state));
}

/* Past the end of its sequence a sample keeps its states and gives zeros. */
static void stop_at_end(struct pass *pass, struct cm_rnn_step *step, cm_value position, cm_value *y)
{
    const cm_value inside = cm_emit(step, "Less", position, pass->lens);
    const cm_value column = cm_emit(step, "Unsqueeze", inside, cm_emit_int64s(step, 1));
    for (int s = 0; s < pass->cell->n_states; s++)
        step->next[s] = cm_emit(step, "Where", column, step->next[s], step->state[s]);
    *y = cm_emit(step, "Where", column, *y, cm_emit_scalar_like(step, *y, 0.0));
}

static struct cm_graph *step_graph(struct pass *pass, cm_value input, cm_value positions)
{
    struct cm_body *b = pass->b;
    struct cm_module *module = b->build.graph->module;
    struct cm_arena *arena = cm_builder_arena(&b->build);
    struct cm_graph *graph = cm_graph_new(module, b->build.graph, CM_STR("step"));
    struct cm_rnn_step *step = &pass->step;
    step->build = (struct cm_builder){.graph = graph, .err = b->build.err};
    for (int s = 0; s < pass->cell->n_states; s++)
        step->state[s] =
            cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&b->build, pass->state[s]));
    const struct cm_type *whole = cm_builder_type(&b->build, input);
    struct cm_dim dims[2] = {CM_DIM_ANY, CM_DIM_ANY};
    if (whole->rank == 3)
        memcpy(dims, whole->dims + 1, sizeof dims);
    step->input =
        cm_graph_add_input(graph, CM_STR_NONE, cm_type_tensor(arena, whole->dtype, 2, dims));
    cm_value position = 0;
    if (positions)
        position = cm_graph_add_input(graph, CM_STR_NONE, cm_type_tensor(arena, CM_INT32, 0, NULL));
    if (!step->build.status)
        step->build.status = pass->cell->step(step);
    cm_value y = step->next[0];
    if (positions)
        stop_at_end(pass, step, position, &y);
    size_t n_outputs = (size_t)pass->cell->n_states + 1;
    cm_value outputs[CM_MAX_STATES + 2];
    memcpy(outputs, step->next, sizeof step->next);
    outputs[n_outputs - 1] = y;
    if (wants_reserve(b))
        outputs[n_outputs++] = cm_build(
            &step->build, &(struct cm_emission){.op = "Concat",
                                                .inputs = step->kept,
                                                .n_inputs = (size_t)pass->cell->n_kept,
                                                CM_ATTRIBUTES(cm_attr_int(arena, "axis", -1))});
    if (step->build.status) {
        if (!b->build.status)
            b->build.status = step->build.status;
        return NULL;
    }
    if (!positions) /* a value may be one output only once: the state and the slice are the same */
        outputs[pass->cell->n_states] = cm_emit(step, "Identity", y);
    cm_graph_set_outputs(graph, outputs, n_outputs);
    return graph;
}

/* 0, 1, .. along the sequence, compared with the sequence lengths inside a step. */
static cm_value sequence_positions(struct pass *pass)
{
    struct cm_body *b = pass->b;
    const cm_value axis = cm_emit_int64s(b, 0);
    const cm_value length =
        cm_emit(b, "Slice", cm_emit(b, "Shape", pass->x), axis, cm_emit_int64s(b, 1), axis);
    const cm_value end = cm_emit_with(
        b, "Cast", CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "to", CM_INT32)),
        cm_emit(b, "Squeeze", length, axis));
    return cm_emit(b, "Range", cm_emit_scalar(b, CM_INT32, 0), end, cm_emit_scalar(b, CM_INT32, 1));
}

static enum cm_status build_pass(struct pass *pass)
{
    struct cm_body *b = pass->b;
    const cm_value input = weighted_input(pass);
    pass->step.recurrence = pick(b, cm_body_input(b, IN_R), pass->d);
    if (pass->cell->has_codes) {
        pass->step.recurrence_scale = pick(b, cm_body_input(b, IN_R_SCALE), pass->d);
        pass->step.recurrence_zero = pick(b, cm_body_input(b, IN_R_ZERO), pass->d);
    } else {
        pass->step.recurrence = cm_body_transpose(b, pass->step.recurrence, 2, swap_2);
    }
    pass->step.peepholes = pick(b, cm_body_input(b, IN_P), pass->d);
    const cm_value positions = pass->lens ? sequence_positions(pass) : 0;
    CM_TRY(b->build.status);
    struct cm_graph *graph = step_graph(pass, input, positions);
    CM_TRY(b->build.status);

    const size_t n_states = (size_t)pass->cell->n_states, n_scans = positions ? 2 : 1;
    const size_t n_results = wants_reserve(b) ? 2 : 1;
    const cm_value scans[] = {input, positions};
    cm_value results[2];
    cm_body_scan(b, graph, pass->reverse, n_states, pass->state, n_scans, scans, pass->last,
                 n_results, results);
    pass->y = results[0];
    pass->reserve = n_results > 1 ? results[1] : 0;
    return b->build.status;
}

void cm_body_scan(struct cm_body *b, struct cm_graph *graph, bool reverse, size_t n_states,
                  const cm_value *states, size_t n_scans, const cm_value *scans, cm_value *last,
                  size_t n_results, cm_value *results)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    cm_value inputs[CM_MAX_STATES + CM_SCANS], outputs[CM_MAX_STATES + CM_SCANS];
    const int64_t backwards[CM_SCANS] = {reverse, reverse, reverse};
    const struct cm_attribute_proto attributes[] = {
        cm_attr_int(arena, "num_scan_inputs", (int64_t)n_scans),
        cm_attr_ints(arena, "scan_input_directions", n_scans, backwards),
        cm_attr_ints(arena, "scan_output_directions", n_results, backwards),
    };
    memcpy(inputs, states, n_states * sizeof *states);
    memcpy(inputs + n_states, scans, n_scans * sizeof *scans);
    cm_build(&b->build, &(struct cm_emission){.op = "Scan",
                                              .inputs = inputs,
                                              .n_inputs = n_states + n_scans,
                                              .attributes = attributes,
                                              .n_attributes = CM_COUNT(attributes),
                                              .body_graphs = &graph,
                                              .body_names = (const char *const[]){"body"},
                                              .n_bodies = 1,
                                              .n_outputs = n_states + n_results,
                                              .outputs = outputs});
    memcpy(last, outputs, n_states * sizeof *last);
    memcpy(results, outputs + n_states, n_results * sizeof *results);
}

cm_value cm_body_join(struct cm_body *b, const cm_value *parts, int n, int64_t axis)
{
    cm_value lifted[2];
    for (int i = 0; i < n; i++)
        lifted[i] = cm_emit(b, "Unsqueeze", parts[i], cm_emit_int64s(b, axis));
    if (n == 1)
        return lifted[0];
    return cm_emit_with(b, "Concat",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "axis", axis)),
                        lifted[0], lifted[1]);
}

enum cm_status cm_recurrent_body(struct cm_body *b)
{
    const struct cm_node *node = b->node;
    const struct cm_cell *cell = node->op->arg;
    const bool batch_first = cm_node_int(node, "layout") != 0;
    const struct cm_dim hidden =
        cm_recurrent_hidden(node, cm_builder_type(&b->build, cm_body_input(b, IN_R)));
    if (!cm_dim_known(hidden))
        return cm_body_decline(b, "the hidden size is not known");
    const bool reverse = cm_str_is(cm_node_str(node, "direction"), "reverse");
    const int n = n_directions(node);
    cm_value x = cm_body_input(b, IN_X), ys[2], reserves[2], lasts[CM_MAX_STATES][2];
    if (batch_first)
        x = cm_body_transpose(b, x, 3, swap_3);
    const cm_value lens = cm_recurrent_lengths(b);
    CM_TRY(b->build.status);
    for (int d = 0; d < n; d++) {
        struct pass pass = {.b = b,
                            .cell = cell,
                            .d = d,
                            .reverse = reverse || d == 1,
                            .hidden = hidden.value,
                            .x = x,
                            .lens = lens,
                            .step = {.call = b, .direction = d, .hidden = hidden.value}};
        for (int s = 0; s < cell->n_states; s++)
            pass.state[s] = initial_state(b, x, IN_H + s, d, hidden.value, batch_first);
        CM_TRY(build_pass(&pass));
        ys[d] = pass.y;
        reserves[d] = pass.reserve;
        for (int s = 0; s < cell->n_states; s++)
            lasts[s][d] = pass.last[s];
    }
    if (cm_body_wants(b, 0)) {
        cm_value y = cm_body_join(b, ys, n, 1);
        const int64_t order[] = {2, 0, 1,
                                 3}; /* (seq, dirs, batch, hidden) to (batch, seq, dirs, hidden) */
        if (batch_first)
            y = cm_body_transpose(b, y, 4, order);
        CM_TRY(cm_body_return(b, 0, y));
    }
    if (wants_reserve(b))
        CM_TRY(cm_body_return(b, cell->n_states + 1, cm_body_join(b, reserves, n, 0)));
    for (int s = 0; s < cell->n_states; s++)
        if (cm_body_wants(b, s + 1))
            CM_TRY(cm_body_return(b, s + 1, cm_body_join(b, lasts[s], n, batch_first ? 1 : 0)));
    return b->build.status;
}
