/* Where values live while a block runs: places in its memory, over an operand, as a view of one,
 * and contents that are known when it is bound. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/binder.h"

/* ---- places ---- */

struct cm_place *cm_binder_new_place(struct cm_binder *b, cm_slot_id slot, enum cm_place_kind kind)
{
    struct cm_slot *at = &b->context->slots[slot];
    struct cm_place *place = CM_PUSH(b->arena, &b->binding->places);
    *place = (struct cm_place){.slot = slot,
                               .kind = kind,
                               .same_as = CM_NO_SLOT,
                               .type = at->type,
                               .layout = at->datum.tensor.layout,
                               .known = at->known};
    at->storage = CM_STORAGE_FOREIGN;
    at->shift = 0;
    if (kind != CM_PLACE_BLOCK && kind != CM_PLACE_KNOWN)
        *CM_PUSH(b->arena, &b->binding->moving) = b->binding->places.count - 1;
    return place;
}

void cm_binder_set_type(struct cm_binder *b, cm_slot_id id, const struct cm_type *type)
{
    struct cm_slot *slot = &b->context->slots[id];
    slot->type = type;
    slot->known = NULL;
    /* One by one: the room for dimensions is not worth clearing. */
    struct cm_datum *datum = &slot->datum;
    datum->kind = CM_KIND_TENSOR;
    datum->items = NULL;
    datum->n_items = 0;
    datum->list = NULL;
    datum->room = NULL;
    struct cm_tensor *tensor = &datum->tensor;
    tensor->type = type->dtype;
    tensor->data = NULL;
    tensor->buffer = NULL;
    tensor->layout = NULL;
    cm_type_shape(type, &tensor->shape);
}

enum cm_status cm_plain_bytes(const struct cm_tensor *tensor, size_t *out, struct cm_error *err)
{
    int64_t count;
    if (!cm_shape_count(&tensor->shape, &count) || !cm_dtype_bytes(tensor->type, count, out))
        return cm_fail(err, CM_LIMIT, "the size of its result overflows");
    return CM_OK;
}

static bool ends_here(const struct cm_step *step, cm_slot_id slot)
{
    for (size_t i = 0; i < step->last.count; i++)
        if (step->last.items[i] == slot)
            return true;
    return false;
}

static int times_read(const struct cm_step *step, cm_slot_id slot)
{
    int times = 0;
    for (int i = 0; i < step->n_in; i++)
        times += step->in[i] == slot;
    return times;
}

/* The input whose bytes output o may take over or share; -1: none. */
static int sharing_input(const struct cm_binder *b, const struct cm_bound_step *bound, int o,
                         size_t bytes, const struct cm_layout *layout, enum cm_sharing wanted)
{
    const struct cm_step *step = bound->step;
    for (int i = 0; bound->share && i < step->n_in; i++) {
        if (step->in[i] == CM_NO_SLOT || bound->share(step->node, o, i) != wanted)
            continue;
        const struct cm_slot *slot = &b->context->slots[step->in[i]];
        size_t has;
        if (!cm_layout_equal(slot->datum.tensor.layout, layout) ||
            (!layout && (cm_plain_bytes(&slot->datum.tensor, &has, NULL) || has != bytes)))
            continue;
        if (wanted == CM_SHARE_VIEW && slot->storage == CM_STORAGE_LATE)
            continue; /* nobody knows yet where it will be, nor keeps it for the view */
        if (wanted == CM_SHARE_VIEW)
            return i;
        if (slot->storage >= 0 && b->storages.all.items[slot->storage].live == 1 &&
            ends_here(step, step->in[i]) && times_read(step, step->in[i]) == 1)
            return i;
    }
    return -1;
}

enum { LEAST_SHARE = 8 }; /* a view keeps all of a storage: it must be at least that part of it */

/* Is output o a stretch of input 0? *shift: the bytes before it. */
static bool is_stretch(const struct cm_binder *b, const struct cm_bound_step *bound, int o,
                       size_t bytes, size_t *shift)
{
    const struct cm_step *step = bound->step;
    if (!step->node->op->memory.stretch || bound->with || step->in[0] == CM_NO_SLOT)
        return false;
    const struct cm_slot *slot = &b->context->slots[step->in[0]];
    const struct cm_tensor *x = &slot->datum.tensor;
    size_t has;
    if (x->layout || slot->storage == CM_STORAGE_LATE || x->type == CM_STRING ||
        cm_dtype_info(x->type)->bits % 8 || cm_plain_bytes(x, &has, NULL) ||
        (slot->storage >= 0 && bytes < b->storages.all.items[slot->storage].size / LEAST_SHARE))
        return false;
    const int64_t first = step->node->op->memory.stretch(&bound->call, o);
    const size_t before = first < 0 ? has : (size_t)first * cm_dtype_size(x->type);
    if (first < 0 || before > has || bytes > has - before)
        return false;
    *shift = before;
    return true;
}

enum cm_status cm_binder_place_output(struct cm_binder *b, const struct cm_bound_step *bound, int o,
                                      bool *is_view)
{
    const struct cm_step *step = bound->step;
    const cm_slot_id id = step->out[o];
    struct cm_slot *slot = &b->context->slots[id];
    const struct cm_layout *layout = slot->datum.tensor.layout;
    size_t bytes;
    CM_TRY(cm_plain_bytes(&slot->datum.tensor, &bytes, b->err));
    if (layout)
        bytes = layout->bytes;
    *is_view = false;
    struct cm_place *place;
    if (b->session->result_of[id] != CM_NO_SLOT) {
        place = cm_binder_new_place(b, id, CM_PLACE_RESULT);
        place->offset = b->session->result_of[id];
        const uint32_t *update_of = b->block == b->session->main ? b->session->update_of : NULL;
        const uint32_t update = update_of ? update_of[place->offset] : CM_NO_SLOT;
        if (update != CM_NO_SLOT && !cm_binder_update_in_place(b, bound, o))
            return cm_binder_keep_update(b, update);
        return CM_OK;
    }
    size_t shift = 0;
    int view = layout ? -1 : sharing_input(b, bound, o, bytes, NULL, CM_SHARE_VIEW);
    if (!layout && view < 0 && is_stretch(b, bound, o, bytes, &shift))
        view = 0;
    const int over = sharing_input(b, bound, o, bytes, layout, CM_SHARE_OVERWRITE);
    const int storage = view >= 0   ? b->context->slots[step->in[view]].storage
                        : over >= 0 ? b->context->slots[step->in[over]].storage
                                    : cm_storage_new(&b->storages, bytes);
    if (view >= 0 && storage < 0) { /* of memory that is not this block's: an input, a constant */
        place = cm_binder_new_place(b, id, CM_PLACE_SAME);
        place->same_as = step->in[view];
        place->offset = shift;
        *is_view = true;
    } else {
        const int from = view >= 0 ? view : over;
        if (from >= 0)
            shift += b->context->slots[step->in[from]].shift;
        place = cm_binder_new_place(b, id, CM_PLACE_BLOCK);
        place->offset = b->storages.all.items[storage].offset + shift;
        slot->shift = shift;
        if (view >= 0 || over >= 0)
            b->storages.all.items[storage].live++; /* the input leaves when the step ends */
        if (over >= 0 && view < 0)
            cm_storage_adopt(&b->storages, storage);
        slot->storage = storage;
        *is_view = view >= 0;
    }
    return CM_OK;
}

/* ---- known contents ---- */

void *cm_binder_aligned(struct cm_binder *b, size_t bytes)
{
    if (bytes > SIZE_MAX - CM_TENSOR_ALIGNMENT)
        bytes = SIZE_MAX - CM_TENSOR_ALIGNMENT; /* which the arena refuses */
    char *room = cm_arena_alloc(b->arena, bytes + CM_TENSOR_ALIGNMENT);
    return room + (CM_TENSOR_ALIGNMENT - (uintptr_t)room % CM_TENSOR_ALIGNMENT);
}

struct cm_tensor *cm_binder_new_known(struct cm_binder *b, cm_slot_id id)
{
    struct cm_slot *slot = &b->context->slots[id];
    struct cm_tensor *tensor = CM_NEW(b->arena, struct cm_tensor);
    *tensor = slot->datum.tensor;
    tensor->data = cm_binder_aligned(b, cm_tensor_bytes(tensor));
    slot->known = tensor;
    slot->datum.tensor.data = tensor->data;
    cm_binder_new_place(b, id, CM_PLACE_KNOWN);
    return tensor;
}

/* Shape arithmetic that the rule has done already: all elements are numbers. */
bool cm_binder_take_known(struct cm_binder *b, const struct cm_step *step,
                          const struct cm_fact *results)
{
    int wanted = -1;
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        if (wanted >= 0)
            return false; /* several outputs: not shape arithmetic */
        wanted = o;
    }
    const struct cm_known *known = wanted < 0 ? NULL : results[wanted].known;
    if (!known ||
        (results[wanted].type->dtype != CM_INT64 && results[wanted].type->dtype != CM_INT32))
        return false;
    for (size_t i = 0; i < known->count; i++)
        if (!known->items[i].is_number)
            return false;
    struct cm_shape shape;
    if (!cm_type_shape(results[wanted].type, &shape) ||
        cm_shape_elements(&shape) != (int64_t)known->count)
        return false;
    cm_binder_set_type(b, step->out[wanted], results[wanted].type);
    struct cm_tensor *tensor = cm_binder_new_known(b, step->out[wanted]);
    for (size_t i = 0; i < known->count; i++) {
        if (tensor->type == CM_INT64)
            ((int64_t *)tensor->data)[i] = known->items[i].number;
        else
            ((int32_t *)tensor->data)[i] = (int32_t)known->items[i].number;
    }
    return true;
}
