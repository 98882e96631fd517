/* What a buffer is, for the files of tensor/ that make and unmake them. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_BUFFER_H
#define CM_TENSOR_BUFFER_H

#include "tensor/tensor.h"

#include <stdatomic.h>

struct cm_held {
    struct cm_buffer *buffer;
    struct cm_held *next;
};

struct cm_pool;

struct cm_buffer {
    atomic_size_t references;
    void *data;
    size_t size;
    cm_buffer_free_fn *free_owner;
    void *owner;
    struct cm_held *held;
    struct cm_pool *pool; /* where it goes when the last reference does; NULL: freed */
    bool read_only;       /* its bytes are only to be read */
};

/* The header lies in front of the data, which keeps its alignment. */
enum { CM_BUFFER_HEADER = 64 };
_Static_assert(sizeof(struct cm_buffer) <= CM_BUFFER_HEADER,
               "the header must not push the data off its line");
_Static_assert(CM_BUFFER_HEADER % CM_TENSOR_ALIGNMENT == 0, "the data must stay aligned");

void cm_pool_take_back(struct cm_pool *pool, struct cm_buffer *buffer);

#endif
