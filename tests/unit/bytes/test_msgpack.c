/* MessagePack of flax: all kinds of items come back, and hostile files are refused. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "bytes/msgpack.h"
#include "check.h"

static struct cm_str written(struct cm_arena *arena, const struct cm_item *item)
{
    char path[FOLDER_PATH_SIZE];
    struct cm_mapping mapping;
    struct cm_save save = {0};
    struct folder folder;
    struct cm_error err;

    folder_make(&folder);
    folder_path(&folder, "x.msgpack", path);
    CHECK_OK(cm_save_begin(&save, path, &err), &err);
    CHECK_OK(cm_msgpack_write(&save, item, &err), &err);
    CHECK_OK(cm_save_commit(&save, &err), &err);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    folder_remove(&folder);
    return bytes;
}

static void there_and_back(struct cm_arena *arena)
{
    static const char text[] =
        "{\"a\": [0, 127, 128, 255, 256, 65535, 65536, 4294967295, 4294967296, -1, -32, -33, -128,"
        " -129, -32768, -32769, -2147483648, -2147483649, 1.5, true, false, null],"
        " \"thirty-two characters and no more\": {}, \"\": [[], \"x\"]}";
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    struct cm_item *item, *back;
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    CHECK_OK(cm_item_parse_json(arena, cm_str(text), &item, &err), &err);
    CHECK_OK(cm_msgpack_read(arena, written(arena, item), CM_STR("f"), &back, &err), &err);
    CHECK_STRING(cm_item_json(arena, back, 0).data, text);
    CHECK_OK(cm_saved_tensor_new(arena, CM_FLOAT, &CM_SHAPE(2, 3),
                                 (struct cm_str){(const char *)numbers, sizeof numbers},
                                 CM_STR("m"), &tensor, &err),
             &err);
    CHECK_OK(cm_msgpack_read(arena, written(arena, cm_item_tensor(arena, tensor)), CM_STR("f"),
                             &back, &err),
             &err);
    CHECK_INT(back->kind, CM_ITEM_TENSOR);
    CHECK(cm_shape_equal(&back->tensor->shape, &CM_SHAPE(2, 3)));
    CHECK(memcmp(back->tensor->pieces.items[0].bytes.data, numbers, sizeof numbers) == 0);
}

void test_msgpack__items_and_arrays_come_back(void)
{
    check_in_arena(there_and_back);
}

#define BYTES(text) ((struct cm_str){"" text, sizeof(text) - 1})

static void chunks(struct cm_arena *arena)
{
    /* {"__msgpack_chunked_array__": true, "shape": {"0": 3}, "chunks": {"0": 2 of uint8, "1": 1}},
     * the second chunk before the first */
    const struct cm_str file = BYTES("\x83\xb9__msgpack_chunked_array__\xc3\xa5shape\x81\xa1"
                                     "0\x03\xa6"
                                     "chunks\x82\xa1"
                                     "1\xc7\x0c\x01\x93\x91\x01\xa5uint8\xc4\x01\x09\xa1"
                                     "0\xc7\x0d\x01\x93\x91\x02\xa5uint8\xc4\x02\x07\x08");
    struct cm_saved_reader reader = {0};
    struct cm_item *item;
    struct cm_error err;
    uint8_t out[3];

    CHECK_OK(cm_msgpack_read(arena, file, CM_STR("f"), &item, &err), &err);
    CHECK_INT(item->kind, CM_ITEM_TENSOR);
    CHECK_OK(cm_saved_tensor_read(&reader, item->tensor, 0, 3, out, &err), &err);
    CHECK(out[0] == 7 && out[1] == 8 && out[2] == 9);
}

void test_msgpack__arrays_in_chunks_are_one_tensor(void)
{
    check_in_arena(chunks);
}

static void refusals(struct cm_arena *arena)
{
    const struct {
        struct cm_str file;
        const char *why;
    } wrong[] = {
        {BYTES(""), "ends in the middle"},
        {BYTES("\x82\xa1x\x01"), "ends in the middle"},
        {BYTES("\xdd\xff\xff\xff\xff"), "more entries than there are bytes"},
        {BYTES("\xc1"), "begins no item"},
        {BYTES("\x01\x02"), "more after its end"},
        {BYTES("\xdb\xff\xff\xff\xffx"), "ends in the middle"},
        {BYTES("\xc7\x0c\x01\x93\x91\x02\xa5uint8\xc4\x01\x09"), "needs 2 bytes, there are 1"},
        {BYTES("\xc7\x0c\x01\x93\x91\x01\xa5uint9\xc4\x01\x09"), "a type that is not known"},
        {BYTES("\xc7\x01\x01\x01"), "not a list of shape, type and bytes"},
        {BYTES("\x81\xb9__msgpack_chunked_array__\xc3"), "no shape or no chunks"},
    };
    char deep[100];
    struct cm_item *item;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(wrong); i++)
        CHECK_FAILS(cm_msgpack_read(arena, wrong[i].file, CM_STR("f"), &item, &err), CM_BAD_MODEL,
                    &err, wrong[i].why);
    memset(deep, 0x91, sizeof deep);
    CHECK_FAILS(
        cm_msgpack_read(arena, (struct cm_str){deep, sizeof deep}, CM_STR("f"), &item, &err),
        CM_BAD_MODEL, &err, "nested too deep");
}

void test_msgpack__broken_files_are_refused(void)
{
    check_in_arena(refusals);
}

void test_msgpack__a_map_of_texts_is_recognized(void)
{
    CHECK(cm_msgpack_is_map(BYTES("\x81\xa6params\x80")));
    CHECK(cm_msgpack_is_map(BYTES("\xde\x00\x02\xd9\x28params")));
    CHECK(!cm_msgpack_is_map(BYTES("\x80\x02}q\x00")));        /* a pickle */
    CHECK(!cm_msgpack_is_map(BYTES("\x81\xa6p\x01rams\x80"))); /* no text */
    CHECK(!cm_msgpack_is_map(BYTES("\x93\xa1x\x01")));
}
