/* Losses of predictions: the functions of data/training/losses/, run in double over what a batch
 * has. Scores are gathered first, so that targets that do not count are left out. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metrics_parts.h"

#include "base/memory.h"
#include "graph/eval.h"
#include "train/formula.h"

#include <float.h>
#include <math.h>

enum { GATHERED = 1 << 16 }; /* scores, and at least those of one position */

static double epsilon_of(enum cm_dtype dtype)
{
    return dtype == CM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON;
}

double cm_score_at(const struct cm_score_position *p, int64_t column)
{
    return cm_tensor_real(p->scores, p->first + column * p->step);
}

bool cm_is_distribution(const struct cm_score_position *p)
{
    double sum = 0;

    for (int64_t c = 0; c < p->count; c++) {
        const double score = cm_score_at(p, c);

        if (!(score >= 0))
            return false;
        sum += score;
    }
    return fabs(sum - 1) < 1e-3;
}

/* ---- one run of the function ---- */

struct running {
    struct cm_metrics *m;
    const struct cm_tensor *x, *y;
    double mean;
    struct cm_error *err;
};

/* least and most: what the type of the scores tells from 0 and 1. */
static double number(const struct cm_metrics *m, struct cm_str name)
{
    for (const struct cm_rule_number *n = m->loss->numbers; n->name; n++)
        if (cm_str_is(name, n->name))
            return n->value;
    for (const struct cm_rule_number *n = m->loss->settings; n->name; n++)
        if (cm_str_is(name, n->name))
            return n->value;
    const double epsilon = epsilon_of(m->loss_dtype);
    return cm_str_is(name, "least") ? epsilon : 1 - epsilon;
}

static cm_value add_input(struct cm_graph *graph, const struct cm_tensor *tensor)
{
    return cm_graph_add_input(graph, CM_STR_NONE,
                              cm_type_of_tensor(cm_module_arena(graph->module), tensor));
}

static enum cm_status run_in(struct running *r, struct cm_arena *arena)
{
    const char *const words[] = {r->m->probabilities ? "probabilities" : NULL, NULL};
    const struct cm_function_proto *function;
    struct cm_module *module = cm_module_new(arena, &(struct cm_module_options){0});
    struct cm_graph *graph = cm_graph_new(module, NULL, CM_STR("loss"));
    struct cm_builder build = {.graph = graph, .err = r->err};
    const struct cm_datum x = {.kind = CM_KIND_TENSOR, .tensor = *r->x};
    const struct cm_datum y = {.kind = CM_KIND_TENSOR, .tensor = *r->y};
    const struct cm_datum *const in[] = {&x, &y};
    struct cm_datum *out = cm_data_new(arena, 1);
    cm_value result = 0;

    CM_TRY(cm_formula_read(arena, r->m->loss->functions, NULL, words, &function, r->err));
    cm_value *actuals = CM_NEW_ARRAY(arena, cm_value, function->input.count);
    const cm_value given[] = {add_input(graph, r->x), add_input(graph, r->y)};
    for (size_t i = 0; i < function->input.count; i++) {
        const struct cm_str name = function->input.items[i];

        actuals[i] = cm_str_is(name, "x") ? given[0]
                     : cm_str_is(name, "y")
                         ? given[1]
                         : cm_build_scalar(&build, CM_DOUBLE, number(r->m, name));
    }
    (void)cm_formula_apply(&build, function, actuals, &result);
    CM_TRY(build.status);
    cm_graph_set_outputs(graph, &result, 1);
    CM_TRY(cm_graph_eval(graph, in, 2, out, NULL, r->err));
    r->mean = cm_tensor_real(&out->tensor, 0);
    return CM_OK;
}

static enum cm_status run(struct cm_guard *guard, void *arg)
{
    struct running *r = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    const enum cm_status status = run_in(r, &arena);
    cm_arena_release(&arena);
    return status;
}

/* The mean over the rows of x and y, which are in double (class numbers in int64), counts as so
 * many. */
static enum cm_status add_mean(struct cm_metrics *m, const struct cm_tensor *x,
                               const struct cm_tensor *y, double count, struct cm_error *err)
{
    struct running r = {m, x, y, 0, err};

    if (count > 0)
        CM_TRY(cm_error_context(err, cm_guarded(0, err, run, &r), "loss '%s'", m->loss->name));
    m->loss_sum += r.mean * count;
    m->loss_weight += count;
    return CM_OK;
}

/* ---- what is gathered ---- */

static enum cm_status make_room(struct cm_metrics *m, int64_t columns, struct cm_error *err)
{
    const size_t rows = columns < GATHERED ? GATHERED / (size_t)columns : 1;

    if (m->gathered.x)
        return CM_OK;
    m->gathered.x = cm_calloc(rows * (size_t)columns, sizeof *m->gathered.x);
    m->gathered.y = cm_calloc(rows, sizeof *m->gathered.y);
    m->gathered.classes = cm_calloc(rows, sizeof *m->gathered.classes);
    m->gathered.room = rows;
    m->gathered.columns = columns;
    return m->gathered.x && m->gathered.y && m->gathered.classes ? CM_OK
                                                                 : cm_metrics_no_memory(err);
}

enum cm_status cm_metrics_finish_loss(struct cm_metrics *m, struct cm_error *err)
{
    struct cm_gathered *g = &m->gathered;
    const bool by_class = m->loss && m->loss->target == CM_TARGET_CLASSES;
    const int64_t rows = (int64_t)g->count;
    const struct cm_shape flat = CM_SHAPE(rows), table = CM_SHAPE(rows, g->columns);
    const struct cm_tensor x = cm_tensor_borrow(CM_DOUBLE, by_class ? &table : &flat, g->x);
    const struct cm_tensor y = by_class ? cm_tensor_borrow(CM_INT64, &flat, g->classes)
                                        : cm_tensor_borrow(CM_DOUBLE, &flat, g->y);

    g->count = 0;
    return rows ? add_mean(m, &x, &y, (double)rows, err) : CM_OK;
}

enum cm_status cm_metrics_lose_class(struct cm_metrics *m, const struct cm_score_position *p,
                                     int64_t column, struct cm_error *err)
{
    struct cm_gathered *g = &m->gathered;

    CM_TRY(make_room(m, p->count, err));
    m->loss_dtype = p->scores->type;
    for (int64_t c = 0; c < p->count; c++)
        g->x[(int64_t)g->count * p->count + c] = cm_score_at(p, c);
    g->classes[g->count++] = column;
    return g->count == g->room ? cm_metrics_finish_loss(m, err) : CM_OK;
}

enum cm_status cm_metrics_lose_number(struct cm_metrics *m, double x, double target,
                                      struct cm_error *err)
{
    struct cm_gathered *g = &m->gathered;

    CM_TRY(make_room(m, 1, err));
    g->x[g->count] = x;
    g->y[g->count++] = target;
    return g->count == g->room ? cm_metrics_finish_loss(m, err) : CM_OK;
}

/* The first rows, as numbers of this type. */
static enum cm_status copy_rows(const struct cm_tensor *from, const struct cm_shape *like,
                                enum cm_dtype dtype, int64_t rows, struct cm_tensor *out,
                                struct cm_error *err)
{
    struct cm_shape shape = *like;

    shape.dims[0] = rows;
    CM_TRY(cm_tensor_new(dtype, &shape, out, err));
    for (int64_t i = 0; i < cm_shape_span(&shape, 0, shape.rank); i++)
        cm_tensor_set_real(out, i, cm_tensor_real(from, i));
    return CM_OK;
}

enum cm_status cm_metrics_lose_rows(struct cm_metrics *m, const struct cm_tensor *scores,
                                    const struct cm_tensor *targets, int64_t rows,
                                    struct cm_error *err)
{
    const bool by_sequence = m->loss->target == CM_TARGET_SEQUENCES;
    struct cm_tensor x, y;

    CM_TRY(copy_rows(scores, &scores->shape, CM_DOUBLE, rows, &x, err));
    enum cm_status status = by_sequence
                                ? copy_rows(targets, &targets->shape, CM_INT64, rows, &y, err)
                                : copy_rows(targets, &x.shape, CM_DOUBLE, rows, &y, err);
    if (status == CM_OK) {
        const int64_t count = by_sequence ? rows : cm_shape_span(&x.shape, 0, x.shape.rank);

        status = add_mean(m, &x, &y, (double)count, err);
        cm_tensor_drop(&y);
    }
    cm_tensor_drop(&x);
    return status;
}

void cm_metrics_add_loss(struct cm_metrics *m, double loss, int64_t rows)
{
    m->loss_sum += loss * (double)rows;
    m->loss_weight += (double)rows;
}

void cm_metrics_add_rows(struct cm_metrics *m, int64_t rows)
{
    m->samples += rows;
}
