/* Folders of Hugging Face's Trainer, written so that it goes on with them; accelerate and
 * from_pretrained read them too. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/huggingface.h"

#include "base/folder_save.h"
#include "convert/frameworks/torch/safetensors_file.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/transfer/hold.h"

#define SHARD_MAX 5000000000u /* as transformers has it */

struct writing {
    const struct cm_saved *saved;
    struct cm_folder_save *folder;
    struct cm_error *err;
};

static enum cm_status put_json(struct writing *writing, const char *name,
                               const struct cm_item *item)
{
    return cm_saved_put_json(writing->saved, writing->folder, name, item, writing->err);
}

static enum cm_status put_torch(struct writing *writing, const char *name, const char *stem,
                                const struct cm_item *item)
{
    const char *path;

    CM_TRY(cm_folder_file(writing->folder, writing->saved->arena, name, &path, writing->err));
    return cm_torch_save_item(writing->saved, path, stem, item, writing->err);
}

/* ---- weights ---- */

static size_t bytes_of(const struct cm_saved_tensor *tensor)
{
    size_t size;

    return cm_dtype_bytes(tensor->dtype, cm_shape_elements(&tensor->shape), &size) ? size : 0;
}

static enum cm_status put_shard(struct writing *writing, const char *name, const size_t *numbers,
                                size_t count)
{
    const char *path;

    CM_TRY(cm_folder_file(writing->folder, writing->saved->arena, name, &path, writing->err));
    return cm_safetensors_save(writing->saved, numbers, count, path, writing->err);
}

/* Where each shard ends, filled one after another. */
static size_t cut_shards(const struct cm_saved *saved, const size_t *numbers, size_t count,
                         size_t *ends)
{
    uint64_t size = 0;
    size_t shards = 0;

    for (size_t i = 0; i < count; i++) {
        const size_t more = bytes_of(saved->entries.items[numbers[i]].tensor);
        if (size > 0 && size + more > SHARD_MAX) {
            ends[shards++] = i;
            size = 0;
        }
        size += more;
    }
    ends[shards++] = count;
    return shards;
}

static enum cm_status put_weights(struct writing *writing)
{
    const struct cm_saved *saved = writing->saved;
    struct cm_arena *arena = saved->arena;
    size_t *numbers;
    const size_t count = cm_saved_weights(arena, saved, &numbers);
    size_t *ends = CM_NEW_ARRAY(arena, size_t, count + 1);
    const size_t shards = cut_shards(saved, numbers, count, ends);
    struct cm_item *index = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *metadata = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *files = cm_item_new(arena, CM_ITEM_MAP);
    uint64_t total = 0;

    if (shards == 1)
        return put_shard(writing, "model.safetensors", numbers, count);
    for (size_t shard = 0; shard < shards; shard++) {
        const size_t first = shard ? ends[shard - 1] : 0;
        const struct cm_str name =
            cm_arena_printf(arena, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
        CM_TRY(put_shard(writing, cm_str_text(name), numbers + first, ends[shard] - first));
        for (size_t i = first; i < ends[shard]; i++) {
            const struct cm_saved_entry *entry = &saved->entries.items[numbers[i]];
            total += bytes_of(entry->tensor);
            cm_item_set(arena, files, cm_item_text(arena, entry->name), cm_item_text(arena, name));
        }
    }
    cm_item_put(arena, metadata, "total_size", cm_item_int(arena, (int64_t)total));
    cm_item_put(arena, index, "metadata", metadata);
    cm_item_put(arena, index, "weight_map", files);
    return put_json(writing, "model.safetensors.index.json", index);
}

/* ---- training ---- */

/* The Trainer takes its position from here. Keys that are not its own it refuses, so those of the
 * file that was read are kept, or the fewest are written. */
static const struct cm_item *trainer_state(const struct cm_saved *saved)
{
    struct cm_arena *arena = saved->arena;
    const struct cm_item *old = cm_saved_fact(saved, "trainer_state");
    const int64_t step = saved->step < 0 ? 0 : saved->step;
    const double old_step = cm_item_get_real(old, "global_step", 0);
    const double old_epoch = cm_item_get_real(old, "epoch", 0);
    struct cm_item *out = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_str key;

    for (size_t i = 0; i < cm_item_count(old); i++)
        if (cm_item_is_text(old->entries.items[i].key, &key) && !cm_str_is(key, "global_step") &&
            !cm_str_is(key, "epoch"))
            cm_item_set(arena, out, old->entries.items[i].key, old->entries.items[i].value);
    if (!cm_item_count(old)) {
        cm_item_put(arena, out, "log_history", cm_item_new(arena, CM_ITEM_LIST));
        cm_item_put(arena, out, "is_world_process_zero", cm_item_bool(arena, true));
        cm_item_put(arena, out, "is_local_process_zero", cm_item_bool(arena, true));
    }
    cm_item_put(arena, out, "global_step", cm_item_int(arena, step));
    cm_item_put(arena, out, "epoch",
                cm_item_real(arena, old_step > 0       ? old_epoch * (double)step / old_step
                                    : saved->epoch > 0 ? (double)saved->epoch
                                                       : 0));
    return out;
}

static enum cm_status put_training(struct writing *writing)
{
    const struct cm_saved *saved = writing->saved;
    struct cm_arena *arena = saved->arena;
    const struct cm_item *schedule = cm_torch_schedule_item(arena, saved);
    struct cm_saved constant = *saved;

    if (!schedule) { /* the Trainer reads the optimizer only beside a scheduler */
        constant.schedule_known = CM_SCHEDULE_KNOWN;
        constant.schedule.count = 0;
        schedule = cm_torch_schedule_item(arena, &constant);
    }
    CM_TRY(put_torch(writing, "optimizer.pt", "optimizer",
                     cm_torch_optimizer_item(arena, saved, false)));
    CM_TRY(put_torch(writing, "scheduler.pt", "scheduler", schedule));
    CM_TRY(put_json(writing, "cameo.json", cm_hold_item(arena, saved)));
    return put_json(writing, "trainer_state.json", trainer_state(saved));
}

static enum cm_status put_all(void *arg, struct cm_folder_save *folder, struct cm_error *err)
{
    const struct cm_saved *saved = arg;
    const struct cm_item *config = cm_saved_fact(saved, "config");
    struct writing writing = {saved, folder, err};

    CM_TRY(put_weights(&writing));
    if (config && config->kind == CM_ITEM_MAP && cm_item_get(config, "model_type"))
        CM_TRY(put_json(&writing, "config.json", config));
    return saved->has_optimizer ? put_training(&writing) : CM_OK;
}

enum cm_status cm_huggingface_write(const struct cm_saved *saved, const char *path,
                                    struct cm_error *err)
{
    return cm_saved_write_folder(saved, path, put_all, (void *)saved, err);
}
