/* Items as a pickle of protocol 2, which every Python reads and torch.load takes as data. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_PICKLE_WRITE_H
#define CM_CONVERT_PICKLE_WRITE_H

#include "base/array.h"
#include "bytes/byte_buffer.h"
#include "convert/saved.h"

struct cm_pickle_writer {
    struct cm_arena *arena;
    struct cm_bytes out; /* in arena */
    struct cm_map names; /* of classes and functions -> 1 + memo number */
    size_t visited;
    /* Tensors, each a storage of its own but for tied ones; only where tensors are wanted. */
    bool with_tensors;
    struct cm_map tied; /* struct cm_saved_tensor.storage -> number */
    CM_ARRAY(const struct cm_saved_tensor *) storages;
};

/* The whole pickle of item, in out. Lists with truth set are tuples. An object with truth set is a
 * name ("torch.float32"); one with a state is made of its class and arguments without being called,
 * and given the state; another one is called with its arguments. */
enum cm_status cm_pickle_write(struct cm_pickle_writer *writer, const struct cm_item *item,
                               struct cm_error *err) CM_MUST_CHECK;

#endif
