/* Pickles and files of torch.save, whatever their bytes are: read, understood as a training,
 * printed and written again. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/torch/pickle_write.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"
#include "target.h"

static volatile unsigned kept; /* so that nothing is optimized away */

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

/* Touches every byte, so that sanitizers see a view that goes too far. */
static void read_tensor(const struct cm_saved_tensor *tensor)
{
    const int64_t count = cm_shape_elements(&tensor->shape);
    struct cm_saved_reader reader = {0};
    struct cm_error err;
    uint8_t room[64];

    for (int64_t i = 0; i < count && i < 4096; i += 4)
        if (cm_saved_tensor_read(&reader, tensor, i, count - i < 4 ? count - i : 4, room, &err) ==
            CM_OK)
            kept += room[0];
    if (count > 4 && cm_saved_tensor_read(&reader, tensor, count - 4, 4, room, &err) == CM_OK)
        kept += room[0];
    cm_saved_reader_release(&reader);
}

static enum cm_status read(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_item *item;

    cm_arena_init(&arena, guard);
    if ((cm_torch_is_file(input->bytes)
             ? cm_torch_read(&arena, input->bytes, CM_STR("x"), &item, &input->err)
             : cm_pickle_read(&arena, input->bytes, &item, &input->err)) == CM_OK) {
        struct cm_saved *saved = cm_saved_new(&arena, CM_STR("x"));
        struct cm_pickle_writer writer = {.arena = &arena, .with_tensors = true};

        kept += (unsigned)cm_item_json(&arena, item, 10000).size;
        (void)!cm_pickle_write(&writer, item, &input->err);
        (void)!cm_torch_take_tree(saved, item, &input->err);
        for (size_t i = 0; i < saved->entries.count; i++)
            read_tensor(saved->entries.items[i].tensor);
        if (item->kind == CM_ITEM_TENSOR)
            read_tensor(item->tensor);
    }
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};

    (void)!cm_guarded((size_t)64 << 20, &input.err, read, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
