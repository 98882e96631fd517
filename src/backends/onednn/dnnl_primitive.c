/* Primitives of oneDNN, whatever its major version. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_layout.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "tensor/layout.h"

#include <errno.h>

/* ---- how much work it is ---- */

static double elements_of(const struct cm_dnnl_operand *operand)
{
    double count = 1;
    for (int i = 0; i < operand->rank; i++)
        count *= (double)operand->dims[i];
    return count;
}

/* ---- primitives ---- */

struct dnnl_operand {
    struct cm_dnnl_operand asked;
    int arg; /* DNNL_ARG_DST of an input: it is added to the result */
    struct dnnl_memory_desc *desc;
    struct dnnl_memory *memory;
    const void *data; /* the memory's handle */
    /* CM_DNNL_MOVED, where the primitive writes no rows: it writes at this place of scratch. */
    struct cm_dnnl_mover delivery;
    size_t delivered_from;
};

/* What a call holds, from acceptance on. */
struct dnnl_work {
    struct dnnl_work *next; /* another primitive of the same call, run after this one; or NULL */
    struct dnnl_primitive_attr *attr;
    struct dnnl_primitive_desc *desc;
    struct dnnl_primitive *primitive;
    struct dnnl_stream *stream;
    struct dnnl_memory *scratch;
    struct dnnl_operand *operands;
    struct dnnl_exec_arg *args; /* the operands, then scratch */
    int n_operands, n_args;
    int addend;       /* the input that is added to the result; -1: none */
    size_t sum_bytes; /* of the result, when there is an addend */
    bool loses_nan;
    bool alone;         /* too little work for a team */
    bool out_of_memory; /* or refused, while operands were described */
};

static void work_release(void *what)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct dnnl_work *p = what;
    for (int i = 0; i < p->n_operands; i++) {
        if (p->operands[i].memory)
            dnnl->fn.memory_destroy(p->operands[i].memory);
        cm_dnnl_mover_release(&p->operands[i].delivery);
        dnnl->major->free(p->operands[i].desc);
    }
    if (p->scratch)
        dnnl->fn.memory_destroy(p->scratch);
    if (p->stream)
        dnnl->fn.stream_destroy(p->stream);
    if (p->primitive)
        dnnl->fn.primitive_destroy(p->primitive);
    if (p->desc)
        dnnl->fn.primitive_desc_destroy(p->desc);
    if (p->attr)
        dnnl->fn.primitive_attr_destroy(p->attr);
    *p = (struct dnnl_work){0};
}

/* Tied to the call before it holds anything. NULL, with the reason, without oneDNN. */
static struct dnnl_work *new_work(struct cm_call *call, int most_operands, double work)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    const size_t count = (size_t)most_operands;
    if (!dnnl->usable && dnnl->library.no_memory) {
        (void)cm_call_fail(call, CM_NO_MEMORY, "oneDNN cannot be opened: %s", dnnl->library.why);
        return NULL;
    }
    if (!dnnl->usable) {
        cm_call_decline(call, "oneDNN is not available: %s", dnnl->library.why);
        return NULL;
    }
    if (!cm_memory_is_left(CM_DNNL_RESERVE)) {
        (void)cm_dnnl_out_of_memory(call);
        return NULL;
    }
    errno = 0; /* see ran_out */
    const bool alone = work < CM_DNNL_WORTH_A_TEAM;
    cm_team_lend(!alone);
    struct dnnl_operand *operands = cm_call_state(call, count * sizeof *operands);
    struct dnnl_exec_arg *args = cm_call_state(call, (count + 1) * sizeof *args);
    struct dnnl_work *p = cm_call_state(call, sizeof *p);
    cm_call_defer(call, work_release, p);
    *p = (struct dnnl_work){.operands = operands, .args = args, .addend = -1, .alone = alone};
    /* Without it `accept` refuses; what may fail in there is memory alone. */
    if (dnnl->fn.primitive_attr_create(&p->attr) == DNNL_SUCCESS)
        dnnl->fn.primitive_attr_set_scratchpad_mode(p->attr, DNNL_SCRATCHPAD_MODE_USER);
    else
        p->attr = NULL;
    return p;
}

/* The descriptor an operation is asked with. */
static struct dnnl_memory_desc *desc_of(const struct cm_call *call,
                                        const struct cm_dnnl_operand *operand)
{
    const struct cm_dnnl_major *major = cm_dnnl_get()->major;
    const struct cm_layout *lies = operand->place >= 0 ? call->in[operand->place]->layout : NULL;
    int64_t strides[CM_DNNL_MAX_RANK];
    switch (operand->order) {
    case CM_DNNL_PLAIN:
        break;
    case CM_DNNL_CHANNELS_LAST:
        cm_dnnl_channels_last_strides(operand->rank, operand->dims, strides);
        return major->strided(operand->rank, operand->dims, strides);
    case CM_DNNL_GIVEN:
        if (cm_dnnl_is_layout(lies))
            return major->copy(((const struct cm_dnnl_layout *)lies)->desc);
        break;
    case CM_DNNL_FREE:
    case CM_DNNL_MOVED:
        return major->any(operand->rank, operand->dims);
    }
    return cm_dnnl_plain_desc(operand);
}

/* NULL when the operand is absent. */
static const struct dnnl_memory_desc *add_operand(const struct cm_call *call, struct dnnl_work *p,
                                                  int arg, const struct cm_dnnl_operand *operand)
{
    if (!operand->rank)
        return NULL;
    struct dnnl_memory_desc *desc = desc_of(call, operand);
    p->out_of_memory |= !desc;
    p->operands[p->n_operands++] =
        (struct dnnl_operand){.asked = *operand, .arg = arg, .desc = desc};
    return desc;
}

static const char *implementation(const struct dnnl_work *p)
{
    const char *name = "";
    cm_dnnl_get()->fn.primitive_desc_query(p->desc, DNNL_QUERY_IMPL_INFO_STR, 0, &name);
    return name;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool decline(struct cm_call *call, struct dnnl_work *p, const char *why)
{
    work_release(p);
    return cm_call_decline(call, "%s", why);
}

/* Did memory run out since new_work? oneDNN passes over an implementation that it has no memory for
 * and takes the next, which computes other bits, so its status alone does not tell; allocators
 * leave ENOMEM in errno. */
static bool ran_out(int status)
{
    return status == DNNL_OUT_OF_MEMORY || errno == ENOMEM;
}

/* Only what can be told apart can be kept from step to step. */
static bool can_be_compared(const struct dnnl_work *p)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct cm_dnnl_arrangement unused;
    for (int i = 0; i < p->n_operands; i++) {
        const struct dnnl_memory_desc *desc =
            dnnl->fn.primitive_desc_query_md(p->desc, DNNL_QUERY_EXEC_ARG_MD, p->operands[i].arg);
        if (!desc || !dnnl->major->arrangement(desc, &unused))
            return false;
    }
    return true;
}

/* Takes the descriptor of the primitive; false with the reason when there is none. */
static bool take_desc(struct cm_call *call, struct dnnl_work *p, int status,
                      const struct cm_dnnl_making *making)
{
    p->desc = status == DNNL_SUCCESS ? making->desc : NULL;
    if (ran_out(status)) {
        work_release(p);
        return !cm_dnnl_out_of_memory(call);
    }
    return p->desc || decline(call, p, "oneDNN has no primitive for these operands");
}

static const int binary_kinds[] = {
    [CM_DNNL_ADD] = DNNL_BINARY_ADD,
    [CM_DNNL_SUB] = DNNL_BINARY_SUB,
    [CM_DNNL_MUL] = DNNL_BINARY_MUL,
    [CM_DNNL_DIV] = DNNL_BINARY_DIV,
};

/* ---- post-operations ---- */

static bool post_loses_nan(const struct cm_dnnl_post *post)
{
    if (post->kind != CM_DNNL_POST_FUNCTION)
        return false;
    switch (post->function) {
    case CM_DNNL_RELU: /* the leaky one multiplies */
        return post->a == 0;
    case CM_DNNL_SQUARE:
    case CM_DNNL_ABS:
    case CM_DNNL_SQRT:
    case CM_DNNL_LINEAR:
        return false;
    default:
        return true;
    }
}

bool cm_dnnl_loses_nan(const struct cm_call *call)
{
    return ((const struct dnnl_work *)call->state)->loses_nan;
}

static int append_post(const struct cm_call *call, struct dnnl_work *p, struct dnnl_post_ops *ops,
                       const struct cm_dnnl_post *post, int number)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    const struct dnnl_memory_desc *desc;
    switch (post->kind) {
    case CM_DNNL_POST_FUNCTION:
        return dnnl->major->append_function(ops, post->function, post->a, post->b);
    case CM_DNNL_POST_SUM:
        p->addend = post->operand.place;
        return dnnl->major->append_sum(ops);
    case CM_DNNL_POST_JOIN:
        desc = add_operand(call, p, dnnl->major->post_operand * (number + 1) | DNNL_ARG_SRC_1,
                           &post->operand);
        return desc ? dnnl->fn.post_ops_append_binary(ops, binary_kinds[post->joining], desc)
                    : DNNL_OUT_OF_MEMORY;
    }
    return DNNL_OUT_OF_MEMORY;
}

static void add_posts(const struct cm_call *call, struct dnnl_work *p,
                      const struct cm_dnnl_posts *posts)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    struct dnnl_post_ops *ops = NULL;
    if (posts->count == 0 || !p->attr)
        return;
    int status = dnnl->fn.post_ops_create(&ops);
    for (int i = 0; i < posts->count && status == DNNL_SUCCESS; i++) {
        p->loses_nan |= post_loses_nan(&posts->items[i]);
        status = append_post(call, p, ops, &posts->items[i], i);
    }
    if (status == DNNL_SUCCESS)
        status = dnnl->fn.primitive_attr_set_post_ops(p->attr, ops);
    if (ops)
        dnnl->fn.post_ops_destroy(ops);
    p->out_of_memory |= status != DNNL_SUCCESS;
}

/* oneDNN 2 keeps one set of parameters for all post-operations of a kind: the second of two
 * multiplications would use the factor of the first. */
static bool posts_differ_in_kind(const struct cm_dnnl_posts *posts)
{
    for (int i = 0; i < posts->count; i++)
        for (int k = 0; k < i; k++) {
            const struct cm_dnnl_post *a = &posts->items[i], *b = &posts->items[k];
            if (a->kind == CM_DNNL_POST_FUNCTION && b->kind == CM_DNNL_POST_FUNCTION &&
                a->function == b->function && (a->a != b->a || a->b != b->b))
                return false;
        }
    return true;
}

static bool check_posts(struct cm_call *call, const struct cm_dnnl_posts *posts)
{
    return posts_differ_in_kind(posts) ||
           cm_call_decline(call, "one function follows twice, with other parameters");
}

/* ---- factories ---- */

/* What a primitive is made of. */
struct recipe {
    enum cm_dnnl_operation operation;
    struct cm_dnnl_making making; /* asked, kind, transposed and window as the operation needs */
    double work;
    const struct part {
        int arg;
        const struct cm_dnnl_operand *operand;
    } * parts;
    int n_parts;
    const struct cm_dnnl_posts *posts; /* NULL: nothing follows */
    bool direct;                       /* not by way of a matrix product */
    bool may_be_reference;
};

/* False with the reason where oneDNN has no code that is good enough. */
static bool accept(struct cm_call *call, struct dnnl_work *p, const struct recipe *recipe)
{
    if (recipe->may_be_reference)
        return true;
    if (starts_with(implementation(p), "ref"))
        return decline(call, p, "oneDNN has only reference code for these operands");
    if (!can_be_compared(p))
        return decline(call, p, "oneDNN arranges an operand in a layout of its own");
    if (recipe->direct && strstr(implementation(p), "gemm"))
        return decline(call, p, "oneDNN has no direct convolution for these operands");
    return true;
}

/* NULL with the reason where oneDNN has nothing good. */
static struct dnnl_work *make(struct cm_call *call, const struct recipe *recipe)
{
    struct cm_dnnl_making making = recipe->making;
    const int most = recipe->n_parts + (recipe->posts ? CM_DNNL_MOST_POSTS : 0);
    struct dnnl_work *p = !recipe->posts || check_posts(call, recipe->posts)
                              ? new_work(call, most, recipe->work)
                              : NULL;
    if (!p)
        return NULL;
    making.operands = call->engine->state(call, (size_t)recipe->n_parts * sizeof *making.operands);
    for (int i = 0; i < recipe->n_parts; i++)
        making.operands[i] = add_operand(call, p, recipe->parts[i].arg, recipe->parts[i].operand);
    making.n_operands = recipe->n_parts;
    for (int i = 0; making.window && i < making.window->rank; i++)
        making.holes[i] = making.window->dilation[i] - 1;
    if (recipe->posts)
        add_posts(call, p, recipe->posts);
    making.engine = cm_dnnl_get()->engine;
    making.attr = p->attr;
    /* Without attributes and operands there is nothing to ask oneDNN with. */
    const int status = p->attr && !p->out_of_memory
                           ? cm_dnnl_get()->major->describe[recipe->operation](&making)
                           : DNNL_OUT_OF_MEMORY;
    return take_desc(call, p, status, &making) && accept(call, p, recipe) ? p : NULL;
}

/* Every weight meets every place of `places` of its channel. */
static double work_of_conv(const struct cm_dnnl_operand *weights,
                           const struct cm_dnnl_operand *places)
{
    return 2 * elements_of(weights) * elements_of(places) / (double)places->dims[1];
}

#define PARTS(parts) .parts = parts, .n_parts = CM_COUNT(parts)

bool cm_dnnl_make_conv(struct cm_call *call, const struct cm_dnnl_conv *conv)
{
    const struct part parts[] = {{DNNL_ARG_SRC, &conv->x},
                                 {DNNL_ARG_WEIGHTS, &conv->weights},
                                 {DNNL_ARG_BIAS, &conv->bias},
                                 {DNNL_ARG_DST, &conv->y}};
    return make(
        call, &(struct recipe){CM_DNNL_CONV,
                               {.transposed = conv->transposed, .window = &conv->window},
                               work_of_conv(&conv->weights, conv->transposed ? &conv->x : &conv->y),
                               PARTS(parts),
                               .posts = &conv->posts,
                               .direct = conv->direct});
}

static struct dnnl_work *make_conv_weights(struct cm_call *call,
                                           const struct cm_dnnl_conv_grad *grad)
{
    const struct part parts[] = {{DNNL_ARG_SRC, &grad->x},
                                 {DNNL_ARG_DIFF_WEIGHTS, &grad->dw},
                                 {DNNL_ARG_DIFF_BIAS, &grad->db},
                                 {DNNL_ARG_DIFF_DST, &grad->dy}};
    return make(call, &(struct recipe){
                          CM_DNNL_CONV_WEIGHTS,
                          {.transposed = grad->transposed, .window = &grad->window},
                          work_of_conv(&grad->weights, grad->transposed ? &grad->x : &grad->dy),
                          PARTS(parts),
                          .direct = grad->direct});
}

static struct dnnl_work *make_conv_data(struct cm_call *call, const struct cm_dnnl_conv_grad *grad)
{
    const struct part parts[] = {{DNNL_ARG_DIFF_SRC, &grad->dx},
                                 {DNNL_ARG_WEIGHTS, &grad->weights},
                                 {DNNL_ARG_DIFF_DST, &grad->dy}};
    return make(call, &(struct recipe){
                          CM_DNNL_CONV_DATA,
                          {.transposed = grad->transposed, .window = &grad->window},
                          work_of_conv(&grad->weights, grad->transposed ? &grad->x : &grad->dy),
                          PARTS(parts),
                          .direct = grad->direct});
}

/* Do both read their operand `arg` in one arrangement? */
static bool agree_on(const struct dnnl_work *a, const struct dnnl_work *b, int arg)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    return dnnl->fn.memory_desc_equal(
        dnnl->fn.primitive_desc_query_md(a->desc, DNNL_QUERY_EXEC_ARG_MD, arg),
        dnnl->fn.primitive_desc_query_md(b->desc, DNNL_QUERY_EXEC_ARG_MD, arg));
}

bool cm_dnnl_make_conv_grad(struct cm_call *call, const struct cm_dnnl_conv_grad *grad)
{
    struct dnnl_work *weights = NULL, *data;
    if (grad->dw.rank && !(weights = make_conv_weights(call, grad)))
        return false;
    if (!grad->dx.rank)
        return weights != NULL;
    data = make_conv_data(call, grad);
    if (data && weights && !agree_on(data, weights, DNNL_ARG_DIFF_DST)) {
        work_release(weights);
        return decline(call, data, "oneDNN reads dY in two layouts");
    }
    if (!data && weights)
        work_release(weights);
    if (data)
        data->next = weights;
    return data != NULL;
}

bool cm_dnnl_make_matmul(struct cm_call *call, const struct cm_dnnl_matmul *matmul)
{
    const double depth = (double)matmul->a.dims[matmul->a.rank - 1];
    const struct part parts[] = {{DNNL_ARG_SRC, &matmul->a},
                                 {DNNL_ARG_WEIGHTS, &matmul->b},
                                 {DNNL_ARG_BIAS, &matmul->bias},
                                 {DNNL_ARG_DST, &matmul->y}};
    return make(call, &(struct recipe){CM_DNNL_MATMUL,
                                       {0},
                                       2 * depth * elements_of(&matmul->y),
                                       PARTS(parts),
                                       .posts = &matmul->posts});
}

static double work_of_moving(const struct cm_dnnl_operand *operand)
{
    return cm_dnnl_work_of_moving(elements_of(operand));
}

bool cm_dnnl_make_pool(struct cm_call *call, const struct cm_dnnl_pool *pool)
{
    static const int kinds[] = {
        [CM_DNNL_MAX] = DNNL_POOLING_MAX,
        [CM_DNNL_AVERAGE_ALL] = DNNL_POOLING_AVG_INCLUDE_PADDING,
        [CM_DNNL_AVERAGE_REAL] = DNNL_POOLING_AVG_EXCLUDE_PADDING,
    };
    const struct part parts[] = {{DNNL_ARG_SRC, &pool->x}, {DNNL_ARG_DST, &pool->y}};
    return make(call, &(struct recipe){CM_DNNL_POOLING,
                                       {.kind = kinds[pool->kind], .window = &pool->window},
                                       work_of_moving(&pool->x),
                                       PARTS(parts)});
}

bool cm_dnnl_make_batch_norm(struct cm_call *call, const struct cm_dnnl_batch_norm *norm)
{
    const struct part parts[] = {{DNNL_ARG_SRC, &norm->x},
                                 {DNNL_ARG_SCALE, &norm->scale},
                                 {DNNL_ARG_SHIFT, &norm->shift},
                                 {DNNL_ARG_MEAN, &norm->mean},
                                 {DNNL_ARG_VARIANCE, &norm->variance},
                                 {DNNL_ARG_DST, &norm->y}};
    return make(call,
                &(struct recipe){
                    CM_DNNL_BATCH_NORM, {.asked = norm}, work_of_moving(&norm->x), PARTS(parts)});
}

bool cm_dnnl_make_lrn(struct cm_call *call, const struct cm_dnnl_lrn *lrn)
{
    const struct part parts[] = {{DNNL_ARG_SRC, &lrn->x}, {DNNL_ARG_DST, &lrn->y}};
    return make(call,
                &(struct recipe){
                    CM_DNNL_LOCAL_NORM, {.asked = lrn}, work_of_moving(&lrn->x), PARTS(parts)});
}

bool cm_dnnl_make_binary(struct cm_call *call, const struct cm_dnnl_binary *binary)
{
    const struct part parts[] = {
        {DNNL_ARG_SRC, &binary->a}, {DNNL_ARG_SRC_1, &binary->b}, {DNNL_ARG_DST, &binary->y}};
    return make(call, &(struct recipe){CM_DNNL_BINARY,
                                       {.kind = binary_kinds[binary->kind]},
                                       work_of_moving(&binary->y),
                                       PARTS(parts)});
}

bool cm_dnnl_make_concat(struct cm_call *call, const struct cm_dnnl_operand *x, int count, int axis,
                         const struct cm_dnnl_operand *y)
{
    struct part *parts = call->engine->state(call, ((size_t)count + 1) * sizeof *parts);
    for (int i = 0; i < count; i++)
        parts[i] = (struct part){DNNL_ARG_MULTIPLE_SRC + i, &x[i]};
    parts[count] = (struct part){DNNL_ARG_DST, y};
    /* oneDNN calls reference what moves its parts by reorders: that is as good as any. */
    return make(call, &(struct recipe){CM_DNNL_CONCAT,
                                       {.asked = &axis},
                                       work_of_moving(y),
                                       .parts = parts,
                                       .n_parts = count + 1,
                                       .may_be_reference = true});
}

/* ---- after acceptance ---- */

/* A result that the primitive writes in `layout` and the call moves to rows: takes its place in
 * scratch. */
static enum cm_status prepare_delivery(struct cm_call *call, struct dnnl_operand *operand,
                                       const struct cm_layout *layout, size_t *scratch_bytes)
{
    const struct cm_dnnl_layout *made = (const struct cm_dnnl_layout *)layout;
    if (!cm_dnnl_mover_init(&operand->delivery, made->desc, made->plain))
        return cm_dnnl_out_of_memory(call);
    operand->delivered_from = cm_round_up(*scratch_bytes, CM_TENSOR_ALIGNMENT);
    *scratch_bytes = operand->delivered_from + layout->bytes;
    return CM_OK;
}

static enum cm_status prepare_operand(struct cm_call *call, struct dnnl_work *p,
                                      struct dnnl_operand *operand, size_t *scratch_bytes)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    const struct dnnl_memory_desc *desc =
        dnnl->fn.primitive_desc_query_md(p->desc, DNNL_QUERY_EXEC_ARG_MD, operand->arg);
    const struct cm_layout *layout = NULL;
    CM_TRY(cm_dnnl_layout_for(call, &operand->asked, desc, &layout));
    if (operand->asked.place >= 0)
        cm_call_want_layout(call, operand->asked.place, layout);
    else if (layout && operand->asked.order == CM_DNNL_MOVED)
        CM_TRY(prepare_delivery(call, operand, layout, scratch_bytes));
    else
        cm_call_give_layout(call, ~operand->asked.place, layout);
    if (operand->arg == DNNL_ARG_DST && p->addend >= 0) {
        cm_call_want_layout(call, p->addend, layout);
        p->sum_bytes = dnnl->fn.memory_desc_get_size(desc);
    }
    if (dnnl->fn.memory_create(&operand->memory, desc, dnnl->engine, NULL) != DNNL_SUCCESS)
        return cm_dnnl_out_of_memory(call);
    p->args[p->n_args++] = (struct dnnl_exec_arg){operand->arg, operand->memory};
    return CM_OK;
}

/* Raises *scratch_bytes to what it needs: primitives of one call run one after the other. */
static enum cm_status prepare_work(struct cm_call *call, struct dnnl_work *p, size_t *scratch_bytes)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    if (!cm_memory_is_left(CM_DNNL_RESERVE))
        return cm_dnnl_out_of_memory(call);
    cm_team_lend(!p->alone);
    const struct dnnl_memory_desc *scratch =
        dnnl->fn.primitive_desc_query_md(p->desc, DNNL_QUERY_EXEC_ARG_MD, DNNL_ARG_SCRATCHPAD);
    size_t bytes = scratch ? dnnl->fn.memory_desc_get_size(scratch) : 0;
    if (bytes && dnnl->fn.memory_create(&p->scratch, scratch, dnnl->engine, NULL) != DNNL_SUCCESS)
        return cm_dnnl_out_of_memory(call);
    for (int i = 0; i < p->n_operands; i++)
        CM_TRY(prepare_operand(call, p, &p->operands[i], &bytes));
    if (p->scratch)
        p->args[p->n_args++] = (struct dnnl_exec_arg){DNNL_ARG_SCRATCHPAD, p->scratch};
    *scratch_bytes = bytes > *scratch_bytes ? bytes : *scratch_bytes;
    if (dnnl->fn.primitive_create(&p->primitive, p->desc) != DNNL_SUCCESS ||
        dnnl->fn.stream_create(&p->stream, dnnl->engine, DNNL_STREAM_DEFAULT_FLAGS) != DNNL_SUCCESS)
        return cm_dnnl_out_of_memory(call);
    dnnl->fn.primitive_desc_destroy(p->desc);
    p->desc = NULL;
    return CM_OK;
}

enum cm_status cm_dnnl_prepare_state(struct cm_call *call, void *state, size_t scratch_bytes)
{
    for (struct dnnl_work *p = state; p; p = p->next)
        CM_TRY(prepare_work(call, p, &scratch_bytes));
    cm_call_scratch(call, scratch_bytes);
    return CM_OK;
}

enum cm_status cm_dnnl_prepare(struct cm_call *call)
{
    return cm_dnnl_prepare_state(call, call->state, 0);
}

static enum cm_status run_work(struct cm_call *call, struct dnnl_work *p)
{
    const struct cm_dnnl *dnnl = cm_dnnl_get();
    cm_team_lend(!p->alone);
    for (int i = 0; i < p->n_operands; i++) {
        struct dnnl_operand *operand = &p->operands[i];
        const int place = operand->asked.place;
        void *data = operand->delivery.primitive ? (char *)call->scratch + operand->delivered_from
                     : place >= 0                ? call->in[place]->data
                                                 : call->out[~place]->data;
        if (data != operand->data && dnnl->fn.memory_set_data_handle(operand->memory, data))
            return cm_call_fail(call, CM_UNSUPPORTED, "oneDNN refuses its operands");
        operand->data = data;
    }
    if (p->scratch && dnnl->fn.memory_set_data_handle(p->scratch, call->scratch))
        return cm_call_fail(call, CM_UNSUPPORTED, "oneDNN refuses its operands");
    if (p->addend >= 0 && call->in[p->addend]->data != call->out[0]->data)
        memcpy(call->out[0]->data, call->in[p->addend]->data, p->sum_bytes);
    errno = 0;
    const int status = dnnl->fn.primitive_execute(p->primitive, p->stream, p->n_args, p->args);
    if (status != DNNL_SUCCESS || dnnl->fn.stream_wait(p->stream) != DNNL_SUCCESS) {
        const bool no_memory = ran_out(status);
        return cm_call_fail(call, no_memory ? CM_NO_MEMORY : CM_UNSUPPORTED,
                            "oneDNN cannot run it%s", no_memory ? ": no memory" : "");
    }
    for (int i = 0; i < p->n_operands; i++) {
        struct dnnl_operand *operand = &p->operands[i];
        struct cm_dnnl_mover *delivery = &operand->delivery;
        if (delivery->primitive &&
            !cm_dnnl_move(delivery, delivery->from, (char *)call->scratch + operand->delivered_from,
                          delivery->to, call->out[~operand->asked.place]->data))
            return cm_call_fail(call, CM_NO_MEMORY,
                                "no memory for oneDNN to move a result to rows");
    }
    return CM_OK;
}

enum cm_status cm_dnnl_run_state(struct cm_call *call, void *state)
{
    for (struct dnnl_work *p = state; p; p = p->next)
        CM_TRY(run_work(call, p));
    return CM_OK;
}

enum cm_status cm_dnnl_run(struct cm_call *call)
{
    return cm_dnnl_run_state(call, call->state);
}
