/* What is done with gradients, from the plan: its numbers, the counter of updates, then weight by
 * weight. In operators that mean the same from opset 17 on. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/update.h"

#include "train/rules.h"

/* ---- numbers ---- */

static struct cm_number *find_in(const struct cm_numbers *numbers, const char *name)
{
    for (size_t i = numbers->count; i-- > 0;)
        if (strcmp(numbers->items[i].name, name) == 0)
            return &numbers->items[i];
    return NULL;
}

/* What the graph calls a number of a group: by its plain name in the first. */
static const char *call_for(struct cm_updating *u, const struct cm_update_group *group,
                            const char *name)
{
    const size_t number = group ? (size_t)(group - u->groups) : 0;

    return number ? cm_arena_printf(u->p->arena, "%s.%zu", name, number).data : name;
}

static void update_set(struct cm_updating *u, struct cm_update_group *group, const char *name,
                       double value)
{
    const char *called = NULL;

    for (const struct cm_update_group *g = u->groups; group && g < group && !called; g++) {
        const struct cm_number *same = find_in(&g->numbers, name); /* a constant that is there */
        called = same && same->value == value ? same->called : NULL;
    }
    *CM_PUSH(u->p->arena, group ? &group->numbers : &u->numbers) = (struct cm_number){
        .name = name, .called = called ? called : call_for(u, group, name), .value = value};
}

cm_value cm_update_compute(struct cm_updating *u, struct cm_update_group *group, const char *name,
                           cm_value value)
{
    *CM_PUSH(u->p->arena, group ? &group->numbers : &u->numbers) =
        (struct cm_number){.name = name, .called = call_for(u, group, name), .computed = value};
    return value;
}

bool cm_update_has(const struct cm_updating *u, const struct cm_update_group *group,
                   const char *name)
{
    return find_in(&group->numbers, name) || find_in(&u->numbers, name);
}

/* Numbers of a step are computed in double and rounded once, to the type of the weights: 1 - beta^t
 * would lose half its digits in float. */
cm_value cm_update_number(struct cm_updating *u, struct cm_update_group *group, const char *name,
                          enum cm_dtype dtype)
{
    struct cm_preparation *p = u->p;
    struct cm_number *found = group ? find_in(&group->numbers, name) : NULL;

    if (!found)
        found = find_in(&u->numbers, name);
    cm_value *rounded = &found->rounded[dtype == CM_DOUBLE];
    if (*rounded)
        return *rounded;
    if (!found->computed)
        *rounded = cm_preparation_scalar(p, found->called, dtype, found->value);
    else if (dtype == CM_DOUBLE)
        *rounded = found->computed;
    else
        *rounded = cm_preparation_call(
            p, cm_preparation_cast(p, found->computed, dtype),
            cm_preparation_name(p, "training.%s.%s", found->called, cm_dtype_name(dtype)));
    return *rounded;
}

cm_value cm_update_exact(struct cm_updating *u, const char *name)
{
    return cm_update_number(u, NULL, name, CM_DOUBLE);
}

static void set_numbers(struct cm_updating *u)
{
    const int64_t batches = u->p->options->accumulate;
    const double pi = 3.14159265358979323846, limit = u->plan->clip.limit;

    update_set(u, NULL, "one", 1);
    update_set(u, NULL, "zero", 0);
    update_set(u, NULL, "half", 0.5);
    update_set(u, NULL, "pi", pi);
    update_set(u, NULL, "half_pi", pi / 2);
    update_set(u, NULL, "warmup", (double)u->warmup);
    update_set(u, NULL, "clip_norm", limit);
    update_set(u, NULL, "clip_value", limit);
    update_set(u, NULL, "clip_least", -limit);
    update_set(u, NULL, "tiny", 1e-6);
    update_set(u, NULL, "share", 1.0 / (double)(batches > 1 ? batches : 1));
    for (const struct cm_rule_number *n = cm_optimizer_rules[u->plan->rule].numbers; n->name; n++)
        update_set(u, NULL, n->name, n->value);
    for (size_t g = 0; g < u->plan->n_groups; g++) {
        struct cm_update_group *group = &u->groups[g];

        group->is = cm_plan_group_full(u->plan, g);
        for (size_t i = 0; i < cm_group_field_count; i++) {
            const double value = cm_group_field_get(&group->is, &cm_group_fields[i]);

            if (!cm_group_fields[i].is_flag && !isnan(value))
                update_set(u, group, cm_group_fields[i].name, value);
        }
        update_set(u, group, "rest1", 1 - group->is.beta1);
        update_set(u, group, "rest2", 1 - group->is.beta2);
        update_set(u, group, "undamped", 1 - group->is.dampening);
    }
}

/* ---- a step ---- */

void cm_update_bind(struct cm_updating *u, cm_value state, cm_value next)
{
    const struct cm_str name = cm_preparation_name_of(u->p, state);

    if (u->apply)
        next = cm_term(u->p, name, "kept", "Where", u->apply, next, state);
    cm_preparation_bind(u->p, state, next);
}

/* t, updates so far, and what follows from it. */
static void set_step(struct cm_updating *u)
{
    struct cm_preparation *p = u->p;
    const struct cm_str training = CM_STR("training");
    const cm_value step =
        cm_preparation_counter(p, cm_preparation_name(p, "training.step"), u->plan->step);
    const cm_value more = cm_preparation_scalar(p, "one", CM_INT64, 1);
    const cm_value next = CM_STEP_TERM(u, "step.next", "Add", step, more);

    p->report->step_name = cm_preparation_name_of(p, step);
    cm_update_compute(
        u, NULL, "t",
        cm_preparation_term(p, training, "t", cm_preparation_cast(p, step, CM_DOUBLE)));
    cm_update_compute(
        u, NULL, "t_next",
        cm_preparation_term(p, training, "t.next", cm_preparation_cast(p, next, CM_DOUBLE)));
    cm_update_rates(u);
    cm_update_bind(u, step, next);
    for (size_t g = 0; g < u->plan->n_groups; g++)
        cm_update_corrections(u, &u->groups[g]);
}

/* A float16 is moved in float: its epsilon would be 0 and its squares would vanish. */
static void begin_move(struct cm_updating *u, const struct cm_trained_weight *weight,
                       struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const enum cm_dtype dtype = cm_preparation_type(p, weight->value)->dtype;

    *m = (struct cm_moving){.weight = weight->value,
                            .g = weight->gradient,
                            .group = &u->groups[weight->group],
                            .name = cm_preparation_name_of(p, weight->value),
                            .dtype = cm_wide_type(dtype)};
    if (m->dtype != dtype)
        m->g = cm_preparation_term(p, m->name, "gradient.wide",
                                   cm_preparation_cast(p, m->g, m->dtype));
}

void cm_update(struct cm_preparation *p, const struct cm_trained_weight *weights, size_t count)
{
    struct cm_updating u = {.p = p, .plan = p->plan, .warmup = p->warmup};
    struct cm_moving *moving = CM_NEW_ARRAY(p->arena, struct cm_moving, count);

    u.groups = CM_NEW_ARRAY(p->arena, struct cm_update_group, u.plan->n_groups);
    set_numbers(&u);
    cm_update_accumulation(&u);
    set_step(&u);
    for (size_t i = 0; i < count; i++)
        begin_move(&u, &weights[i], &moving[i]);
    cm_update_gradients(&u, moving, count);
    for (size_t i = 0; i < count; i++)
        cm_update_weight(&u, &moving[i]);
}
