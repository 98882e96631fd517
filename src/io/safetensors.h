/* .safetensors files: what is in one, without copying it; and the header of one to write. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_SAFETENSORS_H
#define CM_IO_SAFETENSORS_H

#include "base/arena.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* An entry of a .safetensors file; its size was checked against its shape. */
struct cm_safetensors_entry {
    size_t count; /* of the file's entries */
    struct cm_str name;
    enum cm_dtype type;
    struct cm_shape shape;
    struct cm_str bytes;
};

typedef enum cm_status cm_safetensors_visit_fn(void *arg, const struct cm_safetensors_entry *entry,
                                               struct cm_error *err);

/* Calls visit for each tensor, in the order of the header. */
enum cm_status cm_safetensors_walk(struct cm_arena *arena, struct cm_str bytes,
                                   cm_safetensors_visit_fn *visit, void *arg,
                                   struct cm_error *err) CM_MUST_CHECK;

/* The bytes before the values of `count` tensors, which follow in this order without gaps. `format`
 * is what "__metadata__" says, "pt"; NULL: it is left out. Refuses types that the format has not;
 * the entries' bytes are not looked at. */
enum cm_status cm_safetensors_header(struct cm_arena *arena,
                                     const struct cm_safetensors_entry *entries, size_t count,
                                     const char *format, struct cm_str *out,
                                     struct cm_error *err) CM_MUST_CHECK;

#endif
