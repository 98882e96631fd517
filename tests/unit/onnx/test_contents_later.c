/* Tensors whose contents are read while they are saved. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_case.h"
#include "onnx/tensor_data.h"

enum { COUNT = 5000 };

struct counted {
    struct cm_contents contents;
    bool broken;
};

/* Element i is i. */
static enum cm_status read_numbers(const struct cm_contents *self, uint64_t offset, size_t size,
                                   void *out, struct cm_error *err)
{
    const struct counted *c = (const struct counted *)(const void *)self;

    if (c->broken && offset > 0)
        return cm_fail(err, CM_IO, "the disk is gone");
    for (size_t i = 0; i < size / 4; i++)
        ((float *)out)[i] = (float)(offset / 4 + i);
    return CM_OK;
}

static void check_numbers(struct cm_arena *arena, const char *path)
{
    struct cm_model_file *file;
    struct cm_tensor tensor;
    struct cm_error err;

    CHECK_OK(cm_model_open(arena, path, NULL, &file, &err), &err);
    CHECK_OK(
        cm_tensor_proto_load(&file->model.graph->initializer.items[0], file->files, &tensor, &err),
        &err);
    CHECK_INT(cm_tensor_count(&tensor), COUNT);
    for (int64_t i = 0; i < COUNT; i++)
        CHECK(((const float *)tensor.data)[i] == (float)i);
    cm_tensor_drop(&tensor);
}

static void save_everywhere(struct cm_arena *arena)
{
    static const struct {
        const char *name;
        struct cm_save_options options;
    } forms[] = {
        {"inside.onnx", {.placement = CM_PLACE_INLINE}},
        {"outside.onnx", {.placement = CM_PLACE_EXTERNAL}},
        {"words.onnxtxt", {.placement = CM_PLACE_KEEP}},
    };
    struct counted numbers = {{read_numbers, 4096}, false};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    const char *folder = case_folder(arena);
    struct cm_model_file *file;
    struct cm_error err;

    case_model(arena, model);
    case_save(arena, model, case_path(arena, folder, "m.onnx"));
    CHECK_OK(cm_model_open(arena, case_path(arena, folder, "m.onnx"), NULL, &file, &err), &err);
    CHECK_OK(cm_tensor_proto_store_later(&file->model.graph->initializer.items[0], arena, CM_FLOAT,
                                         &CM_SHAPE(COUNT), &numbers.contents, &err),
             &err);
    for (size_t i = 0; i < CM_COUNT(forms); i++) {
        const char *path = case_path(arena, folder, forms[i].name);

        CHECK_OK(cm_model_save(file, path, &forms[i].options, NULL, &err), &err);
        check_numbers(arena, path);
    }
    numbers.broken = true;
    const char *path = case_path(arena, folder, "broken.onnx");
    CHECK_FAILS(cm_model_save(file, path, NULL, NULL, &err), CM_IO, &err, "the disk is gone");
    const size_t before = case_count_files(folder);
    CHECK_FAILS(cm_model_save(file, path, &forms[1].options, NULL, &err), CM_IO, &err,
                "the disk is gone");
    CHECK_INT(case_count_files(folder), before); /* nothing half is left */
}

void test_contents_later__are_read_while_the_model_is_saved(void)
{
    check_in_arena(save_everywhere);
}
