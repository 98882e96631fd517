/* Array files by their ending: opening, saving, and what all formats share. */
// SPDX-License-Identifier: Apache-2.0
#include "io/arrays.h"

#include "io/array_formats.h"
#include "onnx/value_data.h"

static const struct cm_arrays_options no_options = {0};

enum cm_status cm_arrays_tensor(struct cm_arena *arena, enum cm_dtype type,
                                const struct cm_shape *shape, struct cm_tensor *out,
                                struct cm_error *err)
{
    struct cm_tensor *owner = CM_NEW(arena, struct cm_tensor);

    cm_tensor_defer(arena, owner);
    CM_TRY(cm_tensor_new(type, shape, owner, err));
    *out = *owner;
    return CM_OK;
}

void cm_arrays_add(struct cm_arena *arena, struct cm_arrays *arrays, struct cm_str name,
                   const struct cm_tensor *tensor)
{
    struct cm_array *item = CM_PUSH(arena, arrays);

    *item = (struct cm_array){.name = name, .value = {.kind = CM_KIND_TENSOR, .tensor = *tensor}};
}

bool cm_arrays_wants(struct cm_arena *arena, const struct cm_arrays_options *options,
                     struct cm_str name, size_t count, struct cm_arrays *out)
{
    if (!options->names || (options->or_alone && count == 1))
        return true;
    for (size_t i = 0; i < options->n_names; i++)
        if (cm_str_equal(options->names[i], name))
            return true;
    *CM_PUSH(arena, out) = (struct cm_array){.name = name, .unread = true};
    return false;
}

/* ---- formats ---- */

static enum cm_status parse_npy(struct cm_arena *arena, struct cm_str bytes,
                                const struct cm_arrays_options *options, struct cm_arrays *out,
                                struct cm_error *err)
{
    struct cm_npy_header header;
    struct cm_tensor tensor;

    (void)options;
    CM_TRY(cm_npy_read_header(bytes, bytes.size, &header, err));
    CM_TRY(cm_npy_read_data(arena, &header, (const uint8_t *)bytes.data + header.data_offset,
                            &tensor, err));
    cm_arrays_add(arena, out, CM_STR_NONE, &tensor);
    return CM_OK;
}

static enum cm_status parse_pb(struct cm_arena *arena, struct cm_str bytes,
                               const struct cm_arrays_options *options, struct cm_arrays *out,
                               struct cm_error *err)
{
    const enum cm_kind kind = options->kind ? options->kind : CM_KIND_TENSOR;
    /* Made and tied to the arena first, so that running out of memory loses nothing. */
    struct cm_datum *value = CM_NEW(arena, struct cm_datum);
    struct cm_array *item = CM_PUSH(arena, out);

    cm_datum_defer(arena, value);
    *item = (struct cm_array){0};
    CM_TRY(cm_value_proto_load(arena, bytes, kind, value, err));
    item->value = *value;
    return CM_OK;
}

static enum cm_status write_npy(struct cm_arena *scratch, struct cm_save *save,
                                const struct cm_array *items, size_t count, struct cm_error *err)
{
    struct cm_npy_image image;

    (void)count;
    CM_TRY(cm_npy_image(scratch, &items[0].value.tensor, &image, err));
    CM_TRY(cm_save_write(save, image.header.data, image.header.size, err));
    return cm_save_write(save, image.data.data, image.data.size, err);
}

static enum cm_status write_pb(struct cm_arena *scratch, struct cm_save *save,
                               const struct cm_array *items, size_t count, struct cm_error *err)
{
    const enum cm_kind kind = items[0].value.kind ? items[0].value.kind : CM_KIND_OPTIONAL;
    struct cm_str bytes;

    (void)count;
    CM_TRY(cm_value_proto_store(scratch, &items[0].value, kind, items[0].name, &bytes, err));
    return cm_save_write(save, bytes.data, bytes.size, err);
}

static const struct {
    const char *ending;
    bool is_one; /* it holds one value */
    enum cm_status (*parse)(struct cm_arena *arena, struct cm_str bytes,
                            const struct cm_arrays_options *options, struct cm_arrays *out,
                            struct cm_error *err);
    enum cm_status (*write)(struct cm_arena *scratch, struct cm_save *save,
                            const struct cm_array *items, size_t count, struct cm_error *err);
} formats[] = {
    [CM_ARRAYS_NPY] = {".npy", true, parse_npy, write_npy},
    [CM_ARRAYS_NPZ] = {".npz", false, cm_npz_parse, cm_npz_write},
    [CM_ARRAYS_SAFETENSORS] = {".safetensors", false, cm_safetensors_parse, cm_safetensors_write},
    [CM_ARRAYS_PB] = {".pb", true, parse_pb, write_pb},
};

enum cm_array_format cm_arrays_format(const char *path)
{
    for (size_t i = 0; i < CM_COUNT(formats); i++)
        if (formats[i].ending && cm_str_ends(cm_str(path), formats[i].ending))
            return (enum cm_array_format)i;
    return CM_ARRAYS_BY_NAME;
}

enum cm_status cm_arrays_parse(struct cm_arena *arena, struct cm_str bytes,
                               const struct cm_arrays_options *options, struct cm_arrays *out,
                               struct cm_error *err)
{
    *out = (struct cm_arrays){0};
    if (options->format == CM_ARRAYS_BY_NAME || (size_t)options->format >= CM_COUNT(formats))
        return cm_fail(err, CM_BAD_ARGUMENT, "no format was given");
    return formats[options->format].parse(arena, bytes, options, out, err);
}

static enum cm_status find_format(const char *path, enum cm_array_format *out, struct cm_error *err)
{
    if (*out == CM_ARRAYS_BY_NAME)
        *out = cm_arrays_format(path);
    if (*out == CM_ARRAYS_BY_NAME)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "the name '%.600s' must end in .npy, .npz, .pb or .safetensors", path);
    return CM_OK;
}

enum cm_status cm_arrays_open(struct cm_arena *arena, const char *path,
                              const struct cm_arrays_options *options, struct cm_arrays *out,
                              struct cm_error *err)
{
    struct cm_arrays_options chosen = options ? *options : no_options;

    *out = (struct cm_arrays){0};
    CM_TRY(find_format(path, &chosen.format, err));
    struct cm_mapping *mapping = CM_NEW(arena, struct cm_mapping);
    cm_mapping_defer(arena, mapping);
    CM_TRY(cm_file_map(path, chosen.copy, mapping, err));
    const struct cm_str bytes = {(const char *)mapping->data, mapping->size};
    return cm_error_context(err, cm_arrays_parse(arena, bytes, &chosen, out, err), "%.600s", path);
}

/* ---- saving ---- */

static enum cm_status check_items(enum cm_array_format format, const struct cm_array *items,
                                  size_t count, struct cm_error *err)
{
    if (formats[format].is_one && count != 1)
        return cm_fail(err, CM_BAD_ARGUMENT, "this format holds one value, not %zu", count);
    for (size_t i = 0; i < count && format != CM_ARRAYS_PB; i++)
        if (items[i].value.kind != CM_KIND_TENSOR)
            return cm_fail(err, CM_UNSUPPORTED,
                           "'%.*s' is not a tensor, and only .pb files can hold other values",
                           CM_STR_FMT(items[i].name));
    return CM_OK;
}

static enum cm_status save_arrays(struct cm_arena *scratch, const char *path, bool is_users,
                                  const struct cm_array *items, size_t count, struct cm_error *err)
{
    enum cm_array_format format = CM_ARRAYS_BY_NAME;

    CM_TRY(find_format(path, &format, err));
    CM_TRY(cm_error_context(err, check_items(format, items, count, err), "%.600s", path));
    struct cm_save *save = CM_NEW(scratch, struct cm_save);
    cm_save_defer(scratch, save);
    if (is_users)
        CM_TRY(cm_save_begin(save, path, err));
    else
        CM_TRY(cm_save_begin_inside(save, cm_str_text(cm_path_folder(scratch, path)),
                                    cm_str(cm_path_name(path)), err));
    const enum cm_status status =
        cm_save_end(save, formats[format].write(scratch, save, items, count, err), err);
    return cm_error_context(err, status, "%.600s", path);
}

enum cm_status cm_arrays_save(struct cm_arena *scratch, const char *path,
                              const struct cm_array *items, size_t count, struct cm_error *err)
{
    return save_arrays(scratch, path, true, items, count, err);
}

enum cm_status cm_arrays_save_inside(struct cm_arena *scratch, const char *path,
                                     const struct cm_array *items, size_t count,
                                     struct cm_error *err)
{
    return save_arrays(scratch, path, false, items, count, err);
}
