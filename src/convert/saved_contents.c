/* Saved tensors, read while a model is saved. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_contents.h"

#include "tensor/half_rows.h"

struct contents {
    struct cm_contents base; /* first */
    const struct cm_saved_tensor *tensor;
    enum cm_dtype as;
    struct cm_saved_reader *reader;
};

static void convert(const struct cm_tensor *from, const struct cm_tensor *to)
{
    const int64_t count = cm_tensor_count(from);

    if (to->type == CM_FLOAT && from->type == CM_BFLOAT16)
        cm_bfloat_load(count, from->data, to->data);
    else if (to->type == CM_FLOAT && from->type == CM_FLOAT16)
        cm_half_load(count, from->data, to->data);
    else
        for (int64_t i = 0; i < count; i++)
            cm_tensor_set_real(to, i, cm_tensor_real(from, i));
}

static enum cm_status read_as(const struct contents *c, int64_t first, int64_t count, void *out,
                              struct cm_error *err)
{
    const struct cm_shape shape = CM_SHAPE(count);
    struct cm_tensor own;

    CM_TRY(cm_tensor_new(c->tensor->dtype, &shape, &own, err));
    const enum cm_status status =
        cm_saved_tensor_read(c->reader, c->tensor, first, count, own.data, err);
    const struct cm_tensor wanted = cm_tensor_borrow(c->as, &shape, out);
    if (!status)
        convert(&own, &wanted);
    cm_tensor_drop(&own);
    return status;
}

static enum cm_status read_contents(const struct cm_contents *self, uint64_t offset, size_t size,
                                    void *out, struct cm_error *err)
{
    const struct contents *c = (const struct contents *)(const void *)self;
    const size_t width = cm_dtype_size(c->as);
    const int64_t first = (int64_t)(offset / width), count = (int64_t)(size / width);

    if (c->as == c->tensor->dtype)
        CM_TRY(cm_saved_tensor_read(c->reader, c->tensor, first, count, out, err));
    else
        CM_TRY(read_as(c, first, count, out, err));
    if (first + count == cm_shape_elements(&c->tensor->shape)) {
        cm_saved_tensor_forget(c->tensor);
        cm_saved_reader_release(c->reader);
    }
    return CM_OK;
}

static void release(void *reader)
{
    cm_saved_reader_release(reader);
}

const struct cm_contents *cm_saved_contents(struct cm_arena *arena,
                                            const struct cm_saved_tensor *tensor, enum cm_dtype as)
{
    struct contents *c = CM_NEW(arena, struct contents);

    *c = (struct contents){.base = {read_contents, cm_saved_tensor_part(tensor)},
                           .tensor = tensor,
                           .as = as,
                           .reader = CM_NEW(arena, struct cm_saved_reader)};
    cm_arena_defer(arena, release, c->reader);
    return &c->base;
}
