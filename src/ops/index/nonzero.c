/* NonZero: the places of elements that are not zero, one column each. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/index/index.h"

static enum cm_status nonzero_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_dim dims[2] = {x->rank == CM_RANK_UNKNOWN ? CM_DIM_ANY : CM_DIM(x->rank),
                                   CM_DIM_ANY};
    return cm_infer_set_tensor(in, 0, CM_INT64, 2, dims);
}

/* Marks which of count elements are not zero. */
typedef void mark_fn(int64_t count, const void *x, uint8_t *marks);

#define MARK(Name, ctype, expression)                                                              \
    static void Name(int64_t count, const void *from, uint8_t *marks)                              \
    {                                                                                              \
        const ctype *xs = from;                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const ctype x = xs[i];                                                                 \
            marks[i] = (expression);                                                               \
        }                                                                                          \
    }
struct complex_float {
    float re, im;
};
struct complex_double {
    double re, im;
};
MARK(mark_1, uint8_t, x != 0)
MARK(mark_2, uint16_t, x != 0)
MARK(mark_4, uint32_t, x != 0)
MARK(mark_8, uint64_t, x != 0)
MARK(mark_half, uint16_t, (x & 0x7FFF) != 0) /* minus zero is zero */
MARK(mark_float, float, x != 0)
MARK(mark_double, double, x != 0)
MARK(mark_complex_float, struct complex_float, x.re != 0 || x.im != 0)
MARK(mark_complex_double, struct complex_double, x.re != 0 || x.im != 0)
MARK(mark_string, struct cm_str, x.size != 0)

static mark_fn *const marks_of[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = mark_float,
    [CM_UINT8] = mark_1,
    [CM_INT8] = mark_1,
    [CM_UINT16] = mark_2,
    [CM_INT16] = mark_2,
    [CM_INT32] = mark_4,
    [CM_INT64] = mark_8,
    [CM_STRING] = mark_string,
    [CM_BOOL] = mark_1,
    [CM_FLOAT16] = mark_half,
    [CM_DOUBLE] = mark_double,
    [CM_UINT32] = mark_4,
    [CM_UINT64] = mark_8,
    [CM_COMPLEX64] = mark_complex_float,
    [CM_COMPLEX128] = mark_complex_double,
    [CM_BFLOAT16] = mark_half,
};

enum { BLOCK = 1024 };

static int64_t count_marks(const struct cm_tensor *x)
{
    const int64_t count = cm_tensor_count(x);
    const size_t width = cm_dtype_size(x->type);
    uint8_t marks[BLOCK];
    int64_t found = 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        marks_of[x->type](n, (const char *)x->data + (size_t)at * width, marks);
        for (int64_t i = 0; i < n; i++)
            found += marks[i];
    }
    return found;
}

static void write_places(const struct cm_tensor *x, int64_t found, int64_t *y)
{
    const int64_t count = cm_tensor_count(x);
    const size_t width = cm_dtype_size(x->type);
    int64_t strides[CM_MAX_RANK], next = 0;
    uint8_t marks[BLOCK];
    cm_shape_strides(&x->shape, strides);
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        marks_of[x->type](n, (const char *)x->data + (size_t)at * width, marks);
        for (int64_t i = 0; i < n; i++) {
            if (!marks[i])
                continue;
            int64_t rest = at + i;
            for (int axis = 0; axis < x->shape.rank; axis++) {
                y[axis * found + next] = rest / strides[axis];
                rest %= strides[axis];
            }
            next++;
        }
    }
}

/* A scalar has no axes, so its result is 0 x 1 or 0 x 0: unlike numpy, as the ONNX text says. */
static enum cm_status nonzero_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    if (!marks_of[x->type])
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s", cm_dtype_name(x->type));
    const int64_t found = count_marks(x);
    CM_TRY(cm_call_allocate(call, 0, CM_INT64, &CM_SHAPE(x->shape.rank, found)));
    if (call->out[0])
        write_places(x, found, call->out[0]->data);
    return CM_OK;
}

CM_OP(NonZero, .infer = nonzero_infer, .run = nonzero_run, .grad = cm_grad_none,
      .effects = CM_OUTPUT_SIZE_AT_RUN);
