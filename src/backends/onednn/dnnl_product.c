/* What convolutions and matrix products share: their operands' places, and what follows them. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_product.h"

struct cm_dnnl_product cm_dnnl_lone_product(const struct cm_call *call)
{
    struct cm_dnnl_product product = {.node = call->node};

    for (int i = 0; i < 3; i++)
        product.in[i] = i < call->n_in && call->in[i] ? i : -1;
    return product;
}

/* The operand as the result sees it: with as many axes, 1 where it repeats. */
static void set_extent(struct cm_dnnl_operand *operand, const struct cm_dnnl_follower *follower,
                       int channel_axis, const struct cm_dnnl_operand *y)
{
    *operand = (struct cm_dnnl_operand){.place = CM_DNNL_IN(follower->place), .rank = y->rank};
    for (int i = 0; i < y->rank; i++) {
        const bool repeats = follower->extent == CM_BODY_NUMBER ||
                             (follower->extent == CM_BODY_COLUMN && i != channel_axis);
        operand->dims[i] = repeats ? 1 : y->dims[i];
    }
}

/* A convolution's bias has one axis, a matrix product's as many as the matrix. */
static void set_bias(struct cm_dnnl_operand *bias, const struct cm_dnnl_follower *follower,
                     int channel_axis, bool is_vector, const struct cm_dnnl_operand *y)
{
    set_extent(bias, follower, channel_axis, y);
    if (is_vector) {
        bias->rank = 1;
        bias->dims[0] = y->dims[channel_axis];
    }
}

static bool is_linear(const struct cm_dnnl_post *post)
{
    return post->kind == CM_DNNL_POST_FUNCTION && post->function == CM_DNNL_LINEAR;
}

static bool add_post(struct cm_call *call, struct cm_dnnl_posts *posts,
                     const struct cm_dnnl_post *post)
{
    struct cm_dnnl_post *last = posts->count ? &posts->items[posts->count - 1] : NULL;
    if (last && is_linear(last) && is_linear(post)) { /* a (a' x + b') + b */
        last->b = post->a * last->b + post->b;
        last->a *= post->a;
        return true;
    }
    if (posts->count == CM_DNNL_MOST_POSTS)
        return cm_call_decline(call, "more than %d operators follow the product",
                               CM_DNNL_MOST_POSTS);
    posts->items[posts->count++] = *post;
    return true;
}

bool cm_dnnl_set_followers(struct cm_call *call, const struct cm_dnnl_product *product,
                           enum cm_dnnl_channels channels, const struct cm_dnnl_operand *y,
                           struct cm_dnnl_operand *bias, struct cm_dnnl_posts *posts)
{
    const bool at_1 = channels == CM_DNNL_CHANNELS_AT_1;
    const int axis = at_1 ? 1 : y->rank - 1;
    bool has_sum = false;

    for (int i = 0; i < product->n_followers; i++) {
        const struct cm_dnnl_follower *follower = &product->followers[i];
        struct cm_dnnl_post post = {.function = follower->function,
                                    .a = follower->a,
                                    .b = follower->b,
                                    .joining = CM_DNNL_ADD};
        if (follower->adds && follower->extent == CM_BODY_COLUMN && !bias->rank &&
            posts->count == 0) {
            set_bias(bias, follower, axis, at_1, y);
            continue;
        }
        if (follower->adds) {
            const bool whole = follower->extent == CM_BODY_WHOLE;
            if (whole && has_sum)
                return cm_call_decline(call, "two tensors as large as the result are added");
            has_sum = has_sum || whole;
            post.kind = whole ? CM_DNNL_POST_SUM : CM_DNNL_POST_JOIN;
            set_extent(&post.operand, follower, axis, y);
        }
        if (!add_post(call, posts, &post))
            return false;
    }
    return true;
}
