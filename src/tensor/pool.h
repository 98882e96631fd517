/* Buffers that are used again: a run whose results have the sizes of the last one's allocates
 * nothing. Safe from several threads; a buffer may outlive the pool it came from. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_POOL_H
#define CM_TENSOR_POOL_H

#include "tensor/tensor.h"

struct cm_pool;

/* limit: bytes of buffers handed out at once; 0: none. NULL when there is no memory. */
struct cm_pool *cm_pool_new(size_t limit);
/* Frees what lies unused; buffers still out are freed when they come back. */
void cm_pool_free(struct cm_pool *pool);
/* A buffer with room for size bytes; CM_LIMIT when that would pass the limit. */
enum cm_status cm_pool_get(struct cm_pool *pool, size_t size, struct cm_buffer **out,
                           struct cm_error *err) CM_MUST_CHECK;
/* A tensor over such a buffer. Strings are empty. */
enum cm_status cm_pool_tensor(struct cm_pool *pool, enum cm_dtype type,
                              const struct cm_shape *shape, struct cm_tensor *out,
                              struct cm_error *err) CM_MUST_CHECK;
size_t cm_pool_size(size_t size); /* bytes that a request for size takes; 0: too large */
/* For cm_buffer_enter. */
struct cm_buffer_source cm_pool_source(struct cm_pool *pool);
size_t cm_pool_used(struct cm_pool *pool); /* bytes handed out now */
size_t cm_pool_held(struct cm_pool *pool); /* and those that lie unused */
/* Frees what lies unused if the pool holds more than this; one with a limit does so by itself. */
void cm_pool_trim(struct cm_pool *pool, size_t most);

#endif
