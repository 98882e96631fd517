/* Ray Train: a folder of a run with a list of its checkpoints, or one of those; what is in one is
 * the user's, in whatever format. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/format.h"

extern const struct cm_format cm_format_ray;

static const char snapshot[] = "checkpoint_manager_snapshot.json";

static bool is_checkpoint(const struct cm_saved_place *place)
{
    return !place->file.size &&
           cm_str_starts(cm_str_after_last(place->folder, '/'), "checkpoint_") &&
           (cm_place_has(place, CM_STR(".metadata.json")) ||
            cm_place_has(place, CM_STR(".is_checkpoint")));
}

static int recognize(struct cm_saved_place *place)
{
    return !place->file.size && (cm_place_has(place, cm_str(snapshot)) || is_checkpoint(place)) ? 2
                                                                                                : 0;
}

static enum cm_status read_json(struct cm_saved_place *place, struct cm_saved *saved,
                                struct cm_str name, const char *fact, struct cm_item **out,
                                struct cm_error *err)
{
    CM_TRY(cm_place_json(place, name, out, err));
    cm_saved_tell(saved, fact, *out);
    return CM_OK;
}

static enum cm_status read_as(const struct cm_format *format, struct cm_saved_place *place,
                              struct cm_saved *saved, struct cm_error *err)
{
    saved->format = cm_arena_printf(saved->arena, "a checkpoint folder with %s of %s", format->what,
                                    format->system)
                        .data;
    return format->read(place, saved, err);
}

/* The user's files: the folder as another format, a folder in it, or its one file that is one. */
static enum cm_status read_contents(struct cm_saved_place *place, struct cm_saved *saved,
                                    struct cm_error *err)
{
    const struct cm_format *format = cm_format_of(place, &cm_format_ray), *of_file = NULL;
    struct cm_saved_place found, below;
    size_t count = 0;

    if (format)
        return read_as(format, place, saved, err);
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        const char *slash = memchr(name.data, '/', name.size);

        if (slash) { /* names of one folder stand together */
            const struct cm_str folder = {name.data, (size_t)(slash - name.data)};
            const size_t same = folder.size + 1;
            if (i > 0 && place->names.items[i - 1].size > same &&
                memcmp(place->names.items[i - 1].data, name.data, same) == 0)
                continue;
            below = cm_place_below(place, cm_arena_str(place->arena, folder));
        } else {
            below = cm_place_file(place, name);
        }
        format = cm_format_of(&below, &cm_format_ray);
        if (!format)
            continue;
        if (count++ == 0) {
            of_file = format;
            found = below;
        } else {
            cm_saved_unknown(saved, "there is another checkpoint in it, '%.*s'", CM_STR_FMT(name));
        }
    }
    return of_file ? read_as(of_file, &found, saved, err)
                   : cm_fail(err, CM_UNSUPPORTED,
                             "the checkpoint has no file of a format that is known here");
}

static enum cm_status read_checkpoint(struct cm_saved_place *place, struct cm_saved *saved,
                                      struct cm_error *err)
{
    struct cm_item *item;
    int64_t step;

    if (cm_place_has(place, CM_STR(".metadata.json"))) {
        CM_TRY(read_json(place, saved, CM_STR(".metadata.json"), "ray.metadata", &item, err));
        if (cm_item_is_int(cm_item_get(item, "step"), &step) && step >= 0)
            saved->step = step;
    }
    CM_TRY(read_contents(place, saved, err));
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];
        if (!memchr(name.data, '/', name.size) && cm_str_ends(name, ".json") && name.data[0] != '.')
            CM_TRY(read_json(place, saved, name,
                             cm_arena_printf(saved->arena, "ray.%.*s", CM_STR_FMT(name)).data,
                             &item, err));
    }
    return CM_OK;
}

static enum cm_status read_folder(struct cm_saved_place *place, struct cm_saved *saved,
                                  struct cm_error *err)
{
    struct cm_str name;
    struct cm_item *list;

    if (!cm_place_has(place, cm_str(snapshot)))
        return read_checkpoint(place, saved, err);
    CM_TRY(read_json(place, saved, cm_str(snapshot), "ray", &list, err));
    saved->version = cm_item_get_text(list, "ray_version");
    if (!cm_item_is_text(cm_item_path(list, "latest_checkpoint_result.checkpoint_dir_name"), &name))
        return cm_fail(err, CM_BAD_MODEL, "%s: it names no latest checkpoint", snapshot);
    CM_TRY(cm_file_name_is_inside(name, err));
    struct cm_saved_place below = cm_place_below(place, cm_arena_str(saved->arena, name));
    if (!below.names.count)
        return cm_fail(err, CM_NOT_FOUND, "the latest checkpoint, '%.*s', is not in the folder",
                       CM_STR_FMT(name));
    return read_checkpoint(&below, saved, err);
}

const struct cm_format cm_format_ray = {
    .name = "ray",
    .system = "Ray",
    .what = "a folder of Ray Train",
    .recognize = recognize,
    .read = read_folder,
};
