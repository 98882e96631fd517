/* Weights in one .safetensors file. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/safetensors_file.h"

#include "base/memory.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/saved_contents.h"
#include "io/safetensors.h"

bool cm_safetensors_is_file(struct cm_str head)
{
    uint64_t size;

    if (head.size < 9 || head.data[8] != '{')
        return false;
    memcpy(&size, head.data, sizeof size);
    return size >= 2 && size <= 100000000;
}

struct taking {
    struct cm_arena *arena;
    struct cm_item *map;
    struct cm_str file;
};

static enum cm_status take_entry(void *arg, const struct cm_safetensors_entry *entry,
                                 struct cm_error *err)
{
    const struct taking *taking = arg;
    struct cm_saved_tensor *tensor;

    CM_TRY(cm_saved_tensor_new(taking->arena, entry->type, &entry->shape, entry->bytes,
                               taking->file, &tensor, err));
    cm_item_set(taking->arena, taking->map, cm_item_text(taking->arena, entry->name),
                cm_item_tensor(taking->arena, tensor));
    return CM_OK;
}

enum cm_status cm_safetensors_item(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                                   struct cm_item *map, struct cm_error *err)
{
    struct taking taking = {arena, map, file};

    return cm_error_context(err, cm_safetensors_walk(arena, bytes, take_entry, &taking, err),
                            "%.*s", CM_STR_FMT(file));
}

static int recognize(struct cm_saved_place *place)
{
    return place->file.size && cm_safetensors_is_file(cm_place_head(place, place->file)) ? 2 : 0;
}

static enum cm_status read_file(struct cm_saved_place *place, struct cm_saved *saved,
                                struct cm_error *err)
{
    struct cm_item *map = cm_item_new(saved->arena, CM_ITEM_MAP);
    struct cm_str bytes;

    CM_TRY(cm_place_map(place, place->file, &bytes, err));
    CM_TRY(cm_safetensors_item(saved->arena, bytes, place->file, map, err));
    return cm_torch_take_weights(saved, map, err);
}

/* ---- writing ---- */

size_t cm_saved_weights(struct cm_arena *arena, const struct cm_saved *saved, size_t **numbers)
{
    size_t count = 0;
    struct cm_map places = {0};
    size_t *out = CM_NEW_ARRAY(arena, size_t, saved->entries.count + 1);

    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        bool added;

        if (entry->role != CM_SAVED_WEIGHT && entry->role != CM_SAVED_BUFFER &&
            entry->role != CM_SAVED_MASTER)
            continue;
        uint64_t *place = cm_map_insert(&places, arena, entry->name, &added);
        if (added)
            *place = count++;
        if (added || entry->role == CM_SAVED_MASTER)
            out[*place] = i;
    }
    *numbers = out;
    return count;
}

/* The entries of saved that go into a file. */
struct writing {
    const struct cm_saved *saved;
    const size_t *numbers;
    size_t count;
};

static enum cm_status write_entries(void *arg, struct cm_save *save, struct cm_error *err)
{
    const struct writing *w = arg;
    struct cm_safetensors_entry *entries =
        CM_NEW_ARRAY(w->saved->arena, struct cm_safetensors_entry, w->count + 1);
    struct cm_str header;

    for (size_t i = 0; i < w->count; i++) {
        const struct cm_saved_entry *entry = &w->saved->entries.items[w->numbers[i]];
        entries[i] = (struct cm_safetensors_entry){
            .name = entry->name, .type = entry->tensor->dtype, .shape = entry->tensor->shape};
    }
    CM_TRY(cm_safetensors_header(w->saved->arena, entries, w->count, "pt", &header, err));
    CM_TRY(cm_save_write(save, header.data, header.size, err));
    for (size_t i = 0; i < w->count; i++)
        CM_TRY(cm_saved_tensor_write(save, w->saved->entries.items[w->numbers[i]].tensor, err));
    return CM_OK;
}

enum cm_status cm_safetensors_save(const struct cm_saved *saved, const size_t *numbers,
                                   size_t count, const char *path, struct cm_error *err)
{
    struct writing writing = {saved, numbers, count};

    return cm_saved_write_file(saved, path, write_entries, &writing, err);
}

static enum cm_status write_file(const struct cm_saved *saved, const char *path,
                                 struct cm_error *err)
{
    size_t *numbers;
    const size_t count = cm_saved_weights(saved->arena, saved, &numbers);

    return cm_safetensors_save(saved, numbers, count, path, err);
}

const struct cm_format cm_format_safetensors = {
    .name = "safetensors",
    .system = "Hugging Face",
    .what = "a safetensors file, weights only",
    .recognize = recognize,
    .read = read_file,
    .write = write_file,
};
