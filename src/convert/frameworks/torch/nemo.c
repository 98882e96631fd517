/* NVIDIA NeMo: an archive of weights and configuration, and the checkpoint of Lightning that has
 * the training. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/tar.h"
#include "bytes/yaml.h"
#include "convert/frameworks/torch/lightning.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"

static bool is_gzip(struct cm_str bytes)
{
    return cm_str_starts(bytes, "\x1f\x8b\x08");
}

/* The first file of the folder itself with this ending, or the last; empty: none. */
static struct cm_str ends_with(const struct cm_saved_place *place, const char *ending, bool last)
{
    struct cm_str found = CM_STR_NONE;

    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        if (cm_str_ends(name, ending) && (last || !found.size))
            found = name;
    }
    return found;
}

static int recognize(struct cm_saved_place *place)
{
    struct cm_str bytes;

    if (!place->file.size)
        return ends_with(place, ".nemo", false).size ? 2 : 0;
    if (is_gzip(cm_place_head(place, place->file)))
        return cm_str_ends(place->file, ".nemo") ? 2 : 0;
    if (cm_place_map(place, place->file, &bytes, NULL) || !cm_tar_is_file(bytes))
        return 0;
    return cm_str_ends(place->file, ".nemo") ? 2 : 1;
}

/* The archive, unpacked where it is packed. A gzip file ends with its size (modulo 2^32) and
 * deflate packs no tighter than 1032 to 1. */
static enum cm_status open_archive(struct cm_saved *saved, struct cm_str *bytes,
                                   struct cm_error *err)
{
    if (!is_gzip(*bytes))
        return CM_OK;
    if (bytes->size < 18)
        return cm_fail(err, CM_BAD_MODEL, "the gzip file is cut off");
    uint32_t size;
    memcpy(&size, bytes->data + bytes->size - 4, sizeof size);
    if (size / 1032 > bytes->size)
        return cm_fail(err, CM_BAD_MODEL,
                       "the gzip file claims to hold %lu bytes, more than it can",
                       (unsigned long)size);
    uint8_t *out = cm_arena_alloc(saved->arena, (size_t)size + 1);
    const struct cm_saved_piece piece = {
        .bytes = *bytes, .packing = CM_PACKED_GZIP, .unpacked_size = size};
    CM_TRY(cm_unpack(&piece, out, err));
    *bytes = (struct cm_str){(const char *)out, size};
    return CM_OK;
}

static const struct cm_tar_file *member(const struct cm_tar *tar, const char *ending)
{
    for (size_t i = 0; i < tar->count; i++)
        if (cm_str_ends(tar->items[i].name, ending))
            return &tar->items[i];
    return NULL;
}

/* The configuration: an older one has ${..} in it, which is kept as it is. */
static void take_config(struct cm_saved *saved, const struct cm_tar *tar)
{
    const struct cm_tar_file *file = member(tar, "model_config.yaml");
    struct cm_error err = {0};
    struct cm_item *config;

    if (!file)
        return;
    if (cm_item_parse_yaml(saved->arena, file->bytes, &config, &err)) {
        cm_saved_unknown(saved, "model_config.yaml: %s", err.text);
        return;
    }
    cm_saved_tell(saved, "config", config);
    saved->version = cm_item_get_text(config, "nemo_version");
    saved->schedule_name = cm_item_text_or_none(cm_item_path(config, "optim.sched.name"));
}

static enum cm_status take_archive(struct cm_saved *saved, struct cm_str bytes, struct cm_str file,
                                   bool weights, struct cm_error *err)
{
    struct cm_tar tar = {0};
    struct cm_item *tree;

    CM_TRY(open_archive(saved, &bytes, err));
    CM_TRY(cm_tar_list(saved->arena, bytes, &tar, err));
    take_config(saved, &tar);
    const struct cm_tar_file *found = member(&tar, "model_weights.ckpt");
    if (!found)
        return cm_fail(err, CM_BAD_MODEL,
                       "there is no model_weights.ckpt among the %zu files of the archive",
                       tar.count);
    if (!weights)
        return CM_OK;
    CM_TRY(cm_torch_read(saved->arena, found->bytes,
                         cm_arena_printf(saved->arena, "%.*s/model_weights.ckpt", CM_STR_FMT(file)),
                         &tree, err));
    return cm_torch_take_weights(saved, tree, err);
}

/* The checkpoint that a folder has beside its archive: "last" before others, then the last by
 * name. */
static struct cm_str checkpoint_of(const struct cm_saved_place *place)
{
    const struct cm_str last = ends_with(place, "last.ckpt", true);

    return last.size ? last : ends_with(place, ".ckpt", true);
}

static enum cm_status read_place(struct cm_saved_place *place, struct cm_saved *saved,
                                 struct cm_error *err)
{
    const struct cm_str file = place->file.size ? place->file : ends_with(place, ".nemo", true);
    const struct cm_str checkpoint = place->file.size ? CM_STR_NONE : checkpoint_of(place);
    struct cm_str bytes;
    struct cm_item *tree;

    CM_TRY(cm_place_map(place, file, &bytes, err));
    CM_TRY(cm_error_context(err, take_archive(saved, bytes, file, !checkpoint.size, err), "%.*s",
                            CM_STR_FMT(file)));
    if (!checkpoint.size) {
        cm_saved_missing(saved, "the state of the optimizer: a .nemo file has weights only, the "
                                "rest is in the .ckpt file that Lightning writes beside it");
        return CM_OK;
    }
    const struct cm_str version = saved->version;
    CM_TRY(cm_torch_read_file(place, checkpoint, &tree, err));
    CM_TRY(cm_lightning_take(saved, tree, err));
    if (version.size)
        saved->version = version;
    return CM_OK;
}

const struct cm_format cm_format_nemo = {
    .name = "nemo",
    .system = "NVIDIA NeMo",
    .what = "a .nemo archive, with the .ckpt file beside it in a folder",
    .recognize = recognize,
    .read = read_place,
};
