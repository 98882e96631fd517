/* Images (batch, channel, spatial..) as kernels of this backend walk over them: row-major, channels
 * last, or with blocks of channels, whoever laid them so. Element (n, c, place) is at
 * ((n * groups + c / block) * area + place) * block + c % block. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_CHANNEL_BLOCKS_H
#define CM_BACKENDS_CPU_CHANNEL_BLOCKS_H

#include "tensor/layout.h"

struct channel_blocks {
    int64_t images, channels, area; /* area: places of an image */
    int64_t block, groups; /* channels side by side; blocks of them. Row-major: blocks of 1 */
};

/* The layout a tensor may stay in: its own, or NULL, row-major, where that is not one of those. */
static inline const struct cm_layout *channel_layout(const struct cm_tensor *tensor)
{
    return tensor->layout && tensor->layout->channel_block > 0 ? tensor->layout : NULL;
}

/* A batch of single numbers has one channel. The tensor is not empty. */
static inline struct channel_blocks channel_blocks_of(const struct cm_shape *shape,
                                                      const struct cm_layout *layout)
{
    struct channel_blocks b = {.images = shape->dims[0],
                               .channels = shape->rank > 1 ? shape->dims[1] : 1,
                               .area = shape->rank > 2 ? cm_shape_span(shape, 2, shape->rank) : 1,
                               .block = layout ? layout->channel_block : 1};
    b.groups = (b.channels + b.block - 1) / b.block;
    if (b.area == 1 && !layout) { /* of one place: the channels lie side by side */
        b.block = b.channels;
        b.groups = 1;
    }
    return b;
}

/* A tensor of shape `whole` or of one that repeats over it, as broadcasting has it, with axes as
 * its elements lie when the whole is in blocks of channels and others are row-major: (batch, blocks
 * of channels, places, channels of a block). False: it repeats in another way than by batch,
 * channel or place. */
static inline bool channel_blocks_see(const struct cm_shape *shape, const struct cm_shape *whole,
                                      const struct cm_layout *layout, struct cm_shape *out)
{
    const int missing = whole->rank - shape->rank;
    int64_t dims[2] = {1, 1}, places = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (missing + i < 2)
            dims[missing + i] = shape->dims[i];
        else
            places *= shape->dims[i];
    }
    const int64_t block = dims[1] > 1 ? layout->channel_block : 1;
    *out = (struct cm_shape){.rank = 4, .dims = {dims[0], dims[1] / block, places, block}};
    return places == 1 || cm_shape_equal(shape, whole) ||
           (dims[1] == 1 && places == cm_shape_span(whole, 2, whole->rank));
}

#endif
