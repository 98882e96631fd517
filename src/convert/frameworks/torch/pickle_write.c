/* Items as a pickle of protocol 2. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/pickle_write.h"

#include "convert/frameworks/torch/torch_pickle.h"

enum { BATCH = 1000 }; /* entries put on the stack at a time, as Python does */

static void put(struct cm_pickle_writer *w, const void *bytes, size_t size)
{
    cm_bytes_put(&w->out, bytes, size);
}

static void put_op(struct cm_pickle_writer *w, char code)
{
    put(w, &code, 1);
}

/* An opcode with a little-endian argument. */
static void put_number(struct cm_pickle_writer *w, char code, uint64_t value, int size)
{
    put_op(w, code);
    cm_bytes_number(&w->out, value, (size_t)size);
}

static void put_int(struct cm_pickle_writer *w, int64_t value)
{
    if (value >= 0 && value < 256)
        put_number(w, 'K', (uint64_t)value, 1);
    else if (value >= INT32_MIN && value <= INT32_MAX)
        put_number(w, 'J', (uint64_t)value, 4);
    else {
        put_number(w, '\x8a', 8, 1);
        cm_bytes_number(&w->out, (uint64_t)value, 8);
    }
}

static void put_real(struct cm_pickle_writer *w, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_number(w, 'G', __builtin_bswap64(bits), 8);
}

static enum cm_status put_text(struct cm_pickle_writer *w, struct cm_str text, struct cm_error *err)
{
    if (!cm_str_is_utf8(text) || text.size > INT32_MAX)
        return cm_fail(err, CM_UNSUPPORTED, "the text '%.*s' cannot be written: it is not UTF-8",
                       CM_STR_FMT(text));
    put_number(w, 'X', text.size, 4);
    put(w, text.data, text.size);
    return CM_OK;
}

/* "torch._utils._rebuild_tensor_v2": the last part is the name; written once, then remembered. */
static enum cm_status put_name(struct cm_pickle_writer *w, struct cm_str name, struct cm_error *err)
{
    const struct cm_str module = cm_str_before_last(name, '.'), last = cm_str_after_last(name, '.');
    bool added;

    if (!module.size || !last.size || memchr(name.data, '\n', name.size))
        return cm_fail(err, CM_UNSUPPORTED, "the class '%.*s' cannot be written", CM_STR_FMT(name));
    uint64_t *memo = cm_map_insert(&w->names, w->arena, name, &added);
    if (!added) {
        put_number(w, 'j', *memo, 4);
        return CM_OK;
    }
    *memo = w->names.count - 1;
    put_op(w, 'c');
    put(w, module.data, module.size);
    put_op(w, '\n');
    put(w, last.data, last.size);
    put_op(w, '\n');
    put_number(w, 'r', *memo, 4);
    return CM_OK;
}

static void put_dims(struct cm_pickle_writer *w, const int64_t *dims, int rank)
{
    put_op(w, '(');
    for (int i = 0; i < rank; i++)
        put_int(w, dims[i]);
    put_op(w, 't');
}

/* Number of the storage that a tensor is in. */
static size_t storage_number(struct cm_pickle_writer *w, const struct cm_saved_tensor *tensor)
{
    bool added = true;
    uint64_t *at = NULL;

    if (tensor->storage) {
        const struct cm_str key =
            cm_arena_printf(w->arena, "%llx %d %lld", (unsigned long long)tensor->storage,
                            (int)tensor->dtype, (long long)cm_shape_elements(&tensor->shape));
        at = cm_map_insert(&w->tied, w->arena, key, &added);
    }
    if (!added)
        return *at;
    if (at)
        *at = w->storages.count;
    *CM_PUSH(w->arena, &w->storages) = tensor;
    return w->storages.count - 1;
}

/* A dense tensor that begins its storage. Types without a storage of their own lie in bytes. */
static enum cm_status put_tensor(struct cm_pickle_writer *w, const struct cm_saved_tensor *tensor,
                                 struct cm_error *err)
{
    const char *type = cm_torch_dtype_name(tensor->dtype);
    const char *storage = cm_torch_storage_name(tensor->dtype);
    const int64_t count = cm_shape_elements(&tensor->shape);
    int64_t strides[CM_MAX_RANK];

    if (!w->with_tensors || !type)
        return cm_fail(err, CM_UNSUPPORTED, "a tensor of %s cannot be written here",
                       cm_dtype_name(tensor->dtype));
    CM_TRY(put_name(w,
                    storage ? CM_STR("torch._utils._rebuild_tensor_v2")
                            : CM_STR("torch._utils._rebuild_tensor_v3"),
                    err));
    put(w, "((", 2);
    CM_TRY(put_text(w, CM_STR("storage"), err));
    CM_TRY(put_name(w,
                    storage ? cm_arena_printf(w->arena, "torch.%s", storage)
                            : CM_STR("torch.storage.UntypedStorage"),
                    err));
    CM_TRY(put_text(w, cm_arena_printf(w->arena, "%zu", storage_number(w, tensor)), err));
    CM_TRY(put_text(w, CM_STR("cpu"), err));
    put_int(w, storage ? count : count * (int64_t)cm_dtype_size(tensor->dtype));
    put(w, "tQK\0", 4); /* the storage; offset 0 */
    put_dims(w, tensor->shape.dims, tensor->shape.rank);
    cm_shape_strides(&tensor->shape, strides);
    put_dims(w, strides, tensor->shape.rank);
    put_op(w, '\x89'); /* requires_grad */
    CM_TRY(put_name(w, CM_STR("collections.OrderedDict"), err));
    put(w, ")R", 2);
    if (!storage)
        CM_TRY(put_name(w, cm_arena_printf(w->arena, "torch.%s", type), err));
    put(w, "tR", 2);
    return CM_OK;
}

static enum cm_status put_item(struct cm_pickle_writer *w, const struct cm_item *item, int depth,
                               struct cm_error *err);

/* Entries of a list or map, in batches; of a tuple at once. */
static enum cm_status put_entries(struct cm_pickle_writer *w, const struct cm_item *item,
                                  size_t batch, char end, int depth, struct cm_error *err)
{
    const size_t count = item->entries.count;

    for (size_t i = 0; i < count || (i == 0 && end == 't');) {
        const size_t until = batch < count - i ? i + batch : count;

        put_op(w, '(');
        for (; i < until; i++) {
            if (item->entries.items[i].key)
                CM_TRY(put_item(w, item->entries.items[i].key, depth + 1, err));
            CM_TRY(put_item(w, item->entries.items[i].value, depth + 1, err));
        }
        put_op(w, end);
        if (count == 0)
            break;
    }
    return CM_OK;
}

static enum cm_status put_object(struct cm_pickle_writer *w, const struct cm_item *item, int depth,
                                 struct cm_error *err)
{
    CM_TRY(put_name(w, item->text, err));
    if (item->truth)
        return CM_OK;
    CM_TRY(put_entries(w, item, SIZE_MAX, 't', depth, err));
    if (!item->state) {
        put_op(w, 'R');
        return CM_OK;
    }
    put_op(w, '\x81');
    CM_TRY(put_item(w, item->state, depth + 1, err));
    put_op(w, 'b');
    return CM_OK;
}

static enum cm_status put_item(struct cm_pickle_writer *w, const struct cm_item *item, int depth,
                               struct cm_error *err)
{
    if (depth > CM_ITEM_DEPTH_MAX || ++w->visited > CM_ITEM_WALK_MAX)
        return cm_fail(err, CM_LIMIT, "what is to be written is nested too deeply or too large");
    switch (item->kind) {
    case CM_ITEM_NONE:
        put_op(w, 'N');
        return CM_OK;
    case CM_ITEM_BOOL:
        put_op(w, item->truth ? '\x88' : '\x89');
        return CM_OK;
    case CM_ITEM_INT:
        put_int(w, item->number);
        return CM_OK;
    case CM_ITEM_REAL:
        put_real(w, item->real);
        return CM_OK;
    case CM_ITEM_TEXT:
        return put_text(w, item->text, err);
    case CM_ITEM_LIST:
        if (item->truth)
            return put_entries(w, item, SIZE_MAX, 't', depth, err);
        put_op(w, ']');
        return put_entries(w, item, BATCH, 'e', depth, err);
    case CM_ITEM_MAP:
        put_op(w, '}');
        return put_entries(w, item, BATCH, 'u', depth, err);
    case CM_ITEM_TENSOR:
        return put_tensor(w, item->tensor, err);
    case CM_ITEM_OBJECT:
        return put_object(w, item, depth, err);
    case CM_ITEM_BYTES:
        break;
    }
    return cm_fail(err, CM_UNSUPPORTED, "bytes cannot be written into a pickle");
}

enum cm_status cm_pickle_write(struct cm_pickle_writer *w, const struct cm_item *item,
                               struct cm_error *err)
{
    w->out.arena = w->arena;
    put(w, "\x80\x02", 2);
    CM_TRY(put_item(w, item, 0, err));
    put_op(w, '.');
    return CM_OK;
}
