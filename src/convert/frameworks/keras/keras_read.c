/* Keras files: .keras, .weights.h5 and the older .h5. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/keras_file.h"

#include "bytes/zip.h"

/* ---- which file ---- */

/* The file itself, or the only one of a folder that ends so. */
static struct cm_str the_file(struct cm_saved_place *place, const char *end)
{
    struct cm_str found = place->file;

    if (found.size)
        return found;
    for (size_t i = 0; i < place->names.count; i++) {
        const struct cm_str name = place->names.items[i];

        if (!cm_str_ends(name, end) || memchr(name.data, '/', name.size))
            continue;
        if (found.size)
            return CM_STR_NONE;
        found = name;
    }
    return found;
}

static struct cm_str find_hdf5(struct cm_saved_place *place)
{
    const struct cm_str name = the_file(place, ".h5");

    return name.size && cm_hdf5_is(cm_place_head(place, name)) ? name : CM_STR_NONE;
}

static struct cm_str find_archive(struct cm_saved_place *place)
{
    enum { NAME_AT = 30 };
    const struct cm_str name = the_file(place, ".keras");
    const struct cm_str head = name.size ? cm_place_head(place, name) : CM_STR_NONE;

    if (head.size < NAME_AT || !cm_str_starts(head, "PK\x03\x04"))
        return CM_STR_NONE;
    const struct cm_str member = cm_str_from(head, NAME_AT);
    return cm_str_starts(member, "metadata.json") || cm_str_starts(member, "config.json")
               ? name
               : CM_STR_NONE;
}

static int recognize_archive(struct cm_saved_place *place)
{
    return find_archive(place).size ? 2 : 0;
}

static int recognize_weights(struct cm_saved_place *place)
{
    return find_hdf5(place).size ? 1 : 0;
}

/* The names of the root's groups and attributes are near the beginning. */
static int recognize_legacy(struct cm_saved_place *place)
{
    static const char *const words[] = {"model_weights", "layer_names"};
    const struct cm_str name = find_hdf5(place);
    struct cm_str bytes;

    if (!name.size || cm_place_map(place, name, &bytes, NULL))
        return 0;
    const size_t size = bytes.size < 1 << 14 ? bytes.size : 1 << 14;
    for (size_t w = 0; w < CM_COUNT(words); w++)
        for (size_t i = 0; i + strlen(words[w]) <= size; i++)
            if (memcmp(bytes.data + i, words[w], strlen(words[w])) == 0)
                return 2;
    return 0;
}

/* ---- reading ---- */

static enum cm_status read_hdf5(struct cm_saved_place *place, const struct cm_hdf5_object **root,
                                struct cm_error *err)
{
    const struct cm_str name = find_hdf5(place);
    struct cm_hdf5_object *object;
    struct cm_str bytes;

    CM_TRY(cm_place_map(place, name, &bytes, err));
    CM_TRY(cm_hdf5_read(place->arena, bytes, name, &object, err));
    *root = object;
    return CM_OK;
}

static enum cm_status read_weights(struct cm_saved_place *place, struct cm_saved *saved,
                                   struct cm_error *err)
{
    const struct cm_hdf5_object *root;

    CM_TRY(read_hdf5(place, &root, err));
    CM_TRY(cm_keras_read_weights(saved, root, NULL, err));
    cm_keras_missing(saved, "a weights file of Keras");
    return CM_OK;
}

static enum cm_status read_legacy(struct cm_saved_place *place, struct cm_saved *saved,
                                  struct cm_error *err)
{
    const struct cm_hdf5_object *root;

    CM_TRY(read_hdf5(place, &root, err));
    CM_TRY(cm_keras_read_legacy(saved, root, err));
    cm_keras_missing(saved, "this file of Keras");
    return CM_OK;
}

static enum cm_status read_json(struct cm_saved *saved, const struct cm_zip_member *member,
                                struct cm_item **out, struct cm_error *err)
{
    struct cm_str text;

    CM_TRY(cm_zip_contents(saved->arena, member, &text, err));
    return cm_error_context(err, cm_item_parse_json(saved->arena, text, out, err), "'%.*s'",
                            CM_STR_FMT(member->name));
}

static enum cm_status read_archive(struct cm_saved_place *place, struct cm_saved *saved,
                                   struct cm_error *err)
{
    const struct cm_str file = find_archive(place);
    struct cm_item *config = NULL, *metadata = NULL;
    struct cm_str bytes, weights = CM_STR_NONE;
    struct cm_hdf5_object *root;
    struct cm_zip zip;

    CM_TRY(cm_place_map(place, file, &bytes, err));
    CM_TRY(cm_zip_open(bytes, 0, &zip, err));
    for (uint64_t i = 0; i < zip.count; i++) {
        struct cm_zip_member member;

        CM_TRY(cm_zip_next(&zip, &member, err));
        const bool is_config = cm_str_is(member.name, "config.json");
        if (is_config || cm_str_is(member.name, "metadata.json")) {
            CM_TRY(cm_zip_locate(&zip, &member, err));
            CM_TRY(read_json(saved, &member, is_config ? &config : &metadata, err));
        } else if (cm_str_is(member.name, "model.weights.h5")) {
            CM_TRY(cm_zip_locate(&zip, &member, err));
            if (member.deflated)
                CM_TRY(cm_zip_contents(saved->arena, &member, &weights, err));
            else
                weights = member.packed;
        } else if (!cm_str_ends(member.name, "/"))
            cm_saved_unknown(saved, "member '%.*s' of the archive", CM_STR_FMT(member.name));
    }
    if (!config || !weights.data)
        return cm_fail(err, CM_BAD_MODEL, "it has no '%s'",
                       config ? "model.weights.h5" : "config.json");
    saved->version = cm_item_get_text(metadata, "keras_version");
    CM_TRY(cm_error_context(err, cm_hdf5_read(saved->arena, weights, file, &root, err),
                            "'model.weights.h5'"));
    cm_saved_tell(saved, "keras.config", config);
    CM_TRY(cm_keras_read_weights(saved, root, config, err));
    cm_keras_missing(saved, "this file of Keras");
    return CM_OK;
}

/* ---- rows ---- */

const struct cm_format cm_format_keras = {
    .name = "keras",
    .system = "Keras",
    .what = "a .keras file",
    .recognize = recognize_archive,
    .read = read_archive,
};

const struct cm_format cm_format_keras_weights = {
    .name = "keras-weights",
    .system = "Keras",
    .what = "a .weights.h5 file",
    .recognize = recognize_weights,
    .read = read_weights,
    .write = cm_keras_write_weights,
};

const struct cm_format cm_format_keras_legacy = {
    .name = "keras-legacy",
    .system = "Keras",
    .what = "a .h5 file of older versions",
    .recognize = recognize_legacy,
    .read = read_legacy,
};
