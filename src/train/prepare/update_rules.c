/* Optimizers: the functions of data/training/optimizers/ become nodes, those of a group in double,
 * those of a weight in its own type. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/update.h"

#include "train/formula.h"
#include "train/rules.h"

#include <float.h>

/* ---- conditions ---- */

enum decay {
    DECAY_NONE,
    DECAY_GRADIENT, /* it is added to the gradient */
    DECAY_BEFORE,   /* the weight shrinks, then it is moved */
    DECAY_AFTER
};

static const char *const decay_words[] = {NULL, "decay_gradient", "decay_before", "decay_after"};

static enum decay decay_of(const struct cm_plan *plan, const struct cm_plan_group *group)
{
    if (!(group->weight_decay > 0) || cm_optimizer_rules[plan->rule].decays_itself)
        return DECAY_NONE;
    if (!group->decoupled)
        return DECAY_GRADIENT;
    return plan->arithmetic == CM_LIKE_ORT && group->adam_mode ? DECAY_AFTER : DECAY_BEFORE;
}

/* What holds of a group: whose arithmetic, its settings that are not 0, how weights decay, which
 * variant that makes, and of a weight whether it is a matrix. */
const char *const *cm_update_words(struct cm_arena *arena, const struct cm_plan *plan,
                                   const struct cm_plan_group *group, bool is_matrix)
{
    const char **words = CM_NEW_ARRAY(arena, const char *, cm_group_field_count + 5);
    const struct cm_optimizer_words *variant = cm_optimizer_rules[plan->rule].variants;
    size_t count = 0;

    words[count++] = cm_arithmetics[plan->arithmetic].word;
    for (size_t i = 0; i < cm_group_field_count; i++) {
        const double value = cm_group_field_get(group, &cm_group_fields[i]);

        if (!isnan(value) && value != 0)
            words[count++] = cm_group_fields[i].name;
    }
    if (is_matrix)
        words[count++] = "matrix";
    if (decay_of(plan, group))
        words[count++] = decay_words[decay_of(plan, group)];
    while (variant && variant->name && !cm_words_hold(variant->words, words))
        variant++;
    if (variant && variant->name)
        words[count] = variant->name;
    return words;
}

/* ---- functions ---- */

/* The functions of a group are read once, for weights that are matrices and for others. */
static const struct cm_function_proto *function(struct cm_updating *u, struct cm_update_group *g,
                                                enum cm_update_function which, bool is_matrix)
{
    static const struct {
        const char *name;
        bool for_all;
    } functions[] = {[CM_UPDATE_GRADIENT] = {"gradient", true},
                     [CM_UPDATE_NUMBERS] = {"numbers", false},
                     [CM_UPDATE_ALL_NUMBERS] = {"numbers", true},
                     [CM_UPDATE_WEIGHT] = {"update", false},
                     [CM_UPDATE_MOVE] = {"move", true}};
    struct cm_preparation *p = u->p;
    const struct cm_function_proto **read = &g->functions[which][is_matrix];
    const char *text = functions[which].for_all ? cm_rules_for_all_weights
                                                : cm_optimizer_rules[u->plan->rule].functions;

    if (!*read && !p->build.status)
        p->build.status =
            cm_formula_read(p->arena, text, functions[which].name,
                            cm_update_words(p->arena, u->plan, &g->is, is_matrix), read, p->err);
    return *read;
}

static cm_value unknown(struct cm_preparation *p, const struct cm_function_proto *f,
                        struct cm_str name)
{
    (void)cm_builder_fail(&p->build, CM_UNSUPPORTED, "function '%.*s' of an optimizer reads '%.*s'",
                          CM_STR_FMT(f->name), CM_STR_FMT(name));
    return 0;
}

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

static cm_value number_operand(struct cm_updating *u, struct cm_update_group *group,
                               const struct cm_function_proto *f, struct cm_str name)
{
    const char *text = cm_arena_str(u->p->arena, name).data;

    if (cm_str_is(name, "t_next"))
        return counted(u, &group->is, "t_next", "one");
    if (cm_str_is(name, "t"))
        return counted(u, &group->is, "t", "zero");
    return cm_update_has(u, group, text) ? cm_update_number(u, group, text, CM_DOUBLE)
                                         : unknown(u->p, f, name);
}

static void compute_numbers(struct cm_updating *u, struct cm_update_group *group,
                            enum cm_update_function which)
{
    struct cm_preparation *p = u->p;
    const struct cm_function_proto *f = function(u, group, which, false);

    if (!f || !f->node.count)
        return;
    cm_value *actuals = CM_NEW_ARRAY(p->arena, cm_value, f->input.count);
    cm_value *results = CM_NEW_ARRAY(p->arena, cm_value, f->output.count);
    for (size_t i = 0; i < f->input.count; i++)
        actuals[i] = number_operand(u, group, f, f->input.items[i]);
    cm_formula_emit(p, f, CM_STR("training"), actuals, results);
    for (size_t o = 0; o < f->output.count; o++) {
        const struct cm_str name = cm_formula_stem(f->output.items[o]);

        cm_preparation_call(p, results[o],
                            cm_preparation_name(p, "training.%.*s", CM_STR_FMT(name)));
        cm_update_compute(u, group, cm_arena_str(p->arena, name).data, results[o]);
    }
}

void cm_update_corrections(struct cm_updating *u, struct cm_update_group *group)
{
    if (strstr(cm_optimizer_rules[u->plan->rule].functions, "numbers ("))
        compute_numbers(u, group, CM_UPDATE_NUMBERS);
    if (decay_of(u->plan, &group->is) >= DECAY_BEFORE) /* what weight decay leaves of a weight */
        compute_numbers(u, group, CM_UPDATE_ALL_NUMBERS);
}

/* ---- weights ---- */

/* The shape of a state of a weight: its last axis, or the one before it, may be 1. */
static const struct cm_type *state_type(struct cm_preparation *p, const struct cm_type *weight,
                                        const char *shape)
{
    struct cm_dim dims[CM_MAX_RANK] = {{0}};

    if (!shape)
        return weight;
    if (strcmp(shape, "scalar") == 0)
        return cm_type_tensor(p->arena, weight->dtype, 0, dims);
    cm_type_copy_dims(dims, weight);
    dims[weight->rank - (strcmp(shape, "rows") == 0 ? 1 : 2)] = CM_DIM(1);
    return cm_type_tensor(p->arena, weight->dtype, weight->rank, dims);
}

/* A variable "W.what". */
static void add_state(struct cm_updating *u, struct cm_moving *m,
                      const struct cm_optimizer_state *is)
{
    struct cm_preparation *p = u->p;
    const struct cm_str name = cm_preparation_name(p, "%.*s.%s", CM_STR_FMT(m->name), is->name);

    *CM_PUSH(p->arena, &p->states) =
        (struct cm_plan_state){.weight = m->name, .state = name, .slot = is->slot};
    m->states[m->n_states].is = is;
    m->states[m->n_states++].binding.state = cm_preparation_state(
        p, name, m->dtype, state_type(p, cm_preparation_type(p, m->weight), is->shape),
        is->begins ? 1 : 0);
}

static struct cm_moving_state *state_of(struct cm_moving *m, struct cm_str name)
{
    for (size_t s = 0; s < m->n_states; s++)
        if (cm_str_is(name, m->states[s].is->name))
            return &m->states[s];
    return NULL;
}

static cm_value operand(struct cm_updating *u, struct cm_moving *m,
                        const struct cm_function_proto *f, struct cm_str name)
{
    const struct cm_moving_state *state = state_of(m, name);
    const char *text = cm_arena_str(u->p->arena, name).data;

    if (state)
        return state->binding.state;
    if (cm_str_is(name, "w"))
        return m->w;
    if (cm_str_is(name, "g"))
        return m->g;
    if (cm_str_is(name, "move"))
        return m->move;
    if (cm_str_is(name, "type_epsilon"))
        return cm_preparation_scalar(u->p, "type_epsilon", m->dtype,
                                     m->dtype == CM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON);
    return cm_update_has(u, m->group, text) ? cm_update_number(u, m->group, text, m->dtype)
                                            : unknown(u->p, f, name);
}

/* A result is the next of a state, or has a meaning by its name. */
static void take_result(struct cm_updating *u, struct cm_moving *m, struct cm_str name,
                        cm_value value)
{
    struct cm_moving_state *state = state_of(m, cm_formula_stem(name));

    if (state) {
        const struct cm_str called = cm_preparation_name_of(u->p, state->binding.state);
        state->binding.next = cm_preparation_term(u->p, called, "next", value);
    } else if (cm_str_is(name, "next")) {
        m->next = value;
    } else {
        cm_preparation_call(
            u->p, value,
            cm_preparation_name(u->p, "%.*s.%.*s", CM_STR_FMT(m->name), CM_STR_FMT(name)));
        *(cm_str_is(name, "move") ? &m->move : &m->g) = value;
    }
}

static void apply(struct cm_updating *u, struct cm_moving *m, enum cm_update_function which)
{
    struct cm_preparation *p = u->p;
    const struct cm_function_proto *f = function(u, m->group, which, m->is_matrix);

    if (!f || !f->node.count)
        return;
    cm_value *actuals = CM_NEW_ARRAY(p->arena, cm_value, f->input.count);
    cm_value *results = CM_NEW_ARRAY(p->arena, cm_value, f->output.count);
    for (size_t i = 0; i < f->input.count; i++)
        actuals[i] = operand(u, m, f, f->input.items[i]);
    cm_formula_emit(p, f, m->name, actuals, results);
    for (size_t o = 0; o < f->output.count && !p->build.status; o++)
        take_result(u, m, f->output.items[o], results[o]);
}

void cm_update_weight(struct cm_updating *u, struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const struct cm_type *type = cm_preparation_type(p, m->weight);
    const struct cm_optimizer_state *states = cm_optimizer_rules[u->plan->rule].states;
    const enum cm_dtype dtype = type->dtype;

    m->is_matrix = type->rank >= 2;
    m->w = m->weight;
    if (m->dtype != dtype)
        m->w = cm_preparation_term(p, m->name, "wide", cm_preparation_cast(p, m->w, m->dtype));
    apply(u, m, CM_UPDATE_GRADIENT);
    const char *const *words = cm_update_words(p->arena, u->plan, &m->group->is, m->is_matrix);
    for (const struct cm_optimizer_state *state = states; state->name; state++)
        if (cm_words_hold(state->when, words) && m->n_states < CM_SLOT_MAX)
            add_state(u, m, state);
    apply(u, m, CM_UPDATE_WEIGHT);
    if (!m->next)
        apply(u, m, CM_UPDATE_MOVE);
    if (m->dtype != dtype) {
        cm_preparation_term(p, m->name, "next.wide", m->next);
        m->next = cm_preparation_cast(p, m->next, dtype);
    }
    cm_update_bind(u, m->weight, cm_preparation_term(p, m->name, "next", m->next));
    for (size_t s = 0; s < m->n_states; s++)
        cm_update_bind(u, m->states[s].binding.state, m->states[s].binding.next);
}
