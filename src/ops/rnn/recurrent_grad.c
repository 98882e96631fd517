/* The gradient of recurrent operators in their common form: the rule, and LSTMGrad, GRUGrad and
 * RNNGrad as a Scan over the steps in the other order. What has peepholes, lengths, clipping or
 * other activations is differentiated by its body. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn/operands.h"
#include "ops/rnn/recurrent.h"

/* Does the gradient know the activations? Those that a cell has by default, and Relu where there is
 * but one. */
static bool knows_activations(const struct cm_node *node, const struct cm_cell *cell)
{
    struct cm_recurrent_form form;
    bool known = true;
    cm_recurrent_form(node, cell->n_activations, cell->activations, &form);
    for (int d = 0; d < form.directions; d++)
        for (int i = 0; i < cell->n_activations; i++) {
            const enum cm_activation kind = form.activations[d][i].kind;
            known = known && (kind == cell->activations[i] ||
                              (kind == CM_ACT_RELU && cell->n_activations == 1));
        }
    return known;
}

/* ---- types ---- */

static const char *const operand_names[] = {"X",  "W",    "R",       "Y",         "initial_h",
                                            "dY", "dY_h", "reserve", "initial_c", "dY_c"};

enum cm_status cm_recurrent_grad_infer(struct cm_infer *in)
{
    const struct cm_cell *cell = in->node->op->arg;
    const struct cm_type *x = cm_infer_type(in, CM_BACK_X), *r = cm_infer_type(in, CM_BACK_R);
    const bool known = x->rank == 3;
    const struct cm_dim seq = known ? x->dims[0] : CM_DIM_ANY;
    const struct cm_dim batch = known ? x->dims[1] : CM_DIM_ANY;
    const struct cm_dim input = known ? x->dims[2] : CM_DIM_ANY;
    const bool both = cm_str_is(cm_node_str(in->node, "direction"), "bidirectional");
    const struct cm_dim dirs = CM_DIM(both ? 2 : 1), hidden = cm_recurrent_hidden(in->node, r);
    const bool sized = cm_dim_known(hidden);
    if (sized && (hidden.value < 1 || hidden.value > CM_MOST_HIDDEN))
        return cm_infer_fail(in, "its hidden size is %lld, which is out of range",
                             (long long)hidden.value);
    if (!knows_activations(in->node, cell))
        return cm_infer_fail(in, "attribute 'activations' names one that has no gradient here");
    const struct cm_dim rows = sized ? CM_DIM(cell->n_gates * hidden.value) : CM_DIM_ANY;
    const struct cm_dim biases = sized ? CM_DIM(2 * cell->n_gates * hidden.value) : CM_DIM_ANY;
    const struct cm_dim parts = sized ? CM_DIM(cell->n_kept * hidden.value) : CM_DIM_ANY;
    const struct cm_dim sequence[] = {seq, batch, input}, state[] = {dirs, batch, hidden};
    const struct cm_dim y[] = {seq, dirs, batch, hidden}, reserve[] = {dirs, seq, batch, parts};
    const struct cm_dim w[] = {dirs, rows, input}, recur[] = {dirs, rows, hidden};
    const struct cm_dim bias[] = {dirs, biases};
    const struct {
        int rank;
        const struct cm_dim *dims;
    } needs[CM_BACK_OPERANDS] = {{3, sequence}, {3, w},     {3, recur},   {4, y},     {3, state},
                                 {4, y},        {3, state}, {4, reserve}, {3, state}, {3, state}},
      gives[CM_BACK_RESULTS] = {{3, sequence}, {3, w},     {3, recur},
                                {2, bias},     {3, state}, {3, state}};
    for (int i = 0; i < CM_BACK_OPERANDS; i++)
        CM_TRY(cm_recurrent_check_dims(in, i, operand_names[i], needs[i].rank, needs[i].dims));
    for (int o = 0; o < in->n_out && o < CM_BACK_RESULTS; o++)
        CM_TRY(cm_infer_set_tensor(in, o, x->dtype, gives[o].rank, gives[o].dims));
    return CM_OK;
}

/* ---- as nodes ---- */

/* One direction of the way back. */
struct pass_back {
    struct cm_body *b;
    const struct cm_cell *cell;
    int d;
    bool reverse; /* of the forward operator */
    int64_t hidden;
    cm_value x, y, kept;            /* (seq, batch, ..) */
    cm_value before[CM_MAX_STATES]; /* (seq, batch, hidden): states that steps began with */
    cm_value dy;
    cm_value d_state[CM_MAX_STATES]; /* (batch, hidden) */
    cm_value r;
    cm_value d_input, d_product; /* (seq, batch, gates * hidden) */
};

static cm_value concat(struct cm_body *b, cm_value first, cm_value second, int64_t axis)
{
    return cm_emit_with(b, "Concat",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "axis", axis)),
                        first, second);
}

/* The state before each step, from the one before the first and those after each. */
static cm_value shifted(struct pass_back *p, cm_value first, cm_value after)
{
    struct cm_body *b = p->b;
    const cm_value axis = cm_emit_int64s(b, 0), one = cm_emit(b, "Unsqueeze", first, axis);
    if (p->reverse)
        return cm_emit(b, "Slice", concat(b, after, one, 0), cm_emit_int64s(b, 1),
                       cm_emit_int64s(b, INT64_MAX), axis);
    return cm_emit(b, "Slice", concat(b, one, after, 0), cm_emit_int64s(b, 0),
                   cm_emit_int64s(b, -1), axis);
}

static void load_operands(struct pass_back *p)
{
    struct cm_body *b = p->b;
    p->x = cm_body_input(b, CM_BACK_X);
    p->y = cm_body_pick(b, cm_body_input(b, CM_BACK_Y), 1, p->d);
    p->r = cm_body_pick(b, cm_body_input(b, CM_BACK_R), 0, p->d);
    if (p->cell->n_kept)
        p->kept = cm_body_pick(b, cm_body_input(b, CM_BACK_RESERVE), 0, p->d);
    p->dy = cm_body_pick(b, cm_body_input(b, CM_BACK_DY), 1, p->d);
    if (!p->dy)
        p->dy = cm_build_zeros_like(&b->build, p->y);
    for (int s = 0; s < p->cell->n_states; s++) {
        cm_value first = cm_body_pick(b, cm_body_input(b, CM_BACK_STATE(s)), 0, p->d);
        if (!first)
            first = cm_body_zero_state(b, p->x, p->hidden);
        const cm_value after =
            s == 0 ? p->y : cm_build_part(&b->build, p->kept, p->hidden, p->cell->n_kept - 1);
        p->before[s] = shifted(p, first, after);
        p->d_state[s] = cm_body_pick(b, cm_body_input(b, CM_BACK_D_STATE(s)), 0, p->d);
        if (!p->d_state[s])
            p->d_state[s] = cm_body_zero_state(b, p->x, p->hidden);
    }
}

/* An input of the step's graph that is a slice of value, or all of it. */
static cm_value step_input(struct pass_back *p, struct cm_graph *graph, cm_value value, bool sliced)
{
    struct cm_arena *arena = cm_builder_arena(&p->b->build);
    const struct cm_type *type = cm_builder_type(&p->b->build, value);
    if (sliced && type->rank == 3)
        type = cm_type_tensor(arena, type->dtype, 2, type->dims + 1);
    else if (sliced)
        type =
            cm_type_tensor(arena, type->dtype, 2, (const struct cm_dim[]){CM_DIM_ANY, CM_DIM_ANY});
    return cm_graph_add_input(graph, CM_STR_NONE, type);
}

enum { SCANS = 3 }; /* dY, the last state before the step, and what it kept or gave */

static struct cm_graph *step_graph(struct pass_back *p, const cm_value *scans, bool *same)
{
    struct cm_body *b = p->b;
    struct cm_graph *graph = cm_graph_new(b->build.graph->module, b->build.graph, CM_STR("step"));
    struct cm_rnn_step_back step = {.build = {.graph = graph, .err = b->build.err},
                                    .call = b,
                                    .direction = p->d,
                                    .hidden = p->hidden};
    const int n_states = p->cell->n_states;
    cm_value outputs[CM_MAX_STATES + 2];
    for (int s = 0; s < n_states; s++)
        step.d_state[s] = step_input(p, graph, p->d_state[s], false);
    const cm_value dy = step_input(p, graph, scans[0], true);
    step.before[n_states - 1] = step_input(p, graph, scans[1], true);
    step.y = step.kept = step_input(p, graph, scans[2], true);
    step.d_state[0] = cm_emit(&step, "Add", step.d_state[0], dy);
    p->cell->step_back(&step);
    const cm_value product = cm_emit(&step, "MatMul", step.d_product, p->r);
    outputs[0] = step.d_state[0] ? cm_emit(&step, "Add", step.d_state[0], product) : product;
    for (int s = 1; s < n_states; s++)
        outputs[s] = step.d_state[s];
    size_t n_outputs = (size_t)n_states;
    *same = step.d_product == step.d_input;
    outputs[n_outputs++] = step.d_input;
    if (!*same)
        outputs[n_outputs++] = step.d_product;
    if (step.build.status && !b->build.status)
        b->build.status = step.build.status;
    if (!b->build.status)
        cm_graph_set_outputs(graph, outputs, n_outputs);
    return graph;
}

static enum cm_status scan_back(struct pass_back *p)
{
    struct cm_body *b = p->b;
    const size_t n_states = (size_t)p->cell->n_states;
    const cm_value scans[SCANS] = {p->dy, p->before[n_states - 1],
                                   p->cell->n_kept ? p->kept : p->y};
    bool same;
    CM_TRY(b->build.status);
    struct cm_graph *graph = step_graph(p, scans, &same);
    CM_TRY(b->build.status);
    cm_value last[CM_MAX_STATES], results[2];
    const size_t n_results = same ? 1 : 2;
    cm_body_scan(b, graph, !p->reverse, n_states, p->d_state, SCANS, scans, last, n_results,
                 results);
    memcpy(p->d_state, last, n_states * sizeof last[0]);
    p->d_input = results[0];
    p->d_product = results[n_results - 1];
    return b->build.status;
}

/* (seq, batch, n) to (seq * batch, n) */
static cm_value flat(struct cm_body *b, cm_value x)
{
    return cm_emit_with(b, "Flatten",
                        CM_ATTRIBUTES(cm_attr_int(cm_builder_arena(&b->build), "axis", 2)), x);
}

/* Summed over all steps and samples: transposed d times x. */
static cm_value weight_gradient(struct cm_body *b, cm_value d, cm_value x)
{
    const int64_t swap[] = {1, 0};
    return cm_emit(b, "MatMul", cm_body_transpose(b, flat(b, d), 2, swap), flat(b, x));
}

static cm_value bias_gradient(struct cm_body *b, cm_value d)
{
    struct cm_arena *arena = cm_builder_arena(&b->build);
    return cm_emit_with(b, "ReduceSum", CM_ATTRIBUTES(cm_attr_int(arena, "keepdims", 0)), d,
                        cm_emit_int64s(b, 0, 1));
}

enum cm_status cm_recurrent_grad_body(struct cm_body *b)
{
    const struct cm_cell *cell = b->node->op->arg;
    const struct cm_dim hidden =
        cm_recurrent_hidden(b->node, cm_builder_type(&b->build, cm_body_input(b, CM_BACK_R)));
    cm_value parts[CM_BACK_RESULTS][CM_DIRECTIONS] = {{0}}, dx = 0;
    struct cm_recurrent_form form;
    cm_recurrent_form(b->node, cell->n_activations, cell->activations, &form);
    if (!cm_dim_known(hidden))
        return cm_body_decline(b, "the hidden size is not known");
    for (int d = 0; d < form.directions; d++) {
        struct pass_back p = {
            .b = b, .cell = cell, .d = d, .reverse = form.reverse[d], .hidden = hidden.value};
        load_operands(&p);
        CM_TRY(scan_back(&p));
        parts[CM_BACK_DW][d] = weight_gradient(b, p.d_input, p.x);
        parts[CM_BACK_DR][d] = weight_gradient(b, p.d_product, p.before[0]);
        parts[CM_BACK_DB][d] =
            concat(b, bias_gradient(b, p.d_input), bias_gradient(b, p.d_product), 0);
        for (int s = 0; s < cell->n_states; s++)
            parts[CM_BACK_DH + s][d] = p.d_state[s];
        const cm_value w = cm_body_pick(b, cm_body_input(b, CM_BACK_W), 0, d);
        const cm_value of_input = cm_emit(b, "MatMul", p.d_input, w);
        dx = dx ? cm_emit(b, "Add", dx, of_input) : of_input;
    }
    if (cm_body_wants(b, CM_BACK_DX))
        CM_TRY(cm_body_return(b, CM_BACK_DX, dx));
    for (int o = CM_BACK_DW; o < CM_BACK_DH + cell->n_states; o++)
        if (cm_body_wants(b, o))
            CM_TRY(cm_body_return(b, o, cm_body_join(b, parts[o], form.directions, 0)));
    return b->build.status;
}

/* ---- the rule ---- */

bool cm_recurrent_grad_fits(const struct cm_node *node)
{
    const struct cm_cell *cell = node->op->arg;
    const struct cm_type *x = cm_value_get(node->module, cm_node_input(node, IN_X))->fact.type;
    return (x->dtype == CM_FLOAT || x->dtype == CM_DOUBLE) && !cm_node_input(node, IN_LENS) &&
           !cm_node_input(node, IN_P) && cm_node_int(node, "layout") == 0 &&
           !cm_node_attr(node, "clip") && cm_node_int(node, "input_forget") == 0 &&
           (!cm_node_has_attr(node, "linear_before_reset") ||
            cm_node_int(node, "linear_before_reset") != 0) &&
           knows_activations(node, cell);
}

/* The attributes that the gradient has too; activations only where there is a choice. */
static size_t copy_attributes(const struct cm_node *node, const struct cm_cell *cell,
                              struct cm_attribute_proto *to)
{
    static const char *const names[] = {"direction", "hidden_size", "activations"};
    size_t n = 0;
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        const struct cm_attribute_proto *given = cm_node_attr(node, names[i]);
        if (given && (i < 2 || cell->n_activations == 1))
            to[n++] = *given;
    }
    return n;
}

enum cm_status cm_recurrent_grad(struct cm_grad *g)
{
    const struct cm_cell *cell = g->node->op->arg;
    struct cm_attribute_proto attributes[3];
    cm_value operands[CM_BACK_OPERANDS] = {0}, results[CM_BACK_RESULTS] = {0};
    if (cell->training)
        CM_TRY(cm_grad_replace_forward(g, "ai.cameo", cell->training, (size_t)cell->n_states + 2));
    operands[CM_BACK_X] = cm_grad_input(g, IN_X);
    operands[CM_BACK_W] = cm_grad_input(g, IN_W);
    operands[CM_BACK_R] = cm_grad_input(g, IN_R);
    operands[CM_BACK_Y] = cm_grad_extra_output(g, 0);
    operands[CM_BACK_RESERVE] = cell->n_kept ? cm_grad_output(g, cell->n_states + 1) : 0;
    for (int i = 0; i < cell->n_states; i++)
        operands[CM_BACK_STATE(i)] = cm_grad_input(g, IN_H + i);
    for (int o = 0; o <= cell->n_states && o < g->n_incoming; o++)
        operands[o == 0 ? CM_BACK_DY : CM_BACK_D_STATE(o - 1)] = g->incoming[o];
    size_t n_operands = CM_BACK_OPERANDS;
    while (!operands[n_operands - 1])
        n_operands--;
    const size_t n_attributes = copy_attributes(g->node, cell, attributes);
    cm_build(&g->build, &(struct cm_emission){.op = cell->gradient,
                                              .inputs = operands,
                                              .n_inputs = n_operands,
                                              .attributes = attributes,
                                              .n_attributes = n_attributes,
                                              .n_outputs = (size_t)(CM_BACK_DH + cell->n_states),
                                              .outputs = results});
    CM_TRY(g->build.status);
    const int of_input[] = {IN_X, IN_W, IN_R, IN_B, IN_H, IN_C};
    for (int o = 0; o < CM_BACK_DH + cell->n_states; o++)
        if (cm_grad_wants(g, of_input[o]))
            CM_TRY(cm_grad_set(g, of_input[o], results[o]));
    return CM_OK;
}
