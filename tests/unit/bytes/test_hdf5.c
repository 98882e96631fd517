/* HDF5: what is written is read again, groups of every size; and damaged files do no harm. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "bytes/hdf5.h"
#include "check.h"

static struct cm_saved_tensor *filled(struct cm_arena *arena, enum cm_dtype dtype,
                                      const struct cm_shape *shape, uint8_t first)
{
    const size_t size = cm_dtype_size(dtype) * (size_t)cm_shape_elements(shape);
    uint8_t *bytes = cm_arena_alloc(arena, size + 1);
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(first + i);
    CHECK_OK(cm_saved_tensor_new(arena, dtype, shape, (struct cm_str){(const char *)bytes, size},
                                 CM_STR("memory"), &tensor, &err),
             &err);
    return tensor;
}

static struct cm_str written(struct cm_arena *arena, const struct cm_hdf5_output *outputs,
                             size_t count)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_mapping mapping;
    struct cm_save save = {0};
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_path(&folder, "file.h5", path);
    CHECK_OK(cm_save_begin(&save, path, &err), &err);
    CHECK_OK(cm_hdf5_write(arena, &save, outputs, count, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    folder_remove(&folder);
    return bytes;
}

static void check_same(const struct cm_hdf5_object *object, const struct cm_saved_tensor *wanted)
{
    CHECK(object && object->tensor);
    CHECK_INT(object->tensor->dtype, wanted->dtype);
    CHECK(cm_shape_equal(&object->tensor->shape, &wanted->shape));
    CHECK(cm_str_equal(object->tensor->pieces.items[0].bytes, wanted->pieces.items[0].bytes));
}

static void keeps_types(struct cm_arena *arena)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_DOUBLE, CM_FLOAT16, CM_INT64,
                                          CM_UINT8, CM_UINT32, CM_INT16,   CM_BFLOAT16};
    struct cm_hdf5_output outputs[CM_COUNT(types) + 2];
    struct cm_hdf5_object *root;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(types); i++)
        outputs[i] =
            (struct cm_hdf5_output){cm_arena_printf(arena, "layers/dense/vars/%zu", i),
                                    filled(arena, types[i], &CM_SHAPE(3, 2), (uint8_t)i),
                                    types[i] == CM_BFLOAT16 ? CM_STR("bfloat16") : CM_STR_NONE};
    outputs[CM_COUNT(types)] =
        (struct cm_hdf5_output){CM_STR("layers/dense/vars"), NULL, CM_STR("größe")};
    outputs[CM_COUNT(types) + 1] = (struct cm_hdf5_output){
        CM_STR("optimizer/vars/0"), filled(arena, CM_INT64, &CM_SCALAR, 7), CM_STR_NONE};
    const struct cm_str bytes = written(arena, outputs, CM_COUNT(outputs));
    CHECK_OK(cm_hdf5_read(arena, bytes, CM_STR("file.h5"), &root, &err), &err);
    for (size_t i = 0; i < CM_COUNT(outputs); i++)
        if (outputs[i].tensor)
            check_same(cm_hdf5_find(root, outputs[i].path), outputs[i].tensor);
    const struct cm_hdf5_attribute *name =
        cm_hdf5_attribute(cm_hdf5_find(root, CM_STR("layers/dense/vars")), "name");
    CHECK(name != NULL);
    CHECK_STR(name->value->text, "größe");
}

void test_hdf5__arrays_and_names_are_read_again(void)
{
    check_in_arena(keeps_types);
}

/* One table, many of them, a tree of several levels. */
static void keeps_groups(struct cm_arena *arena)
{
    static const size_t counts[] = {1, 8, 9, 256, 257, 9000};
    struct cm_error err;

    for (size_t c = 0; c < CM_COUNT(counts); c++) {
        struct cm_hdf5_output *outputs = CM_NEW_ARRAY(arena, struct cm_hdf5_output, counts[c]);
        struct cm_hdf5_object *root;

        for (size_t i = 0; i < counts[c]; i++)
            outputs[i] = (struct cm_hdf5_output){cm_arena_printf(arena, "vars/%zu", i),
                                                 filled(arena, CM_UINT8, &CM_SHAPE(2), (uint8_t)i),
                                                 CM_STR_NONE};
        const struct cm_str bytes = written(arena, outputs, counts[c]);
        CHECK_OK(cm_hdf5_read(arena, bytes, CM_STR("file.h5"), &root, &err), &err);
        const struct cm_hdf5_object *vars = cm_hdf5_child(root, "vars");
        CHECK_INT(vars->children.count, counts[c]);
        for (size_t i = 0; i < counts[c]; i += 1 + counts[c] / 10)
            check_same(cm_hdf5_find(root, outputs[i].path), outputs[i].tensor);
    }
}

void test_hdf5__groups_of_any_size_are_read_again(void)
{
    check_in_arena(keeps_groups);
}

static void does_no_harm(struct cm_arena *arena)
{
    const struct cm_hdf5_output outputs[] = {
        {CM_STR("a/b"), filled(arena, CM_FLOAT, &CM_SHAPE(2, 2), 1), CM_STR_NONE},
        {CM_STR("a"), NULL, CM_STR("name")}};
    const struct cm_str bytes = written(arena, outputs, 2);
    struct cm_hdf5_object *root;
    struct cm_error err;

    for (size_t size = 0; size < bytes.size - 4096; size++) /* all but the heap of texts */
        CHECK_INT(
            cm_hdf5_read(arena, (struct cm_str){bytes.data, size}, CM_STR("file.h5"), &root, &err),
            CM_BAD_MODEL);
    for (size_t i = 0; i < bytes.size - 4096; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            char *copy = (char *)(uintptr_t)cm_arena_str(arena, bytes).data;

            copy[i] = (char)(copy[i] ^ 1 << bit);
            const enum cm_status status = cm_hdf5_read(arena, (struct cm_str){copy, bytes.size},
                                                       CM_STR("file.h5"), &root, &err);
            CHECK(status == CM_OK || status == CM_BAD_MODEL || status == CM_UNSUPPORTED ||
                  status == CM_LIMIT);
        }
}

void test_hdf5__damaged_files_do_no_harm(void)
{
    check_in_arena(does_no_harm);
}
