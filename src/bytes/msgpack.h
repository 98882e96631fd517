/* MessagePack as flax writes it: maps, lists, texts, numbers, and arrays as extensions, in chunks
 * where they are large. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_MSGPACK_H
#define CM_BYTES_MSGPACK_H

#include "base/file.h"
#include "bytes/item.h"
#include "bytes/saved_tensor.h"

/* flax's extensions, and the key of a map that is an array in chunks. */
enum { CM_MSGPACK_ARRAY = 1, CM_MSGPACK_COMPLEX = 2, CM_MSGPACK_SCALAR = 3 };
#define CM_MSGPACK_CHUNKED "__msgpack_chunked_array__"

/* Does a file that begins like this look like a map with texts as keys? */
bool cm_msgpack_is_map(struct cm_str head);

/* One item, which must be all of bytes. Arrays, whole or in chunks, and NumPy's scalars become
 * tensors, other extensions objects. `file` is the name for people. */
enum cm_status cm_msgpack_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                               struct cm_item **out, struct cm_error *err) CM_MUST_CHECK;

/* Writes an item, of all kinds but objects; tensors as flax writes arrays. */
enum cm_status cm_msgpack_write(struct cm_save *save, const struct cm_item *item,
                                struct cm_error *err) CM_MUST_CHECK;

#endif
