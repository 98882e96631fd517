/* Files of torch.save: what is written is read again, and hostile ones are refused. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "check.h"
#include "convert/frameworks/torch/torch_file.h"

/* 6 elements 0 .. 5 as a row, or as the columns of a 2x3 matrix. */
static struct cm_saved_tensor *ramp(struct cm_arena *arena, enum cm_dtype dtype, bool columns)
{
    const size_t width = cm_dtype_size(dtype);
    uint8_t *bytes = cm_arena_alloc(arena, 6 * width);
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    for (size_t i = 0; i < 6; i++)
        bytes[i * width] = (uint8_t)i;
    CHECK_OK(cm_saved_tensor_new(arena, dtype, columns ? &CM_SHAPE(2, 3) : &CM_SHAPE(6),
                                 (struct cm_str){(const char *)bytes, 6 * width}, CM_STR("memory"),
                                 &tensor, &err),
             &err);
    if (columns) {
        tensor->pieces.count = 0;
        struct cm_saved_piece *piece = cm_saved_piece_add(arena, tensor, true);
        piece->bytes = (struct cm_str){(const char *)bytes, 6 * width};
        piece->size[0] = 2;
        piece->size[1] = 3;
        piece->stride[0] = 1;
        piece->stride[1] = 2;
    }
    return tensor;
}

static struct cm_str written(struct cm_arena *arena, const struct cm_item *item)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_mapping mapping;
    struct cm_save save = {0};
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_path(&folder, "checkpoint.pt", path);
    CHECK_OK(cm_save_begin(&save, path, &err), &err);
    CHECK_OK(cm_torch_write(&save, "checkpoint", item, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    folder_remove(&folder);
    return bytes;
}

static struct cm_item *example(struct cm_arena *arena)
{
    struct cm_item *map = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *list = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_item *tuple = cm_item_new(arena, CM_ITEM_LIST);
    struct cm_saved_tensor *tied = ramp(arena, CM_FLOAT, false);

    tied->storage = 7;
    tuple->truth = true;
    cm_item_put(arena, map, "columns", cm_item_tensor(arena, ramp(arena, CM_FLOAT, true)));
    cm_item_put(arena, map, "tied", cm_item_tensor(arena, tied));
    cm_item_put(arena, map, "again", cm_item_tensor(arena, tied));
    cm_item_put(arena, map, "eight", cm_item_tensor(arena, ramp(arena, CM_FLOAT8E4M3FN, false)));
    for (int i = 0; i < 2500; i++)
        cm_item_append(arena, list, cm_item_int(arena, i * INT64_C(100000000)));
    cm_item_put(arena, map, "list", list);
    cm_item_append(arena, tuple, cm_item_real(arena, 0.1));
    cm_item_append(arena, tuple, &cm_item_none);
    cm_item_append(arena, tuple, cm_item_bool(arena, true));
    cm_item_append(arena, tuple, cm_item_new(arena, CM_ITEM_MAP));
    cm_item_set(arena, map, cm_item_int(arena, 3), tuple);
    return map;
}

static void round_trip(struct cm_arena *arena)
{
    const struct cm_item *from = example(arena);
    const struct cm_str bytes = written(arena, from);
    struct cm_item *item;
    struct cm_error err;
    uint8_t out[24];

    CHECK(cm_torch_is_file(bytes));
    CHECK_OK(cm_torch_read(arena, bytes, CM_STR("checkpoint.pt"), &item, &err), &err);
    CHECK(cm_str_equal(cm_item_json(arena, item, 0), cm_item_json(arena, from, 0)));
    const struct cm_saved_tensor *columns = cm_item_get(item, "columns")->tensor;
    struct cm_saved_reader reader = {0};
    CHECK_OK(cm_saved_tensor_read(&reader, columns, 0, 6, out, &err), &err);
    for (size_t i = 0; i < 6; i++) /* columns became rows: 0 2 4 1 3 5 */
        CHECK_INT(out[4 * i], i % 3 * 2 + i / 3);
    const struct cm_saved_tensor *tied = cm_item_get(item, "tied")->tensor;
    CHECK(tied->storage && tied->storage == cm_item_get(item, "again")->tensor->storage);
    CHECK(tied->storage != columns->storage);
    CHECK_INT((uintptr_t)(columns->pieces.items[0].bytes.data - bytes.data) % 64, 0);
    CHECK_INT(cm_item_get(item, "eight")->tensor->dtype, CM_FLOAT8E4M3FN);
}

void test_torch_file__reads_what_it_wrote(void)
{
    check_in_arena(round_trip);
}

/* A file cut anywhere is refused, and so is one with any byte changed that matters. */
static void damages(struct cm_arena *arena)
{
    const struct cm_str bytes = written(arena, example(arena));
    struct cm_item *item;
    struct cm_error err;

    for (size_t size = 0; size < bytes.size; size += 97)
        CHECK(cm_torch_read(arena, (struct cm_str){bytes.data, size}, CM_STR("x"), &item, &err) !=
              CM_OK);
    char *copy = (char *)cm_arena_str(arena, bytes).data;
    copy[200] ^= 1; /* in the pickle */
    CHECK_FAILS(cm_torch_read(arena, (struct cm_str){copy, bytes.size}, CM_STR("x"), &item, &err),
                CM_BAD_MODEL, &err, "x: data.pkl: its check sum is wrong");
}

void test_torch_file__refuses_damaged_files(void)
{
    check_in_arena(damages);
}

/* The older form, of one storage of floats and a tensor in it. */
static struct cm_str legacy(struct cm_arena *arena, const char *shape, const char *stride)
{
    static const char parts[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                                "\x80\x02M\xe9\x03.}U\x0dlittle_endian\x88s.";
    char *text = cm_arena_alloc(arena, 1000);
    const int head = (int)sizeof parts - 1;

    memcpy(text, parts, sizeof parts);
    int at = head + snprintf(text + head, 500,
                             "ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\n"
                             "FloatStorage\nS'0'\nS'cpu'\nI4\nNtQI1\n(%st(%stNNtR.](S'0'\ne.",
                             shape, stride);
    text[at] = 4;
    memset(text + at + 1, 0, 7);
    memcpy(text + at + 8, (float[]){0, 1, 2, 3}, 16);
    return (struct cm_str){text, (size_t)at + 24};
}

static void reads_legacy(struct cm_arena *arena)
{
    struct cm_str bytes = legacy(arena, "I3\n", "I1\n");
    struct cm_item *item;
    struct cm_error err;
    float out[3];

    CHECK(cm_torch_is_file(bytes));
    CHECK_OK(cm_torch_read(arena, bytes, CM_STR("x"), &item, &err), &err);
    struct cm_saved_reader reader = {0};
    CHECK_OK(cm_saved_tensor_read(&reader, item->tensor, 0, 3, out, &err), &err);
    CHECK(out[0] == 1 && out[2] == 3);
    CHECK_FAILS(cm_torch_read(arena, legacy(arena, "I2\n", "I3\n"), CM_STR("x"), &item, &err),
                CM_BAD_MODEL, &err, "a tensor reaches to element 4 of a storage of 4");
    CHECK_FAILS(cm_torch_read(arena, legacy(arena, "I2\n", "I-1\n"), CM_STR("x"), &item, &err),
                CM_BAD_MODEL, &err, "wrong arguments");
    bytes.size--;
    CHECK_FAILS(cm_torch_read(arena, bytes, CM_STR("x"), &item, &err), CM_BAD_MODEL, &err,
                "storage 0: the file is cut");
}

void test_torch_file__reads_the_older_form(void)
{
    check_in_arena(reads_legacy);
}
