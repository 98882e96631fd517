/* What is done with gradients: learning rate schedule, accumulation, clipping, optimizers. Each is
 * a formula in ONNX text, of operators that mean the same from opset 17 on. An optimizer's name
 * means what it means in PyTorch, formula and defaults. */
// SPDX-License-Identifier: Apache-2.0
#include "train/draft.h"

#include "graph/builder.h"

#include <math.h>

/* ---- formulas ---- */

/* Numbers of a step are computed in double and rounded once, to the type of the weights: 1 - beta^t
 * would lose half its digits in float. */
static const char counted[] = "counted (step, one_more) => (step_next, t, t_next)"
                              "{"
                              "  step_next = Add (step, one_more)"
                              "  t = Cast <to = 11> (step)"
                              "  t_next = Cast <to = 11> (step_next)"
                              "}";
static const char scheduled[] = "scheduled (lr_base, factor) => (lr)"
                                "{"
                                "  lr = Mul (lr_base, factor)"
                                "}";
/* The first update has a rate already: (t + 1) / warmup. */
static const char ramp[] = "ramp (factor, t_next, warmup, one) => (warmed)"
                           "{"
                           "  part = Div (t_next, warmup)"
                           "  part_capped = Min (part, one)"
                           "  warmed = Mul (factor, part_capped)"
                           "}";
/* Where in the schedule proper, 0 to 1 for those that end. */
static const char beyond[] = "beyond (t, warmup, zero) => (past)"
                             "{"
                             "  late = Sub (t, warmup)"
                             "  past = Max (late, zero)"
                             "}";
static const char by_step[] = "by_step (past, period, schedule_factor) => (factor)"
                              "{"
                              "  periods = Div (past, period)"
                              "  whole = Floor (periods)"
                              "  factor = Pow (schedule_factor, whole)"
                              "}";
static const char by_line[] = "by_line (past, span, one) => (factor)"
                              "{"
                              "  part = Div (past, span)"
                              "  part_capped = Min (part, one)"
                              "  factor = Sub (one, part_capped)"
                              "}";
/* (1 + cos(pi * part)) / 2; written with Sin, which more runtimes have for double. */
static const char by_cosine[] = "by_cosine (past, span, one, half, pi, half_pi) => (factor)"
                                "{"
                                "  part = Div (past, span)"
                                "  part_capped = Min (part, one)"
                                "  angle = Mul (part_capped, pi)"
                                "  turned = Add (angle, half_pi)"
                                "  wave = Sin (turned)"
                                "  raised = Add (one, wave)"
                                "  factor = Mul (raised, half)"
                                "}";
static const char corrections[] = "corrections (t_next, lr, beta1, beta2, one) => (step_size, root)"
                                  "{"
                                  "  left1 = Pow (beta1, t_next)"
                                  "  bias1 = Sub (one, left1)"
                                  "  step_size = Div (lr, bias1)"
                                  "  left2 = Pow (beta2, t_next)"
                                  "  bias2 = Sub (one, left2)"
                                  "  root = Sqrt (bias2)"
                                  "}";
static const char shrinking[] = "shrinking (lr, weight_decay, one) => (shrink)"
                                "{"
                                "  part = Mul (lr, weight_decay)"
                                "  shrink = Sub (one, part)"
                                "}";

static const char decay[] = "decay (w, g, weight_decay) => (decayed)"
                            "{"
                            "  pull = Mul (weight_decay, w)"
                            "  decayed = Add (g, pull)"
                            "}";

static const char sgd[] = "sgd (w, g, lr) => (w_next)"
                          "{"
                          "  move = Mul (lr, g)"
                          "  w_next = Sub (w, move)"
                          "}";
static const char momentum[] = "momentum (w, g, lr, momentum, velocity) => (w_next, velocity_next)"
                               "{"
                               "  kept = Mul (momentum, velocity)"
                               "  velocity_next = Add (kept, g)"
                               "  move = Mul (lr, velocity_next)"
                               "  w_next = Sub (w, move)"
                               "}";
static const char nesterov[] = "nesterov (w, g, lr, momentum, velocity) => (w_next, velocity_next)"
                               "{"
                               "  kept = Mul (momentum, velocity)"
                               "  velocity_next = Add (kept, g)"
                               "  ahead = Mul (momentum, velocity_next)"
                               "  slope = Add (g, ahead)"
                               "  move = Mul (lr, slope)"
                               "  w_next = Sub (w, move)"
                               "}";
#define ADAM_MOMENTS                                                                               \
    "  mean_kept = Mul (beta1, exp_avg)"                                                           \
    "  mean_new = Mul (rest1, g)"                                                                  \
    "  exp_avg_next = Add (mean_kept, mean_new)"                                                   \
    "  square = Mul (g, g)"                                                                        \
    "  square_kept = Mul (beta2, exp_avg_sq)"                                                      \
    "  square_new = Mul (rest2, square)"                                                           \
    "  exp_avg_sq_next = Add (square_kept, square_new)"                                            \
    "  spread = Sqrt (exp_avg_sq_next)"                                                            \
    "  corrected = Div (spread, root)"                                                             \
    "  size = Add (corrected, epsilon)"                                                            \
    "  direction = Div (exp_avg_next, size)"                                                       \
    "  move = Mul (step_size, direction)"
static const char adam[] =
    "adam (w, g, step_size, root, beta1, rest1, beta2, rest2, epsilon, exp_avg, exp_avg_sq)"
    " => (w_next, exp_avg_next, exp_avg_sq_next)"
    "{" ADAM_MOMENTS "  w_next = Sub (w, move)"
    "}";
static const char adamw[] =
    "adamw (w, g, step_size, root, beta1, rest1, beta2, rest2, epsilon, shrink, exp_avg,"
    " exp_avg_sq) => (w_next, exp_avg_next, exp_avg_sq_next)"
    "{" ADAM_MOMENTS "  shrunk = Mul (w, shrink)"
    "  w_next = Sub (shrunk, move)"
    "}";
static const char adagrad[] = "adagrad (w, g, lr, epsilon, sum) => (w_next, sum_next)"
                              "{"
                              "  square = Mul (g, g)"
                              "  sum_next = Add (sum, square)"
                              "  spread = Sqrt (sum_next)"
                              "  size = Add (spread, epsilon)"
                              "  direction = Div (g, size)"
                              "  move = Mul (lr, direction)"
                              "  w_next = Sub (w, move)"
                              "}";
#define RMSPROP_DIRECTION                                                                          \
    "  square = Mul (g, g)"                                                                        \
    "  kept = Mul (beta2, square_avg)"                                                             \
    "  new = Mul (rest2, square)"                                                                  \
    "  square_avg_next = Add (kept, new)"                                                          \
    "  spread = Sqrt (square_avg_next)"                                                            \
    "  size = Add (spread, epsilon)"                                                               \
    "  direction = Div (g, size)"
static const char rmsprop[] =
    "rmsprop (w, g, lr, beta2, rest2, epsilon, square_avg) => (w_next, square_avg_next)"
    "{" RMSPROP_DIRECTION "  move = Mul (lr, direction)"
    "  w_next = Sub (w, move)"
    "}";
static const char rmsprop_momentum[] =
    "rmsprop (w, g, lr, beta2, rest2, epsilon, momentum, square_avg, velocity)"
    " => (w_next, square_avg_next, velocity_next)"
    "{" RMSPROP_DIRECTION "  old = Mul (momentum, velocity)"
    "  velocity_next = Add (old, direction)"
    "  move = Mul (lr, velocity_next)"
    "  w_next = Sub (w, move)"
    "}";

static const char averaged[] = "averaged (gradient_sum, gradient, share) => (gradient_sum_next)"
                               "{"
                               "  part = Mul (gradient, share)"
                               "  gradient_sum_next = Add (gradient_sum, part)"
                               "}";
static const char counting[] = "counting (batch, one_more, accumulate, none) => (apply, batch_next)"
                               "{"
                               "  seen = Add (batch, one_more)"
                               "  apply = Equal (seen, accumulate)"
                               "  batch_next = Where (apply, none, seen)"
                               "}";
static const char squared[] = "squared (g) => (norm)"
                              "{"
                              "  square = ReduceSumSquare <keepdims = 0> (g)"
                              "  norm = Cast <to = 11> (square)"
                              "}";
/* As clip_grad_norm_ has it. */
static const char clipping[] = "clipping (total, clip_norm, tiny, one) => (clip, grad_norm)"
                               "{"
                               "  grad_norm = Sqrt (total)"
                               "  size = Add (grad_norm, tiny)"
                               "  ratio = Div (clip_norm, size)"
                               "  clip = Min (ratio, one)"
                               "}";

/* ---- optimizers ---- */

struct rule {
    const char *name;
    double lr, momentum, weight_decay, beta1, beta2, epsilon; /* defaults; NAN: it has none */
    const char *text, *with_momentum; /* the second where a momentum above 0 changes the formula */
    bool decoupled;                   /* weight decay is in the formula, not in the gradient */
};

static const struct rule rules[] = {
    {"sgd", 1e-3, 0, 0, NAN, NAN, NAN, sgd, momentum, false},
    {"momentum", 1e-3, 0.9, 0, NAN, NAN, NAN, sgd, momentum, false},
    {"nesterov", 1e-3, 0.9, 0, NAN, NAN, NAN, nesterov, nesterov, false},
    {"adam", 1e-3, NAN, 0, 0.9, 0.999, 1e-8, adam, NULL, false},
    {"adamw", 1e-3, NAN, 1e-2, 0.9, 0.999, 1e-8, adamw, NULL, true},
    {"adagrad", 1e-2, NAN, 0, NAN, NAN, 1e-10, adagrad, NULL, false},
    {"rmsprop", 1e-2, 0, 0, NAN, 0.99, 1e-8, rmsprop, rmsprop_momentum, false},
};

/* What formulas keep from step to step. */
static const char *const states[] = {"velocity", "exp_avg", "exp_avg_sq", "sum", "square_avg"};

static const struct rule *find_rule(const char *name)
{
    for (size_t i = 0; name && i < CM_COUNT(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

/* A number a formula may ask for by name. */
struct number {
    const char *name;
    double value;
    struct cm_str computed; /* in double, when the step computes it; empty: a constant */
};

enum { NUMBER_MAX = 40 };

struct update {
    struct cm_draft *draft;
    const struct rule *rule;
    double lr, momentum, weight_decay, beta1, beta2, epsilon;
    struct number numbers[NUMBER_MAX];
    size_t n_numbers;
    struct cm_map cast;  /* "name type" to struct cm_str *: computed numbers in a weight's type */
    struct cm_str apply; /* accumulating: is this the batch that moves the weights? */
};

static double given(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static void set_number(struct update *u, const char *name, double value)
{
    if (u->n_numbers < NUMBER_MAX)
        u->numbers[u->n_numbers++] = (struct number){.name = name, .value = value};
}

static void set_computed(struct update *u, const char *name, struct cm_str value)
{
    if (u->n_numbers < NUMBER_MAX)
        u->numbers[u->n_numbers++] = (struct number){.name = name, .computed = value};
}

static const struct number *find_number(const struct update *u, struct cm_str name)
{
    for (size_t i = u->n_numbers; i-- > 0;)
        if (cm_str_is(name, u->numbers[i].name))
            return &u->numbers[i];
    return NULL;
}

static struct cm_str number_as(struct update *u, const struct number *number, enum cm_dtype dtype)
{
    struct cm_draft *draft = u->draft;

    if (!number->computed.size)
        return cm_draft_scalar(draft, number->name, dtype, number->value);
    if (dtype == CM_DOUBLE)
        return number->computed;
    bool added;
    const struct cm_str key = cm_arena_printf(draft->arena, "%s %d", number->name, (int)dtype);
    uint64_t *slot = cm_map_insert(&u->cast, draft->arena, key, &added);
    if (added) {
        struct cm_str *name = CM_NEW(draft->arena, struct cm_str);
        *name = cm_draft_name(draft, "training.%s.%s", number->name, cm_dtype_name(dtype));
        *slot = (uint64_t)(uintptr_t)name;
        struct cm_node_proto *node =
            cm_draft_node(draft, "", "Cast", 1, &number->computed, 1, name);
        cm_draft_attribute(draft, node, cm_attr_int(draft->arena, "to", dtype));
        return *name;
    }
    return *(const struct cm_str *)(uintptr_t)*slot;
}

/* The parameters of a formula: the words between the first brackets. */
static size_t parameters(const char *text, struct cm_str *out, size_t room)
{
    const char *at = strchr(text, '(') + 1;
    size_t count = 0;

    while (*at && *at != ')' && count < room) {
        const size_t size = strcspn(at, ",) ");
        if (size)
            out[count++] = (struct cm_str){at, size};
        at += size;
        at += strspn(at, ", ");
    }
    return count;
}

enum { PAIR_MAX = 24 };

/* Puts a formula there; its parameters are found among pairs, then among the numbers. */
static struct cm_str apply(struct update *u, const char *text, struct cm_str hint,
                           enum cm_dtype dtype, const struct cm_draft_pair *pairs, size_t n_pairs)
{
    struct cm_draft_pair all[PAIR_MAX];
    struct cm_str formals[PAIR_MAX];
    const size_t n_formals = parameters(text, formals, PAIR_MAX);
    size_t count = 0;

    for (; count < n_pairs; count++)
        all[count] = pairs[count];
    for (size_t i = 0; i < n_formals && count < PAIR_MAX; i++) {
        const struct number *number = find_number(u, formals[i]);
        bool known = false;
        for (size_t p = 0; p < n_pairs; p++)
            known = known || cm_str_is(formals[i], pairs[p].formal);
        if (!known && number)
            all[count++] = (struct cm_draft_pair){number->name, number_as(u, number, dtype)};
    }
    return cm_draft_apply(u->draft, text, hint, all, count);
}

/* ---- checking what was asked for ---- */

static void check_number(struct cm_draft *draft, const char *flag, double value, double preset,
                         double below)
{
    const char *optimizer = draft->options->optimizer;

    if (isnan(value))
        return;
    if (isnan(preset))
        cm_draft_block(draft, "%s means nothing to %s", flag, optimizer);
    else if (!(value >= 0 && value < below))
        cm_draft_block(draft, "%s is %g, must be at least 0%s", flag, value,
                       below == 1 ? " and below 1" : "");
}

static void check_schedule(struct cm_draft *draft)
{
    const struct cm_prepare_options *o = draft->options;

    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule_steps <= 0)
        cm_draft_block(draft, "the schedule needs its number of steps, schedule_steps");
    if (o->schedule != CM_SCHEDULE_CONSTANT && o->schedule != CM_SCHEDULE_STEP &&
        o->schedule_steps > 0 && o->warmup >= o->schedule_steps)
        cm_draft_block(draft, "%lld steps of warmup leave nothing of a schedule of %lld",
                       (long long)o->warmup, (long long)o->schedule_steps);
    if (o->warmup < 0)
        cm_draft_block(draft, "%lld steps of warmup make no sense", (long long)o->warmup);
    if (o->accumulate < 0)
        cm_draft_block(draft, "gradients of %lld batches cannot be averaged",
                       (long long)o->accumulate);
    if (!(o->clip_norm >= 0))
        cm_draft_block(draft, "gradients cannot be clipped to a norm of %g", o->clip_norm);
}

void cm_draft_update_check(struct cm_draft *draft)
{
    const struct cm_prepare_options *o = draft->options;
    const struct rule *rule = find_rule(o->optimizer);

    if (!rule) {
        cm_draft_block(draft,
                       "there is no optimizer '%.60s'; there are sgd, momentum, nesterov, adam, "
                       "adamw, adagrad and rmsprop",
                       o->optimizer ? o->optimizer : "");
        return;
    }
    check_number(draft, "lr", o->lr, rule->lr, INFINITY);
    check_number(draft, "momentum", o->momentum, rule->momentum, INFINITY);
    check_number(draft, "weight_decay", o->weight_decay, rule->weight_decay, INFINITY);
    check_number(draft, "beta1", o->beta1, rule->beta1, 1);
    check_number(draft, "beta2", o->beta2, rule->beta2, 1);
    check_number(draft, "epsilon", o->epsilon, rule->epsilon, INFINITY);
    if (rule->text == nesterov && o->momentum == 0)
        cm_draft_block(draft, "nesterov needs a momentum above 0");
    check_schedule(draft);
}

/* ---- one step's numbers ---- */

static void set_numbers(struct update *u)
{
    const struct cm_prepare_options *o = u->draft->options;
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

static const char *const schedules[] = {
    [CM_SCHEDULE_STEP] = by_step,
    [CM_SCHEDULE_COSINE] = by_cosine,
    [CM_SCHEDULE_LINEAR] = by_line,
};

/* Where a new value of a state goes: through a switch when gradients are accumulated. */
static void bind(struct update *u, struct cm_str key, struct cm_str value, enum cm_dtype dtype,
                 const struct cm_int64s *dims)
{
    struct cm_draft *draft = u->draft;

    if (u->apply.size) {
        const struct cm_str kept = cm_draft_name(draft, "%.*s.kept", CM_STR_FMT(key));
        cm_draft_node(draft, "", "Where", 3, (const struct cm_str[]){u->apply, value, key}, 1,
                      &kept);
        value = kept;
    }
    cm_draft_bind(draft, key, value, dtype, dims);
}

static const struct cm_str training = {"training", 8};

static void set_rate(struct update *u)
{
    struct cm_draft *draft = u->draft;
    const struct cm_prepare_options *o = draft->options;
    const struct cm_str step =
        cm_draft_state(draft, cm_draft_name(draft, "training.step"), CM_INT64, NULL);
    const struct cm_str next = cm_draft_name(draft, "training.step.next");
    const struct cm_str t = cm_draft_name(draft, "training.t");
    const struct cm_str t_next = cm_draft_name(draft, "training.t.next");
    const struct cm_draft_pair counters[] = {
        {"step", step},
        {"one_more", cm_draft_scalar(draft, "one", CM_INT64, 1)},
        {"step_next", next},
        {"t", t},
        {"t_next", t_next}};

    cm_draft_apply(draft, counted, training, counters, CM_COUNT(counters));
    set_computed(u, "t", t);
    set_computed(u, "t_next", t_next);
    struct cm_str factor = cm_draft_scalar(draft, "one", CM_DOUBLE, 1);
    if (o->schedule != CM_SCHEDULE_CONSTANT) {
        struct cm_str past = t;
        if (o->warmup > 0)
            past = apply(u, beyond, training, CM_DOUBLE, NULL, 0);
        factor = apply(u, schedules[o->schedule], training, CM_DOUBLE,
                       &(const struct cm_draft_pair){"past", past}, 1);
    }
    if (o->warmup > 0)
        factor =
            apply(u, ramp, training, CM_DOUBLE, &(const struct cm_draft_pair){"factor", factor}, 1);
    const struct cm_str lr = cm_draft_name(draft, "lr");
    const struct cm_draft_pair rate[] = {{"factor", factor}, {"lr", lr}};
    apply(u, scheduled, training, CM_DOUBLE, rate, CM_COUNT(rate));
    cm_draft_info(draft, &draft->outputs, lr, CM_DOUBLE, NULL);
    set_computed(u, "lr", lr);
    bind(u, step, next, CM_INT64, NULL);
}

static void set_corrections(struct update *u)
{
    struct cm_draft *draft = u->draft;

    if (!isnan(u->rule->beta1)) {
        const struct cm_str size = cm_draft_name(draft, "training.step_size");
        const struct cm_str root = cm_draft_name(draft, "training.root");
        const struct cm_draft_pair results[] = {{"step_size", size}, {"root", root}};
        apply(u, corrections, training, CM_DOUBLE, results, CM_COUNT(results));
        set_computed(u, "step_size", size);
        set_computed(u, "root", root);
    }
    if (u->rule->decoupled)
        set_computed(u, "shrink", apply(u, shrinking, training, CM_DOUBLE, NULL, 0));
}

/* ---- narrow weights ---- */

/* A float16 is moved in float: its epsilon would be 0 and its squares would vanish. */
static enum cm_dtype dtype_of(const struct cm_draft_weight *weight)
{
    return cm_draft_wide((enum cm_dtype)weight->tensor->data_type);
}

static struct cm_str cast(struct cm_draft *draft, struct cm_str value, enum cm_dtype dtype,
                          struct cm_str as)
{
    struct cm_node_proto *node = cm_draft_node(draft, "", "Cast", 1, &value, 1, &as);

    cm_draft_attribute(draft, node, cm_attr_int(draft->arena, "to", dtype));
    return as;
}

static bool is_narrow(const struct cm_draft_weight *weight)
{
    return dtype_of(weight) != (enum cm_dtype)weight->tensor->data_type;
}

static void widen_gradient(struct cm_draft *draft, struct cm_draft_weight *weight)
{
    if (is_narrow(weight))
        weight->gradient =
            cast(draft, weight->gradient, dtype_of(weight),
                 cm_draft_name(draft, "%.*s.gradient.wide", CM_STR_FMT(weight->name)));
}

/* ---- gradients before they are used ---- */

static void set_accumulation(struct update *u)
{
    struct cm_draft *draft = u->draft;
    const int64_t count = draft->options->accumulate;

    if (count <= 1)
        return;
    const struct cm_str batch =
        cm_draft_state(draft, cm_draft_name(draft, "training.batch"), CM_INT64, NULL);
    const struct cm_str next = cm_draft_name(draft, "training.batch.next");
    const struct cm_draft_pair pairs[] = {
        {"batch", batch},
        {"one_more", cm_draft_scalar(draft, "one", CM_INT64, 1)},
        {"accumulate", cm_draft_scalar(draft, "accumulate", CM_INT64, (double)count)},
        {"none", cm_draft_scalar(draft, "none", CM_INT64, 0)},
        {"batch_next", next}};
    const struct cm_str now = cm_draft_apply(draft, counting, training, pairs, CM_COUNT(pairs));
    cm_draft_bind(draft, batch, next, CM_INT64, NULL);
    u->apply = now;
}

static void accumulate(struct update *u, struct cm_draft_weight *weight)
{
    struct cm_draft *draft = u->draft;
    const enum cm_dtype dtype = dtype_of(weight);
    const struct cm_int64s *dims = &weight->tensor->dims;
    const struct cm_str sum = cm_draft_state(
        draft, cm_draft_name(draft, "%.*s.gradient_sum", CM_STR_FMT(weight->name)), dtype, dims);
    const struct cm_draft_pair pairs[] = {{"gradient_sum", sum}, {"gradient", weight->gradient}};
    const struct cm_str total = apply(u, averaged, weight->name, dtype, pairs, CM_COUNT(pairs));
    const struct cm_str next =
        cm_draft_name(draft, "%.*s.gradient_sum.kept", CM_STR_FMT(weight->name));
    cm_draft_node(
        draft, "", "Where", 3,
        (const struct cm_str[]){u->apply, cm_draft_scalar(draft, "zero", dtype, 0), total}, 1,
        &next);
    cm_draft_bind(draft, sum, next, dtype, dims);
    weight->gradient = total;
}

static void clip(struct update *u, struct cm_draft_weight *weights, size_t count)
{
    struct cm_draft *draft = u->draft;
    struct cm_str *squares = CM_NEW_ARRAY(draft->arena, struct cm_str, count);

    for (size_t i = 0; i < count; i++)
        squares[i] = apply(u, squared, weights[i].name, CM_DOUBLE,
                           &(const struct cm_draft_pair){"g", weights[i].gradient}, 1);
    const struct cm_str total = cm_draft_name(draft, "training.square_norm");
    const struct cm_str norm = cm_draft_name(draft, "grad_norm");
    cm_draft_node(draft, "", "Sum", count, squares, 1, &total);
    const struct cm_draft_pair pairs[] = {{"total", total}, {"grad_norm", norm}};
    set_computed(u, "clip", apply(u, clipping, training, CM_DOUBLE, pairs, CM_COUNT(pairs)));
    cm_draft_info(draft, &draft->outputs, norm, CM_DOUBLE, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct cm_str clipped =
            cm_draft_name(draft, "%.*s.gradient.clipped", CM_STR_FMT(weights[i].name));
        const enum cm_dtype dtype = dtype_of(&weights[i]);
        const struct cm_str factor = number_as(u, find_number(u, CM_STR("clip")), dtype);
        cm_draft_node(draft, "", "Mul", 2, (const struct cm_str[]){weights[i].gradient, factor}, 1,
                      &clipped);
        weights[i].gradient = clipped;
    }
}

/* ---- weights ---- */

static void move_weight(struct update *u, const struct cm_draft_weight *weight)
{
    struct cm_draft *draft = u->draft;
    const enum cm_dtype dtype = dtype_of(weight);
    const struct cm_int64s *dims = &weight->tensor->dims;
    const char *text =
        u->momentum > 0 && u->rule->with_momentum ? u->rule->with_momentum : u->rule->text;
    struct cm_str formals[PAIR_MAX];
    const size_t n_formals = parameters(text, formals, PAIR_MAX);
    struct cm_draft_pair pairs[PAIR_MAX] = {{"w", weight->name}, {"g", weight->gradient}};
    size_t count = 2;

    if (is_narrow(weight))
        pairs[0].actual = cast(draft, weight->name, dtype,
                               cm_draft_name(draft, "%.*s.wide", CM_STR_FMT(weight->name)));
    if (u->weight_decay > 0 && !u->rule->decoupled)
        pairs[1].actual = apply(u, decay, weight->name, dtype, pairs, 2);
    struct cm_str next[CM_COUNT(states)];
    const size_t first = count;
    for (size_t s = 0; s < CM_COUNT(states); s++) {
        bool used = false;
        for (size_t i = 0; i < n_formals; i++)
            used = used || cm_str_is(formals[i], states[s]);
        if (!used)
            continue;
        const struct cm_str name =
            cm_draft_name(draft, "%.*s.%s", CM_STR_FMT(weight->name), states[s]);
        pairs[count++] =
            (struct cm_draft_pair){states[s], cm_draft_state(draft, name, dtype, dims)};
    }
    const size_t last = count;
    for (size_t s = first; s < last; s++) {
        next[s - first] = cm_draft_name(draft, "%.*s.next", CM_STR_FMT(pairs[s].actual));
        const char *formal = cm_arena_printf(draft->arena, "%s_next", pairs[s].formal).data;
        pairs[count++] = (struct cm_draft_pair){formal, next[s - first]};
    }
    const enum cm_dtype own = (enum cm_dtype)weight->tensor->data_type;
    const struct cm_str next_name = cm_draft_name(draft, "%.*s.next", CM_STR_FMT(weight->name));
    struct cm_str moved = next_name;
    if (is_narrow(weight))
        moved = cm_draft_name(draft, "%.*s.wide", CM_STR_FMT(next_name));
    pairs[count++] = (struct cm_draft_pair){"w_next", moved};
    apply(u, text, weight->name, dtype, pairs, count);
    if (is_narrow(weight))
        cast(draft, moved, own, next_name);
    bind(u, weight->name, next_name, own, dims);
    for (size_t s = first; s < last; s++)
        bind(u, pairs[s].actual, next[s - first], dtype, dims);
}

void cm_draft_update(struct cm_draft *draft, struct cm_draft_weight *weights, size_t count)
{
    const struct cm_prepare_options *o = draft->options;
    const struct rule *rule = find_rule(o->optimizer);
    struct update u = {.draft = draft,
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
        widen_gradient(draft, &weights[i]);
    for (size_t i = 0; u.apply.size && i < count; i++)
        accumulate(&u, &weights[i]);
    if (o->clip_norm > 0)
        clip(&u, weights, count);
    for (size_t i = 0; i < count; i++)
        move_weight(&u, &weights[i]);
}
