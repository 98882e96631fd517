/* Files of torch.save, whatever their authors put into them; and one of our own. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/format.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/transfer/hold.h"

/* torch.save's form, or a bare pickle of protocol 2 or later. */
static bool is_pickled(struct cm_str head)
{
    return cm_torch_is_file(head) ||
           (head.size > 2 && head.data[0] == '\x80' && head.data[1] >= 2 && head.data[1] <= 5);
}

/* A zip may be that of somebody else, who is surer: members of torch.save's lie in a folder. */
static int is_ours(struct cm_str head)
{
    return is_pickled(head) && (head.data[0] != 'P' || memchr(head.data, '/', head.size)) ? 1 : 0;
}

static int recognize(struct cm_saved_place *place)
{
    return place->file.size && is_ours(cm_place_head(place, place->file)) ? 1 : 0;
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    const struct cm_str name = place->file;
    struct cm_str bytes;
    struct cm_item *item;

    CM_TRY(cm_place_map(place, name, &bytes, err));
    if (cm_torch_is_file(bytes))
        CM_TRY(cm_torch_read(place->arena, bytes, name, &item, err));
    else
        CM_TRY(cm_pickle_read(place->arena, bytes, &item, err));
    saved->format = !cm_torch_is_file(bytes) ? "a pickle"
                    : bytes.data[0] == 'P'   ? "a file of torch.save (zip)"
                                             : "a file of torch.save (before PyTorch 1.6)";
    return cm_torch_take_tree(saved, item, err);
}

static enum cm_status write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    struct cm_arena *arena = saved->arena;
    struct cm_item *tree = cm_item_new(arena, CM_ITEM_MAP);

    cm_item_put(arena, tree, "model_state_dict", cm_torch_weights_item(arena, saved));
    if (saved->has_optimizer)
        cm_item_put(arena, tree, "optimizer_state_dict",
                    cm_torch_optimizer_item(arena, saved, false));
    const struct cm_item *schedule = cm_torch_schedule_item(arena, saved);
    if (schedule)
        cm_item_put(arena, tree, "scheduler_state_dict", schedule);
    if (saved->epoch >= 0)
        cm_item_put(arena, tree, "epoch", cm_item_int(arena, saved->epoch));
    if (saved->step >= 0)
        cm_item_put(arena, tree, "step", cm_item_int(arena, saved->step));
    cm_item_put(arena, tree, "cameo", cm_hold_text(arena, saved));
    return cm_error_context(err, cm_torch_save_item(saved, path, "checkpoint", tree, err), "%.600s",
                            path);
}

const struct cm_format cm_format_pytorch = {
    .name = "pytorch",
    .system = "PyTorch",
    .what = "a file of torch.save",
    .recognize = recognize,
    .read = read,
    .write = write,
};
