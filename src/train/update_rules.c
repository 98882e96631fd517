/* What is done with gradients: learning rate schedule, accumulation, clipping, optimizers, in
 * operators that mean the same from opset 17 on. An optimizer's name means what it means in
 * PyTorch, formula and defaults. */
// SPDX-License-Identifier: Apache-2.0
#include "train/preparation.h"

#include <math.h>

/* A number that formulas ask for by name. */
struct number {
    const char *name;
    double value;
    cm_value computed; /* in double, when the step computes it; 0: a constant */
};

enum { NUMBER_MAX = 40, STATE_MAX = 2 };

struct update {
    struct cm_preparation *p;
    const struct rule *rule;
    double lr, momentum, weight_decay, beta1, beta2, epsilon;
    struct number numbers[NUMBER_MAX];
    size_t n_numbers;
    cm_value apply; /* accumulating: is this the batch that moves the weights? */
};

/* A weight on its way through a formula; w and g are its value and its gradient. */
struct moving {
    struct cm_str name;
    enum cm_dtype dtype; /* that it is moved in */
    const struct cm_type *type;
    cm_value w, g;
    struct cm_prepared_binding states[STATE_MAX];
    size_t n_states;
};

typedef cm_value rule_fn(struct update *u, struct moving *m);

struct rule {
    const char *name;
    double lr, momentum, weight_decay, beta1, beta2, epsilon; /* defaults; NAN: it has none */
    rule_fn *emit;
    bool decoupled; /* weight decay is in the formula, not in the gradient */
};

static const struct cm_str training = {"training", 8};

static void set_number(struct update *u, const char *name, double value)
{
    if (u->n_numbers < NUMBER_MAX)
        u->numbers[u->n_numbers++] = (struct number){.name = name, .value = value};
}

static cm_value set_computed(struct update *u, const char *name, cm_value value)
{
    if (u->n_numbers < NUMBER_MAX)
        u->numbers[u->n_numbers++] = (struct number){.name = name, .computed = value};
    return value;
}

/* Numbers of a step are computed in double and rounded once, to the type of the weights: 1 - beta^t
 * would lose half its digits in float. */
static cm_value number(struct update *u, const char *name, enum cm_dtype dtype)
{
    struct cm_preparation *p = u->p;
    size_t i = u->n_numbers - 1;

    while (i > 0 && strcmp(u->numbers[i].name, name) != 0)
        i--;
    const struct number *found = &u->numbers[i];
    if (!found->computed)
        return cm_preparation_scalar(p, name, dtype, found->value);
    if (dtype == CM_DOUBLE)
        return found->computed;
    cm_value *rounded = cm_preparation_number(p, name, dtype);
    if (!*rounded)
        *rounded = cm_preparation_call(
            p, cm_preparation_cast(p, found->computed, dtype),
            cm_preparation_name(p, "training.%s.%s", name, cm_dtype_name(dtype)));
    return *rounded;
}

/* A number in double, as schedules compute with. */
static cm_value exact(struct update *u, const char *name)
{
    return number(u, name, CM_DOUBLE);
}

#define STEP_TERM(u, word, op, ...) cm_term((u)->p, training, word, op, __VA_ARGS__)
#define TERM(u, m, word, op, ...)   cm_term((u)->p, (m)->name, word, op, __VA_ARGS__)

/* ---- optimizers: each returns the weight's next value ---- */

/* A variable of zeros, "W.what", of the weight's shape. */
static cm_value state(struct update *u, struct moving *m, const char *what)
{
    const struct cm_str name = cm_preparation_name(u->p, "%.*s.%s", CM_STR_FMT(m->name), what);

    return m->states[m->n_states++].state = cm_preparation_state(u->p, name, m->dtype, m->type);
}

/* What a state becomes. */
static cm_value keep(struct update *u, struct moving *m, size_t which, cm_value next)
{
    const struct cm_str name = cm_preparation_name_of(u->p, m->states[which].state);

    return m->states[which].next = cm_preparation_term(u->p, name, "next", next);
}

/* By a multiple of direction. */
static cm_value move(struct update *u, const struct moving *m, cm_value lr, cm_value direction)
{
    return cm_emit(u->p, "Sub", m->w, TERM(u, m, "move", "Mul", lr, direction));
}

/* With momentum, if there is one; nesterov looks ahead along it. */
static cm_value sgd(struct update *u, struct moving *m)
{
    const bool moves_on = u->momentum > 0, ahead = strcmp(u->rule->name, "nesterov") == 0;
    const cm_value velocity = moves_on ? state(u, m, "velocity") : 0;
    const cm_value lr = number(u, "lr", m->dtype);
    const cm_value factor = moves_on ? number(u, "momentum", m->dtype) : 0;

    if (!moves_on)
        return move(u, m, lr, m->g);
    const cm_value kept = TERM(u, m, "kept", "Mul", factor, velocity);
    const cm_value next = keep(u, m, 0, cm_emit(u->p, "Add", kept, m->g));
    if (!ahead)
        return move(u, m, lr, next);
    const cm_value further = TERM(u, m, "ahead", "Mul", factor, next);
    return move(u, m, lr, TERM(u, m, "slope", "Add", m->g, further));
}

/* What Adam moves a weight by. */
static cm_value adam_move(struct update *u, struct moving *m)
{
    const cm_value exp_avg = state(u, m, "exp_avg"), exp_avg_sq = state(u, m, "exp_avg_sq");
    const cm_value step_size = number(u, "step_size", m->dtype), root = number(u, "root", m->dtype);
    const cm_value beta1 = number(u, "beta1", m->dtype), rest1 = number(u, "rest1", m->dtype);
    const cm_value beta2 = number(u, "beta2", m->dtype), rest2 = number(u, "rest2", m->dtype);
    const cm_value epsilon = number(u, "epsilon", m->dtype);
    if (u->rule->decoupled)
        (void)number(u, "shrink", m->dtype);
    const cm_value mean_kept = TERM(u, m, "mean_kept", "Mul", beta1, exp_avg);
    const cm_value mean_new = TERM(u, m, "mean_new", "Mul", rest1, m->g);
    const cm_value mean = keep(u, m, 0, cm_emit(u->p, "Add", mean_kept, mean_new));
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    const cm_value square_kept = TERM(u, m, "square_kept", "Mul", beta2, exp_avg_sq);
    const cm_value square_new = TERM(u, m, "square_new", "Mul", rest2, square);
    const cm_value squares = keep(u, m, 1, cm_emit(u->p, "Add", square_kept, square_new));
    const cm_value spread = TERM(u, m, "spread", "Sqrt", squares);
    const cm_value corrected = TERM(u, m, "corrected", "Div", spread, root);
    const cm_value size = TERM(u, m, "size", "Add", corrected, epsilon);
    const cm_value direction = TERM(u, m, "direction", "Div", mean, size);

    return TERM(u, m, "move", "Mul", step_size, direction);
}

static cm_value adam(struct update *u, struct moving *m)
{
    return cm_emit(u->p, "Sub", m->w, adam_move(u, m));
}

static cm_value adamw(struct update *u, struct moving *m)
{
    const cm_value by = adam_move(u, m);
    const cm_value shrunk = TERM(u, m, "shrunk", "Mul", m->w, number(u, "shrink", m->dtype));

    return cm_emit(u->p, "Sub", shrunk, by);
}

static cm_value adagrad(struct update *u, struct moving *m)
{
    const cm_value sum = state(u, m, "sum");
    const cm_value lr = number(u, "lr", m->dtype), epsilon = number(u, "epsilon", m->dtype);
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    const cm_value next = keep(u, m, 0, cm_emit(u->p, "Add", sum, square));
    const cm_value spread = TERM(u, m, "spread", "Sqrt", next);
    const cm_value size = TERM(u, m, "size", "Add", spread, epsilon);

    return move(u, m, lr, TERM(u, m, "direction", "Div", m->g, size));
}

static cm_value rmsprop(struct update *u, struct moving *m)
{
    const bool moves_on = u->momentum > 0;
    const cm_value velocity = moves_on ? state(u, m, "velocity") : 0;
    const cm_value average = state(u, m, "square_avg");
    const cm_value lr = number(u, "lr", m->dtype);
    const cm_value beta2 = number(u, "beta2", m->dtype), rest2 = number(u, "rest2", m->dtype);
    const cm_value epsilon = number(u, "epsilon", m->dtype);
    const cm_value factor = moves_on ? number(u, "momentum", m->dtype) : 0;
    const cm_value square = TERM(u, m, "square", "Mul", m->g, m->g);
    const cm_value kept = TERM(u, m, "kept", "Mul", beta2, average);
    const cm_value new = TERM(u, m, "new", "Mul", rest2, square);
    const cm_value next = keep(u, m, moves_on, cm_emit(u->p, "Add", kept, new));
    const cm_value spread = TERM(u, m, "spread", "Sqrt", next);
    const cm_value size = TERM(u, m, "size", "Add", spread, epsilon);
    cm_value direction = TERM(u, m, "direction", "Div", m->g, size);
    if (moves_on) {
        const cm_value old = TERM(u, m, "old", "Mul", factor, velocity);
        direction = keep(u, m, 0, cm_emit(u->p, "Add", old, direction));
    }
    return move(u, m, lr, direction);
}

static const struct rule rules[] = {
    {"sgd", 1e-3, 0, 0, NAN, NAN, NAN, sgd, false},
    {"momentum", 1e-3, 0.9, 0, NAN, NAN, NAN, sgd, false},
    {"nesterov", 1e-3, 0.9, 0, NAN, NAN, NAN, sgd, false},
    {"adam", 1e-3, NAN, 0, 0.9, 0.999, 1e-8, adam, false},
    {"adamw", 1e-3, NAN, 1e-2, 0.9, 0.999, 1e-8, adamw, true},
    {"adagrad", 1e-2, NAN, 0, NAN, NAN, 1e-10, adagrad, false},
    {"rmsprop", 1e-2, 0, 0, NAN, 0.99, 1e-8, rmsprop, false},
};

static const struct rule *find_rule(const char *name)
{
    for (size_t i = 0; name && i < CM_COUNT(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

static double given(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* ---- checking what was asked for ---- */

static void check_number(struct cm_preparation *p, const char *flag, double value, double preset,
                         double below)
{
    const char *optimizer = p->options->optimizer;

    if (isnan(value))
        return;
    if (isnan(preset))
        cm_preparation_block(p, "%s does not apply to %s", flag, optimizer);
    else if (!(value >= 0 && value < below))
        cm_preparation_block(p, "%s is %g, must be at least 0%s", flag, value,
                             below == 1 ? " and below 1" : "");
}

static void check_schedule(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;

    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule_steps <= 0)
        cm_preparation_block(p, "the schedule needs a number of steps (schedule_steps)");
    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule != CM_SCHEDULE_STEP &&
        o->schedule_steps > 0 && o->warmup >= o->schedule_steps)
        cm_preparation_block(
            p, "%lld steps of warmup are as long as the whole schedule of %lld steps or longer",
            (long long)o->warmup, (long long)o->schedule_steps);
    if (o->warmup < 0)
        cm_preparation_block(p, "%lld steps of warmup: expected 0 or more", (long long)o->warmup);
    if (o->accumulate < 0)
        cm_preparation_block(p, "gradients of %lld batches cannot be averaged: expected at least 1",
                             (long long)o->accumulate);
    if (!(o->clip_norm >= 0))
        cm_preparation_block(
            p, "gradients cannot be clipped to a norm of %g: expected 0 (no clipping) or more",
            o->clip_norm);
}

void cm_update_check(struct cm_preparation *p)
{
    const struct cm_prepare_options *o = p->options;
    const struct rule *rule = find_rule(o->optimizer);

    if (!rule) {
        cm_preparation_block(
            p,
            "there is no optimizer '%.60s'; there are sgd, momentum, nesterov, adam, "
            "adamw, adagrad and rmsprop",
            o->optimizer ? o->optimizer : "");
        return;
    }
    check_number(p, "lr", o->lr, rule->lr, INFINITY);
    check_number(p, "momentum", o->momentum, rule->momentum, INFINITY);
    check_number(p, "weight_decay", o->weight_decay, rule->weight_decay, INFINITY);
    check_number(p, "beta1", o->beta1, rule->beta1, 1);
    check_number(p, "beta2", o->beta2, rule->beta2, 1);
    check_number(p, "epsilon", o->epsilon, rule->epsilon, INFINITY);
    if (strcmp(rule->name, "nesterov") == 0 && o->momentum == 0)
        cm_preparation_block(p, "nesterov needs a momentum above 0");
    check_schedule(p);
}

/* ---- one step's numbers ---- */

static void set_numbers(struct update *u)
{
    const struct cm_prepare_options *o = u->p->options;
    const double pi = 3.14159265358979323846;

    set_number(u, "lr_base", u->lr);
    set_number(u, "momentum", u->momentum);
    set_number(u, "weight_decay", u->weight_decay);
    set_number(u, "beta1", u->beta1);
    set_number(u, "rest1", 1 - u->beta1);
    set_number(u, "beta2", u->beta2);
    set_number(u, "rest2", 1 - u->beta2);
    set_number(u, "epsilon", u->epsilon);
    set_number(u, "one", 1);
    set_number(u, "zero", 0);
    set_number(u, "half", 0.5);
    set_number(u, "pi", pi);
    set_number(u, "half_pi", pi / 2);
    set_number(u, "warmup", (double)o->warmup);
    set_number(u, "period", (double)o->schedule_steps);
    set_number(u, "span", (double)(o->schedule_steps - o->warmup));
    set_number(u, "schedule_factor", o->schedule_factor);
    set_number(u, "clip_norm", o->clip_norm);
    set_number(u, "tiny", 1e-6);
    set_number(u, "share", 1.0 / (double)(o->accumulate > 1 ? o->accumulate : 1));
}

/* past says where in the schedule proper a step is, in steps. */
typedef cm_value schedule_fn(struct update *u, cm_value past);

static cm_value by_step(struct update *u, cm_value past)
{
    const cm_value period = exact(u, "period"), factor = exact(u, "schedule_factor");
    const cm_value periods = STEP_TERM(u, "periods", "Div", past, period);
    const cm_value whole = STEP_TERM(u, "whole", "Floor", periods);

    return STEP_TERM(u, "factor", "Pow", factor, whole);
}

/* How much of the schedule is over, 0 to 1. */
static cm_value part_of(struct update *u, cm_value past, cm_value span, cm_value one)
{
    const cm_value part = STEP_TERM(u, "part", "Div", past, span);

    return STEP_TERM(u, "part_capped", "Min", part, one);
}

static cm_value by_line(struct update *u, cm_value past)
{
    const cm_value span = exact(u, "span"), one = exact(u, "one");

    return STEP_TERM(u, "factor", "Sub", one, part_of(u, past, span, one));
}

/* (1 + cos(pi * part)) / 2; written with Sin, which more runtimes have for double. */
static cm_value by_cosine(struct update *u, cm_value past)
{
    const cm_value span = exact(u, "span"), one = exact(u, "one"), half = exact(u, "half");
    const cm_value pi = exact(u, "pi"), half_pi = exact(u, "half_pi");
    const cm_value angle = STEP_TERM(u, "angle", "Mul", part_of(u, past, span, one), pi);
    const cm_value turned = STEP_TERM(u, "turned", "Add", angle, half_pi);
    const cm_value wave = STEP_TERM(u, "wave", "Sin", turned);
    const cm_value raised = STEP_TERM(u, "raised", "Add", one, wave);

    return STEP_TERM(u, "factor", "Mul", raised, half);
}

static schedule_fn *const schedules[] = {
    [CM_SCHEDULE_STEP] = by_step,
    [CM_SCHEDULE_COSINE] = by_cosine,
    [CM_SCHEDULE_LINEAR] = by_line,
};

/* Steps beyond the warmup. */
static cm_value beyond_warmup(struct update *u)
{
    const cm_value warmup = exact(u, "warmup"), zero = exact(u, "zero");
    const cm_value late = STEP_TERM(u, "late", "Sub", exact(u, "t"), warmup);

    return STEP_TERM(u, "past", "Max", late, zero);
}

/* The first update has a rate already: (t + 1) / warmup. */
static cm_value warm_up(struct update *u, cm_value factor)
{
    const cm_value warmup = exact(u, "warmup"), one = exact(u, "one");

    return STEP_TERM(u, "warmed", "Mul", factor, part_of(u, exact(u, "t_next"), warmup, one));
}

/* Where a new value of a state goes: through a switch when gradients are accumulated. */
static void bind(struct update *u, cm_value state, cm_value next)
{
    const struct cm_str name = cm_preparation_name_of(u->p, state);

    if (u->apply)
        next = cm_term(u->p, name, "kept", "Where", u->apply, next, state);
    cm_preparation_bind(u->p, state, next);
}

static void set_rate(struct update *u)
{
    struct cm_preparation *p = u->p;
    const struct cm_prepare_options *o = p->options;
    const cm_value step =
        cm_preparation_state(p, cm_preparation_name(p, "training.step"), CM_INT64, NULL);
    const cm_value more = cm_preparation_scalar(p, "one", CM_INT64, 1);
    const cm_value next = STEP_TERM(u, "step.next", "Add", step, more);

    set_computed(u, "t",
                 cm_preparation_term(p, training, "t", cm_preparation_cast(p, step, CM_DOUBLE)));
    set_computed(
        u, "t_next",
        cm_preparation_term(p, training, "t.next", cm_preparation_cast(p, next, CM_DOUBLE)));
    cm_value factor = exact(u, "one");
    if (o->schedule != CM_SCHEDULE_CONSTANT)
        factor = schedules[o->schedule](u, o->warmup > 0 ? beyond_warmup(u) : exact(u, "t"));
    if (o->warmup > 0)
        factor = warm_up(u, factor);
    const cm_value base = exact(u, "lr_base");
    const cm_value lr =
        cm_preparation_call(p, cm_emit(p, "Mul", base, factor), cm_preparation_name(p, "lr"));
    cm_preparation_give(p, set_computed(u, "lr", lr));
    bind(u, step, next);
}

/* Adam's, and what decoupled weight decay leaves of a weight. */
static void set_corrections(struct update *u)
{
    if (!isnan(u->rule->beta1)) {
        const cm_value t = exact(u, "t_next"), lr = exact(u, "lr");
        const cm_value beta1 = exact(u, "beta1"), beta2 = exact(u, "beta2"), one = exact(u, "one");
        const cm_value left1 = STEP_TERM(u, "left1", "Pow", beta1, t);
        const cm_value bias1 = STEP_TERM(u, "bias1", "Sub", one, left1);
        set_computed(u, "step_size", STEP_TERM(u, "step_size", "Div", lr, bias1));
        const cm_value left2 = STEP_TERM(u, "left2", "Pow", beta2, t);
        const cm_value bias2 = STEP_TERM(u, "bias2", "Sub", one, left2);
        set_computed(u, "root", STEP_TERM(u, "root", "Sqrt", bias2));
    }
    if (u->rule->decoupled) {
        const cm_value lr = exact(u, "lr"), rate = exact(u, "weight_decay"), one = exact(u, "one");
        const cm_value part = STEP_TERM(u, "part", "Mul", lr, rate);
        set_computed(u, "shrink", STEP_TERM(u, "shrink", "Sub", one, part));
    }
}

/* ---- gradients before they are used ---- */

/* A float16 is moved in float: its epsilon would be 0 and its squares would vanish. */
static enum cm_dtype dtype_of(const struct update *u, const struct cm_trained_weight *weight)
{
    return cm_wide_type(cm_preparation_type(u->p, weight->value)->dtype);
}

static bool is_narrow(const struct update *u, const struct cm_trained_weight *weight)
{
    return dtype_of(u, weight) != cm_preparation_type(u->p, weight->value)->dtype;
}

static void widen_gradient(struct update *u, struct cm_trained_weight *weight)
{
    const struct cm_str name = cm_preparation_name_of(u->p, weight->value);

    if (is_narrow(u, weight))
        weight->gradient =
            cm_preparation_term(u->p, name, "gradient.wide",
                                cm_preparation_cast(u->p, weight->gradient, dtype_of(u, weight)));
}

static void set_accumulation(struct update *u)
{
    struct cm_preparation *p = u->p;
    const int64_t count = p->options->accumulate;

    if (count <= 1)
        return;
    const cm_value batch =
        cm_preparation_state(p, cm_preparation_name(p, "training.batch"), CM_INT64, NULL);
    const cm_value more = cm_preparation_scalar(p, "one", CM_INT64, 1);
    const cm_value all = cm_preparation_scalar(p, "accumulate", CM_INT64, (double)count);
    const cm_value none = cm_preparation_scalar(p, "none", CM_INT64, 0);
    const cm_value seen = STEP_TERM(u, "seen", "Add", batch, more);
    const cm_value now = STEP_TERM(u, "apply", "Equal", seen, all);
    cm_preparation_bind(p, batch, STEP_TERM(u, "batch.next", "Where", now, none, seen));
    u->apply = now;
}

static void accumulate(struct update *u, struct cm_trained_weight *weight)
{
    struct cm_preparation *p = u->p;
    const enum cm_dtype dtype = dtype_of(u, weight);
    const struct cm_str name = cm_preparation_name_of(p, weight->value);
    const cm_value sum =
        cm_preparation_state(p, cm_preparation_name(p, "%.*s.gradient_sum", CM_STR_FMT(name)),
                             dtype, cm_preparation_type(p, weight->value));
    const cm_value share = number(u, "share", dtype);
    const cm_value part = cm_term(p, name, "part", "Mul", weight->gradient, share);
    const cm_value total = cm_term(p, name, "gradient_sum_next", "Add", sum, part);
    const cm_value zero = number(u, "zero", dtype);

    cm_preparation_bind(p, sum,
                        cm_term(p, name, "gradient_sum.kept", "Where", u->apply, zero, total));
    weight->gradient = total;
}

/* As clip_grad_norm_ has it. */
static void clip(struct update *u, struct cm_trained_weight *weights, size_t count)
{
    struct cm_preparation *p = u->p;
    cm_value *squares = CM_NEW_ARRAY(p->arena, cm_value, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = cm_preparation_name_of(p, weights[i].value);
        const cm_value square = cm_preparation_term(
            p, name, "square",
            cm_emit_with(p, "ReduceSumSquare", CM_ATTRIBUTES(cm_attr_int(p->arena, "keepdims", 0)),
                         weights[i].gradient));
        squares[i] =
            cm_preparation_term(p, name, "norm", cm_preparation_cast(p, square, CM_DOUBLE));
    }
    const cm_value total = cm_preparation_term(
        p, training, "square_norm",
        cm_build(&p->build,
                 &(struct cm_emission){.op = "Sum", .inputs = squares, .n_inputs = count}));
    const cm_value most = exact(u, "clip_norm"), tiny = exact(u, "tiny"), one = exact(u, "one");
    const cm_value norm =
        cm_preparation_call(p, cm_emit(p, "Sqrt", total), cm_preparation_name(p, "grad_norm"));
    const cm_value size = STEP_TERM(u, "size", "Add", norm, tiny);
    const cm_value ratio = STEP_TERM(u, "ratio", "Div", most, size);
    set_computed(u, "clip", STEP_TERM(u, "clip", "Min", ratio, one));
    cm_preparation_give(p, norm);
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = cm_preparation_name_of(p, weights[i].value);
        const cm_value factor = number(u, "clip", dtype_of(u, &weights[i]));
        weights[i].gradient =
            cm_term(p, name, "gradient.clipped", "Mul", weights[i].gradient, factor);
    }
}

/* ---- weights ---- */

static cm_value decay(struct update *u, const struct moving *m)
{
    const cm_value rate = number(u, "weight_decay", m->dtype);
    const cm_value pull = TERM(u, m, "pull", "Mul", rate, m->w);

    return TERM(u, m, "decayed", "Add", m->g, pull);
}

static void move_weight(struct update *u, const struct cm_trained_weight *weight)
{
    struct cm_preparation *p = u->p;
    struct moving m = {.name = cm_preparation_name_of(p, weight->value),
                       .dtype = dtype_of(u, weight),
                       .type = cm_preparation_type(p, weight->value),
                       .w = weight->value,
                       .g = weight->gradient};
    const bool narrow = is_narrow(u, weight);

    if (narrow)
        m.w = cm_preparation_term(p, m.name, "wide", cm_preparation_cast(p, m.w, m.dtype));
    if (u->weight_decay > 0 && !u->rule->decoupled)
        m.g = decay(u, &m);
    cm_value next = u->rule->emit(u, &m);
    if (narrow) {
        cm_preparation_term(p, m.name, "next.wide", next);
        next = cm_preparation_cast(p, next, m.type->dtype);
    }
    bind(u, weight->value, cm_preparation_term(p, m.name, "next", next));
    for (size_t s = 0; s < m.n_states; s++)
        bind(u, m.states[s].state, m.states[s].next);
}

void cm_update(struct cm_preparation *p, struct cm_trained_weight *weights, size_t count)
{
    const struct cm_prepare_options *o = p->options;
    const struct rule *rule = find_rule(o->optimizer);
    struct update u = {.p = p,
                       .rule = rule,
                       .lr = given(o->lr, rule->lr),
                       .momentum = given(o->momentum, rule->momentum),
                       .weight_decay = given(o->weight_decay, rule->weight_decay),
                       .beta1 = given(o->beta1, rule->beta1),
                       .beta2 = given(o->beta2, rule->beta2),
                       .epsilon = given(o->epsilon, rule->epsilon)};

    set_numbers(&u);
    set_accumulation(&u);
    set_rate(&u);
    set_corrections(&u);
    for (size_t i = 0; i < count; i++)
        widen_gradient(&u, &weights[i]);
    for (size_t i = 0; u.apply && i < count; i++)
        accumulate(&u, &weights[i]);
    if (o->clip_norm > 0)
        clip(&u, weights, count);
    for (size_t i = 0; i < count; i++)
        move_weight(&u, &weights[i]);
}
