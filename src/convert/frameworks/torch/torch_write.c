/* torch.save's zip: the pickle, then each storage as a stream. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/zip.h"
#include "convert/frameworks/torch/pickle_write.h"
#include "convert/frameworks/torch/torch_file.h"

enum { ALIGNMENT = 64 };

static enum cm_status put_into_zip(void *zip, const void *bytes, size_t size, struct cm_error *err)
{
    return cm_zip_write(zip, bytes, size, err);
}

struct writing {
    struct cm_save *save;
    const char *stem;
    const struct cm_item *item;
    struct cm_error *err;
};

static enum cm_status write_storages(struct cm_zip_writer *zip, const char *stem,
                                     const struct cm_pickle_writer *pickle, struct cm_error *err)
{
    for (size_t i = 0; i < pickle->storages.count; i++) {
        const struct cm_saved_tensor *tensor = pickle->storages.items[i];
        const int64_t count = cm_shape_elements(&tensor->shape);

        CM_TRY(cm_zip_begin_member(zip, cm_arena_printf(zip->arena, "%s/data/%zu", stem, i),
                                   (uint64_t)count * cm_dtype_size(tensor->dtype), NULL, err));
        CM_TRY(cm_saved_elements_each(tensor, 0, count, put_into_zip, zip, err));
        CM_TRY(cm_zip_end_member(zip, err));
    }
    return CM_OK;
}

/* An archive is written within whatever call its caller is in, which has no memory for it. */
static enum cm_status write_file(struct cm_guard *guard, void *arg)
{
    const struct writing *w = arg;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    struct cm_zip_writer zip = {
        .arena = &arena, .save = w->save, .alignment = ALIGNMENT, .base = w->save->written};
    struct cm_pickle_writer pickle = {.arena = &arena, .with_tensors = true};
    enum cm_status status = cm_pickle_write(&pickle, w->item, w->err);
    const struct {
        const char *name;
        struct cm_str text;
    } records[] = {
        {"data.pkl", cm_bytes_str(&pickle.out)},
        {".format_version", CM_STR("1")},
        {".storage_alignment", CM_STR("64")},
        {"byteorder", CM_STR("little")},
        {"version", CM_STR("3\n")}, /* after the storages */
    };

    for (size_t i = 0; i < CM_COUNT(records) && !status; i++) {
        if (i + 1 == CM_COUNT(records))
            status = write_storages(&zip, w->stem, &pickle, w->err);
        if (!status)
            status = cm_zip_add(&zip, cm_arena_printf(&arena, "%s/%s", w->stem, records[i].name),
                                records[i].text, w->err);
    }
    if (!status)
        status = cm_zip_finish(&zip, w->err);
    cm_arena_release(&arena);
    return status;
}

enum cm_status cm_torch_write(struct cm_save *save, const char *stem, const struct cm_item *item,
                              struct cm_error *err)
{
    struct writing writing = {save, stem, item, err};

    return cm_guarded(0, err, write_file, &writing);
}
