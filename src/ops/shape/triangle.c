/* Trilu and EyeLike: matrices told apart at a diagonal. */
// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"
#include "graph/node_formula.h"
#include "ops/common/move.h"
#include "tensor/half.h"

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---- Trilu ---- */

static enum cm_status trilu_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    if (x->rank == 0 || x->rank == 1)
        return cm_infer_fail(in, "its input has rank %d, needs 2 or more", x->rank);
    return cm_infer_set(in, 0, x);
}

static enum cm_status trilu_prepare(struct cm_call *call)
{
    bool *upper = cm_call_state(call, sizeof *upper);
    *upper = cm_node_int(call->node, "upper") != 0;
    return CM_OK;
}

struct triangle {
    const struct cm_tensor *x;
    struct cm_tensor *y;
    bool upper;
    int64_t rows, columns, below;
};

/* Rows [begin, end) of all matrices: upper keeps from the diagonal on, lower up to and with it. */
static void trilu_rows(void *arg, int64_t begin, int64_t end)
{
    const struct triangle *t = arg;
    const size_t size = cm_dtype_size(t->x->type);
    for (int64_t r = begin; r < end; r++) {
        const int64_t edge = clamp(r % t->rows + t->below + !t->upper, 0, t->columns);
        const int64_t at = r * t->columns, kept = t->upper ? at + edge : at;
        const int64_t cleared = t->upper ? at : at + edge, n = t->upper ? edge : t->columns - edge;
        if (size == 0) {
            cm_move_span(t->x->type, t->x->data, kept, t->y->data, kept, t->columns - n);
            cm_move_zero(t->x->type, t->y->data, cleared, n);
            continue;
        }
        char *y = t->y->data;
        memcpy(y + (size_t)kept * size, (const char *)t->x->data + (size_t)kept * size,
               (size_t)(t->columns - n) * size);
        memset(y + (size_t)cleared * size, 0, (size_t)n * size);
    }
}

enum { GRAIN = 1 << 16 }; /* elements worth a thread */

static enum cm_status trilu_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_shape *shape = &x->shape;
    struct triangle t = {.x = x,
                         .y = call->out[0],
                         .upper = *(const bool *)call->state,
                         .rows = shape->dims[shape->rank - 2],
                         .columns = shape->dims[shape->rank - 1]};
    const struct cm_tensor *diagonal = call->n_in > 1 ? call->in[1] : NULL;
    const int64_t k = diagonal && cm_tensor_count(diagonal) ? cm_tensor_int(diagonal, 0) : 0;
    const int64_t count = cm_tensor_count(x);

    t.below = clamp(k, -t.rows, t.columns);
    if (count > 0) {
        const int64_t rows = count / t.columns;
        const bool packed = cm_dtype_size(x->type) == 0; /* rows may share a byte */
        cm_parallel(rows, packed || t.columns >= GRAIN ? (packed ? rows : 1) : GRAIN / t.columns,
                    trilu_rows, &t);
    }
    return cm_move_hold(t.y, x, call->err);
}

static enum cm_status trilu_grad(struct cm_grad *g)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const cm_value inputs[] = {cm_grad_incoming(g, 0), cm_grad_input(g, 1)};
    const struct cm_attribute_proto upper =
        cm_attr_int(arena, "upper", cm_node_int(g->node, "upper"));
    return cm_grad_set(g, 0,
                       cm_build(&g->build, &(struct cm_emission){.op = "Trilu",
                                                                 CM_ATTRIBUTES(upper),
                                                                 .inputs = inputs,
                                                                 .n_inputs = inputs[1] ? 2 : 1}));
}

/* Column less row of every element of the last two axes. */
static cm_value diagonals(struct cm_body *b, cm_value x)
{
    return cm_emit_formula(b,
                           "x: ends = [-2, -1]; ones = Expand(int64(1), Gather(Shape(x), ends));"
                           "rows = CumSum<exclusive=1>(ones, int64(0));"
                           "columns = CumSum<exclusive=1>(ones, int64(1)); columns - rows",
                           x);
}

static enum cm_status trilu_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0), where = diagonals(b, x);
    const cm_value k = cm_body_input(b, 1) ? cm_body_input(b, 1) : cm_build_int64(&b->build, 0);
    const cm_value gone =
        cm_node_int(b->node, "upper") ? cm_emit(b, "Less", where, k) : cm_emit(b, "Less", k, where);
    const cm_value zero = cm_emit(b, "CastLike", cm_emit_scalar(b, CM_FLOAT, 0), x);
    return cm_body_return(b, 0, cm_emit(b, "Where", gone, zero, x));
}

CM_OP(Trilu, .infer = trilu_infer, .prepare = trilu_prepare, .run = trilu_run, .grad = trilu_grad,
      .body = trilu_body, .cost.work = cm_work_linear);

/* ---- EyeLike ---- */

static enum cm_status eye_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t asked = cm_node_int(in->node, "dtype");
    const bool given = cm_node_has_attr(in->node, "dtype");

    const enum cm_dtype_class kind =
        cm_dtype_is_valid(asked) ? cm_dtype_info((enum cm_dtype)asked)->kind : CM_CLASS_NONE;
    if (given && (kind == CM_CLASS_NONE || kind == CM_CLASS_COMPLEX))
        return cm_infer_fail(
            in, "attribute 'dtype' is %lld, which is not an element type that it supports",
            (long long)asked);
    CM_TRY(cm_infer_rank(in, 0, 2, 2));
    const struct cm_dim any[2] = {CM_DIM_ANY, CM_DIM_ANY};
    return cm_infer_set_tensor(in, 0, given ? (enum cm_dtype)asked : x->dtype, 2,
                               x->rank == 2 ? x->dims : any);
}

struct eye {
    int64_t k;
    unsigned char one[8];
};

static enum cm_status eye_prepare(struct cm_call *call)
{
    struct eye *eye = cm_call_state(call, sizeof *eye);
    const enum cm_dtype type = call->out[0]->type;
    const float single = 1;
    const double twice = 1;

    eye->k = cm_node_int(call->node, "k");
    if (type == CM_FLOAT)
        memcpy(eye->one, &single, sizeof single);
    else if (type == CM_DOUBLE)
        memcpy(eye->one, &twice, sizeof twice);
    else if (cm_dtype_is_narrow(type))
        cm_narrow_store(type, eye->one, 0, 1, &single);
    else
        eye->one[0] = 1;
    return CM_OK;
}

static enum cm_status eye_run(struct cm_call *call)
{
    const struct eye *eye = call->state;
    struct cm_tensor *y = call->out[0];
    const int64_t rows = y->shape.dims[0], columns = y->shape.dims[1];

    cm_move_zero(y->type, y->data, 0, rows * columns);
    for (int64_t row = 0; row < rows && columns > 0; row++) {
        const int64_t column = row + clamp(eye->k, -rows, columns);
        if (column >= 0 && column < columns)
            cm_move_span(y->type, eye->one, 0, y->data, row * columns + column, 1);
    }
    return CM_OK;
}

static enum cm_status eye_body(struct cm_body *b)
{
    const cm_value x = cm_body_input(b, 0);
    const enum cm_dtype type = cm_node_has_attr(b->node, "dtype")
                                   ? (enum cm_dtype)cm_node_int(b->node, "dtype")
                                   : cm_builder_type(&b->build, x)->dtype;
    const cm_value k = cm_build_int64(&b->build, cm_node_int(b->node, "k"));
    return cm_body_return(b, 0, cm_emit_cast(b, cm_emit(b, "Equal", diagonals(b, x), k), type));
}

CM_OP(EyeLike, .infer = eye_infer, .prepare = eye_prepare, .run = eye_run, .grad = cm_grad_none,
      .body = eye_body, .cost.work = cm_work_linear);
