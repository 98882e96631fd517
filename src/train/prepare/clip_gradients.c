/* Gradients before weights are moved by them: averaged over batches, then clipped, the norms taken
 * over the weights of all groups. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/update.h"

/* ---- over several batches ---- */

void cm_update_accumulation(struct cm_updating *u)
{
    struct cm_preparation *p = u->p;
    const int64_t count = p->options->accumulate;

    if (count <= 1)
        return;
    const cm_value batch = cm_preparation_counter(p, cm_preparation_name(p, "training.batch"), 0);
    const cm_value more = cm_preparation_scalar(p, "one", CM_INT64, 1);
    const cm_value all = cm_preparation_scalar(p, "accumulate", CM_INT64, (double)count);
    const cm_value none = cm_preparation_scalar(p, "none", CM_INT64, 0);
    const cm_value seen = CM_STEP_TERM(u, "seen", "Add", batch, more);
    const cm_value now = CM_STEP_TERM(u, "apply", "Equal", seen, all);
    cm_preparation_bind(p, batch, CM_STEP_TERM(u, "batch.next", "Where", now, none, seen));
    u->apply = now;
}

static void accumulate(struct cm_updating *u, struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const cm_value sum =
        cm_preparation_state(p, cm_preparation_name(p, "%.*s.gradient_sum", CM_STR_FMT(m->name)),
                             m->dtype, cm_preparation_type(p, m->weight), 0);
    const cm_value share = cm_update_number(u, NULL, "share", m->dtype);
    const cm_value part = CM_MOVE_TERM(u, m, "part", "Mul", m->g, share);
    const cm_value total = CM_MOVE_TERM(u, m, "gradient_sum_next", "Add", sum, part);
    const cm_value zero = cm_update_number(u, NULL, "zero", m->dtype);

    cm_preparation_bind(p, sum,
                        CM_MOVE_TERM(u, m, "gradient_sum.kept", "Where", u->apply, zero, total));
    m->g = total;
}

/* ---- norms ---- */

static cm_value square_of(struct cm_updating *u, const struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const cm_value square = cm_preparation_term(
        p, m->name, "square",
        cm_emit_with(p, "ReduceSumSquare", CM_ATTRIBUTES(cm_attr_int(p->arena, "keepdims", 0)),
                     m->g));

    return cm_preparation_term(p, m->name, "norm", cm_preparation_cast(p, square, CM_DOUBLE));
}

/* As clip_grad_norm_ has it, which adds a little to the norm, or without that. */
static void clip_all(struct cm_updating *u, struct cm_moving *moving, size_t count)
{
    struct cm_preparation *p = u->p;
    cm_value *squares = CM_NEW_ARRAY(p->arena, cm_value, count);

    for (size_t i = 0; i < count; i++)
        squares[i] = square_of(u, &moving[i]);
    const cm_value total = cm_preparation_term(
        p, CM_STR("training"), "square_norm",
        cm_build(&p->build,
                 &(struct cm_emission){.op = "Sum", .inputs = squares, .n_inputs = count}));
    const bool adds = u->plan->clip.kind == CM_CLIP_GLOBAL;
    const cm_value most = cm_update_exact(u, "clip_norm");
    const cm_value tiny = adds ? cm_update_exact(u, "tiny") : 0, one = cm_update_exact(u, "one");
    const cm_value norm =
        cm_preparation_call(p, cm_emit(p, "Sqrt", total), cm_preparation_name(p, "grad_norm"));
    const cm_value size = adds ? CM_STEP_TERM(u, "size", "Add", norm, tiny) : norm;
    const cm_value ratio = CM_STEP_TERM(u, "ratio", "Div", most, size);
    cm_update_compute(u, NULL, "clip", CM_STEP_TERM(u, "clip", "Min", ratio, one));
    cm_preparation_give(p, norm);
    for (size_t i = 0; i < count; i++) {
        struct cm_moving *m = &moving[i];
        const cm_value factor = cm_update_number(u, NULL, "clip", m->dtype);

        m->g = CM_MOVE_TERM(u, m, "gradient.clipped", "Mul", m->g, factor);
    }
}

static void clip_each(struct cm_updating *u, struct cm_moving *m)
{
    struct cm_preparation *p = u->p;
    const cm_value most = cm_update_exact(u, "clip_norm"), one = cm_update_exact(u, "one");
    const cm_value norm = CM_MOVE_TERM(u, m, "gradient.norm", "Sqrt", square_of(u, m));
    const cm_value ratio = CM_MOVE_TERM(u, m, "ratio", "Div", most, norm);
    const cm_value clip = CM_MOVE_TERM(u, m, "clip", "Min", ratio, one);
    const cm_value factor = m->dtype == CM_DOUBLE
                                ? clip
                                : cm_preparation_term(p, m->name, "clip.rounded",
                                                      cm_preparation_cast(p, clip, m->dtype));

    m->g = CM_MOVE_TERM(u, m, "gradient.clipped", "Mul", m->g, factor);
}

static void clip_values(struct cm_updating *u, struct cm_moving *m)
{
    const cm_value most = cm_update_number(u, NULL, "clip_value", m->dtype);
    const cm_value least = cm_update_number(u, NULL, "clip_least", m->dtype);

    m->g = CM_MOVE_TERM(u, m, "gradient.clipped", "Clip", m->g, least, most);
}

/* ---- all ---- */

void cm_update_gradients(struct cm_updating *u, struct cm_moving *moving, size_t count)
{
    const struct cm_plan_clip *clip = &u->plan->clip;
    const bool is_global = clip->kind == CM_CLIP_GLOBAL || clip->kind == CM_CLIP_GLOBAL_EXACT;

    for (size_t i = 0; u->apply && i < count; i++)
        accumulate(u, &moving[i]);
    if (!(clip->limit > 0))
        return;
    if (is_global)
        clip_all(u, moving, count);
    for (size_t i = 0; !is_global && i < count; i++)
        (clip->kind == CM_CLIP_EACH ? clip_each : clip_values)(u, &moving[i]);
}
