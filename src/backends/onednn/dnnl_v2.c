/* oneDNN 2.x: descriptors are structs, primitives are made from operation descriptors. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl.h"

#include "tensor/layout.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

/* ---- the engine: one for the process, never ended ---- */

static dnnl_engine_t the_engine;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
    if (dnnl_engine_create(&the_engine, dnnl_cpu, 0) != dnnl_success)
        the_engine = NULL;
}

static dnnl_engine_t engine(void)
{
    pthread_once(&engine_once, make_engine);
    return the_engine;
}

struct cm_dnnl_version cm_dnnl_version(void)
{
    const dnnl_version_t *v = dnnl_version();
    struct cm_dnnl_version out;
    snprintf(out.text, sizeof out.text, "%d.%d.%d", v->major, v->minor, v->patch);
    return out;
}

/* ---- descriptors ---- */

static void row_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
}

/* (n, c, s..) with c innermost; tensors of rank 1 have no channels. */
static void channels_last_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = rank > 1 ? dims[1] : 1;
    row_strides(rank, dims, strides);
    if (rank < 2)
        return;
    strides[1] = 1;
    for (int i = rank - 1; i >= 2; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    strides[0] = step;
}

/* How the operand's bytes lie when its tensor is plain. */
static dnnl_memory_desc_t plain_desc(const struct cm_dnnl_operand *operand)
{
    dnnl_memory_desc_t desc;
    int64_t strides[CM_DNNL_MAX_RANK];
    if (operand->strides[operand->rank - 1])
        memcpy(strides, operand->strides, sizeof strides);
    else
        row_strides(operand->rank, operand->dims, strides);
    /* Ranks and sizes were checked, so this cannot fail. */
    dnnl_memory_desc_init_by_strides(&desc, operand->rank, operand->dims, dnnl_f32, strides);
    return desc;
}

/* One arrangement, up to the strides of axes of size 1, which mean nothing? */
static bool same_desc(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b)
{
    if (dnnl_memory_desc_equal(a, b))
        return true;
    if (a->ndims != b->ndims || a->format_kind != dnnl_blocked || b->format_kind != dnnl_blocked ||
        a->format_desc.blocking.inner_nblks || b->format_desc.blocking.inner_nblks ||
        a->extra.flags || b->extra.flags)
        return false;
    for (int i = 0; i < a->ndims; i++)
        if (a->dims[i] != b->dims[i] || (a->dims[i] > 1 && a->format_desc.blocking.strides[i] !=
                                                               b->format_desc.blocking.strides[i]))
            return false;
    return true;
}

/* ---- moving tensors between layouts ---- */

/* A reorder that was needed before: made once, run often. */
struct mover {
    dnnl_memory_desc_t from, to;
    dnnl_primitive_t primitive;
    dnnl_memory_t from_memory, to_memory;
    dnnl_stream_t stream;
};

struct layout {
    struct cm_layout base;
    dnnl_memory_desc_t desc, plain; /* the arrangement, and that of the same tensor when plain */
    struct mover into, out_of;
};

static void mover_release(struct mover *mover)
{
    if (mover->primitive)
        dnnl_primitive_destroy(mover->primitive);
    if (mover->from_memory)
        dnnl_memory_destroy(mover->from_memory);
    if (mover->to_memory)
        dnnl_memory_destroy(mover->to_memory);
    if (mover->stream)
        dnnl_stream_destroy(mover->stream);
    *mover = (struct mover){0};
}

static void layout_release(void *what)
{
    struct layout *layout = what;
    mover_release(&layout->into);
    mover_release(&layout->out_of);
}

static bool mover_init(struct mover *mover, const dnnl_memory_desc_t *from,
                       const dnnl_memory_desc_t *to)
{
    dnnl_primitive_desc_t desc = NULL;
    mover_release(mover);
    mover->from = *from;
    mover->to = *to;
    const bool made =
        dnnl_reorder_primitive_desc_create(&desc, from, engine(), to, engine(), NULL) ==
            dnnl_success &&
        dnnl_primitive_create(&mover->primitive, desc) == dnnl_success &&
        dnnl_memory_create(&mover->from_memory, from, engine(), DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&mover->to_memory, to, engine(), DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_stream_create(&mover->stream, engine(), dnnl_stream_default_flags) == dnnl_success;
    if (desc)
        dnnl_primitive_desc_destroy(desc);
    if (!made)
        mover_release(mover);
    return made;
}

static bool move(struct mover *mover, const dnnl_memory_desc_t *from, void *from_data,
                 const dnnl_memory_desc_t *to, void *to_data)
{
    if ((!mover->primitive || !dnnl_memory_desc_equal(&mover->from, from) ||
         !dnnl_memory_desc_equal(&mover->to, to)) &&
        !mover_init(mover, from, to))
        return false;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, mover->from_memory},
                                    {DNNL_ARG_TO, mover->to_memory}};
    return dnnl_memory_set_data_handle(mover->from_memory, from_data) == dnnl_success &&
           dnnl_memory_set_data_handle(mover->to_memory, to_data) == dnnl_success &&
           dnnl_primitive_execute(mover->primitive, mover->stream, 2, args) == dnnl_success &&
           dnnl_stream_wait(mover->stream) == dnnl_success;
}

static bool layout_same(const struct cm_layout *a, const struct cm_layout *b)
{
    return same_desc(&((const struct layout *)a)->desc, &((const struct layout *)b)->desc);
}

static bool same_dims(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b)
{
    return a->ndims == b->ndims &&
           memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof a->dims[0]) == 0;
}

static enum cm_status layout_reorder(const struct cm_tensor *from, struct cm_tensor *to,
                                     struct cm_error *err);

/* Two layouts that see the tensor under different shapes, as weights by group are: the plain one is
 * what they share. */
static enum cm_status reorder_by_plain(const struct cm_tensor *from, struct cm_tensor *to,
                                       struct cm_error *err)
{
    struct cm_tensor plain;
    CM_TRY(cm_tensor_new(from->type, &from->shape, &plain, err));
    enum cm_status status = layout_reorder(from, &plain, err);
    if (!status)
        status = layout_reorder(&plain, to, err);
    cm_tensor_drop(&plain);
    return status;
}

static enum cm_status layout_reorder(const struct cm_tensor *from, struct cm_tensor *to,
                                     struct cm_error *err)
{
    struct layout *source = (struct layout *)from->layout, *target = (struct layout *)to->layout;
    if (source && target && !same_dims(&source->desc, &target->desc))
        return reorder_by_plain(from, to, err);
    const bool done =
        target ? move(&target->into, source ? &source->desc : &target->plain, from->data,
                      &target->desc, to->data)
               : move(&source->out_of, &source->desc, from->data, &source->plain, to->data);
    return done ? CM_OK
                : cm_fail(err, CM_NO_MEMORY, "oneDNN cannot move a tensor to layout %s",
                          target ? target->base.name : "plain");
}

/* ---- primitives ---- */

struct operand {
    struct cm_dnnl_operand asked;
    int arg;
    dnnl_memory_t memory;
    const void *data; /* the memory's handle */
};

/* What a call holds, from acceptance on. */
struct primitive {
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_t scratch;
    struct operand *operands;
    dnnl_exec_arg_t *args; /* the operands, then scratch */
    int n_operands;
};

static void primitive_release(void *what)
{
    struct primitive *p = what;
    for (int i = 0; i < p->n_operands; i++)
        if (p->operands[i].memory)
            dnnl_memory_destroy(p->operands[i].memory);
    if (p->scratch)
        dnnl_memory_destroy(p->scratch);
    if (p->stream)
        dnnl_stream_destroy(p->stream);
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->desc)
        dnnl_primitive_desc_destroy(p->desc);
    if (p->attr)
        dnnl_primitive_attr_destroy(p->attr);
    *p = (struct primitive){0};
}

/* Tied to the call before it holds anything. */
static struct primitive *new_primitive(struct cm_call *call, int most_operands)
{
    const size_t count = (size_t)most_operands;
    struct operand *operands = cm_call_state(call, count * sizeof *operands);
    dnnl_exec_arg_t *args = cm_call_state(call, (count + 1) * sizeof *args);
    struct primitive *p = cm_call_state(call, sizeof *p);
    cm_call_defer(call, primitive_release, p);
    *p = (struct primitive){.operands = operands, .args = args};
    /* Without it `describe` declines; what may fail in there is memory alone. */
    if (engine() && dnnl_primitive_attr_create(&p->attr) == dnnl_success)
        dnnl_primitive_attr_set_scratchpad_mode(p->attr, dnnl_scratchpad_mode_user);
    return p;
}

static void add_operand(struct primitive *p, int arg, const struct cm_dnnl_operand *operand)
{
    if (operand->rank)
        p->operands[p->n_operands++] = (struct operand){.asked = *operand, .arg = arg};
}

/* The descriptor an operation is asked with. */
static dnnl_memory_desc_t desc_of(const struct cm_call *call, const struct cm_dnnl_operand *operand)
{
    dnnl_memory_desc_t desc = plain_desc(operand);
    int64_t strides[CM_DNNL_MAX_RANK];
    const struct cm_layout *lies = operand->place >= 0 ? call->in[operand->place]->layout : NULL;
    switch (operand->order) {
    case CM_DNNL_PLAIN:
        break;
    case CM_DNNL_CHANNELS_LAST:
        channels_last_strides(operand->rank, operand->dims, strides);
        dnnl_memory_desc_init_by_strides(&desc, operand->rank, operand->dims, dnnl_f32, strides);
        break;
    case CM_DNNL_GIVEN:
        if (lies && lies->reorder == layout_reorder)
            desc = ((const struct layout *)lies)->desc;
        break;
    case CM_DNNL_FREE:
        dnnl_memory_desc_init_by_tag(&desc, operand->rank, operand->dims, dnnl_f32,
                                     dnnl_format_tag_any);
        break;
    }
    return desc;
}

static const char *implementation(const struct primitive *p)
{
    const char *name = "";
    dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, &name);
    return name;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Makes the descriptor of the primitive; false with the reason when oneDNN has nothing good. */
static bool describe(struct cm_call *call, struct primitive *p, const void *operation)
{
    if (!p->attr ||
        dnnl_primitive_desc_create(&p->desc, operation, p->attr, engine(), NULL) != dnnl_success) {
        primitive_release(p);
        return cm_call_decline(call, "oneDNN has no primitive for it");
    }
    if (starts_with(implementation(p), "ref")) {
        primitive_release(p);
        return cm_call_decline(call, "oneDNN has only its reference code for it");
    }
    return true;
}

static bool refused(struct cm_call *call)
{
    return cm_call_decline(call, "oneDNN refuses its sizes");
}

/* The four operands as oneDNN is asked with them. */
struct conv_descs {
    dnnl_memory_desc_t x, weights, bias, y;
    const dnnl_memory_desc_t *bias_or_none;
    dnnl_dims_t holes;
};

static void describe_conv(const struct cm_call *call, const struct cm_dnnl_conv *conv,
                          struct conv_descs *out)
{
    *out = (struct conv_descs){.x = desc_of(call, &conv->x),
                               .weights = desc_of(call, &conv->weights),
                               .y = desc_of(call, &conv->y)};
    if (conv->bias.rank) {
        out->bias = desc_of(call, &conv->bias);
        out->bias_or_none = &out->bias;
    }
    for (int i = 0; i < conv->window.rank; i++)
        out->holes[i] = conv->window.dilation[i] - 1;
}

static bool accept_conv(struct cm_call *call, const struct cm_dnnl_conv *conv,
                        const void *operation)
{
    struct primitive *p = new_primitive(call, 4);
    add_operand(p, DNNL_ARG_SRC, &conv->x);
    add_operand(p, DNNL_ARG_WEIGHTS, &conv->weights);
    add_operand(p, DNNL_ARG_BIAS, &conv->bias);
    add_operand(p, DNNL_ARG_DST, &conv->y);
    if (!describe(call, p, operation))
        return false;
    if (conv->direct && strstr(implementation(p), "gemm")) {
        primitive_release(p);
        return cm_call_decline(call, "oneDNN has no direct convolution for it");
    }
    return true;
}

bool cm_dnnl_make_conv(struct cm_call *call, const struct cm_dnnl_conv *conv)
{
    const struct cm_dnnl_window *w = &conv->window;
    struct conv_descs d;
    dnnl_convolution_desc_t operation;
    describe_conv(call, conv, &d);
    if (dnnl_dilated_convolution_forward_desc_init(
            &operation, dnnl_forward_inference, dnnl_convolution_direct, &d.x, &d.weights,
            d.bias_or_none, &d.y, w->stride, d.holes, w->pad_begin, w->pad_end) != dnnl_success)
        return refused(call);
    return accept_conv(call, conv, &operation);
}

bool cm_dnnl_make_deconv(struct cm_call *call, const struct cm_dnnl_conv *conv)
{
    const struct cm_dnnl_window *w = &conv->window;
    struct conv_descs d;
    dnnl_deconvolution_desc_t operation;
    describe_conv(call, conv, &d);
    if (dnnl_dilated_deconvolution_forward_desc_init(
            &operation, dnnl_forward_inference, dnnl_deconvolution_direct, &d.x, &d.weights,
            d.bias_or_none, &d.y, w->stride, d.holes, w->pad_begin, w->pad_end) != dnnl_success)
        return refused(call);
    return accept_conv(call, conv, &operation);
}

bool cm_dnnl_make_matmul(struct cm_call *call, const struct cm_dnnl_matmul *matmul)
{
    const dnnl_memory_desc_t a = desc_of(call, &matmul->a), b = desc_of(call, &matmul->b),
                             y = desc_of(call, &matmul->y);
    dnnl_memory_desc_t bias;
    if (matmul->bias.rank)
        bias = desc_of(call, &matmul->bias);
    dnnl_matmul_desc_t operation;
    if (dnnl_matmul_desc_init(&operation, &a, &b, matmul->bias.rank ? &bias : NULL, &y) !=
        dnnl_success)
        return refused(call);
    struct primitive *p = new_primitive(call, 4);
    add_operand(p, DNNL_ARG_SRC, &matmul->a);
    add_operand(p, DNNL_ARG_WEIGHTS, &matmul->b);
    add_operand(p, DNNL_ARG_BIAS, &matmul->bias);
    add_operand(p, DNNL_ARG_DST, &matmul->y);
    if (matmul->scale != 1 && p->attr)
        dnnl_primitive_attr_set_output_scales(p->attr, 1, 0, &matmul->scale);
    return describe(call, p, &operation);
}

bool cm_dnnl_make_pool(struct cm_call *call, const struct cm_dnnl_pool *pool)
{
    static const dnnl_alg_kind_t kinds[] = {
        [CM_DNNL_MAX] = dnnl_pooling_max,
        [CM_DNNL_AVERAGE_ALL] = dnnl_pooling_avg_include_padding,
        [CM_DNNL_AVERAGE_REAL] = dnnl_pooling_avg_exclude_padding,
    };
    const dnnl_memory_desc_t x = desc_of(call, &pool->x), y = desc_of(call, &pool->y);
    dnnl_dims_t holes = {0};
    for (int i = 0; i < pool->window.rank; i++)
        holes[i] = pool->window.dilation[i] - 1;
    dnnl_pooling_v2_desc_t operation;
    if (dnnl_pooling_v2_forward_desc_init(&operation, dnnl_forward_inference, kinds[pool->kind], &x,
                                          &y, pool->window.stride, pool->window.kernel, holes,
                                          pool->window.pad_begin,
                                          pool->window.pad_end) != dnnl_success)
        return refused(call);
    struct primitive *p = new_primitive(call, 2);
    add_operand(p, DNNL_ARG_SRC, &pool->x);
    add_operand(p, DNNL_ARG_DST, &pool->y);
    return describe(call, p, &operation);
}

bool cm_dnnl_make_batch_norm(struct cm_call *call, const struct cm_dnnl_batch_norm *norm)
{
    const dnnl_memory_desc_t x = desc_of(call, &norm->x);
    dnnl_batch_normalization_desc_t operation;
    if (dnnl_batch_normalization_forward_desc_init(
            &operation, dnnl_forward_inference, &x, norm->epsilon,
            dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift) != dnnl_success)
        return refused(call);
    struct primitive *p = new_primitive(call, 6);
    add_operand(p, DNNL_ARG_SRC, &norm->x);
    add_operand(p, DNNL_ARG_SCALE, &norm->scale);
    add_operand(p, DNNL_ARG_SHIFT, &norm->shift);
    add_operand(p, DNNL_ARG_MEAN, &norm->mean);
    add_operand(p, DNNL_ARG_VARIANCE, &norm->variance);
    add_operand(p, DNNL_ARG_DST, &norm->y);
    return describe(call, p, &operation);
}

bool cm_dnnl_make_lrn(struct cm_call *call, const struct cm_dnnl_lrn *lrn)
{
    const dnnl_memory_desc_t x = desc_of(call, &lrn->x);
    dnnl_lrn_desc_t operation;
    if (dnnl_lrn_forward_desc_init(&operation, dnnl_forward_inference, dnnl_lrn_across_channels, &x,
                                   lrn->size, lrn->alpha, lrn->beta, lrn->bias) != dnnl_success)
        return refused(call);
    struct primitive *p = new_primitive(call, 2);
    add_operand(p, DNNL_ARG_SRC, &lrn->x);
    add_operand(p, DNNL_ARG_DST, &lrn->y);
    return describe(call, p, &operation);
}

bool cm_dnnl_make_binary(struct cm_call *call, const struct cm_dnnl_binary *binary)
{
    static const dnnl_alg_kind_t kinds[] = {
        [CM_DNNL_ADD] = dnnl_binary_add,
        [CM_DNNL_SUB] = dnnl_binary_sub,
        [CM_DNNL_MUL] = dnnl_binary_mul,
        [CM_DNNL_DIV] = dnnl_binary_div,
    };
    const dnnl_memory_desc_t a = desc_of(call, &binary->a), b = desc_of(call, &binary->b);
    dnnl_binary_desc_t operation;
    if (dnnl_binary_desc_init(&operation, kinds[binary->kind], &a, &b, &a) != dnnl_success)
        return refused(call);
    struct primitive *p = new_primitive(call, 3);
    add_operand(p, DNNL_ARG_SRC_0, &binary->a);
    add_operand(p, DNNL_ARG_SRC_1, &binary->b);
    add_operand(p, DNNL_ARG_DST, &binary->y);
    return describe(call, p, &operation);
}

bool cm_dnnl_make_concat(struct cm_call *call, const struct cm_dnnl_operand *x, int count, int axis,
                         const struct cm_dnnl_operand *y)
{
    struct primitive *p = new_primitive(call, count + 1);
    dnnl_memory_desc_t *descs = call->engine->state(call, (size_t)count * sizeof *descs);
    const dnnl_memory_desc_t result = desc_of(call, y);
    for (int i = 0; i < count; i++) {
        descs[i] = desc_of(call, &x[i]);
        add_operand(p, DNNL_ARG_MULTIPLE_SRC + i, &x[i]);
    }
    add_operand(p, DNNL_ARG_DST, y);
    /* oneDNN calls reference what moves its parts by reorders: that is as good as any. */
    if (p->attr && dnnl_concat_primitive_desc_create(&p->desc, &result, count, axis, descs, p->attr,
                                                     engine()) == dnnl_success)
        return true;
    primitive_release(p);
    return cm_call_decline(call, "oneDNN has no primitive for it");
}

/* ---- after acceptance ---- */

/* The layout of one operand as cm_layout; NULL: plain. */
static const struct cm_layout *layout_for(struct cm_call *call, const struct cm_dnnl_operand *asked,
                                          const dnnl_memory_desc_t *desc)
{
    const dnnl_memory_desc_t plain = plain_desc(asked);
    if (asked->order == CM_DNNL_PLAIN || same_desc(desc, &plain))
        return NULL;
    struct layout *layout = call->engine->state(call, sizeof *layout);
    cm_call_defer(call, layout_release, layout);
    layout->desc = *desc;
    layout->plain = plain;
    layout->base = (struct cm_layout){
        .name = desc->format_kind != dnnl_blocked        ? "onednn packed"
                : desc->format_desc.blocking.inner_nblks ? "onednn blocked"
                                                         : "channels last",
        .bytes = dnnl_memory_desc_get_size(desc),
        .size = sizeof *layout,
        .same = layout_same,
        .reorder = layout_reorder,
    };
    return &layout->base;
}

static enum cm_status out_of_memory(struct cm_call *call)
{
    return cm_call_fail(call, CM_NO_MEMORY, "oneDNN cannot make its primitive");
}

enum cm_status cm_dnnl_prepare(struct cm_call *call)
{
    struct primitive *p = call->state;
    for (int i = 0; i < p->n_operands; i++) {
        struct operand *operand = &p->operands[i];
        const dnnl_memory_desc_t *desc =
            dnnl_primitive_desc_query_md(p->desc, dnnl_query_exec_arg_md, operand->arg);
        const struct cm_layout *layout = layout_for(call, &operand->asked, desc);
        if (operand->asked.place >= 0)
            cm_call_want_layout(call, operand->asked.place, layout);
        else
            cm_call_give_layout(call, ~operand->asked.place, layout);
        if (dnnl_memory_create(&operand->memory, desc, engine(), DNNL_MEMORY_NONE) != dnnl_success)
            return out_of_memory(call);
        p->args[i] = (dnnl_exec_arg_t){operand->arg, operand->memory};
    }
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(p->desc, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
    const size_t scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    cm_call_scratch(call, scratch_bytes);
    if (scratch_bytes && dnnl_memory_create(&p->scratch, scratch, engine(), DNNL_MEMORY_NONE))
        return out_of_memory(call);
    p->args[p->n_operands] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->scratch};
    if (dnnl_primitive_create(&p->primitive, p->desc) != dnnl_success ||
        dnnl_stream_create(&p->stream, engine(), dnnl_stream_default_flags) != dnnl_success)
        return out_of_memory(call);
    dnnl_primitive_desc_destroy(p->desc);
    p->desc = NULL;
    return CM_OK;
}

enum cm_status cm_dnnl_run(struct cm_call *call)
{
    struct primitive *p = call->state;
    for (int i = 0; i < p->n_operands; i++) {
        struct operand *operand = &p->operands[i];
        const int place = operand->asked.place;
        void *data = place >= 0 ? call->in[place]->data : call->out[~place]->data;
        if (data != operand->data && dnnl_memory_set_data_handle(operand->memory, data))
            return cm_call_fail(call, CM_UNSUPPORTED, "oneDNN refuses its operands");
        operand->data = data;
    }
    if (p->scratch && dnnl_memory_set_data_handle(p->scratch, call->scratch))
        return cm_call_fail(call, CM_UNSUPPORTED, "oneDNN refuses its operands");
    const int n_args = p->n_operands + (p->scratch != NULL);
    const dnnl_status_t status = dnnl_primitive_execute(p->primitive, p->stream, n_args, p->args);
    if (status != dnnl_success || dnnl_stream_wait(p->stream) != dnnl_success)
        return cm_call_fail(call, status == dnnl_out_of_memory ? CM_NO_MEMORY : CM_UNSUPPORTED,
                            "oneDNN cannot run it");
    return CM_OK;
}
