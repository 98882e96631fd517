/* Convolutions by our own code, channels last, with the elementwise operators after them: depthwise
 * ones, and those that read single places where an exponential follows. The latter are matrix
 * products; without such a follower oneDNN is as fast. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/channels_last.h"
#include "backends/cpu/product_plan.h"
#include "backends/depthwise.h"
#include "backends/product_body.h"

#include "base/number.h"
#include "graph/backend.h"

/* Kernels (channels, 1, taps..) as depthwise.h reads them. */
struct taps_layout {
    struct cm_layout base;
    int64_t channels, taps;
};

struct conv_call {
    struct cm_product_plan
        plan; /* first, for product_plan.h; of a depthwise one: bias, followers */
    struct cm_depthwise_sizes sizes; /* no channels: it is a matrix product */
    struct taps_layout layout;
    bool constant; /* the kernels: packed once */
};

static bool same_taps(const struct cm_layout *a, const struct cm_layout *b)
{
    const struct taps_layout *x = (const struct taps_layout *)a;
    const struct taps_layout *y = (const struct taps_layout *)b;
    return x->channels == y->channels && x->taps == y->taps;
}

static enum cm_status pack_taps(const struct cm_tensor *from, struct cm_tensor *to,
                                struct cm_error *err)
{
    const struct taps_layout *layout = (const struct taps_layout *)to->layout;
    if (from->layout || !layout)
        return cm_fail(err, CM_UNSUPPORTED, "only convolutions read kernels in layout 'taps'");
    cm_depthwise_pack(layout->channels, layout->taps, from->data, to->data);
    return CM_OK;
}

/* ---- reading a call ---- */

/* The convolution that a call is or begins with; NULL: neither. */
static const struct cm_node *conv_of(const struct cm_call *call)
{
    const struct cm_node *node = call->node;
    if (node->n_bodies > 0) {
        const struct cm_graph *body = node->bodies[0].graph;
        node = body->n_outputs == 1 && call->n_out == 1 ? body->first : NULL;
    }
    return node && cm_body_is(node, "Conv") ? node : NULL;
}

static bool read_sizes(struct cm_call *call, const struct cm_conv_window *w, const int *in,
                       struct cm_depthwise_sizes *s)
{
    const struct cm_shape *x = &call->in[in[0]]->shape, *weights = &call->in[in[1]]->shape;
    const struct cm_shape *y = &call->out[0]->shape;
    if (weights->dims[0] != x->dims[1] || weights->dims[1] != 1)
        return cm_call_decline(call, "the groups have several channels");
    if (x->dims[1] < CM_DEPTHWISE_LANES)
        return cm_call_decline(call, "the image has fewer than %d channels", CM_DEPTHWISE_LANES);
    if (w->rank != 2)
        return cm_call_decline(call, "the image has %d spatial axes", w->rank);
    if (w->kernel[1] > CM_DEPTHWISE_TAPS)
        return cm_call_decline(call, "the kernels are wider than %d", CM_DEPTHWISE_TAPS);
    *s = (struct cm_depthwise_sizes){.images = x->dims[0], .channels = x->dims[1]};
    for (int i = 0; i < 2; i++) {
        s->image[i] = x->dims[i + 2];
        s->result[i] = y->dims[i + 2];
        s->kernel[i] = w->kernel[i];
        s->stride[i] = w->stride[i];
        s->dilation[i] = w->dilation[i];
        s->pad[i] = w->pad_begin[i];
    }
    return true;
}

/* Bias and followers. What is added first and as large as the result follows like all else. */
static bool read_depthwise(struct cm_call *call, struct conv_call *conv, const int *in)
{
    struct cm_product_plan *plan = &conv->plan;
    *plan = (struct cm_product_plan){
        .a = in[0], .b = in[1], .d = in[2], .gemm.n = conv->sizes.channels, .column_axis = 1};
    conv->constant = cm_call_is_constant(call, plan->b);
    if (call->node->n_bodies > 0 && !cm_product_read_followers(call, plan))
        return false;
    if (plan->gemm.d_row > 0) {
        plan->d = -1;
        plan->first_follower = 0;
    }
    return true;
}

static bool reads_single_places(const struct cm_conv_window *w)
{
    for (int i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->pad_end[i])
            return false;
    return true;
}

static bool has_exponential(const struct cm_node *conv)
{
    for (const struct cm_node *node = conv->next; node; node = node->next)
        if (cm_body_is(node, "Swish") || cm_body_is(node, "Sigmoid"))
            return true;
    return false;
}

static bool read_product(struct cm_call *call, struct conv_call *conv, const struct cm_node *node,
                         const struct cm_conv_window *w, const int *in)
{
    if (cm_node_int(node, "group") != 1)
        return cm_call_decline(call, "the groups have several channels");
    if (!reads_single_places(w))
        return cm_call_decline(call, "the kernel reads several places at a time");
    if (call->node->n_bodies == 0 || !has_exponential(node))
        return cm_call_decline(call, "no exponential follows the convolution");
    if (!cm_call_is_constant(call, in[1]))
        return cm_call_decline(call, "the weights are not constant");
    const struct cm_product_plan *plan = cm_product_plan_new(call, node, in);
    if (!plan)
        return false;
    conv->plan = *plan;
    return cm_product_read_followers(call, &conv->plan);
}

static bool accepts(struct cm_call *call)
{
    const struct cm_node *node = conv_of(call);
    struct cm_conv_window window;
    struct conv_call conv = {.constant = false};
    int in[3];
    if (!node)
        return cm_call_decline(call, "the group does not begin with a convolution");
    if (!cm_product_places(call, node, in))
        return false;
    if (!cm_channels_last_found())
        return cm_call_decline(call, "layouts with channels last are oneDNN's");
    const struct cm_shape *x = &call->in[in[0]]->shape, *weights = &call->in[in[1]]->shape;
    if (!cm_conv_window_read(call, node, x, weights, &window))
        return false;
    const bool depthwise = x->dims[1] > 1 && cm_node_int(node, "group") == x->dims[1];
    if (depthwise ? !read_sizes(call, &window, in, &conv.sizes) || !read_depthwise(call, &conv, in)
                  : !read_product(call, &conv, node, &window, in))
        return false;
    *(struct conv_call *)cm_call_state(call, sizeof conv) = conv;
    return true;
}

/* ---- layouts ---- */

static enum cm_status want_channels_last(struct cm_call *call, int i)
{
    const struct cm_layout *layout;
    CM_TRY(cm_channels_last(call, &call->in[i]->shape, &layout));
    cm_call_want_layout(call, i, layout);
    return CM_OK;
}

static enum cm_status choose_layouts(struct cm_call *call, const struct cm_product_plan *plan)
{
    const struct cm_layout *layout;
    CM_TRY(want_channels_last(call, plan->a));
    if (plan->gemm.d_row > 0 && plan->d >= 0)
        CM_TRY(want_channels_last(call, plan->d));
    for (int i = plan->first_follower; i < plan->n_followers; i++)
        for (int j = 0; j < plan->followers[i].n_in; j++)
            if (plan->followers[i].in[j].extent == CM_PRODUCT_WHOLE)
                CM_TRY(want_channels_last(call, plan->followers[i].in[j].place));
    CM_TRY(cm_channels_last(call, &call->out[0]->shape, &layout));
    cm_call_give_layout(call, 0, layout);
    return CM_OK;
}

static enum cm_status prepare_depthwise(struct cm_call *call, struct conv_call *conv)
{
    const struct cm_depthwise_sizes *s = &conv->sizes;
    const size_t bytes = cm_tensor_bytes(call->in[conv->plan.b]);
    if (!conv->constant) {
        cm_call_scratch(call, bytes);
        return CM_OK;
    }
    conv->layout = (struct taps_layout){.base = {.name = "taps",
                                                 .bytes = bytes,
                                                 .size = sizeof conv->layout,
                                                 .same = same_taps,
                                                 .reorder = pack_taps},
                                        .channels = s->channels,
                                        .taps = s->kernel[0] * s->kernel[1]};
    cm_call_want_layout(call, conv->plan.b, &conv->layout.base);
    return CM_OK;
}

static enum cm_status prepare(struct cm_call *call)
{
    struct conv_call *conv = call->state;
    CM_TRY(choose_layouts(call, &conv->plan));
    return conv->sizes.channels > 0 ? prepare_depthwise(call, conv) : cm_product_plan_prepare(call);
}

/* ---- running it ---- */

static void finish(const void *arg, int64_t place, int64_t places, float *y)
{
    const struct cm_product_finish *f = arg;
    const int64_t channels = f->plan->gemm.n;
    cm_product_finish(f, place, places, 0, channels, y, channels);
}

static void run_depthwise(struct cm_call *call, const struct conv_call *conv)
{
    const struct cm_product_plan *plan = &conv->plan;
    const struct cm_depthwise_sizes *s = &conv->sizes;
    const struct cm_product_finish followers = {plan, call, 0};
    const float *kernels = call->in[plan->b]->data;
    if (!conv->constant) {
        cm_depthwise_pack(s->channels, s->kernel[0] * s->kernel[1], kernels, call->scratch);
        kernels = call->scratch;
    }
    cm_depthwise_run(&(struct cm_depthwise_run){
        .sizes = *s,
        .x = call->in[plan->a]->data,
        .kernels = kernels,
        .bias = plan->d >= 0 ? call->in[plan->d]->data : NULL,
        .y = call->out[0]->data,
        .finish = plan->n_followers > plan->first_follower ? finish : NULL,
        .finish_arg = &followers});
}

static enum cm_status run(struct cm_call *call)
{
    const struct conv_call *conv = call->state;
    if (conv->sizes.channels == 0)
        return cm_product_plan_run(call);
    run_depthwise(call, conv);
    return CM_OK;
}

CM_KERNEL(cpu, Conv, .label = "channels-last convolution", .accepts = accepts, .prepare = prepare,
          .run = run, .layouts = CM_LAYOUT_CHOSEN);
CM_KERNEL_IN(cpu, "ai.cameo", ProductRegion, .label = "channels-last convolution",
             .accepts = accepts, .prepare = prepare, .run = run, .layouts = CM_LAYOUT_CHOSEN);
