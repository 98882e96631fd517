/* Optimizers: from a weight, its gradient and what was kept of earlier ones to the weight's next
 * value, in the arithmetic of the framework that the plan names. */
// SPDX-License-Identifier: Apache-2.0
#include "train/update.h"

#define TERM(u, m, word, op, ...) CM_MOVE_TERM(u, m, word, op, __VA_ARGS__)

/* ---- what formulas are made of ---- */

static cm_value number(struct cm_updating *u, const struct cm_moving *m, const char *name)
{
    return cm_update_number(u, m->group, name, m->dtype);
}

/* A variable of zeros, "W.what", of the weight's shape; slot: PyTorch's word for it. */
static cm_value state(struct cm_updating *u, struct cm_moving *m, const char *what,
                      const char *slot)
{
    struct cm_preparation *p = u->p;
    const struct cm_str name = cm_preparation_name(p, "%.*s.%s", CM_STR_FMT(m->name), what);

    *CM_PUSH(p->arena, &p->states) =
        (struct cm_plan_state){.weight = m->name, .state = name, .slot = slot};
    return m->states[m->n_states++].state =
               cm_preparation_state(p, name, m->dtype, cm_preparation_type(p, m->weight));
}

/* What a state becomes. */
static cm_value keep(struct cm_updating *u, struct cm_moving *m, size_t which, cm_value next)
{
    const struct cm_str name = cm_preparation_name_of(u->p, m->states[which].state);

    return m->states[which].next = cm_preparation_term(u->p, name, "next", next);
}

enum decay {
    DECAY_NONE,
    DECAY_GRADIENT, /* it is added to the gradient */
    DECAY_BEFORE,   /* the weight shrinks, then it is moved */
    DECAY_AFTER
};

static enum decay decay_of(const struct cm_updating *u, const struct cm_plan_group *group)
{
    if (!(group->weight_decay > 0))
        return DECAY_NONE;
    if (!group->decoupled)
        return DECAY_GRADIENT;
    return u->plan->arithmetic == CM_LIKE_ORT && group->adam_mode ? DECAY_AFTER : DECAY_BEFORE;
}

static cm_value shrunk(struct cm_updating *u, const struct cm_moving *m, cm_value w)
{
    return TERM(u, m, "shrunk", "Mul", w, number(u, m, "shrink"));
}

/* The weight, moved down by this, or up. */
static cm_value moved(struct cm_updating *u, const struct cm_moving *m, bool up, cm_value by)
{
    const enum decay decay = decay_of(u, &m->group->is);
    const cm_value from = decay == DECAY_BEFORE ? shrunk(u, m, m->w) : m->w;
    const cm_value next = cm_emit(u->p, up ? "Add" : "Sub", from, by);

    return decay == DECAY_AFTER ? shrunk(u, m, cm_preparation_term(u->p, m->name, "moved", next))
                                : next;
}

/* By a multiple of direction. */
static cm_value move(struct cm_updating *u, const struct cm_moving *m, cm_value lr,
                     cm_value direction)
{
    return moved(u, m, false, TERM(u, m, "move", "Mul", lr, direction));
}

/* kept * old + new * now: a moving average, or a sum that fades. */
static cm_value mix(struct cm_updating *u, struct cm_moving *m, size_t which,
                    const char *const *words, cm_value kept, cm_value new, cm_value now)
{
    const cm_value old = TERM(u, m, words[0], "Mul", kept, m->states[which].state);
    const cm_value part = TERM(u, m, words[1], "Mul", new, now);

    return keep(u, m, which, cm_emit(u->p, "Add", old, part));
}

/* ---- momentum ---- */

/* Velocities that hold the rate of their time: Keras's and optax's, which point down the slope, and
 * Keras's of RMSprop, which point up. */
static cm_value travel(struct cm_updating *u, struct cm_moving *m, cm_value direction, bool is_down)
{
    const cm_value lr = number(u, m, "lr"), factor = number(u, m, "momentum");
    const cm_value step = TERM(u, m, "move", "Mul", lr, direction);
    const cm_value kept = TERM(u, m, "kept", "Mul", factor, m->states[0].state);
    cm_value next = keep(u, m, 0, cm_emit(u->p, is_down ? "Sub" : "Add", kept, step));

    if (m->group->is.nesterov) {
        const cm_value further = TERM(u, m, "ahead", "Mul", factor, next);
        next = TERM(u, m, "slope", is_down ? "Sub" : "Add", further, step);
    }
    return moved(u, m, is_down, next);
}

/* With momentum, if there is one; nesterov looks ahead along it. */
static cm_value sgd(struct cm_updating *u, struct cm_moving *m)
{
    const struct cm_plan_group *group = &m->group->is;
    const bool moves_on = group->momentum > 0;
    const cm_value velocity = moves_on ? state(u, m, "velocity", "momentum_buffer") : 0;

    if (moves_on && u->plan->arithmetic == CM_LIKE_KERAS)
        return travel(u, m, m->g, true);
    const cm_value lr = number(u, m, "lr");
    if (!moves_on)
        return move(u, m, lr, m->g);
    const cm_value factor = number(u, m, "momentum");
    const cm_value kept = TERM(u, m, "kept", "Mul", factor, velocity);
    const cm_value added =
        group->dampening != 0 ? TERM(u, m, "damped", "Mul", number(u, m, "undamped"), m->g) : m->g;
    const cm_value next = keep(u, m, 0, cm_emit(u->p, "Add", kept, added));
    if (!group->nesterov)
        return move(u, m, lr, next);
    const cm_value further = TERM(u, m, "ahead", "Mul", factor, next);
    return move(u, m, lr, TERM(u, m, "slope", "Add", m->g, further));
}

/* ---- Adam ---- */

/* Where epsilon is added: to the root of the corrected mean of squares, to that of the plain one,
 * or under the root as well. */
enum adam_form { ADAM_TORCH, ADAM_KERAS, ADAM_OPTAX };

static enum adam_form form_of(const struct cm_updating *u, const struct cm_plan_group *group)
{
    const enum cm_arithmetic like = u->plan->arithmetic;

    if (like == CM_LIKE_KERAS || (like == CM_LIKE_ORT && group->adam_mode))
        return ADAM_KERAS;
    return like == CM_LIKE_OPTAX && (group->amsgrad || group->epsilon_root > 0) ? ADAM_OPTAX
                                                                                : ADAM_TORCH;
}

/* optax's Nesterov momentum: what the mean will be, corrected for the step after this. */
static cm_value look_ahead(struct cm_updating *u, struct cm_moving *m, cm_value mean)
{
    const cm_value later = TERM(u, m, "later", "Mul", number(u, m, "ahead1"), mean);
    const cm_value now = TERM(u, m, "now", "Mul", number(u, m, "now1"), m->g);

    return TERM(u, m, "ahead", "Add", later, now);
}

static cm_value adam(struct cm_updating *u, struct cm_moving *m)
{
    static const char *const mean_words[] = {"mean_kept", "mean_new"};
    static const char *const square_words[] = {"square_kept", "square_new"};
    const struct cm_plan_group *group = &m->group->is;
    const enum adam_form form = form_of(u, group);

    state(u, m, "exp_avg", "exp_avg");
    state(u, m, "exp_avg_sq", "exp_avg_sq");
    const cm_value most = group->amsgrad ? state(u, m, "max_exp_avg_sq", "max_exp_avg_sq") : 0;
    const cm_value step_size = number(u, m, group->nesterov ? "lr" : "step_size");
    const cm_value root = form == ADAM_TORCH ? number(u, m, "root") : 0;
    const cm_value beta1 = number(u, m, "beta1"), rest1 = number(u, m, "rest1");
    const cm_value beta2 = number(u, m, "beta2"), rest2 = number(u, m, "rest2");
    const cm_value epsilon = number(u, m, "epsilon");
    if (decay_of(u, group) >= DECAY_BEFORE)
        (void)number(u, m, "shrink");
    cm_value mean = mix(u, m, 0, mean_words, beta1, rest1, m->g);
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    cm_value squares = mix(u, m, 1, square_words, beta2, rest2, square);
    if (form == ADAM_OPTAX)
        squares = TERM(u, m, "unbiased", "Div", squares, number(u, m, "bias2"));
    if (group->amsgrad)
        squares = keep(u, m, 2, cm_emit(u->p, "Max", most, squares));
    if (form == ADAM_OPTAX)
        squares = TERM(u, m, "raised", "Add", squares, number(u, m, "epsilon_root"));
    const cm_value spread = TERM(u, m, "spread", "Sqrt", squares);
    const cm_value corrected =
        form == ADAM_TORCH ? TERM(u, m, "corrected", "Div", spread, root) : spread;
    const cm_value size = TERM(u, m, "size", "Add", corrected, epsilon);
    if (group->nesterov)
        mean = look_ahead(u, m, mean);

    return move(u, m, step_size, TERM(u, m, "direction", "Div", mean, size));
}

/* ---- rules that divide by a root of squares ---- */

/* The root, with epsilon behind it as in PyTorch or under it. */
static cm_value size_of(struct cm_updating *u, struct cm_moving *m, cm_value squares)
{
    const bool is_under = u->plan->arithmetic != CM_LIKE_TORCH;
    const cm_value epsilon = number(u, m, "epsilon");
    const cm_value under = is_under ? TERM(u, m, "raised", "Add", squares, epsilon) : squares;
    const cm_value spread = TERM(u, m, "spread", "Sqrt", under);

    return is_under ? spread : TERM(u, m, "size", "Add", spread, epsilon);
}

static cm_value adagrad(struct cm_updating *u, struct cm_moving *m)
{
    const cm_value sum = state(u, m, "sum", "sum");
    const cm_value lr = number(u, m, "lr");
    (void)number(u, m, "epsilon");
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    const cm_value next = keep(u, m, 0, cm_emit(u->p, "Add", sum, square));
    const cm_value size = size_of(u, m, next);

    return move(u, m, lr, TERM(u, m, "direction", "Div", m->g, size));
}

static cm_value rmsprop(struct cm_updating *u, struct cm_moving *m)
{
    static const char *const words[] = {"kept", "new"};
    static const char *const mean_words[] = {"mean_kept", "mean_new"};
    const struct cm_plan_group *group = &m->group->is;
    const bool moves_on = group->momentum > 0;
    const cm_value velocity = moves_on ? state(u, m, "velocity", "momentum_buffer") : 0;

    state(u, m, "square_avg", "square_avg");
    if (group->centered)
        state(u, m, "grad_avg", "grad_avg");
    const cm_value lr = number(u, m, "lr");
    const cm_value beta2 = number(u, m, "beta2"), rest2 = number(u, m, "rest2");
    (void)number(u, m, "epsilon");
    const cm_value factor = moves_on ? number(u, m, "momentum") : 0;
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    cm_value squares = mix(u, m, moves_on, words, beta2, rest2, square);
    if (group->centered) {
        const cm_value mean = mix(u, m, moves_on + 1, mean_words, beta2, rest2, m->g);
        squares = TERM(u, m, "centered", "Sub", squares, TERM(u, m, "center", "Mul", mean, mean));
    }
    const cm_value size = size_of(u, m, squares);
    cm_value direction = TERM(u, m, "direction", "Div", m->g, size);
    if (moves_on && u->plan->arithmetic != CM_LIKE_TORCH)
        return travel(u, m, direction, u->plan->arithmetic == CM_LIKE_OPTAX);
    if (moves_on) {
        const cm_value old = TERM(u, m, "old", "Mul", factor, velocity);
        direction = keep(u, m, 0, cm_emit(u->p, "Add", old, direction));
    }
    return move(u, m, lr, direction);
}

typedef cm_value rule_fn(struct cm_updating *u, struct cm_moving *m);

static rule_fn *const rules[] = {[CM_RULE_SGD] = sgd,
                                 [CM_RULE_ADAM] = adam,
                                 [CM_RULE_ADAGRAD] = adagrad,
                                 [CM_RULE_RMSPROP] = rmsprop};

/* ---- numbers of a group that a step computes ---- */

/* Updates that weights of the group have seen, given those that training.step has counted. */
static cm_value counted(struct cm_updating *u, const struct cm_plan_group *group, const char *name,
                        const char *least)
{
    const cm_value t = cm_update_exact(u, name);

    if (!group->step_offset)
        return t;
    const cm_value offset = cm_preparation_scalar(
        u->p, cm_arena_printf(u->p->arena, "offset.%lld", (long long)group->step_offset).data,
        CM_DOUBLE, (double)group->step_offset);
    const cm_value own = CM_STEP_TERM(u, "t.own", "Add", t, offset);
    /* after a reset, training.step is less than it was when the group came */
    return group->step_offset < 0
               ? CM_STEP_TERM(u, "t.begun", "Max", own, cm_update_exact(u, least))
               : own;
}

static void correct_adam(struct cm_updating *u, struct cm_update_group *group)
{
    const enum adam_form form = form_of(u, &group->is);
    const cm_value t = counted(u, &group->is, "t_next", "one");
    const cm_value lr = cm_update_number(u, group, "lr", CM_DOUBLE);
    const cm_value beta1 = cm_update_number(u, group, "beta1", CM_DOUBLE);
    const cm_value beta2 = cm_update_number(u, group, "beta2", CM_DOUBLE);
    const cm_value one = cm_update_exact(u, "one");
    const cm_value left1 = CM_STEP_TERM(u, "left1", "Pow", beta1, t);
    const cm_value bias1 = CM_STEP_TERM(u, "bias1", "Sub", one, left1);
    cm_value step_size = CM_STEP_TERM(u, "step_size", "Div", lr, bias1);
    if (form != ADAM_KERAS)
        cm_update_compute(u, group, "step_size", step_size);
    const cm_value left2 = CM_STEP_TERM(u, "left2", "Pow", beta2, t);
    const cm_value bias2 = CM_STEP_TERM(u, "bias2", "Sub", one, left2);
    cm_update_compute(u, group, "bias2", bias2);
    if (group->is.nesterov) {
        const cm_value after = CM_STEP_TERM(u, "left_after", "Mul", left1, beta1);
        const cm_value bias_after = CM_STEP_TERM(u, "bias_after", "Sub", one, after);
        const cm_value rest1 = cm_update_number(u, group, "rest1", CM_DOUBLE);
        cm_update_compute(u, group, "ahead1", CM_STEP_TERM(u, "ahead1", "Div", beta1, bias_after));
        cm_update_compute(u, group, "now1", CM_STEP_TERM(u, "now1", "Div", rest1, bias1));
    }
    if (form == ADAM_OPTAX)
        return;
    const cm_value root =
        cm_update_compute(u, group, "root", CM_STEP_TERM(u, "root", "Sqrt", bias2));
    if (form == ADAM_KERAS)
        cm_update_compute(u, group, "step_size",
                          CM_STEP_TERM(u, "step_size", "Mul", step_size, root));
}

void cm_update_corrections(struct cm_updating *u, struct cm_update_group *group)
{
    if (u->plan->rule == CM_RULE_ADAM)
        correct_adam(u, group);
    if (decay_of(u, &group->is) >= DECAY_BEFORE) { /* what weight decay leaves of a weight */
        const cm_value lr = cm_update_number(u, group, "lr", CM_DOUBLE);
        const cm_value rate = cm_update_number(u, group, "weight_decay", CM_DOUBLE);
        const cm_value one = cm_update_exact(u, "one");
        const cm_value part = CM_STEP_TERM(u, "part", "Mul", lr, rate);
        cm_update_compute(u, group, "shrink", CM_STEP_TERM(u, "shrink", "Sub", one, part));
    }
    if (u->plan->rule == CM_RULE_SGD && group->is.dampening != 0) {
        /* the first velocity is the whole gradient */
        const cm_value share = cm_update_number(u, group, "undamped", CM_DOUBLE);
        const cm_value one = cm_update_exact(u, "one"), half = cm_update_exact(u, "half");
        const cm_value t = counted(u, &group->is, "t", "zero");
        const cm_value is_first = CM_STEP_TERM(u, "is_first", "Less", t, half);
        cm_update_compute(u, group, "undamped",
                          CM_STEP_TERM(u, "undamped", "Where", is_first, one, share));
    }
}

/* ---- weights ---- */

static cm_value decay(struct cm_updating *u, const struct cm_moving *m)
{
    const cm_value rate = number(u, m, "weight_decay");
    const cm_value pull = TERM(u, m, "pull", "Mul", rate, m->w);

    return TERM(u, m, "decayed", "Add", m->g, pull);
}

void cm_update_weight(struct cm_updating *u, struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const enum cm_dtype dtype = cm_preparation_type(p, m->weight)->dtype;

    m->w = m->weight;
    if (m->dtype != dtype)
        m->w = cm_preparation_term(p, m->name, "wide", cm_preparation_cast(p, m->w, m->dtype));
    if (m->group->is.maximize)
        m->g = TERM(u, m, "uphill", "Neg", m->g);
    if (decay_of(u, &m->group->is) == DECAY_GRADIENT)
        m->g = decay(u, m);
    cm_value next = rules[u->plan->rule](u, m);
    if (m->dtype != dtype) {
        cm_preparation_term(p, m->name, "next.wide", next);
        next = cm_preparation_cast(p, next, dtype);
    }
    cm_update_bind(u, m->weight, cm_preparation_term(p, m->name, "next", next));
    for (size_t s = 0; s < m->n_states; s++)
        cm_update_bind(u, m->states[s].state, m->states[s].next);
}
