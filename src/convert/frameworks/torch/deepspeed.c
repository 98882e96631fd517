/* Folders of DeepSpeed: weights in one file, or with ZeRO 3 in as many as there were ranks; and for
 * each rank its part of the float weights and of what the optimizer keeps, as flat tensors that
 * know no names. The shapes in the file of weights say how to cut them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/deepspeed.h"

#include "convert/frameworks/torch/huggingface.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"

/* ---- files ---- */

/* The number after a word in a name; -1: the word is not there. */
static int64_t number_after(struct cm_str name, const char *word)
{
    const size_t size = strlen(word);
    int64_t number = 0;

    for (size_t i = 0; i + size < name.size; i++) {
        if (memcmp(name.data + i, word, size) != 0)
            continue;
        for (size_t k = i + size; k < name.size && k < i + size + 7; k++) {
            if (name.data[k] < '0' || name.data[k] > '9')
                break;
            number = number * 10 + name.data[k] - '0';
        }
        return number;
    }
    return -1;
}

static bool is_states(struct cm_str name)
{
    return (cm_str_ends(name, "_model_states.pt") || cm_str_ends(name, "_optim_states.pt")) &&
           number_after(name, "mp_rank_") >= 0;
}

static int recognize(struct cm_saved_place *place)
{
    for (size_t i = 0; i < place->names.count && !place->file.size; i++)
        if (is_states(place->names.items[i]))
            return 2;
    return 0;
}

/* With its slash. */
static struct cm_str folder_of(struct cm_str name)
{
    return (struct cm_str){name.data, name.size - cm_str_after_last(name, '/').size};
}

/* The folder that `latest` names, or the only one with such files. */
static enum cm_status find_tag(struct cm_zero *zero)
{
    struct cm_saved_place *place = zero->place;
    struct cm_str text;
    bool found = false;

    if (cm_place_has(place, CM_STR("latest"))) {
        CM_TRY(cm_place_map(place, CM_STR("latest"), &text, zero->err));
        while (text.size && (unsigned char)text.data[text.size - 1] <= ' ')
            text.size--;
        if (text.size > 200)
            return cm_fail(zero->err, CM_BAD_MODEL, "'latest' does not hold the name of a folder");
        zero->folder = cm_arena_printf(place->arena, "%.*s/", CM_STR_ALL(text));
        return CM_OK;
    }
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str folder = folder_of(place->names.items[i]);
        if (!is_states(place->names.items[i]))
            continue;
        if (found && !cm_str_equal(folder, zero->folder))
            return cm_fail(zero->err, CM_BAD_MODEL,
                           "it holds several checkpoints, '%.*s' and '%.*s', and no file 'latest' "
                           "that names one: give the folder of one",
                           CM_STR_FMT(zero->folder), CM_STR_FMT(folder));
        zero->folder = folder;
        found = true;
    }
    return CM_OK;
}

static enum cm_status list_file(struct cm_zero *zero, struct cm_str name)
{
    const int64_t rank = number_after(name, "zero_pp_rank_");

    if (number_after(name, "expert_") >= 0 || number_after(name, "expp_rank_") >= 0)
        return cm_fail(zero->err, CM_UNSUPPORTED,
                       "'%.*s' is a part of a mixture of experts, which is not supported",
                       CM_STR_FMT(name));
    if (number_after(name, "mp_rank_") > 0)
        return cm_fail(zero->err, CM_UNSUPPORTED,
                       "'%.*s' is a part of weights cut by tensor parallelism, which is not "
                       "supported",
                       CM_STR_FMT(name));
    const size_t at = rank < 0 ? 0 : (size_t)rank;
    if (at >= zero->place->names.count)
        return cm_fail(zero->err, CM_BAD_MODEL,
                       "there is a file of rank %zu, but not of all before", at);
    if (at >= zero->n_ranks)
        zero->n_ranks = at + 1;
    *(cm_str_ends(name, "_model_states.pt") ? &zero->ranks[at].model_name
                                            : &zero->ranks[at].optim_name) = name;
    return CM_OK;
}

static enum cm_status list_files(struct cm_zero *zero)
{
    const struct cm_saved_place *place = zero->place;
    bool has_optimizer = false;

    CM_TRY(find_tag(zero));
    zero->ranks = CM_NEW_ARRAY(place->arena, struct cm_zero_rank, place->names.count + 1);
    for (size_t i = 0; i < place->names.count; i++)
        if (is_states(place->names.items[i]) &&
            cm_str_equal(folder_of(place->names.items[i]), zero->folder))
            CM_TRY(list_file(zero, place->names.items[i]));
    if (!zero->ranks[0].model_name.size)
        return cm_fail(zero->err, CM_BAD_MODEL, "'%.*s' holds no file of weights",
                       CM_STR_FMT(zero->folder));
    for (size_t i = 0; i < zero->n_ranks; i++)
        has_optimizer = has_optimizer || zero->ranks[i].optim_name.size;
    for (size_t i = 0; i < zero->n_ranks && has_optimizer; i++)
        if (!zero->ranks[i].optim_name.size)
            return cm_fail(zero->err, CM_BAD_MODEL, "the optimizer's file of rank %zu is missing",
                           i);
    return CM_OK;
}

static enum cm_status read_file(struct cm_zero *zero, struct cm_str name,
                                const struct cm_item **out)
{
    struct cm_item *item;

    CM_TRY(cm_torch_read_file(zero->place, name, &item, zero->err));
    if (item->kind != CM_ITEM_MAP)
        return cm_fail(zero->err, CM_BAD_MODEL, "'%.*s' does not hold a dictionary",
                       CM_STR_FMT(name));
    *out = item;
    return CM_OK;
}

static enum cm_status read_files(struct cm_zero *zero)
{
    int64_t wanted = 0;

    for (size_t i = 0; i < zero->n_ranks; i++) {
        struct cm_zero_rank *rank = &zero->ranks[i];
        const struct cm_item *file;

        if (rank->optim_name.size) {
            CM_TRY(read_file(zero, rank->optim_name, &file));
            rank->state = cm_item_get(file, "optimizer_state_dict");
            rank->flats = cm_item_get(rank->state, "fp32_flat_groups");
            zero->is_third = rank->flats != NULL;
            if (!rank->flats)
                rank->flats = cm_item_get(rank->state, "single_partition_of_fp32_groups");
            rank->base = cm_item_get(rank->state, zero->is_third ? "optimizer_state_dict"
                                                                 : "base_optimizer_state");
            if (!cm_torch_is_optimizer(rank->base) || !rank->flats)
                return cm_fail(zero->err, CM_UNSUPPORTED,
                               "'%.*s' does not hold an optimizer of ZeRO 1, 2 or 3",
                               CM_STR_FMT(rank->optim_name));
        }
        if (rank->model_name.size && (i == 0 || zero->is_third))
            CM_TRY(read_file(zero, rank->model_name, &rank->model));
    }
    const struct cm_item *count = cm_item_get(zero->ranks[0].state, "partition_count");
    if ((cm_item_is_int(count, &wanted) || cm_item_is_int(cm_item_at(count, 0), &wanted)) &&
        wanted != (int64_t)zero->n_ranks)
        return cm_fail(zero->err, CM_BAD_MODEL,
                       "it was saved by %lld ranks, and there are files of %zu", (long long)wanted,
                       zero->n_ranks);
    return CM_OK;
}

/* ---- settings ---- */

/* DeepSpeed clips at 1.0 where nobody says otherwise; until when it did not is not known. */
static void take_clip(struct cm_zero *zero, const struct cm_item *config)
{
    struct cm_saved *saved = zero->saved;
    double limit = cm_item_get_real(zero->ranks[0].state, "clip_grad", NAN);
    int64_t minor = 0;

    if (isnan(limit))
        limit = cm_item_get_real(config, "gradient_clipping", NAN);
    if (isnan(limit)) {
        minor = cm_str_starts(saved->version, "0.") ? number_after(saved->version, "0.") : 99;
        if (minor >= 19)
            limit = 1;
        else
            cm_saved_missing(saved, "whether gradients were clipped: the configuration does not "
                                    "say, and DeepSpeed's default is 1.0 or none, by its version");
    }
    saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL, limit};
}

static void take_settings(struct cm_zero *zero, const struct cm_item *model,
                          const struct cm_item *config)
{
    static const char *const known[] = {
        "module",        "buffer_names",  "optimizer",
        "param_shapes",  "shared_params", "frozen_param_shapes",
        "lr_scheduler",  "global_steps",  "frozen_param_fragments",
        "mp_world_size", "epoch",         "checkpoint_parallel_dimensions",
        "ds_version"};
    struct cm_saved *saved = zero->saved;
    const struct cm_item *scaler = cm_item_get(zero->ranks[0].state, "loss_scaler");
    bool dynamic = false;
    double scale;

    (void)cm_item_is_int(cm_item_get(model, "epoch"), &saved->epoch);
    if (!cm_item_is_int(cm_item_get(config, "gradient_accumulation_steps"), &saved->accumulate))
        saved->accumulate = 1;
    (void)cm_item_is_bool(cm_item_get(zero->ranks[0].state, "dynamic_loss_scale"), &dynamic);
    if (cm_item_is_real(cm_item_get(scaler, "cur_scale"), &scale) && (dynamic || scale != 1))
        saved->loss_scale = scale;
    saved->ranks = (int64_t)zero->n_ranks;
    for (size_t i = 0; i < cm_item_count(model); i++) {
        const struct cm_item_entry *entry = &model->entries.items[i];
        bool is_known = false;

        if (!entry->key || entry->key->kind != CM_ITEM_TEXT || entry->value->kind == CM_ITEM_NONE)
            continue;
        for (size_t k = 0; k < CM_COUNT(known); k++)
            is_known = is_known || cm_str_is(entry->key->text, known[k]);
        if (!is_known)
            cm_saved_tell(saved, cm_arena_str(saved->arena, entry->key->text).data, entry->value);
    }
}

static void take_schedule(struct cm_zero *zero, const struct cm_item *config,
                          const struct cm_item *state)
{
    const struct cm_item *named = cm_item_get(config, "scheduler");

    if (named && named->kind == CM_ITEM_MAP)
        cm_deepspeed_take_schedule(zero->saved, named, state);
    else if (state && state->kind == CM_ITEM_MAP)
        cm_torch_take_schedule(zero->saved, state);
}

/* Weights, and the optimizer where one was saved in the same file: training without ZeRO. */
static enum cm_status take_all(struct cm_zero *zero)
{
    struct cm_arena *arena = zero->place->arena;
    const struct cm_item *model = zero->ranks[0].model, *module = cm_item_get(model, "module");
    const struct cm_item *config = cm_item_get(model, "ds_config");
    const struct cm_item *whole = cm_item_get(model, "optimizer");
    struct cm_item *weights = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *optimizer = cm_item_new(arena, CM_ITEM_MAP);
    int64_t steps = -1, skipped = 0;

    zero->saved->version = cm_item_get_text(model, "ds_version");
    (void)cm_item_is_int(cm_item_get(model, "global_steps"), &steps);
    (void)cm_item_is_int(cm_item_get(model, "skipped_steps"), &skipped);
    if (zero->ranks[0].state)
        CM_TRY(cm_zero_list_parameters(zero));
    if (zero->is_third)
        CM_TRY(cm_zero_gather_weights(zero, weights));
    CM_TRY(cm_torch_take_weights(zero->saved, zero->is_third ? weights : module, zero->err));
    take_settings(zero, model, config);
    if (zero->ranks[0].state) {
        if (!zero->is_third)
            CM_TRY(cm_zero_add_masters(zero, module));
        CM_TRY(cm_zero_gather_optimizer(zero, config, optimizer));
        CM_TRY(cm_torch_take_optimizer(zero->saved, optimizer, -1, zero->err));
        take_clip(zero, config);
    } else if (cm_torch_is_optimizer(whole)) {
        CM_TRY(cm_torch_take_optimizer(zero->saved, whole, -1, zero->err));
        take_clip(zero, config);
    } else if (whole && whole->kind != CM_ITEM_NONE) {
        cm_saved_unknown(zero->saved, "the optimizer: expected one of PyTorch or of ZeRO");
    }
    if (zero->saved->step < 0 && steps >= 0)
        zero->saved->step = steps - skipped;
    take_schedule(zero, config, cm_item_get(model, "lr_scheduler"));
    return CM_OK;
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct cm_zero zero = {.place = place, .saved = saved, .err = err};

    CM_TRY(list_files(&zero));
    CM_TRY(read_files(&zero));
    CM_TRY(take_all(&zero));
    return cm_place_has(place, CM_STR("trainer_state.json"))
               ? cm_huggingface_read_training(place, saved, err)
               : CM_OK;
}

const struct cm_format cm_format_deepspeed = {
    .name = "deepspeed",
    .system = "DeepSpeed",
    .what = "a folder of DeepSpeed, with or without ZeRO",
    .recognize = recognize,
    .read = read,
};
