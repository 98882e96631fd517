/* Files of flax.serialization and flax.training.checkpoints: a tree as msgpack. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/msgpack.h"
#include "convert/format.h"
#include "convert/frameworks/jax/flax_state.h"

/* The number at the end of a name, before its suffix: checkpoint_12, step_12.msgpack. */
static int64_t number_in(struct cm_str name)
{
    if (cm_str_ends(name, ".msgpack"))
        name.size -= strlen(".msgpack");
    return cm_str_number_at_end(name);
}

/* The file of the checkpoint: PATH, or in a folder the newest of those that look like one. */
static int find_file(struct cm_saved_place *place, struct cm_str *out)
{
    int64_t newest = -2;
    int sure = 0;

    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        const bool named = cm_str_ends(name, ".msgpack");

        if (memchr(name.data, '/', name.size) ||
            (!named && !cm_str_starts(name, "checkpoint_") && !place->file.size) ||
            number_in(name) <= newest || !cm_msgpack_is_map(cm_place_head(place, name)))
            continue;
        newest = number_in(name);
        sure = named ? 2 : 1;
        *out = name;
    }
    return sure;
}

static int recognize(struct cm_saved_place *place)
{
    struct cm_str file;

    return find_file(place, &file);
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct cm_str file, bytes;
    struct cm_item *tree;

    if (!find_file(place, &file))
        return cm_fail(err, CM_BAD_MODEL, "it is not a msgpack file of flax");
    CM_TRY(cm_place_map(place, file, &bytes, err));
    CM_TRY(cm_msgpack_read(saved->arena, bytes, file, &tree, err));
    CM_TRY(cm_jax_take_tree(saved, tree, err));
    if (saved->step < 0 && place->file.size == 0)
        saved->step = number_in(file);
    return CM_OK;
}

static enum cm_status write_tree(void *tree, struct cm_save *save, struct cm_error *err)
{
    return cm_msgpack_write(save, tree, err);
}

static enum cm_status write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    const struct cm_item *tree;

    CM_TRY(cm_jax_tree(saved->arena, saved, &tree, err));
    return cm_saved_write_file(saved, path, write_tree, (void *)tree, err);
}

const struct cm_format cm_format_flax = {
    .name = "flax",
    .system = "JAX",
    .what = "flax msgpack",
    .recognize = recognize,
    .read = read,
    .write = write,
};
