/* oneDNN 2.x: memory descriptors are structs of the caller's, and a primitive's descriptor is made
 * from an operation's, which is one too. Those are filled by the library and handed back to it, so
 * we give memory for them and do not look inside. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_abi.h"

#include "base/memory.h"

typedef int64_t dnnl_dims[CM_DNNL_MAX_RANK];

/* As versions 2.6 and 2.7 have it; the same in all of 2.x. */
struct dnnl_memory_desc {
    int ndims;
    dnnl_dims dims;
    int data_type;
    dnnl_dims padded_dims, padded_offsets;
    int64_t offset0;
    int format_kind;
    union {
        struct {
            dnnl_dims strides;
            int inner_nblks;
            dnnl_dims inner_blks, inner_idxs;
        } blocking;
        char others[296]; /* Winograd's and recurrent networks' */
    } format;
    struct {
        uint64_t flags;
        char others[72];
    } extra;
};

_Static_assert(sizeof(struct dnnl_memory_desc) == 696, "the size of oneDNN's own struct");
_Static_assert(offsetof(struct dnnl_memory_desc, format) == 320, "where the strides are");
_Static_assert(offsetof(struct dnnl_memory_desc, extra) == 616, "where the flags are");

/* The largest, that of recurrent networks, has 15,344 bytes in version 2.6. */
union operation {
    max_align_t align;
    char bytes[24576];
};

static struct {
    int (*by_strides)(struct dnnl_memory_desc *, int rank, const int64_t *dims, int type,
                      const int64_t *strides);
    int (*by_tag)(struct dnnl_memory_desc *, int rank, const int64_t *dims, int type, int tag);
    int (*primitive_desc_create)(struct dnnl_primitive_desc **, const union operation *,
                                 const struct dnnl_primitive_attr *, struct dnnl_engine *,
                                 const struct dnnl_primitive_desc *hint);
    int (*append_eltwise)(struct dnnl_post_ops *, float scale, int kind, float alpha, float beta);
    int (*append_sum)(struct dnnl_post_ops *, float scale);
    /* Of a convolution, of a transposed one. */
    int (*conv[2])(union operation *, int direction, int algorithm,
                   const struct dnnl_memory_desc *x, const struct dnnl_memory_desc *weights,
                   const struct dnnl_memory_desc *bias, const struct dnnl_memory_desc *y,
                   const int64_t *strides, const int64_t *holes, const int64_t *pad_begin,
                   const int64_t *pad_end);
    int (*conv_data[2])(union operation *, int algorithm, const struct dnnl_memory_desc *dx,
                        const struct dnnl_memory_desc *weights, const struct dnnl_memory_desc *dy,
                        const int64_t *strides, const int64_t *holes, const int64_t *pad_begin,
                        const int64_t *pad_end);
    int (*conv_weights[2])(union operation *, int algorithm, const struct dnnl_memory_desc *x,
                           const struct dnnl_memory_desc *dw, const struct dnnl_memory_desc *db,
                           const struct dnnl_memory_desc *dy, const int64_t *strides,
                           const int64_t *holes, const int64_t *pad_begin, const int64_t *pad_end);
    int (*matmul)(union operation *, const struct dnnl_memory_desc *a,
                  const struct dnnl_memory_desc *b, const struct dnnl_memory_desc *bias,
                  const struct dnnl_memory_desc *y);
    int (*pool)(union operation *, int direction, int kind, const struct dnnl_memory_desc *x,
                const struct dnnl_memory_desc *y, const int64_t *strides, const int64_t *kernel,
                const int64_t *holes, const int64_t *pad_begin, const int64_t *pad_end);
    int (*batch_norm)(union operation *, int direction, const struct dnnl_memory_desc *x,
                      float epsilon, unsigned flags);
    int (*lrn)(union operation *, int direction, int algorithm, const struct dnnl_memory_desc *x,
               int64_t size, float alpha, float beta, float k);
    int (*binary)(union operation *, int kind, const struct dnnl_memory_desc *a,
                  const struct dnnl_memory_desc *b, const struct dnnl_memory_desc *y);
    int (*concat)(struct dnnl_primitive_desc **, const struct dnnl_memory_desc *to, int count,
                  int axis, const struct dnnl_memory_desc *from, const struct dnnl_primitive_attr *,
                  struct dnnl_engine *);
} v2;

static const struct cm_symbol symbols[] = {
    {"dnnl_memory_desc_init_by_strides", &v2.by_strides},
    {"dnnl_memory_desc_init_by_tag", &v2.by_tag},
    {"dnnl_primitive_desc_create", &v2.primitive_desc_create},
    {"dnnl_post_ops_append_eltwise", &v2.append_eltwise},
    {"dnnl_post_ops_append_sum", &v2.append_sum},
    {"dnnl_dilated_convolution_forward_desc_init", &v2.conv[0]},
    {"dnnl_dilated_deconvolution_forward_desc_init", &v2.conv[1]},
    {"dnnl_dilated_convolution_backward_data_desc_init", &v2.conv_data[0]},
    {"dnnl_dilated_deconvolution_backward_data_desc_init", &v2.conv_data[1]},
    {"dnnl_dilated_convolution_backward_weights_desc_init", &v2.conv_weights[0]},
    {"dnnl_dilated_deconvolution_backward_weights_desc_init", &v2.conv_weights[1]},
    {"dnnl_matmul_desc_init", &v2.matmul},
    {"dnnl_pooling_v2_forward_desc_init", &v2.pool},
    {"dnnl_batch_normalization_forward_desc_init", &v2.batch_norm},
    {"dnnl_lrn_forward_desc_init", &v2.lrn},
    {"dnnl_binary_desc_init", &v2.binary},
    {"dnnl_concat_primitive_desc_create", &v2.concat},
};

/* ---- memory descriptors ---- */

static void free_desc(struct dnnl_memory_desc *desc)
{
    cm_free(desc);
}

static struct dnnl_memory_desc *strided(int rank, const int64_t *dims, const int64_t *strides)
{
    struct dnnl_memory_desc *desc = cm_calloc(1, sizeof *desc);

    if (desc && v2.by_strides(desc, rank, dims, DNNL_F32, strides) == DNNL_SUCCESS)
        return desc;
    cm_free(desc);
    return NULL;
}

static struct dnnl_memory_desc *any(int rank, const int64_t *dims)
{
    struct dnnl_memory_desc *desc = cm_calloc(1, sizeof *desc);

    if (desc && v2.by_tag(desc, rank, dims, DNNL_F32, DNNL_FORMAT_TAG_ANY) == DNNL_SUCCESS)
        return desc;
    cm_free(desc);
    return NULL;
}

static struct dnnl_memory_desc *copy(const struct dnnl_memory_desc *desc)
{
    struct dnnl_memory_desc *made = cm_malloc(sizeof *made);

    if (made)
        *made = *desc;
    return made;
}

static bool arrangement(const struct dnnl_memory_desc *desc, struct cm_dnnl_arrangement *out)
{
    const int rank = desc->ndims;

    *out = (struct cm_dnnl_arrangement){.rank = rank};
    if (desc->format_kind != DNNL_FORMAT_KIND_BLOCKED || desc->extra.flags || desc->offset0)
        return false;
    out->n_blocks = desc->format.blocking.inner_nblks;
    for (int i = 0; i < rank; i++) {
        out->dims[i] = desc->dims[i];
        out->padded[i] = desc->padded_dims[i];
        out->strides[i] = desc->format.blocking.strides[i];
    }
    for (int i = 0; i < out->n_blocks; i++) {
        out->block_sizes[i] = desc->format.blocking.inner_blks[i];
        out->block_axes[i] = desc->format.blocking.inner_idxs[i];
    }
    return true;
}

/* ---- post-operations ---- */

static int append_function(struct dnnl_post_ops *posts, enum cm_dnnl_function function, float a,
                           float b)
{
    static const int kinds[CM_DNNL_FUNCTION_COUNT] = {
        [CM_DNNL_RELU] = 0x1f,      [CM_DNNL_TANH] = 0x2f,      [CM_DNNL_ELU] = 0x3f,
        [CM_DNNL_SQUARE] = 0x4f,    [CM_DNNL_ABS] = 0x5f,       [CM_DNNL_SQRT] = 0x6f,
        [CM_DNNL_LINEAR] = 0x7f,    [CM_DNNL_LOGISTIC] = 0xaf,  [CM_DNNL_EXP] = 0xbf,
        [CM_DNNL_GELU_TANH] = 0xcf, [CM_DNNL_GELU_ERF] = 0x30,  [CM_DNNL_SWISH] = 0xdf,
        [CM_DNNL_CLIP] = 0xff,      [CM_DNNL_HARDSWISH] = 0x70, [CM_DNNL_SOFT_RELU] = 0x9f,
        [CM_DNNL_MISH] = 0x60,
    };

    return v2.append_eltwise(posts, 1, kinds[function], a, b);
}

static int append_sum(struct dnnl_post_ops *posts)
{
    return v2.append_sum(posts, 1);
}

/* ---- primitives ---- */

static int describe(struct cm_dnnl_making *making, int status, const union operation *operation)
{
    return status != DNNL_SUCCESS ? status
                                  : v2.primitive_desc_create(&making->desc, operation, making->attr,
                                                             making->engine, NULL);
}

static int conv(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;
    union operation operation;

    return describe(m,
                    v2.conv[m->transposed](&operation, DNNL_FORWARD_INFERENCE, cm_dnnl_algorithm(m),
                                           m->operands[0], m->operands[1], m->operands[2],
                                           m->operands[3], w->stride, m->holes, w->pad_begin,
                                           w->pad_end),
                    &operation);
}

static int conv_data(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;
    union operation operation;

    return describe(m,
                    v2.conv_data[m->transposed](&operation, cm_dnnl_algorithm(m), m->operands[0],
                                                m->operands[1], m->operands[2], w->stride, m->holes,
                                                w->pad_begin, w->pad_end),
                    &operation);
}

static int conv_weights(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;
    union operation operation;

    return describe(m,
                    v2.conv_weights[m->transposed](&operation, cm_dnnl_algorithm(m), m->operands[0],
                                                   m->operands[1], m->operands[2], m->operands[3],
                                                   w->stride, m->holes, w->pad_begin, w->pad_end),
                    &operation);
}

static int matmul(struct cm_dnnl_making *m)
{
    union operation operation;

    return describe(
        m, v2.matmul(&operation, m->operands[0], m->operands[1], m->operands[2], m->operands[3]),
        &operation);
}

static int pool(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_window *w = m->window;
    union operation operation;

    return describe(m,
                    v2.pool(&operation, DNNL_FORWARD_INFERENCE, m->kind, m->operands[0],
                            m->operands[1], w->stride, w->kernel, m->holes, w->pad_begin,
                            w->pad_end),
                    &operation);
}

static int batch_norm(struct cm_dnnl_making *m)
{
    enum { USE_GLOBAL_STATS = 1, USE_SCALE = 8, USE_SHIFT = 16 };
    const struct cm_dnnl_batch_norm *norm = m->asked;
    union operation operation;

    return describe(m,
                    v2.batch_norm(&operation, DNNL_FORWARD_INFERENCE, m->operands[0], norm->epsilon,
                                  USE_GLOBAL_STATS | USE_SCALE | USE_SHIFT),
                    &operation);
}

static int lrn(struct cm_dnnl_making *m)
{
    const struct cm_dnnl_lrn *asked = m->asked;
    union operation operation;

    return describe(m,
                    v2.lrn(&operation, DNNL_FORWARD_INFERENCE, DNNL_LRN_ACROSS_CHANNELS,
                           m->operands[0], asked->size, asked->alpha, asked->beta, asked->bias),
                    &operation);
}

static int binary(struct cm_dnnl_making *m)
{
    union operation operation;

    return describe(m,
                    v2.binary(&operation, m->kind, m->operands[0], m->operands[1], m->operands[0]),
                    &operation);
}

static int concat(struct cm_dnnl_making *m)
{
    const int count = m->n_operands - 1;
    struct dnnl_memory_desc *all = cm_calloc((size_t)count, sizeof *all);

    if (!all)
        return DNNL_OUT_OF_MEMORY;
    for (int i = 0; i < count; i++)
        all[i] = *m->operands[i];
    const int status = v2.concat(&m->desc, m->operands[count], count, *(const int *)m->asked, all,
                                 m->attr, m->engine);
    cm_free(all);
    return status;
}

const struct cm_dnnl_major cm_dnnl_v2 = {
    .major = 2,
    .least_minor = 6,
    .symbols = symbols,
    .n_symbols = sizeof symbols / sizeof symbols[0],
    .post_operand = 16384,
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
