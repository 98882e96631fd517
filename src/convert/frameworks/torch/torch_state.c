/* State dictionaries of weights, and files that hold them in some arrangement of the user's. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/torch_state.h"

#include "base/map.h"
#include "convert/transfer/hold.h"

enum { DEPTH_MAX = 6, FOUND_MAX = 64 };

/* ---- weights ---- */

/* Is it a map of names to tensors (nested maps of them not)? */
static bool is_weights(const struct cm_item *item)
{
    bool some = false;

    if (!item || item->kind != CM_ITEM_MAP)
        return false;
    for (size_t i = 0; i < item->entries.count; i++) {
        const struct cm_item_entry *entry = &item->entries.items[i];

        if (!entry->key || entry->key->kind != CM_ITEM_TEXT || !entry->value)
            return false;
        if (entry->value->kind == CM_ITEM_TENSOR)
            some |= entry->value->tensor->shape.rank > 0;
        else if (!cm_str_ends(entry->key->text, "_extra_state"))
            return false;
    }
    return some;
}

/* Names that PyTorch and transformers give to states that are not learned. */
static bool is_buffer(struct cm_str name, const struct cm_saved_tensor *tensor)
{
    static const char *const ends[] = {"running_mean",     "running_var", "num_batches_tracked",
                                       "position_ids",     "masked_bias", "inv_freq",
                                       "final_logits_bias"};

    if (!cm_dtype_is_float(tensor->dtype))
        return true;
    for (size_t i = 0; i < CM_COUNT(ends); i++)
        if (cm_str_ends(name, ends[i]))
            return true;
    return cm_str_ends(name, ".attn.bias") && tensor->shape.rank == 4; /* a mask of GPT-2's */
}

static void add_weight(struct cm_saved *saved, struct cm_str name, struct cm_saved_tensor *tensor)
{
    cm_saved_add(saved, is_buffer(name, tensor) ? CM_SAVED_BUFFER : CM_SAVED_WEIGHT, name, tensor);
}

enum cm_status cm_torch_take_weights(struct cm_saved *saved, const struct cm_item *weights,
                                     struct cm_error *err)
{
    if (!weights || weights->kind != CM_ITEM_MAP)
        return cm_fail(err, CM_BAD_MODEL, "the weights are not a dictionary");
    for (size_t i = 0; i < weights->entries.count; i++) {
        const struct cm_item_entry *entry = &weights->entries.items[i];
        struct cm_str name;

        if (cm_item_is_text(entry->key, &name) && entry->value->kind == CM_ITEM_TENSOR)
            add_weight(saved, name, entry->value->tensor);
        else
            cm_saved_unknown(saved, "the entry %.*s of the weights is not a tensor",
                             CM_STR_FMT(cm_item_json(saved->arena, entry->key, 100)));
    }
    return CM_OK;
}

/* A module that was saved whole: its parameters, its buffers, and those of the modules in it. */
static bool is_module(const struct cm_item *item)
{
    return item && item->kind == CM_ITEM_OBJECT && cm_item_get(item, "_parameters") &&
           cm_item_get(item, "_modules");
}

static void take_module(struct cm_saved *saved, const struct cm_item *module, struct cm_str path,
                        int depth)
{
    static const char *const lists[] = {"_parameters", "_buffers", "_modules"};

    for (size_t k = 0; k < CM_COUNT(lists) && depth < CM_ITEM_DEPTH_MAX; k++) {
        const struct cm_item *list = cm_item_get(module, lists[k]);

        for (size_t i = 0; i < cm_item_count(list); i++) {
            const struct cm_item_entry *entry = &list->entries.items[i];
            struct cm_str name;

            if (!entry->key || !cm_item_is_text(entry->key, &name) ||
                saved->entries.count >= CM_ITEM_WALK_MAX)
                continue;
            const struct cm_str full =
                path.size
                    ? cm_arena_printf(saved->arena, "%.*s.%.*s", CM_STR_ALL(path), CM_STR_ALL(name))
                    : name;
            if (k == 2 && is_module(entry->value))
                take_module(saved, entry->value, full, depth + 1);
            else if (k == 1 && entry->value->kind == CM_ITEM_TENSOR)
                cm_saved_add(saved, CM_SAVED_BUFFER, full, entry->value->tensor);
            else if (k == 0 && entry->value->kind == CM_ITEM_TENSOR)
                add_weight(saved, full, entry->value->tensor);
        }
    }
}

/* ---- random generators ---- */

static void take_random(struct cm_saved *saved, struct cm_str name, const struct cm_item *item,
                        int depth)
{
    if (item->kind == CM_ITEM_TENSOR) {
        cm_saved_add(saved, CM_SAVED_RANDOM, name, item->tensor);
    } else if (item->kind == CM_ITEM_MAP && depth < 3) {
        for (size_t i = 0; i < item->entries.count; i++) {
            struct cm_str key;
            if (cm_item_is_text(item->entries.items[i].key, &key))
                take_random(
                    saved,
                    cm_arena_printf(saved->arena, "%.*s.%.*s", CM_STR_FMT(name), CM_STR_FMT(key)),
                    item->entries.items[i].value, depth + 1);
        }
    } else if (item->kind != CM_ITEM_NONE) {
        for (size_t i = 0; i < cm_item_count(item); i++) /* numbers of NumPy's generator */
            if (item->kind == CM_ITEM_LIST && cm_item_at(item, i)->kind == CM_ITEM_TENSOR)
                cm_saved_add(saved, CM_SAVED_RANDOM,
                             cm_arena_printf(saved->arena, "%.*s.%zu", CM_STR_FMT(name), i),
                             cm_item_at(item, i)->tensor);
        cm_saved_tell(saved, cm_arena_str(saved->arena, name).data, item);
    }
}

void cm_torch_take_random(struct cm_saved *saved, const char *name, const struct cm_item *item)
{
    take_random(saved, cm_str(name), item, 0);
}

/* ---- files of unknown habits ---- */

/* What was found in the tree, by kind, with the keys that lead to it. */
struct found {
    struct cm_saved *saved;
    struct hit {
        const struct cm_item *item;
        struct cm_str path;
    } weights[FOUND_MAX], optimizers[FOUND_MAX], schedules[FOUND_MAX];
    size_t n_weights, n_optimizers, n_schedules, visited;
    struct cm_map
        inside; /* maps and lists that were looked into, by address and depth: any hits? */
};

static bool note(struct hit *hits, size_t *count, const struct cm_item *item, struct cm_str path)
{
    if (*count < FOUND_MAX)
        hits[(*count)++] = (struct hit){item, path};
    return true;
}

static void take_position(struct cm_saved *saved, struct cm_str key, const struct cm_item *value)
{
    static const char *const steps[] = {"global_step", "step",       "iteration",  "iter",
                                        "steps",       "iterations", "num_updates"};
    int64_t number;

    if (!value || value->kind == CM_ITEM_TENSOR || !cm_item_is_int(value, &number) || number < 0 ||
        number > INT64_C(1) << 50)
        return;
    if (cm_str_is(key, "epoch"))
        saved->epoch = number;
    for (size_t i = 0; i < CM_COUNT(steps); i++)
        if (cm_str_is(key, steps[i]) && saved->step < 0)
            saved->step = number;
}

static bool look(struct found *found, const struct cm_item *item, struct cm_str path, int depth);

/* Looks into the members of a map or list. Those that are none of what is looked for are told as
 * facts, if anything beside them was found. */
static bool look_inside(struct found *found, const struct cm_item *item, struct cm_str path,
                        int depth)
{
    struct cm_saved *saved = found->saved;
    const size_t count = cm_item_count(item);
    bool *hits = CM_NEW_ARRAY(saved->arena, bool, count + 1);
    bool any = depth == 0;

    if (depth >= DEPTH_MAX || count > 10000)
        return false;
    for (int tell = 0; tell < 2; tell++) {
        for (size_t i = 0; i < count; i++) {
            const struct cm_item_entry *entry = &item->entries.items[i];
            const struct cm_str key = cm_item_key(saved->arena, item, i);
            const struct cm_str full =
                path.size
                    ? cm_arena_printf(saved->arena, "%.*s.%.*s", CM_STR_FMT(path), CM_STR_FMT(key))
                    : key;
            if (!tell)
                any |= hits[i] = look(found, entry->value, full, depth + 1);
            else if (any && !hits[i] &&
                     (cm_str_contains(full, "rng") || cm_str_contains(full, "random")))
                cm_torch_take_random(saved, cm_arena_str(saved->arena, full).data, entry->value);
            else if (any && !hits[i])
                cm_saved_tell(saved, cm_arena_str(saved->arena, full).data, entry->value);
            if (tell && any)
                take_position(saved, key, entry->value);
        }
    }
    return any;
}

static bool look(struct found *found, const struct cm_item *item, struct cm_str path, int depth)
{
    double scale;

    if (!item || ++found->visited > CM_ITEM_WALK_MAX)
        return false;
    if (cm_torch_is_optimizer(item))
        return note(found->optimizers, &found->n_optimizers, item, path);
    if (is_module(item) || is_weights(item))
        return note(found->weights, &found->n_weights, item, path);
    if (cm_torch_is_schedule(item))
        return note(found->schedules, &found->n_schedules, item, path);
    if (item->kind == CM_ITEM_MAP && cm_item_get(item, "growth_factor") &&
        cm_item_is_real(cm_item_get(item, "scale"), &scale)) {
        found->saved->loss_scale = scale;
        cm_saved_tell(found->saved, "loss_scaler", item);
        return true;
    }
    if (cm_str_contains(path, "rng") || (item->kind != CM_ITEM_MAP && item->kind != CM_ITEM_LIST))
        return false;
    /* A pickle of a few bytes may hold one map at a million places. Items are aligned, so that the
     * depth has room in the address. */
    const uint64_t place = CM_ADDRESS(item) + (unsigned)depth;
    bool is_new;
    const uint64_t *known =
        cm_map_insert_number(&found->inside, found->saved->arena, place, &is_new);
    if (!is_new)
        return *known;
    const bool any = look_inside(found, item, path, depth);
    *cm_map_find_number(&found->inside, place) = any;
    return any;
}

/* Moving averages of the weights beside the weights: known by the key they are under. */
static bool is_average(const struct found *found, struct cm_str path)
{
    return found->n_weights > 1 && (cm_str_contains(path, "ema") || cm_str_contains(path, "swa") ||
                                    cm_str_contains(path, "average"));
}

static enum cm_status take_found_weights(const struct found *found, struct cm_error *err)
{
    struct cm_saved *saved = found->saved;
    size_t nets = 0;

    for (size_t i = 0; i < found->n_weights; i++)
        nets += !is_average(found, found->weights[i].path);
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct hit *hit = &found->weights[i];
        const size_t first = saved->entries.count;
        const bool average = is_average(found, hit->path);

        if (is_module(hit->item))
            take_module(saved, hit->item, CM_STR(""), 0);
        else
            CM_TRY(cm_torch_take_weights(saved, hit->item, err));
        for (size_t k = first; k < saved->entries.count; k++) {
            struct cm_saved_entry *entry = &saved->entries.items[k];
            if (average && entry->role == CM_SAVED_WEIGHT)
                entry->role = CM_SAVED_AVERAGE;
            else if (average)
                entry->role = CM_SAVED_OTHER;
            if (!average && nets > 1)
                entry->name = cm_arena_printf(saved->arena, "%.*s.%.*s", CM_STR_FMT(hit->path),
                                              CM_STR_FMT(entry->name));
        }
    }
    return CM_OK;
}

enum cm_status cm_torch_take_tree(struct cm_saved *saved, const struct cm_item *tree,
                                  struct cm_error *err)
{
    struct found *found = CM_NEW(saved->arena, struct found);

    found->saved = saved;
    if (tree && tree->kind == CM_ITEM_OBJECT && !is_module(tree) && tree->state)
        tree = tree->state;
    (void)look(found, tree, CM_STR(""), 0);
    CM_TRY(take_found_weights(found, err));
    if (found->n_optimizers)
        CM_TRY(cm_torch_take_optimizer(saved, found->optimizers[0].item, -1, err));
    if (found->n_schedules)
        cm_torch_take_schedule(saved, found->schedules[0].item);
    if (found->n_optimizers > 1)
        cm_saved_missing(saved,
                         "which of %zu optimizers moves which weights: only the first, '%.*s', was "
                         "read",
                         found->n_optimizers, CM_STR_FMT(found->optimizers[0].path));
    for (size_t i = 1; i < found->n_schedules; i++)
        cm_saved_unknown(saved, "there is a second scheduler, '%.*s'",
                         CM_STR_FMT(found->schedules[i].path));
    return cm_hold_recall_text(saved, cm_item_get(tree, "cameo"), err);
}
