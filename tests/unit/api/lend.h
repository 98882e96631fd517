/* Memory of a test's as tensors that live on: feeds point at them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CAMEO_TESTS_API_LEND_H
#define CAMEO_TESTS_API_LEND_H

#include "cameo.h"

/* Good until 512 more were asked for. */
static inline struct cameo_tensor *lend(enum cameo_dtype dtype, int rank, const int64_t *dims,
                                        const void *data, size_t bytes)
{
    static _Thread_local struct cameo_tensor tensors[512];
    static _Thread_local size_t used;
    struct cameo_tensor *tensor = &tensors[used++ % 512];

    *tensor = cameo_tensor_of(dtype, rank, dims, data, bytes);
    return tensor;
}

static inline struct cameo_feed feed_index(size_t index, const struct cameo_tensor *tensor)
{
    struct cameo_feed feed = cameo_feed_tensor(NULL, tensor);

    feed.index = index;
    return feed;
}

static inline struct cameo_fetch fetch_index(size_t index)
{
    struct cameo_fetch fetch = CAMEO_FETCH_INIT;

    fetch.index = index;
    return fetch;
}

#endif
