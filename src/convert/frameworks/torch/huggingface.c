/* Hugging Face: folders of the Trainer and of accelerate. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/huggingface.h"

#include "base/map.h"
#include "convert/frameworks/torch/safetensors_file.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/schedule.h"
#include "convert/transfer/hold.h"
#include "train/rules.h"

/* Files that hold weights, the surer first; an index lists several. */
static const char *const weight_files[] = {
    "model.safetensors.index.json",        "model.safetensors",
    "pytorch_model.bin.index.json",        "pytorch_model.bin",
    "adapter_model.safetensors",           "adapter_model.bin",
    "diffusion_pytorch_model.safetensors",
};

/* ---- recognizing ---- */

static const char *weights_of(const struct cm_saved_place *place)
{
    for (size_t i = 0; i < CM_COUNT(weight_files); i++)
        if (cm_place_has(place, cm_str(weight_files[i])))
            return weight_files[i];
    return NULL;
}

/* The folder checkpoint-N with the largest N, of a run that has several; empty: none. */
static struct cm_str newest(const struct cm_saved_place *place)
{
    struct cm_str best = CM_STR_NONE;
    int64_t most = -1;

    for (size_t i = 0; i < place->names.count; i++) {
        struct cm_str name = place->names.items[i];
        const char *slash = memchr(name.data, '/', name.size);
        int64_t number;

        if (!slash || !cm_str_starts(name, "checkpoint-"))
            continue;
        name.size = (size_t)(slash - name.data);
        if (cm_str_to_int64(cm_str_from(name, 11), &number) && number > most) {
            most = number;
            best = name;
        }
    }
    return best;
}

static int recognize(struct cm_saved_place *place)
{
    if (place->file.size)
        return cm_str_ends(place->file, ".safetensors.index.json") ||
                       cm_str_ends(place->file, ".bin.index.json")
                   ? 2
                   : 0;
    if (cm_place_has(place, CM_STR("latest")) || cm_place_has(place, CM_STR(".metadata")))
        return weights_of(place) != NULL; /* DeepSpeed, or torch.distributed.checkpoint */
    if (weights_of(place))
        return 2;
    const struct cm_str folder = newest(place);
    if (!folder.size)
        return 0;
    const struct cm_saved_place below = cm_place_below(place, folder);
    return weights_of(&below) ? 2 : 0;
}

/* ---- weights ---- */

static enum cm_status add_file(struct cm_saved_place *place, struct cm_saved *saved,
                               struct cm_str name, struct cm_item *map, struct cm_error *err)
{
    struct cm_item *tree;
    struct cm_str bytes;

    CM_TRY(cm_place_map(place, name, &bytes, err));
    if (cm_safetensors_is_file(bytes))
        return cm_safetensors_item(saved->arena, bytes, name, map, err);
    CM_TRY(cm_torch_read(saved->arena, bytes, name, &tree, err));
    if (tree->kind != CM_ITEM_MAP)
        return cm_fail(err, CM_BAD_MODEL, "%.*s: the weights are not a dictionary",
                       CM_STR_FMT(name));
    for (size_t i = 0; i < tree->entries.count; i++)
        cm_item_set(saved->arena, map, tree->entries.items[i].key, tree->entries.items[i].value);
    return CM_OK;
}

/* {"weight_map": {name of a tensor: name of a file}}; every tensor must be where it says. */
static enum cm_status add_index(struct cm_saved_place *place, struct cm_saved *saved,
                                struct cm_str name, struct cm_item *map, struct cm_error *err)
{
    struct cm_map files = {0}, tensors = {0};
    struct cm_str file, key;
    struct cm_item *index;

    CM_TRY(cm_place_json(place, name, &index, err));
    const struct cm_item *list = cm_item_get(index, "weight_map");
    if (!cm_item_count(list) || list->kind != CM_ITEM_MAP)
        return cm_fail(err, CM_BAD_MODEL, "%.*s: it has no weight_map", CM_STR_FMT(name));
    for (size_t i = 0; i < list->entries.count; i++) {
        if (!cm_item_is_text(list->entries.items[i].value, &file))
            return cm_fail(err, CM_BAD_MODEL, "%.*s: a file of weight_map is not a text",
                           CM_STR_FMT(name));
        if (cm_map_add(&files, saved->arena, file))
            CM_TRY(add_file(place, saved, file, map, err));
    }
    for (size_t i = 0; i < map->entries.count; i++)
        if (cm_item_is_text(map->entries.items[i].key, &key))
            cm_map_insert(&tensors, saved->arena, key, NULL);
    for (size_t i = 0; i < list->entries.count; i++)
        if (!cm_item_is_text(list->entries.items[i].key, &key) || !cm_map_find(&tensors, key))
            return cm_fail(err, CM_BAD_MODEL, "%.*s: none of its files has the tensor %.*s",
                           CM_STR_FMT(name),
                           CM_STR_FMT(cm_item_json(saved->arena, list->entries.items[i].key, 100)));
    return CM_OK;
}

/* ---- arguments of the Trainer ---- */

/* A member of an enumeration is an object that was made of its value. */
static struct cm_str word(const struct cm_item *item)
{
    if (item && item->kind == CM_ITEM_OBJECT && item->entries.count == 1)
        item = item->entries.items[0].value;
    return cm_item_text_or_none(item);
}

/* Rates of scheduler.pt, which for most kinds has a function that is not stored: the arguments say
 * which it was. */
static bool take_named_schedule(struct cm_saved *saved, const struct cm_item *schedule,
                                const struct cm_item *arguments, const struct cm_item *state)
{
    const struct cm_str name = word(cm_item_get(arguments, "lr_scheduler_type"));
    const struct cm_item *rates = cm_item_get(schedule, "base_lrs");
    double total = cm_item_get_real(state, "max_steps", NAN);
    double warmup = cm_item_get_real(arguments, "warmup_steps", 0);
    int64_t position;
    double *base;

    if (!name.size || !cm_item_get(schedule, "lr_lambdas") ||
        !cm_item_is_int(cm_item_get(schedule, "last_epoch"), &position))
        return false;
    if (!(total > 0))
        total = cm_item_get_real(arguments, "max_steps", NAN);
    if (!(warmup > 0))
        warmup = ceil(total * cm_item_get_real(arguments, "warmup_ratio", 0));
    else if (warmup < 1)
        warmup = ceil(total * warmup);
    const struct cm_schedule_maker maker = cm_schedule_for(saved, &base);
    for (size_t i = 0; i < maker.groups; i++)
        base[i] = cm_item_real_or(cm_item_at(rates, i), saved->groups.items[i].settings.initial_lr);
    saved->schedule.offset = saved->step < 0 ? 0 : position - saved->step;
    if (!cm_schedule_transformers(&maker, name, isnan(warmup) ? 0 : warmup, total,
                                  cm_item_get(arguments, "lr_scheduler_kwargs")) ||
        !cm_schedule_agrees(saved)) {
        saved->schedule = (struct cm_rate_schedule){0};
        return false;
    }
    saved->schedule_known = CM_SCHEDULE_KNOWN;
    saved->schedule_name = name;
    cm_saved_tell(saved, "scheduler", schedule);
    return true;
}

static void take_arguments(struct cm_saved *saved, const struct cm_item *arguments)
{
    double clip;
    int64_t number;

    if (arguments->kind == CM_ITEM_OBJECT && arguments->state)
        cm_saved_tell(saved, "arguments", arguments->state);
    if (cm_item_is_real(cm_item_get(arguments, "max_grad_norm"), &clip) && clip >= 0)
        saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL, clip};
    if (cm_item_is_int(cm_item_get(arguments, "gradient_accumulation_steps"), &number) &&
        number > 0)
        saved->accumulate = number;
}

/* Adam and AdamW of older PyTorch cannot be told apart by their state; the arguments can: "adamw",
 * "adamw_torch_fused". 1: weight decay is decoupled; -1: they do not say. */
static int decoupled(const struct cm_item *arguments)
{
    const struct cm_str name = word(cm_item_get(arguments, "optim"));
    const char *end = name.size ? memchr(name.data, '_', name.size) : NULL;
    const struct cm_optimizer_preset *preset = NULL;

    (void)cm_optimizer_find((struct cm_str){name.data, end ? (size_t)(end - name.data) : name.size},
                            &preset);
    return preset && cm_optimizer_preset_says(preset, CM_LIKE_TORCH, "decoupled") > 0 ? 1 : -1;
}

/* ---- the folder ---- */

/* A file that torch.save wrote, by the first of its names that is there; *out is NULL if none. */
static enum cm_status read_one(struct cm_saved_place *place, const char *names,
                               const struct cm_item **out, struct cm_error *err)
{
    struct cm_item *item;

    *out = NULL;
    while (*names) {
        const struct cm_str name = {names, strcspn(names, " ")};
        if (cm_place_has(place, name)) {
            CM_TRY(cm_torch_read_file(place, name, &item, err));
            *out = item;
            return CM_OK;
        }
        names += name.size + (names[name.size] == ' ');
    }
    return CM_OK;
}

static enum cm_status read_json(struct cm_saved_place *place, struct cm_saved *saved,
                                const char *name, const char *fact, const struct cm_item **out,
                                struct cm_error *err)
{
    struct cm_item *item;

    CM_TRY(cm_place_json(place, cm_str(name), &item, err));
    if (item && fact)
        cm_saved_tell(saved, fact, item);
    *out = item;
    return CM_OK;
}

enum cm_status cm_huggingface_read_training(struct cm_saved_place *place, struct cm_saved *saved,
                                            struct cm_error *err)
{
    const struct cm_item *state, *arguments, *optimizer, *schedule, *scaler, *ours;
    int64_t step;

    CM_TRY(read_json(place, saved, "trainer_state.json", "trainer_state", &state, err));
    CM_TRY(read_one(place, "training_args.bin", &arguments, err));
    CM_TRY(read_one(place, "optimizer.pt optimizer.bin", &optimizer, err));
    CM_TRY(read_one(place, "scheduler.pt scheduler.bin", &schedule, err));
    CM_TRY(read_one(place, "scaler.pt", &scaler, err));
    if (cm_item_is_int(cm_item_get(state, "global_step"), &step) && step >= 0)
        saved->step = step;
    const double epoch = cm_item_get_real(state, "epoch", -1);
    if (epoch >= 0 && epoch < 1e15)
        saved->epoch = (int64_t)epoch;
    saved->loss_scale = cm_item_get_real(scaler, "scale", saved->loss_scale);
    if (scaler)
        cm_saved_tell(saved, "loss_scaler", scaler);
    if (arguments)
        take_arguments(saved, arguments);
    if (optimizer && !cm_torch_is_optimizer(optimizer))
        cm_saved_unknown(saved, "optimizer.pt is not a state of one of PyTorch's optimizers");
    else if (optimizer)
        CM_TRY(cm_torch_take_optimizer(saved, optimizer, decoupled(arguments), err));
    if (decoupled(arguments) > 0 && cm_optimizer_rules[saved->rule].decoupled)
        saved->optimizer = cm_optimizer_title(saved->rule, true);
    if (schedule && !take_named_schedule(saved, schedule, arguments, state))
        cm_torch_take_schedule(saved, schedule);
    if (!schedule && saved->has_optimizer)
        cm_saved_tell(saved, "scheduler", &cm_item_none);
    CM_TRY(read_json(place, saved, "cameo.json", NULL, &ours, err));
    if (ours)
        CM_TRY(cm_hold_recall(saved, ours, err));
    return CM_OK;
}

/* Of each process one file. */
static enum cm_status read_random(struct cm_saved_place *place, struct cm_saved *saved,
                                  struct cm_error *err)
{
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        struct cm_item *item;
        struct cm_str bytes, stem = name;

        if ((!cm_str_starts(name, "rng_state") || !cm_str_ends(name, ".pth")) &&
            (!cm_str_starts(name, "random_states_") || !cm_str_ends(name, ".pkl"))) {
            if (cm_str_starts(name, "custom_checkpoint_"))
                cm_saved_unknown(saved, "%.*s holds an object that the user registered",
                                 CM_STR_FMT(name));
            continue;
        }
        stem.size -= 4;
        CM_TRY(cm_place_map(place, name, &bytes, err));
        CM_TRY(cm_torch_is_file(bytes) ? cm_torch_read(saved->arena, bytes, name, &item, err)
                                       : cm_pickle_read(saved->arena, bytes, &item, err));
        cm_torch_take_random(saved, cm_arena_str(saved->arena, stem).data, item);
    }
    return CM_OK;
}

static enum cm_status huggingface_read(struct cm_saved_place *place, struct cm_saved *saved,
                                       struct cm_error *err)
{
    struct cm_item *map = cm_item_new(saved->arena, CM_ITEM_MAP);
    const struct cm_item *config;
    const char *weights = weights_of(place);

    if (place->file.size) {
        CM_TRY(add_index(place, saved, place->file, map, err));
        return cm_torch_take_weights(saved, map, err);
    }
    if (!weights) {
        struct cm_saved_place below = cm_place_below(place, newest(place));

        return huggingface_read(&below, saved, err);
    }
    CM_TRY(cm_str_ends(cm_str(weights), ".json")
               ? add_index(place, saved, cm_str(weights), map, err)
               : add_file(place, saved, cm_str(weights), map, err));
    CM_TRY(cm_torch_take_weights(saved, map, err));
    CM_TRY(read_json(place, saved, "config.json", "config", &config, err));
    saved->version = cm_item_get_text(config, "transformers_version");
    CM_TRY(cm_huggingface_read_training(place, saved, err));
    return read_random(place, saved, err);
}

const struct cm_format cm_format_huggingface = {
    .name = "huggingface",
    .system = "Hugging Face",
    .what = "a folder of the Trainer or of accelerate",
    .recognize = recognize,
    .read = huggingface_read,
    .write = cm_huggingface_write,
};
