/* Writing checkpoints of ONNX Runtime Training: all tables first, the tensors' bytes behind them,
 * or in a file of their own where a flatbuffer has no room. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/onnxruntime/ort.h"

#include "base/number.h"
#include "bytes/flatbuffer.h"
#include "bytes/msgpack.h"

/* Flatbuffers end at 2 GiB. */
#define INSIDE_MAX ((size_t)1900 << 20)

/* A tensor whose bytes come later. */
struct later {
    const struct cm_saved_tensor *tensor;
    size_t place; /* of the field that refers to its bytes, or has their offset in the other file */
    size_t at;    /* of its bytes */
};

struct ort_writer {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    struct cm_bytes out;
    bool is_external;
    CM_ARRAY(struct later) tensors;
    struct cm_saved_index index;
};

static void put_tensor(struct ort_writer *w, size_t place, struct cm_str name,
                       const struct cm_saved_tensor *tensor)
{
    const struct cm_fb_field fields[] = {CM_FB_OFFSET,
                                         CM_FB_ABSENT,
                                         CM_FB_OFFSET,
                                         CM_FB_INT(tensor->dtype),
                                         w->is_external ? CM_FB_ABSENT : CM_FB_OFFSET,
                                         CM_FB_ABSENT,
                                         w->is_external ? CM_FB_LONG(0) : CM_FB_ABSENT};
    size_t places[CM_COUNT(fields)];

    cm_fb_point(&w->out, place, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    cm_fb_point(&w->out, places[CM_ORT_TENSOR_NAME], cm_fb_put_text(&w->out, name));
    cm_fb_point(&w->out, places[CM_ORT_DIMS],
                cm_fb_put_longs(&w->out, tensor->shape.dims, (size_t)tensor->shape.rank));
    *CM_PUSH(w->arena, &w->tensors) =
        (struct later){tensor, places[w->is_external ? CM_ORT_OUTSIDE : CM_ORT_RAW], 0};
}

static int by_name(const void *a, const void *b)
{
    return cm_str_compare((*(const struct cm_saved_entry *const *)a)->name,
                          (*(const struct cm_saved_entry *const *)b)->name);
}

/* Weights that an optimizer moves, or the others. */
static void put_weights(struct ort_writer *w, size_t place, const struct cm_map *moved,
                        bool trained)
{
    const struct cm_saved *saved = w->saved;
    const struct cm_saved_entry **list =
        CM_NEW_ARRAY(w->arena, const struct cm_saved_entry *, saved->entries.count + 1);
    size_t count = 0;

    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if ((entry->role == CM_SAVED_WEIGHT || entry->role == CM_SAVED_BUFFER) &&
            trained == (entry->role == CM_SAVED_WEIGHT &&
                        (!saved->has_optimizer || cm_map_get(moved, entry->name, 0))))
            list[count++] = entry;
    }
    qsort(list, count, sizeof *list, by_name);
    const size_t at = cm_fb_put_offsets(&w->out, count);
    cm_fb_point(&w->out, place, at);
    for (size_t i = 0; i < count; i++)
        put_tensor(w, at + 4 + 4 * i, list[i]->name, list[i]->tensor);
}

static void put_module(struct ort_writer *w, size_t place)
{
    const struct cm_fb_field fields[] = {CM_FB_OFFSET, CM_FB_OFFSET, CM_FB_BOOL(false),
                                         CM_FB_BOOL(w->is_external)};
    size_t places[CM_COUNT(fields)];
    struct cm_map moved = {0};

    for (size_t g = 0; g < w->saved->groups.count; g++)
        for (size_t i = 0; i < w->saved->groups.items[g].names.count; i++)
            *cm_map_insert(&moved, w->arena, w->saved->groups.items[g].names.items[i], NULL) = 1;
    cm_fb_point(&w->out, place, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    put_weights(w, places[CM_ORT_TRAINED], &moved, true);
    put_weights(w, places[CM_ORT_FROZEN], &moved, false);
}

static void put_state(struct ort_writer *w, size_t place, struct cm_str name)
{
    const struct cm_fb_field fields[] = {CM_FB_OFFSET, CM_FB_OFFSET};
    size_t count = 0;
    size_t places[CM_COUNT(fields)];

    while (cm_ort_state(w->saved->rule, count))
        count++;
    count = count ? count : 1; /* SGD keeps one, which it does not use */
    cm_fb_point(&w->out, place, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    cm_fb_point(&w->out, places[CM_ORT_STATE_OF], cm_fb_put_text(&w->out, name));
    const size_t list = cm_fb_put_offsets(&w->out, count);
    cm_fb_point(&w->out, places[CM_ORT_MOMENTUMS], list);
    for (size_t i = 0; i < count; i++) {
        const struct cm_optimizer_state *state = cm_ort_state(w->saved->rule, i);
        const struct cm_saved_tensor *tensor =
            state ? cm_saved_tensor_of(&w->index, state->slot, name) : NULL;
        const struct cm_saved_tensor *weight = cm_saved_tensor_of(&w->index, "", name);

        if (!tensor && weight)
            tensor = cm_saved_zeros(w->arena, weight);

        if (tensor)
            put_tensor(w, list + 4 + 4 * i, cm_arena_printf(w->arena, "momentum%zu", i), tensor);
        else
            cm_fb_point(&w->out, places[CM_ORT_MOMENTUMS], cm_fb_put_offsets(&w->out, 0));
    }
}

static void put_groups(struct ort_writer *w, size_t place)
{
    const struct cm_saved *saved = w->saved;
    const size_t count = saved->has_optimizer ? saved->groups.count : 0;
    const size_t list = cm_fb_put_offsets(&w->out, count);

    cm_fb_point(&w->out, place, list);
    for (size_t g = 0; g < count; g++) {
        const struct cm_saved_group *group = &saved->groups.items[g];
        const struct cm_plan_group *is = &group->settings;
        const double initial = !isnan(is->initial_lr) ? is->initial_lr : isnan(is->lr) ? 0 : is->lr;
        const float rate = (float)initial;
        struct cm_str name;
        uint32_t bits;

        memcpy(&bits, &rate, sizeof bits);
        const int64_t step = (saved->step < 0 ? 0 : saved->step) + is->step_offset;
        const struct cm_fb_field fields[] = {CM_FB_OFFSET, CM_FB_LONG(step), CM_FB_INT(bits),
                                             CM_FB_OFFSET};
        size_t places[CM_COUNT(fields)];

        if (!cm_item_is_text(cm_item_get(group->said, "group_name"), &name))
            name = cm_arena_printf(w->arena, "group%zu", g);
        cm_fb_point(&w->out, list + 4 + 4 * g,
                    cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
        cm_fb_point(&w->out, places[CM_ORT_GROUP_NAME], cm_fb_put_text(&w->out, name));
        const size_t states = cm_fb_put_offsets(&w->out, group->names.count);
        cm_fb_point(&w->out, places[CM_ORT_STATES], states);
        for (size_t i = 0; i < group->names.count; i++)
            put_state(w, states + 4 + 4 * i, group->names.items[i]);
    }
}

static bool is_of_kind(const struct cm_item *item, int kind)
{
    static const enum cm_item_kind kinds[] = {CM_ITEM_INT, CM_ITEM_REAL, CM_ITEM_TEXT};

    return item->kind == kinds[kind];
}

static void put_property(struct ort_writer *w, size_t place, const struct cm_item_entry *entry,
                         int kind)
{
    const float real = (float)entry->value->real;
    uint32_t bits;

    memcpy(&bits, &real, sizeof bits);
    const struct cm_fb_field fields[] = {CM_FB_OFFSET, kind == CM_ORT_INTS
                                                           ? CM_FB_LONG(entry->value->number)
                                                       : kind == CM_ORT_FLOATS ? CM_FB_INT(bits)
                                                                               : CM_FB_OFFSET};
    size_t places[CM_COUNT(fields)];

    cm_fb_point(&w->out, place, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    cm_fb_point(&w->out, places[CM_ORT_PROPERTY_NAME], cm_fb_put_text(&w->out, entry->key->text));
    if (kind == CM_ORT_STRINGS)
        cm_fb_point(&w->out, places[CM_ORT_PROPERTY_VALUE],
                    cm_fb_put_text(&w->out, entry->value->text));
}

static void put_properties(struct ort_writer *w, size_t place, const struct cm_item *all)
{
    const struct cm_fb_field fields[] = {CM_FB_OFFSET, CM_FB_OFFSET, CM_FB_OFFSET};
    size_t places[CM_COUNT(fields)];

    cm_fb_point(&w->out, place, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    for (int kind = CM_ORT_INTS; kind <= CM_ORT_STRINGS; kind++) {
        size_t count = 0, next = 0;

        for (size_t i = 0; i < cm_item_count(all); i++)
            count += is_of_kind(all->entries.items[i].value, kind);
        const size_t list = cm_fb_put_offsets(&w->out, count);
        cm_fb_point(&w->out, places[kind], list);
        for (size_t i = 0; i < cm_item_count(all); i++)
            if (is_of_kind(all->entries.items[i].value, kind))
                put_property(w, list + 4 + 4 * next++, &all->entries.items[i], kind);
    }
}

/* What was in the checkpoint that it came from; the epoch as it is now. */
static const struct cm_item *properties(struct ort_writer *w)
{
    struct cm_item *all = cm_item_new(w->arena, CM_ITEM_MAP);
    const struct cm_item *kept = cm_saved_fact(w->saved, "ort.properties");
    const struct cm_item *epoch =
        w->saved->epoch < 0 ? NULL : cm_item_int(w->arena, w->saved->epoch);

    for (size_t i = 0; i < cm_item_count(kept); i++) {
        const struct cm_item_entry *entry = &kept->entries.items[i];

        if (!entry->key || entry->key->kind != CM_ITEM_TEXT)
            continue;
        const bool is_epoch = epoch && cm_str_is(entry->key->text, "epoch");
        cm_item_set(w->arena, all, entry->key, is_epoch ? epoch : entry->value);
    }
    if (epoch && !cm_item_get(all, "epoch"))
        cm_item_put(w->arena, all, "epoch", epoch);
    return all;
}

static void put_all(struct ort_writer *w)
{
    const struct cm_fb_field fields[] = {CM_FB_INT(CM_ORT_VERSION), CM_FB_OFFSET, CM_FB_OFFSET,
                                         CM_FB_OFFSET};
    size_t places[CM_COUNT(fields)];

    w->out.count = 0;
    w->tensors.count = 0;
    cm_bytes_put(&w->out, "\0\0\0\0" CM_ORT_MAGIC, 8);
    cm_fb_point(&w->out, 0, cm_fb_put_table(&w->out, fields, CM_COUNT(fields), places));
    put_module(w, places[CM_ORT_MODULE]);
    put_groups(w, places[CM_ORT_GROUPS]);
    put_properties(w, places[CM_ORT_PROPERTIES], properties(w));
}

enum { DATA_ALIGNMENT = 16 };

/* Where the bytes of tensors go, behind the tables or in the other file; their end. */
static size_t place_tensors(struct ort_writer *w)
{
    size_t end = w->is_external ? 0 : w->out.count;

    for (size_t i = 0; i < w->tensors.count; i++) {
        struct later *later = &w->tensors.items[i];
        const int64_t count = cm_shape_elements(&later->tensor->shape);
        size_t size;

        (void)cm_dtype_bytes(later->tensor->dtype, count, &size);
        later->at = cm_round_up(end + (w->is_external ? 0 : 4), DATA_ALIGNMENT);
        end = later->at + size;
    }
    return end;
}

static enum cm_status write_tensors(void *arg, struct cm_save *save, struct cm_error *err)
{
    static const uint8_t zeros[DATA_ALIGNMENT + 4];
    const struct ort_writer *w = arg;

    for (size_t i = 0; i < w->tensors.count; i++) {
        const struct later *later = &w->tensors.items[i];
        const int64_t count = cm_shape_elements(&later->tensor->shape);
        const uint32_t size = (uint32_t)((size_t)count * cm_dtype_size(later->tensor->dtype));
        const size_t head = w->is_external ? 0 : sizeof size;

        CM_TRY(cm_save_write(save, zeros, later->at - head - save->written, err));
        CM_TRY(cm_save_write(save, &size, head, err));
        CM_TRY(cm_saved_elements_write(save, later->tensor, 0, count, err));
    }
    return CM_OK;
}

/* The tables, then the tensors unless those have a file of their own. */
static enum cm_status write_tables(void *arg, struct cm_save *save, struct cm_error *err)
{
    const struct ort_writer *w = arg;

    CM_TRY(cm_save_write(save, w->out.items, w->out.count, err));
    return w->is_external ? CM_OK : write_tensors(arg, save, err);
}

static enum cm_status check_optimizer(const struct cm_saved *saved, struct cm_error *err)
{
    if (saved->has_optimizer && !cm_ort_state(saved->rule, 0) &&
        !(cm_optimizer_rules[saved->rule].defaults[CM_LIKE_ORT] && saved->groups.count &&
          !(saved->groups.items[0].settings.momentum > 0)))
        return cm_fail(
            err, CM_UNSUPPORTED,
            "ONNX Runtime trains with %s, without momentum; give --weights-only to leave "
            "the optimizer out",
            cm_optimizer_list(saved->arena, CM_LIKE_ORT));
    return CM_OK;
}

enum cm_status cm_ort_write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    struct ort_writer w = {.arena = saved->arena, .saved = saved, .out.arena = saved->arena};

    CM_TRY(check_optimizer(saved, err));
    w.index = cm_saved_index(w.arena, saved);
    put_all(&w);
    w.is_external = place_tensors(&w) > INSIDE_MAX;
    if (w.is_external) {
        put_all(&w);
        (void)place_tensors(&w);
        CM_TRY(cm_saved_write_file(saved, cm_arena_printf(w.arena, "%s.data", path).data,
                                   write_tensors, &w, err));
    }
    for (size_t i = 0; i < w.tensors.count; i++) {
        const struct later *later = &w.tensors.items[i];
        const uint64_t at = later->at;

        if (w.is_external)
            memcpy(w.out.items + later->place, &at, sizeof at);
        else
            cm_fb_point(&w.out, later->place, later->at - 4);
    }
    return cm_saved_write_file(saved, path, write_tables, &w, err);
}
