/* PyTorch Lightning: a torch.save file with fixed keys. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/lightning.h"

#include "convert/transfer/hold.h"

#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"

enum {
    MARK_WITHIN = 1 << 16
}; /* the keys come first in the pickle, which comes first in the zip */

/* Looks into the beginning of a file for Lightning's mark. */
static bool lightning_is_file(struct cm_saved_place *place, struct cm_str name)
{
    static const char mark[] = "pytorch-lightning_version";
    struct cm_str bytes;

    if (!cm_torch_is_file(cm_place_head(place, name)) || cm_place_map(place, name, &bytes, NULL))
        return false;
    const char *end = bytes.data + (bytes.size < MARK_WITHIN ? bytes.size : MARK_WITHIN);
    for (const char *at = bytes.data; (at = memchr(at, 'p', (size_t)(end - at))); at++)
        if ((size_t)(end - at) >= sizeof mark - 1 && memcmp(at, mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

/* ---- configurations of omegaconf ---- */

struct plain {
    struct cm_arena *arena;
    size_t visited;
};

static const struct cm_item *plain(struct plain *state, const struct cm_item *item, int depth)
{
    if (!item || depth > CM_ITEM_DEPTH_MAX || ++state->visited > 100000)
        return &cm_item_none;
    if (item->kind == CM_ITEM_OBJECT && cm_item_get(item, "_content"))
        return plain(state, cm_item_get(item, "_content"), depth + 1);
    if (item->kind == CM_ITEM_OBJECT && cm_item_get(item, "_val"))
        return plain(state, cm_item_get(item, "_val"), depth + 1);
    if (item->kind == CM_ITEM_OBJECT && item->state && item->state->kind == CM_ITEM_MAP &&
        !item->entries.count)
        item = item->state;
    if (item->kind != CM_ITEM_MAP && item->kind != CM_ITEM_LIST)
        return item;
    struct cm_item *copy = cm_item_new(state->arena, item->kind);
    for (size_t i = 0; i < item->entries.count; i++)
        cm_item_set(state->arena, copy, item->entries.items[i].key,
                    plain(state, item->entries.items[i].value, depth + 1));
    return copy;
}

const struct cm_item *cm_plain_item(struct cm_arena *arena, const struct cm_item *item)
{
    return plain(&(struct plain){arena, 0}, item, 0);
}

/* ---- reading ---- */

/* Everything that is read elsewhere, and all else as facts. */
static void tell_rest(struct cm_saved *saved, const struct cm_item *tree)
{
    static const char *const read[] = {"epoch",         "global_step",
                                       "state_dict",    "pytorch-lightning_version",
                                       "lr_schedulers", "optimizer_states"};

    for (size_t i = 0; i < cm_item_count(tree); i++) {
        const struct cm_item *value = tree->entries.items[i].value;
        double scale;
        struct cm_str key;

        if (!cm_item_is_text(tree->entries.items[i].key, &key) || CM_STR_AMONG(key, read))
            continue;
        if (cm_item_get(value, "growth_factor") &&
            cm_item_is_real(cm_item_get(value, "scale"), &scale))
            saved->loss_scale = scale;
        cm_saved_tell(saved, cm_arena_str(saved->arena, key).data,
                      cm_str_starts(key, "hyper_parameters") ? cm_plain_item(saved->arena, value)
                                                             : value);
    }
}

enum cm_status cm_lightning_take(struct cm_saved *saved, const struct cm_item *tree,
                                 struct cm_error *err)
{
    const struct cm_item *optimizers = cm_item_get(tree, "optimizer_states");
    const struct cm_item *schedules = cm_item_get(tree, "lr_schedulers");
    const struct cm_item *settings =
        cm_plain_item(saved->arena, cm_item_get(tree, "hyper_parameters"));
    const struct cm_item *nemo = cm_item_path(settings, "cfg.optim.sched.name");
    int64_t number;

    (void)cm_item_is_text(cm_item_get(tree, "pytorch-lightning_version"), &saved->version);
    CM_TRY(cm_torch_take_weights(saved, cm_item_get(tree, "state_dict"), err));
    tell_rest(saved, tree);
    if (cm_item_is_int(cm_item_get(tree, "epoch"), &number) && number >= 0)
        saved->epoch = number;
    if (cm_item_is_int(cm_item_get(tree, "global_step"), &number) && number >= 0)
        saved->step = number;
    if (cm_item_count(optimizers))
        CM_TRY(cm_torch_take_optimizer(saved, cm_item_at(optimizers, 0), -1, err));
    if (cm_item_count(optimizers) > 1)
        cm_saved_missing(saved,
                         "which of %zu optimizers moves which weights: only the first was "
                         "read",
                         cm_item_count(optimizers));
    if (!saved->schedule_name.size)
        saved->schedule_name = cm_item_text_or_none(nemo);
    if (cm_item_count(schedules))
        cm_torch_take_schedule(saved, cm_item_at(schedules, 0));
    for (size_t i = 1; i < cm_item_count(schedules); i++)
        cm_saved_unknown(saved, "there is a scheduler %zu beside the first", i);
    CM_TRY(cm_hold_recall_text(saved, cm_item_get(tree, "cameo"), err));
    return CM_OK;
}

static int recognize(struct cm_saved_place *place)
{
    return place->file.size && lightning_is_file(place, place->file) ? 2 : 0;
}

static enum cm_status read_file(struct cm_saved_place *place, struct cm_saved *saved,
                                struct cm_error *err)
{
    struct cm_item *tree;

    CM_TRY(cm_torch_read_file(place, place->file, &tree, err));
    return cm_lightning_take(saved, tree, err);
}

const struct cm_format cm_format_lightning = {
    .name = "lightning",
    .system = "PyTorch Lightning",
    .what = "a checkpoint file, .ckpt",
    .recognize = recognize,
    .read = read_file,
    .write = cm_lightning_write,
};
