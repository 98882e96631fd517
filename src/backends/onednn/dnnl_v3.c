/* oneDNN 3.x: memory descriptors are objects of the library, and one call makes a primitive's
 * descriptor. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_abi.h"

typedef int64_t dnnl_dims[CM_DNNL_MAX_RANK];

static struct {
    int (*with_strides)(struct dnnl_memory_desc **, int rank, const int64_t *dims, int type,
                        const int64_t *strides);
    int (*with_tag)(struct dnnl_memory_desc **, int rank, const int64_t *dims, int type, int tag);
    int (*clone)(struct dnnl_memory_desc **, const struct dnnl_memory_desc *);
    int (*destroy)(struct dnnl_memory_desc *);
    int (*query)(const struct dnnl_memory_desc *, int what, void *out);
    int (*append_eltwise)(struct dnnl_post_ops *, int kind, float alpha, float beta);
    int (*append_sum)(struct dnnl_post_ops *, float scale, int32_t zero_point, int type);
    /* Of a convolution, of a transposed one. */
    int (*conv[2])(struct dnnl_primitive_desc **, struct dnnl_engine *, int direction,
                   int algorithm, const struct dnnl_memory_desc *x,
                   const struct dnnl_memory_desc *weights, const struct dnnl_memory_desc *bias,
                   const struct dnnl_memory_desc *y, const int64_t *strides, const int64_t *holes,
                   const int64_t *pad_begin, const int64_t *pad_end,
                   const struct dnnl_primitive_attr *);
    int (*conv_data[2])(struct dnnl_primitive_desc **, struct dnnl_engine *, int algorithm,
                        const struct dnnl_memory_desc *dx, const struct dnnl_memory_desc *weights,
                        const struct dnnl_memory_desc *dy, const int64_t *strides,
                        const int64_t *holes, const int64_t *pad_begin, const int64_t *pad_end,
                        const struct dnnl_primitive_desc *hint, const struct dnnl_primitive_attr *);
    int (*conv_weights[2])(struct dnnl_primitive_desc **, struct dnnl_engine *, int algorithm,
                           const struct dnnl_memory_desc *x, const struct dnnl_memory_desc *dw,
                           const struct dnnl_memory_desc *db, const struct dnnl_memory_desc *dy,
                           const int64_t *strides, const int64_t *holes, const int64_t *pad_begin,
                           const int64_t *pad_end, const struct dnnl_primitive_desc *hint,
                           const struct dnnl_primitive_attr *);
    int (*matmul)(struct dnnl_primitive_desc **, struct dnnl_engine *,
                  const struct dnnl_memory_desc *a, const struct dnnl_memory_desc *b,
                  const struct dnnl_memory_desc *bias, const struct dnnl_memory_desc *y,
                  const struct dnnl_primitive_attr *);
    int (*pool)(struct dnnl_primitive_desc **, struct dnnl_engine *, int direction, int kind,
                const struct dnnl_memory_desc *x, const struct dnnl_memory_desc *y,
                const int64_t *strides, const int64_t *kernel, const int64_t *holes,
                const int64_t *pad_begin, const int64_t *pad_end,
                const struct dnnl_primitive_attr *);
    int (*batch_norm)(struct dnnl_primitive_desc **, struct dnnl_engine *, int direction,
                      const struct dnnl_memory_desc *x, const struct dnnl_memory_desc *y,
                      float epsilon, unsigned flags, const struct dnnl_primitive_attr *);
    int (*lrn)(struct dnnl_primitive_desc **, struct dnnl_engine *, int direction, int algorithm,
               const struct dnnl_memory_desc *x, const struct dnnl_memory_desc *y, int64_t size,
               float alpha, float beta, float k, const struct dnnl_primitive_attr *);
    int (*binary)(struct dnnl_primitive_desc **, struct dnnl_engine *, int kind,
                  const struct dnnl_memory_desc *a, const struct dnnl_memory_desc *b,
                  const struct dnnl_memory_desc *y, const struct dnnl_primitive_attr *);
    int (*concat)(struct dnnl_primitive_desc **, struct dnnl_engine *,
                  const struct dnnl_memory_desc *to, int count, int axis,
                  const struct dnnl_memory_desc *const *from, const struct dnnl_primitive_attr *);
} v3;

static const struct cm_symbol symbols[] = {
    {"dnnl_memory_desc_create_with_strides", &v3.with_strides},
    {"dnnl_memory_desc_create_with_tag", &v3.with_tag},
    {"dnnl_memory_desc_clone", &v3.clone},
    {"dnnl_memory_desc_destroy", &v3.destroy},
    {"dnnl_memory_desc_query", &v3.query},
    {"dnnl_post_ops_append_eltwise", &v3.append_eltwise},
    {"dnnl_post_ops_append_sum", &v3.append_sum},
    {"dnnl_convolution_forward_primitive_desc_create", &v3.conv[0]},
    {"dnnl_deconvolution_forward_primitive_desc_create", &v3.conv[1]},
    {"dnnl_convolution_backward_data_primitive_desc_create", &v3.conv_data[0]},
    {"dnnl_deconvolution_backward_data_primitive_desc_create", &v3.conv_data[1]},
    {"dnnl_convolution_backward_weights_primitive_desc_create", &v3.conv_weights[0]},
    {"dnnl_deconvolution_backward_weights_primitive_desc_create", &v3.conv_weights[1]},
    {"dnnl_matmul_primitive_desc_create", &v3.matmul},
    {"dnnl_pooling_forward_primitive_desc_create", &v3.pool},
    {"dnnl_batch_normalization_forward_primitive_desc_create", &v3.batch_norm},
    {"dnnl_lrn_forward_primitive_desc_create", &v3.lrn},
    {"dnnl_binary_primitive_desc_create", &v3.binary},
    {"dnnl_concat_primitive_desc_create", &v3.concat},
};

/* ---- memory descriptors ---- */

static void free_desc(struct dnnl_memory_desc *desc)
{
    if (desc)
        v3.destroy(desc);
}

static struct dnnl_memory_desc *strided(int rank, const int64_t *dims, const int64_t *strides)
{
    struct dnnl_memory_desc *desc = NULL;

    return v3.with_strides(&desc, rank, dims, DNNL_F32, strides) == DNNL_SUCCESS ? desc : NULL;
}

static struct dnnl_memory_desc *any(int rank, const int64_t *dims)
{
    struct dnnl_memory_desc *desc = NULL;

    return v3.with_tag(&desc, rank, dims, DNNL_F32, DNNL_FORMAT_TAG_ANY) == DNNL_SUCCESS ? desc
                                                                                         : NULL;
}

static struct dnnl_memory_desc *copy(const struct dnnl_memory_desc *desc)
{
    struct dnnl_memory_desc *made = NULL;

    return v3.clone(&made, desc) == DNNL_SUCCESS ? made : NULL;
}

enum {
    QUERY_STRIDES = 14,
    QUERY_NDIMS = 256,
    QUERY_DIMS = 257,
    QUERY_OFFSET = 259,
    QUERY_PADDED_DIMS = 260,
    QUERY_FORMAT_KIND = 262,
    QUERY_INNER_NBLKS = 263,
    QUERY_INNER_BLKS = 264,
    QUERY_INNER_IDXS = 265,
};

static bool query_numbers(const struct dnnl_memory_desc *desc, int what, int count, int64_t *out)
{
    const int64_t *numbers = NULL;

    if (count == 0)
        return true;
    if (v3.query(desc, what, &numbers) != DNNL_SUCCESS || !numbers)
        return false;
    memcpy(out, numbers, (size_t)count * sizeof *out);
    return true;
}

static bool arrangement(const struct dnnl_memory_desc *desc, struct cm_dnnl_arrangement *out)
{
    int format = 0;
    int64_t offset = 0;

    *out = (struct cm_dnnl_arrangement){0};
    return v3.query(desc, QUERY_FORMAT_KIND, &format) == DNNL_SUCCESS &&
           format == DNNL_FORMAT_KIND_BLOCKED &&
           v3.query(desc, QUERY_OFFSET, &offset) == DNNL_SUCCESS && offset == 0 &&
           v3.query(desc, QUERY_NDIMS, &out->rank) == DNNL_SUCCESS &&
           v3.query(desc, QUERY_INNER_NBLKS, &out->n_blocks) == DNNL_SUCCESS && out->rank >= 0 &&
           out->rank <= CM_DNNL_MAX_RANK && out->n_blocks >= 0 &&
           out->n_blocks <= CM_DNNL_MAX_RANK &&
           query_numbers(desc, QUERY_DIMS, out->rank, out->dims) &&
           query_numbers(desc, QUERY_PADDED_DIMS, out->rank, out->padded) &&
           query_numbers(desc, QUERY_STRIDES, out->rank, out->strides) &&
           query_numbers(desc, QUERY_INNER_BLKS, out->n_blocks, out->block_sizes) &&
           query_numbers(desc, QUERY_INNER_IDXS, out->n_blocks, out->block_axes);
}

/* ---- post-operations ---- */

static int append_function(struct dnnl_post_ops *posts, enum cm_dnnl_function function, float a,
                           float b)
{
    static const int kinds[CM_DNNL_FUNCTION_COUNT] = {
        [CM_DNNL_RELU] = 0x20,      [CM_DNNL_TANH] = 0x21,      [CM_DNNL_ELU] = 0x22,
        [CM_DNNL_SQUARE] = 0x23,    [CM_DNNL_ABS] = 0x24,       [CM_DNNL_SQRT] = 0x25,
        [CM_DNNL_LINEAR] = 0x26,    [CM_DNNL_LOGISTIC] = 0x29,  [CM_DNNL_EXP] = 0x2a,
        [CM_DNNL_GELU_TANH] = 0x2b, [CM_DNNL_GELU_ERF] = 0x31,  [CM_DNNL_SWISH] = 0x2c,
        [CM_DNNL_CLIP] = 0x2e,      [CM_DNNL_HARDSWISH] = 0x34, [CM_DNNL_SOFT_RELU] = 0x27,
        [CM_DNNL_MISH] = 0x33,
    };

    /* Version 3 took the factors into parameters that 2 had fixed. */
    if (function == CM_DNNL_HARDSWISH) {
        a = 1.0f / 6;
        b = 0.5f;
    } else if (function == CM_DNNL_SOFT_RELU) {
        a = 1;
    }
    return v3.append_eltwise(posts, kinds[function], a, b);
}

static int append_sum(struct dnnl_post_ops *posts)
{
    return v3.append_sum(posts, 1, 0, DNNL_F32);
}

/* ---- primitives ---- */

static int conv(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;

    return v3.conv[m->transposed](&m->desc, m->engine, DNNL_FORWARD_INFERENCE, cm_dnnl_algorithm(m),
                                  m->operands[0], m->operands[1], m->operands[2], m->operands[3],
                                  w->stride, m->holes, w->pad_begin, w->pad_end, m->attr);
}

static int conv_data(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;

    return v3.conv_data[m->transposed](&m->desc, m->engine, cm_dnnl_algorithm(m), m->operands[0],
                                       m->operands[1], m->operands[2], w->stride, m->holes,
                                       w->pad_begin, w->pad_end, NULL, m->attr);
}

static int conv_weights(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;

    return v3.conv_weights[m->transposed](&m->desc, m->engine, cm_dnnl_algorithm(m), m->operands[0],
                                          m->operands[1], m->operands[2], m->operands[3], w->stride,
                                          m->holes, w->pad_begin, w->pad_end, NULL, m->attr);
}

static int matmul(struct cm_dnnl_making *m)
{
    return v3.matmul(&m->desc, m->engine, m->operands[0], m->operands[1], m->operands[2],
                     m->operands[3], m->attr);
}

static int pool(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;

    return v3.pool(&m->desc, m->engine, DNNL_FORWARD_INFERENCE, m->kind, m->operands[0],
                   m->operands[1], w->stride, w->kernel, m->holes, w->pad_begin, w->pad_end,
                   m->attr);
}

static int batch_norm(struct cm_dnnl_making *m)
{
    enum { USE_GLOBAL_STATS = 1, USE_SCALE = 2, USE_SHIFT = 4 };
    const struct cm_dnnl_batch_norm *norm = m->asked;

    return v3.batch_norm(&m->desc, m->engine, DNNL_FORWARD_INFERENCE, m->operands[0],
                         m->operands[0], norm->epsilon, USE_GLOBAL_STATS | USE_SCALE | USE_SHIFT,
                         m->attr);
}

static int lrn(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_lrn *asked = m->asked;

    return v3.lrn(&m->desc, m->engine, DNNL_FORWARD_INFERENCE, DNNL_LRN_ACROSS_CHANNELS,
                  m->operands[0], m->operands[0], asked->size, asked->alpha, asked->beta,
                  asked->bias, m->attr);
}

static int binary(struct cm_dnnl_making *m)
{
    return v3.binary(&m->desc, m->engine, m->kind, m->operands[0], m->operands[1], m->operands[0],
                     m->attr);
}

static int concat(struct cm_dnnl_making *m)
{
    const int count = m->n_operands - 1;

    return v3.concat(&m->desc, m->engine, m->operands[count], count, *(const int *)m->asked,
                     m->operands, m->attr);
}

const struct cm_dnnl_major cm_dnnl_v3 = {
    .major = 3,
    .least_minor = 0,
    .symbols = symbols,
    .n_symbols = sizeof symbols / sizeof symbols[0],
    .post_operand = 32768,
    .strided = strided,
    .any = any,
    .copy = copy,
    .free = free_desc,
    .arrangement = arrangement,
    .append_function = append_function,
    .append_sum = append_sum,
    .describe = {[CM_DNNL_CONV] = conv,
                 [CM_DNNL_CONV_DATA] = conv_data,
                 [CM_DNNL_CONV_WEIGHTS] = conv_weights,
                 [CM_DNNL_MATMUL] = matmul,
                 [CM_DNNL_POOLING] = pool,
                 [CM_DNNL_BATCH_NORM] = batch_norm,
                 [CM_DNNL_LOCAL_NORM] = lrn,
                 [CM_DNNL_BINARY] = binary,
                 [CM_DNNL_CONCAT] = concat},
};
