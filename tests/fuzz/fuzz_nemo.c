/* What NeMo's archives are made of, and what state dictionaries say: the first byte chooses between
 * a tar archive, YAML, and JSON that stands for a pickled tree. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/tar.h"
#include "bytes/yaml.h"
#include "convert/frameworks/torch/lightning.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/schedule.h"
#include "target.h"

static volatile size_t kept; /* so that nothing is optimized away */

struct input {
    struct cm_str bytes;
    int kind;
    struct cm_error err;
};

static void read_tar(struct cm_arena *arena, struct input *input)
{
    struct cm_tar tar = {0};

    if (cm_tar_is_file(input->bytes) && !cm_tar_list(arena, input->bytes, &tar, &input->err))
        for (size_t i = 0; i < tar.count; i++)
            for (size_t k = 0; k < tar.items[i].bytes.size; k++)
                kept += (uint8_t)tar.items[i].bytes.data[k];
}

/* Weights with the shapes that "shapes" says, then the tree as a file of torch.save would have it,
 * and back. */
static void read_tree(struct cm_arena *arena, struct input *input)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("tree"));
    static const float zeros[16];
    struct cm_item *tree;

    if (cm_item_parse_json(arena, input->bytes, &tree, &input->err))
        return;
    const struct cm_item *shapes = cm_item_get(tree, "shapes");
    for (size_t i = 0; i < cm_item_count(shapes); i++) {
        struct cm_str name = CM_STR("w");
        struct cm_shape shape = {0};
        struct cm_saved_tensor *tensor;
        int64_t rank = 0;

        (void)cm_item_is_text(shapes->entries.items[i].key, &name);
        (void)cm_item_is_int(shapes->entries.items[i].value, &rank);
        for (shape.rank = 0; shape.rank < 3 && shape.rank < rank;)
            shape.dims[shape.rank++] = 2;
        if (!cm_saved_tensor_new(arena, CM_FLOAT, &shape,
                                 (struct cm_str){(const char *)zeros, sizeof(float) << shape.rank},
                                 name, &tensor, &input->err))
            cm_saved_add(saved, CM_SAVED_WEIGHT, name, tensor);
    }
    if (cm_torch_take_tree(saved, tree, &input->err))
        return;
    for (int64_t k = 0; saved->schedule_known == CM_SCHEDULE_KNOWN && k < 20; k++)
        for (size_t i = 0; i < saved->groups.count; i++)
            kept += cm_schedule_rate(&saved->schedule, saved->groups.count, i, k * k) > 0;
    kept += cm_torch_optimizer_item(arena, saved, false) != NULL;
    kept += cm_torch_schedule_item(arena, saved) != NULL;
    kept += cm_item_json(arena, cm_plain_item(arena, tree), 1000).size;
}

static enum cm_status read_any(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_item *item;

    cm_arena_init(&arena, guard);
    if (input->kind == 0)
        read_tar(&arena, input);
    else if (input->kind == 2)
        read_tree(&arena, input);
    else if (!cm_item_parse_yaml(&arena, input->bytes, &item, &input->err))
        kept += cm_item_json(&arena, item, 1000).size;
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    struct input input = {{(const char *)data + 1, size - 1}, data[0] % 3, {0}};
    (void)!cm_guarded((size_t)64 << 20, &input.err, read_any, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .choice_bytes = 1,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
