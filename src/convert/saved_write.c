/* Files and folders of checkpoints on their way to the disk. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/format.h"

enum cm_status cm_saved_write_file(const struct cm_saved *saved, const char *path,
                                   cm_file_fill_fn *fill, void *arg, struct cm_error *err)
{
    struct cm_save *save = CM_NEW(saved->arena, struct cm_save);

    CM_TRY(cm_save_begin(save, path, err));
    cm_save_defer(saved->arena, save);
    save->cancel = saved->cancel;
    return cm_save_end(save, fill(arg, save, err), err);
}

enum cm_status cm_saved_write_folder(const struct cm_saved *saved, const char *path,
                                     cm_folder_fill_fn *fill, void *arg, struct cm_error *err)
{
    struct cm_folder_save *folder = CM_NEW(saved->arena, struct cm_folder_save);

    CM_TRY(cm_folder_begin(folder, path, err));
    cm_folder_defer(saved->arena, folder);
    const enum cm_status status = fill(arg, folder, err);
    if (status == CM_OK)
        return cm_folder_commit(folder, err);
    cm_folder_abandon(folder);
    return status;
}

enum cm_status cm_saved_put_file(const struct cm_saved *saved, struct cm_folder_save *folder,
                                 const char *name, cm_file_fill_fn *fill, void *arg,
                                 struct cm_error *err)
{
    const char *path;

    CM_TRY(cm_folder_file(folder, saved->arena, name, &path, err));
    return cm_saved_write_file(saved, path, fill, arg, err);
}

enum cm_status cm_saved_put_json(const struct cm_saved *saved, struct cm_folder_save *folder,
                                 const char *name, const struct cm_item *item, struct cm_error *err)
{
    return cm_folder_put(folder, saved->arena, name, cm_item_json(saved->arena, item, 0), err);
}
